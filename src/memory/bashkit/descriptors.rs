//! `{name}` in front of a redirect.
//!
//! bash opens a descriptor for `{name}>file`, where nothing is quoted and nothing
//! stands between. bashkit does so for every last word that reads like it:
//! `echo '{a}' > file` writes an empty line, and `awk '{print}' < file` has no program.
//! Its syntax tree does not tell which was meant.
//!
//! Seen in bashkit 0.20.2; gone when `descriptors` of `tests/it/bashkit.rs` fails.

use bashkit::parser::SimpleCommand;

use super::words::literal;

/// The word of `call` that bashkit takes for a descriptor, in words. `exec` means one.
pub(super) fn problem(call: &SimpleCommand) -> Option<String> {
    let name = literal(&call.name)?;
    let taken = call.redirects.iter().find_map(|it| it.fd_var.as_ref())?;
    if name == "exec" {
        return None;
    }
    Some(format!(
        "`{{{taken}}}` right in front of a redirect is taken for a file descriptor in the \
         sandbox, even in quotes; put the redirect first (`> FILE {name} …`), or open the \
         descriptor with `exec`"
    ))
}

#[cfg(test)]
mod tests {
    use crate::memory::bashkit::script::read;

    #[test]
    fn a_word_that_reads_like_a_descriptor_is_refused() {
        let message = |word: &str, name: &str| {
            Some(format!(
                "`{word}` right in front of a redirect is taken for a file descriptor in \
                 the sandbox, even in quotes; put the redirect first (`> FILE {name} …`), \
                 or open the descriptor with `exec`"
            ))
        };
        let check = |command, expected| assert_eq!(read(command).problem, expected, "{command}");
        check("echo '{a}' > f", message("{a}", "echo"));
        check("x=$(awk \"{print}\" <<< 1)", message("{print}", "awk"));
        check("echo a {fd}> f", message("{fd}", "echo"));
        check("> f echo '{a}'", None);
        check(
            "awk '{print}' g > f; awk '{print $1}' < f; echo '{}' > f",
            None,
        );
        check("exec {fd}> f; echo {a} '{b}' | cat; { :; } > f", None);
    }
}
