//! `Gate`: judges what a call is about to do, asks the host where the policy
//! says so, and lets it pass or not.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use serde_json::{Value, json};

use super::approval::{ApprovalPolicy, GitCalls, Proposal, Verdict};
use super::{CommandLine, PipelineEvents, Timeouts};
use crate::effect::{Approval, EffectKind, EffectPort, OutcomeKind};
use crate::environment::{
    Environment, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, OutputSink, Scope,
    VariablesEnvironment, absolute_path, git,
};
use crate::event::Refusal;
use crate::llm::ToolCall;

/// What a call is about to do, as the policy judges it.
pub(crate) struct Deed<'a> {
    pub(crate) tool_name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) writes: &'a [String],
    pub(crate) command: Option<&'a CommandLine>,
}

/// Why something may not be done.
pub(crate) enum Barred {
    /// The policy or the host says no; the sentence says why.
    Refused(Refusal, String),
    /// The call was cancelled.
    Stopped,
}

/// The gate of one call. Clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    pub(crate) approvals: Rc<ApprovalPolicy>,
    pub(crate) environment: Rc<dyn ExecutionEnvironment>,
    pub(crate) port: EffectPort,
    pub(crate) events: Rc<dyn PipelineEvents>,
    pub(crate) call: Rc<ToolCall>,
    pub(crate) scope: Scope,
}

impl Gate {
    /// Lets `deed` pass and says where it may run, or says why not. `shown`
    /// gives what the host is shown; `scope.cancel` ends a question early.
    pub(crate) async fn pass(
        &self,
        scope: &Scope,
        deed: &Deed<'_>,
        shown: &dyn Fn() -> Value,
    ) -> Result<Rc<dyn ExecutionEnvironment>, Barred> {
        let by_name = Proposal {
            tool_name: deed.tool_name,
            kind: deed.kind,
            writes: deed.writes,
            command: deed.command,
            working_directory: &self.environment.info().working_directory,
            links: &BTreeMap::new(),
        };
        let environment = Environment::new(self.environment.clone(), scope.clone());
        let mut verdict = self.approvals.judge(&by_name);
        if verdict == Verdict::Allow {
            let paths = self.approvals.paths(&by_name);
            verdict = match links(&environment, paths).await {
                Ok(links) if links.is_empty() => verdict,
                Ok(links) => self.approvals.judge(&Proposal {
                    links: &links,
                    ..by_name
                }),
                Err(error) if error.kind == EnvironmentErrorKind::Cancelled => {
                    return Err(Barred::Stopped);
                }
                Err(error) => Verdict::Ask(format!("it is not known where it writes: {error}")),
            };
        }
        let git = match self.environment.info().platform.as_str() {
            // The sandbox has no git.
            "wasm" => GitCalls::None,
            _ => self.approvals.git(&by_name),
        };
        if verdict == Verdict::Allow && git != GitCalls::None {
            verdict = match git::look(&environment).await {
                Ok(None) => verdict,
                Ok(Some(settings)) => {
                    let concern = self.approvals.git_concern(&settings, &by_name);
                    concern.map_or(verdict, Verdict::Ask)
                }
                Err(error) if error.kind == EnvironmentErrorKind::Cancelled => {
                    return Err(Barred::Stopped);
                }
                Err(error) => Verdict::Ask(format!("it is not known what git would run: {error}")),
            };
        }
        // What somebody has allowed to commit also runs hooks.
        let guarded = match verdict {
            Verdict::Allow => git != GitCalls::None,
            _ => git == GitCalls::Reading,
        };
        match verdict {
            Verdict::Allow => {}
            Verdict::Deny(reason) => {
                let message = format!("denied by policy: {reason}");
                return Err(Barred::Refused(Refusal::DeniedByPolicy, message));
            }
            Verdict::Ask(reason) => self.ask(scope, &shown(), reason).await?,
        }
        Ok(match guarded {
            true => Rc::new(VariablesEnvironment::new(
                self.environment.clone(),
                git::variables(&[]),
            )),
            false => self.environment.clone(),
        })
    }

    /// `arguments` with the directory that those of a subagent start from: it may be
    /// another one than that of the session, which whoever is asked knows.
    fn placed(&self, arguments: &Value) -> Value {
        let mut arguments = arguments.clone();
        if self.scope.agent.is_some()
            && let Value::Object(fields) = &mut arguments
        {
            let own = &self.environment.info().working_directory;
            let given = fields.get("working_dir").and_then(Value::as_str);
            let directory = absolute_path(own, given.unwrap_or_default());
            fields.insert("working_dir".to_owned(), directory.into());
        }
        arguments
    }

