//! Performing effects: one future per effect, which ends with its final outcome.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hermitcrab::effect::{Approval, EffectKind, HostToolResult, Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentError, EnvironmentErrorKind, ExecStatus, OutputStream, ProgramResult,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::queue::Gate;
use super::state::{Driver, Progress, ToolEnvironment, ToolInvocation};
use crate::approval::ApprovalRequest;
use crate::core::CoreEffect;
use crate::environment::{ExecIo, OutputWriter};
use crate::http::OutcomeSink;
use crate::program::ProgramCall;

/// Where the outcomes of one effect go.
#[derive(Clone)]
pub(super) struct Performer {
    pub(super) id: u64,
    pub(super) owner: Arc<str>,
    pub(super) outcomes: mpsc::Sender<Outcome>,
    /// Of the session or job that owns the effect.
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) cancel: CancellationToken,
}

/// Does the work of an effect and returns its final outcome.
type Work = Box<dyn FnOnce(Performer) -> BoxFuture<'static, OutcomeKind> + Send>;

impl Performer {
    /// Does `work` and sends what it returns. A panic in it, which can only
    /// come from the host's own tools and environments, counts as a failure.
    pub(super) async fn run(self, work: Work) {
        let (id, outcomes) = (self.id, self.outcomes.clone());
        let work = AssertUnwindSafe(async move { work(self).await });
        let last = work.catch_unwind().await.unwrap_or(OutcomeKind::Cancelled);
        let _ = outcomes.send(Outcome { id, kind: last }).await;
    }

    /// Sends a streamed outcome, once the consumer has caught up.
    async fn stream(&self, kind: OutcomeKind) {
        if let Some(gate) = &self.gate
            && gate.is_full()
        {
            tokio::select! {
                () = gate.ready() => {}
                () = self.cancel.cancelled() => {}
            }
        }
        let _ = self.outcomes.send(Outcome { id: self.id, kind }).await;
    }

    /// Awaits `work`, or ends with `Cancelled`.
    async fn unless_cancelled(&self, work: impl Future<Output = OutcomeKind>) -> OutcomeKind {
        tokio::select! {
            biased;
            outcome = work => outcome,
            () = self.cancel.cancelled() => OutcomeKind::Cancelled,
        }
    }
}

/// The final outcome of an effect that did not end by itself after a cancel.
pub(super) fn cancelled(is_exec: bool) -> OutcomeKind {
    if is_exec {
        OutcomeKind::ExecEnd(ExecStatus {
            exit_code: 137,
            cancelled: true,
            ..ExecStatus::default()
        })
    } else {
        OutcomeKind::Cancelled
    }
}

