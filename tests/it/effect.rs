//! The executor and the step boundary on their own: parallel awaits, outcomes
//! out of order and in pieces, cancellation.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::future::join_all;
use hermitcrab::effect::{Effect, EffectKind, EffectPort, Executor, Outcome, OutcomeKind};
use hermitcrab::environment::{EnvironmentPort, ExecRequest, ExecStatus, OutputStream, Scope};

/// What tasks wrote down, in order.
type Log = Rc<RefCell<Vec<String>>>;

struct Core {
    executor: Executor,
    port: EffectPort,
    scope: Scope,
    log: Log,
}

impl Core {
    fn new() -> Self {
        Self {
            executor: Executor::new(),
            port: EffectPort::new(),
            scope: Scope::new("owner"),
            log: Log::default(),
        }
    }

    fn step(&mut self, outcomes: Vec<Outcome>) -> Vec<Effect> {
        for outcome in outcomes {
            self.port.deliver(outcome);
        }
        assert!(
            !self.executor.run(|| false),
            "nothing yields in these tests"
        );
        self.port.take_effects()
    }

    fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Starts a task that sleeps and writes down how that ended.
    fn spawn_sleeper(&self, name: &'static str, ms: u64) {
        let (port, scope, log) = (self.port.clone(), self.scope.clone(), self.log.clone());
        self.executor.spawner().spawn(async move {
            let slept = port.sleep(&scope, ms).await;
            log.borrow_mut().push(format!("{name}: {slept}"));
        });
    }
}

fn outcome(id: u64, kind: OutcomeKind) -> Outcome {
    Outcome { id, kind }
}

fn ids(effects: &[Effect]) -> Vec<u64> {
    effects.iter().map(|effect| effect.id).collect()
}

#[test]
fn effects_of_parallel_tasks_leave_in_one_step_and_outcomes_return_in_any_order() {
    let mut core = Core::new();
    for (name, ms) in [("a", 1), ("b", 2), ("c", 3)] {
        core.spawn_sleeper(name, ms);
    }
    let effects = core.step(vec![]);
    assert_eq!(ids(&effects), [1, 2, 3]);
    assert!(effects.iter().all(|effect| &*effect.owner == "owner"));
    core.step(vec![outcome(3, OutcomeKind::Slept)]);
    core.step(vec![
        outcome(1, OutcomeKind::Slept),
        outcome(2, OutcomeKind::Slept),
    ]);
    assert_eq!(core.log(), ["c: true", "a: true", "b: true"]);
    assert!(core.executor.is_empty());
}

#[test]
fn joined_futures_keep_their_order_whatever_the_outcomes_do() {
    let mut core = Core::new();
    let (port, scope, log) = (core.port.clone(), core.scope.clone(), core.log.clone());
    core.executor.spawner().spawn(async move {
        let calls = (0..100).map(|ms| {
            let (port, scope) = (port.clone(), scope.clone());
            async move { (ms, port.sleep(&scope, ms).await) }
        });
        for (ms, slept) in join_all(calls).await {
            log.borrow_mut().push(format!("{ms}: {slept}"));
        }
    });
    let mut effects = core.step(vec![]);
    assert_eq!(effects.len(), 100);
    effects.reverse();
    for effect in effects {
        core.step(vec![outcome(effect.id, OutcomeKind::Slept)]);
    }
    let expected: Vec<_> = (0..100).map(|ms| format!("{ms}: true")).collect();
    assert_eq!(core.log(), expected);
}

#[test]
fn streamed_outcomes_arrive_in_order_before_the_final_one() {
    let mut core = Core::new();
    let (port, scope, log) = (core.port.clone(), core.scope.clone(), core.log.clone());
    core.executor.spawner().spawn(async move {
        let mut output = |stream: OutputStream, data: &[u8]| {
            let text = String::from_utf8_lossy(data).into_owned();
            log.borrow_mut().push(format!("{stream:?} {text}"));
        };
        let status = port
            .exec(7, &scope, ExecRequest::default(), &mut output)
            .await;
        log.borrow_mut().push(format!("{status:?}"));
    });
    let effects = core.step(vec![]);
    assert!(matches!(
        effects[0].kind,
        EffectKind::Exec { environment: 7, .. }
    ));
    let chunk = |stream, text: &'static str| {
        let data = Bytes::from(text);
        outcome(1, OutcomeKind::ExecOutput { stream, data })
    };
    core.step(vec![
        chunk(OutputStream::Stdout, "one"),
        chunk(OutputStream::Stderr, "two"),
    ]);
    core.step(vec![
        chunk(OutputStream::Stdout, "three"),
        outcome(1, OutcomeKind::ExecEnd(ExecStatus::default())),
    ]);
    assert_eq!(
        core.log(),
        [
            "Stdout one".to_owned(),
            "Stderr two".to_owned(),
            "Stdout three".to_owned(),
            format!("{:?}", Ok::<_, ()>(ExecStatus::default())),
        ]
    );
}

