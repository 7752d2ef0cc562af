//! Programs that a host lends to sandboxes: what a call tells one and what it
//! answers, the file tree that a WebAssembly program works on, Python, and commands
//! of WASI.
//! Nothing here touches files, network or variables of the machine, but the
//! archive of Python and the cache of what is compiled of it.

mod archive;
mod command;
mod kept;
mod machine;
mod output;
mod python;
mod runner;
mod stop;
mod tree;
mod wasi;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use hermitcrab::environment::{ProgramRequest, ProgramResult};
use tokio_util::sync::CancellationToken;

pub use command::WasiCommand;
pub use python::{Python, PythonBuilder};

/// Runs a program lent to the in-memory shell.
///
/// What it answers counts, also after [`ProgramCall::cancel`] has fired: what it
/// had printed is kept then. Dropping the future ends the call; that happens
/// 2.4 s after the cancel at the latest.
pub type ProgramFn = Arc<dyn Fn(ProgramCall) -> BoxFuture<'static, ProgramResult> + Send + Sync>;

/// One call of a lent program.
#[derive(Clone, Debug)]
pub struct ProgramCall {
    /// Arguments, variables, standard input and the changes of the files.
    pub request: ProgramRequest,
    /// The sandbox, by a number that no other one of this process has. Together
    /// with the program's name it says what the states in `request` are of.
    pub sandbox: u64,
    /// Fires at the time limit of the command and when it is cancelled.
    pub cancel: CancellationToken,
}

/// What is lent to one sandbox.
pub(crate) struct Lent {
    /// Its number in this process.
    pub(crate) sandbox: u64,
    /// By name.
    pub(crate) programs: BTreeMap<String, ProgramFn>,
}

impl Lent {
    /// For a new sandbox.
    pub(crate) fn new(programs: BTreeMap<String, ProgramFn>) -> Self {
        static SANDBOXES: AtomicU64 = AtomicU64::new(1);
        Self {
            sandbox: SANDBOXES.fetch_add(1, Ordering::Relaxed),
            programs,
        }
    }
}
