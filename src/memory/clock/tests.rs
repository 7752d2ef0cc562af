//! Tests of virtual time: timelines driven with futures that read, sleep and yield.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::memory::drive::Drive;
use crate::memory::random::Random;

const SECOND: u64 = 1_000_000;

fn clock_at(ms: &Rc<Cell<u64>>) -> Rc<Clock> {
    let ms = ms.clone();
    Rc::new(Clock::new(Rc::new(move || ms.get())))
}

fn random() -> Random {
    Random::new([0; 32])
}

/// Work of `count` units, one by one.
fn compute(count: u64) {
    for _ in 0..count {
        spend(1);
    }
}

type Log = Rc<RefCell<Vec<String>>>;

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls futures that were woken, in turn, until all are ready, like the executor.
fn run_all(tasks: Vec<Pin<Box<dyn Future<Output = ()>>>>) {
    let mut tasks: Vec<_> = tasks
        .into_iter()
        .map(|task| (Arc::new(Flag(AtomicBool::new(true))), task))
        .collect();
    for _ in 0..100_000 {
        let mut polled = 0;
        tasks.retain_mut(|(flag, task)| {
            if !flag.0.swap(false, Ordering::Relaxed) {
                return true;
            }
            polled += 1;
            let waker = Waker::from(flag.clone());
            let mut cx = Context::from_waker(&waker);
            task.as_mut().poll(&mut cx).is_pending()
        });
        if tasks.is_empty() {
            return;
        }
        assert!(polled > 0, "nobody woke the rest of the tasks");
    }
    panic!("the tasks never ended");
}

fn task(
    clock: &Rc<Clock>,
    timeout_us: u64,
    log: &Log,
    name: &'static str,
    body: impl AsyncFnOnce(Rc<Timeline>) + 'static,
) -> Pin<Box<dyn Future<Output = ()>>> {
    let timeline = Timeline::start(clock, timeout_us, 100_000, random());
    let log = log.clone();
    let inner = timeline.clone();
    let drive = Drive::new(async move { body(inner).await }, timeline.clone(), 0);
    Box::pin(async move {
        let _ = drive.await;
        let stop = timeline.stopped();
        log.borrow_mut()
            .push(format!("{name} {} {stop:?}", timeline.elapsed_us()));
    })
}

#[test]
fn the_clock_follows_the_step_and_never_goes_back() {
    let ms = Rc::new(Cell::new(5));
    let clock = clock_at(&ms);
    assert_eq!(clock.now_us(), 5_000);
    ms.set(3);
    assert_eq!(clock.now_us(), 5_000);
    ms.set(9);
    assert_eq!(clock.now_us(), 9_000);
}

#[test]
fn a_sleep_moves_time_and_stays_as_skew() {
    let ms = Rc::new(Cell::new(1_000));
    let clock = clock_at(&ms);
    let log = Log::default();
    run_all(vec![task(&clock, 100 * SECOND, &log, "sleep", async |t| {
        t.sleep(7 * SECOND).await;
    })]);
    assert_eq!(*log.borrow(), ["sleep 7000000 None"]);
    assert_eq!(clock.now_us(), 8 * SECOND);
    ms.set(2_000);
    assert_eq!(clock.now_us(), 9 * SECOND);
    let state = clock.state();
    let other = clock_at(&ms);
    other.restore(state);
    assert_eq!(other.now_us(), 9 * SECOND);
}

#[test]
fn a_sleep_beyond_the_time_limit_ends_at_the_limit() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    run_all(vec![task(&clock, 2 * SECOND, &log, "late", async |t| {
        t.sleep(100 * SECOND).await;
        compute(10);
    })]);
    assert_eq!(*log.borrow(), ["late 2000010 Some(Timeout)"]);
}

#[test]
fn work_takes_time() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let before = work();
    run_all(vec![
        task(&clock, SECOND, &log, "short", async |_| compute(500)),
        task(&clock, 300, &log, "long", async |_| compute(500)),
        task(&clock, SECOND, &log, "busy", async |_| compute(100_001)),
    ]);
    assert_eq!(
        *log.borrow(),
        [
            "short 500 None",
            "long 500 Some(Timeout)",
            "busy 100001 Some(Work)"
        ]
    );
    assert_eq!(work() - before, 101_001);
}

