//! `Recorder`: writes the log of a core that runs.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use hermitcrab::effect::{EffectKind, Outcome};
use hermitcrab::session::InstanceCall;

use super::Header;
use super::encode::{self, Encoder};
use crate::core::CoreStep;

/// How old the last write may be before a step writes what there is.
const FLUSH_AFTER: Duration = Duration::from_millis(250);

/// Writes a log. What cannot be written ends the log, never the run.
pub(crate) struct Recorder {
    file: Option<GzEncoder<File>>,
    encoder: Encoder,
    sum: Crc,
    steps: u64,
    flushed: Instant,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Begins a log in a new file.
    ///
    /// # Errors
    /// The file exists, or cannot be written.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let file = File::options().write(true).create_new(true).open(path)?;
        let mut recorder = Self {
            file: Some(GzEncoder::new(file, Compression::new(1))),
            encoder: Encoder::default(),
            sum: Crc::new(),
            steps: 0,
            flushed: Instant::now(),
            failed: None,
        };
        let mut line = serde_json::to_string(header).map_err(io::Error::other)?;
        line.pop();
        recorder.line(&line);
        recorder.flush();
        match recorder.failed.take() {
            Some(error) => Err(error),
            None => Ok(recorder),
        }
    }

    /// Notes a call that was made.
    pub(crate) fn call(&mut self, call: &InstanceCall) {
        self.line(&encode::call(call));
    }

    /// Notes a step and what came of it.
    pub(crate) fn step(&mut self, now_ms: u64, outcomes: &[Outcome], step: &CoreStep) {
        if self.file.is_none() {
            return;
        }
        let output = self.encoder.output(step);
        self.line(&encode::step(now_ms, outcomes, &output));
        self.steps += 1;
        let asks = |kind: &EffectKind| matches!(kind, EffectKind::Http(_));
        if step.effects.iter().any(|effect| asks(&effect.kind))
            || self.flushed.elapsed() > FLUSH_AFTER
        {
            self.flush();
        }
    }

    /// Why the log is not whole, if it is not.
    pub(crate) fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Writes a line that lacks its `sum` and its end.
    fn line(&mut self, line: &str) {
        self.sum.update(line.as_bytes());
        let end = format!(",\"sum\":\"{:08x}\"}}\n", self.sum.sum());
        self.write(|file| {
            file.write_all(line.as_bytes())?;
            file.write_all(end.as_bytes())
        });
    }

    fn flush(&mut self) {
        self.write(io::Write::flush);
        self.flushed = Instant::now();
    }

    fn write(&mut self, write: impl FnOnce(&mut GzEncoder<File>) -> io::Result<()>) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = write(file) {
            self.failed = Some(error);
            self.file = None;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.line(&format!(r#"{{"end":{{"steps":{}}}"#, self.steps));
        if let Some(file) = self.file.take() {
            // A log without its end is read as one whose writer was killed.
            let _ = file.finish();
        }
    }
}
