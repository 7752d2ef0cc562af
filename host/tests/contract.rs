//! One contract, every environment: the clauses of `tests/contract` over each
//! environment of this machine, through a core's jobs and effects.

mod support;

use std::process::ExitCode;

use support::bench::{self, Bench, Clause, Log, Need, Wrap, WrapName};
use support::direct::DirectBench;
use support::harness::{self, Trial};

fn main() -> ExitCode {
    let mut trials = Vec::new();
    for name in bench::names() {
        let clause = match Clause::load(&name) {
            Ok(clause) => clause,
            Err(why) => {
                trials.push(Trial::new(name, move || Err(why.clone())));
                continue;
            }
        };
        for subject in SUBJECTS {
            if clause.needs.iter().all(|need| subject.has.contains(need)) {
                let clause = clause.clone();
                trials.push(Trial::new(format!("{}::{name}", subject.name), move || {
                    check(&clause, subject)
                }));
            }
        }
    }
    harness::main(trials)
}

/// An environment behind a core.
struct Subject {
    name: &'static str,
    has: &'static [Need],
    bench: fn(&Clause, Wrap) -> Result<Box<dyn Bench>, String>,
}

static SUBJECTS: &[Subject] = &[Subject {
    name: "native_local",
    has: &[Need::Commands, Need::Local],
    bench: |clause, wrap| Ok(Box::new(DirectBench::new(&clause.files(), wrap)?)),
}];

fn check(clause: &Clause, subject: &Subject) -> Result<(), String> {
    let log = Log::default();
    let wrap = match clause.wrap {
        WrapName::None => Wrap::None,
        WrapName::ReadOnly => Wrap::ReadOnly,
        WrapName::ReadOnlyWithCommands => Wrap::ReadOnlyWithCommands,
        WrapName::Logging => Wrap::Logging(log.clone()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let bench = (subject.bench)(clause, wrap)?;
    runtime.block_on(clause.check(bench.as_ref(), &log))
}
