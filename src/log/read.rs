//! Reading a log: line by line, each proven by its sum.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

use flate2::Crc;
use flate2::bufread::GzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::content::Known;
use super::{Header, VERSION};
use crate::effect::Outcome;
use crate::session::InstanceCall;

/// What every log begins with: gzip, without a name or a time.
const GZIP: [u8; 8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0];
/// Between the text of a line and its sum.
const SUM: &str = ",\"sum\":\"";
/// What a line with a content begins with.
const CONTENT: &str = "{\"content\":";
/// Bytes of a line at most.
const LINE_BYTES: u64 = 1 << 30;

/// One line behind the header.
#[derive(Debug)]
pub enum Entry {
    /// A call that was made.
    Call(InstanceCall),
    /// A step.
    Step {
        /// Its time, in ms since 1970-01-01 UTC.
        now_ms: u64,
        /// What was delivered.
        outcomes: Vec<Outcome>,
        /// What it output, as JSON.
        output: String,
    },
}

/// Why a log cannot be used.
#[derive(Debug)]
pub enum LogError {
    /// It cannot be read.
    Io(io::Error),
    /// It is no log.
    NotALog,
    /// It is of a later version than [`VERSION`].
    Newer(u32),
    /// Something in it changed since it was written, at or before this line.
    Damaged(u64),
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "the log cannot be read: {error}"),
            Self::NotALog => {
                f.write_str("this is not a log of a run; `hermitcrab run --record FILE` writes one")
            }
            Self::Newer(version) => write!(
                f,
                "this is a log of version {version}, and this program reads up to {VERSION}; \
                 use a newer hermitcrab"
            ),
            Self::Damaged(line) => write!(
                f,
                "the log is damaged: line {line} is not what was written; fetch the file again \
                 from where it came"
            ),
        }
    }
}

impl std::error::Error for LogError {}

#[derive(Deserialize)]
struct Line {
    call: Option<InstanceCall>,
    step: Option<Step>,
    output: Option<Box<RawValue>>,
    end: Option<serde::de::IgnoredAny>,
    content: Option<String>,
    text: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Step {
    now_ms: u64,
    outcomes: Vec<Outcome>,
}

/// Reads a log.
pub struct LogReader<R> {
    lines: Lines<R>,
    contents: Known,
    header: Header,
    /// Whether it ended, and was closed by who wrote it.
    closed: Option<bool>,
}

/// The lines that are whole.
struct Lines<R> {
    text: BufReader<GzDecoder<BufReader<R>>>,
    sum: Crc,
    /// Number of the line that was read last, from 1.
    number: u64,
}

impl<R> fmt::Debug for LogReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogReader")
            .field("line", &self.lines.number)
            .finish_non_exhaustive()
    }
}

impl<R: Read> LogReader<R> {
    /// Reads the header of a log.
    ///
    /// # Errors
    /// It cannot be read, is no log, or is of a later version.
    pub fn open(log: R) -> Result<Self, LogError> {
        #[derive(Deserialize)]
        struct Version {
            hermitcrab_log: u32,
        }
        let mut lines = Lines::open(log)?;
        let line = lines.next()?.ok_or(LogError::NotALog)?;
        let Version {
            hermitcrab_log: version,
        } = serde_json::from_str(&line).map_err(|_| LogError::NotALog)?;
        if version > VERSION {
            return Err(LogError::Newer(version));
        }
        Ok(Self {
            lines,
            contents: Known::default(),
            header: serde_json::from_str(&line).map_err(|_| LogError::NotALog)?,
            closed: None,
        })
    }

    /// What it begins with.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The seed of its core.
    ///
    /// # Errors
    /// It names none.
    pub fn seed(&self) -> Result<[u8; 32], LogError> {
        let digits = &self.header.seed;
        let byte = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(LogError::NotALog)
    }

    /// After the end: whether its writer closed it. One that was killed has not, and
    /// what it wrote last may be missing.
    pub fn is_closed(&self) -> bool {
        self.closed == Some(true)
    }

    /// The next line; `None` at the end.
    ///
    /// # Errors
    /// It is damaged, or cannot be read.
    pub fn read(&mut self) -> Result<Option<Entry>, LogError> {
        if self.closed.is_some() {
            return Ok(None);
        }
        loop {
            let Some(text) = self.lines.next()? else {
                self.closed = Some(false);
                return Ok(None);
            };
            let is_plain = self.header.hermitcrab_log < 2 || text.starts_with(CONTENT);
            let text = match is_plain {
                true => text,
                false => {
                    let whole = self.contents.put_back(text);
                    whole.ok_or_else(|| self.lines.damaged())?
                }
            };
            let line: Line = serde_json::from_str(&text).map_err(|_| self.lines.damaged())?;
            return match line {
                Line {
                    call: Some(call), ..
                } => Ok(Some(Entry::Call(call))),
                Line {
                    step: Some(step),
                    output: Some(output),
                    ..
                } => Ok(Some(Entry::Step {
                    now_ms: step.now_ms,
                    outcomes: step.outcomes,
                    output: output.get().to_owned(),
                })),
                Line {
                    content: Some(name),
                    text: Some(text),
                    ..
                } if self.contents.add(&name, text.get().to_owned()) => continue,
                Line { end: Some(_), .. } => {
                    self.closed = Some(self.lines.are_over()?);
                    Ok(None)
                }
                _ => Err(self.lines.damaged()),
            };
        }
    }
}

impl<R: Read> Lines<R> {
    fn open(log: R) -> Result<Self, LogError> {
        let mut log = BufReader::new(log);
        if !log.fill_buf().map_err(LogError::Io)?.starts_with(&GZIP) {
            return Err(LogError::NotALog);
        }
        Ok(Self {
            text: BufReader::new(GzDecoder::new(log)),
            sum: Crc::new(),
            number: 0,
        })
    }

    /// The next line that is whole, proven and without its sum.
    fn next(&mut self) -> Result<Option<String>, LogError> {
        let mut line = Vec::new();
        let mut text = self.text.by_ref().take(LINE_BYTES);
        match text.read_until(b'\n', &mut line) {
            Ok(_) => {}
            // The writer was killed in the middle of it.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(self.failed(error)),
        }
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let line = String::from_utf8(line).map_err(|_| self.damaged())?;
        let proven = line.strip_suffix("\"}\n").and_then(|line| {
            let (text, sum) = line.split_at_checked(line.len().checked_sub(8)?)?;
            let text = text.strip_suffix(SUM)?;
            self.sum.update(text.as_bytes());
            (format!("{:08x}", self.sum.sum()) == sum).then_some(text)
        });
        match proven {
            Some(text) => Ok(Some(format!("{text}}}"))),
            None => Err(self.damaged()),
        }
    }

    /// After the last line: whether the file ends as it was closed. Its end proves
    /// what is compressed, too.
    fn are_over(&mut self) -> Result<bool, LogError> {
        let mut rest = Vec::new();
        match self.text.by_ref().take(1).read_to_end(&mut rest) {
            Ok(0) => Ok(true),
            Ok(_) => Err(self.damaged()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.failed(error)),
        }
    }

    fn damaged(&self) -> LogError {
        LogError::Damaged(self.number.max(1))
    }

    /// Compressed bytes that are none.
    fn failed(&self, error: io::Error) -> LogError {
        match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                LogError::Damaged(self.number + 1)
            }
            _ => LogError::Io(error),
        }
    }
}
