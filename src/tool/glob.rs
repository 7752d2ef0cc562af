//! `glob` (spec 3.3): finds files by name, newest first.

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput, parse};
use crate::environment::{Environment, GlobRequest, absolute_path};
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
        let path = arguments.path.unwrap_or_default();
        let (path, pattern) = place(&call.environment, path, arguments.pattern);
        let request = GlobRequest {
            pattern,
            path,
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

/// Where to search and for what. A pattern that is absolute or climbs with `..`
/// names its own place: the directories before its first wildcard.
fn place(environment: &Environment, path: String, pattern: String) -> (String, String) {
    let wild = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    let Some(end) = pattern[..wild].rfind('/') else {
        return (path, pattern);
    };
    let (directory, rest) = pattern.split_at(end);
    let climbs = directory.split('/').any(|part| part == "..");
    if !climbs && !pattern.starts_with('/') {
        return (path, pattern);
    }
    let base = environment.absolute(&path);
    let directory = absolute_path(&base, if directory.is_empty() { "/" } else { directory });
    let quoted: String = directory
        .trim_end_matches('/')
        .chars()
        .flat_map(|c| {
            let special = "*?[]{}\\!".contains(c);
            special.then_some('\\').into_iter().chain([c])
        })
        .collect();
    (directory, quoted + rest)
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
        check(json!({"pattern": "/work/src/*.rs"}), "src/b.rs");
        check(json!({"pattern": "/work/a.py"}), "a.py");
        check(
            json!({"pattern": "../*.rs", "path": "src"}),
            "new.rs\nold.rs",
        );
        check(json!({"pattern": "src/../*.py"}), "a.py");
        check(json!({"pattern": "/*/src/b.*"}), "src/b.rs");
        check(json!({"pattern": "./src/*.rs"}), "src/b.rs");
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
