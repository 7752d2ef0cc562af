//! `grep` (spec 3.3): searches file contents.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use async_trait::async_trait;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use regex_syntax::ParserBuilder;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::{CallContext, Declared, ToolError, ToolOutput};
use crate::environment::{Environment, GrepRequest, Match, Matches};
use crate::text::Pattern;

/// Results when the call sets no limit (spec 3.3).
const DEFAULT_MAX_RESULTS: u64 = 100;

/// Matching lines gathered for the modes that only count them.
const MAX_COUNTED: u64 = 20_000;

/// Characters of a line that are shown.
const MAX_LINE_CHARS: usize = 500;

/// Lines of context on each side at most.
const MAX_CONTEXT: u64 = 50;

/// Files read for context at the same time.
const PARALLEL_READS: usize = 16;

/// Larger files are shown without context.
const MAX_CONTEXT_BYTES: u64 = 8 * 1024 * 1024;

pub(super) const PARAMETERS: &[Parameter] = &[
    required("pattern", Kind::Text),
    optional("path", Kind::Text),
    optional("glob_filter", Kind::Text),
    optional("case_insensitive", Kind::Flag),
    optional("max_results", Kind::Count),
    optional("output_mode", Kind::Text),
    optional("context_lines", Kind::Count),
    optional("exclude_pattern", Kind::Text),
    optional("max_per_file", Kind::Count),
];

/// Searches contents.
pub(super) struct Grep;

#[derive(Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
    glob_filter: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    max_results: Option<u64>,
    #[serde(default)]
    output_mode: OutputMode,
    /// Lines to show before and after a match.
    #[serde(default)]
    context_lines: u64,
    /// Lines that match this too are left out.
    exclude_pattern: Option<String>,
    /// Matching lines of one file at most.
    max_per_file: Option<u64>,
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
impl Executor for Grep {
    type Arguments = Arguments;

    const KIND: &'static str = "grep";

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let max = arguments.max_results.unwrap_or(DEFAULT_MAX_RESULTS).max(1);
        let filter = Filter::new(&arguments, declared)?;
        let request = GrepRequest {
            pattern: arguments.pattern,
            path: arguments.path.unwrap_or_default(),
            glob_filter: arguments.glob_filter.filter(|glob| !glob.is_empty()),
            case_insensitive: arguments.case_insensitive,
            max_results: match arguments.output_mode {
                OutputMode::Content if filter.is_none() => max,
                _ => MAX_COUNTED,
            },
        };
        let mut found = call.environment.grep(request).await?;
        if let Some(filter) = filter {
            filter.apply(&mut found, arguments.output_mode, max);
        }
        if found.matches.is_empty() {
            return Ok(ToolOutput::text(nothing("matches", found.truncated)));
        }
        let raise = declared.advertised("max_results");
        let text = match arguments.output_mode {
            OutputMode::Content => {
                let context = arguments.context_lines.min(MAX_CONTEXT) as usize;
                let files = files(&call.environment, &found, context).await;
                content(&found, &files, context, max, raise)
            }
            mode => by_file(&found, max, mode, raise),
        };
        Ok(ToolOutput::bounded(text, call.max_captured_bytes))
    }
}

/// What a search says that found none of `what`; one that `was_cut` cannot know.
pub(super) fn nothing(what: &str, was_cut: bool) -> String {
    match was_cut {
        false => format!("No {what} found"),
        true => {
            format!("No {what} found so far: the search was cut short before its end; narrow it")
        }
    }
}

/// What the environment's search does not do.
struct Filter {
    exclude: Option<Pattern>,
    max_per_file: u64,
}

impl Filter {
    /// `None` when everything that is found counts.
    fn new(arguments: &Arguments, declared: &Declared) -> Result<Option<Self>, ToolError> {
        let pattern = arguments.exclude_pattern.as_ref();
        let exclude = pattern
            .filter(|pattern| !pattern.is_empty())
            .map(|pattern| {
                let hir = ParserBuilder::new()
                    .case_insensitive(arguments.case_insensitive)
                    .build()
                    .parse(pattern);
                let compiled = hir.ok().and_then(|hir| Pattern::new(&hir).ok());
                compiled.ok_or_else(|| {
                    ToolError::new(format!(
                        "invalid regular expression {pattern:?} in {}",
                        declared.named("exclude_pattern")
                    ))
                })
            });
        let exclude = exclude.transpose()?;
        if exclude.is_none() && arguments.max_per_file.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            exclude,
            max_per_file: arguments.max_per_file.unwrap_or(u64::MAX).max(1),
        }))
    }

    fn apply(&self, found: &mut Matches, mode: OutputMode, max: u64) {
        let mut in_file = (String::new(), 0);
        found.matches.retain(|hit| {
            let found = |pattern: &Pattern| pattern.find(hit.text.as_bytes(), 0).is_some();
            if self.exclude.as_ref().is_some_and(found) {
                return false;
            }
            if in_file.0 != hit.path {
                in_file = (hit.path.clone(), 0);
            }
            in_file.1 += 1;
            in_file.1 <= self.max_per_file
        });
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        if mode == OutputMode::Content && found.matches.len() > max {
            found.matches.truncate(max);
            found.truncated = true;
        }
    }
}

