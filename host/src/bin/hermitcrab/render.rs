//! Events for people: streamed text, one line per tool call, a spinner while
//! something runs. On a terminal with colours, in a pipe plain. What the model
//! and its tools do goes to stdout, notices of the program to stderr.
//!
//! Text of models, tools and servers loses its control characters: no escape
//! sequence of theirs reaches a terminal, not even through a pipe and a pager.
//!
//! The renderer is a function of the events and the ticks that it is given; it
//! reads no clock. Kinds and fields that it does not know it ignores.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::harmless::{calm, harmless};
use crate::preview;

/// How to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether lines can be rewritten: spinner, reasoning, totals.
    pub(crate) terminal: bool,
    /// Whether to colour.
    pub(crate) color: bool,
    /// Whether to colour notices.
    pub(crate) notice_color: bool,
    /// Whether a spinner turns.
    pub(crate) spins: bool,
    /// Whether commands that went well show the end of their output, too.
    pub(crate) outputs: bool,
    /// Columns of the terminal.
    pub(crate) width: usize,
    /// Whether notices and errors are broken at words to fit there.
    pub(crate) wraps: bool,
    /// Whether to show a header, the output of failed commands, the diffs of
    /// edits and totals.
    pub(crate) details: bool,
}

impl Style {
    /// No terminal, no colours.
    pub(crate) const PLAIN: Self = Self {
        terminal: false,
        color: false,
        notice_color: false,
        spins: false,
        outputs: false,
        width: 80,
        wraps: false,
        details: false,
    };

    /// As stdout is, and for notices as stderr; colours unless `NO_COLOR` is set
    /// or the terminal is dumb.
    pub(crate) fn of_stdout(quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let color = !dumb && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let notice_color = color && io::stderr().is_terminal();
        if !io::stdout().is_terminal() || dumb {
            return Self {
                notice_color,
                details: !quiet,
                ..Self::PLAIN
            };
        }
        Self {
            terminal: true,
            color,
            notice_color,
            spins: true,
            outputs: false,
            width: terminal_width().unwrap_or(80).max(20),
            wraps: false,
            details: !quiet,
        }
    }

    /// `text` in a colour, where there are colours.
    pub(crate) fn paint(self, color: Color, text: &str) -> String {
        paint(self.color, color, text)
    }
}

fn paint(colors: bool, color: Color, text: &str) -> String {
    match colors && !text.is_empty() {
        true => format!("\x1b[{}m{text}\x1b[0m", color as u8),
        false => text.to_owned(),
    }
}

/// Colours, with their codes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Color {
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Cyan = 36,
}

/// How long a spinner frame stands.
pub(crate) const TICK_MS: u64 = 100;

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// Writes events to `out`, notices to stderr.
pub(crate) struct Renderer<W: Write> {
    out: W,
    notices: Box<dyn Write>,
    style: Style,
    /// The machine or container that tools act in, if it is not this machine.
    elsewhere: Option<String>,
    /// What the last line holds.
    last: Last,
    /// Whether the cursor stands behind text on its line.
    open: bool,
    /// Whether the last line is the spinner's.
    spinning: bool,
    ticks: u64,
    /// Whether a model call is under way and has said nothing yet.
    thinking: bool,
    calls: Vec<Call>,
    input_tokens: u64,
    output_tokens: u64,
    /// In US dollars, as far as prices are known.
    cost: Option<f64>,
}

/// A call that runs.
struct Call {
    id: String,
    label: String,
    /// The lines of what it would change.
    edit: Vec<String>,
}

/// Lines of a failed command's output that are shown.
const OUTPUT_LINES: usize = 10;

/// Lines of the reason why a call has failed, where they are wrapped.
const ERROR_LINES: usize = 3;

/// Lines of the output of one that went well.
const OUTPUT_LINES_OF_SUCCESS: usize = 3;

/// Lines of an edit that are shown, at its beginning and end.
const EDIT_LINES: (usize, usize) = (16, 8);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Text,
    Reasoning,
    Line,
}

impl<W: Write> Renderer<W> {
    pub(crate) fn new(out: W, style: Style) -> Self {
        Self::with_notices(out, Box::new(io::stderr()), style)
    }

