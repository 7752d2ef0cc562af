//! `list_dir` (spec 3.6): what is in a directory, some levels deep.

use std::fmt::Write as _;

use async_trait::async_trait;
use futures_util::future::join_all;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::{CallContext, Declared, ToolError, ToolOutput};
use crate::environment::search::{IgnoreRules, PathGlob, display_path};
use crate::environment::{DirEntry, Environment, EnvironmentError, EnvironmentErrorKind};

/// Entries listed at most; the model sees fewer still.
const MAX_ENTRIES: usize = 10_000;

/// Levels listed at most.
const MAX_DEPTH: u64 = 32;

/// Directories listed at the same time.
const PARALLEL_LISTS: usize = 16;

/// Ignore files larger than this are not read.
const MAX_IGNORE_BYTES: u64 = 1024 * 1024;

const IGNORE_FILE: &str = ".gitignore";

pub(super) const PARAMETERS: &[Parameter] = &[
    required("path", Kind::Text),
    optional("depth", Kind::Count),
    optional("ignore", Kind::Texts),
    optional("respect_git_ignore", Kind::Flag),
];

/// Lists directories.
pub(super) struct ListDir;

#[derive(Deserialize)]
pub(super) struct Arguments {
    path: String,
    /// 1, the default: the directory itself; 2: its subdirectories too.
    depth: Option<u64>,
    /// Globs of entries to leave out.
    #[serde(default)]
    ignore: Vec<String>,
    /// Absent: yes.
    respect_git_ignore: Option<bool>,
}

#[async_trait(?Send)]
impl Executor for ListDir {
    type Arguments = Arguments;

    const KIND: &'static str = "list_dir";

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let environment = &call.environment;
        let ignore = arguments.ignore.iter().map(|glob| PathGlob::new(glob));
        let root = environment.absolute(&arguments.path);
        let respect = arguments.respect_git_ignore != Some(false);
        let mut walk = Walk {
            environment,
            root: &root,
            ignore: ignore.collect::<Result<_, _>>()?,
            respect_git_ignore: respect,
            found: Vec::new(),
            hidden: 0,
            truncated: false,
        };
        let rules = if respect {
            rules_above(environment, &root).await?
        } else {
            Rules::default()
        };
        let depth = arguments.depth.unwrap_or(1).clamp(1, MAX_DEPTH);
        walk.run(rules, depth)
            .await
            .map_err(|error| explain(declared, &arguments.path, error))?;
        Ok(ToolOutput::bounded(
            report(declared, &arguments.path, walk),
            call.max_captured_bytes,
        ))
    }
}

fn explain(declared: &Declared, path: &str, error: EnvironmentError) -> ToolError {
    let shown = if path.is_empty() { "." } else { path };
    match error.kind {
        EnvironmentErrorKind::NotFound => ToolError::new(format!("directory not found: {shown}")),
        EnvironmentErrorKind::NotDirectory => {
            let way_out = match declared.others(&["read_file"]) {
                Some(read) => format!("; read it with {read}"),
                None => String::new(),
            };
            ToolError::new(format!("{shown} is not a directory{way_out}"))
        }
        _ => error.into(),
    }
}

fn report(declared: &Declared, path: &str, mut walk: Walk<'_>) -> String {
    walk.found.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let shown = if path.is_empty() { "." } else { path };
    let mut lines: Vec<String> = Vec::with_capacity(walk.found.len());
    for entry in &walk.found {
        lines.push(match entry.size {
            _ if entry.is_dir => format!("{}/", entry.path),
            Some(size) => format!("{} ({size} bytes)", entry.path),
            None => entry.path.clone(),
        });
    }
    if lines.is_empty() {
        lines.push(format!("[{shown} has no entries to show]"));
    }
    if walk.truncated {
        lines.push(format!(
            "[stopped after {} entries; list a subdirectory]",
            walk.found.len()
        ));
    }
    if walk.hidden > 0 {
        let noun = if walk.hidden == 1 { "entry" } else { "entries" };
        let mut note = format!("[{} {noun} that git ignores left out", walk.hidden);
        if let Some(name) = declared.advertised("respect_git_ignore") {
            let _ = write!(note, "; set {name} to false to see them");
        }
        lines.push(note + "]");
    }
    lines.join("\n")
}

