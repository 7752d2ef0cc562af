//! `glob` (spec 3.3): finds files by name, newest first. It does not descend
//! into symbolic links to directories; `path` may be one.

use async_trait::async_trait;
use serde::Deserialize;

use super::executor::Executor;
use super::grep::nothing;
use super::mapping::{Kind, Parameter, optional, required};
use super::{CallContext, Declared, ToolError, ToolOutput};
use crate::environment::{Environment, GlobRequest, absolute_path};

/// Files listed at most; the model sees fewer still.
const MAX_FILES: u64 = 10_000;

pub(super) const PARAMETERS: &[Parameter] = &[
    required("pattern", Kind::Text),
    optional("path", Kind::Text),
    optional("case_sensitive", Kind::Flag),
];

/// Finds files.
pub(super) struct Glob;

#[derive(Deserialize)]
pub(super) struct Arguments {
    pattern: String,
    path: Option<String>,
    /// Absent: yes.
    case_sensitive: Option<bool>,
}

#[async_trait(?Send)]
impl Executor for Glob {
    type Arguments = Arguments;

    const KIND: &'static str = "glob";

    async fn execute(
        &self,
        _: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let path = arguments.path.unwrap_or_default();
        let (path, mut pattern) = place(&call.environment, path, arguments.pattern);
        if arguments.case_sensitive == Some(false) {
            pattern = either_case(&pattern);
        }
        let request = GlobRequest {
            pattern,
            path,
            max_results: MAX_FILES,
        };
        let found = call.environment.glob(request).await?;
        if found.entries.is_empty() {
            return Ok(ToolOutput::text(nothing("files", found.truncated)));
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

/// The pattern with every letter in both cases, as a class: environments know
/// no search that overlooks case.
fn either_case(pattern: &str) -> String {
    let mut result = String::new();
    let mut class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                // An escaped letter is a letter.
                match chars.next() {
                    Some(next) if other_case(next).is_none() => result.extend(['\\', next]),
                    Some(next) => push_cases(&mut result, next, class),
                    None => result.push('\\'),
                }
                continue;
            }
            '[' if !class => {
                class = true;
                result.push('[');
                // What stands first is no end: `[]a]`, `[!]a]`.
                result.extend(chars.next_if(|c| matches!(c, '!' | '^')));
                result.extend(chars.next_if_eq(&']'));
                continue;
            }
            ']' => class = false,
            _ => {}
        }
        // A range in a class: both ends, then both ends in the other case.
        if class && chars.peek() == Some(&'-') {
            let mut ahead = chars.clone();
            ahead.next();
            if let Some(end) = ahead.next().filter(|end| *end != ']') {
                result.extend([c, '-', end]);
                match (other_case(c), other_case(end)) {
                    (Some(from), Some(to)) if from <= to => result.extend([from, '-', to]),
                    _ => {}
                }
                chars = ahead;
                continue;
            }
        }
        push_cases(&mut result, c, class);
    }
    result
}

fn push_cases(result: &mut String, c: char, in_class: bool) {
    match other_case(c) {
        None => result.push(c),
        Some(other) if in_class => result.extend([c, other]),
        Some(other) => result.extend(['[', c, other, ']']),
    }
}

/// The letter in the other case, where that is one letter.
fn other_case(c: char) -> Option<char> {
    let single = |mut cases: Box<dyn Iterator<Item = char>>| {
        let first = cases.next()?;
        (cases.next().is_none() && first != c).then_some(first)
    };
    single(Box::new(c.to_lowercase())).or_else(|| single(Box::new(c.to_uppercase())))
}

/// Where to search and for what. A pattern that is absolute or climbs with `..`
/// names its own place: the directories before its first wildcard.
pub(super) fn place(environment: &Environment, path: String, pattern: String) -> (String, String) {
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
    use serde_json::{Value, json};

    use super::super::testing::{run, run_declared};
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
    fn cases() {
        const DECLARATION: &str = r#"[{"name": "glob", "description": "", "parameters": {
            "type": "object", "required": ["pattern"], "properties": {
                "pattern": {"type": "string"}, "case_sensitive": {"type": "boolean"}}}}]"#;
        let check = |pattern: &str, case_sensitive: bool, expected: &str| {
            let arguments = json!({"pattern": pattern, "case_sensitive": case_sensitive});
            let executed = run_declared(DECLARATION, FILES, "glob", arguments);
            assert_eq!(executed.full, expected);
        };
        check("A.PY", false, "a.py");
        check("SRC/*.RS", false, "src/b.rs");
        check("[N-O]{EW,LD}.rs", false, "new.rs\nold.rs");
        check("A.PY", true, "No files found");
        for (pattern, expected) in [
            ("a.B", "[aA].[Bb]"),
            ("[!ab]?", "[!aAbB]?"),
            ("[a-c-]", "[a-cA-C-]"),
            ("\\*\\a", "\\*[aA]"),
            ("ß1é", "ß1[éÉ]"),
            ("[]a]", "[]aA]"),
            ("[A-z]", "[A-z]"),
        ] {
            assert_eq!(either_case(pattern), expected);
        }
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
            "Tool error (glob): invalid glob \"{a\": unclosed alternate group; missing '}' \
             (maybe escape '{' with '[{]'?)",
        );
    }
}
