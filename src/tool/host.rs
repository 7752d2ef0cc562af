//! `HostTool`: a tool that the host executes, reached by an effect.

use std::rc::Rc;

use async_trait::async_trait;
use serde_json::Value;

use super::gate::GatedEnvironment;
use super::{CallContext, Declared, Invocation, Tool, ToolError, ToolOutput};
use crate::effect::{EffectKind, OutcomeKind};
use crate::llm::ToolDefinition;
use crate::text::CapturedOutput;

/// A tool whose definition was given to the session and whose calls leave as
/// [`EffectKind::CallTool`].
#[derive(Clone, Debug)]
pub struct HostTool {
    declared: Declared,
    /// What the host calls it.
    host_name: String,
}

impl HostTool {
    /// A tool that the host knows under `definition.name`.
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            host_name: definition.name.clone(),
            declared: definition.into(),
        }
    }

    /// The host's tool `host_name`, told to the model as `declared`.
    pub fn presented(declared: Declared, host_name: impl Into<String>) -> Self {
        Self {
            declared,
            host_name: host_name.into(),
        }
    }
}

impl Tool for HostTool {
    fn definition(&self) -> &Rc<ToolDefinition> {
        self.declared.definition()
    }

    fn kind(&self) -> &str {
        &self.host_name
    }

    fn shown(&self, arguments: Value) -> Value {
        self.declared.arguments(arguments).unwrap_or_default()
    }

    fn read(&self, arguments: Value) -> Result<Box<dyn Invocation + '_>, ToolError> {
        let arguments = self.declared.arguments(arguments)?;
        let host_name = &self.host_name;
        Ok(Box::new(Call {
            host_name,
            arguments,
        }))
    }
}

/// A call of the host's tool `host_name`.
struct Call<'a> {
    host_name: &'a str,
    arguments: Value,
}

#[async_trait(?Send)]
impl Invocation for Call<'_> {
    async fn execute(self: Box<Self>, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let effect = EffectKind::CallTool {
            name: self.host_name.to_owned(),
            call_id: call.call_id.to_string(),
            agent_id: call.scope.agent.as_ref().map(|agent| agent.to_string()),
            working_directory: call.environment.info().working_directory.clone(),
            arguments: self.arguments.to_string(),
        };
        let mut pending = call.port.request(&call.scope, effect);
        let _loan = call.gate.clone().map(|gate| {
            let timeouts = call.timeouts;
            let environment = Rc::new(GatedEnvironment { gate, timeouts });
            call.port.lend(&pending, environment, &call.scope)
        });
        let mut streamed = CapturedOutput::new(call.max_captured_bytes);
        loop {
            match pending.next().await {
                Some(OutcomeKind::ToolOutput(text)) => {
                    streamed.push(text.as_bytes());
                    (call.progress)(None, text.as_bytes());
                }
                Some(OutcomeKind::ToolEnd(result)) => {
                    let (text, media) = result.content.admitted();
                    return Ok(ToolOutput {
                        media,
                        is_error: result.is_error,
                        ..ToolOutput::bounded(text, call.max_captured_bytes)
                    });
                }
                Some(OutcomeKind::Cancelled) | None => {
                    let partial = ToolOutput::captured(streamed);
                    return Err(ToolError::stopped("before it ended").after(partial));
                }
                Some(_) => {
                    return Err(ToolError::new(
                        "the host answered a tool call with an outcome of another effect; \
                         fix the host",
                    ));
                }
            }
        }
    }
}
