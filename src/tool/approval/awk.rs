//! awk programs that only read: none that runs a command or writes a file.

use super::script::Argument;

/// Why these arguments of awk ask, if they do.
pub(super) fn concern(arguments: &[Argument]) -> Option<String> {
    let mut rest = arguments.iter();
    let program = loop {
        let argument = rest.next()?;
        let Some(text) = argument.literal() else {
            return Some("awk has a program that is only known when it runs".to_owned());
        };
        match text {
            // The next argument is a separator or a variable.
            "-F" | "-v" => {
                // Of no word the next would be the program, and of two the second.
                let is_one = matches!(rest.next()?, Argument::Literal(_) | Argument::Beginning(_));
                if !is_one {
                    return Some("awk has options that are only known when it runs".to_owned());
                }
            }
            "--" => {
                let program = rest.next()?.literal();
                break program?.to_owned();
            }
            _ if text.starts_with("-F") || text.starts_with("-v") => {}
            _ if text.starts_with('-') => {
                return Some(format!(
                    "awk {text} takes in another program or writes a file"
                ));
            }
            _ => break text.to_owned(),
        }
    };
    if rest.any(|argument| argument.may_be_option() && argument.literal().is_none()) {
        return Some("awk has options that are only known when it runs".to_owned());
    }
    does_more(&program)
        .then(|| "awk has a program that may run a command or write a file".to_owned())
}

/// Whether `program` has anything that could run or write. Also says yes to
/// some that could not: `|` in a pattern, `>` in a program that prints.
fn does_more(program: &str) -> bool {
    let without_or = program.replace("||", "");
    without_or.contains('|')
        || ["system", "getline", "close", "fflush", "@", "\\\n", "\\\r"]
            .iter()
            .any(|word| program.contains(word))
        || program.contains("print") && program.replace(">=", "").contains('>')
}
