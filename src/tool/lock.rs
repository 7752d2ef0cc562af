//! `FileLocks`: calls that change the same file take turns, in the order in
//! which they asked. Parallel calls of one answer may edit one file; without
//! this, the later write would undo the earlier one.
//!
//! A file may have two names, one a link to the other. Names are followed only
//! when another call holds a file already: a call that is alone, which is the
//! common case, costs no round trip to the host.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures_util::future::{FutureExt, LocalBoxFuture, Shared, join, join_all};

use crate::environment::Environment;
use crate::text::SortedMap;

/// A file by its name, and where that leads once somebody has asked.
#[derive(Clone, Debug)]
struct Name {
    path: String,
    real: Shared<LocalBoxFuture<'static, String>>,
}

#[derive(Debug, Default)]
struct State {
    next_ticket: u64,
    /// Who holds files or waits for them, by ticket.
    turns: SortedMap<u64, Vec<Name>>,
    /// Those who wait for a turn to end.
    waiting: Vec<Waker>,
}

/// The locks of one environment. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct FileLocks(Rc<RefCell<State>>);

impl FileLocks {
    /// Waits for its turn at `paths` (absolute) and keeps it until the guard is
    /// dropped. Whoever needs several files asks for them together: turns are
    /// granted in the order of asking, so no two calls wait for each other.
    pub async fn lock(
        &self,
        environment: &Environment,
        paths: impl IntoIterator<Item = String>,
    ) -> FileGuard {
        let names: Vec<Name> = paths
            .into_iter()
            .map(|path| Name::new(environment, path))
            .collect();
        let guard = self.take_ticket(names.clone());
        while let Some(turns) = self.before(guard.ticket) {
            match first_with(&names, &turns).await {
                Some(ticket) => self.ended(ticket).await,
                None => break,
            }
        }
        guard
    }

    fn take_ticket(&self, names: Vec<Name>) -> FileGuard {
        let mut state = self.0.borrow_mut();
        let ticket = state.next_ticket;
        state.next_ticket += 1;
        state.turns.insert(ticket, names);
        FileGuard {
            locks: self.clone(),
            ticket,
        }
    }

    /// The turns before `ticket`; `None` when it is the first.
    fn before(&self, ticket: u64) -> Option<Vec<(u64, Vec<Name>)>> {
        let state = self.0.borrow();
        let earlier = state.turns.iter().take_while(|(known, _)| **known < ticket);
        let earlier: Vec<_> = earlier
            .map(|(ticket, names)| (*ticket, names.clone()))
            .collect();
        (!earlier.is_empty()).then_some(earlier)
    }

