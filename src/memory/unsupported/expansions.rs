//! Expansions within expansions: `${a:-${b[1]}}`. bashkit 0.20.2 expands the text
//! behind an operator with fewer forms than a word has, leaves the others out without
//! a word, and ends a replacement at the first `}` in it. What it would get wrong is
//! found in its own syntax tree and refused.

use bashkit::parser::{
    AssignmentValue, Command, CompoundCommand, ParameterOp, Parser, Redirect, SimpleCommand, Word,
    WordPart,
};

/// Characters of an expansion that a message shows.
const SHOWN: usize = 60;

/// The first expansion of `script` that bashkit would get wrong, in words.
pub(super) fn misread(script: &str) -> Option<String> {
    if !may_nest(script) {
        return None;
    }
    // One that is no script is refused by whoever runs it.
    let script = Parser::new(script).parse().ok()?;
    in_commands(&script.commands)
}

/// Whether an expansion might have another one in it.
fn may_nest(script: &str) -> bool {
    script.match_indices("${").any(|(at, _)| {
        let rest = &script[at + 2..];
        let end = rest.find('}').unwrap_or(rest.len());
        rest[..end].contains(['$', '`'])
    })
}

fn in_commands(commands: &[Command]) -> Option<String> {
    commands.iter().find_map(in_command)
}

fn in_command(command: &Command) -> Option<String> {
    match command {
        Command::Simple(simple) => in_simple(simple),
        Command::Pipeline(pipeline) => in_commands(&pipeline.commands),
        Command::List(list) => {
            let rest = list.rest.iter().map(|(_, command)| command);
            in_command(&list.first).or_else(|| rest.into_iter().find_map(in_command))
        }
        Command::Compound(compound, redirects) => {
            in_compound(compound).or_else(|| in_redirects(redirects))
        }
        Command::Function(function) => in_command(&function.body),
    }
}

fn in_simple(simple: &SimpleCommand) -> Option<String> {
    let in_assignments = || {
        simple
            .assignments
            .iter()
            .find_map(|assignment| match &assignment.value {
                AssignmentValue::Scalar(word) => in_word(word, false),
                AssignmentValue::Array(words) => in_words(words),
            })
    };
    in_word(&simple.name, true)
        .or_else(|| in_words(&simple.args))
        .or_else(in_assignments)
        .or_else(|| in_redirects(&simple.redirects))
}

fn in_compound(compound: &CompoundCommand) -> Option<String> {
    match compound {
        CompoundCommand::If(branch) => in_commands(&branch.condition)
            .or_else(|| in_commands(&branch.then_branch))
            .or_else(|| {
                let mut branches = branch.elif_branches.iter();
                branches.find_map(|(condition, body)| {
                    in_commands(condition).or_else(|| in_commands(body))
                })
            })
            .or_else(|| in_commands(branch.else_branch.as_deref().unwrap_or_default())),
        CompoundCommand::For(lap) => {
            in_words(lap.words.as_deref().unwrap_or_default()).or_else(|| in_commands(&lap.body))
        }
        CompoundCommand::Select(choice) => {
            in_words(&choice.words).or_else(|| in_commands(&choice.body))
        }
        CompoundCommand::ArithmeticFor(lap) => in_commands(&lap.body),
        CompoundCommand::While(lap) => {
            in_commands(&lap.condition).or_else(|| in_commands(&lap.body))
        }
        CompoundCommand::Until(lap) => {
            in_commands(&lap.condition).or_else(|| in_commands(&lap.body))
        }
        CompoundCommand::Case(case) => in_word(&case.word, false).or_else(|| {
            case.cases.iter().find_map(|item| {
                let mut patterns = item.patterns.iter();
                patterns
                    .find_map(|pattern| in_word(pattern, false))
                    .or_else(|| in_commands(&item.commands))
            })
        }),
        CompoundCommand::Subshell(commands) | CompoundCommand::BraceGroup(commands) => {
            in_commands(commands)
        }
        CompoundCommand::Conditional(words) => words.iter().find_map(|word| in_word(word, false)),
        CompoundCommand::Time(time) => time.command.as_deref().and_then(in_command),
        CompoundCommand::Coproc(coprocess) => in_command(&coprocess.body),
        CompoundCommand::Arithmetic(_) => None,
    }
}

fn in_redirects(redirects: &[Redirect]) -> Option<String> {
    redirects
        .iter()
        .find_map(|redirect| in_word(&redirect.target, false))
}

/// Words that may become several: arguments, and those of `for`.
fn in_words(words: &[Word]) -> Option<String> {
    words.iter().find_map(|word| in_word(word, true))
}

fn in_word(word: &Word, listed: bool) -> Option<String> {
    word.parts.iter().find_map(|part| in_part(part, listed))
}

fn in_part(part: &WordPart, listed: bool) -> Option<String> {
    let (name, what) = match part {
        WordPart::CommandSubstitution(commands)
        | WordPart::ProcessSubstitution { commands, .. } => return in_commands(commands),
        WordPart::CompoundAssignment { elements, .. } => return in_words(elements),
        WordPart::ParameterExpansion {
            name,
            operator,
            operand,
            ..
        }
        | WordPart::IndirectExpansion {
            name,
            operator: Some(operator),
            operand,
            ..
        } => (name, behind_operator(operator, operand, listed)),
        WordPart::Substring {
            name,
            offset,
            length,
        } => {
            let length = length.as_deref().unwrap_or_default();
            (name, in_number(offset).or_else(|| in_number(length)))
        }
        WordPart::ArrayAccess { name, index } => (name, in_number(index)),
        _ => return None,
    };
    let what = what?;
    let mut shown: String = what.chars().take(SHOWN).collect();
    if shown.len() < what.len() {
        shown.push('…');
    }
    Some(format!("`{shown}` within the expansion of ${{{name}…}}"))
}

