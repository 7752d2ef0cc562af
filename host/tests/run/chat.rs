//! `hermitcrab` on a terminal: what a person sees after what is typed.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hermitcrab_host::serve_model::ServeModel;
use nix::libc;
use serde_json::{Value, json};

use super::elsewhere::ENGINE;
use super::terminal::Terminal;
use super::{CANARY, GUARD, scratch, serve, shell};

/// A conversation on a terminal, and what that shows.
struct Talk {
    terminal: Terminal,
    screen: vt100::Parser,
    /// All bytes that the terminal got.
    bytes: Vec<u8>,
}

fn chat(url: &str, directory: &Path, state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .args(["--base-url", url, "--dir"])
        .arg(directory)
        .args(arguments)
        .env("ANTHROPIC_API_KEY", CANARY)
        .env("HERMITCRAB_STATE_DIR", state)
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR");
    command
}

fn cells(count: u16) -> std::num::NonZeroU16 {
    count.try_into().expect("not 0")
}

impl Talk {
    fn new(command: Command, (rows, columns): (u16, u16)) -> Self {
        Self {
            terminal: Terminal::start(command, b"", (rows, columns)),
            screen: vt100::Parser::new(cells(rows), cells(columns), 2_000),
            bytes: Vec::new(),
        }
    }

    fn begin(model: &ServeModel, directory: &Path, arguments: &[&str]) -> Self {
        let state = directory.join("state");
        let work = directory.join("work");
        std::fs::create_dir_all(&work).expect("a directory");
        let mut talk = Self::new(chat(&model.url(), &work, &state, arguments), (30, 100));
        talk.see("ready");
        talk
    }

    fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    fn take(&mut self) {
        if let Some(bytes) = self.terminal.next_output() {
            self.screen.process(&bytes);
            self.bytes.extend(bytes);
        }
    }

    /// Waits until the screen is as `wanted`.
    fn until(&mut self, what: &str, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !wanted(&self.shown()) {
            assert!(start.elapsed() < GUARD, "no {what}:\n{}", self.shown());
            self.take();
        }
    }

    fn see(&mut self, text: &str) {
        self.until(text, |shown| shown.contains(text));
    }

    fn see_no(&mut self, text: &str) {
        self.until(&format!("end of {text}"), |shown| !shown.contains(text));
    }

    fn keys(&mut self, keys: &str) {
        self.terminal.type_keys(keys.as_bytes());
    }

    /// Waits for a question that listens: its choices are bold then.
    fn question(&mut self) {
        let start = Instant::now();
        loop {
            let screen = self.screen.screen();
            // Not lines: one that the terminal has wrapped takes several rows.
            let mut rows = screen.rows(0, screen.size().1.into());
            let row = rows.position(|row| row.starts_with("[y]es"));
            let row = row.map(|row| u16::try_from(row).expect("a row"));
            let cell = row.and_then(|row| screen.cell(row, 0));
            if cell.is_some_and(vt100::Cell::bold) {
                return;
            }
            drop(rows);
            assert!(start.elapsed() < GUARD, "no question:\n{}", self.shown());
            self.take();
        }
    }

    /// Says something and waits until it stands in the conversation.
    fn say(&mut self, text: &str) {
        self.keys(text);
        self.see(text);
        self.keys("\r");
    }

    /// Leaves, and gives the exit code and the screen then.
    fn leave(mut self) -> (Option<i32>, String) {
        self.keys("\x04");
        self.end()
    }

    fn end(mut self) -> (Option<i32>, String) {
        let start = Instant::now();
        let status = loop {
            self.take();
            if let Some(status) = self.terminal.child().try_wait().expect("a status") {
                break status;
            }
            assert!(start.elapsed() < GUARD, "no end:\n{}", self.shown());
        };
        self.screen.process(&self.terminal.rest());
        (status.code(), self.shown())
    }
}

