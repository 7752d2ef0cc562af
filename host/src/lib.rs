//! x

pub mod serve_model;
