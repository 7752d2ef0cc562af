//! What a session says and does, as lines that scroll away and as what stands below
//! them while it happens.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Instant;

use ratatui::style::{Color, Modifier, Style as TextStyle};
use ratatui::text::{Line, Span};
use serde_json::Value;

use super::markdown::Markdown;
use super::screen::push_line;
use super::status::elapsed;
use super::wrap::{cut, wrap};
use crate::cli::RunOptions;
use crate::harmless::harmless;
use crate::render::{Renderer, Style, label};

/// Lines of a running command's output that are shown.
const TAIL_LINES: usize = 6;
/// Bytes of it that are kept.
const TAIL_BYTES: usize = 8 << 10;

/// A buffer that two writers share.
#[derive(Clone, Default)]
struct Pipe(Rc<RefCell<Vec<u8>>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A call that runs.
struct Running {
    id: String,
    label: String,
    since: Instant,
    tail: String,
}

/// What the last lines are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Input,
    Reasoning,
    Answer,
    Calls,
    Note,
}

/// What a session has said and done.
pub(super) struct Transcript {
    renderer: Renderer<Pipe>,
    pipe: Pipe,
    colors: bool,
    columns: usize,
    /// Whole lines that nobody has written to the terminal yet.
    above: String,
    last: Last,
    answer: Markdown,
    reasoning: Markdown,
    running: Vec<Running>,
}

fn dim() -> TextStyle {
    TextStyle::new().add_modifier(Modifier::DIM)
}

impl Transcript {
    pub(super) fn new(colors: bool, options: &RunOptions, columns: usize) -> Self {
        let pipe = Pipe::default();
        let style = Style {
            terminal: true,
            color: colors,
            notice_color: colors,
            spins: false,
            outputs: !options.quiet,
            width: columns,
            wraps: true,
            details: !options.quiet,
        };
        let mut renderer = Renderer::with_notices(pipe.clone(), Box::new(pipe.clone()), style);
        renderer.set_elsewhere(options.elsewhere.name());
        Self {
            renderer,
            pipe,
            colors,
            columns,
            above: String::new(),
            last: Last::Nothing,
            answer: Markdown::default(),
            reasoning: Markdown::new(dim()),
            running: Vec::new(),
        }
    }

