//! Git without what a repository has it run.
//!
//! `git status` runs whatever the repository's settings name as a file system
//! monitor, filter, text converter or hook. Settings with a fixed name are
//! overridden here by variables that every git of a command line inherits.
//! Drivers have names of the repository's choice: they are listed first, which
//! runs nothing, and the caller refuses them or overrides each.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::try_join_all;

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

/// Names of all settings. `GIT_CONFIG` has `git config` alone read another file.
const LIST: &str = "unset GIT_CONFIG; git config --list --name-only -z";

/// Exit code of [`LOOK`] where there is no git.
const NO_GIT: i32 = 97;

/// Where git keeps its settings, what they are, and which submodules have a say
/// in how they are looked at. Reads files of git alone.
///
/// Fields end with NUL: the directories of the repository, the home directory,
/// the files of the person's settings (also those that do not exist yet); per
/// setting its scope, its origin and `name\nvalue`; an empty one; what
/// submodules say.
const LOOK: &str = "\
command -v git >/dev/null || exit 97
unset GIT_CONFIG
d=$(git rev-parse --absolute-git-dir --git-common-dir 2>/dev/null)
g=${GIT_CONFIG_GLOBAL-\"$HOME/.gitconfig
${XDG_CONFIG_HOME:-$HOME/.config}/git/config\"}
printf '%s\\0' \"$d\" \"$HOME\" \"$g${GIT_CONFIG_SYSTEM:+
$GIT_CONFIG_SYSTEM}\"
git config --list --show-scope --show-origin -z || exit 98
printf '\\0'
test -n \"$d\" || exit 0
t=$(git rev-parse --show-toplevel 2>/dev/null)
for from in \"--file=$t/.gitmodules\" --blob=:.gitmodules --blob=HEAD:.gitmodules; do
  git config \"$from\" --name-only -z --get-regexp '^submodule\\..*\\.ignore$' 2>/dev/null
done
exit 0";

/// Most bytes of settings that are looked at.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

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

/// What decides, in and around a repository, which programs git runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GitSettings {
    /// The files that they come from or would come from, links followed: those
    /// of the repository, of the person and of the machine. Who writes one of
    /// them chooses what git runs.
    pub(crate) files: Vec<String>,
    /// The first setting of the repository that names a program, or more files.
    pub(crate) runs: Option<String>,
}

/// Looks at the settings that git has in the working directory; none where
/// there is no git.
///
/// # Errors
/// Why they could not be read, for whoever is asked in their place.
pub(crate) async fn look(
    environment: &Environment,
) -> Result<Option<GitSettings>, EnvironmentError> {
    let (exit_code, output) = run(environment, LOOK, LOOK_MS, &[]).await?;
    if exit_code == NO_GIT {
        return Ok(None);
    }
    let GitSettings { files, runs } =
        parse(&output).filter(|_| exit_code == 0).ok_or_else(|| {
            EnvironmentError::new(
                EnvironmentErrorKind::Io,
                "the settings of git cannot be read",
            )
        })?;
    let files = files.iter().map(|path| environment.real_path(path));
    let files = try_join_all(files).await?;
    Ok(Some(GitSettings { files, runs }))
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

/// What [`LOOK`] printed, paths as git has them.
fn parse<'a>(output: &'a [u8]) -> Option<GitSettings> {
    let mut fields = output.strip_suffix(&[0])?.split(|byte| *byte == 0);
    let text = |field: Option<&'a [u8]>| std::str::from_utf8(field?).ok();
    let mut files = BTreeSet::new();
    let directories = text(fields.next())?;
    if !directories.is_empty() {
        let (directory, common) = directories.split_once('\n')?;
        files.extend([
            format!("{common}/config"),
            format!("{directory}/config.worktree"),
            format!("{directory}/commondir"),
        ]);
    }
    let home = text(fields.next())?;
    for file in text(fields.next())?.lines() {
        files.insert(plain(file)?);
    }
    let mut runs = None;
    loop {
        let scope = text(fields.next())?;
        if scope.is_empty() {
            break;
        }
        let origin = text(fields.next())?;
        let setting = fields.next()?;
        let end = setting.iter().position(|byte| *byte == b'\n');
        let (name, value) = setting.split_at(end.unwrap_or(setting.len()));
        let name = text(Some(name))?;
        // What the person or the machine has set is theirs, and `command` is of the
        // environment: ours, or what somebody has put there before.
        if matches!(scope, "system" | "global" | "command") {
            let file = origin.strip_prefix("file:");
            if is_include(name) {
                let path = text(value.get(1..))?;
                files.insert(plain(&included(path, file, home)?)?);
            }
            if let Some(file) = file {
                files.insert(plain(file)?);
            }
        } else if runs.is_none() && names_program(name) {
            runs = Some(name.to_owned());
        }
    }
    let of_submodules = text(fields.next()).map(str::to_owned);
    Some(GitSettings {
        files: files.into_iter().collect(),
        runs: runs.or(of_submodules),
    })
}

/// `path`, if it means the same here as to git: git starts relative ones in another
/// directory, and `/proc/self` differs from process to process.
fn plain(path: &str) -> Option<String> {
    (path.starts_with('/') && !path.starts_with("/proc/")).then(|| path.to_owned())
}

/// Whether a setting of this name has git read a file as settings.
fn is_include(name: &str) -> bool {
    name.starts_with("include.") || name.starts_with("includeif.")
}