    /// With notices to `notices` instead of stderr.
    pub(crate) fn with_notices(out: W, notices: Box<dyn Write>, style: Style) -> Self {
        Self {
            out,
            notices,
            style,
            elsewhere: None,
            last: Last::Nothing,
            open: false,
            spinning: false,
            ticks: 0,
            thinking: false,
            calls: Vec::new(),
            input_tokens: 0,
            output_tokens: 0,
            cost: None,
        }
    }

    /// Whether ticks show anything.
    pub(crate) fn animates(&self) -> bool {
        self.style.spins && (self.thinking || !self.calls.is_empty())
    }

    /// Tools act in this machine or container.
    pub(crate) fn set_elsewhere(&mut self, place: Option<String>) {
        self.elsewhere = place;
    }

    /// The terminal has so many columns now.
    pub(crate) fn set_width(&mut self, columns: usize) {
        self.style.width = columns.max(20);
    }

    /// Shows one event, `{kind, data, …}`.
    pub(crate) fn event(&mut self, event: &Value) -> io::Result<()> {
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default();
        // What a subagent says is its parent's business; what it does is shown.
        let own = event["agent_id"].is_null();
        match event["kind"].as_str().unwrap_or_default() {
            "SESSION_START" if own && self.style.details => {
                let directory = match &self.elsewhere {
                    Some(place) => format!("{place}: {}", text("working_directory")),
                    None => text("working_directory").to_owned(),
                };
                let header = [text("provider"), text("model"), &directory];
                self.aside(&format!("hermitcrab: {}", header.join(" · ")))?;
            }
            "USER_INPUT" if own => self.wait_for_model(),
            "ASSISTANT_TEXT_DELTA" if own => self.text(Last::Text, text("text"))?,
            "REASONING_DELTA" if own && self.style.terminal => {
                self.text(Last::Reasoning, text("text"))?;
            }
            "ASSISTANT_TEXT_END" if own => self.thinking = false,
            "TOOL_CALL_START" => {
                self.thinking = false;
                let label = label(text("tool_name"), &data["arguments"]);
                let edit = match self.style.details {
                    true => preview::edit(&data["arguments"], |_| None),
                    false => None,
                };
                self.calls.push(Call {
                    id: text("call_id").to_owned(),
                    label,
                    edit: edit.unwrap_or_default(),
                });
                self.ticks = 0;
                self.spin()?;
            }
            "TOOL_CALL_END" => self.tool_end(data)?,
            "STEERING_INJECTED" => match text("source") {
                // `LOOP_DETECTION` says it to people.
                "repetition" => {}
                "call_cut_off" => self.note(text("content"))?,
                _ => self.notice(Color::Cyan, "> ", text("content"))?,
            },
            "COMPACTION_START" if own => self.wait_for_model(),
            "COMPACTION_END" => match data["error"].as_str() {
                Some(error) => {
                    self.note(&format!("the conversation was not compacted: {error}"))?
                }
                None => {
                    let tokens = |name: &str| data[name].as_u64().unwrap_or(0);
                    let (before, after) = (tokens("before_tokens"), tokens("after_tokens"));
                    self.note(&format!(
                        "the older part of the conversation is a summary now: {before} tokens \
                         became {after}"
                    ))?;
                }
            },
            "LOOP_DETECTION" => self.note(text("message"))?,
            // The end of the run says how the last answer ended.
            "WARNING" if text("code").starts_with("answer_") => {}
            "WARNING" => self.note(text("message"))?,
            "RETRY" => {
                let void = match data["discard_partial"].as_bool() {
                    Some(true) => "; the answer above is void",
                    _ => "",
                };
                let wait = duration(data["delay_ms"].as_u64().unwrap_or(0));
                let message = format!("trying again in {wait}: {}{void}", text("message"));
                self.note(&message)?;
                self.wait_for_model();
            }
            "USAGE" => {
                self.input_tokens += data["input_tokens"].as_u64().unwrap_or(0);
                self.input_tokens += data["cache_read_tokens"].as_u64().unwrap_or(0);
                self.input_tokens += data["cache_write_tokens"].as_u64().unwrap_or(0);
                self.output_tokens += data["output_tokens"].as_u64().unwrap_or(0);
                if let Some(cost) = data["cost_usd"].as_f64() {
                    *self.cost.get_or_insert(0.0) += cost;
                }
            }
            "PROCESSING_END" if own => self.processing_end(data)?,
            "SESSION_END" if own => {
                self.thinking = false;
                self.calls.clear();
            }
            _ => {}
        }
        Ok(())
    }