    async fn ask(&self, scope: &Scope, arguments: &Value, reason: String) -> Result<(), Barred> {
        let call = &self.call;
        let arguments = &self.placed(arguments);
        self.events.approval_requested(call, arguments, &reason);
        let effect = EffectKind::AskApproval {
            tool_name: call.name.clone(),
            call_id: call.id.clone(),
            arguments: arguments.to_string(),
            reason: reason.clone(),
        };
        // The question goes to the session, not to the job of the call.
        let scope = Scope {
            cancel: scope.cancel.clone(),
            ..self.scope.clone()
        };
        let (refusal, why) = match self.port.request(&scope, effect).finish().await {
            OutcomeKind::Approval(Approval::Allow) => return Ok(()),
            OutcomeKind::Approval(Approval::Deny { reason }) => (Refusal::NotApproved, reason),
            OutcomeKind::Approval(Approval::NoApprover) => (
                Refusal::NoApprover,
                format!("nobody is there to approve it: {reason}"),
            ),
            OutcomeKind::Cancelled => return Err(Barred::Stopped),
            _ => (
                Refusal::NoApprover,
                "the host answered with an outcome of another effect; fix the host".to_owned(),
            ),
        };
        Err(Barred::Refused(refusal, format!("not approved: {why}")))
    }
}

/// Where those of `paths` lead that do not lead where they say. All are asked
/// for at once: one step to the host and back.
async fn links(
    environment: &Environment,
    paths: BTreeSet<String>,
) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let real = paths.iter().map(|path| environment.real_path(path));
    let real = try_join_all(real).await?;
    let found = paths.into_iter().zip(real);
    Ok(found
        .filter(|(path, real)| environment.absolute(path) != *real)
        .collect())
}

/// The environment of a call as a host's tool has it: what it changes there and
/// the commands it runs pass the same gate as those of the model.
pub(super) struct GatedEnvironment {
    pub(super) gate: Gate,
    pub(super) timeouts: Timeouts,
}

impl GatedEnvironment {
    async fn pass(
        &self,
        scope: &Scope,
        deed: &Deed<'_>,
        arguments: &Value,
    ) -> Result<Rc<dyn ExecutionEnvironment>, EnvironmentError> {
        let passed = self.gate.pass(scope, deed, &|| arguments.clone()).await;
        passed.map_err(|barred| match barred {
            Barred::Refused(_, message) => {
                EnvironmentError::new(EnvironmentErrorKind::PermissionDenied, message)
            }
            Barred::Stopped => EnvironmentError::new(EnvironmentErrorKind::Cancelled, "cancelled"),
        })
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for GatedEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        self.gate.environment.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let (writes, arguments) = match &call {
            EnvironmentCall::Write { path, content } => {
                let content = String::from_utf8_lossy(content);
                let arguments = json!({"file_path": path, "content": content});
                (vec![path.clone()], arguments)
            }
            EnvironmentCall::Remove { path } => (
                vec![path.clone()],
                json!({"file_path": path, "remove": true}),
            ),
            EnvironmentCall::MakeDir { path } => (vec![path.clone()], json!({"directory": path})),
            EnvironmentCall::Rename { from, to } => (
                vec![from.clone(), to.clone()],
                json!({"file_path": from, "new_path": to}),
            ),
            // The environment is the session's; a tool neither begins nor ends it.
            EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {
                return Err(EnvironmentError::new(
                    EnvironmentErrorKind::Unsupported,
                    "a tool cannot initialize or clean up the environment of its session",
                ));
            }
            _ => (Vec::new(), Value::Null),
        };
        if !writes.is_empty() {
            let deed = Deed {
                tool_name: "write_file",
                kind: "write_file",
                writes: &writes,
                command: None,
            };
            self.pass(scope, &deed, &arguments).await?;
        }
        self.gate.environment.call(scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let command = CommandLine {
            text: request.command.clone(),
            working_dir: request.working_dir.clone(),
        };
        let mut arguments = json!({"command": command.text});
        if let Some(directory) = &command.working_dir {
            arguments["working_dir"] = Value::from(directory.as_str());
        }
        let deed = Deed {
            tool_name: "shell",
            kind: "shell",
            writes: &[],
            command: Some(&command),
        };
        let environment = self.pass(scope, &deed, &arguments).await?;
        let asked = Some(request.timeout_ms).filter(|ms| *ms > 0);
        let request = ExecRequest {
            timeout_ms: self.timeouts.resolve(asked),
            ..request
        };
        environment.exec(scope, request, output).await
    }
}
