//! `glob` (spec 3.3): finds files by name, newest first.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput, parse};
use crate::environment::GlobRequest;
use crate::llm::ToolDefinition;

/// Files listed at most; the model sees fewer still.
const MAX_FILES: u64 = 10_000;

/// Finds files.
#[derive(Clone, Debug)]
pub struct Glob {
    definition: ToolDefinition,
}

impl Glob {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
}

#[async_trait(?Send)]
impl Tool for Glob {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "glob"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let request = GlobRequest {
            pattern: arguments.pattern,
            path: arguments.path.unwrap_or_default(),
            max_results: MAX_FILES,
        };
        let found = call.environment.glob(request).await?;
        if found.entries.is_empty() {
            return Ok(ToolOutput::text("No files found"));
        }
        let mut lines: Vec<&str> = found.entries.iter().map(|e| e.path.as_str()).collect();
        let note = format!(
            "[stopped after {} files; use a narrower pattern or a path]",
            lines.len()
        );
        if found.truncated {
            lines.push(&note);
        }
        Ok(ToolOutput::bounded(
            lines.join("\n"),
            call.max_captured_bytes,
        ))
    }
}
