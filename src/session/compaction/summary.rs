//! What the model reads in place of what went.

use crate::llm::{Message, Role};

/// With a place for the summary.
const SUMMARY: &str = include_str!("summary.md");

/// The message that stands for what `summary` tells.
pub(in crate::session) fn message(summary: &str) -> Message {
    Message::text(Role::User, SUMMARY.replace("{summary}", summary).trim_end())
}
