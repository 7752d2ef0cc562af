//! Order of what `comm` and `join` compare.
//!
//! bashkit's print what comes of files that are not sorted, with exit code 0. A call is
//! run here, too, as by the real tools, but says so and ends with 1. Those look only where
//! a line has no partner; here it is enough that some line has none.
//!
//! Seen in bashkit 0.20.2; gone when `order` of `tests/it/bashkit.rs` fails.

/// Whether the builtin `name` compares sorted files.
pub(super) fn matters(name: &str) -> bool {
    matches!(name, "comm" | "join")
}

/// The files that the builtin `name` compares, `-` for standard input.
pub(super) fn files<'a>(name: &str, args: &'a [String]) -> Vec<&'a str> {
    let mut files = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--" => files.extend(rest.by_ref()),
            "-1" | "-2" | "-j" | "-t" | "-a" | "-v" | "-e" | "-o" if name == "join" => {
                rest.next();
            }
            option if option.starts_with('-') && option.len() > 1 => {}
            file => files.push(file),
        }
    }
    files
}

/// The two files whose order matters.
pub(super) fn compared<'a>(name: &str, args: &'a [String]) -> Option<[&'a str; 2]> {
    let has = |option: &str| args.iter().any(|argument| argument == option);
    // The first line is in no order, or the lines are other ones.
    if has("--nocheck-order") || has("--header") || has("-z") {
        return None;
    }
    files(name, args).try_into().ok()
}

/// What is said of the order of `contents`, if it is wrong.
pub(super) fn problem(name: &str, args: &[String], contents: [&[u8]; 2]) -> Option<String> {
    let key = |side: usize| move |line: &'_ [u8]| key(name, args, side, line);
    let keys = [0, 1].map(|side| {
        let content = contents[side].strip_suffix(b"\n").unwrap_or(contents[side]);
        let lines = content.split(|byte| *byte == b'\n');
        lines.map(key(side)).collect::<Vec<_>>()
    });
    let sorted = keys.clone().map(|mut keys| {
        keys.sort();
        keys
    });
    let checks_all = args.iter().any(|argument| argument == "--check-order");
    let is_empty = contents.iter().any(|content| content.is_empty());
    if !checks_all && (is_empty && name == "join" || keys[0] == keys[1]) {
        return None;
    }
    let mut sentence = String::new();
    for side in 0..2 {
        if keys[side] != sorted[side] {
            let file = side + 1;
            sentence += &format!("{name}: file {file} is not in sorted order\n");
        }
    }
    (!sentence.is_empty()).then(|| sentence + &format!("{name}: input is not in sorted order\n"))
}

/// What of `line` is compared.
fn key(name: &str, args: &[String], side: usize, line: &[u8]) -> Vec<u8> {
    if name == "comm" {
        return line.to_vec();
    }
    let value = |letter: char| {
        let at = args.iter().position(|it| {
            it.strip_prefix('-')
                .is_some_and(|it| it.starts_with(letter))
        })?;
        match &args[at][2..] {
            "" => args.get(at + 1).map(String::as_str),
            attached => Some(attached),
        }
    };
    let own = value(if side == 0 { '1' } else { '2' });
    let field = own
        .or_else(|| value('j'))
        .and_then(|it| it.parse().ok())
        .unwrap_or(1_usize);
    let separator = value('t').and_then(|it| it.bytes().next());
    let ignores_case = args.iter().any(|argument| argument == "-i");
    let mut fields: Box<dyn Iterator<Item = &[u8]>> = match separator {
        Some(separator) => Box::new(line.split(move |byte| *byte == separator)),
        None => Box::new(
            line.split(|byte| matches!(byte, b' ' | b'\t'))
                .filter(|field| !field.is_empty()),
        ),
    };
    let key = fields.nth(field.saturating_sub(1)).unwrap_or_default();
    match ignores_case {
        true => key.to_ascii_lowercase(),
        false => key.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, one: &str, other: &str, said: &str) {
        let mut words = line.split(' ').map(str::to_owned);
        let name = words.next().expect("a name");
        let args: Vec<_> = words.collect();
        let contents = [one.as_bytes(), other.as_bytes()];
        let problem = compared(&name, &args).and_then(|_| problem(&name, &args, contents));
        let files: Vec<_> = problem
            .iter()
            .flat_map(|it| it.lines())
            .filter_map(|it| it.split(' ').nth(2))
            .collect();
        assert_eq!(files.join(" "), said, "{line}");
    }

    #[test]
    fn files_among_options() {
        let args = ["-1", "2", "f", "-t", ",", "-a1", "g"].map(str::to_owned);
        assert_eq!(files("join", &args), ["f", "g"]);
        assert_eq!(
            files("comm", &["-12", "f", "-"].map(str::to_owned)),
            ["f", "-"]
        );
    }

    #[test]
    fn files_that_are_not_sorted() {
        check("comm f g", "a\nb\n", "b\nc\n", "");
        check("comm f g", "b\na\n", "b\na\n", "");
        check("comm f g", "b\na\n", "b\nc\n", "1 is");
        check("comm -12 f g", "b\na\n", "d\nc\n", "1 2 is");
        check("comm --nocheck-order f g", "b\na\n", "b\nc\n", "");
        check("comm f g", "a\nc\nb\n", "b\nc\na\n", "1 2 is");
        check("comm f g", "b\na\n", "", "1 is");
        check("join f g", "b\na\n", "", "");
        check("comm --check-order f g", "b\na\n", "b\na\n", "1 2 is");
        check("join f g", "a 2\nb 1\n", "a x\nb y\n", "");
        check("join f g", "b 2\na 1\n", "a x\nc y\n", "1 is");
        check("join -1 2 f g", "b 1\na 2\n", "1 x\n3 y\n", "");
        check("join -t, -j2 f g", "a,2\nb,1\n", "x,1\ny,3\n", "1 is");
        check("join -i f g", "A 1\nb 2\n", "a x\nc y\n", "");
        check("join --header f g", "n v\na 1\n", "n w\nb 2\n", "");
    }
}