/// What of the text behind an operator bashkit gets wrong.
fn behind_operator<'a>(
    operator: &'a ParameterOp,
    operand: &'a str,
    listed: bool,
) -> Option<&'a str> {
    match operator {
        ParameterOp::UseDefault | ParameterOp::UseReplacement if listed && is_list(operand) => None,
        ParameterOp::UseDefault
        | ParameterOp::AssignDefault
        | ParameterOp::UseReplacement
        | ParameterOp::Error => in_text(operand, true),
        ParameterOp::ReplaceFirst {
            pattern,
            replacement,
        }
        | ParameterOp::ReplaceAll {
            pattern,
            replacement,
        } => in_half(pattern).or_else(|| in_half(replacement)),
        _ => in_text(operand, false),
    }
}

/// bashkit reads such a text as a word.
fn is_list(operand: &str) -> bool {
    ["$@", "${@", "[@]}", "${!"]
        .iter()
        .any(|form| operand.contains(form))
}

/// A pattern or a replacement, which bashkit may have cut short.
fn in_half(text: &str) -> Option<&str> {
    let opened = text.matches("${").count();
    match text.matches('}').count() < opened {
        true => Some(text),
        false => in_text(text, false),
    }
}

/// What of `text` bashkit leaves out. `commands`: whether it runs `$(…)` there.
fn in_text(text: &str, commands: bool) -> Option<&str> {
    if text.contains('`') {
        return Some(text);
    }
    if !text.contains('$') {
        return None;
    }
    // Quotes do not hide an expansion, and its form is the same in them.
    let word = Parser::parse_word_string(&text.replace('"', ""));
    let is_read = |part: &WordPart| match part {
        WordPart::Literal(_)
        | WordPart::Variable(_)
        | WordPart::ArithmeticExpansion(_)
        | WordPart::Length(_)
        | WordPart::BadSubstitution(_) => true,
        WordPart::CommandSubstitution(_) => commands,
        // Commands are run for the outer text alone.
        WordPart::ParameterExpansion { operand, .. } => {
            in_part(part, false).is_none() && !operand.replace("$((", "").contains("$(")
        }
        _ => false,
    };
    (!word.parts.iter().all(is_read)).then_some(text)
}

/// What of a number, an offset or an index, bashkit leaves out.
fn in_number(text: &str) -> Option<&str> {
    if !text.contains("${") {
        return None;
    }
    let word = Parser::parse_word_string(text);
    let is_read = |part: &WordPart| match part {
        WordPart::ParameterExpansion { operator, .. } => !matches!(
            operator,
            ParameterOp::ReplaceFirst { .. }
                | ParameterOp::ReplaceAll { .. }
                | ParameterOp::UpperFirst
                | ParameterOp::UpperAll
                | ParameterOp::LowerFirst
                | ParameterOp::LowerAll
                | ParameterOp::ToggleFirst
                | ParameterOp::ToggleAll
        ),
        WordPart::ArrayIndices { .. }
        | WordPart::IndirectExpansion { .. }
        | WordPart::IndirectSuffix { .. }
        | WordPart::PrefixMatch { .. }
        | WordPart::Transformation { .. } => false,
        _ => true,
    };
    (!word.parts.iter().all(is_read)).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(script: &str, expected: Option<&str>) {
        assert_eq!(misread(script).as_deref(), expected, "{script}");
    }

    #[test]
    fn what_would_be_left_out() {
        let within =
            |what: &str, name: &str| Some(format!("`{what}` within the expansion of ${{{name}…}}"));
        for (script, what, name) in [
            ("echo ${x:-${L[1]}}", "${L[1]}", "x"),
            ("echo \"${p#\"${p:0:1}\"}\"", "\"${p:0:1}\"", "p"),
            ("v=\"${x:-${L[@]}}\"", "${L[@]}", "x"),
            ("echo ${p%$(echo b)}", "$(echo b)", "p"),
            ("echo ${x:-`date`}", "`date`", "x"),
            ("echo ${x:-${y:-$(date)}}", "${y:-$(date)}", "x"),
            ("echo ${p//${x}/X}", "${x", "p"),
            ("echo ${p/a/${x}}", "${x", "p"),
            ("cat <<EOF\n${x:-${L[1]}}\nEOF", "${L[1]}", "x"),
            (
                "f() { if a; then for i in 1; do echo ${x:-${!n}x}; done > ${y:-${L[1]}}; fi; }",
                "${L[1]}",
                "y",
            ),
            ("x=$(echo ${x:-${L[1]}})", "${L[1]}", "x"),
            ("echo ${p:${!n}} ${L[${x^}]}", "${!n}", "p"),
            ("a=(${x:-${p:1:2}})", "${p:1:2}", "x"),
        ] {
            check(script, within(what, name).as_deref());
        }
    }

    #[test]
    fn what_is_read() {
        for script in [
            "echo ${x:-$y} ${x:-${y:-z}} ${x:-$(date)} ${x:-$((1+1))} ${x:-${#y}}",
            "for f in ${1+\"$@\"} \"${x[@]:-${y[@]}}\"; do :; done",
            "echo ${p#$x} ${p%%${x}} ${p/$x/$y} ${p//\"${x}\"/y} ${p#*$((1))}",
            "echo '${x:-${L[1]}}' \\${x:-${L} ${x} $y",
            "awk '{print ${x:-${L[1]}}}'",
            "cat <<'EOF'\n${x:-${L[1]}}\nEOF",
            "echo ${x:-a b} ${#L[@]} ${p:0:${#x}} ${L[$i]} ${L[${#L[@]}-1]}",
            "echo ${",
        ] {
            check(script, None);
        }
    }
}
