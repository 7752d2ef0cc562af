//! The environment and program ports, answered by effects.

use async_trait::async_trait;

use super::{EffectKind, EffectPort, OutcomeKind};
use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentPort, EnvironmentReply,
    ExecRequest, ExecStatus, OutputSink, ProgramPort, ProgramRequest, ProgramResult, Scope,
};

#[async_trait(?Send)]
impl EnvironmentPort for EffectPort {
    async fn call(
        &self,
        environment: u32,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let effect = EffectKind::Environment { environment, call };
        match self.request(scope, effect).finish().await {
            OutcomeKind::Environment(result) => result,
            OutcomeKind::Cancelled => Err(cancelled()),
            other => Err(out_of_place("environment", &other)),
        }
    }

    async fn exec(
        &self,
        environment: u32,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let effect = EffectKind::Exec {
            environment,
            request,
        };
        let mut pending = self.request(scope, effect);
        loop {
            match pending.next().await {
                Some(OutcomeKind::ExecOutput { stream, data }) => output(stream, &data),
                Some(OutcomeKind::ExecEnd(status)) => return Ok(status),
                Some(OutcomeKind::ExecFailed(error)) => return Err(error),
                Some(OutcomeKind::Cancelled) | None => return Err(cancelled()),
                Some(other) => return Err(out_of_place("exec", &other)),
            }
        }
    }
}

#[async_trait(?Send)]
impl ProgramPort for EffectPort {
    async fn run(&self, scope: &Scope, request: ProgramRequest) -> ProgramResult {
        let name = request.name.clone();
        let effect = EffectKind::RunProgram(request);
        match self.request(scope, effect).finish().await {
            OutcomeKind::ProgramEnd(result) => result,
            OutcomeKind::Cancelled => ProgramResult::failed(130, format!("{name}: cancelled\n")),
            other => ProgramResult::failed(
                126,
                format!("{name}: {}\n", out_of_place("program", &other)),
            ),
        }
    }

    async fn sleep(&self, scope: &Scope, ms: u64) {
        if !EffectPort::sleep(self, scope, ms).await {
            // A cancelled sleep is not a time limit that was reached.
            std::future::pending::<()>().await;
        }
    }
}

fn cancelled() -> EnvironmentError {
    EnvironmentError::new(EnvironmentErrorKind::Cancelled, "cancelled")
}

fn out_of_place(effect: &str, outcome: &OutcomeKind) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::Io,
        format!("the host answered an {effect} effect with {outcome:?}; fix the host"),
    )
}
