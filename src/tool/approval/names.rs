//! What is known about commands by name: `names.json`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::text::from_json;

/// The data of `names.json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Names {
    /// Builtins that only steer a script: never asked about.
    pub(super) control: Vec<String>,
    /// Builtins that give a text to the shell: always asked about.
    pub(super) handing_over: Vec<String>,
    /// Shells.
    pub(super) shells: Vec<String>,
    /// Builtins that run strings or change what names mean.
    pub(super) builtins: Vec<String>,
    /// Programs that run another program.
    pub(super) wrappers: Vec<String>,
    /// Interpreters that read a program from their input.
    pub(super) languages: Vec<String>,
    /// Programs that run what a file or an argument says.
    pub(super) interpreters: Vec<String>,
    /// Options that turn a wrapper into a harmless look-up.
    pub(super) lookups: BTreeMap<String, Vec<String>>,
    /// Variables that change what programs do; `*` at one end.
    pub(super) dangerous_variables: Vec<String>,
    /// Variables whose values bash takes for numbers, and counts.
    pub(super) counting_variables: Vec<String>,
    /// Builtins whose arguments are assignments.
    pub(super) assigning_builtins: Vec<String>,
    /// Builtins whose arguments are names of variables.
    pub(super) naming_builtins: Vec<String>,
    /// Arguments that ask, by program.
    pub(super) options: BTreeMap<String, Options>,
    /// What is known about git.
    pub(super) git: Git,
}

/// Arguments that ask.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Options {
    /// Whole arguments.
    pub(super) exact: Vec<String>,
    /// Letters of short options, also in bundles.
    pub(super) short: String,
    /// Long options, also abbreviated or with a value.
    pub(super) long: Vec<String>,
    /// Whether the first argument is a bundle without a dash.
    pub(super) bare: bool,
    /// Whether an argument of digits asks.
    pub(super) digits: bool,
    /// How many arguments may be no options.
    pub(super) max_operands: Option<usize>,
}

/// What is known about git.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Git {
    /// Options before the subcommand that are harmless.
    pub(super) global_options: Vec<String>,
    /// Long options that ask with every subcommand, also abbreviated.
    pub(super) denied_long: Vec<String>,
    /// Letters of short options that ask, by subcommand.
    pub(super) denied_short: BTreeMap<String, String>,
    /// Subcommands that only read.
    pub(super) reading: Vec<String>,
    /// Subcommands that only read when called like this.
    pub(super) listing: BTreeMap<String, Listing>,
}

/// Arguments with which a subcommand of git only reads.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Listing {
    /// All of them are among these; having none counts.
    pub(super) words: Vec<String>,
    /// Or the first is one of these.
    pub(super) first: Vec<String>,
    /// Then options follow only from these, up to their `=`, and from `words`;
    /// none: all.
    pub(super) then: Vec<String>,
}

/// Absent only if the file is no such data, which a test rules out.
static NAMES: LazyLock<Option<Names>> =
    LazyLock::new(|| from_json(include_str!("names.json")).ok());

/// What is known; without it everything must be asked about.
pub(super) fn names() -> Option<&'static Names> {
    NAMES.as_ref()
}

impl Names {
    /// Whether setting `variable` changes what programs do.
    pub(super) fn is_dangerous_variable(&self, variable: &str) -> bool {
        self.dangerous_variables.iter().any(|known| {
            if let Some(start) = known.strip_suffix('*') {
                variable.starts_with(start)
            } else if let Some(end) = known.strip_prefix('*') {
                variable.ends_with(end)
            } else {
                variable == known
            }
        })
    }
}

/// The name of a program without directory, version and case: `python` for
/// `/usr/bin/Python3.12`. Also the name with its version, as in `linux32`.
pub(super) fn families(name: &str) -> [String; 2] {
    let base = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let base = base.strip_suffix(".exe").unwrap_or(&base).to_owned();
    let family =
        base.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '_'));
    [family.to_owned(), base]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_there() {
        let names = names().expect("names.json parses");
        for list in [&names.wrappers, &names.languages, &names.interpreters] {
            assert!(!list.is_empty());
        }
    }

    #[test]
    fn the_wrappers_of_the_parser_are_known() {
        let names = names().expect("names.json parses");
        let missing: Vec<_> = bashkit::analysis::COMMAND_WRAPPERS
            .iter()
            .filter(|wrapper| !names.wrappers.iter().any(|known| known == *wrapper))
            .collect();
        assert_eq!(missing, Vec::<&&str>::new());
    }

    #[test]
    fn a_family_has_no_version() {
        let family = |name: &str| families(name)[0].clone();
        assert_eq!(family("/usr/bin/Python3.12"), "python");
        assert_eq!(family("sqlite3"), "sqlite");
        assert_eq!(family("node.exe"), "node");
        assert_eq!(families("linux32")[1], "linux32");
    }

    #[test]
    fn variables() {
        let names = names().expect("names.json parses");
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_DIR",
            "MANPAGER",
            "http_proxy",
            "BASH_ENV",
        ] {
            assert!(names.is_dangerous_variable(name), "{name}");
        }
        for name in ["FOO", "PATHS", "RUST_LOG", "i"] {
            assert!(!names.is_dangerous_variable(name), "{name}");
        }
    }
}
