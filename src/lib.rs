//! Hermitcrab: a sealed, replayable coding-agent core.

pub mod effect;
pub mod environment;
pub mod llm;
pub mod memory;
