//! A command substitution within arithmetic, with a bracket in quotes or behind
//! a backslash: `$(( $(tr -dc '(' < f | wc -c) ))`.
//!
//! bashkit counts brackets there without looking at quotes, cuts the substitution in
//! the wrong place and takes 0 for it, with exit code 0.
//!
//! Seen in bashkit 0.20.2; gone when `substitutions` of `tests/it/bashkit.rs` fails.

use bashkit::parser::{Command, CompoundCommand, Parser, Script, WordPart};

/// Characters of a substitution that a message shows.
const SHOWN: usize = 60;
/// Ends of a substitution that are tried to find the true one.
const MAX_ENDS: usize = 32;

/// What the substitutions in `expression` run; an error is the one that bashkit would
/// cut in the wrong place, in words.
pub(super) fn in_arithmetic(expression: &str) -> Result<Vec<Script>, String> {
    let mut scripts = Vec::new();
    let mut rest = expression;
    while let Some(at) = rest.find("$(") {
        rest = &rest[at + 2..];
        if rest.starts_with('(') || rest.is_empty() {
            continue;
        }
        let cut = &rest[..naive_end(rest)];
        let Some(script) = parse(cut) else {
            let ends = rest.match_indices(')').take(MAX_ENDS);
            let mut texts = ends.map(|(end, _)| &rest[..end]);
            let text = texts.find(|text| parse(text).is_some());
            let text = text.unwrap_or(rest.trim_end_matches([' ', ')']));
            return Err(sentence(text));
        };
        scripts.push(script);
        rest = &rest[cut.len()..];
    }
    Ok(scripts)
}

/// The substitution that is all of an arithmetic expansion which bashkit takes for the
/// `commands` of another substitution, `$( ($(…)) )`: the brackets do not match.
pub(super) fn as_subshell(commands: &[Command]) -> Option<String> {
    let [Command::Compound(CompoundCommand::Subshell(inner), _)] = commands else {
        return None;
    };
    let [Command::Simple(simple)] = &inner[..] else {
        return None;
    };
    let [WordPart::CommandSubstitution(_)] = simple.name.parts[..] else {
        return None;
    };
    let text = simple.name.to_string();
    let matching = text.matches('(').count() == text.matches(')').count();
    (!matching).then(|| sentence(text.trim_start_matches("$(").trim_end_matches(')')))
}

fn sentence(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN).collect();
    format!(
        "brackets in quotes in $({shown}) within arithmetic are not supported in the sandbox; put its output into a variable first"
    )
}

/// Where the brackets of `text` close when quotes are not looked at.
fn naive_end(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return at,
            b')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// `text` as a whole script.
fn parse(text: &str) -> Option<Script> {
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if backslashes % 2 == 1 {
        return None;
    }
    Parser::new(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::memory::bashkit::script::read;

    #[track_caller]
    fn check(command: &str, expected: Option<&str>) {
        let expected = expected.map(|text| {
            format!(
                "brackets in quotes in $({text}) within arithmetic are not supported in the sandbox; put its output into a variable first"
            )
        });
        assert_eq!(read(command).problem, expected, "{command}");
    }

    #[test]
    fn quoted_brackets_in_arithmetic() {
        check(
            "echo $(($(tr -dc '(' < f | wc -c)))",
            Some("tr -dc '(' < f | wc -c"),
        );
        check(
            "echo $(($(printf '(' | wc -c) + 1)); echo b",
            Some("printf '(' | wc -c"),
        );
        check(
            "echo \"$(( $(echo ')' | wc -l) ))\"",
            Some("echo ')' | wc -l"),
        );
        check(
            "(( n = $(echo \"(\" | wc -l) ))",
            Some("echo \"(\" | wc -l"),
        );
        check("echo \"$(( ($(printf '(') 1 )) )\"", Some("printf '('"));
    }

    #[test]
    fn what_is_cut_in_the_right_place() {
        check("echo $(($(wc -l < f) + $(cat f | (wc -c))))", None);
        check("echo $(tr -dc '(' < f | wc -c)", None);
        check("echo '$(( $(tr -dc \"(\") ))' $((1)) $(echo '(')", None);
        check("n=$(( (1 + 2) * 3 )); echo $(echo \")\")", None);
        check("echo $(($(grep -c '()' f)))", None);
        check(
            "case x in x) echo ')';; esac; ((i++)); echo $(echo '(')",
            None,
        );
        check("echo $( ($(echo ls)) ) $(($(wc -l < f)))", None);
        // What bashkit refuses itself.
        check("echo $(( 1 + $(grep -c \\) f) ))", None);
        check("((", None);
        check("echo \\", None);
    }
}
