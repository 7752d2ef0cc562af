//! The system prompt: layers put together (spec 6.1 to 6.5).
//!
//! It changes only with the model and the tools, or the provider's prompt cache
//! would be lost; so the date is the date of the session's start.

use std::rc::Rc;

use chrono::{DateTime, FixedOffset, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Profile, PromptLayer};
use crate::llm::ToolDefinition;
use crate::tool::Vocabulary;

/// Bytes of all project documents together (spec 6.5).
const MAX_DOCUMENT_BYTES: usize = 32 * 1024;

/// Stands where the documents were cut (spec 6.5).
const DOCUMENTS_CUT: &str = "[Project instructions truncated at 32KB]";

/// The layers of spec 6.1; later ones take precedence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layers<'a> {
    /// Base instructions of the profile, or the user's in their place.
    pub base: &'a str,
    /// Facts of the environment.
    pub environment: &'a EnvironmentFacts<'a>,
    /// The repository around the working directory; absent outside of one.
    pub git: Option<&'a GitSnapshot>,
    /// Tools that the model has at the start.
    pub tools: &'a [Rc<ToolDefinition>],
    /// The section of the prompt about a subagent's part.
    pub role: Option<&'a str>,
    /// Project documents, outermost first.
    pub documents: &'a [Document],
    /// Why documents may be missing, if some may be: one sentence.
    pub documents_missing: Option<&'a str>,
    /// The user's own instructions.
    pub user: Option<&'a str>,
    /// JSON Schema of the final answer, where one is asked for.
    pub output: Option<&'a Value>,
}

/// What a host knows of the project around a working directory that holds a
/// part of it only, as `--env memory` in a subdirectory: the session cannot see
/// that itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProjectFacts {
    /// Documents of directories above, outermost first. They stand in the prompt
    /// before those that the session reads itself.
    pub documents: Vec<Document>,
    /// The repository, where the session finds none.
    pub git: Option<GitSnapshot>,
}

/// A file with instructions for agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// Path as the prompt names it.
    pub path: String,
    /// Content.
    pub text: String,
}

/// A repository as it was when the session started (spec 6.4). Fields that
/// could not be found out in time are absent or empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GitSnapshot {
    /// Branch or commit that is checked out.
    pub branch: Option<String>,
    /// Number of changed files and of untracked ones.
    pub changes: Option<(usize, usize)>,
    /// Last commits, newest first: short hash and subject.
    pub commits: Vec<String>,
    /// Why status or commits may be missing, if they may: one sentence.
    pub missing: Option<String>,
}

impl Layers<'_> {
    /// The system prompt of `profile`, with the names that tools have in
    /// `vocabulary`.
    pub(crate) fn to_prompt(self, profile: &Profile, vocabulary: &Vocabulary) -> String {
        use PromptLayer::{Base, Documents, Environment, Git, Tools, User};
        let user = self.user.map(str::trim).filter(|user| !user.is_empty());
        let role = self.role.map(|role| role.trim_end().to_owned());
        let own = |layer, text| profile.layer(layer, text, vocabulary);
        let parts = [
            own(Base, Some(self.base.trim_end().to_owned())),
            own(
                Environment,
                Some(environment_block(self.environment, self.git)),
            ),
            own(Git, self.git.and_then(git_block)),
            own(Tools, tool_list(self.tools)),
            role,
            own(
                Documents,
                document_block(self.documents, self.documents_missing),
            ),
            own(
                User,
                user.map(|user| format!("# User instructions\n\n{user}")),
            ),
            self.output.map(output_block),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
    }
}

/// Asks for a final answer that follows `schema`.
fn output_block(schema: &Value) -> String {
    format!(
        "# Final answer\n\nWhen the task is done, answer with one JSON value and nothing else: no \
         text around it, no code fence. It follows this JSON Schema:\n\n{schema}"
    )
}