/// Ignore rules, and where they count from.
#[derive(Clone, Debug, Default)]
struct Rules {
    rules: IgnoreRules,
    /// From there to the listed directory; empty or with a `/` at its end.
    prefix: String,
}

/// The rules of the directories above `root`, from the working directory down:
/// what git ignores there it ignores below.
async fn rules_above(environment: &Environment, root: &str) -> Result<Rules, EnvironmentError> {
    let base = environment.absolute("");
    let below = match display_path(&base, root) {
        below if below != root => below,
        _ => return Ok(Rules::default()),
    };
    let parts: Vec<_> = below.split('/').collect();
    let directories: Vec<_> = (0..parts.len())
        .map(|count| parts[..count].join("/"))
        .collect();
    let reads = directories.iter().map(|directory| {
        let path = format!("{}/{directory}/{IGNORE_FILE}", base.trim_end_matches('/'));
        async move { environment.read(&path, MAX_IGNORE_BYTES).await }
    });
    let mut rules = IgnoreRules::default();
    for (directory, content) in directories.iter().zip(join_all(reads).await) {
        match content {
            Ok(content) => {
                rules = rules.enter(directory, [(IGNORE_FILE, &content[..])].into_iter());
            }
            Err(error) if error.kind == EnvironmentErrorKind::Cancelled => return Err(error),
            Err(_) => {}
        }
    }
    Ok(Rules {
        rules,
        prefix: format!("{below}/"),
    })
}

struct Walk<'a> {
    environment: &'a Environment,
    root: &'a str,
    ignore: Vec<PathGlob>,
    respect_git_ignore: bool,
    found: Vec<DirEntry>,
    /// Entries left out because git ignores them.
    hidden: usize,
    truncated: bool,
}

impl Walk<'_> {
    /// Lists level by level; the directories of one level at the same time.
    async fn run(&mut self, rules: Rules, depth: u64) -> Result<(), EnvironmentError> {
        let mut level = vec![(String::new(), rules)];
        for _ in 0..depth {
            let directories = std::mem::take(&mut level).into_iter();
            let lists = directories.map(|(directory, rules)| self.list(directory, rules));
            let lists = stream::iter(lists.map(|work| work.boxed_local()));
            let lists: Vec<_> = lists.buffered(PARALLEL_LISTS).collect().await;
            for (directory, listed) in lists {
                let (entries, rules, truncated) = match listed {
                    Ok(listed) => listed,
                    Err(error)
                        if directory.is_empty()
                            || error.kind == EnvironmentErrorKind::Cancelled =>
                    {
                        return Err(error);
                    }
                    // A directory below need not be readable.
                    Err(_) => continue,
                };
                self.truncated |= truncated;
                for entry in entries {
                    if self.found.len() >= MAX_ENTRIES {
                        self.truncated = true;
                        return Ok(());
                    }
                    if self.leaves_out(&rules, &entry) {
                        continue;
                    }
                    // Nobody wants to see what git keeps for itself.
                    if entry.is_dir && !entry.path.ends_with(".git") {
                        level.push((entry.path.clone(), rules.clone()));
                    }
                    self.found.push(entry);
                }
            }
        }
        Ok(())
    }

    fn leaves_out(&mut self, rules: &Rules, entry: &DirEntry) -> bool {
        let absolute = format!("{}/{}", self.root.trim_end_matches('/'), entry.path);
        let unwanted = |glob: &PathGlob| glob.matches_any([&entry.path], &absolute);
        if self.ignore.iter().any(unwanted) {
            return true;
        }
        let path = format!("{}{}", rules.prefix, entry.path);
        let ignored =
            self.respect_git_ignore && rules.rules.verdict(&path, entry.is_dir) == Some(true);
        self.hidden += usize::from(ignored);
        ignored
    }

    async fn list(&self, directory: String, rules: Rules) -> (String, Listed) {
        let listed = self.list_one(&directory, rules).await;
        (directory, listed)
    }

    /// Entries of one directory, with paths relative to the root, and the rules
    /// for them.
    async fn list_one(&self, directory: &str, rules: Rules) -> Listed {
        let absolute = match directory {
            "" => self.root.to_owned(),
            _ => format!("{}/{directory}", self.root.trim_end_matches('/')),
        };
        let listing = self.environment.list(&absolute, 1).await?;
        let mut rules = rules;
        let has_rules = |entry: &DirEntry| !entry.is_dir && entry.path == IGNORE_FILE;
        if self.respect_git_ignore && listing.entries.iter().any(has_rules) {
            let path = format!("{}/{IGNORE_FILE}", absolute.trim_end_matches('/'));
            match self.environment.read(&path, MAX_IGNORE_BYTES).await {
                Ok(content) => {
                    let at = format!("{}{directory}", rules.prefix);
                    let files = [(IGNORE_FILE, &content[..])].into_iter();
                    rules.rules = rules.rules.enter(at.trim_end_matches('/'), files);
                }
                Err(error) if error.kind == EnvironmentErrorKind::Cancelled => return Err(error),
                Err(_) => {}
            }
        }
        let entries = listing.entries.into_iter().map(|mut entry| {
            if !directory.is_empty() {
                entry.path = format!("{directory}/{}", entry.path);
            }
            entry
        });
        Ok((entries.collect(), rules, listing.truncated))
    }
}

