//! `--approve`: which calls need approval, and the question on the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use futures_util::FutureExt as _;
use hermitcrab::effect::Approval;
use hermitcrab::tool::approval::ApprovalSettings;
use hermitcrab_host::{ApprovalFn, ApprovalRequest};
use tokio::sync::{mpsc, oneshot};

use crate::cli::Approve;
use crate::render::harmless;

/// Characters of the arguments that are shown.
const SHOWN: usize = 2_000;

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

/// Who is asked: the person at the terminal, one question at a time. Without a
/// terminal there is nobody, and the core is told so.
pub(crate) fn on_terminal() -> Option<(ApprovalFn, Questions)> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()?;
    let terminal = Arc::new(terminal);
    let (turns, questions) = mpsc::unbounded_channel();
    let approver: ApprovalFn = Arc::new(move |request: ApprovalRequest| {
        let terminal = terminal.clone();
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
            let asked = tokio::task::spawn_blocking(move || ask(&terminal, &request));
            match asked.await {
                Ok(Ok(true)) => Approval::Allow,
                Ok(Ok(false)) => deny("the user declined"),
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

/// Anything but a yes is a no, and what was typed before the question is no
/// answer to it.
fn ask(mut terminal: &File, request: &ApprovalRequest) -> std::io::Result<bool> {
    let mut arguments: String = request.arguments.chars().take(SHOWN).collect();
    if arguments.len() < request.arguments.len() {
        arguments.push('…');
    }
    forget_typed(terminal);
    write!(
        terminal,
        "\r\n{} {}\r\n{}. Allow it? [y/N] ",
        harmless(&request.tool_name),
        harmless(&arguments),
        harmless(&request.reason)
    )?;
    let mut answer = Vec::new();
    BufReader::new(terminal).read_until(b'\n', &mut answer)?;
    Ok(matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes"))
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
