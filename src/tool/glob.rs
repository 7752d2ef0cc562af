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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;
    use super::*;

    /// Oldest first.
    const FILES: &[(&str, &[u8])] = &[
        ("old.rs", b""),
        ("src/b.rs", b""),
        ("src/deep/a.rs", b""),
        ("a.py", b""),
        (".gitignore", b"build\n"),
        ("build/x.rs", b""),
        (".github/ci.yml", b""),
        ("new.rs", b""),
    ];

    fn check(arguments: Value, expected: &str) {
        let (executed, _) = run(FILES, "glob", arguments);
        assert_eq!(executed.full, expected);
        assert_eq!(executed.is_error, expected.starts_with("Tool error"));
    }

    #[test]
    fn newest_first() {
        check(
            json!({"pattern": "*.rs"}),
            "new.rs\nsrc/deep/a.rs\nsrc/b.rs\nold.rs",
        );
        check(
            json!({"pattern": "**/*.rs"}),
            "new.rs\nsrc/deep/a.rs\nsrc/b.rs\nold.rs",
        );
        check(json!({"pattern": "src/*.rs"}), "src/b.rs");
        check(
            json!({"pattern": "*.rs", "path": "src"}),
            "src/deep/a.rs\nsrc/b.rs",
        );
        check(
            json!({"pattern": "/work/src/**"}),
            "src/deep/a.rs\nsrc/b.rs",
        );
        check(json!({"pattern": ".github/*"}), ".github/ci.yml");
        check(json!({"pattern": "*.yml"}), "No files found");
    }

    #[test]
    fn failures() {
        check(
            json!({"pattern": "*", "path": "nowhere"}),
            "Tool error (glob): cannot search `nowhere`: no such file or directory",
        );
        check(
            json!({"pattern": "*", "path": "a.py"}),
            "Tool error (glob): not a directory: a.py",
        );
        check(
            json!({"pattern": "{a"}),
            "Tool error (glob): invalid glob \"{a\": unclosed alternate group; missing '}' (maybe \
             escape '{' with '[{]'?)",
        );
    }
}
