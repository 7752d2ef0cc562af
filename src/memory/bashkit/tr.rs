//! Sets of `tr` that bashkit's reads otherwise: `[x*]`, an empty one, classes that do not
//! exist, and one too many.
//!
//! Seen in bashkit 0.20.2; gone when `tr` of `tests/it/bashkit.rs` fails.

const CLASSES: [&str; 12] = [
    "alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "xdigit",
];

/// Why `tr` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    let mut options = String::new();
    let mut sets = Vec::new();
    for argument in args {
        match argument.strip_prefix('-') {
            Some("") | None => sets.push(argument.as_str()),
            Some("-") => {}
            Some("-complement") => options.push('c'),
            Some("-delete") => options.push('d'),
            Some("-squeeze-repeats") => options.push('s'),
            Some("-truncate-set1") => options.push('t'),
            Some(letters) if sets.is_empty() && !letters.starts_with('-') => options += letters,
            Some(_) => sets.push(argument),
        }
    }
    let has = |letter| options.contains(letter);
    let unknown = sets.iter().find_map(|set| unknown_class(set));
    let problem = match sets[..] {
        _ if unknown.is_some() => format!("invalid character class '{}'", unknown?),
        [_, extra] if has('d') && !has('s') => format!("extra operand '{extra}'"),
        [_, _, extra, ..] => format!("extra operand '{extra}'"),
        [one] if has('d') && has('s') => format!("missing operand after '{one}'"),
        [one, ""] if !one.is_empty() && !has('d') && !has('t') => {
            "when not truncating set1, string2 must be non-empty".to_owned()
        }
        [_, two] if repeats(two) => {
            "[c*] is not supported in the sandbox; write the characters out".to_owned()
        }
        [_, two] if !has('d') && classes(two).any(|it| !it.ends_with("er")) => {
            "when translating, string2 may only have the classes upper and lower".to_owned()
        }
        _ => return None,
    };
    Some(format!("tr: {problem}"))
}

/// Names of the classes in `set`.
fn classes(set: &str) -> impl Iterator<Item = &str> {
    set.split("[:")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once(":]")?.0))
}

/// A class that does not exist.
fn unknown_class(set: &str) -> Option<&str> {
    classes(set).find(|name| {
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_name && !CLASSES.contains(name)
    })
}

/// Whether `set` has a `[c*]` or `[c*5]`.
fn repeats(set: &str) -> bool {
    set.split('[').skip(1).any(|rest| {
        let mut rest = rest.chars();
        rest.next().is_some()
            && rest.next() == Some('*')
            && rest
                .as_str()
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .starts_with(']')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, problem: Option<&str>) {
        let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let expected = problem.map(|problem| format!("tr: {problem}"));
        assert_eq!(refusal(&args), expected, "{line}");
    }

    #[test]
    fn sets() {
        check("a-z A-Z", None);
        check("-d \\n", None);
        check("-s [:space:]", None);
        check("-cd [:alnum:]_", None);
        check("-ds a b", None);
        check("[:lower:] [:upper:]", None);
        check("-cs [:alnum:] \\n", None);
        check("-ds [:alpha:] [:space:]", None);
        check("-s -- - _", None);
        check("[:] ab", None);
        check("a [*]", None);
        check(
            "abc [x*]",
            Some("[c*] is not supported in the sandbox; write the characters out"),
        );
        check(
            "abc [x*2]y",
            Some("[c*] is not supported in the sandbox; write the characters out"),
        );
        check(
            "a ",
            Some("when not truncating set1, string2 must be non-empty"),
        );
        check("-d a ", Some("extra operand ''"));
        check("[:foo:] x", Some("invalid character class 'foo'"));
        check("-d a b", Some("extra operand 'b'"));
        check("a b c", Some("extra operand 'c'"));
        check("-ds a", Some("missing operand after 'a'"));
        check(
            "[:upper:] [:digit:]",
            Some("when translating, string2 may only have the classes upper and lower"),
        );
    }
}
