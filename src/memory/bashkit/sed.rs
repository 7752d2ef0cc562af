//! Loops of `sed`: bashkit's runs at most 1,000 commands for one line (and begins
//! its script 1,000 times anew by `D`), prints what it has got by then, writes it
//! with `-i`, too, and ends with exit code 0. Whether a loop gets that far is known
//! only afterwards, so a call is refused where one may: each turn of a loop that
//! substitutes mostly uses up a character of the text that it works on.
//!
//! Seen in bashkit 0.20.2; gone when `sed` of `tests/it/bashkit.rs` fails.

use std::fmt;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod loops;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) use loops::refusal_of_loops;

/// What bashkit's `sed` says where it leaves a loop; it goes on and ends with 0.
pub(in crate::memory) const LOOP_LIMIT: &[u8] = b"sed: warning: branch/label loop limit";
/// How a command ends in which that was said: as GNU's `sed` does in trouble.
pub(in crate::memory) const TROUBLE: i32 = 4;

/// Commands that bashkit's `sed` runs for one line, and times that it begins anew.
const MAX_STEPS: usize = 1_000;

/// Why `sed` with `args` cannot be run: an `a` without a text, by which GNU's ends a last
/// line that has no end, does nothing in bashkit's.
pub(super) fn refusal(args: &[String]) -> Option<String> {
    if args.iter().any(|argument| argument == "--follow-symlinks") {
        return Some(
            "sed: --follow-symlinks is not supported in the sandbox; name the file itself"
                .to_owned(),
        );
    }
    let call = SedCall::parse(args);
    call.scripts.last()?.ends_with("a\\").then(|| {
        "sed: `a\\` without a text is not supported in the sandbox; to end a last line, write \
         `[ -z \"$(tail -c1 FILE)\" ] || echo >> FILE`"
            .to_owned()
    })
}

/// How much text may be worked on, so that no loop of a call passes the limit.
#[derive(Debug, PartialEq, Eq)]
enum Longest {
    /// Bytes of each line.
    Line(usize),
    /// Bytes of a whole input, which the call gathers before the loop.
    Input(usize),
}

impl Longest {
    /// Whether `text` has more.
    #[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
    fn is_passed_by(&self, text: &[u8]) -> bool {
        match self {
            Self::Line(most) => text
                .split(|byte| *byte == b'\n')
                .any(|line| line.len() > *most),
            Self::Input(most) => text.len() > *most,
        }
    }
}

impl fmt::Display for Longest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(most) => write!(f, "a line of more than {most} bytes"),
            Self::Input(most) => write!(f, "more than {most} bytes"),
        }
    }
}

/// The scripts and the files of a call.
#[derive(Debug, Default, PartialEq, Eq)]
struct SedCall<'a> {
    /// Scripts given as arguments, in order.
    scripts: Vec<&'a str>,
    /// Files to work on; none: standard input.
    files: Vec<&'a str>,
    /// Whether lines end with NUL.
    is_null_data: bool,
}

impl<'a> SedCall<'a> {
    /// Reads the arguments of a call. A script in a file is not looked at.
    fn parse(args: &'a [String]) -> Self {
        let mut call = Self::default();
        let mut in_file = false;
        let mut operands = Vec::new();
        let mut rest = args.iter().map(String::as_str);
        while let Some(arg) = rest.next() {
            match arg {
                "--" => operands.extend(rest.by_ref()),
                "--expression" => call.scripts.extend(rest.next()),
                "--file" => in_file = rest.next().is_some(),
                "--line-length" => drop(rest.next()),
                long if long.starts_with("--") => match long.split_once('=') {
                    Some(("--expression", script)) => call.scripts.push(script),
                    Some(("--file", _)) => in_file = true,
                    _ => call.is_null_data |= matches!(long, "--null-data" | "--zero-terminated"),
                },
                short if short.starts_with('-') && short.len() > 1 => {
                    // What follows one of these letters is its value; `-i` has it attached.
                    let value = short.find(['e', 'f', 'l', 'i']).filter(|at| *at > 0);
                    call.is_null_data |= short[..value.unwrap_or(short.len())].contains('z');
                    let Some(at) = value else { continue };
                    let attached = Some(&short[at + 1..]).filter(|value| !value.is_empty());
                    match &short[at..=at] {
                        "i" => {}
                        "e" => call.scripts.extend(attached.or_else(|| rest.next())),
                        letter => {
                            let value = attached.or_else(|| rest.next());
                            in_file |= letter == "f" && value.is_some();
                        }
                    }
                }
                operand => operands.push(operand),
            }
        }
        let mut operands = operands.into_iter();
        if call.scripts.is_empty() && !in_file {
            call.scripts.extend(operands.next());
        }
        call.files.extend(operands);
        call
    }

