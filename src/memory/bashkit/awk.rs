//! What an `awk` program reads and runs beside the files that are named.
//!
//! Text that stands for bytes ([`super::bytes`]) stays within `awk`: what it gives to
//! commands, and to `/dev/stderr`, would reach them as that text.
//!
//! Seen in bashkit 0.20.2; gone with `bytes`.

/// The arguments that may be programs: not field separators and the like.
pub(super) fn programs(args: &[String]) -> Vec<&str> {
    let mut programs = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "-F" | "-v" | "-f" => drop(rest.next()),
            option if option.starts_with('-') && option.len() > 1 => {}
            program => programs.push(program),
        }
    }
    programs
}

/// Files that programs are in.
pub(super) fn program_files(args: &[String]) -> Vec<&str> {
    let mut files = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "-f" | "--file" => files.extend(rest.next()),
            "-F" | "-v" => drop(rest.next()),
            "--" => break,
            attached => {
                let file = attached.strip_prefix("--file=");
                files.extend(file.or_else(|| attached.strip_prefix("-f")));
            }
        }
    }
    files
}

/// Whether `program` may run commands: it has a `|`, or calls `system`.
pub(super) fn runs_commands(program: &str) -> bool {
    let bare = without_texts(program);
    bare.replace("||", "").contains('|') || bare.contains("system")
}

/// Whether `program` names an output that is no file.
pub(super) fn writes_elsewhere(program: &str) -> bool {
    program.contains("/dev/stderr") || program.contains("/dev/stdout")
}

/// Whether `program` may read files that the arguments do not name.
pub(super) fn reads_others(program: &str) -> bool {
    program.contains("getline") || program.contains("ARGV")
}

/// `program` without its strings, patterns and comments.
fn without_texts(program: &str) -> String {
    let mut bare = String::with_capacity(program.len());
    let mut letters = program.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '#' => while letters.next_if(|it| *it != '\n').is_some() {},
            '"' => skip(&mut letters, '"'),
            '/' if begins_pattern(&bare) => skip(&mut letters, '/'),
            other => bare.push(other),
        }
    }
    bare
}

/// Takes `letters` up to and with the next `end` that is not escaped or within brackets.
fn skip(letters: &mut impl Iterator<Item = char>, end: char) {
    let mut in_brackets = false;
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '[' if end == '/' => in_brackets = true,
            ']' => in_brackets = false,
            letter if letter == end && !in_brackets => return,
            _ => {}
        }
    }
}

/// Whether a slash behind `before` begins a pattern: it divides behind a value.
fn begins_pattern(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    let is_value = before.ends_with(|c: char| c.is_alphanumeric() || "_)]$".contains(c));
    !is_value || before.ends_with("return") || before.ends_with("print")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let check = |program: &str, runs: bool| {
            assert_eq!(runs_commands(program), runs, "{program}");
        };
        check("{print $1}", false);
        check("/foo|bar/ {print}", false);
        check("$1 ~ /a|b/ || $2 == \"x|y\"", false);
        check("{split($0, a, /[|\\/]/); print a[1] / 2} # a | b", false);
        check("{gsub(/[/|]/, \"-\")} 1", false);
        check("{print | \"sort\"}", true);
        check("BEGIN {\"date\" | getline d}", true);
        check("{system(\"rm \" $1)}", true);
        check("{print $1 / 2 | \"cat\"}", true);
        check("{print /a/ | \"cat\"}", true);
    }

    #[test]
    fn arguments() {
        let args = ["-F", "|", "-v", "x=a|b", "-F|", "--", "{print}", "f"];
        let args = args.map(str::to_owned);
        assert_eq!(programs(&args), ["{print}", "f"]);
        let args = ["-f", "p", "-fq", "--file=r", "-F", "-fs", "f"].map(str::to_owned);
        assert_eq!(program_files(&args), ["p", "q", "r"]);
    }
}
