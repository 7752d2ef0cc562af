//! `grep` (spec 3.3): searches file contents.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, Tool, ToolError, ToolOutput, parse};
use crate::environment::{GrepRequest, Matches};
use crate::llm::ToolDefinition;

/// Results when the call sets no limit (spec 3.3).
const DEFAULT_MAX_RESULTS: u64 = 100;

/// Matching lines gathered for the modes that only count them.
const MAX_COUNTED: u64 = 100_000;

/// Characters of a matching line that are shown.
const MAX_LINE_CHARS: usize = 500;

/// Searches contents.
#[derive(Clone, Debug)]
pub struct Grep {
    definition: ToolDefinition,
}

impl Grep {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

#[derive(Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob_filter: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    max_results: Option<u64>,
    #[serde(default)]
    output_mode: OutputMode,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    FilesWithMatches,
    Count,
}

#[async_trait(?Send)]
impl Tool for Grep {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "grep"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let max = arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS).max(1);
        let request = GrepRequest {
            pattern: arguments.pattern,
            path: arguments.path.unwrap_or_default(),
            glob_filter: arguments.glob_filter.filter(|glob| !glob.is_empty()),
            case_insensitive: arguments.case_insensitive,
            max_results: match arguments.output_mode {
                OutputMode::Content => max,
                OutputMode::FilesWithMatches | OutputMode::Count => MAX_COUNTED,
            },
        };
        let found = call.environment.grep(request).await?;
        if found.matches.is_empty() {
            return Ok(ToolOutput::text("No matches found"));
        }
        let text = match arguments.output_mode {
            OutputMode::Content => content(&found, max),
            mode => by_file(&found, max, mode),
        };
        Ok(ToolOutput::bounded(text, call.max_captured_bytes))
    }
}

fn content(found: &Matches, max: u64) -> String {
    let mut text = String::new();
    for hit in &found.matches {
        let _ = write!(text, "{}:{}:", hit.path, hit.line);
        match hit.text.char_indices().nth(MAX_LINE_CHARS) {
            None => text.push_str(&hit.text),
            Some((end, _)) => {
                let cut = hit.text[end..].chars().count();
                let _ = write!(text, "{} [... {cut} more characters]", &hit.text[..end]);
            }
        }
        text.push('\n');
    }
    if found.truncated {
        if found.matches.len() as u64 >= max {
            let _ = write!(
                text,
                "[stopped after {max} matching lines; narrow the search or raise max_results]"
            );
        } else {
            text.push_str("[the search was cut short; narrow it]");
        }
    } else {
        text.pop();
    }
    text
}

fn by_file(found: &Matches, max: u64, mode: OutputMode) -> String {
    let mut files: Vec<(&str, u64)> = Vec::new();
    for hit in &found.matches {
        match files.last_mut() {
            Some((path, count)) if *path == hit.path => *count += 1,
            _ => files.push((&hit.path, 1)),
        }
    }
    let shown = usize::try_from(max).unwrap_or(usize::MAX).min(files.len());
    let mut lines: Vec<String> = files[..shown]
        .iter()
        .map(|(path, count)| match mode {
            OutputMode::Count => format!("{path}:{count}"),
            _ => (*path).to_owned(),
        })
        .collect();
    if shown < files.len() {
        lines.push(format!(
            "[{shown} of {} files; narrow the search or raise max_results]",
            files.len()
        ));
    }
    if found.truncated {
        lines.push("[the search was cut short; narrow it]".to_owned());
    }
    lines.join("\n")
}
