//! Filters of `jq` and `yq`, which get definitions in front.
//!
//! `now`: the library asks std for the time, which on wasm32-unknown-unknown is a
//! panic, and with it the end of the instance. Ours is the time of the sandbox as
//! the command begins.
//!
//! `del` and `delpaths`: the library deletes one path after the other, so that the
//! second deletes another element of an array than was meant, and puts the last
//! entry of an object into the place of the deleted one.
//!
//! `sub` and `gsub`: the library counts the size of values wrongly where one `reduce` is
//! within another, so that more than some thirty matches are "too large".
//!
//! `sub`, `gsub`, `match`, `scan`, `capture`, `split` and `splits` refuse very long texts:
//! the library makes a list of all matches before it looks at a limit, which takes a
//! page ten seconds and 300 MiB for 4 MB.
//!
//! Seen in bashkit 0.20.2; `tests/sandbox/commands.json` without this file: `now` fails
//! on wasm32 alone.

/// Where the filter of a call of `jq` or `yq` stands.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::memory) enum Filter {
    /// In an argument, from this byte on.
    Argument { index: usize, from: usize },
    /// In the file that this argument names.
    File(usize),
}

/// Arguments that take others with them, and how many.
const JQ_VALUES: [(&str, usize); 5] = [
    ("--arg", 2),
    ("--argjson", 2),
    ("--slurpfile", 2),
    ("--rawfile", 2),
    ("--indent", 1),
];
const YQ_VALUES: [(&str, usize); 6] = [
    ("-p", 1),
    ("--input-format", 1),
    ("-o", 1),
    ("--output-format", 1),
    ("-I", 1),
    ("--indent", 1),
];
const EXPRESSION: &str = "--expression";
/// `del` and `delpaths` in the language of jq.
const DELETION: &str = include_str!("jq/delpaths.jq");
/// `sub` and `gsub` in the language of jq.
const SUBSTITUTION: &str = include_str!("jq/sub.jq");

/// Functions that collect all matches in a text, each with its number of parameters.
const COLLECTING: [(&str, usize); 12] = [
    ("sub", 2),
    ("sub", 3),
    ("gsub", 2),
    ("gsub", 3),
    ("match", 1),
    ("match", 2),
    ("scan", 1),
    ("scan", 2),
    ("capture", 1),
    ("capture", 2),
    ("split", 2),
    ("splits", 1),
];
/// Longest text that they look through, in bytes.
const LONGEST_TEXT: usize = 256 << 10;

/// Finds the filter in the arguments of the builtin `name`.
pub(in crate::memory) fn filter_of(name: &str, args: &[String]) -> Option<Filter> {
    let values: &[(&str, usize)] = match name {
        "jq" => &JQ_VALUES,
        "yq" => &YQ_VALUES,
        _ => return None,
    };
    let mut first = None;
    let mut only_words = false;
    let mut index = 0;
    while let Some(argument) = args.get(index) {
        let is_option = !only_words && argument.len() > 1 && argument.starts_with('-');
        if !is_option {
            first.get_or_insert(Filter::Argument { index, from: 0 });
        } else if argument == "--" {
            only_words = true;
        } else if name == "jq" && reads_file(argument) {
            return (index + 1 < args.len()).then_some(Filter::File(index + 1));
        } else if name == "yq" && argument == EXPRESSION {
            let index = index + 1;
            return (index < args.len()).then_some(Filter::Argument { index, from: 0 });
        } else if name == "yq"
            && let Some(filter) = argument.strip_prefix(EXPRESSION)
            && filter.starts_with('=')
        {
            let from = EXPRESSION.len() + 1;
            return Some(Filter::Argument { index, from });
        } else if let Some((_, taken)) = values.iter().find(|(option, _)| option == argument) {
            index += taken;
        }
        index += 1;
    }
    first
}

/// Whether this argument of `jq` is `--from-file`, or `-f` among short ones.
fn reads_file(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => long == "from-file",
        None => argument.contains('f'),
    }
}

