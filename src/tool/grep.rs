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
const MAX_COUNTED: u64 = 20_000;

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
                let _ = write!(text, "{} [... line cut]", &hit.text[..end]);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;
    use super::*;

    const FILES: &[(&str, &[u8])] = &[
        ("src/b.rs", b"fn two() {}\nfn Three() {}\n"),
        ("src/a.rs", b"fn one() {}\r\n"),
        ("notes.md", b"one\ntwo\n"),
        (".gitignore", b"target/\n*.log\n!keep.log\n"),
        ("target/x.rs", b"fn one() {}\n"),
        ("a.log", b"one\n"),
        ("keep.log", b"one\n"),
        (".hidden", b"one\n"),
        (".git/config", b"one\n"),
        ("bin", b"one\0\n"),
        ("sub/.ignore", b"/x\n"),
        ("sub/x", b"one\n"),
        ("sub/y/x", b"one\n"),
    ];

    fn check(arguments: Value, expected: &str) {
        let (executed, _) = run(FILES, "grep", arguments);
        assert_eq!(executed.full, expected);
        assert_eq!(executed.is_error, expected.starts_with("Tool error"));
    }

    #[test]
    fn lines_by_path() {
        check(
            json!({"pattern": "one"}),
            "keep.log:1:one\nnotes.md:1:one\nsrc/a.rs:1:fn one() {}\nsub/y/x:1:one",
        );
        check(
            json!({"pattern": "^fn three", "case_insensitive": true}),
            "src/b.rs:2:fn Three() {}",
        );
        check(json!({"pattern": "nowhere"}), "No matches found");
    }

    #[test]
    fn where_to_search() {
        check(
            json!({"pattern": "fn", "path": "src", "max_results": 9}),
            "src/a.rs:1:fn one() {}\nsrc/b.rs:1:fn two() {}\nsrc/b.rs:2:fn Three() {}",
        );
        check(
            json!({"pattern": "one", "path": "/work/a.log"}),
            "a.log:1:one",
        );
        check(
            json!({"pattern": "one", "path": "target"}),
            "target/x.rs:1:fn one() {}",
        );
        check(
            json!({"pattern": "one", "path": "nowhere"}),
            "Tool error (grep): cannot search `nowhere`: no such file or directory",
        );
        check(
            json!({"pattern": "one", "glob_filter": "*.md"}),
            "notes.md:1:one",
        );
        check(
            json!({"pattern": "one", "glob_filter": "src/*.{rs,md}"}),
            "src/a.rs:1:fn one() {}",
        );
        check(
            json!({"pattern": "one", "glob_filter": "src/**", "path": "src"}),
            "src/a.rs:1:fn one() {}",
        );
    }

    #[test]
    fn cut_results_say_so() {
        check(
            json!({"pattern": "fn", "max_results": 2}),
            "src/a.rs:1:fn one() {}\nsrc/b.rs:1:fn two() {}\n[stopped after 2 matching lines; \
             narrow the search or raise max_results]",
        );
        check(
            json!({"pattern": "fn", "max_results": 3}),
            "src/a.rs:1:fn one() {}\nsrc/b.rs:1:fn two() {}\nsrc/b.rs:2:fn Three() {}",
        );
    }

    #[test]
    fn output_modes() {
        check(
            json!({"pattern": "fn", "output_mode": "files_with_matches"}),
            "src/a.rs\nsrc/b.rs",
        );
        check(
            json!({"pattern": "fn|two", "output_mode": "count"}),
            "notes.md:1\nsrc/a.rs:1\nsrc/b.rs:2",
        );
        check(
            json!({"pattern": "fn|two", "output_mode": "count", "max_results": 1}),
            "notes.md:1\n[1 of 3 files; narrow the search or raise max_results]",
        );
    }

    #[test]
    fn long_lines_are_cut() {
        let line = "ä".repeat(600);
        let (executed, _) = run(&[("a", line.as_bytes())], "grep", json!({"pattern": "ä"}));
        let expected = format!("a:1:{} [... line cut]", "ä".repeat(500));
        assert_eq!(executed.full, expected);
    }

    #[test]
    fn bad_patterns() {
        check(
            json!({"pattern": "a("}),
            "Tool error (grep): invalid regular expression \"a(\": unclosed group",
        );
        check(
            json!({"pattern": "a", "glob_filter": "["}),
            "Tool error (grep): invalid glob \"[\": unclosed character class; missing ']'",
        );
    }
}
