//! The binary on a terminal of its own: `--approve ask`, also without one, and
//! Ctrl-C.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::libc;
use serde_json::{Value, json};

use super::{GUARD, command, scratch, serve};

const QUESTION: &str = "[N]o: ";

/// Longer than a spinner stands still.
const FRAMES: Duration = Duration::from_millis(350);

fn winsize(rows: u16, columns: u16) -> libc::winsize {
    libc::winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// A run on a pseudo-terminal.
pub(super) struct Terminal {
    keys: File,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: String,
}

impl Terminal {
    /// Starts a run with `arguments` when `typed` has been typed.
    pub(super) fn run(url: &str, directory: &Path, typed: &[u8], arguments: &[&str]) -> Self {
        let mut command = command(url, directory, arguments);
        command.env("TERM", "xterm");
        Self::start(command, typed, (30, 100))
    }

    /// Starts `command` on a terminal of so many rows and columns when `typed` has been
    /// typed.
    pub(super) fn start(mut command: Command, typed: &[u8], (rows, columns): (u16, u16)) -> Self {
        let (mut keyboard, mut line) = (0, 0);
        let mut size = winsize(rows, columns);
        // SAFETY: the pointers are valid or null, as openpty takes them.
        let opened = unsafe {
            libc::openpty(
                &raw mut keyboard,
                &raw mut line,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                &raw mut size,
            )
        };
        assert_eq!(opened, 0, "a pseudo-terminal");
        // Without a copy of this end in the child, the terminal is gone with the test.
        // SAFETY: sets a flag of a descriptor that is open.
        unsafe { libc::fcntl(keyboard, libc::F_SETFD, libc::FD_CLOEXEC) };
        // SAFETY: openpty has just opened both, and nobody else owns them.
        let (mut keys, line) = unsafe { (File::from_raw_fd(keyboard), OwnedFd::from_raw_fd(line)) };
        keys.write_all(typed).expect("typed");
        command
            .stdin(line.try_clone().expect("a handle"))
            .stdout(line.try_clone().expect("a handle"))
            .stderr(line);
        // SAFETY: both calls are safe between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                match libc::ioctl(0, libc::TIOCSCTTY as _, 0) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let child = command.spawn().expect("the binary");
        // Its copies of the terminal's other end must not outlive the run.
        drop(command);
        let mut screen = keys.try_clone().expect("a handle");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of a terminal is an error on Linux.
            while let Ok(length @ 1..) = screen.read(&mut buffer) {
                if sender.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keys,
            child,
            output,
            screen: String::new(),
        }
    }

    /// Types.
    pub(super) fn type_keys(&mut self, keys: &[u8]) {
        self.keys.write_all(keys).expect("typed");
    }

    /// Gives the terminal another size.
    pub(super) fn resize(&self, rows: u16, columns: u16) {
        use std::os::fd::AsRawFd as _;
        let size = winsize(rows, columns);
        // SAFETY: reads one winsize from the pointer, which is valid for it.
        let set = unsafe { libc::ioctl(self.keys.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        assert_eq!(set, 0, "another size");
    }

    /// What the terminal gets next, if anything comes soon.
    pub(super) fn next_output(&self) -> Option<Vec<u8>> {
        self.output.recv_timeout(Duration::from_millis(50)).ok()
    }

    /// What the terminal still gets until nobody holds it, which a process that has
    /// ended does not.
    pub(super) fn rest(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        while let Ok(bytes) = self.output.recv_timeout(GUARD) {
            rest.extend(bytes);
        }
        rest
    }

    /// The process.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Takes what is shown until `wanted` holds or the run is over.
    pub(super) fn watch(&mut self, wanted: impl Fn(&str) -> bool) {
        let start = Instant::now();
        while !wanted(&self.screen) {
            match self.output.recv_timeout(GUARD) {
                Ok(bytes) => self.screen += &String::from_utf8_lossy(&bytes),
                Err(_) => return,
            }
            assert!(start.elapsed() < GUARD, "{}", self.screen);
        }
    }

    /// Answers the nth question, after a spinner would have been drawn over it.
    pub(super) fn answer(&mut self, nth: usize, keys: &[u8]) {
        self.watch(|screen| screen.matches(QUESTION).count() >= nth);
        std::thread::sleep(FRAMES);
        self.keys.write_all(keys).expect("typed");
    }

    /// What was shown, and the exit code.
    pub(super) fn end(mut self) -> (String, Option<i32>) {
        self.watch(|_| false);
        let status = self.child.wait().expect("an end");
        (self.screen, status.code())
    }
}

fn touch(names: &[&str]) -> Value {
    let calls = names.iter().map(|name| {
        let command = format!("touch {name}");
        json!({"name": "shell", "arguments": {"command": command}})
    });
    json!([{"tool_calls": calls.collect::<Vec<_>>()}, {"text": "Done."}])
}

fn files(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    names.sort();
    names
}

/// Plays one call per answer; checks which files came to be, the exit code, and
/// that nothing was drawn between a question and what was typed.
fn check(typed: &[u8], answers: &[&[u8]], expected: &[&str], code: i32) {
    let directory = scratch();
    let names = &["a", "b"][..answers.len()];
    let model = serve(touch(names));
    let mut terminal = Terminal::run(
        &model.url(),
        directory.path(),
        typed,
        &["--approve", "ask", "go"],
    );
    for (index, keys) in answers.iter().enumerate() {
        terminal.answer(index + 1, keys);
    }
    let (screen, ended) = terminal.end();
    assert_eq!(ended, Some(code), "{screen}");
    assert_eq!(files(directory.path()), expected, "{screen}");
    let parts: Vec<_> = screen.split(QUESTION).skip(1).collect();
    assert_eq!(parts.len(), answers.len(), "{screen}");
    for (part, keys) in parts.iter().zip(answers) {
        let shown = String::from_utf8_lossy(keys).replace('\n', "\r\n");
        let shown = shown.replace('\x03', "^C").replace('\x04', "");
        assert!(part.starts_with(&shown), "{part:?} after the question");
    }
    assert!(
        screen.contains("shell asks to do this:\r\n    touch "),
        "{screen}"
    );
    assert!(
        screen.contains("touch is not among the listed commands"),
        "{screen}"
    );
}

#[test]
fn yes_and_no() {
    check(b"", &[b"y\n", b"n\n"], &["a"], 0);
}

#[test]
fn a_yes_in_full() {
    check(b"", &[b"yes\n", b"Y\n"], &["a", "b"], 0);
}

#[test]
fn anything_else_is_a_no() {
    check(b"", &[b"sure\n", b"\n"], &[], 0);
    check(b"", &[b"\x04", b"yy\n"], &[], 0);
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    check(b"y\ny\n", &[b"n\n"], &[], 0);
}

#[test]
fn ctrl_c_at_a_question_ends_the_run() {
    check(b"", &[b"\x03"], &[], 130);
}

#[test]
fn always_is_for_the_same_command() {
    let directory = scratch();
    let model = serve(json!([
        {"tool_calls": [{"name": "shell", "arguments": {"command": "touch a; rm -f a; touch b"}}]},
        {"tool_calls": [{"name": "shell", "arguments": {"command": "touch a; rm -f a; touch b"}}]},
        {"tool_calls": [{"name": "shell", "arguments": {"command": "touch c"}}]},
        {"text": "Done."},
    ]));
    let mut terminal = Terminal::run(
        &model.url(),
        directory.path(),
        b"",
        &["--approve", "ask", "go"],
    );
    terminal.answer(1, b"a\n");
    terminal.answer(2, b"n\n");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(files(directory.path()), ["b"], "{screen}");
    assert_eq!(screen.matches(QUESTION).count(), 2, "{screen}");
    let named = "touch and rm are not among the listed commands";
    assert!(screen.contains(named), "{screen}");
    assert!(
        screen.contains("[a]lways for this command, [N]o: a"),
        "{screen}"
    );
}

#[test]
fn a_long_command_is_shown_to_its_end() {
    let directory = scratch();
    let lines: Vec<_> = (1..=100).map(|line| format!("touch file-{line}")).collect();
    let model = serve(json!([
        {"tool_calls": [{"name": "shell", "arguments": {"command": lines.join("\n")}}]},
        {"text": "Done."},
    ]));
    let mut terminal = Terminal::run(
        &model.url(),
        directory.path(),
        b"",
        &["--approve", "ask", "go"],
    );
    terminal.watch(|screen| screen.contains(QUESTION));
    let shown = terminal.screen.clone();
    let line = |number: usize| format!("    touch file-{number}\r\n");
    for number in [1, 40, 81, 100] {
        assert!(shown.contains(&line(number)), "{number}: {shown}");
    }
    assert!(shown.contains("… 40 more lines, "), "{shown}");
    assert!(!shown.contains(&line(60)), "{shown}");
    terminal.answer(1, b"v\n");
    terminal.answer(2, b"n\n");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains(&line(60)), "{screen}");
    assert_eq!(files(directory.path()), Vec::<String>::new());
}

/// The question about a call on the file `a` shows `shown`.
fn check_preview(call: &Value, provider: &str, shown: &[&str]) {
    let directory = scratch();
    std::fs::write(directory.path().join("a"), "one\ntwo\n").expect("a file");
    let model = serve(json!([{"tool_calls": [call]}, {"text": "Done."}]));
    let mut terminal = Terminal::run(
        &model.url(),
        directory.path(),
        b"",
        &["--provider", provider, "--approve", "always", "go"],
    );
    terminal.answer(1, b"n\n");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    let lines = shown.join("\r\n");
    assert!(screen.contains(&lines), "{screen}");
    assert!(
        screen.contains("[a]lways for this file, [N]o: "),
        "{screen}"
    );
    let kept = std::fs::read_to_string(directory.path().join("a"));
    assert_eq!(kept.expect("a file"), "one\ntwo\n");
}

#[test]
fn edits_are_shown_as_diffs() {
    let path = json!("a");
    for (name, arguments, provider, shown) in [
        (
            "write_file",
            json!({"file_path": path, "content": "one\n2\n"}),
            "anthropic",
            vec![
                "write_file asks to do this:",
                "    a:",
                "    @@ -1,2 +1,2 @@",
                "     one",
                "    -two",
                "    +2",
                "",
            ],
        ),
        (
            "edit_file",
            json!({"file_path": path, "old_string": "two", "new_string": "2"}),
            "anthropic",
            vec!["    -two", "    +2", ""],
        ),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Update File: a\n@@\n one\n-two\n+2\n*** End Patch\n"}),
            "openai",
            vec![
                "    *** Update File: a",
                "    @@",
                "     one",
                "    -two",
                "    +2",
                "",
            ],
        ),
        (
            "apply_patch",
            json!({"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"}),
            "openai",
            vec!["    *** Delete File: a", ""],
        ),
    ] {
        check_preview(
            &json!({"name": name, "arguments": arguments}),
            provider,
            &shown,
        );
    }
}

#[test]
fn without_a_terminal_nobody_is_asked() {
    let directory = scratch();
    let model = serve(touch(&["a"]));
    let mut command: Command = command(&model.url(), directory.path(), &["--approve", "ask", "go"]);
    command.stdin(Stdio::null());
    // SAFETY: safe between fork and exec; leaves the terminal of whoever tests.
    unsafe {
        command.pre_exec(|| {
            libc::setsid();
            Ok(())
        });
    }
    let output = command.output().expect("the binary");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(files(directory.path()), Vec::<String>::new());
    let requests = model.requests();
    let answer = String::from_utf8_lossy(&requests[1].body);
    assert!(answer.contains("not approved: "), "{answer}");
}

/// Interrupts a command that ignores polite signals, as does its child, which
/// holds the pipe; neither may outlive the run.
fn check_stubborn(keys: &[&[u8]], told: &str) {
    let directory = scratch();
    let canary = directory.path().join("canary");
    let beat = "trap '' TERM INT HUP; while true; do date +%s%N > canary; sleep 0.05; done";
    let line = format!("({beat}) & {beat}");
    let model = serve(json!([
        {"tool_calls": [{"name": "shell", "arguments": {"command": line}}]},
        {"text": "Done."}
    ]));
    let mut terminal = Terminal::run(&model.url(), directory.path(), b"", &["go"]);
    let start = Instant::now();
    while !canary.exists() {
        assert!(start.elapsed() < GUARD, "the command does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    for key in keys {
        terminal.keys.write_all(key).expect("typed");
        std::thread::sleep(FRAMES);
    }
    let (screen, ended) = terminal.end();
    assert_eq!(ended, Some(130), "{screen}");
    assert!(screen.contains(told), "{screen}");
    let last = std::fs::read(&canary).expect("a beat");
    std::thread::sleep(FRAMES);
    assert_eq!(std::fs::read(&canary).expect("a beat"), last, "{screen}");
}

#[test]
fn ctrl_c_once_ends_a_stubborn_command() {
    check_stubborn(&[b"\x03"], "hermitcrab: interrupted");
}

#[test]
fn ctrl_c_twice_kills_at_once() {
    check_stubborn(
        &[b"\x03", b"\x03"],
        "hermitcrab: killed: what it was doing has been cut off",
    );
}
