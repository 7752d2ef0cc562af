//! Containment by JavaScript, which catches what is thrown through the module:
//! traps, an exhausted stack, and what [`leave`] throws.

use std::cell::RefCell;

use super::host::Host;
use crate::memory::containment::{self, Containment};

thread_local! {
    /// Any host will do: all cores of a module share its stack.
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// Commands are contained by `host` from now on.
pub(super) fn offer(host: &Host) {
    HOST.set(Some(host.clone()));
    containment::offer(Containment { run, leave });
}

fn run(work: &mut dyn FnMut()) -> Result<(), String> {
    HOST.with_borrow(|host| {
        let Some(host) = host else {
            work();
            return Ok(());
        };
        match host.contain(&mut || work()) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(_) => Err("it could not be contained".to_owned()),
        }
    })
}

fn leave(reason: &str) -> ! {
    wasm_bindgen::throw_str(reason)
}
