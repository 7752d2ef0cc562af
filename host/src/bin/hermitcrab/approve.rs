//! `--approve`: which calls need approval, and the question on the terminal.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use hermitcrab::effect::Approval;
use hermitcrab::session::SessionConfig;
use hermitcrab::tool::apply_patch;
use hermitcrab::tool::approval::ApprovalSettings;
use hermitcrab_host::{ApprovalFn, ApprovalRequest};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::cli::{Approve, RunOptions};
use crate::harmless::harmless;
use crate::preview;
use crate::workspace::Workspace;

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

/// Questions that somebody waits for an answer to, in the order of the calls.
pub(crate) struct Questions {
    waiting: mpsc::UnboundedReceiver<Question>,
    known: Known,
}

impl Questions {
    /// Nobody ever asks.
    pub(crate) fn none() -> Self {
        Self {
            waiting: mpsc::unbounded_channel().1,
            known: Known::default(),
        }
    }

    /// The next question; those that an "always" answers are answered so.
    pub(crate) async fn next(&mut self) -> Question {
        loop {
            let Some(question) = self.waiting.recv().await else {
                return std::future::pending().await;
            };
            if question.call.is_known(&self.known) {
                question.answer(Decision::Once);
            } else if !question.reply.is_closed() {
                return question;
            }
        }
    }
}

/// A call that somebody is asked about.
pub(crate) struct Question {
    /// The call.
    pub(crate) call: Asked,
    /// Where tools act, if that is on this machine.
    pub(crate) directory: Arc<Option<PathBuf>>,
    reply: oneshot::Sender<Approval>,
    known: Known,
}

impl Question {
    /// One about a call, and who waits for the answer.
    #[cfg(test)]
    pub(crate) fn of(tool: &str, arguments: Value) -> (Self, oneshot::Receiver<Approval>) {
        let (reply, answer) = oneshot::channel();
        let question = Self {
            call: Asked {
                tool: tool.to_owned(),
                arguments,
                reason: String::new(),
            },
            directory: Arc::default(),
            reply,
            known: Known::default(),
        };
        (question, answer)
    }

    /// Gives the answer.
    pub(crate) fn answer(self, answer: Decision) {
        let approval = match answer {
            Decision::Once => Approval::Allow,
            Decision::Always => {
                lock(&self.known).extend(self.call.keys());
                Approval::Allow
            }
            Decision::No(reason) => deny(&reason),
        };
        let _ = self.reply.send(approval);
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    /// The lines of what the call would do.
    pub(crate) fn lines(&self) -> Vec<String> {
        let directory = self.directory.as_deref();
        let read = |path: &str| read_file(&directory?.join(self.call.place()).join(path));
        preview::lines(&self.call.arguments, read)
    }

    /// Asks on the terminal. It is free again when the receiver is ready, also when the
    /// question is given up.
    pub(crate) fn ask(mut self) -> oneshot::Receiver<()> {
        let (asking, over) = oneshot::channel::<()>();
        tokio::spawn(async move {
            let _asking = asking;
            let (call, directory) = (self.call.clone(), self.directory.clone());
            let ask = tokio::task::spawn_blocking(move || {
                let terminal = terminal()?;
                ask(&terminal, &call, directory.as_deref())
            });
            let answer = tokio::select! {
                () = self.reply.closed() => return,
                answer = ask => answer,
            };
            self.answer(match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => Decision::No("the terminal cannot be read".to_owned()),
            });
        });
        over
    }
}

/// Who is asked for approval: the person at the terminal, one question at a time. Without
/// a terminal there is nobody, and the core learns so.
pub(crate) fn approver(
    options: &RunOptions,
    config: &SessionConfig,
    workspace: &Workspace,
) -> (Option<ApprovalFn>, Questions) {
    let nobody = options.json || config.approval == ApprovalSettings::default();
    if options.chat.is_none() && (nobody || terminal().is_err()) {
        return (None, Questions::none());
    }
    let directory = Arc::new(match workspace {
        Workspace::Local(machine) => Some(machine.directory.clone()),
        Workspace::Memory(..) | Workspace::Elsewhere(..) => None,
    });
    let known = Known::default();
    let (sender, waiting) = mpsc::unbounded_channel();
    let questions = Questions {
        waiting,
        known: known.clone(),
    };
    let approver: ApprovalFn = Arc::new(move |request: ApprovalRequest| {
        let call = Asked::new(&request);
        if call.is_known(&known) {
            return futures_util::future::ready(Approval::Allow).boxed();
        }
        // Queued when the core asks, not when the future first runs: the person reads
        // the questions in the order of the calls.
        let (reply, answer) = oneshot::channel();
        let queued = sender.send(Question {
            call,
            directory: directory.clone(),
            reply,
            known: known.clone(),
        });
        async move {
            match queued {
                Ok(()) => answer.await.unwrap_or_else(|_| deny("the run is over")),
                Err(_) => deny("the run is over"),
            }
        }
        .boxed()
    });
    (Some(approver), questions)
}

