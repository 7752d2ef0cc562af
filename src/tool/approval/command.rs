//! Whether one command may run without a question.

use super::names::{Git, Names, Options, families};
use super::script::{Argument, Call};
use super::{awk, sed};

/// Beginnings of commands that a host listed, split into words.
pub(super) type Listed = [Vec<String>];

/// Why `call` asks, if it does.
pub(super) fn concern(
    call: &Call,
    listed: &Listed,
    names: &Names,
    changes_directory: bool,
) -> Option<String> {
    let name = call.name.as_str();
    if call.is_function || names.control.iter().any(|known| known == name) {
        return None;
    }
    if changes_directory && name.contains('/') && !name.starts_with('/') {
        return Some(format!(
            "{name} is another file after a change of directory"
        ));
    }
    let families = families(name);
    if changes_directory && is_git(call) {
        return Some(
            "git after a change of directory runs what a repository there configures".to_owned(),
        );
    }
    let is_among = |list: &[String]| families.iter().any(|name| list.contains(name));
    let literal: Option<Vec<&str>> = call.arguments.iter().map(Argument::literal).collect();
    let is_exact = literal.as_ref().is_some_and(|arguments| {
        let mut entries = listed.iter().filter_map(|entry| entry.split_first());
        entries.any(|(first, rest)| first == name && rest == arguments.as_slice())
    });
    let reads_program = is_among(&names.shells) || is_among(&names.languages);
    // `python3` alone, or `bash -s`, runs what it is sent.
    let names_program = call
        .arguments
        .iter()
        .any(|argument| !argument.may_be_option());
    if is_exact && (!reads_program || names_program) {
        return None;
    }
    if let Some(concern) = kind_concern(call, &families, names) {
        return Some(concern);
    }
    if !listed.iter().any(|entry| begins(call, entry)) {
        return Some(unlisted(&[name]));
    }
    let tool = families.iter().find_map(|name| names.options.get(name));
    match families[1].as_str() {
        "git" => git(&call.arguments, &names.git),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => awk::concern(&call.arguments),
        "sed" | "gsed" => sed::concern(&call.arguments),
        "test" | "[" => test(&call.arguments),
        "set" => set(&call.arguments),
        _ => tool.and_then(|options| option_concern(name, &call.arguments, options)),
    }
}

/// That none of these commands is listed.
pub(super) fn unlisted(commands: &[&str]) -> String {
    match commands {
        [first @ .., last] if !first.is_empty() => {
            format!(
                "{} and {last} are not among the listed commands",
                first.join(", ")
            )
        }
        _ => format!("{} is not among the listed commands", commands.concat()),
    }
}

/// Whether `call` runs git.
pub(super) fn is_git(call: &Call) -> bool {
    !call.is_function && families(&call.name).iter().any(|name| name == "git")
}

/// Whether this call of git only reads.
pub(super) fn only_reads(call: &Call, names: &Names) -> bool {
    git(&call.arguments, &names.git).is_none()
}

/// What asks unless the whole command is listed.
fn kind_concern(call: &Call, families: &[String; 2], names: &Names) -> Option<String> {
    let name = &call.name;
    let is_among = |list: &[String]| families.iter().any(|name| list.contains(name));
    let does = if is_among(&names.wrappers) {
        let mut lookups = families.iter().filter_map(|name| names.lookups.get(name));
        let first = call.arguments.first().and_then(Argument::literal);
        let looks_up =
            |options: &Vec<String>| options.iter().any(|known| Some(known.as_str()) == first);
        if lookups.any(looks_up) {
            return None;
        }
        "runs another command"
    } else if is_among(&names.shells) {
        "is a shell"
    } else if is_among(&names.languages) || is_among(&names.interpreters) {
        "runs what a file or an argument says"
    } else if names.builtins.contains(name) {
        "runs texts as commands or changes what names mean"
    } else {
        return None;
    };
    Some(format!(
        "{name} {does}; only the exact command can be listed"
    ))
}

/// Whether `call` begins with the words of `entry`.
fn begins(call: &Call, entry: &[String]) -> bool {
    let Some((name, words)) = entry.split_first() else {
        return false;
    };
    *name == call.name
        && words.len() <= call.arguments.len()
        && words
            .iter()
            .zip(&call.arguments)
            .all(|(word, argument)| argument.literal() == Some(word.as_str()))
}

fn option_concern(name: &str, arguments: &[Argument], options: &Options) -> Option<String> {
    let mut operands = 0;
    let mut has_ended = false;
    for (index, argument) in arguments.iter().enumerate() {
        let Some(text) = argument.literal() else {
            let is_digits = |text: &str| text.starts_with(|char: char| char.is_ascii_digit());
            let may_be_date = options.digits
                && matches!(argument, Argument::Beginning(text) | Argument::Pattern(text) if is_digits(text));
            if argument.may_be_option() || may_be_date {
                return Some(computed(name));
            }
            // A pattern stands for any number of files.
            operands += match argument {
                Argument::Pattern(_) => options.max_operands.map_or(1, |most| most + 1),
                _ => 1,
            };
            continue;
        };
        let is_denied = options.exact.iter().any(|known| known == text)
            || is_long(text, &options.long)
            || is_short(text, &options.short)
            || options.bare && index == 0 && text.contains(|char| options.short.contains(char))
            || options.digits && text.starts_with(|char: char| char.is_ascii_digit());
        if is_denied {
            return Some(format!(
                "{name} with {text} writes or runs more than its name says"
            ));
        }
        let is_operand = has_ended || !text.starts_with('-') || text == "-";
        operands += usize::from(is_operand);
        // What counts its operands may read no options behind the first.
        has_ended |= text == "--" || is_operand && options.max_operands.is_some();
    }
    let allowed = options.max_operands.unwrap_or(usize::MAX);
    (operands > allowed).then(|| format!("{name} with so many arguments may write a file"))
}

