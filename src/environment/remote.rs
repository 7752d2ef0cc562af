//! `RemoteEnvironment`: an environment outside the core, reached by messages.

use std::rc::Rc;

use async_trait::async_trait;

use super::{
    EnvironmentCall, EnvironmentError, EnvironmentInfo, EnvironmentReply, ExecRequest, ExecStatus,
    ExecutionEnvironment, OutputSink, Scope,
};

/// The way out: turns calls into effects and outcomes into answers. It is a
/// trait because effects are a layer to the right of environments.
#[async_trait(?Send)]
pub trait EnvironmentPort {
    /// Sends one call to environment number `environment`.
    async fn call(
        &self,
        environment: u32,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError>;

    /// Runs one command in environment number `environment`.
    async fn exec(
        &self,
        environment: u32,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError>;
}

/// An environment that the host provides (local disk, container, JS object).
pub struct RemoteEnvironment {
    id: u32,
    info: EnvironmentInfo,
    port: Rc<dyn EnvironmentPort>,
}

impl RemoteEnvironment {
    /// Environment number `id`, described by `info`, behind `port`.
    pub fn new(id: u32, info: EnvironmentInfo, port: Rc<dyn EnvironmentPort>) -> Self {
        Self { id, info, port }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for RemoteEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.port.call(self.id, scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        self.port.exec(self.id, scope, request, output).await
    }
}
