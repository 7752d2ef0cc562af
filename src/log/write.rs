//! `LogWriter`: writes the log of a core that runs.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};

use super::content::{self, LARGE, Written};
use super::encode::{self, Encoder};
use super::{Header, Output};
use crate::effect::Outcome;
use crate::session::InstanceCall;

/// How old the last write may be before a step writes what there is, in ms of the run.
const FLUSH_AFTER_MS: u64 = 250;

/// Why a line must not be written, if so.
type Refuse = Box<dyn Fn(&[u8]) -> Option<String> + Send>;

/// Writes a log. What cannot be written ends the log, never the run.
pub struct LogWriter<W: Write> {
    to: Option<GzEncoder<W>>,
    encoder: Encoder,
    contents: Written,
    sum: Crc,
    steps: u64,
    flushed_ms: u64,
    failed: Option<io::Error>,
    /// Says why a line must not be written, if so.
    refuse: Option<Refuse>,
    /// Kept for its memory.
    line: Vec<u8>,
}

impl<W: Write> LogWriter<W> {
    /// Begins a log.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn begin(to: W, header: &Header) -> io::Result<Self> {
        let mut writer = Self {
            to: Some(GzEncoder::new(to, Compression::new(1))),
            encoder: Encoder::default(),
            contents: Written::default(),
            sum: Crc::new(),
            steps: 0,
            flushed_ms: 0,
            failed: None,
            refuse: None,
            line: Vec::new(),
        };
        serde_json::to_writer(&mut writer.line, header)?;
        writer.line.pop();
        writer.end_line();
        writer.flush();
        match writer.failed.take() {
            Some(error) => Err(error),
            None => Ok(writer),
        }
    }

    /// Shows each line to `refuse` from now on: one that it gives a reason against is
    /// not written, and ends the log.
    #[must_use]
    pub fn refusing(mut self, refuse: impl Fn(&[u8]) -> Option<String> + Send + 'static) -> Self {
        self.refuse = Some(Box::new(refuse));
        self
    }

    /// Notes a call that was made.
    pub fn call(&mut self, call: &InstanceCall) {
        encode::call(&mut self.line, call);
        self.end_line();
    }

    /// Notes a step and its output. What its effects do outside of the core is done when
    /// the line has been handed on ([`EffectKind::acts`](crate::effect::EffectKind::acts)).
    pub fn step(&mut self, now_ms: u64, outcomes: &[Outcome], output: &Output<'_>) {
        if self.to.is_none() {
            return;
        }
        self.encoder.step(&mut self.line, now_ms, outcomes, output);
        self.end_line();
        self.steps += 1;
        let acts = output.effects.iter().any(|(_, _, kind)| kind.acts());
        if acts || now_ms.saturating_sub(self.flushed_ms) > FLUSH_AFTER_MS {
            self.flush();
            self.flushed_ms = now_ms;
        }
    }

    /// Why the log is not whole, if it is not.
    pub fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// Ends the log. One that is dropped ends, too, but cannot say whether it is whole.
    ///
    /// # Errors
    /// It is not whole.
    pub fn finish(mut self) -> io::Result<()> {
        self.end();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Writes the line, which lacks its `sum` and its end, and before it the large
    /// contents that are new in it.
    fn end_line(&mut self) {
        if self.line.len() > LARGE || content::is_named_in(&self.line) {
            let mut line = std::mem::take(&mut self.line);
            let mut contents = std::mem::take(&mut self.contents);
            contents.take_out(&mut line, |name, text| {
                // Into memory: it is always written.
                let _ = write!(self.line, r#"{{"content":"{name}","text":"#);
                self.line.extend_from_slice(text);
                self.put_line();
            });
            self.contents = contents;
            self.line = line;
        }
        self.put_line();
    }

    fn put_line(&mut self) {
        if let Some(refuse) = &self.refuse
            && self.to.is_some()
            && let Some(why) = refuse(&self.line)
        {
            // What was written before is a log whose end is missing.
            self.flush();
            self.failed = Some(io::Error::other(why));
            self.to = None;
        }
        self.sum.update(&self.line);
        let sum = self.sum.sum();
        let mut line = std::mem::take(&mut self.line);
        self.write(|to| {
            writeln!(line, r#","sum":"{sum:08x}"}}"#)?;
            to.write_all(&line)
        });
        line.clear();
        self.line = line;
    }

    /// Hands on what was noted so far.
    pub fn flush(&mut self) {
        self.write(io::Write::flush);
    }

    fn write(&mut self, write: impl FnOnce(&mut GzEncoder<W>) -> io::Result<()>) {
        let Some(to) = &mut self.to else { return };
        if let Err(error) = write(to) {
            self.failed = Some(error);
            self.to = None;
        }
    }

    fn end(&mut self) {
        if self.to.is_none() {
            return;
        }
        self.line.clear();
        // Into memory: it is always written.
        let _ = write!(self.line, r#"{{"end":{{"steps":{}}}"#, self.steps);
        self.end_line();
        if let Some(to) = self.to.take()
            && let Err(error) = to.finish().and_then(|mut to| to.flush())
        {
            self.failed = Some(error);
        }
    }
}

impl<W: Write> Drop for LogWriter<W> {
    fn drop(&mut self) {
        // A log without its end is read as one whose writer was killed.
        self.end();
    }
}