/// What the environment block says (spec 6.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EnvironmentFacts<'a> {
    /// Absolute working directory.
    pub working_directory: &'a str,
    /// `darwin`, `linux`, `windows` or `wasm`.
    pub platform: &'a str,
    /// Version of the operating system.
    pub os_version: &'a str,
    /// Start of the session, ms since 1970-01-01 UTC.
    pub now_ms: u64,
    /// Minutes east of UTC of the user's clock.
    pub utc_offset_minutes: i32,
    /// What tools may not do, if anything.
    pub bounds: &'a str,
    /// Name of the model for people.
    pub model: &'a str,
    /// When the model's knowledge ends, if known.
    pub knowledge_cutoff: Option<&'a str>,
}

/// The block of spec 6.3.
pub(crate) fn environment_block(facts: &EnvironmentFacts<'_>, git: Option<&GitSnapshot>) -> String {
    let mut lines = vec![
        "<environment>".to_owned(),
        format!("Working directory: {}", facts.working_directory),
        format!("Is git repository: {}", git.is_some()),
    ];
    if let Some(branch) = git.and_then(|git| git.branch.as_deref()) {
        lines.push(format!("Git branch: {branch}"));
    }
    lines.push(format!("Platform: {}", facts.platform));
    if !facts.os_version.is_empty() {
        lines.push(format!("OS version: {}", facts.os_version));
    }
    lines.push(format!(
        "Today's date: {}",
        date(facts.now_ms, facts.utc_offset_minutes)
    ));
    if !facts.bounds.is_empty() {
        lines.push(format!("Limits: {}", facts.bounds));
    }
    lines.push(format!("Model: {}", facts.model));
    if let Some(cutoff) = facts.knowledge_cutoff {
        lines.push(format!("Knowledge cutoff: {cutoff}"));
    }
    lines.push("</environment>".to_owned());
    lines.join("\n")
}

/// Changes and commits; the branch stands in the environment block.
fn git_block(git: &GitSnapshot) -> Option<String> {
    let mut lines = Vec::new();
    if let Some((changed, untracked)) = git.changes {
        lines.push(match (changed, untracked) {
            (0, 0) => "Status: clean".to_owned(),
            _ => format!("Status: {changed} changed files, {untracked} untracked"),
        });
    }
    if !git.commits.is_empty() {
        lines.push("Recent commits:".to_owned());
        lines.extend(git.commits.iter().map(|commit| format!("  {commit}")));
    }
    if let Some(missing) = &git.missing {
        lines.push(format!("Not all of it is here: {missing}."));
    }
    if lines.is_empty() {
        return None;
    }
    let head = "<git>\nWhen the session started; ask git for the state now.\n";
    Some(format!("{head}{}\n</git>", lines.join("\n")))
}

/// A line per tool; the whole descriptions go with the request's tools.
fn tool_list(tools: &[Rc<ToolDefinition>]) -> Option<String> {
    let line = |tool: &Rc<ToolDefinition>| {
        let end = tool
            .description
            .find(". ")
            .unwrap_or(tool.description.len());
        let first = tool.description[..end].trim_end_matches('.');
        format!("- `{}`: {first}", tool.name)
    };
    let lines: Vec<String> = tools.iter().map(line).collect();
    (!lines.is_empty()).then(|| format!("# Available tools\n\n{}", lines.join("\n")))
}

/// All documents under their paths. The later ones count more, so the budget is
/// theirs first; what is cut says so in its place.
fn document_block(documents: &[Document], missing: Option<&str>) -> Option<String> {
    if documents.is_empty() && missing.is_none() {
        return None;
    }
    let mut left = MAX_DOCUMENT_BYTES;
    let within = |document: &Document| {
        // Editors put a byte order mark there, which says nothing.
        let text = document.text.trim_start_matches('\u{feff}');
        let kept = &text[..text.floor_char_boundary(left)];
        left -= kept.len();
        let head = format!("## {}\n\n{kept}", document.path);
        match (kept.len() < text.len(), kept.is_empty()) {
            (false, _) => head,
            (true, true) => head + DOCUMENTS_CUT,
            (true, false) => format!("{head}\n{DOCUMENTS_CUT}"),
        }
    };
    let mut texts: Vec<String> = documents.iter().rev().map(within).collect();
    texts.reverse();
    texts.extend(missing.map(|missing| {
        format!("Not all of them are here: {missing}. Look for more before you change files.")
    }));
    let text = texts.join("\n\n");
    let head = "# Project instructions\n\nWritten by the project's authors; where they differ, the later ones count.";
    Some(format!("{head}\n\n{text}"))
}

