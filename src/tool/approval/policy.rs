//! The judgement of a call, by tool, by path and by command.

use std::collections::{BTreeMap, BTreeSet};

use super::path::WritePaths;
use super::safe::safe_commands;
use super::settings::{ApprovalSettings, ToolRule};
use crate::environment::absolute_path;
use crate::environment::git::GitSettings;
use crate::tool::CommandLine;

/// Name that stands for [`safe_commands`] in a list of commands.
const SAFE: &str = "@safe";

/// Characters of a reason that are shown.
const MAX_REASON_CHARS: usize = 2_000;

/// Rules that are ready to judge calls. The default allows everything.
#[derive(Clone, Debug, Default)]
pub struct ApprovalPolicy {
    tools: BTreeMap<String, ToolRule>,
    write_paths: Option<WritePaths>,
    commands: Option<Commands>,
    asks_always: bool,
}

#[derive(Clone, Debug, Default)]
struct Commands {
    /// As they were written.
    texts: Vec<String>,
    /// As words.
    listed: Vec<Vec<String>>,
}

/// What a call would do.
#[derive(Clone, Copy, Debug)]
pub struct Proposal<'a> {
    /// Name of the tool.
    pub tool_name: &'a str,
    /// Its [`crate::tool::Tool::kind`].
    pub kind: &'a str,
    /// Paths that the call would change.
    pub writes: &'a [String],
    /// The command line that it would run.
    pub command: Option<&'a CommandLine>,
    /// Absolute directory that relative paths start from.
    pub working_directory: &'a str,
    /// Where paths lead, those of [`ApprovalPolicy::paths`] that lead to another
    /// place than they say.
    pub links: &'a BTreeMap<String, String>,
}

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow,
    /// The host is asked; one sentence says why.
    Ask(String),
    /// It does not run; one sentence for the model says why.
    Deny(String),
}

/// Which of git's subcommands a command line calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitCalls {
    /// None that only reads.
    None,
    /// Only those that read.
    Reading,
    /// Those that read beside others; only a parser tells them apart.
    #[cfg(feature = "analysis")]
    Mixed,
}

impl ApprovalPolicy {
    /// The policy that `settings` describe. The error is one sentence that
    /// names the entry that is not valid.
    pub fn new(settings: &ApprovalSettings) -> Result<Self, String> {
        let write_paths = settings.write_paths.as_deref().map(WritePaths::new);
        let commands = settings.commands.as_deref().map(Commands::new);
        Ok(Self {
            tools: settings.tools.clone(),
            write_paths: write_paths.transpose()?,
            commands: commands.transpose()?,
            asks_always: false,
        })
    }

    /// The policy that asks about every call.
    pub fn ask_always() -> Self {
        Self {
            asks_always: true,
            ..Self::default()
        }
    }

    /// What becomes of the call that `proposal` describes.
    pub fn judge(&self, proposal: &Proposal) -> Verdict {
        if self.asks_always {
            return Verdict::Ask("every call needs approval".to_owned());
        }
        let rules = [proposal.tool_name, proposal.kind, "*"];
        let rule = rules.iter().find_map(|name| self.tools.get(*name));
        match rule {
            Some(ToolRule::Deny) => {
                let name = proposal.tool_name;
                return Verdict::Deny(format!("this session does not allow {name}"));
            }
            Some(ToolRule::Ask) => return Verdict::Ask("this tool needs approval".to_owned()),
            Some(ToolRule::Allow) | None => {}
        }
        let of_command = proposal
            .command
            .and_then(|command| self.command(command, proposal));
        let concern = of_command.or_else(|| self.writes(proposal));
        concern.map_or(Verdict::Allow, |concern| Verdict::Ask(one_line(&concern)))
    }

    /// Paths of which it counts where they lead, for a call that [`judge`]
    /// allows by their names; none where no rule looks at paths. Find out, put
    /// it into [`Proposal::links`], and judge again.
    ///
    /// [`judge`]: Self::judge
    pub fn paths(&self, proposal: &Proposal) -> BTreeSet<String> {
        let Some(rule) = &self.write_paths else {
            return BTreeSet::new();
        };
        let mut written = proposal.writes.to_vec();
        written.extend(
            proposal
                .command
                .iter()
                .flat_map(|it| reading::redirects(&it.text)),
        );
        if written.is_empty() {
            return BTreeSet::new();
        }
        let base = proposal.working_directory;
        let absolute = written.iter().map(|path| absolute_path(base, path));
        let mut paths: BTreeSet<String> = absolute.collect();
        paths.extend(written);
        paths.insert(absolute_path("/", base));
        paths.extend(rule.directories().map(str::to_owned));
        paths
    }