fn computed(name: &str) -> String {
    format!("{name} has an argument that is only known when it runs and may be an option")
}

/// Whether `text` is one of the long options, perhaps abbreviated.
fn is_long(text: &str, options: &[String]) -> bool {
    let option = text.split('=').next().unwrap_or(text);
    option.len() > 2
        && option.starts_with("--")
        && options.iter().any(|known| known.starts_with(option))
}

/// Whether `text` is a bundle of short options with one of `letters`.
fn is_short(text: &str, letters: &str) -> bool {
    let bundle = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    bundle.is_some_and(|bundle| bundle.contains(|char| letters.contains(char)))
}

/// git reads, or it runs hooks, aliases, helpers and editors.
fn git(arguments: &[Argument], git: &Git) -> Option<String> {
    let mut rest = arguments;
    let subcommand = loop {
        let (first, after) = rest.split_first()?;
        rest = after;
        match first.literal() {
            None => return Some(computed("git")),
            Some("--version") => return None,
            Some(option) if option.starts_with('-') => {
                if !git.global_options.iter().any(|known| known == option) {
                    return Some(format!("git {option} changes what git does"));
                }
            }
            Some(subcommand) => break subcommand,
        }
    };
    let denied_short = git.denied_short.get(subcommand).map_or("", String::as_str);
    for argument in rest {
        match argument.literal() {
            None if argument.may_be_option() => return Some(computed("git")),
            Some(text) if is_long(text, &git.denied_long) || is_short(text, denied_short) => {
                return Some(format!(
                    "git {subcommand} {text} writes a file or runs another program"
                ));
            }
            _ => {}
        }
    }
    if git.reading.iter().any(|known| known == subcommand) {
        return None;
    }
    if let Some(listing) = git.listing.get(subcommand) {
        let is_word = |argument: &Argument| {
            let text = argument.literal();
            listing.words.iter().any(|word| Some(word.as_str()) == text)
        };
        let first = rest.first().and_then(Argument::literal);
        let begins = listing
            .first
            .iter()
            .any(|word| Some(word.as_str()) == first);
        let follows = |argument: &Argument| {
            let option = argument.literal().filter(|text| text.starts_with('-'));
            let name = option.and_then(|text| text.split('=').next());
            name.is_none_or(|name| listing.then.iter().any(|known| known == name))
                || is_word(argument)
        };
        let begins = begins && (listing.then.is_empty() || rest.iter().skip(1).all(follows));
        let only_lists = !listing.words.is_empty() || subcommand == "reflog";
        if begins || only_lists && rest.iter().all(is_word) {
            return None;
        }
        return Some(format!(
            "git {subcommand} with these arguments changes the repository"
        ));
    }
    Some(format!(
        "git {subcommand} may run hooks, aliases or helpers; only the exact command can be listed"
    ))
}

/// `test -v 'a[$(id)]'` runs a command, also when `-v` is a variable's value.
fn test(arguments: &[Argument]) -> Option<String> {
    let arguments = match arguments {
        [inner @ .., Argument::Literal(last)] if last == "]" => inner,
        all => all,
    };
    // A pattern stands for any number of words, of which some may be operators.
    let is_many = |argument: &Argument| match argument {
        Argument::Pattern(_) => argument.may_be_option(),
        Argument::Unknown => true,
        Argument::Literal(_) | Argument::Beginning(_) | Argument::Value => false,
    };
    let is_fine = !arguments.iter().any(is_many)
        && match arguments {
            [] | [_] => true,
            [Argument::Literal(first), rest @ ..] if first == "!" => return test(rest),
            [Argument::Literal(first), _] => !looks_at_variable(first),
            [_, Argument::Literal(operator), _] => is_binary(operator),
            all => all.iter().all(|argument| match argument {
                Argument::Literal(text) => !looks_at_variable(text),
                Argument::Beginning(text) | Argument::Pattern(text) => {
                    !text.is_empty() && !text.starts_with('-')
                }
                Argument::Value | Argument::Unknown => false,
            }),
        };
    (!is_fine).then(|| "it has a test whose operator is only known when it runs".to_owned())
}

fn looks_at_variable(operator: &str) -> bool {
    matches!(operator, "-v" | "-R")
}

fn is_binary(operator: &str) -> bool {
    const OPERATORS: [&str; 14] = [
        "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
    ];
    OPERATORS.contains(&operator)
}

/// `set -k` makes assignments of arguments, `set -o posix` another grammar.
fn set(arguments: &[Argument]) -> Option<String> {
    const NAMED: [&str; 8] = [
        "errexit",
        "nounset",
        "xtrace",
        "pipefail",
        "noglob",
        "noclobber",
        "verbose",
        "noexec",
    ];
    let mut takes_name = false;
    for argument in arguments {
        let is_fine = match argument.literal() {
            Some("--") if !takes_name => return None,
            Some(text) if takes_name => {
                takes_name = false;
                NAMED.contains(&text)
            }
            Some(text) => match text.strip_prefix(['-', '+']) {
                Some(letters) => {
                    takes_name = letters.ends_with('o');
                    let letters = letters.strip_suffix('o').unwrap_or(letters);
                    letters.bytes().all(|letter| b"euxfvC".contains(&letter))
                }
                None => return None,
            },
            None => false,
        };
        if !is_fine {
            return Some("it sets an option of the shell that changes how it reads".to_owned());
        }
    }
    None
}
