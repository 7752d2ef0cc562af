//! `rg` and its table of file types.
//!
//! bashkit makes it once in a process: the first command would be charged for it, and
//! no replay of it in a process that has it already.
//!
//! Seen in bashkit 0.20.2; two runs of one seed, without this file.

use std::sync::atomic::{AtomicBool, Ordering};

use bashkit::Bash;
use futures_util::FutureExt as _;

use super::script::Script;

/// Makes the table, if `script` may need it.
pub(in crate::memory) fn warm_up(script: &Script) {
    static IS_WARM: AtomicBool = AtomicBool::new(false);
    if script.leftovers.names("rg") && !IS_WARM.swap(true, Ordering::Relaxed) {
        // It lists them, which waits for nothing.
        let _ = Bash::new().exec("rg --type-list").now_or_never();
    }
}
