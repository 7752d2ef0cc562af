//! The tool `apply_patch`, through the pipeline of a tool call and below it.
//!
//! `cases.json` holds one patch per case with what must come of it; the same
//! cases are compared with codex in `tests/peers/apply-patch.mjs`.
//! `UPDATE_FIXTURES=1 cargo test --test apply_patch` rewrites what is expected;
//! read the diff before believing it.

mod calls;
mod cases;
mod grammar;
mod random;
mod support;
mod tree;
