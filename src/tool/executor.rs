//! What every tool of the core has in common: one executor, presented to the model as a
//! profile declares it.

use std::rc::Rc;

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{CallContext, CommandLine, Declared, Invocation, Tool, ToolError, ToolOutput};
use crate::llm::ToolDefinition;

/// What a tool of the core does.
#[async_trait(?Send)]
pub(super) trait Executor {
    /// What a call says, under the executor's own names.
    type Arguments: DeserializeOwned;

    /// Name by which limits and policies know it.
    const KIND: &'static str;

    /// See [`Invocation::writes`].
    fn writes(&self, _arguments: &Self::Arguments) -> Vec<String> {
        Vec::new()
    }

    /// See [`Invocation::command`].
    fn command(&self, _arguments: &Self::Arguments) -> Option<CommandLine> {
        None
    }

    /// Runs one call; `declared` says what the model calls things.
    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Self::Arguments,
    ) -> Result<ToolOutput, ToolError>;
}

/// An executor under the name and with the arguments that a profile gives it.
pub(super) struct Presented<E> {
    declared: Declared,
    executor: E,
}

impl<E: Executor> Presented<E> {
    pub(super) fn new(declared: impl Into<Declared>, executor: E) -> Self {
        Self {
            declared: declared.into(),
            executor,
        }
    }
}

impl<E: Executor> Tool for Presented<E> {
    fn definition(&self) -> &Rc<ToolDefinition> {
        self.declared.definition()
    }

    fn kind(&self) -> &str {
        E::KIND
    }

    fn shown(&self, arguments: Value) -> Value {
        self.declared.arguments(arguments).unwrap_or_default()
    }

    fn read(&self, arguments: Value) -> Result<Box<dyn Invocation + '_>, ToolError> {
        let arguments = self.declared.parse(arguments)?;
        let tool = self;
        Ok(Box::new(Call { tool, arguments }))
    }
}

/// A call whose arguments have been read.
struct Call<'a, E: Executor> {
    tool: &'a Presented<E>,
    arguments: E::Arguments,
}

#[async_trait(?Send)]
impl<E: Executor> Invocation for Call<'_, E> {
    fn writes(&self) -> Vec<String> {
        self.tool.executor.writes(&self.arguments)
    }

    fn command(&self) -> Option<CommandLine> {
        self.tool.executor.command(&self.arguments)
    }

    async fn execute(self: Box<Self>, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let Presented { declared, executor } = self.tool;
        executor.execute(declared, call, self.arguments).await
    }
}
