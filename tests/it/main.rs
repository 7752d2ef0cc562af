//! Integration tests of the core crate: the rules of the code itself.

mod agents;
mod approval;
#[cfg(all(unix, feature = "analysis"))]
mod approval_bash;
#[cfg(feature = "analysis")]
mod bashkit;
mod bench;
mod circles;
mod compaction;
mod effect;
mod orientation;
mod profile;
mod record;
mod schema;
mod session;
mod settings;
mod spec;
mod tidy;
