//! `export -f`.
//!
//! bashkit's says yes and exports nothing: a child shell starts without functions, so
//! `bash -c f` fails with 127.
//!
//! Seen in bashkit 0.20.2; gone when `functions` of `tests/it/bashkit.rs` fails.

use bashkit::parser::SimpleCommand;

use super::words::literal;

/// The export of a function by `call`, in words.
pub(super) fn problem(call: &SimpleCommand) -> Option<String> {
    let name = literal(&call.name)?;
    let mut options = call.args.iter().filter_map(literal);
    let option = options.find(|option| {
        let has = |letter| option.starts_with('-') && option.contains(letter);
        match &*name {
            "export" => option.starts_with("-f"),
            "declare" | "typeset" => has('f') && has('x'),
            _ => false,
        }
    })?;
    Some(format!(
        "`{name} {option}` is not supported: functions do not reach child shells in the \
         sandbox; put the function into the script that calls it"
    ))
}

#[cfg(test)]
mod tests {
    use crate::memory::bashkit::script::read;

    #[test]
    fn functions_cannot_be_exported() {
        let message = |what: &str| {
            Some(format!(
                "`{what}` is not supported: functions do not reach child shells in the \
                 sandbox; put the function into the script that calls it"
            ))
        };
        let check = |command, expected| assert_eq!(read(command).problem, expected, "{command}");
        check("f() { :; }; export -f f", message("export -f"));
        check("declare -fx f; ls", message("declare -fx"));
        check("export FILE=x; rm -f x; declare -x A=1; declare -f f", None);
        check("echo export -f", None);
    }
}