    /// The terminal has so many columns now.
    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
        self.renderer.set_width(columns);
    }

    /// The lines that have to scroll away now.
    pub(super) fn take_above(&mut self) -> String {
        let lines = self.answer.take_done(self.columns);
        self.push(Last::Answer, &lines);
        let lines = self.reasoning.take_done(self.columns);
        self.push(Last::Reasoning, &lines);
        std::mem::take(&mut self.above)
    }

    fn begin(&mut self, kind: Last) {
        let apart = self.last != Last::Nothing && (self.last != kind || kind == Last::Input);
        if apart {
            self.above.push('\n');
        }
        self.last = kind;
    }

    fn push(&mut self, kind: Last, lines: &[Line<'_>]) {
        if lines.is_empty() {
            return;
        }
        // Markdown keeps its blocks apart itself.
        self.begin(kind);
        for line in lines {
            push_line(&mut self.above, line, self.colors);
        }
    }

    /// What a person has said.
    pub(super) fn input(&mut self, text: &str) {
        self.finish_text();
        let style = TextStyle::new()
            .fg(Color::Cyan)
            .add_modifier(Modifier::BOLD);
        let spans = [Span::styled(harmless(text).replace('\t', "    "), style)];
        let (first, rest) = (Span::styled("› ", style), Span::raw("  "));
        let lines = wrap(&spans, &first, &rest, self.columns);
        self.push(Last::Input, &lines);
    }

    /// An earlier answer.
    pub(super) fn earlier_answer(&mut self, text: &str) {
        self.answer.push(text);
        self.finish_text();
    }

    /// A notice of the program's own, of several lines.
    pub(super) fn note(&mut self, text: &str) {
        self.finish_text();
        self.begin(Last::Note);
        let style = TextStyle::new().fg(Color::Yellow);
        for line in harmless(text).lines() {
            let line = Span::styled(line.replace('\t', "    "), style);
            let lines = match line.width() <= self.columns {
                true => vec![Line::from(line)],
                false => wrap(&[line], &Span::raw(""), &Span::raw("  "), self.columns),
            };
            for line in lines {
                push_line(&mut self.above, &line, self.colors);
            }
        }
    }

    /// A message that the session has dropped.
    pub(super) fn never_read(&mut self, text: &str) {
        self.note(&format!("! never reached the model: {text}"));
    }

    /// Ends what was being said.
    fn finish_text(&mut self) {
        let lines = self.reasoning.take_rest(self.columns);
        self.push(Last::Reasoning, &lines);
        let lines = self.answer.take_rest(self.columns);
        self.push(Last::Answer, &lines);
    }

    /// Shows one event, `{kind, data, …}`.
    pub(super) fn event(&mut self, event: &Value) {
        let data = &event["data"];
        let text = |name: &str| data[name].as_str().unwrap_or_default();
        let own = event["agent_id"].is_null();
        match event["kind"].as_str().unwrap_or_default() {
            "USER_INPUT" if own => {
                let attached = data["attachments"].as_array().map_or(0, Vec::len);
                let mut said = text("content").to_owned();
                if attached > 0 {
                    said.push_str(&format!(" [{attached} attached]"));
                }
                self.input(&said);
            }
            "ASSISTANT_TEXT_DELTA" if own => {
                let lines = self.reasoning.take_rest(self.columns);
                self.push(Last::Reasoning, &lines);
                self.answer.push(text("text"));
            }
            "REASONING_DELTA" if own => self.reasoning.push(text("text")),
            "ASSISTANT_TEXT_DELTA" | "REASONING_DELTA" => {}
            "ASSISTANT_TEXT_END" if own => self.finish_text(),
            "TOOL_CALL_START" => {
                self.running.push(Running {
                    id: text("call_id").to_owned(),
                    label: label(text("tool_name"), &data["arguments"]),
                    since: Instant::now(),
                    tail: String::new(),
                });
                self.rendered(Last::Calls, event);
            }
            "TOOL_CALL_OUTPUT_DELTA" => {
                let id = text("call_id");
                if let Some(call) = self.running.iter_mut().find(|call| call.id == id) {
                    call.tail.push_str(text("text"));
                    let over = call.tail.len().saturating_sub(TAIL_BYTES);
                    let cut = call.tail.ceil_char_boundary(over);
                    call.tail.drain(..cut);
                }
            }
            "TOOL_CALL_END" => {
                let id = text("call_id");
                self.running.retain(|call| call.id != id);
                self.rendered(Last::Calls, event);
            }
            "RETRY" => {
                if data["discard_partial"] == true {
                    self.finish_text();
                }
                self.rendered(Last::Note, event);
            }
            "ERROR" if own => self.note(&format!("! {}", text("message"))),
            "TURN_LIMIT" if own => {
                let message = crate::session::limit_message(
                    text("limit"),
                    data["value"].as_u64().unwrap_or(0),
                );
                self.note(&format!("! {message}"));
            }
            "PROCESSING_END" if own => {
                self.finish_text();
                self.running.clear();
                if data["reason"] == "interrupted" {
                    self.note("! interrupted");
                }
                self.rendered(Last::Note, event);
            }
            _ => self.rendered(Last::Note, event),
        }
    }

    /// What a run without a person to talk to shows of it.
    fn rendered(&mut self, kind: Last, event: &Value) {
        // It writes to memory.
        let _ = self.renderer.event(event);
        let bytes = std::mem::take(&mut *self.pipe.0.borrow_mut());
        if bytes.is_empty() {
            return;
        }
        self.finish_text();
        self.begin(kind);
        self.above.push_str(&String::from_utf8_lossy(&bytes));
        if !self.above.ends_with('\n') {
            self.above.push('\n');
        }
    }

    /// What stands below the scrollback, in `room` rows at most.
    pub(super) fn live(&self, room: usize, spinner: &str) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for text in [&self.reasoning, &self.answer] {
            let lines = text.rest(self.columns);
            if !lines.is_empty() && self.last != Last::Nothing && rows.is_empty() {
                rows.push(Line::default());
            }
            rows.extend(lines.into_iter().map(|line| clipped(line, self.columns)));
        }
        let over = rows.len().saturating_sub(room);
        rows.drain(..over);
        for call in &self.running {
            let time = match call.since.elapsed().as_secs() {
                0 => String::new(),
                seconds => format!(" {}", elapsed(seconds)),
            };
            let room = self.columns.saturating_sub(2 + time.len());
            rows.push(Line::from(vec![
                Span::styled(format!("{spinner} "), TextStyle::new().fg(Color::Cyan)),
                Span::raw(cut(&call.label, room)),
                Span::styled(time, dim()),
            ]));
            let lines: Vec<&str> = call.tail.lines().collect();
            for line in &lines[lines.len().saturating_sub(TAIL_LINES)..] {
                // What a progress bar shows now.
                let line = line.trim_end_matches('\r');
                let line = line.rsplit('\r').next().unwrap_or_default();
                let line = cut(&harmless(line), self.columns.saturating_sub(4));
                rows.push(Line::from(Span::styled(format!("    {line}"), dim())));
            }
        }
        let over = rows.len().saturating_sub(room);
        rows.drain(..over);
        rows
    }
}

/// `line` in one row.
fn clipped(line: Line<'static>, columns: usize) -> Line<'static> {
    if line.width() <= columns {
        return line;
    }
    let mut left = columns;
    let mut spans = Vec::new();
    for span in line.spans {
        let content = cut(&span.content, left);
        let width = Span::raw(content.as_str()).width();
        spans.push(Span::styled(content, span.style));
        left = left.saturating_sub(width);
        if left == 0 {
            break;
        }
    }
    Line::from(spans)
}