    /// What git is called for, where any rule looks at calls: what only reads
    /// must not run what a repository configures.
    pub(crate) fn git(&self, proposal: &Proposal) -> GitCalls {
        let is_asked_about = self.asks_always
            || self.commands.is_some()
            || self.write_paths.is_some()
            || !self.tools.is_empty();
        match proposal.command {
            Some(command) if is_asked_about => reading::git(&command.text),
            _ => GitCalls::None,
        }
    }

    /// Why git asks where it has these settings, if it does.
    pub(crate) fn git_concern(
        &self,
        settings: &GitSettings,
        proposal: &Proposal,
    ) -> Option<String> {
        self.commands.as_ref()?;
        if let Some(name) = &settings.runs {
            return Some(format!(
                "git would do what {name} in the settings of this repository says"
            ));
        }
        let rule = self.write_paths.as_ref()?;
        let base = proposal.working_directory;
        let open = settings
            .files
            .iter()
            .find(|file| rule.concern(base, proposal.links, file).is_none())?;
        Some(format!(
            "git would read its settings from {open}, which may be written without a question"
        ))
    }

    fn writes(&self, proposal: &Proposal) -> Option<String> {
        let rule = self.write_paths.as_ref()?;
        let concern =
            |path: &String| rule.concern(proposal.working_directory, proposal.links, path);
        let concerns: Vec<_> = proposal.writes.iter().filter_map(concern).collect();
        (!concerns.is_empty()).then(|| concerns.join("; "))
    }

    fn command(&self, command: &CommandLine, proposal: &Proposal) -> Option<String> {
        if self.commands.is_none() && self.write_paths.is_none() {
            return None;
        }
        let text = command.text.as_str();
        let base = proposal.working_directory;
        let elsewhere = command
            .working_dir
            .as_deref()
            .is_some_and(|directory| absolute_path(base, directory) != absolute_path(base, ""));
        let trimmed = text.trim_matches([' ', '\t', '\n']);
        if let Some(commands) = &self.commands
            && !elsewhere
            && commands.texts.iter().any(|entry| entry == trimmed)
        {
            return None;
        }
        self.read(text, elsewhere, proposal)
    }
}

impl Commands {
    fn new(entries: &[String]) -> Result<Self, String> {
        let mut commands = Self::default();
        for entry in entries {
            if entry == SAFE {
                let safe = safe_commands().iter();
                let words = |entry: &String| entry.split(' ').map(str::to_owned).collect();
                commands.listed.extend(safe.clone().map(words));
                // Without the parser, a harmless command alone is recognised.
                commands.texts.extend(safe.cloned());
            } else {
                commands.listed.push(words(entry)?);
                commands.texts.push(entry.trim().to_owned());
            }
        }
        Ok(commands)
    }
}

/// A reason as people see it: it may quote what a model wrote.
fn one_line(reason: &str) -> String {
    let mut line = String::new();
    for (index, char) in reason.chars().enumerate() {
        if index == MAX_REASON_CHARS {
            line.push('…');
            break;
        }
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    line
}

/// The words of an entry; `'…'` and `"…"` hold words with white space.
fn words(entry: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for char in entry.chars() {
        match (quote, char) {
            (None, '\'' | '"') => {
                quote = Some(char);
                word.get_or_insert_default();
            }
            (Some(open), char) if open == char => quote = None,
            (None, char) if char.is_whitespace() => words.extend(word.take()),
            (_, char) => word.get_or_insert_default().push(char),
        }
    }
    words.extend(word.take());
    if quote.is_some() {
        return Err(format!("`commands` has {entry:?}: a quote is not closed"));
    }
    if words.first().is_none_or(String::is_empty) {
        return Err(format!("`commands` has {entry:?}: it names no command"));
    }
    Ok(words)
}

// What a command would do can be read with the parser only.
#[cfg_attr(not(feature = "analysis"), path = "policy/unread.rs")]
mod reading;
#[cfg(test)]
mod tests;
