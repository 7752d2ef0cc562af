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
            if fits && subject.world.is_none_or(World::is_there) {
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
    /// Where it needs something that not every machine has.
    world: Option<World>,
    has: &'static [Need],
    bench: MakeBench,
}

static SUBJECTS: &[Subject] = &[
    Subject {
        name: "native_local",
        world: None,
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(async { boxed(DirectBench::new(&clause.files(), wrap)) }),
    },
    Subject {
        name: "component_local",
        world: None,
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Local, clause, wrap)),
    },
    Subject {
        name: "component_own",
        world: None,
        has: &[Need::Commands, Need::Local],
        bench: |clause, wrap| Box::pin(component(World::Own, clause, wrap)),
    },
    #[cfg(unix)]
    Subject {
        name: "component_overlay",
        world: None,
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Overlay, clause, wrap)),
    },
    Subject {
        name: "component_container",
        world: Some(World::Container),
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Container, clause, wrap)),
    },
    Subject {
        name: "component_busybox",
        world: Some(World::BusyBox),
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::BusyBox, clause, wrap)),
    },
    Subject {
        name: "component_ssh",
        world: Some(World::Ssh),
        has: &[Need::Commands, Need::Local, Need::RealPath, Need::ReadPart],
        bench: |clause, wrap| Box::pin(component(World::Ssh, clause, wrap)),
    },
    Subject {
        name: "component_memory",
        world: None,
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