    /// How much text there may be; `None`: there is no loop that could pass the
    /// limit. One that reads the next line in each turn begins to count again there.
    fn longest(&self) -> Option<Longest> {
        let script = self.scripts.join("\n");
        let commands: Vec<&str> = script.split([';', '\n', '{', '}']).map(str::trim).collect();
        let reads = |commands: &[&str]| commands.iter().any(|command| is(command, 'N'));
        let loops = commands.iter().enumerate().filter_map(|(end, command)| {
            let target = branch_target(command)?;
            let is_label = |command: &&str| {
                let label = command.strip_prefix(':').map(str::trim);
                !target.is_empty() && label == Some(target)
            };
            let start = commands[..end].iter().position(is_label)?;
            Some(&commands[start..=end])
        });
        let (reading, others): (Vec<_>, Vec<_>) = loops.partition(|body| reads(body));
        let of_labels = others.iter().map(|body| match is_endless(&script, body) {
            true => MAX_STEPS,
            false => body.len(),
        });
        // `D` begins anew without a line; `$!N;P;D` reads one each time.
        let begins_anew = commands.iter().any(|command| is(command, 'D'))
            && (!reading.is_empty() || !reads(&commands));
        let turn = of_labels.chain(begins_anew.then_some(1)).max()?;
        let most = (MAX_STEPS / turn).saturating_sub(2);
        let gathers = self.is_null_data
            || !reading.is_empty()
            || commands.iter().any(|it| is(it, 'H') || is(it, 'G'));
        Some(match gathers {
            true => Longest::Input(most),
            false => Longest::Line(most),
        })
    }
}

/// Files that the script `text` may read by its commands `r` and `R`.
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
pub(super) fn read_files(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(['r', 'R']).filter_map(|(at, _)| {
        let name = text[at + 1..].lines().next()?;
        let name = name.split([';', '}']).next()?.trim();
        (is_address(&text[..at]) || text[..at].ends_with([';', '{', '}', '\n', ' ']))
            .then_some(name)
    })
}

/// Whether a script of `sed` with `args` prints lines by its command `l`.
#[cfg(any(test, all(target_arch = "wasm32", feature = "sandbox")))]
pub(super) fn lists(args: &[String]) -> bool {
    let scripts = SedCall::parse(args).scripts.join("\n");
    let mut commands = scripts.split([';', '\n', '{', '}']);
    commands.any(|command| is(command.trim(), 'l'))
}

/// Whether `command` is the one of this letter, perhaps behind an address.
fn is(command: &str, letter: char) -> bool {
    command.strip_suffix(letter).is_some_and(is_address)
}

/// Whether what stands before a command may be its address.
fn is_address(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty()
        || before.ends_with(['/', '!', '$', ','])
        || before.ends_with(|c: char| c.is_ascii_digit())
}

/// Whether nothing leaves the loop `body`: a label, commands, and a branch back
/// under no condition.
fn is_endless(script: &str, body: &[&str]) -> bool {
    let [_, within @ .., branch] = body else {
        return false;
    };
    let leaves = |command: &&str| {
        let command = command.trim_start_matches(|c: char| !c.is_ascii_alphabetic());
        command.starts_with(['b', 't', 'T', 'n', 'N', 'd', 'D', 'q', 'Q'])
            || branch_target(command).is_some()
    };
    !script.contains('{') && branch.starts_with('b') && !within.iter().any(leaves)
}

/// The label that a command branches to: that of `b`, `t` or `T`, perhaps behind
/// an address such as `$!` or `/x/`.
fn branch_target(command: &str) -> Option<&str> {
    let (before, target) = match command.rsplit_once(char::is_whitespace) {
        Some((before, target)) if before.ends_with(['b', 't', 'T']) => {
            (&before[..before.len() - 1], target)
        }
        _ => {
            let at = command.rfind(['b', 't', 'T'])?;
            // The letter that begins the command, not one of its label.
            let first = command[..at]
                .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .map_or(0, |end| end + 1);
            let letter = command[first..].chars().next()?;
            if !"btT".contains(letter) {
                return None;
            }
            (&command[..first], &command[first + 1..])
        }
    };
    is_address(before).then_some(target)
}

