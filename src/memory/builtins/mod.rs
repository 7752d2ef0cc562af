//! Builtins of our own, in place of bashkit's where those are silently wrong in
//! this sandbox: they cut their output, spin the clock, or draw the same random
//! numbers in every instance.

mod sleep;

use std::sync::Arc;

use bashkit::BuiltinRegistry;

/// Puts every builtin of ours in `registry`.
pub(crate) fn register(registry: &BuiltinRegistry) {
    registry.insert("sleep", Arc::new(sleep::Sleep));
    registry.insert("timeout", Arc::new(sleep::Timeout));
}