/// What has to be done for `effect`.
pub(super) fn work(driver: &Driver, effect: CoreEffect) -> Work {
    match effect.kind {
        EffectKind::Http(request) => {
            let http = driver.http.clone();
            Box::new(move |performer| {
                Box::pin(async move {
                    let mut sink = HttpSink {
                        performer: &performer,
                        last: None,
                    };
                    http.perform(request, &performer.cancel, &mut sink).await;
                    sink.last.take().unwrap_or(OutcomeKind::Cancelled)
                })
            })
        }
        EffectKind::Exec {
            environment,
            request,
        } => {
            let environment = driver.environments.get(&environment).cloned();
            Box::new(move |performer| {
                Box::pin(async move {
                    let Some(environment) = environment else {
                        return OutcomeKind::ExecFailed(no_environment());
                    };
                    let mut output = ExecOutput(&performer);
                    let io = ExecIo {
                        output: &mut output,
                        cancel: performer.cancel.clone(),
                    };
                    match environment.exec(request, io).await {
                        Ok(status) => OutcomeKind::ExecEnd(status),
                        Err(error) => OutcomeKind::ExecFailed(error),
                    }
                })
            })
        }
        EffectKind::Environment { environment, call } => {
            let environment = driver.environments.get(&environment).cloned();
            Box::new(move |performer| {
                Box::pin(async move {
                    let Some(environment) = environment else {
                        return OutcomeKind::Environment(Err(no_environment()));
                    };
                    let answer = environment.call(call).map(OutcomeKind::Environment);
                    performer.unless_cancelled(answer).await
                })
            })
        }
        EffectKind::CallTool {
            name,
            call_id,
            agent_id,
            working_directory,
            arguments,
        } => {
            let handle = driver.handle.upgrade();
            let session = driver.sessions.get(&effect.owner);
            let tool = session
                .and_then(|session| session.tools.get(&name))
                .cloned();
            Box::new(move |performer| {
                Box::pin(async move {
                    // Without a handle nobody is left who could want the result.
                    let Some(handle) = handle else {
                        return OutcomeKind::Cancelled;
                    };
                    let Some(tool) = tool else {
                        let message = format!("the host has no tool {name}");
                        return OutcomeKind::ToolEnd(HostToolResult::error(message));
                    };
                    let progress = performer.clone();
                    let result = tool(ToolInvocation {
                        session_id: performer.owner.clone(),
                        agent_id,
                        call_id,
                        environment: ToolEnvironment::new(handle, performer.id, working_directory),
                        arguments,
                        progress: Progress(Box::new(move |text| {
                            let performer = progress.clone();
                            Box::pin(async move {
                                performer.stream(OutcomeKind::ToolOutput(text)).await;
                            })
                        })),
                        cancel: performer.cancel.clone(),
                    });
                    // The tool itself sees the cancel and may still tell what
                    // it has; the watchdog ends it if it does not.
                    match AssertUnwindSafe(result).catch_unwind().await {
                        Ok(result) => OutcomeKind::ToolEnd(result),
                        Err(_) => OutcomeKind::ToolEnd(HostToolResult::error(format!(
                            "the tool {name} panicked in the host"
                        ))),
                    }
                })
            })
        }
        EffectKind::RunProgram(request) => {
            let lent = driver.programs.get(&request.environment);
            let sandbox = lent.map_or(0, |lent| lent.sandbox);
            let program = lent.and_then(|lent| lent.programs.get(&request.name));
            let program = program.cloned();
            Box::new(move |performer| {
                Box::pin(async move {
                    let name = request.name.clone();
                    let failed = |code, problem: &str| {
                        let sentence = format!("{name}: {problem}\n");
                        OutcomeKind::ProgramEnd(ProgramResult::failed(code, sentence))
                    };
                    let Some(program) = program else {
                        return failed(127, "not lent by the host");
                    };
                    // The program itself sees the cancel, and what it printed
                    // counts; the watchdog ends it if it does not listen.
                    let result = async {
                        program(ProgramCall {
                            request,
                            sandbox,
                            cancel: performer.cancel.clone(),
                        })
                        .await
                    };
                    match AssertUnwindSafe(result).catch_unwind().await {
                        Ok(result) => OutcomeKind::ProgramEnd(result),
                        Err(_) => failed(126, "panicked in the host"),
                    }
                })
            })
        }
        EffectKind::AskApproval {
            tool_name,
            call_id,
            arguments,
            reason,
        } => {
            let session = driver.sessions.get(&effect.owner);
            let approval = session.and_then(|session| session.approval.clone());
            let request = ApprovalRequest {
                session_id: effect.owner,
                tool_name,
                call_id,
                arguments,
                reason,
            };
            // Asked here, so that questions of one round come in the order of
            // its calls; only the answers are awaited side by side.
            let ask = || approval.map(|approval| approval(request));
            let asked = std::panic::catch_unwind(AssertUnwindSafe(ask));
            Box::new(move |performer| {
                Box::pin(async move {
                    let answer = match asked {
                        Ok(Some(answer)) => answer,
                        Ok(None) => return OutcomeKind::Approval(Approval::NoApprover),
                        Err(_) => return OutcomeKind::Cancelled,
                    };
                    let answer = answer.map(OutcomeKind::Approval);
                    performer.unless_cancelled(answer).await
                })
            })
        }
        EffectKind::Sleep { ms } => Box::new(move |performer| {
            Box::pin(async move {
                let sleep = tokio::time::sleep(Duration::from_millis(ms));
                let slept = sleep.map(|()| OutcomeKind::Slept);
                performer.unless_cancelled(slept).await
            })
        }),
        // Handled by the driver; there is nothing to wait for.
        EffectKind::Cancel { .. } => {
            Box::new(|_| Box::pin(std::future::ready(OutcomeKind::Cancelled)))
        }
    }
}

/// Passes the outcomes of an exchange on, and keeps the final one.
struct HttpSink<'a> {
    performer: &'a Performer,
    last: Option<OutcomeKind>,
}

#[async_trait]
impl OutcomeSink for HttpSink<'_> {
    async fn put(&mut self, outcome: OutcomeKind) {
        if outcome.is_final() {
            self.last = Some(outcome);
        } else {
            self.performer.stream(outcome).await;
        }
    }
}

/// Passes the output of a command on.
struct ExecOutput<'a>(&'a Performer);

#[async_trait]
impl OutputWriter for ExecOutput<'_> {
    async fn write(&mut self, stream: OutputStream, data: Bytes) {
        self.0
            .stream(OutcomeKind::ExecOutput { stream, data })
            .await;
    }
}

fn no_environment() -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::Unsupported,
        "the host does not serve this environment",
    )
}