#[test]
fn cancelling_a_scope_cancels_its_effects_once_and_waits_for_their_final_outcomes() {
    let mut core = Core::new();
    core.spawn_sleeper("a", 1);
    core.spawn_sleeper("b", 2);
    core.step(vec![]);
    core.scope.cancel.cancel();
    core.scope.cancel.cancel();
    let cancels: Vec<_> = core.step(vec![]).into_iter().map(|e| e.kind).collect();
    assert_eq!(
        cancels,
        [
            EffectKind::Cancel { target: 1 },
            EffectKind::Cancel { target: 2 }
        ]
    );
    assert_eq!(core.log(), Vec::<String>::new(), "still waiting");
    core.step(vec![outcome(1, OutcomeKind::Cancelled)]);
    // The time was over before the cancel arrived: that outcome counts.
    core.step(vec![outcome(2, OutcomeKind::Slept)]);
    assert_eq!(core.log(), ["a: false", "b: true"]);
}

#[test]
fn dropping_an_effect_cancels_it_and_settled_waits_for_its_end() {
    let mut core = Core::new();
    let (port, scope, log) = (core.port.clone(), core.scope.clone(), core.log.clone());
    core.executor.spawner().spawn(async move {
        drop(port.request(&scope, EffectKind::Sleep { ms: 1 }));
        port.settled(&Scope::new("owner")).await;
        log.borrow_mut().push("settled".to_owned());
    });
    let effects = core.step(vec![]);
    assert_eq!(ids(&effects), [1, 2]);
    assert_eq!(effects[1].kind, EffectKind::Cancel { target: 1 });
    assert_eq!(core.log(), Vec::<String>::new());
    core.step(vec![outcome(1, OutcomeKind::Cancelled)]);
    assert_eq!(core.log(), ["settled"]);
}

#[test]
fn unknown_and_repeated_outcomes_are_ignored() {
    let mut core = Core::new();
    core.spawn_sleeper("a", 1);
    core.step(vec![outcome(99, OutcomeKind::Slept)]);
    core.step(vec![
        outcome(1, OutcomeKind::Slept),
        outcome(1, OutcomeKind::Cancelled),
        outcome(1, OutcomeKind::Slept),
    ]);
    core.step(vec![outcome(1, OutcomeKind::Slept)]);
    assert_eq!(core.log(), ["a: true"]);
    assert_eq!(core.port.outstanding(), 0);
}

#[test]
fn an_effect_requested_in_a_cancelled_scope_is_cancelled_at_once() {
    let mut core = Core::new();
    core.scope.cancel.cancel();
    core.spawn_sleeper("a", 1);
    let effects = core.step(vec![]);
    assert_eq!(effects.len(), 2);
    assert_eq!(effects[1].kind, EffectKind::Cancel { target: 1 });
}

#[test]
fn a_budget_ends_a_step_and_the_next_one_goes_on() {
    let mut core = Core::new();
    let log = core.log.clone();
    core.executor.spawner().spawn(async move {
        for number in 0..10 {
            log.borrow_mut().push(number.to_string());
            yield_once().await;
        }
    });
    let mut polls = 0;
    let mut steps = 0;
    while core.executor.run(|| {
        polls += 1;
        polls % 3 == 0
    }) {
        steps += 1;
        assert!(steps < 100, "the task must end");
    }
    assert_eq!(core.log().len(), 10);
    assert_eq!(steps, 3, "eleven polls, three per step");
}

#[test]
fn time_never_goes_back() {
    let port = EffectPort::new();
    port.set_now_ms(5);
    port.set_now_ms(3);
    assert_eq!(port.now_ms(), 5);
}

async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}
