//! Server-sent events from bytes cut anywhere.
//!
//! Grammar: the event stream format of the HTML standard (lines end in LF, CR
//! or CRLF; one leading BOM; one space after the colon), plus what LLM-client
//! brief §6 adds: a last event without a blank line counts, and JSON that
//! stands in the stream without `data:` is collected until its brackets close.

use std::borrow::Cow;

use memchr::memchr2;

/// Largest event or stray JSON value, in bytes. Images and encrypted reasoning
/// take several MB; more than this is not an answer.
const MAX_ITEM_BYTES: usize = 64 << 20;

/// One thing found in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SseItem<'a> {
    /// A dispatched event.
    Event {
        /// Value of `event:`, empty if absent. Trust the data's own type more.
        event: &'a str,
        /// Its `data:` lines, joined by LF.
        data: &'a str,
    },
    /// A complete JSON value outside of any field.
    Json(&'a str),
    /// An item grew past 64 MiB and was dropped.
    TooLong,
}

/// Decoder state between two pieces.
#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    after_cr: bool,
    past_bom: bool,
    event: String,
    data: String,
    has_data: bool,
    stray: Stray,
    first_stray_line: String,
}

impl SseDecoder {
    /// A decoder at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and calls `found` for every item they complete.
    pub fn feed(&mut self, bytes: &[u8], mut found: impl FnMut(SseItem<'_>)) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(end);
            if self.line.is_empty() {
                self.take_line(head, &mut found);
            } else {
                self.line.extend_from_slice(head);
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut found);
                self.line = line;
                self.line.clear();
            }
            rest = match tail {
                [b'\r', b'\n', tail @ ..] => tail,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, tail @ ..] => tail,
                [] => &[],
            };
        }
        if self.line.len() + rest.len() > MAX_ITEM_BYTES {
            self.line = Vec::new();
            found(SseItem::TooLong);
        } else {
            self.line.extend_from_slice(rest);
        }
    }

    /// The stream ended: a last line and a last event count as complete.
    pub fn finish(&mut self, mut found: impl FnMut(SseItem<'_>)) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, &mut found);
        }
        self.dispatch(&mut found);
    }

    /// The first line that is neither a field nor JSON, if any: what a page or
    /// a proxy sent instead of an event stream.
    pub fn first_stray_line(&self) -> &str {
        &self.first_stray_line
    }

    fn take_line(&mut self, line: &[u8], found: &mut impl FnMut(SseItem<'_>)) {
        let mut line = line;
        if !self.past_bom {
            self.past_bom = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch(found);
        }
        // What checks for UTF-8 alone is several times faster than what mends it.
        let text = match str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        let (field, value) = match text.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (&*text, ""),
        };
        match field {
            "data" => {
                self.stray = Stray::default();
                if self.data.len() + value.len() > MAX_ITEM_BYTES {
                    self.data = String::new();
                    self.has_data = false;
                    return found(SseItem::TooLong);
                }
                if self.has_data {
                    self.data.push('\n');
                }
                self.data.push_str(value);
                self.has_data = true;
            }
            "event" => {
                self.stray = Stray::default();
                value.clone_into(&mut self.event);
            }
            "" | "id" | "retry" => {}
            _ => self.take_stray(&text, found),
        }
    }

    fn take_stray(&mut self, line: &str, found: &mut impl FnMut(SseItem<'_>)) {
        match self.stray.take(line) {
            Scan::Open => {}
            Scan::Closed => {
                let stray = std::mem::take(&mut self.stray);
                found(SseItem::Json(stray.text.trim()));
            }
            Scan::TooLong => {
                self.stray = Stray::default();
                found(SseItem::TooLong);
            }
            Scan::NotJson => {
                if self.first_stray_line.is_empty() {
                    self.first_stray_line = line.trim().chars().take(200).collect();
                }
            }
        }
    }

    fn dispatch(&mut self, found: &mut impl FnMut(SseItem<'_>)) {
        if self.has_data {
            found(SseItem::Event {
                event: &self.event,
                data: &self.data,
            });
        }
        self.has_data = false;
        self.data.clear();
        self.event.clear();
    }
}

/// JSON outside of any field, collected line by line.
#[derive(Debug, Default)]
struct Stray {
    text: String,
    depth: usize,
    in_string: bool,
}

enum Scan {
    Open,
    Closed,
    TooLong,
    NotJson,
}

impl Stray {
    fn take(&mut self, line: &str) -> Scan {
        if self.text.is_empty() && !line.trim_start().starts_with(['{', '[']) {
            return Scan::NotJson;
        }
        if self.text.len() + line.len() > MAX_ITEM_BYTES {
            return Scan::TooLong;
        }
        let mut escaped = false;
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if self.in_string => escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.text.push_str(line);
        self.text.push('\n');
        if self.depth == 0 {
            Scan::Closed
        } else {
            Scan::Open
        }
    }
}
