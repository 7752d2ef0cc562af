//! The log of an instance: all inputs and outputs of its core, written as the run
//! goes. From it a replay repeats the run without network, files or processes, in any
//! host. This module reads no file and knows no clock: it takes what reads and writes.
//!
//! The file is gzip over lines of JSON (`zcat FILE | jq`). The first line is the
//! [`Header`]; then each call and each step is a line; a log that was closed ends
//! with `{"end": …}`. Every line ends with `sum`, a CRC-32 of all text before it, so
//! that a reader finds the first line that changed. If the writer was killed, the log
//! ends early, and a reader uses the complete lines.
//!
//! | line | holds |
//! |---|---|
//! | `{"hermitcrab_log": 2, …}` | [`Header`] |
//! | `{"call": …}` | an [`InstanceCall`](crate::session::InstanceCall) that may have changed something |
//! | `{"step": {"now_ms", "outcomes"}, "output": {"events", "effects", "reports", "log", "busy"}}` | a step |
//! | `{"content", "text"}` | a text of more than 16 KiB; lines behind it name it where it stood, as `content:` and the SHA-256 of its JSON. Since version 2 |
//! | `{"end": {"steps"}}` | the last line |
//!
//! A request to a model repeats nearly all of the one before it. Its body stands
//! beside the effect, as what is new: `{"keep", "then", "keep_end"}` are the bytes
//! that the last body began with, the text between, and the bytes that it ended with.

mod compare;
mod content;
mod encode;
mod read;
mod replay;
mod write;

pub use compare::{Comparison, Difference};
pub use read::{Entry, LogError, LogReader};
pub use replay::{Delivered, OpenEffect, Progress, Replay, ReplayError, Replayable, Stop};
pub use write::LogWriter;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::effect::EffectKind;
use crate::session::{JobReportKind, LogLine, Step};

/// Version of the format that this library writes; it reads all up to it.
pub const VERSION: u32 = 2;

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

impl Header {
    /// Of a core with this seed and so much memory.
    pub fn new(core: CoreId, seed: &[u8; 32], memory_bytes: u64) -> Self {
        Self {
            hermitcrab_log: VERSION,
            core,
            seed: seed.iter().map(|byte| format!("{byte:02x}")).collect(),
            memory_bytes,
        }
    }
}

/// Which core it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreId {
    /// Version of the package.
    pub version: String,
    /// SHA-256 of the component, `native` for the core as a library, or `web` for that of
    /// the package.
    pub hash: String,
}

/// Whether an event, as JSON, tells an answer of a model's: its `USAGE`, unless that is of
/// a summary.
fn tells_answer(json: &[u8]) -> bool {
    let start = br#"{"kind":"USAGE","data":{"#;
    json.strip_prefix(start)
        .is_some_and(|data| !data.starts_with(br#""purpose""#))
}

/// What a step output, whichever way the core runs.
#[derive(Clone, Debug)]
pub struct Output<'a> {
    /// Sessions and their events as JSON, in order.
    pub events: Vec<(&'a str, &'a Bytes)>,
    /// Effects with their ids and owners, in order.
    pub effects: Vec<(u64, &'a str, &'a EffectKind)>,
    /// News of jobs with their ids, in order.
    pub reports: Vec<(&'a str, &'a JobReportKind)>,
    /// Lines of logs of environments, in order.
    pub log: &'a [LogLine],
    /// Whether work remained.
    pub busy: bool,
}

impl<'a> From<&'a Step> for Output<'a> {
    fn from(step: &'a Step) -> Self {
        let events = step.events.iter();
        let effects = step.effects.iter();
        let reports = step.reports.iter();
        Self {
            events: events
                .map(|event| (&*event.session_id, &event.json))
                .collect(),
            effects: effects
                .map(|effect| (effect.id, &*effect.owner, &effect.kind))
                .collect(),
            reports: reports.map(|report| (&*report.job, &report.kind)).collect(),
            log: &step.log,
            busy: step.busy,
        }
    }
}
