//! `--approve`: which calls need approval, and the question on the terminal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use hermitcrab::effect::Approval;
use hermitcrab::tool::approval::ApprovalSettings;
use hermitcrab_host::{ApprovalFn, ApprovalRequest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::cli::{Approve, RunOptions};
use crate::ground::Ground;
use crate::harmless::harmless;
use crate::preview;

/// Lines that a question shows of what it asks about, at its beginning and end.
const SHOWN: (usize, usize) = (40, 20);

/// A file beyond this size is not compared with what a call would write, in bytes.
const MAX_COMPARED: u64 = 256 << 10;

/// The rules behind the option (`docs/approval.md`).
pub(crate) fn settings(approve: Approve) -> ApprovalSettings {
    let list = |items: &[&str]| Some(items.iter().map(|item| (*item).to_owned()).collect());
    match approve {
        Approve::Never => ApprovalSettings::default(),
        Approve::Ask => ApprovalSettings {
            write_paths: list(&["**"]),
            commands: list(&["@safe"]),
            ..ApprovalSettings::default()
        },
        Approve::Always => ApprovalSettings {
            tools: [("*".to_owned(), hermitcrab::tool::approval::ToolRule::Ask)].into(),
            ..ApprovalSettings::default()
        },
    }
}

/// Questions that wait for their turn at the terminal.
pub(crate) struct Questions(mpsc::UnboundedReceiver<Turn>);

impl Questions {
    /// Nobody ever asks.
    pub(crate) fn none() -> Self {
        Self(mpsc::unbounded_channel().1)
    }

    /// The next question that somebody wants to ask.
    pub(crate) async fn next(&mut self) -> Turn {
        match self.0.recv().await {
            Some(turn) => turn,
            None => std::future::pending().await,
        }
    }
}

/// A question that may be asked when whoever writes to the terminal has stopped:
/// a spinner would draw over it.
pub(crate) struct Turn {
    begin: oneshot::Sender<()>,
    over: oneshot::Receiver<()>,
}

impl Turn {
    /// Has it asked. The terminal is free again when the receiver is ready, also
    /// when the question is given up.
    pub(crate) fn begin(self) -> oneshot::Receiver<()> {
        let _ = self.begin.send(());
        self.over
    }
}

/// Who is asked for approval.
pub(crate) fn approver(options: &RunOptions, ground: &Ground) -> (Option<ApprovalFn>, Questions) {
    if options.json || options.approve == Approve::Never {
        return (None, Questions::none());
    }
    let asked = on_terminal(match ground {
        Ground::Local(directory, ..) => Some(directory.clone()),
        Ground::Memory(..) => None,
    });
    match asked {
        Some((approver, questions)) => (Some(approver), questions),
        None => (None, Questions::none()),
    }
}

/// Who is asked: the person at the terminal, one question at a time. Without a
/// terminal there is nobody, and the core is told so. What files hold is looked
/// up in `directory`, where tools act on this machine.
fn on_terminal(directory: Option<PathBuf>) -> Option<(ApprovalFn, Questions)> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()?;
    let terminal = Arc::new(terminal);
    let directory = Arc::new(directory);
    let always = Arc::new(Mutex::new(BTreeSet::new()));
    let (turns, questions) = mpsc::unbounded_channel();
    let approver: ApprovalFn = Arc::new(move |request: ApprovalRequest| {
        let (terminal, directory) = (terminal.clone(), directory.clone());
        let call = Asked::new(&request);
        let key = call.key();
        let known = always.clone();
        if let Some(key) = &key
            && lock(&known).contains(key)
        {
            return futures_util::future::ready(Approval::Allow).boxed();
        }
        // Queued when the core asks, not when the future first runs: the
        // person reads the questions in the order of the calls.
        let (begin, begun) = oneshot::channel();
        let (asking, over) = oneshot::channel();
        let queued = turns.send(Turn { begin, over }).is_ok();
        async move {
            let _asking = asking;
            if !queued || begun.await.is_err() {
                return deny("the run is over");
            }
            // The question before may have been answered for this call, too.
            if let Some(key) = &key
                && lock(&known).contains(key)
            {
                return Approval::Allow;
            }
            let question = move || ask(&terminal, &call, directory.as_deref());
            match tokio::task::spawn_blocking(question).await {
                Ok(Ok(Answer::Yes)) => Approval::Allow,
                Ok(Ok(Answer::Always)) => {
                    lock(&known).extend(key);
                    Approval::Allow
                }
                Ok(Ok(Answer::No)) => deny("the user declined"),
                Ok(Err(_)) | Err(_) => deny("the terminal cannot be read"),
            }
        }
        .boxed()
    });
    Some((approver, Questions(questions)))
}

fn deny(reason: &str) -> Approval {
    Approval::Deny {
        reason: reason.to_owned(),
    }
}

