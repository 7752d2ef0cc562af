//! Tools that a host lends to sessions, and what they do in a session's environment.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::effect::HostToolResult;
use hermitcrab::environment::{
    DirEntry, EnvironmentCall, EnvironmentReply, ExecRequest, ExecStatus, OutputStream,
};
use hermitcrab::llm::ToolDefinition;

use crate::driver::{DriverHandle, ToolEnvironment, ToolFn, ToolInvocation};
use crate::error::HostError;
use crate::job::{self, Target};
use crate::memory::ExecOutput;

/// A tool that the host executes.
#[derive(Clone)]
pub struct HostTool {
    /// The declaration in requests.
    pub definition: ToolDefinition,
    /// Runs one call.
    pub execute: ToolFn,
}

/// Errors of all calls: what the environment answers, `permission_denied` where
/// the policy or the host says no, `not_found` once the tool's call is over.
impl ToolEnvironment {
    pub(crate) fn new(driver: DriverHandle, effect: u64, working_directory: String) -> Self {
        Self {
            driver,
            effect,
            working_directory: working_directory.into(),
        }
    }

    /// Directory that relative paths start at: the session's, or the subagent's.
    pub fn working_directory(&self) -> &str {
        &self.working_directory
    }

    /// Runs a command to its end; a `timeout_ms` of 0 takes the session's default.
    ///
    /// # Errors
    /// The command cannot be started, the policy or the host denies it, or the tool's call
    /// is over.
    pub async fn exec(&self, request: ExecRequest) -> Result<ExecOutput, HostError> {
        let mut result = ExecOutput::default();
        let (stdout, stderr) = (&mut result.stdout, &mut result.stderr);
        let output = |stream, data: Bytes| match stream {
            OutputStream::Stdout => stdout.extend_from_slice(&data),
            OutputStream::Stderr => stderr.extend_from_slice(&data),
        };
        result.status = self.exec_with(request, output).await?;
        Ok(result)
    }

    /// Runs a command and hands its output over as it comes.
    ///
    /// # Errors
    /// The same as [`exec`](Self::exec).
    pub async fn exec_with(
        &self,
        request: ExecRequest,
        output: impl FnMut(OutputStream, Bytes),
    ) -> Result<ExecStatus, HostError> {
        let never = std::future::pending();
        job::exec(&self.driver, self.target(), request, output, never).await
    }

    /// Content of a file.
    ///
    /// # Errors
    /// The file cannot be read (`not_found`, for example), the host denies it, or the tool's
    /// call is over.
    pub async fn read(&self, path: &str) -> Result<Bytes, HostError> {
        job::read(&self.driver, self.target(), path).await
    }

    /// Replaces or creates a file, with its parents.
    ///
    /// # Errors
    /// The file cannot be written, the policy or the host denies it, or the tool's call is
    /// over.
    pub async fn write(&self, path: &str, content: impl Into<Bytes>) -> Result<(), HostError> {
        job::write(&self.driver, self.target(), path, content.into()).await
    }

    /// Entries below a directory; depth 1 is the directory itself.
    ///
    /// # Errors
    /// The directory cannot be listed, the host denies it, or the tool's call is over.
    pub async fn list(&self, path: &str, depth: u32) -> Result<Vec<DirEntry>, HostError> {
        let call = EnvironmentCall::List {
            path: path.to_owned(),
            depth,
        };
        match self.call(call).await? {
            EnvironmentReply::Entries(entries) => Ok(entries.entries),
            _ => Err(job::out_of_place("list")),
        }
    }

    /// Makes any call.
    ///
    /// # Errors
    /// What the environment answers; `permission_denied` where the policy or the host says
    /// no; `not_found` once the tool's call is over.
    pub async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, HostError> {
        job::call(&self.driver, self.target(), call).await
    }

    fn target(&self) -> Target {
        Target::Tool(self.effect)
    }
}

impl fmt::Debug for ToolEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolEnvironment")
            .field("working_directory", &self.working_directory)
            .finish_non_exhaustive()
    }
}

impl HostTool {
    /// A tool from a definition and an async function.
    pub fn new<F, T>(definition: ToolDefinition, execute: F) -> Self
    where
        F: Fn(ToolInvocation) -> T + Send + Sync + 'static,
        T: Future<Output = HostToolResult> + Send + 'static,
    {
        Self {
            definition,
            execute: Arc::new(move |invocation| Box::pin(execute(invocation))),
        }
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool")
            .field("name", &self.definition.name)
            .finish_non_exhaustive()
    }
}