#[cfg(test)]
mod tests {
    use super::Longest::{Input, Line};
    use super::*;

    #[track_caller]
    fn check(args: &[&str], files: &[&str], longest: Option<Longest>) {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let call = SedCall::parse(&args);
        assert_eq!(call.files, files, "{args:?}");
        assert_eq!(call.longest(), longest, "{args:?}");
    }

    #[test]
    fn loops() {
        check(&[":a;s/x //;ta", "f"], &["f"], Some(Line(331)));
        check(
            &["-i", "-e", ":a", "-e", "s/x/y/", "-e", "t a", "f"],
            &["f"],
            Some(Line(331)),
        );
        check(
            &["-E", ":a;s/^([0-9]+)([0-9]{3})/\\1,\\2/;ta"],
            &[],
            Some(Line(198)),
        );
        check(
            &["-ne", ":loop\n/x/{s/x/y/\nb loop\n}\np", "f", "g"],
            &["f", "g"],
            Some(Line(248)),
        );
        check(&[":a;/x$/!ba"], &[], Some(Line(498)));
        check(&[":a;ba"], &[], Some(Line(0)));
        check(&[":a;s/x/y/;b a"], &[], Some(Line(0)));
        check(&[":a;s/x/y/;tb;ba;:b"], &[], Some(Line(248)));
        check(&["s/ /\\n/;P;D"], &[], Some(Line(998)));
    }

    #[test]
    fn loops_over_what_was_gathered() {
        check(&["-n", "H;${x;:a;s/\\n/,/;ta;p}"], &[], Some(Input(331)));
        check(&["-n", "1!G;h;${:a;s/\\n/,/;ta;p}"], &[], Some(Input(331)));
        check(
            &[":a;N;$!ba;:b;s/\\n\\n/\\n/;tb", "f"],
            &["f"],
            Some(Input(331)),
        );
        check(&["-nz", ":a;s/\\n/,/;ta", "f"], &["f"], Some(Input(331)));
        check(&["--null-data", "s/\\n/,/;D"], &[], Some(Input(998)));
        check(&[":a;$!{N;ba};P;D"], &[], Some(Input(998)));
        check(&["G;D"], &[], Some(Input(998)));
    }

    #[test]
    fn files_that_are_read() {
        let check = |text: &str, files: &[&str]| {
            let read: Vec<_> = read_files(text).filter(|name| !name.is_empty()).collect();
            assert_eq!(read, files, "{text}");
        };
        check("s/a/b/", &[]);
        check("r f", &["f"]);
        check("/x/r f", &["f"]);
        check("$ R f.txt", &["f.txt"]);
        check("1{r f\nd}", &["f"]);
        check("s/foo/bar/;2rf", &["f"]);
    }

    #[test]
    fn lines_that_are_listed() {
        let check = |line: &str, expected: bool| {
            let args: Vec<_> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(lists(&args), expected, "{line}");
        };
        check("-n l f", true);
        check("s/a/b/;$l", true);
        check("s/a/l/ l", false);
        check("-e /l/p -e p l", false);
    }

    #[test]
    fn lines_and_inputs() {
        assert!(!Line(3).is_passed_by(b"abc\nabc\n"));
        assert!(Line(3).is_passed_by(b"a\nabcd"));
        assert!(Input(3).is_passed_by(b"a\nb\n"));
        assert!(!Input(4).is_passed_by(b"a\nb\n"));
    }

    #[test]
    fn no_loops() {
        check(&["s/a/b/", "f"], &["f"], None);
        check(&["-n", "$!N;P;D"], &[], None);
        check(&["/^$/{N;/^\\n$/D}"], &[], None);
        check(&["1!G;h;$!d"], &[], None);
        check(&["-z", "s/\\n/,/g", "f"], &["f"], None);
        check(&[":a;N;$!ba;s/\\n/,/g", "f"], &["f"], None);
        check(&["-i.bak", "/x/b;s/a:b/c;d/", "f"], &["f"], None);
        check(&["-f", "script", "f"], &["f"], None);
        check(&["s/a/b/;t;s/c/d/", "f"], &["f"], None);
        check(&["/x/bend;s/a/b/;:end"], &[], None);
        check(&["--expression=s/a/b/", "--", "-f"], &["-f"], None);
    }
}