#[test]
fn a_marked_time_is_not_jumped_over() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    run_all(vec![task(&clock, 100 * SECOND, &log, "mark", async |t| {
        t.mark(SECOND);
        let mut sleep = Box::pin(t.sleep(50 * SECOND));
        let started = t.now_us();
        poll_fn(|cx| {
            if t.now_us() - started >= SECOND {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    })]);
    assert_eq!(*log.borrow(), ["mark 1000000 None"]);
}

#[test]
fn parallel_sleeps_end_in_the_order_of_their_ends() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let sleeper = |name: &'static str, seconds: u64| {
        task(&clock, 100 * SECOND, &log, name, async move |t| {
            t.sleep(seconds * SECOND).await;
        })
    };
    run_all(vec![
        sleeper("three", 3),
        sleeper("one", 1),
        sleeper("two", 2),
    ]);
    assert_eq!(
        *log.borrow(),
        ["one 1000000 None", "two 2000000 None", "three 3000000 None"]
    );
    assert_eq!(clock.now_us(), 3 * SECOND);
}

#[test]
fn a_sleeper_waits_for_a_parallel_command_that_is_behind() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    run_all(vec![
        task(&clock, 100 * SECOND, &log, "sleep", async |t| {
            t.sleep(30).await;
        }),
        task(&clock, 100 * SECOND, &log, "work", async |_| {
            for _ in 0..10 {
                compute(50);
                pause().await;
            }
        }),
        task(&clock, 10, &log, "short", async |t| t.sleep(20).await),
    ]);
    assert_eq!(
        *log.borrow(),
        ["short 10 Some(Timeout)", "sleep 30 None", "work 500 None"]
    );
}

#[test]
fn a_command_that_is_never_polled_does_not_hold_a_sleeper() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let stuck = Timeline::start(&clock, SECOND, 1_000, random());
    run_all(vec![task(&clock, SECOND, &log, "sleep", async |t| {
        t.sleep(1_000).await;
    })]);
    assert_eq!(*log.borrow(), ["sleep 1000 None"]);
    drop(stuck);
}

#[test]
fn a_sleeper_lets_a_parallel_computation_go_first_however_long_it_takes() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    run_all(vec![
        task(&clock, 100 * SECOND, &log, "sleep", async |t| {
            t.sleep(SECOND).await;
        }),
        task(&clock, 100 * SECOND, &log, "work", async |_| {
            for _ in 0..1_000 {
                compute(999);
                pause().await;
            }
        }),
        task(&clock, 100 * SECOND, &log, "longer", async |_| {
            for _ in 0..1_100 {
                compute(1_001);
                pause().await;
            }
        }),
    ]);
    assert_eq!(
        *log.borrow(),
        [
            "work 999000 None",
            "sleep 1000000 None",
            "longer 1101100 None"
        ]
    );
}

#[test]
fn sleepers_in_slices_do_not_step_back_behind_each_other() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let sleeper = |name: &'static str, unit: u64| {
        task(&clock, 1_000 * SECOND, &log, name, async move |t| {
            // Every poll computes, as a shell's watcher does.
            let mut sleep = Box::pin(t.sleep(100 * SECOND));
            poll_fn(|cx| {
                compute(unit);
                sleep.as_mut().poll(cx)
            })
            .await;
        })
    };
    run_all(vec![sleeper("a", 7), sleeper("b", 11), sleeper("c", 5)]);
    assert_eq!(log.borrow().len(), 3);
}

#[test]
fn a_command_that_waits_outside_or_is_given_up_holds_nobody() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let outside = Timeline::start(&clock, SECOND, 1_000, random());
    let mut waiting = Box::pin(Drive::new(
        async {
            outside.enter_outside();
            std::future::pending::<()>().await;
        },
        outside.clone(),
        0,
    ));
    let given_up = Timeline::start(&clock, SECOND, 1_000, random());
    let mut dropped = Box::pin(Drive::new(async { pause().await }, given_up.clone(), 0));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    assert!(dropped.as_mut().poll(&mut cx).is_pending());
    drop(dropped);
    run_all(vec![task(&clock, SECOND, &log, "sleep", async |t| {
        t.sleep(1_000).await;
    })]);
    assert_eq!(*log.borrow(), ["sleep 1000 None"]);
    drop((waiting, given_up));
}

