//! What a host sets: which tools, paths and commands need its approval.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::environment::absolute_path;
use crate::text::escape_glob;

/// When calls need approval (`SessionConfig.approval`). Empty: never.
/// Subagents have the same settings as who spawned them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalSettings {
    /// By tool name, or by kind of tool (`shell` also stands for a tool that a
    /// profile calls `run_shell_command`); `*` for the rest. Tools that are
    /// not covered are allowed.
    pub tools: BTreeMap<String, ToolRule>,
    /// Globs (`*`, `**`, `?`, `[…]`, `{a,b}`), relative to the working
    /// directory or absolute: calls that would change a path outside of them
    /// ask. Absent: no such rule.
    pub write_paths: Option<Vec<String>>,
    /// Beginnings of commands (`git status` stands for `git status -s`), and
    /// `@safe` for a built-in list of harmless ones: a command line that is
    /// not wholly made of them asks. Absent: no such rule.
    pub commands: Option<Vec<String>>,
}

/// What becomes of the calls of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolRule {
    /// They run, unless a path or command asks.
    Allow,
    /// Each needs approval.
    Ask,
    /// None runs; the model reads why, nobody is asked.
    Deny,
}

impl ApprovalSettings {
    /// The same rules for someone who starts in `to` instead of `from`: paths
    /// mean what they meant, and commands named by a relative path are gone.
    pub fn moved(&self, from: &str, to: &str) -> Self {
        if from == to {
            return self.clone();
        }
        let absolute = |glob: &String| {
            if glob.starts_with('/') {
                glob.clone()
            } else {
                format!("{}/{glob}", escape_glob(from.trim_end_matches('/')))
            }
        };
        let is_relative = |entry: &String| {
            let name = entry.split_whitespace().next().unwrap_or_default();
            name.contains('/') && !name.starts_with('/')
        };
        let globs = self.write_paths.as_ref();
        let commands = self.commands.as_ref();
        Self {
            tools: self.tools.clone(),
            write_paths: globs.map(|globs| globs.iter().map(absolute).collect()),
            commands: commands.map(|commands| {
                let kept = commands.iter().filter(|entry| !is_relative(entry));
                kept.cloned().collect()
            }),
        }
    }

    /// Whether there is no rule at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// `path` without `.` and `..`, from `working_directory`.
pub(super) fn normalised(working_directory: &str, path: &str) -> String {
    absolute_path(working_directory, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_keep_their_meaning_elsewhere() {
        let settings = ApprovalSettings {
            tools: BTreeMap::from([("shell".to_owned(), ToolRule::Ask)]),
            write_paths: Some(vec!["src/**".to_owned(), "/tmp/*".to_owned()]),
            commands: Some(vec!["./build.sh fast".to_owned(), "ls".to_owned()]),
        };
        assert_eq!(settings.moved("/work", "/work"), settings);
        let moved = ApprovalSettings {
            write_paths: Some(vec!["/a[*]/src/**".to_owned(), "/tmp/*".to_owned()]),
            commands: Some(vec!["ls".to_owned()]),
            ..settings.clone()
        };
        assert_eq!(settings.moved("/a*/", "/a*/b"), moved);
    }
}
