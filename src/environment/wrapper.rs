//! Wrappers that add one concern to any environment (spec 4.4).

use std::collections::BTreeMap;
use std::rc::Rc;

use async_trait::async_trait;

use super::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
    ExecRequest, ExecStatus, ExecutionEnvironment, OutputSink, Scope,
};

/// Rejects every write and, unless told otherwise, every command.
pub struct ReadOnlyEnvironment {
    inner: Rc<dyn ExecutionEnvironment>,
    commands: bool,
}

impl ReadOnlyEnvironment {
    /// No writes and no commands: a command could write anything.
    pub fn new(inner: Rc<dyn ExecutionEnvironment>) -> Self {
        Self {
            inner,
            commands: false,
        }
    }

    /// No writes by tools, but commands run: a guard, not a boundary.
    pub fn allowing_commands(inner: Rc<dyn ExecutionEnvironment>) -> Self {
        Self {
            inner,
            commands: true,
        }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for ReadOnlyEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        self.inner.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        if call.writes() {
            return Err(EnvironmentError::new(
                EnvironmentErrorKind::ReadOnly,
                "write operations are disabled in read-only mode",
            ));
        }
        self.inner.call(scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        if !self.commands {
            return Err(EnvironmentError::new(
                EnvironmentErrorKind::ReadOnly,
                "commands are disabled in read-only mode",
            ));
        }
        self.inner.exec(scope, request, output).await
    }
}

/// Gives every command these variables, over those that it would have.
pub(crate) struct VariablesEnvironment {
    inner: Rc<dyn ExecutionEnvironment>,
    variables: BTreeMap<String, String>,
}

impl VariablesEnvironment {
    /// Adds `variables` to the commands that run in `inner`.
    pub(crate) fn new(
        inner: Rc<dyn ExecutionEnvironment>,
        variables: BTreeMap<String, String>,
    ) -> Self {
        Self { inner, variables }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for VariablesEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        self.inner.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.inner.call(scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        mut request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        request.env.extend(self.variables.clone());
        self.inner.exec(scope, request, output).await
    }
}

/// Receives a line before and after every call.
pub(crate) type CallLog = Rc<dyn Fn(&str)>;

/// Logs every call and its result; changes nothing.
pub struct LoggingEnvironment {
    inner: Rc<dyn ExecutionEnvironment>,
    log: CallLog,
}

impl LoggingEnvironment {
    /// Logs calls to `inner` through `log`. File contents are never logged.
    pub fn new(inner: Rc<dyn ExecutionEnvironment>, log: CallLog) -> Self {
        Self { inner, log }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for LoggingEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        self.inner.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let name = describe(&call);
        (self.log)(&name);
        let result = self.inner.call(scope, call).await;
        match &result {
            Ok(_) => (self.log)(&format!("{name}: ok")),
            Err(error) => (self.log)(&format!("{name}: {error}")),
        }
        result
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        (self.log)(&format!("exec: {}", request.command));
        let result = self.inner.exec(scope, request, output).await;
        match &result {
            Ok(status) => (self.log)(&format!(
                "exit: {} in {} ms",
                status.exit_code, status.duration_ms
            )),
            Err(error) => (self.log)(&format!("exec: {error}")),
        }
        result
    }
}

fn describe(call: &EnvironmentCall) -> String {
    match call {
        EnvironmentCall::Initialize => "initialize".to_owned(),
        EnvironmentCall::Cleanup => "cleanup".to_owned(),
        EnvironmentCall::Read { path, .. } => format!("read {path}"),
        EnvironmentCall::ReadPart { path, offset, .. } => {
            format!("read {path} from byte {offset} on")
        }
        EnvironmentCall::Write { path, content } => {
            format!("write {path} ({} bytes)", content.len())
        }
        EnvironmentCall::Stat { path } => format!("stat {path}"),
        EnvironmentCall::RealPath { path } => format!("real path {path}"),
        EnvironmentCall::List { path, depth } => format!("list {path} (depth {depth})"),
        EnvironmentCall::Remove { path } => format!("remove {path}"),
        EnvironmentCall::Rename { from, to } => format!("rename {from} to {to}"),
        EnvironmentCall::MakeDir { path } => format!("make dir {path}"),
        EnvironmentCall::Grep(request) => format!("grep {} in {}", request.pattern, request.path),
        EnvironmentCall::Glob(request) => format!("glob {} in {}", request.pattern, request.path),
    }
}
