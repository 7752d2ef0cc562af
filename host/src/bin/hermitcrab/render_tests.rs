//! Cases: events in, the bytes on the terminal or in the pipe out.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::json;

use super::*;

const TERMINAL: Style = Style {
    terminal: true,
    color: false,
    notice_color: false,
    spins: true,
    outputs: false,
    width: 40,
    wraps: false,
    details: false,
};

/// In a pipe, with all that is said of a run.
const DETAILED: Style = Style {
    details: true,
    ..Style::PLAIN
};

/// What was written to it, also after the renderer has taken it.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).expect("UTF-8")
    }
}

/// Renders events given as `(kind, data)` to stdout and stderr; the kind `TICK`
/// is a tick.
fn render(style: Style, events: &[(&str, Value)]) -> (String, String) {
    let (out, notices) = (Shared::default(), Shared::default());
    let mut renderer = Renderer::with_notices(out.clone(), Box::new(notices.clone()), style);
    for (kind, data) in events {
        match *kind {
            "TICK" => renderer.tick(),
            _ => renderer.event(&json!({"kind": kind, "data": data})),
        }
        .expect("a Vec takes everything");
    }
    renderer.end().expect("a Vec takes everything");
    (out.text(), notices.text())
}

fn check(style: Style, events: &[(&str, Value)], expected: &str) {
    check_both(style, events, expected, "");
}

fn check_both(style: Style, events: &[(&str, Value)], stdout: &str, stderr: &str) {
    let expected = (stdout.to_owned(), stderr.to_owned());
    assert_eq!(render(style, events), expected);
}

fn start(id: &str, tool: &str, arguments: Value) -> (&'static str, Value) {
    let data = json!({"call_id": id, "tool_name": tool, "arguments": arguments});
    ("TOOL_CALL_START", data)
}

fn end(id: &str, rest: Value) -> (&'static str, Value) {
    let mut data = json!({"call_id": id, "is_error": false, "duration_ms": 12});
    for (name, value) in rest.as_object().into_iter().flatten() {
        data[name] = value.clone();
    }
    ("TOOL_CALL_END", data)
}

fn text(text: &str) -> (&'static str, Value) {
    ("ASSISTANT_TEXT_DELTA", json!({"text": text}))
}

#[test]
fn pipe_whole_run() {
    check(
        Style::PLAIN,
        &[
            ("SESSION_START", json!({"model": "m"})),
            ("USER_INPUT", json!({"content": "fix it"})),
            ("REASONING_DELTA", json!({"text": "hm"})),
            text("Let me "),
            text("look."),
            ("ASSISTANT_TEXT_END", json!({"text": "Let me look."})),
            start("a", "shell", json!({"command": "sh test.sh\nls"})),
            start("b", "read_file", json!({"file_path": "a.sh"})),
            ("TICK", Value::Null),
            (
                "TOOL_CALL_OUTPUT_DELTA",
                json!({"call_id": "a", "text": "no"}),
            ),
            end("b", json!({})),
            end(
                "a",
                json!({"exit_code": 1, "output": "no", "duration_ms": 1250}),
            ),
            text("Done.\n"),
            (
                "PROCESSING_END",
                json!({"reason": "completed", "rounds": 1}),
            ),
            ("SESSION_END", json!({"state": "CLOSED"})),
        ],
        "Let me look.\n\n* read_file: a.sh (12 ms)\n* shell: sh test.sh … (exit 1, 1.2 s)\n\nDone.\n",
    );
}

#[test]
fn pipe_failed_tools() {
    check(
        Style::PLAIN,
        &[
            start(
                "a",
                "edit_file",
                json!({"file_path": "a", "old_string": "x"}),
            ),
            end(
                "a",
                json!({"is_error": true, "error": "old_string not found\nin a"}),
            ),
            start("b", "list", json!({})),
            end("b", json!({"is_error": true, "output": "no such tool"})),
            start("c", "shell", json!({"command": "sleep 9"})),
            end(
                "c",
                json!({"timed_out": true, "exit_code": -1, "duration_ms": 61_500}),
            ),
            start("d", "host_tool", json!({"x": [1]})),
            end("d", json!({})),
        ],
        "* edit_file: a (failed, 12 ms): old_string not found …\n\
         * list (failed, 12 ms): no such tool\n\
         * shell: sleep 9 (timed out, 1 min 1 s)\n\
         * host_tool: {\"x\":[1]} (12 ms)\n",
    );
}

