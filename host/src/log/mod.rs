//! The log of an instance: all inputs and outputs of its core, written as the run
//! goes. From it a replay repeats the run without network, files or processes.
//!
//! The file is gzip over lines of JSON (`zcat FILE | jq`). The first line is the
//! [`Header`]; then each call and each step is a line; a log that was closed ends
//! with `{"end": …}`. Every line ends with `sum`, a CRC-32 of all text before it, so
//! that a reader finds the first line that changed. If the writer was killed, the log
//! ends early, and a reader uses the complete lines.
//!
//! | line | holds |
//! |---|---|
//! | `{"hermitcrab_log": 1, …}` | [`Header`] |
//! | `{"call": …}` | an [`InstanceCall`](hermitcrab::session::InstanceCall) that may have changed something |
//! | `{"step": {"now_ms", "outcomes"}, "output": {"events", "effects", "reports", "log", "busy"}}` | a step |
//! | `{"end": {"steps"}}` | the last line |
//!
//! A request to a model repeats nearly all of the one before it. Its body is
//! written as what is new: `{"keep", "then", "keep_end"}` are the bytes that the last
//! body began with, the text between, and the bytes that it ended with.

mod encode;
mod read;
mod replay;
mod write;

pub use read::{Entry, LogError, LogReader};
pub use replay::{Difference, ReplayError, Replayed, replay};
pub(crate) use write::Recorder;

use serde::{Deserialize, Serialize};

/// Version of the format that this library writes; it reads all up to it.
pub const VERSION: u32 = 1;

/// What a log begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the format.
    pub hermitcrab_log: u32,
    /// The core that ran.
    pub core: CoreId,
    /// Its seed, in hexadecimal digits.
    pub seed: String,
    /// Memory that it could have, in bytes.
    pub memory_bytes: u64,
}

/// Which core it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreId {
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the component, or `native` for the core as a library.
    pub hash: String,
}
