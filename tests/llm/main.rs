//! The model client played through fixtures: requests to bytes, bytes to
//! events, errors, retries. Numbers in comments refer to the conformance
//! checklist of the LLM-client brief (§14).
//!
//! `README.md` lists the cases with their tests, and `conformance.rs` checks it.
//!
//! `UPDATE_FIXTURES=1 cargo test --test llm` rewrites what is expected; read
//! the diff before believing it.

mod catalogue;
mod client;
mod conformance;
mod errors;
mod heads;
mod prefix;
mod requests;
mod retry;
mod sse;
mod streams;
mod support;