/// Contents of the files with matches, for context. A file that cannot be read
/// again is shown without.
async fn files(
    environment: &Environment,
    found: &Matches,
    context: usize,
) -> BTreeMap<String, String> {
    if context == 0 {
        return BTreeMap::new();
    }
    let mut paths: Vec<&str> = found.matches.iter().map(|hit| hit.path.as_str()).collect();
    paths.dedup();
    let reads = paths.into_iter().map(|path| async move {
        let content = environment.read(path, MAX_CONTEXT_BYTES).await.ok()?;
        let text = String::from_utf8_lossy(&content).into_owned();
        Some((path.to_owned(), text))
    });
    let mut reads = stream::iter(reads.map(|work| work.boxed_local())).buffered(PARALLEL_READS);
    let mut files = BTreeMap::new();
    while let Some(read) = reads.next().await {
        files.extend(read);
    }
    files
}

fn content(
    found: &Matches,
    files: &BTreeMap<String, String>,
    context: usize,
    max: u64,
    raise: Option<&str>,
) -> String {
    let mut text = String::new();
    let mut rest = found.matches.as_slice();
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|hit| hit.path == first.path).count();
        let (of_file, others) = rest.split_at(length);
        rest = others;
        match files.get(&first.path) {
            Some(content) => with_context(&mut text, of_file, content, context),
            None => of_file.iter().for_each(|hit| {
                line(&mut text, &hit.path, ':', hit.line, &hit.text);
            }),
        }
        if context > 0 && !rest.is_empty() {
            text.push_str("--\n");
        }
    }
    if found.truncated {
        if found.matches.len() as u64 >= max {
            let _ = write!(
                text,
                "[stopped after {max} matching lines; narrow the search{}]",
                or_raise(raise)
            );
        } else {
            text.push_str("[the search was cut short; narrow it]");
        }
    } else {
        text.pop();
    }
    text
}

/// One line as ripgrep shows it: `:` around the number of a match, `-` around
/// that of a line of context.
fn line(text: &mut String, path: &str, mark: char, number: u64, shown: &str) {
    let _ = write!(text, "{path}{mark}{number}{mark}");
    match shown.char_indices().nth(MAX_LINE_CHARS) {
        None => text.push_str(shown),
        Some((end, _)) => {
            let _ = write!(text, "{} [... line cut]", &shown[..end]);
        }
    }
    text.push('\n');
}

/// The matches of one file among the lines around them.
fn with_context(text: &mut String, matches: &[Match], content: &str, context: usize) {
    let lines: Vec<&str> = content.lines().collect();
    let mut shown_to = 0;
    for hit in matches {
        let at = usize::try_from(hit.line)
            .unwrap_or(usize::MAX)
            .clamp(1, lines.len().max(1));
        let start = at.saturating_sub(context + 1).max(shown_to);
        if shown_to > 0 && start > shown_to {
            text.push_str("--\n");
        }
        // The number of the line, counted from 1, is one more than its index.
        let end = (at + context).min(lines.len());
        for (index, shown) in lines.iter().enumerate().take(end).skip(start) {
            let number = index as u64 + 1;
            let is_match = matches.iter().any(|hit| hit.line == number);
            line(
                text,
                &hit.path,
                if is_match { ':' } else { '-' },
                number,
                shown,
            );
        }
        shown_to = shown_to.max(end);
    }
}

fn or_raise(parameter: Option<&str>) -> String {
    match parameter {
        Some(name) => format!(" or raise {name}"),
        None => String::new(),
    }
}

fn by_file(found: &Matches, max: u64, mode: OutputMode, raise: Option<&str>) -> String {
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
            "[{shown} of {} files; narrow the search{}]",
            files.len(),
            or_raise(raise)
        ));
    }
    if found.truncated {
        lines.push("[the search was cut short; narrow it]".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run;

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
        assert_eq!(
            super::nothing("matches", true),
            "No matches found so far: the search was cut short before its end; narrow it"
        );
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
