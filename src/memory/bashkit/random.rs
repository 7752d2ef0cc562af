//! `$RANDOM` and `$SECONDS`.
//!
//! bashkit seeds `$RANDOM` from a hash state that is equal in every instance, and counts
//! `$SECONDS` from the time at which the shell was built.
//!
//! Seen in bashkit 0.20.2; two runs of one seed, without this file.

/// What has to run before a command. Assigning is the only way to seed it; in front of
/// the command it costs a tenth of what a separate run does.
pub(in crate::memory) fn preamble(seed: u32) -> String {
    format!("RANDOM={seed} SECONDS=0; ")
}
