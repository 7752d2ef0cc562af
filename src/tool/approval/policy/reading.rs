//! The judgement of a command by what it says that it would do.

use super::super::command;
use super::super::names::names;
use super::super::script::{Argument, Script, read};
use super::super::settings::normalised;
use super::{ApprovalPolicy, Proposal};

/// Files that every program may write to.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// Files that redirects of `text` write, as far as they are known.
pub(super) fn redirects(text: &str) -> Vec<String> {
    let script = names().map(|names| read(text, names));
    let targets = script.into_iter().flat_map(|script| script.writes);
    let targets = targets.filter_map(|target| match target {
        Argument::Literal(path) if !(is_device(&path) && path.starts_with('/')) => Some(path),
        _ => None,
    });
    targets.collect()
}

impl ApprovalPolicy {
    /// Why `text` asks, if it does; `elsewhere`: not in the working directory.
    pub(super) fn read(&self, text: &str, elsewhere: bool, proposal: &Proposal) -> Option<String> {
        let Some(names) = names() else {
            return Some("nothing is known about commands".to_owned());
        };
        let mut script = read(text, names);
        script.changes_directory |= elsewhere;
        if let Some(concern) = script.concerns.first() {
            return Some(concern.clone());
        }
        if let Some(commands) = &self.commands {
            let concern = script.calls.iter().find_map(|call| {
                command::concern(call, &commands.listed, names, script.changes_directory)
            });
            if concern.is_some() {
                return concern;
            }
        }
        self.redirects(&script, proposal)
    }

    fn redirects(&self, script: &Script, proposal: &Proposal) -> Option<String> {
        script.writes.iter().find_map(|target| {
            let Argument::Literal(path) = target else {
                return Some("it writes a file whose name is only known when it runs".to_owned());
            };
            if is_device(path) && path.starts_with('/') {
                return None;
            }
            let Some(rule) = &self.write_paths else {
                return Some(format!("it writes {path}"));
            };
            if script.changes_directory && !path.starts_with('/') {
                return Some(format!("it writes {path} after a change of directory"));
            }
            rule.concern(proposal.working_directory, proposal.links, path)
        })
    }
}

/// Whether writing to `path` changes no file.
fn is_device(path: &str) -> bool {
    let path = normalised("/", path);
    let descriptor = path.strip_prefix("/dev/fd/");
    DEVICES.contains(&path.as_str())
        || descriptor.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}