    /// Waits for the end of the turn `ticket`.
    async fn ended(&self, ticket: u64) {
        poll_fn(|cx| {
            let mut state = self.0.borrow_mut();
            if !state.turns.contains_key(&ticket) {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Name {
    fn new(environment: &Environment, path: String) -> Self {
        let (environment, named) = (environment.clone(), path.clone());
        // What cannot be followed is what it says; the call itself will tell.
        let real = async move { environment.real_path(&named).await.unwrap_or(named) };
        Self {
            path,
            real: real.boxed_local().shared(),
        }
    }
}

/// The first of `turns` that has one of the files `ours`.
async fn first_with(ours: &[Name], turns: &[(u64, Vec<Name>)]) -> Option<u64> {
    let has = |theirs: &[Name]| {
        let mut ours = ours.iter();
        ours.any(|name| theirs.iter().any(|other| other.path == name.path))
    };
    if let Some((ticket, _)) = turns.iter().find(|(_, theirs)| has(theirs)) {
        return Some(*ticket);
    }
    // All at once: one step to the host and back, and nothing the next time.
    fn follow(names: &[Name]) -> impl Future<Output = Vec<String>> {
        join_all(names.iter().map(|name| name.real.clone()))
    }
    let theirs = join_all(turns.iter().map(|(_, names)| follow(names)));
    let (ours, theirs) = join(follow(ours), theirs).await;
    let mut turns = turns.iter().zip(theirs);
    turns
        .find(|(_, theirs)| ours.iter().any(|path| theirs.contains(path)))
        .map(|((ticket, _), _)| *ticket)
}

/// A turn at files, or a place in the queue for them; ends when dropped.
#[derive(Debug)]
#[must_use = "dropping the guard gives the files free"]
pub struct FileGuard {
    locks: FileLocks,
    ticket: u64,
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.locks.0.borrow_mut();
            state.turns.remove(&self.ticket);
            mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Context;

    use crate::effect::{EffectKind, Executor, Outcome, OutcomeKind};
    use crate::environment::testing::TreeEnvironment;
    use crate::environment::{Cancel, EnvironmentCall, EnvironmentReply, Scope};

    use super::*;
    use crate::tool::testing::remote_environment;

    fn tree() -> Environment {
        Environment::new(Rc::new(TreeEnvironment::new(&[])), Scope::new("s"))
    }

    fn names(paths: &str) -> Vec<String> {
        paths.split(' ').map(str::to_owned).collect()
    }

    /// Calls that ask for files, all at once; returns who went in and out.
    fn check(
        environment: &Environment,
        calls: &'static [(&str, &str)],
        expected: &[&str],
    ) -> (Executor, FileLocks, Cancel, Rc<RefCell<Vec<String>>>) {
        let locks = FileLocks::default();
        let log = Rc::new(RefCell::new(Vec::new()));
        let mut executor = Executor::new();
        let gate = Cancel::new();
        for (name, paths) in calls {
            let (locks, log, gate) = (locks.clone(), log.clone(), gate.clone());
            let environment = environment.clone();
            executor.spawner().spawn(async move {
                let _guard = locks.lock(&environment, names(paths)).await;
                log.borrow_mut().push(format!("{name} in"));
                gate.cancelled().await;
                log.borrow_mut().push(format!("{name} out"));
            });
        }
        executor.run(|| false);
        assert_eq!(*log.borrow(), expected);
        (executor, locks, gate, log)
    }

    #[test]
    fn turns_are_taken_in_order() {
        let calls = &[("a", "/x"), ("b", "/x"), ("c", "/y"), ("d", "/x")];
        let (mut executor, locks, gate, log) = check(&tree(), calls, &["a in", "c in"]);
        gate.cancel();
        executor.run(|| false);
        assert_eq!(
            *log.borrow(),
            [
                "a in", "c in", "a out", "c out", "b in", "b out", "d in", "d out"
            ]
        );
        assert!(executor.is_empty());
        assert_eq!(locks.0.borrow().turns.len(), 0);
    }

    #[test]
    fn several_files_are_one_turn() {
        let calls = &[("a", "/x /y"), ("b", "/y /z"), ("c", "/z /x"), ("d", "/w")];
        let (mut executor, _, gate, log) = check(&tree(), calls, &["a in", "d in"]);
        gate.cancel();
        executor.run(|| false);
        assert_eq!(log.borrow().len(), 8);
        assert!(executor.is_empty());
    }

    #[test]
    fn two_names_of_one_file_are_one_file() {
        let (remote, port) = remote_environment();
        let environment = Environment::new(Rc::new(remote), Scope::new("s"));
        let calls = &[("a", "/x"), ("b", "/link"), ("c", "/y")];
        let (mut executor, _, gate, log) = check(&environment, calls, &["a in"]);
        // The first one alone has asked nothing; each name is followed once.
        let mut asked = Vec::new();
        loop {
            let effects = port.take_effects();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                let EffectKind::Environment { call, .. } = effect.kind else {
                    panic!("{:?}", effect.kind);
                };
                let EnvironmentCall::RealPath { path } = call else {
                    panic!("{call:?}");
                };
                let real = if path == "/link" {
                    "/x".to_owned()
                } else {
                    path.clone()
                };
                asked.push(path);
                let reply = Ok(EnvironmentReply::Path(real));
                port.deliver(Outcome {
                    id: effect.id,
                    kind: OutcomeKind::Environment(reply),
                });
            }
            executor.run(|| false);
        }
        asked.sort();
        assert_eq!(asked, ["/link", "/x", "/y"]);
        assert_eq!(*log.borrow(), ["a in", "c in"]);
        gate.cancel();
        executor.run(|| false);
        assert_eq!(
            *log.borrow(),
            ["a in", "c in", "a out", "c out", "b in", "b out"]
        );
    }

    #[test]
    fn who_gives_up_loses_the_place() {
        let (locks, tree) = (FileLocks::default(), tree());
        let mut cx = Context::from_waker(Waker::noop());
        let lock = || Box::pin(locks.lock(&tree, names("/x")));
        let (mut first, mut second, mut third) = (lock(), lock(), lock());
        let guard = first.as_mut().poll(&mut cx);
        assert!(guard.is_ready());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        assert!(third.as_mut().poll(&mut cx).is_pending());
        drop(second);
        drop(guard);
        assert!(third.as_mut().poll(&mut cx).is_ready());
    }
}