/// What `.git/HEAD` says is checked out: a branch name, or a commit's first
/// twelve digits.
pub(crate) fn git_branch(head: &str) -> Option<String> {
    let head = head.trim();
    if let Some(name) = head.strip_prefix("ref: refs/heads/") {
        return Some(name.to_owned());
    }
    let is_commit = head.len() >= 40 && head.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_commit.then(|| format!("{} (detached)", &head[..12]))
}

fn date(now_ms: u64, utc_offset_minutes: i32) -> String {
    let utc = i64::try_from(now_ms)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_millis)
        .unwrap_or_default();
    let offset = utc_offset_minutes
        .checked_mul(60)
        .and_then(FixedOffset::east_opt);
    match offset {
        Some(offset) => utc.with_timezone(&offset).date_naive().to_string(),
        None => utc.date_naive().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FACTS: EnvironmentFacts<'_> = EnvironmentFacts {
        working_directory: "/work",
        platform: "linux",
        os_version: "6.1",
        // 2026-11-21T23:30:00Z
        now_ms: 1_795_303_800_000,
        utc_offset_minutes: 60,
        bounds: "",
        model: "Model",
        knowledge_cutoff: Some("2026-01"),
    };

    impl Layers<'_> {
        fn prompt(self) -> String {
            let profile = Profile::of("anthropic").expect("a profile");
            self.to_prompt(&profile, &Vocabulary::default())
        }
    }

    const BARE: Layers<'_> = Layers {
        base: "Base.\n",
        environment: &FACTS,
        git: None,
        tools: &[],
        role: None,
        documents: &[],
        documents_missing: None,
        user: None,
        output: None,
    };

    fn document(path: &str, text: impl Into<String>) -> Document {
        Document {
            path: path.to_owned(),
            text: text.into(),
        }
    }

    #[test]
    fn the_block_follows_the_spec_and_the_users_date() {
        let git = GitSnapshot {
            branch: Some("main".to_owned()),
            ..GitSnapshot::default()
        };
        assert_eq!(
            environment_block(&FACTS, Some(&git)),
            "<environment>\nWorking directory: /work\nIs git repository: true\n\
             Git branch: main\nPlatform: linux\nOS version: 6.1\n\
             Today's date: 2026-11-22\nModel: Model\nKnowledge cutoff: 2026-01\n</environment>"
        );
    }

    #[test]
    fn outside_a_repository_no_branch_is_named() {
        let facts = EnvironmentFacts {
            knowledge_cutoff: None,
            ..FACTS
        };
        let block = environment_block(&facts, None);
        assert!(block.contains("Is git repository: false\nPlatform: linux"));
        assert!(!block.contains("cutoff"));
    }

    #[test]
    fn layers_stand_in_the_order_of_the_spec() {
        let tool = ToolDefinition {
            name: "grep".to_owned(),
            description: "Searches files. Fast.".to_owned(),
            parameters: json!({"type": "object"}),
            custom: None,
            strict: None,
            unchecked: false,
        };
        let git = GitSnapshot {
            branch: Some("main".to_owned()),
            changes: Some((2, 1)),
            commits: vec!["abc1 Add x".to_owned(), "abc0 Start".to_owned()],
            missing: None,
        };
        let documents = [
            document("/AGENTS.md", "Root."),
            document("/work/AGENTS.md", "Here."),
        ];
        let prompt = Layers {
            git: Some(&git),
            tools: &[tool.into()],
            role: Some("# Role\n"),
            documents: &documents,
            user: Some(" Be brief. "),
            ..BARE
        }
        .prompt();
        let (_, rest) = prompt.split_once("</environment>").expect("the block");
        assert!(prompt.starts_with("Base.\n\n<environment>"));
        assert_eq!(
            rest,
            "\n\n<git>\nWhen the session started; ask git for the state now.\nStatus: 2 changed \
             files, 1 untracked\nRecent commits:\n  abc1 Add x\n  abc0 Start\n</git>\n\n\
             # Available tools\n\n- `grep`: Searches files\n\n# Role\n\n\
             # Project instructions\n\nWritten by the project's authors; where they differ, the \
             later ones count.\n\n## /AGENTS.md\n\nRoot.\n\n## /work/AGENTS.md\n\nHere.\n\n\
             # User instructions\n\nBe brief."
        );
    }

    #[test]
    fn what_is_unknown_is_not_said() {
        let git = GitSnapshot::default();
        let prompt = Layers {
            git: Some(&git),
            user: Some("  "),
            ..BARE
        }
        .prompt();
        assert!(prompt.ends_with("</environment>"), "{prompt}");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let git = GitSnapshot {
            missing: Some("git is slow".to_owned()),
            ..GitSnapshot::default()
        };
        let prompt = Layers {
            git: Some(&git),
            documents_missing: Some("the disk is slow"),
            ..BARE
        }
        .prompt();
        let (_, rest) = prompt.split_once("</environment>").expect("the block");
        assert_eq!(
            rest,
            "\n\n<git>\nWhen the session started; ask git for the state now.\nNot all of it is \
             here: git is slow.\n</git>\n\n# Project instructions\n\nWritten by the project's \
             authors; where they differ, the later ones count.\n\nNot all of them are here: the \
             disk is slow. Look for more before you change files."
        );
    }

    fn check_documents(documents: &[Document], expected: &[(&str, usize, &str)]) {
        let prompt = Layers { documents, ..BARE }.prompt();
        let expected: String = expected
            .iter()
            .map(|(path, bytes, rest)| {
                let text = documents.iter().find(|document| document.path == *path);
                format!(
                    "\n\n## {path}\n\n{}{rest}",
                    &text.expect("given").text[..*bytes]
                )
            })
            .collect();
        assert!(prompt.ends_with(&expected), "{} bytes", prompt.len());
    }

    const CUT: &str = "\n[Project instructions truncated at 32KB]";

    #[test]
    fn a_byte_order_mark_is_no_text() {
        let documents = [document("/a", "\u{feff}Text.")];
        let prompt = Layers {
            documents: &documents,
            ..BARE
        }
        .prompt();
        assert!(prompt.ends_with("## /a\n\nText."), "{prompt}");
    }

    #[test]
    fn documents_share_32_kb() {
        let whole = [document("/a", "x".repeat(32_768))];
        check_documents(&whole, &[("/a", 32_768, "")]);
        let long = [document("/a", "x".repeat(32_769))];
        check_documents(&long, &[("/a", 32_768, CUT)]);
        // Between characters.
        let wide = [document("/a", format!("x{}", "ä".repeat(20_000)))];
        check_documents(&wide, &[("/a", 32_767, CUT)]);
    }

    #[test]
    fn the_deeper_document_keeps_its_text() {
        let documents = [document("/a", "x".repeat(33_000)), document("/b", "end")];
        check_documents(&documents, &[("/a", 32_765, CUT), ("/b", 3, "")]);
        let documents = [document("/a", "top"), document("/b", "x".repeat(33_000))];
        check_documents(&documents, &[("/a", 0, &CUT[1..]), ("/b", 32_768, CUT)]);
    }

    #[test]
    fn head_files() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        let cases = [
            ("ref: refs/heads/feature/x\n", Some("feature/x".to_owned())),
            (commit, Some("0123456789ab (detached)".to_owned())),
            ("garbage", None),
            ("", None),
        ];
        for (head, expected) in cases {
            assert_eq!(git_branch(head), expected, "{head:?}");
        }
    }
}