    /// Moves the spinner on; to be called every [`TICK_MS`].
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        self.ticks += 1;
        self.spin()
    }

    /// A notice of the program's own.
    pub(crate) fn note(&mut self, message: &str) -> io::Result<()> {
        self.notice(Color::Yellow, "! ", message)
    }

    /// A unified diff.
    pub(crate) fn diff(&mut self, diff: &str) -> io::Result<()> {
        self.end_line()?;
        if self.last != Last::Nothing {
            writeln!(self.out)?;
        }
        for ended in diff.split_inclusive('\n') {
            let line = ended.strip_suffix('\n').unwrap_or(ended);
            let color = match line.as_bytes().first() {
                _ if line.starts_with("+++") || line.starts_with("---") => None,
                Some(b'+') => Some(Color::Green),
                Some(b'-') => Some(Color::Red),
                Some(b'@') => Some(Color::Cyan),
                _ => None,
            };
            match color {
                // For a patch tool, every byte as it is.
                _ if !self.style.terminal => self.out.write_all(ended.as_bytes())?,
                Some(color) => writeln!(self.out, "{}", self.style.paint(color, &harmless(line)))?,
                None => writeln!(self.out, "{}", harmless(line))?,
            }
        }
        self.last = Last::Line;
        Ok(())
    }

    /// Makes room for somebody else's question and its answer.
    pub(crate) fn make_way(&mut self) -> io::Result<()> {
        self.start_line()?;
        // What is asked there ends wherever the person leaves it.
        self.open = true;
        self.out.flush()
    }

    /// Hands everything to the terminal or the pipe.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Leaves the cursor on a fresh line.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.thinking = false;
        self.calls.clear();
        self.end_line()?;
        self.out.flush()
    }

    fn wait_for_model(&mut self) {
        self.thinking = true;
        self.ticks = 0;
    }

    fn text(&mut self, kind: Last, text: &str) -> io::Result<()> {
        let text = harmless(text);
        if text.is_empty() {
            return Ok(());
        }
        self.thinking = false;
        self.clear_spinner()?;
        if self.last != kind {
            self.end_line()?;
            if self.last != Last::Nothing {
                writeln!(self.out)?;
            }
        }
        self.last = kind;
        self.open = !text.ends_with('\n');
        let text = match kind {
            Last::Reasoning => self.style.paint(Color::Dim, &text),
            _ => text,
        };
        self.out.write_all(text.as_bytes())
    }

    fn tool_end(&mut self, data: &Value) -> io::Result<()> {
        let text = |name: &str| data[name].as_str().unwrap_or_default();
        let id = text("call_id");
        let (label, edit) = match self.calls.iter().position(|call| call.id == id) {
            Some(index) => {
                let call = self.calls.remove(index);
                (call.label, call.edit)
            }
            None => (label(text("tool_name"), &Value::Null), Vec::new()),
        };
        if self.calls.is_empty() {
            self.wait_for_model();
        }
        let mut notes = Vec::new();
        let failed = data["is_error"].as_bool().unwrap_or(false);
        let exit_code = data["exit_code"].as_i64();
        if data["timed_out"].as_bool().unwrap_or(false) {
            notes.push("timed out".to_owned());
        } else if let Some(code) = exit_code.filter(|code| *code != 0) {
            notes.push(format!("exit {code}"));
        } else if failed {
            notes.push("failed".to_owned());
        }
        notes.push(duration(data["duration_ms"].as_u64().unwrap_or(0)));
        let notes = format!(" ({})", notes.join(", "));
        let error = match failed && exit_code.is_none() {
            true => {
                let error = data["error"].as_str().unwrap_or(text("output"));
                format!(": {}", one_line(error))
            }
            false => String::new(),
        };
        let is_wrapped = self.style.wraps && !error.is_empty();
        self.start_line()?;
        let room = self.style.width.saturating_sub(2 + columns(&notes)).max(20);
        let label = cut(&label, room);
        if !self.style.terminal {
            writeln!(self.out, "* {label}{notes}{error}")?;
            return self.details(failed, exit_code, text("output"), &edit);
        }
        let color = match (failed, exit_code) {
            (true, _) => Color::Red,
            (false, Some(code)) if code != 0 => Color::Yellow,
            _ => Color::Green,
        };
        let (dot, notes) = (
            self.style.paint(color, "●"),
            self.style.paint(Color::Dim, &notes),
        );
        if is_wrapped {
            writeln!(self.out, "{dot} {label}{notes}")?;
            self.error(data["error"].as_str().unwrap_or(text("output")))?;
        } else {
            let error = cut(&error, room.saturating_sub(columns(&label)).max(20));
            writeln!(self.out, "{dot} {label}{notes}{error}")?;
        }
        self.details(failed, exit_code, text("output"), &edit)
    }

    /// Why a call has failed, below its line.
    fn error(&mut self, error: &str) -> io::Result<()> {
        let error = calm(&harmless(error)).replace('\t', " ");
        let mut lines = wrapped(&error, self.style.width.saturating_sub(4).max(20));
        if lines.len() > ERROR_LINES {
            lines.truncate(ERROR_LINES);
            if let Some(last) = lines.last_mut() {
                last.push_str(" …");
            }
        }
        for line in lines {
            writeln!(self.out, "    {}", self.style.paint(Color::Red, &line))?;
        }
        Ok(())
    }

    /// What stands below the line of a call: the end of what a failed command
    /// printed, or what an edit has changed.
    fn details(
        &mut self,
        failed: bool,
        exit_code: Option<i64>,
        output: &str,
        edit: &[String],
    ) -> io::Result<()> {
        if !self.style.details {
            return Ok(());
        }
        let is_note =
            |line: &&str| line.starts_with("[exit code: ") || line.starts_with("[duration: ");
        let mut lines = Vec::new();
        if exit_code.is_some() && (failed || self.style.outputs) {
            let said: Vec<&str> = output.lines().filter(|line| !is_note(line)).collect();
            let shown = if failed {
                OUTPUT_LINES
            } else {
                OUTPUT_LINES_OF_SUCCESS
            };
            let skipped = said.len().saturating_sub(shown);
            if skipped > 0 {
                lines.push(format!("… {skipped} lines before"));
            }
            lines.extend(said[skipped..].iter().map(|line| harmless(line)));
        } else if !failed {
            // The label has the path.
            let rest = match edit {
                [head, rest @ ..] if head.ends_with(':') => rest,
                all => all,
            };
            lines = preview::ends(rest, EDIT_LINES.0, EDIT_LINES.1).0;
        }
        for line in lines {
            let color = match line.as_bytes().first() {
                Some(b'+') if !failed && exit_code.is_none() => Color::Green,
                Some(b'-') if !failed && exit_code.is_none() => Color::Red,
                _ => Color::Dim,
            };
            let line = line.replace('\t', "    ");
            let line = match self.style.terminal {
                true => cut(&line, self.style.width.saturating_sub(4).max(20)),
                false => line,
            };
            writeln!(self.out, "    {}", self.style.paint(color, &line))?;
        }
        Ok(())
    }

    fn processing_end(&mut self, data: &Value) -> io::Result<()> {
        self.thinking = false;
        self.calls.clear();
        self.end_line()?;
        if self.style.details {
            let rounds = data["rounds"].as_u64().unwrap_or(0);
            let cost = self
                .cost
                .map_or_else(String::new, |cost| format!(" · ${cost:.4}"));
            let totals = format!(
                "{rounds} tool round{} · {} tokens in, {} out{cost}",
                if rounds == 1 { "" } else { "s" },
                self.input_tokens,
                self.output_tokens
            );
            self.aside(&totals)?;
        }
        Ok(())
    }

    /// A line about the run on stderr.
    fn aside(&mut self, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.out.flush()?;
        let line = paint(self.style.notice_color, Color::Dim, &one_line(text));
        // Where nobody takes notices, the run goes on.
        let _ = writeln!(self.notices, "{line}");
        if self.style.terminal {
            self.last = Last::Line;
        }
        Ok(())
    }

    /// A line on stderr. On a terminal, which shows both, it stands on a line of
    /// its own; in a pipe it leaves no more than the end of a broken-off line.
    fn notice(&mut self, color: Color, mark: &str, text: &str) -> io::Result<()> {
        match self.style.terminal {
            true => self.start_line()?,
            false => self.end_line()?,
        }
        self.out.flush()?;
        let text = one_line(text);
        let lines = match self.style.wraps {
            true => wrapped(&text, self.style.width.saturating_sub(2)),
            false => vec![text],
        };
        for (number, line) in lines.iter().enumerate() {
            let mark = if number == 0 { mark } else { "  " };
            let line = paint(self.style.notice_color, color, &format!("{mark}{line}"));
            // Where nobody takes notices, the run goes on.
            let _ = writeln!(self.notices, "{line}");
        }
        Ok(())
    }

    /// A fresh line that is not text, apart from text before it.
    fn start_line(&mut self) -> io::Result<()> {
        self.end_line()?;
        if matches!(self.last, Last::Text | Last::Reasoning) {
            writeln!(self.out)?;
        }
        self.last = Last::Line;
        Ok(())
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.clear_spinner()?;
        if std::mem::take(&mut self.open) {
            writeln!(self.out)?;
        }
        Ok(())
    }

    fn clear_spinner(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.spinning) {
            write!(self.out, "\r\x1b[K")?;
        }
        Ok(())
    }

    fn spin(&mut self) -> io::Result<()> {
        if !self.animates() {
            return Ok(());
        }
        let what = match self.calls.as_slice() {
            [] => "thinking".to_owned(),
            [call] => call.label.clone(),
            [.., call] => format!("{} tools, {}", self.calls.len(), call.label),
        };
        if !self.spinning {
            self.end_line()?;
        }
        let frame = FRAMES[usize::try_from(self.ticks).unwrap_or(0) % FRAMES.len()];
        let seconds = match self.ticks * TICK_MS / 1000 {
            0 => String::new(),
            seconds => format!(" {seconds} s"),
        };
        // One column stays free, so that no terminal wraps the line.
        let room = self.style.width.saturating_sub(3 + columns(&seconds));
        let what = cut(&what, room);
        let (frame, seconds) = (
            self.style.paint(Color::Cyan, frame),
            self.style.paint(Color::Dim, &seconds),
        );
        write!(self.out, "\r\x1b[K{frame} {what}{seconds}")?;
        self.spinning = true;
        Ok(())
    }
}

