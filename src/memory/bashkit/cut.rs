//! Lists of `cut`.
//!
//! bashkit's takes a list that cannot be read for no list, or for another one, and prints
//! whole lines or nothing, with exit code 0.
//!
//! Seen in bashkit 0.20.2; gone when `cut` of `tests/it/bashkit.rs` fails.

/// Why `cut` with `args` cannot be run.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    let mut lists = Vec::new();
    let (mut delimiter, mut only_delimited, mut joins) = (None, false, false);
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        if argument == "--" {
            break;
        }
        if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            match name {
                "bytes" | "characters" | "fields" => {
                    lists.push((name == "fields", value.or_else(|| rest.next())?));
                }
                "delimiter" => delimiter = value.or_else(|| rest.next()),
                "output-delimiter" => {
                    joins = true;
                    if value.is_none() {
                        rest.next();
                    }
                }
                "only-delimited" => only_delimited = true,
                _ => {}
            }
            continue;
        }
        let letters = argument.strip_prefix('-').unwrap_or_default();
        for (at, letter) in letters.char_indices() {
            only_delimited |= letter == 's';
            if !"bcfd".contains(letter) {
                continue;
            }
            let attached = Some(&letters[at + 1..]).filter(|value| !value.is_empty());
            let value = attached.or_else(|| rest.next())?;
            match letter {
                'd' => delimiter = Some(value),
                _ => lists.push((letter == 'f', value)),
            }
            break;
        }
    }
    let problem = match lists[..] {
        [] => return None,
        [_, _, ..] => "only one list may be specified".to_owned(),
        [(false, _)] if delimiter.is_some() => {
            "an input delimiter may be specified only when operating on fields".to_owned()
        }
        [(false, _)] if only_delimited => {
            "suppressing non-delimited lines makes sense only when operating on fields".to_owned()
        }
        [(false, _)] if joins => {
            "--output-delimiter with -b or -c is not supported in the sandbox".to_owned()
        }
        [(_, list)] if list.contains([' ', '\t']) => {
            "blanks in a list are not supported in the sandbox; use commas".to_owned()
        }
        _ if delimiter.is_some_and(|it| it.chars().count() > 1) => {
            "the delimiter must be a single character".to_owned()
        }
        [(fields, list)] => list.split(',').find_map(|range| problem(fields, range))?,
    };
    Some(format!("cut: {problem}"))
}

/// Why `range` is none.
fn problem(fields: bool, range: &str) -> Option<String> {
    let (from, to) = match range.split_once('-') {
        Some((from, to)) => (from, Some(to)),
        None => (range, None),
    };
    let number = |text: &str, left_out: usize| match text {
        "" => Some(left_out),
        digits => digits.parse::<usize>().ok(),
    };
    let absent = if to.is_some() { 1 } else { 0 };
    match (number(from, absent), number(to.unwrap_or(from), usize::MAX)) {
        _ if range == "-" => Some("invalid range with no endpoint: -".to_owned()),
        (Some(0), _) => Some(match fields {
            true => "fields are numbered from 1".to_owned(),
            false => "byte/character positions are numbered from 1".to_owned(),
        }),
        (Some(from), Some(to)) if from > to => Some("invalid decreasing range".to_owned()),
        (Some(_), Some(_)) => None,
        _ => Some(format!("invalid list: '{range}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, problem: Option<&str>) {
        let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
        let expected = problem.map(|problem| format!("cut: {problem}"));
        assert_eq!(refusal(&args), expected, "{line}");
    }

    #[test]
    fn lists() {
        check("-f1", None);
        check("-d: -f 1,3-,-2,5-7 f", None);
        check("-c1-3", None);
        check("-sf2 -d,", None);
        check("--fields=2 --delimiter=, f", None);
        check("--output-delimiter : -f1", None);
        check("-f1 -- -f0", None);
        check("", None);
        check("-f0", Some("fields are numbered from 1"));
        check("-f1,,2", Some("fields are numbered from 1"));
        check(
            "-b0-2",
            Some("byte/character positions are numbered from 1"),
        );
        check("-f x", Some("invalid list: 'x'"));
        check("-f1-2-3", Some("invalid list: '1-2-3'"));
        check("-f-", Some("invalid range with no endpoint: -"));
        check("-f3-1", Some("invalid decreasing range"));
        check(
            "-d ab -f1",
            Some("the delimiter must be a single character"),
        );
        check("-c1 -f1", Some("only one list may be specified"));
        check(
            "-c1 -d:",
            Some("an input delimiter may be specified only when operating on fields"),
        );
        check(
            "-sc1",
            Some("suppressing non-delimited lines makes sense only when operating on fields"),
        );
    }
}
