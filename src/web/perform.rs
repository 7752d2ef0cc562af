//! Performing effects: one function per kind, each from the effect's data to
//! its final outcome.

use js_sys::Object;

use super::convert::{self, Record};
use super::driver::{Call, cancelled_command};
use super::host::settle;
use super::http;
use crate::effect::{Approval, EffectKind, HostToolResult, OutcomeKind};
use crate::environment::{
    EnvironmentCall, EnvironmentErrorKind, ExecRequest, ProgramRequest, ProgramResult,
};

/// Performs one effect to its final outcome.
pub(super) async fn perform(call: &Call, kind: EffectKind) -> OutcomeKind {
    match kind {
        EffectKind::Http(request) => http::exchange(call, request).await,
        EffectKind::Exec {
            environment,
            request,
        } => exec(call, environment, request).await,
        EffectKind::Environment {
            environment,
            call: asked,
        } => environment_call(call, environment, asked).await,
        EffectKind::CallTool {
            name,
            call_id,
            agent_id,
            working_directory,
            arguments,
        } => {
            let asked = Record::new()
                .number("id", call.id as f64)
                .text("name", &name)
                .text("callId", &call_id)
                .maybe_text("agentId", agent_id.as_deref())
                .text("workingDirectory", &working_directory)
                .text("arguments", &arguments);
            call_tool(call, asked.object()).await
        }
        EffectKind::RunProgram(request) => run_program(call, request).await,
        EffectKind::AskApproval {
            tool_name,
            call_id,
            arguments,
            reason,
        } => {
            let asked = Record::new()
                .text("name", &tool_name)
                .text("callId", &call_id)
                .text("arguments", &arguments)
                .text("reason", &reason);
            ask_approval(call, asked.object()).await
        }
        EffectKind::Sleep { ms } => sleep(call, ms).await,
        // The driver handles it before it comes here.
        EffectKind::Cancel { .. } => OutcomeKind::Cancelled,
    }
}

async fn exec(call: &Call, environment: u32, request: ExecRequest) -> OutcomeKind {
    let asked = Record::new()
        .number("id", call.id as f64)
        .text("command", &request.command)
        .number("timeoutMs", request.timeout_ms as f64)
        .maybe_text("cwd", request.working_dir.as_deref())
        .value("env", &convert::strings(&request.env));
    let result = settle(
        call.host()
            .exec(environment, asked.object(), &call.signal()),
    )
    .await;
    match result {
        Ok(status) => match convert::exec_status(&status) {
            Ok(mut status) => {
                status.cancelled = call.is_cancelled();
                OutcomeKind::ExecEnd(status)
            }
            Err(error) => OutcomeKind::ExecFailed(error),
        },
        Err(_) if call.is_cancelled() => OutcomeKind::ExecEnd(cancelled_command()),
        Err(error) => OutcomeKind::ExecFailed(convert::environment_error(&error)),
    }
}

async fn environment_call(call: &Call, environment: u32, asked: EnvironmentCall) -> OutcomeKind {
    let asked = match convert::environment_call(&asked) {
        Ok(asked) => asked,
        Err(error) => return OutcomeKind::Environment(Err(error)),
    };
    let promise = call
        .host()
        .call_environment(environment, &asked, &call.signal());
    OutcomeKind::Environment(match settle(promise).await {
        Ok(reply) => convert::environment_reply(&reply),
        Err(_) if call.is_cancelled() => return OutcomeKind::Cancelled,
        Err(error) => Err(convert::environment_error(&error)),
    })
}

async fn call_tool(call: &Call, asked: &Object) -> OutcomeKind {
    let promise = call.host().call_tool(&call.owner, asked, &call.signal());
    OutcomeKind::ToolEnd(match settle(promise).await {
        Ok(result) => match convert::content(&convert::get(&result, "content")) {
            Ok(content) => HostToolResult {
                content,
                is_error: convert::flag(&result, "isError"),
            },
            Err(problem) => HostToolResult::error(problem),
        },
        Err(_) if call.is_cancelled() => return OutcomeKind::Cancelled,
        // What a tool throws is a result that the model can read.
        Err(error) => HostToolResult::error(convert::message(&error)),
    })
}

/// Nothing is half done while someone thinks: a cancelled question is over at once.
async fn ask_approval(call: &Call, asked: &Object) -> OutcomeKind {
    let promise = call.host().ask_approval(&call.owner, asked, &call.signal());
    OutcomeKind::Approval(match call.unless_cancelled(settle(promise)).await {
        None => return OutcomeKind::Cancelled,
        Some(Ok(answer)) if answer.is_undefined() => Approval::Allow,
        Some(Ok(answer)) => answer
            .as_string()
            .map_or(Approval::NoApprover, |reason| Approval::Deny { reason }),
        Some(Err(error)) => Approval::Deny {
            reason: convert::message(&error),
        },
    })
}

async fn run_program(call: &Call, request: ProgramRequest) -> OutcomeKind {
    let name = request.name.clone();
    let environment = request.environment;
    let asked = convert::program_request(request);
    let promise = call.host().run_program(environment, &asked, &call.signal());
    OutcomeKind::ProgramEnd(match settle(promise).await {
        Ok(result) => convert::program_result(&name, &result),
        Err(_) if call.is_cancelled() => return OutcomeKind::Cancelled,
        Err(error) => {
            let failure = convert::environment_error(&error);
            let code = match failure.kind {
                EnvironmentErrorKind::NotFound => 127,
                _ => 126,
            };
            ProgramResult::failed(code, format!("{name}: {failure}\n"))
        }
    })
}

async fn sleep(call: &Call, ms: u64) -> OutcomeKind {
    // The signal clears the timer; the promise then resolves early.
    let _ = settle(call.host().sleep(ms as f64, &call.signal())).await;
    if call.is_cancelled() {
        OutcomeKind::Cancelled
    } else {
        OutcomeKind::Slept
    }
}
