//! `--approve`: which calls need approval, and the question on the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;

use futures_util::FutureExt as _;
use hermitcrab::effect::Approval;
use hermitcrab::tool::approval::ApprovalSettings;
use hermitcrab_host::{ApprovalFn, ApprovalRequest};

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

/// Who is asked: the person at the terminal, one question at a time. Without a
/// terminal there is nobody, and the core is told so.
pub(crate) fn on_terminal() -> Option<ApprovalFn> {
    let terminal = File::options()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()?;
    let terminal = Arc::new(tokio::sync::Mutex::new(terminal));
    Some(Arc::new(move |request: ApprovalRequest| {
        let terminal = terminal.clone();
        async move {
            let terminal = terminal.lock_owned().await;
            let asked = tokio::task::spawn_blocking(move || ask(&terminal, &request));
            match asked.await {
                Ok(Ok(true)) => Approval::Allow,
                Ok(Ok(false)) => deny("the user declined"),
                Ok(Err(_)) | Err(_) => deny("the terminal cannot be read"),
            }
        }
        .boxed()
    }))
}

fn deny(reason: &str) -> Approval {
    Approval::Deny {
        reason: reason.to_owned(),
    }
}

/// Anything but a yes is a no.
fn ask(mut terminal: &File, request: &ApprovalRequest) -> std::io::Result<bool> {
    let mut arguments: String = request.arguments.chars().take(SHOWN).collect();
    if arguments.len() < request.arguments.len() {
        arguments.push('…');
    }
    write!(
        terminal,
        "\r\n{} {}\r\n{}. Allow it? [y/N] ",
        harmless(&request.tool_name),
        harmless(&arguments),
        harmless(&request.reason)
    )?;
    let mut answer = String::new();
    BufReader::new(terminal).read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

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
