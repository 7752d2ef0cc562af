//! Empty: cargo wants a target where it resolves dependencies.
