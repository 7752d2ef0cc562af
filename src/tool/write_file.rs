//! `write_file` (spec 3.3): creates or replaces a whole file.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput, parse};
use crate::llm::ToolDefinition;

/// Writes files.
#[derive(Clone, Debug)]
pub struct WriteFile {
    definition: ToolDefinition,
}

impl WriteFile {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    content: String,
}

#[async_trait(?Send)]
impl Tool for WriteFile {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "write_file"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Arguments { file_path, content } = parse(arguments)?;
        let absolute = call.environment.absolute(&file_path);
        let _turn = call.files.lock(&absolute).await;
        let existed = call.environment.exists(&file_path).await?;
        let bytes = content.len();
        call.environment.write(&file_path, content).await?;
        let verb = if existed { "Replaced" } else { "Created" };
        Ok(ToolOutput::text(format!(
            "{verb} {file_path} ({bytes} bytes written)"
        )))
    }
}
