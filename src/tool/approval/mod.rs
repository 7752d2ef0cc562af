//! Approval: which calls run, which need the host's word, and which are
//! refused.
//!
//! A pure judgement of what a call says that it would do. It never runs,
//! reads or writes anything, and it is a guard, not a boundary: see
//! `docs/approval.md`.

mod policy;
mod settings;

mod path;

mod command;
mod names;

mod awk;
mod sed;

mod script;

pub use names::safe_commands;
pub use policy::{ApprovalPolicy, Proposal, Verdict};
pub use settings::{ApprovalSettings, ToolRule};