fn terminal() -> std::io::Result<File> {
    File::options().read(true).write(true).open("/dev/tty")
}

fn deny(reason: &str) -> Approval {
    Approval::Deny {
        reason: reason.to_owned(),
    }
}

/// What was answered with "always".
type Known = Arc<Mutex<BTreeSet<String>>>;

fn lock(known: &Known) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a person says to a call.
pub(crate) enum Decision {
    /// Yes.
    Once,
    /// Yes, and to each that is like it.
    Always,
    /// No, with a reason that the model reads.
    No(String),
}

/// What a person says who gives no reason.
pub(crate) const DECLINED: &str = "the user declined";

/// A call that needs approval.
#[derive(Clone)]
pub(crate) struct Asked {
    /// Tool.
    pub(crate) tool: String,
    /// Its arguments.
    pub(crate) arguments: Value,
    /// Why it needs approval.
    pub(crate) reason: String,
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

    /// Where its paths and commands start, if that is not the session's directory: a
    /// command names it, and for a subagent the core does.
    fn place(&self) -> &str {
        let place = self.arguments.get("working_dir");
        place.and_then(Value::as_str).unwrap_or_default()
    }

    /// What "always" is for: this command in this directory, or these files; nothing
    /// where the call is neither.
    fn keys(&self) -> BTreeSet<String> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str);
        let key = |what: &str| [self.tool.as_str(), what, self.place()].join("\0");
        if let Some(command) = text("command") {
            return [key(command)].into();
        }
        if let Some(patch) = text("patch") {
            let patch = apply_patch::parse(patch).unwrap_or_default();
            return patch.paths().map(key).collect();
        }
        text("file_path").map(key).into_iter().collect()
    }

    /// Whether an "always" answers it.
    fn is_known(&self, known: &Known) -> bool {
        let keys = self.keys();
        !keys.is_empty() && keys.is_subset(&lock(known))
    }

    /// The choice that answers all calls that are like this one, if there is one.
    pub(crate) fn always(&self) -> Option<&'static str> {
        match (self.keys().len(), self.arguments.get("command")) {
            (0, _) => None,
            (_, Some(_)) => Some("[a]lways for this command"),
            (1, None) => Some("[a]lways for this file"),
            (_, None) => Some("[a]lways for these files"),
        }
    }

    fn choices(&self, whole: bool) -> String {
        let mut choices = vec!["[y]es"];
        choices.extend(self.always());
        if !whole {
            choices.push("[v]iew all of it");
        }
        choices.push("[N]o");
        choices.join(", ")
    }
}

/// Anything but a yes is a no, and what was typed before the question is no
/// answer to it.
fn ask(mut terminal: &File, call: &Asked, directory: Option<&Path>) -> std::io::Result<Decision> {
    let read = |path: &str| read_file(&directory?.join(call.place()).join(path));
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
            b"y" | b"Y" | b"yes" => return Ok(Decision::Once),
            b"a" | b"A" | b"always" if call.always().is_some() => return Ok(Decision::Always),
            b"v" | b"V" | b"view" if !whole => show(terminal, &lines)?,
            _ => return Ok(Decision::No(DECLINED.to_owned())),
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
    use serde_json::json;

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

    fn asked(tool: &str, arguments: Value) -> Asked {
        Question::of(tool, arguments).0.call
    }

    #[test]
    fn what_always_is_for() {
        let known = Known::default();
        let patch = |text: &str| {
            let patch = format!("*** Begin Patch\n{text}*** End Patch");
            asked("apply_patch", json!({ "patch": patch }))
        };
        let both = patch("*** Delete File: a\n*** Update File: b\n*** Move to: c\n-x\n+y\n");
        assert_eq!(both.always(), Some("[a]lways for these files"));
        lock(&known).extend(both.keys());
        assert!(both.is_known(&known));
        let add = patch("*** Add File: c\n+x\n");
        assert_eq!(add.always(), Some("[a]lways for this file"));
        assert!(add.is_known(&known));
        assert!(!patch("*** Add File: c\n+x\n*** Delete File: d\n").is_known(&known));
        assert!(!asked("write_file", json!({"file_path": "c"})).is_known(&known));

        let command = asked("shell", json!({"command": "make"}));
        assert_eq!(command.always(), Some("[a]lways for this command"));
        lock(&known).extend(command.keys());
        assert!(command.is_known(&known));
        let elsewhere = json!({"command": "make", "working_dir": "e"});
        assert!(!asked("shell", elsewhere).is_known(&known));

        let file = json!({"file_path": "f"});
        lock(&known).extend(asked("write_file", file.clone()).keys());
        assert!(asked("write_file", file).is_known(&known));
        // What a subagent would write is another file.
        let of_agent = json!({"file_path": "f", "working_dir": "/w/sub"});
        assert!(!asked("write_file", of_agent).is_known(&known));

        for other in [json!({"patch": "x"}), json!({"url": "x"})] {
            let other = asked("apply_patch", other);
            assert_eq!(other.always(), None);
            assert!(!other.is_known(&known));
        }
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
