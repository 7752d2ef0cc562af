//! Git without what a repository has it run.
//!
//! `git status` runs whatever the repository's settings name as a file system
//! monitor, filter, text converter or hook. Settings with a fixed name are
//! overridden here by variables that every git of a command line inherits.
//! Drivers have names of the repository's choice: they are listed first, which
//! runs nothing, and the caller refuses them or overrides each.

use std::collections::BTreeMap;

use super::{Environment, EnvironmentError, EnvironmentErrorKind, ExecRequest, OutputStream};

/// Settings under which git runs no program of the repository's choice: the
/// nearest harmless value of each that names one.
const SETTINGS: [(&str, &str); 21] = [
    // Files that look like a bare repository have settings too.
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ":"),
    ("core.askPass", ""),
    ("credential.helper", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("log.diffMerges", "separate"),
    // Git in a submodule would run what the submodule's settings name.
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    // A partial clone fetches what it lacks, by a program of its settings.
    ("protocol.allow", "never"),
];

/// The same by variables, where these outrank settings or older versions lack
/// the setting.
const VARIABLES: [(&str, &str); 6] = [
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_EDITOR", ":"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
];

/// Names of all settings.
const LIST: &str = "git config --list --name-only -z";

/// Exit code of [`LOOK`] outside of a repository.
const NO_REPOSITORY: i32 = 97;

/// Where git keeps its settings, what they are, and which submodules have a say
/// in how they are looked at. Reads files of git alone.
const LOOK: &str = "\
d=$(git rev-parse --absolute-git-dir --git-common-dir 2>/dev/null) || exit 97
printf '%s\\0' \"$d\"
git config --list --show-scope --name-only -z || exit 98
printf '\\0'
t=$(git rev-parse --show-toplevel 2>/dev/null)
for from in \"--file=$t/.gitmodules\" --blob=:.gitmodules --blob=HEAD:.gitmodules; do
  git config \"$from\" --name-only -z --get-regexp '^submodule\\..*\\.ignore$' 2>/dev/null
done
exit 0";

/// Most bytes of settings that are looked at.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Time for [`LOOK`], in ms.
const LOOK_MS: u64 = 5_000;

/// Variables for a command whose git runs nothing that a setting of a fixed
/// name says, and takes `more` settings.
pub(crate) fn variables(more: &[(String, String)]) -> BTreeMap<String, String> {
    let fixed = SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = fixed.iter().chain(more);
    let mut variables: BTreeMap<_, _> = VARIABLES
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
    let mut count = 0;
    for (name, value) in settings {
        variables.insert(format!("GIT_CONFIG_KEY_{count}"), name.clone());
        variables.insert(format!("GIT_CONFIG_VALUE_{count}"), value.clone());
        count += 1;
    }
    variables.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
    variables
}

/// What a repository's own settings add to what git does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepositorySettings {
    /// The files that they come from, links followed; who writes one of them
    /// chooses what git runs.
    pub(crate) files: Vec<String>,
    /// The first setting that names a program, or more files.
    pub(crate) runs: Option<String>,
}

/// Looks at the settings of the repository around the working directory; none
/// where there is no repository.
///
/// # Errors
/// Why they could not be read, for whoever is asked in their place.
pub(crate) async fn look(
    environment: &Environment,
) -> Result<Option<RepositorySettings>, EnvironmentError> {
    let (exit_code, output) = run(environment, LOOK, LOOK_MS, &[]).await?;
    if exit_code == NO_REPOSITORY {
        return Ok(None);
    }
    let unread = || {
        EnvironmentError::new(
            EnvironmentErrorKind::Io,
            "the settings of the repository cannot be read",
        )
    };
    if exit_code != 0 {
        return Err(unread());
    }
    let (directories, runs) = parse(&output).ok_or_else(unread)?;
    let [directory, common] = directories.map(|path| environment.absolute(&path));
    let mut files = Vec::new();
    for path in [
        format!("{common}/config"),
        format!("{directory}/config.worktree"),
        format!("{directory}/commondir"),
    ] {
        files.push(environment.real_path(&path).await?);
    }
    Ok(Some(RepositorySettings { files, runs }))
}

/// Settings that override every filter that could run in the repository around
/// the working directory, whoever configured it.
///
/// # Errors
/// Why they could not be listed.
pub(crate) async fn filters_off(
    environment: &Environment,
    timeout_ms: u64,
) -> Result<Vec<(String, String)>, EnvironmentError> {
    let (exit_code, output) = run(environment, LIST, timeout_ms, &[]).await?;
    let names = std::str::from_utf8(&output).ok();
    let Some(names) = names.filter(|_| exit_code == 0) else {
        return Err(EnvironmentError::new(
            EnvironmentErrorKind::Io,
            "the settings of git cannot be read",
        ));
    };
    let mut settings = BTreeMap::new();
    for (driver, _) in names.split('\0').filter_map(|name| driver(name, "filter.")) {
        for (part, value) in [("clean", ""), ("process", ""), ("required", "false")] {
            settings.insert(format!("filter.{driver}.{part}"), value.to_owned());
        }
    }
    Ok(settings.into_iter().collect())
}

