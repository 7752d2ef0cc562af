//! The judgement of a command by a build that cannot read it.

use super::{ApprovalPolicy, Proposal};

pub(super) fn redirects(_text: &str) -> Vec<String> {
    Vec::new()
}

impl ApprovalPolicy {
    pub(super) fn read(&self, _text: &str, _elsewhere: bool, _: &Proposal) -> Option<String> {
        Some("this build cannot read commands".to_owned())
    }
}
