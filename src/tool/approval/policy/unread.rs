//! The judgement of a command by a build that cannot read it.

use super::{ApprovalPolicy, GitCalls, Proposal};

pub(super) fn redirects(_text: &str) -> Vec<String> {
    Vec::new()
}

/// What runs without a question is a listed text.
pub(super) fn git(text: &str) -> GitCalls {
    match text.trim_start().starts_with("git ") {
        true => GitCalls::Reading,
        false => GitCalls::None,
    }
}

impl ApprovalPolicy {
    pub(super) fn read(&self, _text: &str, _elsewhere: bool, _: &Proposal) -> Option<String> {
        Some("this build cannot read commands".to_owned())
    }
}
