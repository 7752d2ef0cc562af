//! Which environment variables a command inherits (spec 4.2).

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::local::{EnvPolicy, looks_secret};

/// The variables that every command should see (spec 4.2 "always include").
const CORE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYENV_ROOT",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "SDKMAN_DIR",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "DOTNET_ROOT",
    "ANDROID_HOME",
    "COMPOSER_HOME",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// Shortest secret that is also looked for inside longer values (such as a
/// header written into a variable); a shorter one would hit by chance.
const SEARCHED_SECRET: usize = 8;

/// The variables that remain of `inherited`, then `extra` on top.
pub(super) fn select(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    policy: EnvPolicy,
    secrets: &[String],
    extra: &BTreeMap<OsString, OsString>,
) -> BTreeMap<OsString, OsString> {
    let mut kept: BTreeMap<_, _> = inherited
        .filter(|(name, value)| passes(policy, name, value) && !holds_secret(value, secrets))
        .collect();
    kept.extend(extra.iter().map(|(n, v)| (n.clone(), v.clone())));
    kept
}

/// How many settings of git variables hold, as `GIT_CONFIG_KEY_0` and so on.
const GIT_SETTINGS: &str = "GIT_CONFIG_COUNT";

/// `variables` with `more` on top. Settings of git are counted: those of `more`
/// follow those that are there.
pub(super) fn with(
    variables: &BTreeMap<OsString, OsString>,
    more: &BTreeMap<String, String>,
) -> BTreeMap<OsString, OsString> {
    let count = |value: Option<&str>| value.and_then(|value| value.parse::<usize>().ok());
    let there = variables.get(OsStr::new(GIT_SETTINGS));
    let there = count(there.and_then(|value| value.to_str())).unwrap_or(0);
    let mut all = variables.clone();
    for (name, value) in more {
        let setting = ["GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_"]
            .into_iter()
            .find_map(|part| Some((part, count(name.strip_prefix(part))?)));
        let (name, value) = match (setting, count(Some(value))) {
            (Some((part, number)), _) => (format!("{part}{}", there + number), value.clone()),
            (None, Some(number)) if name == GIT_SETTINGS => {
                (name.clone(), (there + number).to_string())
            }
            _ => (name.clone(), value.clone()),
        };
        all.insert(name.into(), value.into());
    }
    all
}

/// `NAME=value` strings for the system; what it cannot carry is left out.
pub(super) fn strings(variables: &BTreeMap<OsString, OsString>) -> Vec<CString> {
    variables
        .iter()
        .filter(|(name, _)| !name.is_empty() && !name.as_bytes().contains(&b'='))
        .filter_map(|(name, value)| {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            CString::new(line.into_vec()).ok()
        })
        .collect()
}

fn passes(policy: EnvPolicy, name: &OsStr, value: &OsStr) -> bool {
    match policy {
        EnvPolicy::All => true,
        EnvPolicy::None => false,
        EnvPolicy::CoreOnly => is_core(name),
        EnvPolicy::Filtered => is_core(name) || !looks_secret(name, value),
    }
}

fn is_core(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| CORE.contains(&name) || name.starts_with("LC_"))
}

fn holds_secret(value: &OsStr, secrets: &[String]) -> bool {
    let value = value.as_bytes();
    secrets.iter().map(String::as_bytes).any(|secret| {
        value == secret
            || (secret.len() >= SEARCHED_SECRET
                && value.windows(secret.len()).any(|part| part == secret))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: EnvPolicy, secrets: &[&str], extra: &[(&str, &str)], expected: &[&str]) {
        let inherited = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("EDITOR", "vi"),
            ("OPENAI_API_KEY", "k1"),
            ("github_token", "k2"),
            ("Db_Password", "k3"),
            ("AWS_SECRET", "k4"),
            ("X_CREDENTIAL", "k5"),
            ("TOKENIZER", "fast"),
            ("MY_KEY", "canary-key"),
            ("HEADERS", "x-api-key: canary-key"),
        ]
        .map(|(n, v)| (OsString::from(n), OsString::from(v)));
        let secrets: Vec<_> = secrets.iter().map(|s| (*s).to_owned()).collect();
        let extra = extra.iter().map(|(n, v)| (n.into(), v.into())).collect();
        let kept = select(inherited.into_iter(), policy, &secrets, &extra);
        let names: Vec<_> = kept.keys().map(|name| name.to_str().unwrap()).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn filtered_drops_what_looks_secret_in_any_case() {
        let kept = ["EDITOR", "HEADERS", "LC_ALL", "PATH", "TOKENIZER"];
        check(EnvPolicy::Filtered, &[], &[], &kept);
    }

    #[test]
    fn values_of_held_credentials_are_dropped_everywhere() {
        let kept = ["EDITOR", "LC_ALL", "PATH", "TOKENIZER"];
        check(EnvPolicy::Filtered, &["canary-key"], &[], &kept);
    }

    #[test]
    fn all_keeps_secrets_of_others() {
        let kept = [
            "AWS_SECRET",
            "Db_Password",
            "EDITOR",
            "LC_ALL",
            "OPENAI_API_KEY",
            "PATH",
            "TOKENIZER",
            "X_CREDENTIAL",
            "github_token",
        ];
        check(EnvPolicy::All, &["canary-key"], &[], &kept);
    }

    #[test]
    fn a_short_secret_matches_whole_values_only() {
        let kept = ["EDITOR", "HEADERS", "LC_ALL", "PATH", "TOKENIZER"];
        check(EnvPolicy::Filtered, &["can"], &[], &kept);
    }

    #[test]
    fn core_only_and_extra() {
        check(
            EnvPolicy::CoreOnly,
            &[],
            &[("MY_TOKEN", "given")],
            &["LC_ALL", "MY_TOKEN", "PATH"],
        );
    }

    #[test]
    fn settings_of_git_are_appended() {
        let own = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "a.b"),
            ("GIT_CONFIG_VALUE_0", "c"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let variables = own.clone().map(|(name, value)| (name.into(), value.into()));
        let all = with(&variables.into(), &own.into());
        let expected = [
            ("GIT_CONFIG_COUNT", "2"),
            ("GIT_CONFIG_KEY_0", "a.b"),
            ("GIT_CONFIG_KEY_1", "a.b"),
            ("GIT_CONFIG_VALUE_0", "c"),
            ("GIT_CONFIG_VALUE_1", "c"),
        ];
        let expected = expected.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(all, expected.into());
    }

    #[test]
    fn none_starts_clean() {
        check(EnvPolicy::None, &[], &[("A", "1")], &["A"]);
    }

    #[test]
    fn impossible_names_are_left_out() {
        let variables = [("", "x"), ("A=B", "x"), ("NUL", "a\0b"), ("OK", "v=1")]
            .map(|(n, v)| (n.into(), v.into()));
        assert_eq!(strings(&variables.into()), [c"OK=v=1".to_owned()]);
    }
}