/// Exit code and standard output of `command` under [`variables`].
///
/// # Errors
/// As [`Environment::exec`], and when it did not end or said too much.
pub(crate) async fn run(
    environment: &Environment,
    command: &str,
    timeout_ms: u64,
    settings: &[(String, String)],
) -> Result<(i32, Vec<u8>), EnvironmentError> {
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms,
        env: variables(settings),
        ..ExecRequest::default()
    };
    let mut output = Vec::new();
    let mut collect = |stream, bytes: &[u8]| {
        if stream == OutputStream::Stdout && output.len() <= MAX_OUTPUT_BYTES {
            output.extend_from_slice(bytes);
        }
    };
    let status = environment.exec(request, &mut collect).await?;
    let (kind, problem) = if status.cancelled {
        (EnvironmentErrorKind::Cancelled, "git was interrupted")
    } else if status.timed_out {
        (EnvironmentErrorKind::Io, "git did not answer in time")
    } else if output.len() > MAX_OUTPUT_BYTES {
        (EnvironmentErrorKind::TooLarge, "git has too much to say")
    } else {
        return Ok((status.exit_code, output));
    };
    Err(EnvironmentError::new(kind, problem))
}

/// What [`LOOK`] printed: git's directory and the one that its worktrees share,
/// and the first setting that names a program.
fn parse(output: &[u8]) -> Option<([String; 2], Option<String>)> {
    let text = std::str::from_utf8(output).ok()?;
    let mut fields = text.split_terminator('\0');
    let directories = fields.next()?.split_once('\n')?;
    let mut runs = None;
    loop {
        let scope = fields.next()?;
        if scope.is_empty() {
            break;
        }
        let name = fields.next()?;
        // What the user or the machine has set is theirs, and `command` is ours.
        let is_foreign = !matches!(scope, "system" | "global" | "command");
        if runs.is_none() && is_foreign && names_program(name) {
            runs = Some(name.to_owned());
        }
    }
    let of_submodules = fields.next().map(str::to_owned);
    let (directory, common) = directories;
    Some((
        [directory.to_owned(), common.to_owned()],
        runs.or(of_submodules),
    ))
}

/// Whether a setting of this name has git run a program, or read files of the
/// repository's choice as settings.
fn names_program(name: &str) -> bool {
    let is_one = |section: &str, parts: &[&str]| {
        driver(name, section).is_some_and(|(_, part)| parts.contains(&part))
    };
    name == "diff.external"
        || name.starts_with("include.")
        || name.starts_with("includeif.")
        || name.starts_with("hook.")
        || is_one("filter.", &["clean", "smudge", "process"])
        || is_one("diff.", &["command", "textconv"])
        // `--remerge-diff` merges again.
        || is_one("merge.", &["driver"])
        || is_one("submodule.", &["ignore"])
}

/// The driver that a setting of `section` belongs to, and which of its parts.
fn driver<'a>(name: &'a str, section: &str) -> Option<(&'a str, &'a str)> {
    name.strip_prefix(section)?.rsplit_once('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(output: &str, runs: Option<&str>) {
        let directories = ["/r/.git".to_owned(), ".git".to_owned()];
        let output = format!("/r/.git\n.git\0{output}");
        let expected = Some((directories, runs.map(str::to_owned)));
        assert_eq!(parse(output.as_bytes()), expected, "{output:?}");
    }

    #[test]
    fn settings_that_name_programs() {
        check("\0", None);
        check("local\0core.bare\0command\0core.pager\0\0", None);
        check("global\0filter.lfs.clean\0\0", None);
        check("local\0diff.x.xfuncname\0\0", None);
        for name in [
            "filter.a.b.clean",
            "filter.x.process",
            "diff.external",
            "diff.x.command",
            "diff.x.textconv",
            "merge.x.driver",
            "include.path",
            "includeif.gitdir:/x.path",
            "hook.x.command",
            "submodule.x.ignore",
        ] {
            check(&format!("local\0core.bare\0local\0{name}\0\0"), Some(name));
            check(&format!("worktree\0{name}\0\0"), Some(name));
        }
        check(
            "local\0core.bare\0\0submodule.x.ignore\0",
            Some("submodule.x.ignore"),
        );
    }

    #[test]
    fn what_is_not_whole_is_not_known() {
        for output in [
            "",
            "/r/.git\0\0",
            "/r/.git\n.git\0local\0core.bare\0",
            "/r\n.\0local\0",
        ] {
            assert_eq!(parse(output.as_bytes()), None, "{output:?}");
        }
    }

    #[test]
    fn settings_are_counted() {
        let more = [("filter.x.clean".to_owned(), String::new())];
        let variables = variables(&more);
        assert_eq!(variables["GIT_CONFIG_COUNT"], "22");
        assert_eq!(variables["GIT_CONFIG_KEY_21"], "filter.x.clean");
        assert_eq!(variables["GIT_CONFIG_VALUE_21"], "");
        assert_eq!(variables["GIT_CONFIG_KEY_0"], "safe.bareRepository");
    }
}
