//! Expansions within expansions: `${a:-${b[1]}}`. bashkit 0.20.2 expands the text
//! behind an operator with fewer forms than a word has, leaves the others out without
//! a word, and ends a replacement at the first `}` in it. What it would get wrong is
//! found in its own syntax tree and refused.
//!
//! Seen in bashkit 0.20.2; gone when `expansions` of `tests/it/bashkit.rs` fails.

use bashkit::parser::{ParameterOp, Parser, WordPart};

/// Characters of an expansion that a message shows.
const SHOWN: usize = 60;
/// Expansions in the text behind one operator that are looked at.
const MAX_WITHIN: usize = 50;

/// What of `part` bashkit would get wrong, in words. `listed`: whether its word may
/// become several, as arguments and the words of `for` do.
pub(super) fn problem(part: &WordPart, listed: bool) -> Option<String> {
    let (name, what) = match part {
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
    Some(format!(
        "`{shown}` within the expansion of ${{{name}…}} is not supported in the sandbox; put its value into a variable first"
    ))
}

/// Expansions of the positional parameters that bashkit counts wrong: `${#}` as 0.
const COUNTED_WRONG: [&str; 5] = ["${#}", "${#@}", "${#*}", "${@", "${*"];

fn counted(expression: &str) -> Option<&'static str> {
    let mut forms = COUNTED_WRONG.into_iter();
    forms.find(|form| expression.contains(form))
}

/// What of an arithmetic expression bashkit would get wrong, in words.
pub(super) fn in_arithmetic(expression: &str) -> Option<String> {
    let form = counted(expression)?;
    let (shown, way) = match form.ends_with('}') {
        true => (form.to_owned(), "write `$#`"),
        false => (format!("{form}…}}"), "put its value into a variable first"),
    };
    Some(format!(
        "`{shown}` within arithmetic is not supported in the sandbox; {way}"
    ))
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
    if text.matches("${").count() > MAX_WITHIN {
        return Some(text);
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
            problem(part, false).is_none() && !operand.replace("$((", "").contains("$(")
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
    if counted(text).is_some() {
        return Some(text);
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
    use crate::memory::bashkit::script::read;

    #[track_caller]
    fn check(script: &str, expected: Option<&str>) {
        assert_eq!(read(script).problem.as_deref(), expected, "{script}");
    }

    #[test]
    fn what_would_be_left_out() {
        let within = |what: &str, name: &str| {
            Some(format!(
                "`{what}` within the expansion of ${{{name}…}} is not supported in the sandbox; put its value into a variable first"
            ))
        };
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