/// The definitions that a filter needs in front, on its first line.
pub(in crate::memory) fn definitions(filter: &[u8], micros: u64) -> String {
    let mut all = String::new();
    if says(filter, "now") {
        let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
        all.push_str(&format!("def now: {seconds}.{rest:06}; "));
    }
    for (names, text) in [
        (["del", "delpaths"], DELETION),
        (["sub", "gsub"], SUBSTITUTION),
    ] {
        if names.iter().any(|name| says(filter, name)) {
            for line in text.lines() {
                all.push_str(line.trim());
                all.push(' ');
            }
        }
    }
    for (name, parameters) in COLLECTING {
        if says(filter, name) {
            all.push_str(&bounded(name, parameters));
        }
    }
    all
}

/// The definition of `name` that refuses what is longer than [`LONGEST_TEXT`].
fn bounded(name: &str, parameters: usize) -> String {
    let list = &["a", "a; b", "a; b; c"][parameters - 1];
    let library = format!("_{name}_of_library({list})");
    format!(
        "def {library}: {name}({list}); def {name}({list}): \
         if type == \"string\" and utf8bytelength > {LONGEST_TEXT} then \
         error(\"{name}: more than 256 KiB of text is too long for jq here; use sed or awk, or split it first\") \
         else {library} end; "
    )
}

/// Whether `filter` may call `name`; a text or a comment that says so counts, too.
fn says(filter: &[u8], name: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let mut rest = filter;
    let mut before = None;
    while let Some(at) = memchr::memmem::find(rest, name.as_bytes()) {
        let before_it = at.checked_sub(1).map(|at| rest[at]).or(before);
        let other = before_it.is_some_and(|byte| is_word(&byte) || matches!(byte, b'.' | b'$'));
        rest = &rest[at + name.len()..];
        if !other && !rest.first().is_some_and(is_word) {
            return true;
        }
        before = Some(b'w');
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<Filter>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(filter_of(&words[0], &words[1..]), expected, "{line}");
    }

    fn argument(index: usize) -> Option<Filter> {
        Some(Filter::Argument { index, from: 0 })
    }

    #[test]
    fn filters_are_found() {
        check("jq now", argument(0));
        check("jq -n now", argument(1));
        check("jq -nr now a.json", argument(1));
        check("jq --arg x now .a", argument(3));
        check("jq --indent 2 now", argument(2));
        check("jq --slurpfile a b now", argument(3));
        check("jq -n -- now", argument(2));
        check("jq -- -now", argument(1));
        check("jq now --args now", argument(0));
        check("jq -nf a.jq b", Some(Filter::File(1)));
        check("jq b --from-file a.jq", Some(Filter::File(2)));
        check("jq -f", None);
        check("jq -n", None);
        check("yq -p json now", argument(2));
        check("yq -I2 now", argument(1));
        check("yq a.yaml --expression now", argument(2));
        let from = "--expression=".len();
        check(
            "yq --expression=now a.yaml",
            Some(Filter::Argument { index: 0, from }),
        );
        check("yq --expression", None);
        check("awk now", None);
    }

    #[test]
    fn calls_of_now_are_seen() {
        for filter in [
            "now",
            "now|todate",
            "{t:now}",
            "known,now",
            "nownow,now",
            "[now-1]",
        ] {
            assert!(says(filter.as_bytes(), "now"), "{filter}");
        }
        for filter in [
            "", ".now", "$now", "known", "nowhere", "now_", "nownow", "_now",
        ] {
            assert!(!says(filter.as_bytes(), "now"), "{filter}");
        }
    }

    #[test]
    fn definitions_stand_on_one_line() {
        assert_eq!(
            definitions(b"now", 1_700_000_000_000_042),
            "def now: 1700000000.000042; "
        );
        assert_eq!(definitions(b".now | .del | delta", 0), "");
        let deletion = definitions(b"del(.a)", 0);
        assert!(!deletion.contains('\n'));
        assert!(deletion.ends_with("def del(f): delpaths([path(f)]); "));
        assert_eq!(definitions(b"delpaths([])", 0), deletion);
        let bounded = definitions(b"gsub(\"a\"; \"b\")", 0);
        assert!(!bounded.contains('\n'));
        assert_eq!(bounded.matches("def gsub(").count(), 4, "{bounded}");
    }
}