#[test]
fn pipe_has_no_escapes_from_text_labels_errors_and_notices() {
    check_both(
        Style::PLAIN,
        &[
            text("\x1b[31mred\r\n\tq\u{202e}"),
            start("a", "sh\x1bell", json!({"command": "printf '\x1b[2J'"})),
            end("a", json!({})),
            start("b", "list", json!({})),
            end(
                "b",
                json!({"is_error": true, "error": "no \u{9b}2J\x07tool"}),
            ),
            ("WARNING", json!({"message": "\x1b]0;title\x07"})),
        ],
        "[31mred\n\tq\n\n* shell: printf '[2J' (12 ms)\n* list (failed, 12 ms): no 2Jtool\n",
        "! ]0;title\n",
    );
}

#[test]
fn notices_are_on_stderr() {
    check_both(
        Style::PLAIN,
        &[
            text("par"),
            (
                "RETRY",
                json!({"attempt": 2, "delay_ms": 500, "message": "the stream broke", "discard_partial": true}),
            ),
            ("WARNING", json!({"code": "c", "message": "80 % used"})),
            (
                "COMPACTION_END",
                json!({"before_tokens": 9000, "after_tokens": 1000, "kept_turns": 2, "summary": "s"}),
            ),
            (
                "COMPACTION_END",
                json!({"before_tokens": 9, "after_tokens": 9, "kept_turns": 2, "error": "it is empty"}),
            ),
            ("LOOP_DETECTION", json!({"message": "the calls repeat"})),
            (
                "STEERING_INJECTED",
                json!({"source": "repetition", "content": "the calls repeat"}),
            ),
            (
                "STEERING_INJECTED",
                json!({"id": 1, "source": "host", "content": "use tabs"}),
            ),
            (
                "STEERING_INJECTED",
                json!({"source": "call_cut_off", "content": "make it again"}),
            ),
            ("BRAND_NEW", json!({})),
            ("WARNING", Value::Null),
            text("whole"),
        ],
        "par\nwhole\n",
        "! trying again in 500 ms: the stream broke; the answer above is void\n\
         ! 80 % used\n\
         ! the older part of the conversation is a summary now: 9000 tokens became 1000\n\
         ! the conversation was not compacted: it is empty\n! the calls repeat\n> use tabs\n! make it again\n! \n",
    );
}

#[test]
fn subagents_show_what_they_do_not_what_they_say() {
    let mut out = Vec::new();
    let mut renderer = Renderer::new(&mut out, Style::PLAIN);
    for (kind, mut data) in [
        text("child"),
        start("a", "t", json!({})),
        end("a", json!({})),
    ] {
        data = json!({"kind": kind, "agent_id": "1", "data": data});
        renderer.event(&data).expect("a Vec takes everything");
    }
    assert_eq!(String::from_utf8(out).expect("UTF-8"), "* t (12 ms)\n");
}

#[test]
fn terminal_spinner_and_totals() {
    check_both(
        Style {
            details: true,
            ..TERMINAL
        },
        &[
            ("USER_INPUT", json!({"content": "x"})),
            ("TICK", Value::Null),
            ("REASONING_DELTA", json!({"text": "hm"})),
            text("Hi"),
            start(
                "a",
                "shell",
                json!({"command": "cargo test --workspace --all-targets"}),
            ),
            end("a", json!({})),
            (
                "USAGE",
                json!({"input_tokens": 5, "cache_read_tokens": 7, "output_tokens": 3}),
            ),
            ("PROCESSING_END", json!({"rounds": 1})),
        ],
        "\r\x1b[K⠙ thinking\r\x1b[Khm\n\nHi\n\
         \r\x1b[K⠋ shell: cargo test --workspace --all-…\r\x1b[K\n\
         ● shell: cargo test --workspace… (12 ms)\n",
        "1 tool round · 12 tokens in, 3 out\n",
    );
}

#[test]
fn terminal_colours_and_harmless_text() {
    let style = Style {
        color: true,
        notice_color: true,
        ..TERMINAL
    };
    check_both(
        style,
        &[
            text("\x1b[31mred\x07\u{9b}1m"),
            ("WARNING", json!({"message": "w"})),
        ],
        "[31mred1m\n\n",
        "\x1b[33m! w\x1b[0m\n",
    );
}

#[test]
fn terminal_wide_characters_never_wrap() {
    let command = "echo 漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字";
    let shown = render(
        TERMINAL,
        &[start("a", "shell", json!({"command": command}))],
    );
    let spinner = shown.0.split("\x1b[K").nth(1).unwrap_or_default();
    assert_eq!(spinner, "⠋ shell: echo 漢字漢字漢字漢字漢字漢字…\r");
}

