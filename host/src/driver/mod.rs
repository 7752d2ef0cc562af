//! The driver: one task per instance that steps the core and performs its effects.
//!
//! The loop: wait for a call or an outcome, take what else has arrived, step
//! once, hand events out, start effects. It never waits for an effect or for a
//! consumer. Every effect gets exactly one final outcome, because the driver
//! keeps the list of those that have not had theirs: a second one is dropped,
//! and after a cancel a watchdog supplies a missing one.

mod calls;
mod perform;
mod queue;
mod state;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use hermitcrab::effect::{EffectKind, Outcome, OutcomeKind};
use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind};
use hermitcrab::event::{CloseReason, EventKind, SessionState, rfc3339};
use hermitcrab::session::{JobReportKind, LogLine, SessionError, SessionErrorKind};
use tokio::runtime::RuntimeFlavor;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::core::{Core, CoreEffect, CoreEvent, CoreFailure, CoreReport, CoreStep};
use crate::error::HostError;
use crate::event::Event;
use crate::http::HttpPerformer;
use crate::journal::Journaled;
use perform::Performer;
pub(crate) use queue::{Gate, Queue};
use state::{Command, Live, WeakHandle};
pub(crate) use state::{Driver, DriverHandle, SessionLink};
pub use state::{Progress, ToolEnvironment, ToolFn, ToolInvocation};

/// Outcomes that wait for the driver; then effects wait.
const OUTCOMES: usize = 256;

/// Longest time between a cancel and the final outcome. A little less than the
/// promised 2.5 s, so that the promise holds on a busy machine.
const CANCEL_GRACE: Duration = Duration::from_millis(2_400);

impl DriverHandle {
    /// Starts a driver for `core` on the current tokio runtime.
    pub(crate) fn start(core: Journaled, http: Arc<dyn HttpPerformer>) -> Self {
        Self::start_with(core, http, |_| {})
    }

    /// Starts a driver for a `core` that has worked before; `set_up` gives it what
    /// belongs to that.
    pub(crate) fn start_with(
        core: Journaled,
        http: Arc<dyn HttpPerformer>,
        set_up: impl FnOnce(&mut Driver),
    ) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        let (outcomes, arrived) = mpsc::channel(OUTCOMES);
        let mut driver = Driver {
            core,
            handle: WeakHandle(commands.downgrade()),
            recovered: None,
            http,
            outcomes,
            live: HashMap::new(),
            sessions: BTreeMap::new(),
            jobs: BTreeMap::new(),
            environments: HashMap::new(),
            programs: HashMap::new(),
            logs: HashMap::new(),
            failed: None,
        };
        set_up(&mut driver);
        tokio::spawn(driver.run(inbox, arrived));
        Self { commands }
    }
}

