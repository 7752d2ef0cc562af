//! The judgement of a command by what it says that it would do.

use super::super::command::{self, is_git};
use super::super::names::names;
use super::super::script::{Argument, Script, read};
use super::super::settings::normalised;
use super::{ApprovalPolicy, Commands, GitCalls, Proposal};

/// Files that redirects of `text` write, as far as they are known.
pub(super) fn redirects(text: &str) -> Vec<String> {
    let Some(script) = names().map(|names| read(text, names)) else {
        return Vec::new();
    };
    let is_file = |path: &str| !(is_device(path, script.opens) && path.starts_with('/'));
    let targets = script.writes.iter().filter_map(Argument::literal);
    targets
        .filter(|path| is_file(path))
        .map(str::to_owned)
        .collect()
}

/// What git is called for in `text`.
pub(super) fn git(text: &str) -> GitCalls {
    let Some(names) = names() else {
        return GitCalls::None;
    };
    let script = read(text, names);
    let calls = script.calls.iter().filter(|call| is_git(call));
    let (reading, others): (Vec<_>, Vec<_>) =
        calls.partition(|call| command::only_reads(call, names));
    match (reading.is_empty(), others.is_empty()) {
        (true, _) => GitCalls::None,
        (false, true) => GitCalls::Reading,
        (false, false) => GitCalls::Mixed,
    }
}

impl ApprovalPolicy {
    /// Why `text` asks, if it does; `elsewhere`: not in the working directory.
    pub(super) fn read(&self, text: &str, elsewhere: bool, proposal: &Proposal) -> Option<String> {
        let Some(names) = names() else {
            return Some("nothing is known about commands".to_owned());
        };
        let mut script = read(text, names);
        script.changes_directory &= !stays(&script, proposal.working_directory);
        script.changes_directory |= elsewhere;
        // Who is asked sees every reason, and every command that is not listed.
        let mut reasons: Vec<String> = Vec::new();
        let mut unlisted: Vec<&str> = Vec::new();
        for concern in &script.concerns {
            add(&mut reasons, concern.clone());
        }
        if let Some(Commands { listed, .. }) = &self.commands {
            for call in &script.calls {
                let name = call.name.as_str();
                match command::concern(call, listed, names, script.changes_directory) {
                    Some(concern) if concern != command::unlisted(&[name]) => {
                        add(&mut reasons, concern);
                    }
                    Some(_) if !unlisted.contains(&name) => unlisted.push(name),
                    _ => {}
                }
            }
        }
        if !unlisted.is_empty() {
            reasons.push(command::unlisted(&unlisted));
        }
        for concern in self.redirects(&script, proposal) {
            add(&mut reasons, concern);
        }
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }

    fn redirects(&self, script: &Script, proposal: &Proposal) -> Vec<String> {
        let concerns = script.writes.iter().filter_map(|target| {
            let Argument::Literal(path) = target else {
                return Some("it writes a file whose name is only known when it runs".to_owned());
            };
            if is_device(path, script.opens) && path.starts_with('/') {
                return None;
            }
            let Some(rule) = &self.write_paths else {
                return Some(format!("it writes {path}"));
            };
            if script.changes_directory && !path.starts_with('/') {
                return Some(format!("it writes {path} after a change of directory"));
            }
            rule.concern(proposal.working_directory, proposal.links, path)
        });
        concerns.collect()
    }
}

fn add(reasons: &mut Vec<String>, reason: String) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

/// Whether every change of directory surely leads to the working directory.
fn stays(script: &Script, working_directory: &str) -> bool {
    let mut changes = script
        .calls
        .iter()
        .filter(|call| matches!(call.name.as_str(), "cd" | "pushd" | "popd"));
    changes.all(|call| match call.arguments.as_slice() {
        [Argument::Literal(path)] if call.name == "cd" => {
            path == "." || path.starts_with('/') && path.trim_end_matches('/') == working_directory
        }
        _ => false,
    })
}

/// Whether writing to `path` changes no file; `opens`: not even where the script opens
/// files to read.
fn is_device(path: &str, opens: bool) -> bool {
    let path = normalised("/", path);
    let descriptor = path.strip_prefix("/dev/fd/");
    match path.as_str() {
        "/dev/null" | "/dev/tty" => true,
        "/dev/stdout" | "/dev/stderr" => !opens,
        _ => {
            !opens
                && descriptor.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
        }
    }
}