type Listed = Result<(Vec<DirEntry>, Rules, bool), EnvironmentError>;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run_declared;

    const FILES: &[(&str, &[u8])] = &[
        ("README.md", b"hello"),
        ("src/main.rs", b"fn main() {}"),
        ("src/deep/er/x.rs", b""),
        ("src/deep/.gitignore", b"*.tmp\n"),
        ("src/deep/a.tmp", b""),
        ("target/debug/x", b""),
        (".gitignore", b"target/\n/src/gen\n"),
        ("src/gen/y.rs", b""),
        (".git/HEAD", b""),
        (".env", b"A=1"),
    ];

    const DECLARATION: &str = r#"[{"name": "list_dir", "description": "", "parameters": {
        "type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"}, "depth": {"type": "integer"},
            "ignore": {"type": "array", "items": {"type": "string"}},
            "respect_git_ignore": {"type": "boolean"}}}}]"#;

    fn check(arguments: Value, expected: &str) {
        let executed = run_declared(DECLARATION, FILES, "list_dir", arguments);
        assert_eq!(executed.full, expected);
        assert_eq!(executed.is_error, expected.starts_with("Tool error"));
    }

    const NOTE: &str = "that git ignores left out; set respect_git_ignore to false to see them]";

    #[test]
    fn one_level() {
        check(
            json!({"path": "."}),
            &format!(
                ".env (3 bytes)\n.git/\n.gitignore (17 bytes)\nREADME.md (5 bytes)\nsrc/\n[1 entry {NOTE}"
            ),
        );
        check(
            json!({"path": "/work/src"}),
            &format!("deep/\nmain.rs (12 bytes)\n[1 entry {NOTE}"),
        );
        check(json!({"path": "target"}), "debug/");
    }

    #[test]
    fn deeper() {
        check(
            json!({"path": "src", "depth": 3}),
            &format!(
                "deep/\ndeep/.gitignore (6 bytes)\ndeep/er/\ndeep/er/x.rs (0 bytes)\nmain.rs (12 bytes)\n\
                 [2 entries {NOTE}"
            ),
        );
        check(
            json!({"path": "", "depth": 2, "ignore": [".*", "*.md", "src/deep"]}),
            &format!("src/\nsrc/main.rs (12 bytes)\n[2 entries {NOTE}"),
        );
    }

    #[test]
    fn what_git_ignores_on_demand() {
        check(
            json!({"path": "src", "depth": 2, "respect_git_ignore": false, "ignore": ["er"]}),
            "deep/\ndeep/.gitignore (6 bytes)\ndeep/a.tmp (0 bytes)\ngen/\ngen/y.rs (0 bytes)\n\
             main.rs (12 bytes)",
        );
    }

    #[test]
    fn nothing_and_failures() {
        check(
            json!({"path": "src", "ignore": ["*"]}),
            "[src has no entries to show]",
        );
        check(
            json!({"path": "nowhere"}),
            "Tool error (list_dir): directory not found: nowhere",
        );
        check(
            json!({"path": "src", "ignore": ["["]}),
            "Tool error (list_dir): invalid glob \"[\": unclosed character class; missing ']'",
        );
    }
}