impl Driver {
    async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut arrived: mpsc::Receiver<Outcome>,
    ) {
        let mut busy = false;
        let mut batch = Vec::new();
        loop {
            if busy {
                // Other tasks of this thread get their turn, messages arrive.
                self.consumers_ready(&mut commands).await;
            } else {
                tokio::select! {
                    biased;
                    command = commands.recv() => match command {
                        Some(command) => command(&mut self),
                        None => break,
                    },
                    Some(outcome) = arrived.recv() => self.accept(outcome, &mut batch),
                }
            }
            while let Ok(command) = commands.try_recv() {
                command(&mut self);
            }
            busy = self.turn(&mut arrived, &mut batch);
            if busy && commands.is_closed() && commands.is_empty() {
                break;
            }
        }
        // The last handle is gone. What it cancelled ends in good order: its
        // outcomes still reach the core, which cleans up after them.
        let _ = tokio::time::timeout(CANCEL_GRACE, async {
            while busy || !self.live.is_empty() {
                if busy {
                    tokio::task::yield_now().await;
                } else if let Some(outcome) = arrived.recv().await {
                    self.accept(outcome, &mut batch);
                }
                busy = self.turn(&mut arrived, &mut batch);
            }
        })
        .await;
        self.stop();
    }

    /// Takes the outcomes that have arrived and steps the core once; says
    /// whether work remains.
    fn turn(&mut self, arrived: &mut mpsc::Receiver<Outcome>, batch: &mut Vec<Outcome>) -> bool {
        while batch.len() < OUTCOMES {
            let Ok(outcome) = arrived.try_recv() else {
                break;
            };
            self.accept(outcome, batch);
        }
        self.step(std::mem::take(batch))
    }

    /// Yields, and while the consumer of a session or job is slow, waits for it
    /// or for a call: otherwise a command that prints without end would fill
    /// memory.
    async fn consumers_ready(&mut self, commands: &mut mpsc::UnboundedReceiver<Command>) {
        tokio::task::yield_now().await;
        let sessions = self.sessions.values().map(|link| link.events.gate());
        let mut gates = sessions.chain(self.jobs.values().map(|job| job.gate()));
        let Some(slow) = gates.find(|gate| gate.is_full()).cloned() else {
            return;
        };
        tokio::select! {
            biased;
            command = commands.recv() => if let Some(command) = command {
                command(self);
            },
            () = slow.ready() => {}
        }
    }

    /// Takes an outcome that an effect task sent, unless its effect is over.
    fn accept(&mut self, outcome: Outcome, batch: &mut Vec<Outcome>) {
        let known = if outcome.kind.is_final() {
            self.live.remove(&outcome.id).is_some()
        } else {
            self.live.contains_key(&outcome.id)
        };
        if known {
            batch.push(outcome);
        }
    }

    /// Steps the core once; says whether work remains.
    fn step(&mut self, outcomes: Vec<Outcome>) -> bool {
        if self.failed.is_some() {
            return false;
        }
        match self.core.step(now_ms(), outcomes) {
            Ok(step) => {
                let CoreStep {
                    events,
                    reports,
                    effects,
                    log,
                    busy,
                } = step;
                // First, so that who has the result of a call finds its lines.
                for LogLine { log, line } in log {
                    if let Some(put) = self.logs.get_mut(&log) {
                        put(&line);
                    }
                }
                self.hand_out(events);
                for report in reports {
                    self.report(report);
                }
                for effect in effects {
                    self.start(effect);
                }
                busy
            }
            Err(error) => {
                self.fail(CoreFailure::of(error));
                false
            }
        }
    }

    /// Gives each event to its session's consumer.
    fn hand_out(&mut self, events: Vec<CoreEvent>) {
        let mut events = events.into_iter().peekable();
        while let Some(first) = events.next() {
            let Some(link) = self.sessions.get_mut(&first.session) else {
                continue;
            };
            let session = first.session.clone();
            let mut run = vec![first.json];
            while let Some(next) = events.next_if(|event| event.session == session) {
                run.push(next.json);
            }
            calls::follow(&mut link.calls, &run);
            if let Some(own) = run.iter().rev().find(|json| is_own(json, &session)) {
                link.last = own.clone();
            }
            let answers = run.iter().filter(|json| json.starts_with(USAGE));
            let answers = answers.filter(|json| is_own(json, &session)).count();
            if let Some(number) = link.environment
                && let Some(environment) = self.environments.get(&number)
            {
                (0..answers).for_each(|_| environment.answered());
            }
            let over = run.iter().any(|json| json.starts_with(SESSION_END));
            link.events.push(run.into_iter().map(Event::from_json));
            if over && link.last.starts_with(SESSION_END) {
                link.events.end();
                // The core's part stays as long as the session's handle:
                // calls on a closed session answer that it is closed.
                self.sessions.remove(&session);
            }
        }
    }

    fn report(&mut self, report: CoreReport) {
        if report.is_last() {
            if let Some(job) = self.jobs.remove(&report.job) {
                job.push([report.kind]);
                job.end();
            }
        } else if let Some(job) = self.jobs.get(&report.job) {
            job.push([report.kind]);
        }
    }

    /// Starts an effect as a task, or cancels one.
    pub(crate) fn start(&mut self, effect: CoreEffect) {
        if let EffectKind::Cancel { target } = effect.kind {
            self.cancel(target);
            return;
        }
        let id = effect.id;
        let is_exec = matches!(effect.kind, EffectKind::Exec { .. });
        let cancel = CancellationToken::new();
        let performer = Performer {
            id,
            owner: effect.owner.clone(),
            outcomes: self.outcomes.clone(),
            gate: self.gate(&effect.owner),
            cancel: cancel.clone(),
        };
        let work = perform::work(self, effect);
        let task = tokio::spawn(performer.run(work)).abort_handle();
        let live = Live {
            cancel,
            task,
            is_exec,
        };
        self.live.insert(id, live);
    }

    /// Ends an effect that was cancelled before it was performed here.
    pub(crate) fn end_cancelled(&mut self, effect: &CoreEffect) {
        let is_exec = matches!(effect.kind, EffectKind::Exec { .. });
        self.answer(effect, perform::cancelled(is_exec));
    }

    /// Gives an effect that is not performed its last outcome.
    pub(crate) fn answer(&mut self, effect: &CoreEffect, kind: OutcomeKind) {
        let (id, outcomes) = (effect.id, self.outcomes.clone());
        let send = async move {
            let _ = outcomes.send(Outcome { id, kind }).await;
        };
        let live = Live {
            cancel: CancellationToken::new(),
            task: tokio::spawn(send).abort_handle(),
            is_exec: matches!(effect.kind, EffectKind::Exec { .. }),
        };
        self.live.insert(id, live);
    }

    /// Whether the consumer of what an owner's effects stream takes more.
    fn gate(&self, owner: &Arc<str>) -> Option<Arc<Gate>> {
        let session = self.sessions.get(owner).map(|link| link.events.gate());
        let job = || self.jobs.get(owner).map(|job| job.gate());
        session.or_else(job).cloned()
    }

    /// Cancels an effect and sees to it that its final outcome comes in time.
    fn cancel(&mut self, target: u64) {
        let Some(live) = self.live.get(&target) else {
            return;
        };
        live.cancel.cancel();
        let task = live.task.clone();
        let outcomes = self.outcomes.clone();
        let last = perform::cancelled(live.is_exec);
        tokio::spawn(async move {
            tokio::time::sleep(CANCEL_GRACE).await;
            if !task.is_finished() {
                task.abort();
                let _ = outcomes
                    .send(Outcome {
                        id: target,
                        kind: last,
                    })
                    .await;
            }
        });
    }

    /// The core as it was before the call that ended it, brought back at the
    /// first call.
    ///
    /// # Errors
    /// It lives, or its inputs have not been kept.
    pub(crate) fn recovered(&mut self) -> Result<&mut dyn Core, HostError> {
        let Some(failure) = &self.failed else {
            let error = "the instance is alive; ask for what it holds now";
            return Err(SessionError::new(SessionErrorKind::IllegalState, error).into());
        };
        if self.recovered.is_none() {
            let core = &mut self.core;
            // It takes as long as the core has worked so far; other tasks of
            // this thread must not wait for it.
            let told = match tokio::runtime::Handle::current().runtime_flavor() {
                RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| core.recover()),
                _ => core.recover(),
            };
            match told {
                Some(core) => self.recovered = Some(core?),
                None => return Err(HostError::Core(failure.clone())),
            }
        }
        match &mut self.recovered {
            Some(core) => Ok(&mut **core),
            None => Err(HostError::Core(failure.clone())),
        }
    }

    /// The instance is dead: every open session gets an error, every job ends.
    fn fail(&mut self, failure: CoreFailure) {
        let timestamp = rfc3339(now_ms());
        for (id, link) in &mut self.sessions {
            let during = calls::described(&link.calls);
            let mut seq = Event::from_json(link.last.clone()).seq();
            let mut event = |kind: EventKind| {
                seq += 1;
                let event = hermitcrab::event::Event {
                    kind,
                    seq,
                    timestamp: timestamp.clone(),
                    session_id: (&**id).into(),
                    agent_id: None,
                    parent_id: None,
                };
                Event::from_json(event.to_json())
            };
            let error = event(EventKind::Error {
                code: failure.code.to_owned(),
                message: format!("{}{during}{}", failure.message, CoreFailure::WAY_OUT),
                status: None,
                retryable: false,
            });
            let end = event(EventKind::SessionEnd {
                state: SessionState::Closed,
                reason: CloseReason::Error,
                totals: None,
                output: None,
            });
            link.events.push([error, end]);
            link.events.end();
        }
        self.sessions.clear();
        for job in std::mem::take(&mut self.jobs).into_values() {
            let error = EnvironmentError::new(EnvironmentErrorKind::Io, failure.to_string());
            job.push([JobReportKind::Call(Err(error))]);
            job.end();
        }
        self.failed = Some(failure);
        self.stop();
    }

    /// Cancels what is under way; tasks end by themselves or are dropped after
    /// the grace.
    fn stop(&mut self) {
        let live: Vec<Live> = self.live.drain().map(|(_, live)| live).collect();
        if !live.is_empty() {
            for effect in &live {
                effect.cancel.cancel();
            }
            tokio::spawn(async move {
                tokio::time::sleep(CANCEL_GRACE).await;
                for effect in live {
                    effect.task.abort();
                }
            });
        }
        for link in self.sessions.values() {
            link.events.end();
        }
        self.sessions.clear();
        for job in std::mem::take(&mut self.jobs).into_values() {
            job.end();
        }
    }
}

/// What a `SESSION_END` begins with.
const SESSION_END: &[u8] = br#"{"kind":"SESSION_END""#;
/// An answer of the model in the conversation: one with a `purpose` is none.
const USAGE: &[u8] = br#"{"kind":"USAGE","data":{"model":"#;

/// Whether an event is the session's own: those of subagents say more after
/// the id of the session they happened in.
fn is_own(json: &Bytes, session: &str) -> bool {
    json.strip_suffix(b"\"}")
        .and_then(|json| json.strip_suffix(session.as_bytes()))
        .is_some_and(|json| json.ends_with(br#""session_id":""#))
}

/// ms since 1970-01-01 UTC.
fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|time| u64::try_from(time.as_millis()).ok())
        .unwrap_or_default()
}