/// The file that `file` includes as `path`; nothing where git alone knows.
fn included(path: &str, file: Option<&str>, home: &str) -> Option<String> {
    if let Some(rest) = path.strip_prefix("~/") {
        return Some(format!("{home}/{rest}"));
    }
    if path.starts_with('/') {
        return Some(path.to_owned());
    }
    let file = file.filter(|_| !path.starts_with(['~', '%']))?;
    Some(format!("{}{path}", &file[..=file.rfind('/')?]))
}

/// Whether a setting of this name has git run a program, or read files of the
/// repository's choice as settings.
fn names_program(name: &str) -> bool {
    let is_one = |section: &str, parts: &[&str]| {
        driver(name, section).is_some_and(|(_, part)| parts.contains(&part))
    };
    name == "diff.external"
        || is_include(name)
        || name.starts_with("hook.")
        || is_one("filter.", &["clean", "smudge", "process"])
        || is_one("diff.", &["command", "textconv"])
        // `--remerge-diff` merges again.
        || is_one("merge.", &["driver"])
        || is_one("submodule.", &["ignore"])
        // What `git lfs`, a filter of many people, runs for a repository.
        || name.starts_with("lfs.extension.")
        || name.starts_with("lfs.customtransfer.")
        || name.ends_with(".standalonetransferagent")
}

/// The driver that a setting of `section` belongs to, and which of its parts.
fn driver<'a>(name: &'a str, section: &str) -> Option<(&'a str, &'a str)> {
    name.strip_prefix(section)?.rsplit_once('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "/r/.git\n.git\0/home/x\0/home/x/.gitconfig\0";
    const FILES: [&str; 4] = [
        ".git/config",
        "/home/x/.gitconfig",
        "/r/.git/commondir",
        "/r/.git/config.worktree",
    ];

    #[track_caller]
    fn check(output: &str, more: &[&str], runs: Option<&str>) {
        let mut files: Vec<_> = FILES
            .iter()
            .chain(more)
            .map(|it| (*it).to_owned())
            .collect();
        files.sort();
        let expected = Some(GitSettings {
            files,
            runs: runs.map(str::to_owned),
        });
        let output = format!("{HEAD}{output}");
        assert_eq!(parse(output.as_bytes()), expected, "{output:?}");
    }

    #[test]
    fn settings_that_name_programs() {
        let local = |name: &str| format!("local\0file:.git/config\0{name}\nx\0");
        let bare = local("core.bare");
        check("\0", &[], None);
        check(
            &format!("{bare}command\0command line:\0core.pager\ncat\0\0"),
            &[],
            None,
        );
        check(&(local("diff.x.xfuncname") + "\0"), &[], None);
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
            "lfs.extension.x.clean",
            "lfs.customtransfer.x.path",
            "lfs.https://x.standalonetransferagent",
        ] {
            check(&format!("{bare}{}\0", local(name)), &[], Some(name));
            check(
                &format!("worktree\0file:.git/config.worktree\0{name}\0\0"),
                &[],
                Some(name),
            );
        }
        check(
            &format!("{bare}\0submodule.x.ignore\0"),
            &[],
            Some("submodule.x.ignore"),
        );
    }

    #[test]
    fn files_of_the_person_and_the_machine() {
        let global = |file: &str, setting: &str| format!("global\0file:{file}\0{setting}\0");
        check(
            &(global("/home/x/.gitconfig", "filter.lfs.clean\na\nb") + "\0"),
            &[],
            None,
        );
        let texts = [
            "system\0file:/etc/gitconfig\0core.bare\0".to_owned(),
            global("/home/x/.gitconfig", "include.path\n~/dots/a"),
            global("/home/x/.gitconfig", "includeif.onbranch:b.path\nb"),
            global("/home/x/dots/a", "include.path\n/c"),
            global("/c", "user.name\nx"),
            "command\0command line:\0include.path\n/d\0".to_owned(),
            "command\0file:/d\0user.name\0".to_owned(),
        ];
        let files = ["/etc/gitconfig", "/home/x/dots/a", "/home/x/b", "/c", "/d"];
        check(&(texts.concat() + "\0"), &files, None);
        // Text that is not UTF-8 is of no concern in a value.
        let mut output = format!("{HEAD}global\0file:/c\0user.name\n").into_bytes();
        output.extend(b"\xe9\0\0");
        assert!(parse(&output).is_some_and(|it| it.files.contains(&"/c".to_owned())));
        // Outside of a repository.
        let alone = parse(b"\0/h\0/h/.gitconfig\0\0").expect("settings");
        assert_eq!(alone.files, ["/h/.gitconfig"]);
    }

    #[test]
    fn what_is_not_whole_is_not_known() {
        for output in [
            "",
            "/r/.git\0\0",
            "/r/.git\n.git\0/h\0/h/.gitconfig\0local\0file:.git/config\0core.bare\0",
            "/r\n.\0/h\0\0local\0",
            // Where such a path leads, git alone knows.
            "/r\n.\0/h\0mine\0\0",
            "/r\n.\0/h\0\0global\0file:/c\0include.path\n~x/a\0\0",
            "/r\n.\0/h\0\0global\0file:/c\0include.path\n/proc/self/cwd/a\0\0",
            "/r\n.\0/h\0\0command\0command line:\0include.path\na\0\0",
        ] {
            assert_eq!(parse(output.as_bytes()), None, "{output:?}");
        }
        let odd = b"\0/h\0\0global\0file:/c\0include.path\n/\xe9\0\0";
        assert_eq!(parse(odd), None);
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
