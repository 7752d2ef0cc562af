//! What the session suites share: cases as data, faces that play them,
//! transcripts made comparable, and a harness that names each case.

#![allow(dead_code, unreachable_pub, reason = "each suite uses its part")]
#![allow(missing_docs, reason = "test support")]

pub mod bench;
pub mod case;
pub mod direct;
pub mod face;
pub mod golden;
pub mod harness;
pub mod hosted;
pub mod normalise;
pub mod own;
pub mod play;
pub mod request;
pub mod tree;