type Known = Mutex<BTreeSet<String>>;

fn lock(known: &Known) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

enum Answer {
    Yes,
    Always,
    No,
}

/// A call that somebody is asked about.
struct Asked {
    tool: String,
    arguments: Value,
    reason: String,
}

impl Asked {
    fn new(request: &ApprovalRequest) -> Self {
        let arguments = serde_json::from_str(&request.arguments);
        Self {
            tool: request.tool_name.clone(),
            arguments: arguments.unwrap_or_else(|_| Value::from(request.arguments.clone())),
            reason: request.reason.clone(),
        }
    }

    /// What "always" is for: this command in this directory, or this file.
    fn key(&self) -> Option<String> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        let what = match text("command") {
            Some(command) => [command, text("working_dir").unwrap_or_default()],
            None => [text("file_path")?, ""],
        };
        Some([self.tool.as_str(), what[0], what[1]].join("\0"))
    }

    fn choices(&self, whole: bool) -> String {
        let mut choices = vec!["[y]es"];
        match (self.key(), self.arguments.get("command")) {
            (None, _) => {}
            (Some(_), Some(_)) => choices.push("[a]lways for this command"),
            (Some(_), None) => choices.push("[a]lways for this file"),
        }
        if !whole {
            choices.push("[v]iew all of it");
        }
        choices.push("[N]o");
        choices.join(", ")
    }
}

/// Anything but a yes is a no, and what was typed before the question is no
/// answer to it.
fn ask(mut terminal: &File, call: &Asked, directory: Option<&Path>) -> std::io::Result<Answer> {
    let read = |path: &str| read_file(&directory?.join(path));
    let lines = preview::lines(&call.arguments, read);
    let (shown, whole) = preview::ends(&lines, SHOWN.0, SHOWN.1);
    forget_typed(terminal);
    let tool = harmless(&call.tool);
    write!(terminal, "\n{tool} asks to do this:\n")?;
    show(terminal, &shown)?;
    loop {
        write!(
            terminal,
            "{}\nAllow it? {}: ",
            harmless(&call.reason),
            call.choices(whole)
        )?;
        let mut answer = Vec::new();
        BufReader::new(terminal).read_until(b'\n', &mut answer)?;
        match answer.trim_ascii() {
            b"y" | b"Y" | b"yes" => return Ok(Answer::Yes),
            b"a" | b"A" | b"always" if call.key().is_some() => return Ok(Answer::Always),
            b"v" | b"V" | b"view" if !whole => show(terminal, &lines)?,
            _ => return Ok(Answer::No),
        }
    }
}

fn show(mut terminal: &File, lines: &[String]) -> std::io::Result<()> {
    let mut text = String::new();
    for line in lines {
        text.push_str("    ");
        text.push_str(line);
        text.push('\n');
    }
    terminal.write_all(text.as_bytes())
}

/// What the file holds, if it is text of a size that can be compared.
fn read_file(path: &Path) -> Option<String> {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let file = is_file.then(|| File::open(path).ok())??;
    let mut bytes = Vec::new();
    file.take(MAX_COMPARED + 1).read_to_end(&mut bytes).ok()?;
    String::from_utf8(bytes)
        .ok()
        .filter(|text| text.len() as u64 <= MAX_COMPARED)
}

#[cfg(unix)]
fn forget_typed(terminal: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: takes and returns plain numbers. If it fails, an early answer
    // counts, as on any terminal.
    unsafe { nix::libc::tcflush(terminal.as_raw_fd(), nix::libc::TCIFLUSH) };
}

#[cfg(not(unix))]
fn forget_typed(_: &File) {}

#[cfg(test)]
mod tests {
    use hermitcrab::tool::CommandLine;
    use hermitcrab::tool::approval::{ApprovalPolicy, Proposal, Verdict};

    use super::*;

    fn check(approve: Approve, command: &str, allowed: bool) {
        let policy = ApprovalPolicy::new(&settings(approve)).expect("valid settings");
        let verdict = policy.judge(&Proposal {
            tool_name: "shell",
            kind: "shell",
            writes: &[],
            command: Some(&CommandLine {
                text: command.to_owned(),
                working_dir: None,
            }),
            working_directory: "/work",
            links: &std::collections::BTreeMap::new(),
        });
        assert_eq!(
            verdict == Verdict::Allow,
            allowed,
            "{approve:?} {command}: {verdict:?}"
        );
    }

    #[test]
    fn what_is_asked() {
        check(Approve::Never, "rm -rf .", true);
        check(Approve::Ask, "ls -l | head", true);
        check(Approve::Ask, "rm -rf .", false);
        check(Approve::Ask, "ls > /etc/x", false);
        check(Approve::Always, "ls", false);
    }
}