/// A command that waits until the file `go` is there.
fn waits() -> Value {
    shell("echo started; while [ ! -e go ]; do sleep 0.02; done; echo gone on")
}

fn touch(directory: &Path, name: &str) {
    std::fs::write(directory.join("work").join(name), "").expect("a file");
}

#[test]
fn several_inputs_of_one_conversation() {
    let directory = scratch();
    let model = serve(json!([
        {"text": "# First\n\nSome **bold** words."},
        {"text": "Second."},
    ]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("hello there");
    talk.see("Some bold words.");
    assert!(talk.shown().contains("› hello there"), "{}", talk.shown());
    assert!(!talk.shown().contains("**"), "{}", talk.shown());
    talk.see("ready");
    talk.say("and now?");
    talk.see("Second.");
    talk.see("ready");
    let (code, screen) = talk.leave();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("hermitcrab --resume"), "{screen}");
    // What stood below is gone; the conversation stays.
    assert!(screen.contains("Second."), "{screen}");
    assert!(!screen.contains("ready"), "{screen}");
    let requests = model.requests();
    assert_eq!(requests.len(), 2);
    let second = String::from_utf8_lossy(&requests[1].body);
    assert!(
        second.contains("hello there") && second.contains("and now?"),
        "{second}"
    );
}

#[test]
fn what_is_typed_meanwhile_steers() {
    let directory = scratch();
    let model = serve(json!([waits(), {"text": "Done."}]));
    let mut talk = Talk::begin(&model, directory.path(), &["--approve", "never"]);
    talk.say("begin");
    // The live end of its output.
    talk.see("    started");
    talk.see("round 1");
    talk.say("use tabs");
    talk.see("↳ waits for the round: use tabs");
    touch(directory.path(), "go");
    talk.see("Done.");
    talk.see("> use tabs");
    talk.see_no("↳ waits");
    let requests = model.requests();
    let last = String::from_utf8_lossy(&requests[1].body);
    assert!(last.contains("use tabs"), "{last}");
    assert_eq!(talk.leave().0, Some(0));
}

/// An answer that is shown and does not end before `go` is released.
fn held(text: &str) -> Value {
    json!({"text": text, "hold": "go", "hold_before": "end"})
}

/// Where each of `texts` stands in the last request.
fn places(model: &ServeModel, texts: &[&str]) -> Vec<Option<usize>> {
    let requests = model.requests();
    let last = requests.last().expect("a request");
    let last = String::from_utf8_lossy(&last.body).into_owned();
    texts
        .iter()
        .map(|text| {
            assert!(last.matches(text).count() < 2, "{text} twice: {last}");
            last.find(text)
        })
        .collect()
}

#[test]
fn what_is_typed_during_the_last_answer_is_the_next_input() {
    let directory = scratch();
    let model = serve(json!([held("Answer eleven."), {"text": "Second."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("begin");
    talk.see("Answer eleven.");
    talk.say("use tabs 11");
    talk.see("↳ waits: use tabs 11");
    talk.say("and spaces 22");
    talk.see("↳ waits: and spaces 22");
    model.release("go");
    talk.see("Second.");
    talk.see("› use tabs 11");
    talk.see_no("↳ waits");
    let places = places(&model, &["Answer eleven.", "use tabs 11", "and spaces 22"]);
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn what_is_typed_while_the_conversation_is_summarised_is_sent() {
    let directory = scratch();
    let summary = json!({
        "match": {"contains": "about to run out of room"},
        "text": "SUMMARY",
        "hold": "go",
    });
    let mut steps = vec![summary];
    steps.extend((0..8).map(|number| json!({"text": format!("Answer {number}.")})));
    let model = serve(Value::from(steps));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    for number in 0..7 {
        talk.say(&format!("input {number}"));
        talk.see(&format!("Answer {number}."));
        talk.see("ready");
    }
    talk.say("/compact");
    talk.see("summarising");
    talk.say("what came of it?");
    talk.see("↳ waits: what came of it?");
    model.release("go");
    talk.see("› what came of it?");
    talk.see("Answer 7.");
    let places = places(&model, &["SUMMARY", "what came of it?"]);
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn what_waits_when_an_answer_is_interrupted_comes_back() {
    let directory = scratch();
    let model = serve(json!([held("Answer eleven."), {"text": "Second."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("begin");
    talk.see("Answer eleven.");
    talk.say("use tabs 11");
    talk.see("↳ waits: use tabs 11");
    talk.keys("and");
    talk.see("› and");
    talk.keys("\x1b");
    talk.see("! interrupted");
    talk.see("› use tabs 11\n  and");
    talk.keys(" so on 44\r");
    talk.see("Second.");
    let places = places(&model, &["use tabs 11", "and so on 44"]);
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn what_waits_when_a_call_is_interrupted_comes_before_the_next_input() {
    let directory = scratch();
    let model = serve(json!([waits(), {"text": "Second."}]));
    let mut talk = Talk::begin(&model, directory.path(), &["--approve", "never"]);
    talk.say("begin");
    talk.see("    started");
    talk.say("use tabs 11");
    talk.see("↳ waits for the round: use tabs 11");
    talk.keys("\x1b");
    talk.see("! interrupted");
    talk.see("ready");
    talk.say("and now 33");
    talk.see("Second.");
    talk.see_no("↳ waits");
    let places = places(&model, &["use tabs 11", "and now 33"]);
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

/// A model that refuses the second of three requests.
fn refusing(status: u16) -> ServeModel {
    let error = json!({"status": status, "type": "invalid_request_error", "message": "no"});
    serve(json!([{"text": "First."}, {"error": error}, {"text": "Still here."}]))
}

#[test]
fn an_error_that_closes_the_session_does_not_end_the_conversation() {
    for status in [400, 401, 402, 403, 413, 422] {
        let directory = scratch();
        let model = refusing(status);
        let mut talk = Talk::begin(&model, directory.path(), &[]);
        talk.say("one");
        talk.see("First.");
        talk.see("ready");
        talk.say("two");
        talk.see("The session is open again: Enter in an empty line tries again.");
        talk.see("ready");
        let error = format!("({status}");
        talk.say("/model another-model");
        talk.see("another-model from now on.");
        talk.keys("\r");
        talk.see("Still here.");
        talk.see("ready");
        let shown = talk.shown();
        for text in [&*error, "› one", "First.", "› two"] {
            assert_eq!(shown.matches(text).count(), 1, "{text}: {shown}");
        }
        let requests = model.requests();
        let last = String::from_utf8_lossy(&requests[2].body);
        for text in ["another-model", "one", "First.", "two"] {
            assert!(last.contains(text), "{text}: {last}");
        }
        let (code, screen) = talk.leave();
        assert_eq!(code, Some(0), "{screen}");
        assert!(screen.contains("hermitcrab --resume"), "{screen}");
        let kept = std::fs::read_dir(directory.path().join("state/sessions")).expect("sessions");
        assert_eq!(kept.count(), 1);
    }
}

#[test]
fn what_is_written_when_an_error_closes_the_session_stays() {
    let directory = scratch();
    let error = json!({"status": 400, "type": "invalid_request_error", "message": "no"});
    let model = serve(json!([
        {"error": error, "hold": "go"},
        {"text": "Still here."},
    ]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("/model another-model");
    talk.see("another-model from now on.");
    talk.say("one");
    talk.see("› one");
    talk.say("the second matter");
    talk.see("↳ waits: the second matter");
    talk.keys("three");
    talk.see("› three");
    model.release("go");
    talk.see("The session is open again");
    talk.see("› the second matter\n  three");
    talk.keys(" and four\r");
    talk.see("Still here.");
    let last = places(&model, &["the second matter", "three and four"]);
    assert!(last.iter().all(Option::is_some), "{last:?}");
    let requests = model.requests();
    let last = String::from_utf8_lossy(&requests[1].body);
    assert!(last.contains("another-model"), "{last}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn an_error_ends_a_conversation_that_is_not_kept() {
    let directory = scratch();
    let model = refusing(400);
    let mut talk = Talk::begin(&model, directory.path(), &["--no-journal"]);
    talk.say("one");
    talk.see("First.");
    talk.see("ready");
    talk.say("two");
    let (code, screen) = talk.end();
    assert_eq!(code, Some(1), "{screen}");
    assert!(
        screen.contains("(400 invalid_request_error: no)"),
        "{screen}"
    );
}

#[test]
fn escape_interrupts_and_the_conversation_goes_on() {
    let directory = scratch();
    let model = serve(json!([waits(), {"text": "Still here."}]));
    let mut talk = Talk::begin(&model, directory.path(), &["--approve", "never"]);
    talk.say("begin");
    talk.see("    started");
    talk.keys("\x1b");
    talk.see("! interrupted");
    talk.see("ready");
    talk.say("are you there?");
    talk.see("Still here.");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn ctrl_c_interrupts_and_twice_leaves() {
    let directory = scratch();
    let model = serve(json!([waits()]));
    let mut talk = Talk::begin(&model, directory.path(), &["--approve", "never"]);
    talk.keys("something");
    talk.see("› something");
    talk.keys("\x03");
    talk.see_no("› something");
    talk.see("Ctrl+C again leaves");
    std::thread::sleep(Duration::from_millis(2_100));
    talk.say("begin");
    talk.see("    started");
    talk.keys("\x03");
    talk.see("! interrupted");
    // The one that interrupted does not count any more.
    std::thread::sleep(Duration::from_millis(2_100));
    talk.keys("\x03\x03");
    let (code, screen) = talk.end();
    assert_eq!(code, Some(0), "{screen}");
}

/// Answers the question about a command with `keys`.
fn check_question(keys: &[&str], seen: &str, is_run: bool, told: &str) {
    let directory = scratch();
    let model = serve(json!([shell("touch made"), {"text": "All done."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("begin");
    talk.see("shell asks to do this:");
    talk.see("  touch made");
    talk.see("touch is not among the listed commands");
    talk.see("[y]es, once  [a]lways for this command  [n]o  no, [b]ecause…");
    talk.question();
    for keys in keys {
        talk.keys(keys);
    }
    talk.see(seen);
    assert_eq!(directory.path().join("work/made").exists(), is_run);
    let requests = model.requests();
    if let Some(answer) = requests.get(1) {
        let answer = String::from_utf8_lossy(&answer.body);
        assert!(answer.contains(told), "{answer}");
    }
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn questions_are_answered_in_a_dialog() {
    check_question(&["y"], "All done.", true, "exit code: 0");
    check_question(&["n"], "All done.", false, "the user declined");
    check_question(
        &["b", "use mkdir", "\r"],
        "All done.",
        false,
        "the user declined: use mkdir",
    );
    check_question(&["q", "\r", " ", "a"], "All done.", true, "exit code: 0");
    check_question(&["\x1b"], "! interrupted", false, "");
}

#[test]
fn keys_reach_all_of_what_a_question_is_about() {
    let directory = scratch();
    let hidden = format!("ls{}; touch made", " ".repeat(260));
    let long = format!("echo {} ; touch made", "x".repeat(4_000));
    let model = serve(json!([shell(&hidden), shell(&long), {"text": "All done."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("begin");
    talk.question();
    talk.see("  ls⟨260 spaces⟩; touch made");
    talk.keys("n");
    talk.see("  echo xxx");
    talk.question();
    talk.see(": ↑ ↓ PageUp PageDown show the others");
    assert!(!talk.shown().contains("touch made"), "{}", talk.shown());
    talk.keys("\x1b[6~\x1b[6~\x1b[6~");
    talk.see("x ; touch made");
    talk.keys("n");
    talk.see("All done.");
    assert!(!directory.path().join("work/made").exists());
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn a_refusal_and_a_notice_are_shown_in_whole_words() {
    let directory = scratch();
    let model = serve(json!([shell("touch made"), {"text": "All done."}]));
    let (state, work) = (
        directory.path().join("state"),
        directory.path().join("work"),
    );
    std::fs::create_dir_all(&work).expect("a directory");
    let mut talk = Talk::new(chat(&model.url(), &work, &state, &[]), (30, 60));
    talk.see("ready · claude");
    talk.say("/model");
    talk.see("Others work, too.");
    let shown = talk.shown();
    for name in hermitcrab::llm::list_models(Some("anthropic")) {
        assert!(shown.contains(&*name.id), "{}: {shown}", name.id);
    }
    talk.say("begin");
    talk.question();
    talk.keys("b");
    let reason = "use the target of the makefile that there is for it, and say what came of it";
    talk.keys(reason);
    talk.see("what came of it");
    talk.keys("\r");
    talk.see("All done.");
    let shown = talk.shown();
    let words: Vec<&str> = shown.split_whitespace().collect();
    let told = format!("Tool error (shell): not approved: the user declined: {reason}");
    assert!(words.join(" ").contains(&told), "{shown}");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn what_is_written_when_a_question_comes_up_stays() {
    let directory = scratch();
    let model = serve(json!([waits(), shell("touch made"), {"text": "All done."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("begin");
    talk.see("    started");
    talk.keys("yes, but");
    talk.see("› yes, but");
    touch(directory.path(), "go");
    talk.question();
    assert!(!directory.path().join("work/made").exists());
    talk.keys("n");
    talk.see("All done.");
    assert!(!directory.path().join("work/made").exists());
    talk.see("› yes, but");
    talk.keys("\x15");
    talk.see_no("› yes, but");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn commands_of_the_program() {
    let directory = scratch();
    let write = json!({"tool_calls": [{"name": "write_file", "arguments": {
        "file_path": "a.txt", "content": "one\n",
    }}]});
    let model = serve(json!([write, {"text": "Written."}, {"text": "Seen."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.keys("/he");
    talk.see("/help     keys and commands");
    talk.keys("\r\r");
    talk.see("Enter sends; while the model works");
    talk.say("/nothing");
    talk.see("there is no command /nothing");
    talk.keys("\x15");
    talk.say("/model another-model");
    talk.see("another-model from now on.");
    talk.say("write it");
    talk.see("Written.");
    talk.see("+one");
    talk.see("ready");
    let file = directory.path().join("work/a.txt");
    assert!(file.exists());
    talk.say("/undo");
    talk.see("Undone: a.txt");
    assert!(!file.exists());
    talk.say("/undo");
    talk.see("! there is nothing to undo");
    talk.say("/cost");
    talk.see("from the cache)");
    talk.say("look");
    talk.see("Seen.");
    let requests = model.requests();
    let body = |at: usize| String::from_utf8_lossy(&requests[at].body).into_owned();
    assert!(body(0).contains("another-model"), "{}", body(0));
    assert!(
        body(2).contains("The user has undone your changes"),
        "{}",
        body(2)
    );
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn a_path_is_completed() {
    let directory = scratch();
    let work = directory.path().join("work/src");
    std::fs::create_dir_all(&work).expect("a directory");
    std::fs::write(work.join("needle.rs"), "").expect("a file");
    let model = serve(json!([{"text": "Yes."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.keys("read @need");
    talk.see("  src/needle.rs");
    talk.keys("\t");
    talk.see("› read src/needle.rs");
    talk.keys("now\r");
    talk.see("Yes.");
    let body = String::from_utf8_lossy(&model.requests()[0].body).into_owned();
    assert!(body.contains("read src/needle.rs now"), "{body}");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn a_paste_of_several_lines_is_one_input() {
    let directory = scratch();
    let model = serve(json!([{"text": "Yes."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.keys("\x1b[200~one\ntwo\x1b[201~");
    talk.see("  two");
    assert!(model.requests().is_empty());
    talk.keys("\\\rthree\r");
    talk.see("Yes.");
    let body = String::from_utf8_lossy(&model.requests()[0].body).into_owned();
    assert!(body.contains(r"one\ntwo\nthree"), "{body}");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn another_session_goes_on() {
    let directory = scratch();
    let model = serve(json!([{"text": "First answer."}]));
    let mut talk = Talk::begin(&model, directory.path(), &[]);
    talk.say("the first task");
    talk.see("First answer.");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));

    let second = serve(json!([{"text": "Second answer."}, {"text": "Third answer."}]));
    let mut talk = Talk::begin(&second, directory.path(), &[]);
    talk.say("/resume");
    talk.see("the first task");
    let shown = talk.shown();
    let line = shown.lines().find(|line| line.contains("  the first task"));
    let id = line
        .expect("a session")
        .split(' ')
        .next()
        .expect("an id")
        .to_owned();
    talk.say(&format!("/resume {id}"));
    // Its conversation is shown again.
    talk.see("First answer.");
    talk.see("ready");
    talk.say("more");
    talk.see("Second answer.");
    talk.see("ready");
    assert_eq!(talk.leave().0, Some(0));
    let body = String::from_utf8_lossy(&second.requests()[0].body).into_owned();
    assert!(
        body.contains("the first task") && body.contains("First answer."),
        "{body}"
    );
    // The one in which nothing was said is not kept.
    let kept = std::fs::read_dir(directory.path().join("state/sessions")).expect("sessions");
    assert_eq!(kept.count(), 1);

    // What was sent is called up again, also in another process.
    let mut talk = Talk::begin(&second, directory.path(), &["--continue"]);
    talk.see("Second answer.");
    talk.keys("\x1b[A");
    talk.see("› more");
    talk.keys("\r");
    talk.see("Third answer.");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn text_of_others_does_not_reach_the_terminal_as_more() {
    let directory = scratch();
    let evil = "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[5;5Hmoved\u{9b}2J";
    let model = serve(json!([
        shell(&format!("printf '{}'", evil.escape_unicode().to_string().replace("\\u{", "\\x").replace('}', ""))),
        {"tool_calls": [{"name": "write_file", "arguments": {"file_path": format!("a{evil}"), "content": evil}}]},
        {"text": format!("done {evil} `{evil}`")},
    ]));
    let mut talk = Talk::begin(&model, directory.path(), &["--approve", "always"]);
    talk.say("begin");
    for _ in 0..2 {
        talk.question();
        talk.keys("y");
        talk.see_no("[y]es");
    }
    talk.see("done ");
    talk.see("ready");
    let text = String::from_utf8_lossy(&talk.bytes).into_owned();
    for wrong in ["\u{1b}]", "\u{1b}[5;5H", "\u{9b}", "\u{7}"] {
        assert!(!text.contains(wrong), "{wrong:?} in {text:?}");
    }
    assert_eq!(talk.leave().0, Some(0));
}

/// What stays of a terminal of `columns`, which becomes one of `then`, while an answer
/// streams.
fn check_size(columns: u16, then: u16) {
    let directory = scratch();
    let words = "several words that make a paragraph of some length ".repeat(12);
    let text = format!("Begin.\n\n{words}\n\nMiddle.\n\n- one {words}\n- two\n\nEnd.");
    let pieces: Vec<&str> = text.split_inclusive(' ').collect();
    let model = serve(json!([{"texts": pieces, "delta_delay_ms": 4}]));
    let (state, work) = (
        directory.path().join("state"),
        directory.path().join("work"),
    );
    std::fs::create_dir_all(&work).expect("a directory");
    let command = chat(&model.url(), &work, &state, &[]);
    let mut talk = Talk::new(command, (24, columns));
    talk.see("ready");
    talk.say("begin");
    talk.see("Begin.");
    talk.terminal.resize(24, then);
    talk.screen.screen_mut().set_size(cells(24), cells(then));
    talk.see("End.");
    talk.see("ready");
    let shown = talk.shown();
    for line in shown.lines() {
        assert!(line.chars().count() <= usize::from(then), "{shown}");
    }
    // One status, one editor, at the bottom.
    assert_eq!(shown.matches("ready").count(), 1, "{shown}");
    let last: Vec<&str> = shown
        .lines()
        .rev()
        .filter(|line| !line.is_empty())
        .take(2)
        .collect();
    assert!(last[0].starts_with("ready"), "{shown}");
    assert!(last[1].starts_with('›'), "{shown}");
    assert_eq!(talk.leave().0, Some(0));
}

#[test]
fn any_width_and_another_one_while_it_streams() {
    check_size(60, 60);
    check_size(80, 200);
    check_size(200, 80);
    check_size(80, 60);
}

/// A terminal of tmux, which wraps lines anew when its width changes, as most do.
struct Tmux(std::path::PathBuf);

impl Tmux {
    fn call(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {told}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(&self.0);
        command.args(arguments);
        command
    }

    /// Runs `command` in a window of `columns`.
    fn start(&self, command: &Command, columns: u16) {
        let size = columns.to_string();
        let mut tmux = self.command(&["new-session", "-d", "-x", &size, "-y", "24"]);
        tmux.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => tmux.env(name, value),
                None => tmux.env_remove(name),
            };
        }
        assert!(tmux.status().expect("tmux").success());
    }

    /// Waits until its screen and scrollback are as `wanted`, and gives them.
    fn until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            let shown = self.call(&["capture-pane", "-p", "-S", "-"]);
            if wanted(&shown) {
                return shown;
            }
            assert!(start.elapsed() < GUARD, "no {what}:\n{shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn see(&self, text: &str) -> String {
        self.until(text, |shown| shown.contains(text))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}

/// What stays in tmux of an answer when the window changes from `columns` to all of
/// `then`, those of one paragraph at once, while the paragraphs stream.
fn check_tmux(columns: u16, then: &[&[u16]]) {
    let directory = scratch();
    let words = |paragraph: usize| (0..60).map(move |word| format!("p{paragraph}w{word:02} "));
    let mut pieces = vec!["# Head\n\n".to_owned()];
    for paragraph in 0..then.len() {
        pieces.extend(words(paragraph));
        pieces.push("\n\n".to_owned());
    }
    pieces.push("End.".to_owned());
    let model = serve(json!([{"texts": pieces, "delta_delay_ms": 20}]));
    let (state, work) = (
        directory.path().join("state"),
        directory.path().join("work"),
    );
    std::fs::create_dir_all(&work).expect("a directory");
    let tmux = Tmux(directory.path().join("tmux"));
    tmux.start(&chat(&model.url(), &work, &state, &[]), columns);
    tmux.see("ready");
    tmux.call(&["send-keys", "begin", "Enter"]);
    for (paragraph, widths) in then.iter().enumerate() {
        tmux.see(&format!("p{paragraph}w30"));
        for width in *widths {
            tmux.call(&["resize-window", "-x", &width.to_string(), "-y", "24"]);
        }
    }
    tmux.see("End.");
    let shown = tmux.see("ready");
    let all = (0..then.len()).flat_map(words);
    let once = ["Head", "› begin", "End.", "ready"].map(str::to_owned);
    for text in once.into_iter().chain(all) {
        let count = shown.matches(text.trim_end()).count();
        assert_eq!(count, 1, "{text} from {columns} to {then:?}:\n{shown}");
    }
    // With its terminal the conversation ends.
    let pid = tmux.call(&["display-message", "-p", "#{pane_pid}"]);
    drop(tmux);
    let process = format!("/proc/{}/fd", pid.trim());
    let start = Instant::now();
    while std::fs::read_dir(&process).is_ok() {
        assert!(
            start.elapsed() < GUARD,
            "{pid} goes on without its terminal"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn another_width_of_tmux_leaves_no_copies() {
    if Command::new("tmux").arg("-V").output().is_err() {
        eprintln!("skipped: there is no tmux");
        return;
    }
    check_tmux(60, &[&[60]]);
    check_tmux(80, &[&[60]]);
    check_tmux(80, &[&[200]]);
    check_tmux(200, &[&[80]]);
    check_tmux(200, &[&[60], &[80], &[60]]);
    check_tmux(80, &[&[78, 74, 69, 65, 60]]);
}

/// Sends `signal` to a conversation that works, or that waits for an input.
fn check_signal(signal: libc::c_int, term: &str, works: bool) {
    let directory = scratch();
    let model = serve(json!([waits()]));
    let (state, work) = (
        directory.path().join("state"),
        directory.path().join("work"),
    );
    std::fs::create_dir_all(&work).expect("a directory");
    let mut command = chat(&model.url(), &work, &state, &["--approve", "never"]);
    command.env("TERM", term);
    let mut talk = Talk::new(command, (30, 100));
    talk.see(if term == "dumb" { "> " } else { "ready" });
    if works {
        talk.say("begin");
        talk.until("call", |_| !model.requests().is_empty());
    }
    let pid = i32::try_from(talk.terminal.child().id()).expect("a pid");
    // SAFETY: a signal to the child of this test.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
    let (code, screen) = talk.end();
    assert_eq!(code, Some(130), "{signal} {term} {works}: {screen}");
    assert!(screen.contains("hermitcrab: interrupted"), "{screen}");
    let told = screen.contains("hermitcrab --resume");
    assert_eq!(told, works || term == "dumb", "{screen}");
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        for term in ["xterm-256color", "dumb"] {
            check_signal(signal, term, true);
            check_signal(signal, term, false);
        }
    }
}

#[test]
fn a_dumb_terminal_gets_lines() {
    let directory = scratch();
    let model = serve(json!([{"text": "First."}, {"text": "Second."}]));
    let (state, work) = (
        directory.path().join("state"),
        directory.path().join("work"),
    );
    std::fs::create_dir_all(&work).expect("a directory");
    let mut command = chat(&model.url(), &work, &state, &[]);
    command.env("TERM", "dumb");
    let mut talk = Talk::new(command, (30, 100));
    talk.see("> ");
    talk.keys("hello\r");
    talk.see("First.");
    talk.keys("again\r");
    talk.see("Second.");
    talk.keys("/quit\r");
    let bytes = String::from_utf8_lossy(&talk.bytes).into_owned();
    assert!(!bytes.contains('\x1b'), "{bytes:?}");
    assert_eq!(talk.end().0, Some(0));
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn a_conversation_elsewhere_names_the_container() {
    for term in ["xterm-256color", "dumb"] {
        let directory = scratch();
        let model = serve(json!([{"text": "First."}]));
        let (state, work) = (
            directory.path().join("state"),
            directory.path().join("work"),
        );
        std::fs::create_dir_all(&work).expect("a directory");
        let arguments = ["--container", "box", "--engine", ENGINE];
        let mut command = chat(&model.url(), &work, &state, &arguments);
        command.env("TERM", term);
        let mut talk = Talk::new(command, (30, 200));
        talk.see(if term == "dumb" { "> " } else { "ready" });
        talk.keys("hello\r");
        talk.see("First.");
        talk.see("container box: ");
        talk.keys("/quit\r");
        assert_eq!(talk.end().0, Some(0), "{term}");
    }
}

#[test]
fn without_a_terminal_there_is_no_conversation() {
    let directory = scratch();
    let output = chat(
        "http://127.0.0.1:9",
        directory.path(),
        directory.path(),
        &[],
    )
    .stdin(std::process::Stdio::null())
    .output()
    .expect("the binary");
    assert_eq!(output.status.code(), Some(2));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("a conversation needs a terminal"), "{told}");
}
