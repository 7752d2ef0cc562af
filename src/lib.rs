//! Hermitcrab: a sealed, replayable coding-agent core.
//!
//! Async inside, sans-I/O outside: [`session::Instance::step`] takes the time
//! and the outcomes of earlier effects and returns events and new effects. See
//! `ARCHITECTURE.md` for the map.

// By this name a file that other crates include finds the core (`component/convert.rs`).
extern crate self as hermitcrab;

pub mod text;

pub mod llm;

pub mod environment;

pub mod memory;

pub mod event;

pub mod effect;

pub mod tool;

pub mod object;

pub mod profile;

pub mod session;

#[cfg(feature = "log")]
pub mod log;

pub mod script;

#[cfg(all(target_arch = "wasm32", feature = "component"))]
mod component;

#[cfg(all(target_arch = "wasm32", feature = "web"))]
mod web;