#[test]
fn a_yield_after_many_commands_counts_them() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let before = work();
    run_all(vec![task(&clock, SECOND, &log, "loop", async |_| {
        for _ in 0..10 {
            compute(100);
            let mut yielded = false;
            poll_fn(|cx| {
                if std::mem::replace(&mut yielded, true) {
                    return Poll::Ready(());
                }
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
        }
    })]);
    assert_eq!(*log.borrow(), ["loop 7680 None"]);
    assert_eq!(work() - before, 7_680);
}

#[test]
fn waiting_outside_counts_real_time() {
    let ms = Rc::new(Cell::new(1_000));
    let clock = clock_at(&ms);
    let log = Log::default();
    let later = ms.clone();
    run_all(vec![task(
        &clock,
        5 * SECOND,
        &log,
        "outside",
        async move |t| {
            t.enter_outside();
            pause().await;
            later.set(3_000);
            t.leave_outside();
        },
    )]);
    assert_eq!(*log.borrow(), ["outside 2000000 None"]);
}

/// bashkit's watcher: reads until 10 ms have passed, and wakes its task.
fn watch(waker: &Waker) {
    let until = read_current() + 10_000;
    while read_current() < until {}
    // By value: by reference says that many commands ran.
    let own = waker.clone();
    own.wake();
}

#[test]
fn the_readings_of_the_watcher_are_no_work() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let before = work();
    run_all(vec![task(&clock, SECOND, &log, "watched", async |_| {
        pause().await;
        for turn in 0..4 {
            poll_fn(|cx| {
                if turn % 2 == 0 {
                    watch(cx.waker());
                }
                compute(20);
                for _ in 0..turn * 10 {
                    read_current();
                }
                if turn % 2 == 1 {
                    watch(cx.waker());
                }
                Poll::Ready(())
            })
            .await;
            pause().await;
        }
    })]);
    assert_eq!(*log.borrow(), ["watched 80 None"]);
    assert_eq!(work() - before, 80);
}

#[test]
fn a_loop_that_checks_its_limits_is_cheap_and_ends() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    let read = |count: u64| (0..count).take_while(|_| read_current() < SECOND).count();
    run_all(vec![
        task(&clock, SECOND, &log, "loop", async move |_| {
            compute(10);
            read(16_384);
            pause().await;
            read(16_384);
            compute(10);
        }),
        task(&clock, SECOND, &log, "endless", async |t| {
            while t.stopped().is_none() {
                read_current();
            }
        }),
    ]);
    // What counts of a row is known when it has doubled, or has ended.
    assert_eq!(
        *log.borrow(),
        ["endless 262144 Some(Work)", "loop 2068 None"]
    );
}

#[test]
fn a_stop_ends_a_sleep() {
    let clock = clock_at(&Rc::default());
    let log = Log::default();
    run_all(vec![task(
        &clock,
        100 * SECOND,
        &log,
        "stopped",
        async |t| {
            t.stop(Stop::Cancelled);
            t.stop(Stop::Timeout);
            t.sleep(50 * SECOND).await;
        },
    )]);
    assert_eq!(*log.borrow(), ["stopped 0 Some(Cancelled)"]);
}

#[test]
fn a_tick_wakes_nothing_where_it_is() {
    let clock = clock_at(&Rc::new(Cell::new(0)));
    // Less than a tick is worth.
    let timeline = Timeline::start(&clock, 100, u64::MAX, random());
    let woken = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    timeline.begin_poll();
    let mut sleep = Box::pin(timeline.sleep(2 * SECOND));
    let sleeping = sleep.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(sleeping.is_pending());
    timeline.tick();
    assert_eq!(timeline.stopped(), None, "the first ticks are free");
    for _ in 0..200 {
        timeline.tick();
    }
    assert_eq!(timeline.stopped(), Some(Stop::Timeout));
    assert!(!woken.0.load(Ordering::Relaxed), "woken in the middle");
    timeline.end_poll();
    assert!(woken.0.load(Ordering::Relaxed), "not woken at the end");
}
