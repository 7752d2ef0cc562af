//! One contract, every environment: the clauses of `tests/contract` over each
//! environment of this machine, through a core's jobs and effects.

mod support;

use std::process::ExitCode;

use futures_util::future::BoxFuture;
use support::bench::{self, Bench, Clause, Log, Need, Wrap, WrapName};
use support::direct::DirectBench;
use support::harness::{self, Trial};
use support::hosted::{CoreKind, HostedBench, World};

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
            let fits = clause.needs.iter().all(|need| subject.has.contains(need));
            if fits {
                let clause = clause.clone();
                trials.push(Trial::new(format!("{}::{name}", subject.name), move || {
                    check(&clause, subject)
                }));
            }
        }
    }
    harness::main(trials)
}

/// Prepares the environment that a clause talks about.
type MakeBench = for<'a> fn(&'a Clause, Wrap) -> BoxFuture<'a, Result<Box<dyn Bench>, String>>;

/// An environment behind a core.
struct Subject {
    name: &'static str,
    has: &'static [Need],
    bench: MakeBench,
}

static SUBJECTS: &[Subject] = &[
    Subject {
        name: "native_local",
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(async { boxed(DirectBench::new(&clause.files(), wrap)) }),
    },
    Subject {
        name: "component_local",
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Local, clause, wrap)),
    },
    Subject {
        name: "component_own",
        has: &[Need::Commands, Need::Local],
        bench: |clause, wrap| Box::pin(component(World::Own, clause, wrap)),
    },
    Subject {
        name: "component_memory",
        has: &[Need::Commands, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Memory, clause, wrap)),
    },
];

async fn component(world: World, clause: &Clause, wrap: Wrap) -> Result<Box<dyn Bench>, String> {
    boxed(HostedBench::new(CoreKind::Component, world, &clause.files(), wrap).await)
}

fn boxed<B: Bench + 'static>(bench: Result<B, String>) -> Result<Box<dyn Bench>, String> {
    bench.map(|bench| Box::new(bench) as Box<dyn Bench>)
}

fn check(clause: &Clause, subject: &Subject) -> Result<(), String> {
    let log = Log::default();
    let wrap = match clause.wrap {
        WrapName::None => Wrap::None,
        WrapName::ReadOnly => Wrap::ReadOnly,
        WrapName::ReadOnlyWithCommands => Wrap::ReadOnlyWithCommands,
        WrapName::Logging => Wrap::Logging(log.clone()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let bench = (subject.bench)(clause, wrap).await?;
        clause.check(bench.as_ref(), &log).await
    })
}