/// The tool and the argument that says most.
pub(crate) fn label(tool: &str, arguments: &Value) -> String {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let place = text("path").filter(|path| !path.is_empty());
    let telling = match (text("pattern"), place) {
        // What is searched for, and where.
        (Some(pattern), Some(place)) => Some(format!("{pattern} in {place}")),
        _ => ["command", "file_path", "pattern", "path", "query", "task"]
            .into_iter()
            .find_map(text)
            .map(str::to_owned),
    };
    let argument = match (telling, arguments) {
        (Some(text), _) => one_line(&text),
        (None, Value::Null) => String::new(),
        (None, Value::Object(map)) if map.is_empty() => String::new(),
        (None, other) => one_line(&other.to_string()),
    };
    let tool = match arguments["run_in_background"] == true {
        true => format!("{} in the background", one_line(tool)),
        false => one_line(tool),
    };
    match (tool, argument) {
        (tool, argument) if argument.is_empty() => tool,
        (tool, argument) => format!("{tool}: {argument}"),
    }
}

/// The first line that says something.
pub(crate) fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = calm(&harmless(lines.next().unwrap_or_default().trim())).replace('\t', " ");
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first,
    }
}

pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}

/// Columns that `text` takes at most: without a table, everything beyond Latin
/// counts as wide.
fn columns(text: &str) -> usize {
    text.chars().map(column).sum()
}

fn column(c: char) -> usize {
    if c < '\u{1100}' || ('\u{2000}'..'\u{2e80}').contains(&c) {
        1
    } else {
        2
    }
}

/// `text` in lines of `room` columns, broken at words; a longer word is a line.
fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn cut(text: &str, room: usize) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let kept = text.chars().take_while(|c| {
        used += column(*c);
        used <= room
    });
    let mut kept: String = kept.collect();
    kept.push('…');
    kept
}

#[cfg(unix)]
fn terminal_width() -> Option<usize> {
    let mut size = nix::libc::winsize {
        ws_row: 0,
        ws_col: 0,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: TIOCGWINSZ writes one winsize to the pointer, which is valid for it.
    let result = unsafe { nix::libc::ioctl(1, nix::libc::TIOCGWINSZ, &raw mut size) };
    (result == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(not(unix))]
fn terminal_width() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok()
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
