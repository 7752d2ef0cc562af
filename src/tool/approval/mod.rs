//! Approval: which calls run, which need the host's word, and which are
//! refused.
//!
//! A pure judgement of what a call says that it would do. It never runs,
//! reads or writes anything, and it is a guard, not a boundary: see
//! `docs/approval.md`.

mod policy;
mod settings;

mod path;

mod safe;

#[cfg(feature = "analysis")]
mod command;
#[cfg(feature = "analysis")]
mod names;

#[cfg(feature = "analysis")]
mod awk;
#[cfg(feature = "analysis")]
mod sed;

#[cfg(feature = "analysis")]
mod script;

pub(crate) use policy::GitCalls;
pub use policy::{ApprovalPolicy, Proposal, Verdict};
pub use safe::safe_commands;
pub use settings::{ApprovalSettings, ToolRule};
