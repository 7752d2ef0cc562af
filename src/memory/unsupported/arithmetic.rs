//! A command substitution within arithmetic, with a bracket in quotes or behind
//! a backslash: `$(( $(tr -dc '(' < f | wc -c) ))`. bashkit counts brackets there
//! without looking at quotes, cuts the substitution in the wrong place and takes
//! 0 for it, with exit code 0.

/// What is open while a command is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `((` and `$((`.
    Arithmetic,
    /// `$(`, with where its text begins.
    Substitution(usize),
    /// `(`, `${` and their like.
    Bracket,
    Double,
}

/// The substitution of `command` that bashkit would cut in the wrong place.
pub(super) fn cut_substitution(command: &str) -> Option<&str> {
    let bytes = command.as_bytes();
    let mut open: Vec<Open> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let quoted = open.last() == Some(&Open::Double);
        let (length, opens) = match rest {
            [b'\\', ..] => (2, None),
            [b'\'', rest @ ..] if !quoted => {
                let end = rest.iter().position(|byte| *byte == b'\'');
                (2 + end.unwrap_or(rest.len()), None)
            }
            [b'"', ..] if quoted => {
                open.pop();
                (1, None)
            }
            [b'"', ..] => (1, Some(Open::Double)),
            [b'$', b'(', b'(', ..] => (3, Some(Open::Arithmetic)),
            [b'$', b'(', ..] => (2, Some(Open::Substitution(at + 2))),
            [b'(', b'(', ..] if !quoted && open.last() != Some(&Open::Arithmetic) => {
                (2, Some(Open::Arithmetic))
            }
            [b'(', ..] if !quoted => (1, Some(Open::Bracket)),
            [b')', ..] if !quoted => match open.pop() {
                Some(Open::Substitution(start)) if within_arithmetic(&open) => {
                    let text = &command[start..at];
                    if !closes_naively(text) {
                        return Some(text);
                    }
                    (1, None)
                }
                Some(Open::Arithmetic) if rest.starts_with(b"))") => (2, None),
                _ => (1, None),
            },
            _ => (1, None),
        };
        open.extend(opens);
        at += length;
    }
    None
}

/// Whether what encloses is arithmetic, perhaps through brackets and quotes.
fn within_arithmetic(open: &[Open]) -> bool {
    let around = open
        .iter()
        .rev()
        .find(|open| !matches!(open, Open::Bracket | Open::Double));
    around == Some(&Open::Arithmetic)
}

/// Whether the brackets of `text` are balanced when quotes are not looked at.
fn closes_naively(text: &str) -> bool {
    let mut depth = 0_usize;
    for byte in text.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return false,
            b')' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, expected: Option<&str>) {
        assert_eq!(cut_substitution(command), expected, "{command}");
    }

    #[test]
    fn quoted_brackets_in_arithmetic() {
        check(
            "echo $(($(tr -dc '(' < f | wc -c)))",
            Some("tr -dc '(' < f | wc -c"),
        );
        check("echo $(( 1 + $(grep -c \\) f) ))", Some("grep -c \\) f"));
        check(
            "(( n = $(echo \")\" | wc -l) ))",
            Some("echo \")\" | wc -l"),
        );
        check("echo \"$(( ($(printf '(') 1 )) )\"", Some("printf '('"));
        check(
            "x=$(echo $(($(echo ')' | wc -l))))",
            Some("echo ')' | wc -l"),
        );
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
        check("((", None);
        check("echo $(($(", None);
        check("echo \\", None);
    }
}