#[test]
fn errors_and_notices_are_wrapped_at_words() {
    let reason = "not approved: the user declined: use the target of the makefile, which does the \
                  same, and say what came of it when all of it is done, in a table";
    check_both(
        Style {
            wraps: true,
            ..TERMINAL
        },
        &[
            start("a", "shell", json!({"command": "make"})),
            end("a", json!({"is_error": true, "error": reason})),
            (
                "WARNING",
                json!({"message": "the conversation takes 80 % of the model's context"}),
            ),
        ],
        "\r\x1b[K⠋ shell: make\r\x1b[K● shell: make (failed, 12 ms)\n    \
         not approved: the user declined: use\n    the target of the makefile, which\n    \
         does the same, and say what came of …\n",
        "! the conversation takes 80 % of the\n  model's context\n",
    );
}

#[test]
fn diff_plain_and_coloured() {
    let diff = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n z\n";
    for (style, expected) in [
        (Style::PLAIN, diff.to_owned()),
        (
            Style {
                color: true,
                ..TERMINAL
            },
            "--- a/a\n+++ b/a\n\x1b[36m@@ -1 +1 @@\x1b[0m\n\x1b[31m-x\x1b[0m\n\x1b[32m+y\x1b[0m\n z\n"
                .to_owned(),
        ),
    ] {
        let mut out = Vec::new();
        Renderer::new(&mut out, style).diff(diff).expect("a Vec takes everything");
        assert_eq!(String::from_utf8(out).expect("UTF-8"), expected);
    }
}

#[test]
fn durations() {
    let shown = [0, 999, 1000, 59_999, 60_000, 3_600_000].map(duration);
    let expected = [
        "0 ms",
        "999 ms",
        "1.0 s",
        "59.9 s",
        "1 min 0 s",
        "60 min 0 s",
    ];
    assert_eq!(shown, expected.map(str::to_owned));
}

#[test]
fn header_failures_edits_and_totals() {
    let output: String = (1..=12).map(|line| format!("line {line}\n")).collect();
    let usage =
        json!({"input_tokens": 10, "cache_read_tokens": 5, "output_tokens": 2, "cost_usd": 0.0125});
    let edit = json!({"file_path": "a.rs", "old_string": "one\n", "new_string": "two\n"});
    let session = json!({"provider": "anthropic", "model": "m", "working_directory": "/w"});
    check_both(
        DETAILED,
        &[
            ("SESSION_START", session),
            ("USER_INPUT", json!({"content": "fix it"})),
            start("a", "shell", json!({"command": "make"})),
            end(
                "a",
                json!({"is_error": true, "exit_code": 2, "output": format!("{output}[exit code: 2]")}),
            ),
            start("b", "edit_file", edit.clone()),
            end("b", json!({"output": "ok"})),
            start("c", "edit_file", edit),
            end("c", json!({"is_error": true, "error": "not found"})),
            ("USAGE", usage.clone()),
            ("USAGE", usage),
            (
                "PROCESSING_END",
                json!({"reason": "completed", "rounds": 3}),
            ),
        ],
        "* shell: make (exit 2, 12 ms)\n    … 2 lines before\n    line 3\n    line 4\n    line 5\n\
         \u{20}   line 6\n    line 7\n    line 8\n    line 9\n    line 10\n    line 11\n    line 12\n\
         * edit_file: a.rs (12 ms)\n    @@ -1 +1 @@\n    -one\n    +two\n\
         * edit_file: a.rs (failed, 12 ms): not found\n",
        "hermitcrab: anthropic · m · /w\n3 tool rounds · 30 tokens in, 4 out · $0.0250\n",
    );
}

#[test]
fn labels_say_what_is_searched_and_fit_a_line() {
    let long = "x".repeat(200);
    check(
        Style::PLAIN,
        &[
            start("a", "grep", json!({"pattern": "fn main", "path": "."})),
            end("a", json!({})),
            start("b", "grep", json!({"pattern": "fn main"})),
            end("b", json!({})),
            start("c", "shell", json!({"command": long})),
            end("c", json!({})),
        ],
        &format!(
            "* grep: fn main in . (12 ms)\n* grep: fn main (12 ms)\n* shell: {}… (12 ms)\n",
            &long[..62]
        ),
    );
}

#[test]
fn a_call_in_the_background_says_so() {
    let arguments = json!({"command": "make serve", "run_in_background": true});
    assert_eq!(
        label("shell", &arguments),
        "shell in the background: make serve"
    );
}
