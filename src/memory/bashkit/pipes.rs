//! What the pipes of a command lead to.
//!
//! bashkit gives the whole pipe to a builtin that reads piece by piece, even if
//! others read the same: see `head`. And what a pipe leads to still has to start when
//! the time of the command is over: see `last_words`.
//!
//! Seen in bashkit 0.20.2; gone when `pipes` of `tests/it/bashkit.rs` fails.

use bashkit::parser::Command;

use super::words::literal;

/// Commands that may have others read their standard input.
const HANDING_ON: [&str; 9] = [
    "eval", "source", ".", "exec", "command", "builtin", "bash", "sh", "env",
];

/// The pipes of a command.
#[derive(Debug, Default)]
pub(in crate::memory) struct Pipes {
    /// Names of the simple commands that stand behind one.
    pub(in crate::memory) readers: Vec<String>,
    /// Whether several commands may read from one.
    pub(in crate::memory) shared: bool,
}

impl Pipes {
    /// A pipe leads to `command`.
    pub(super) fn lead_to(&mut self, command: &Command) {
        let name = match command {
            Command::Simple(simple) => literal(&simple.name).filter(|name| !name.is_empty()),
            _ => None,
        };
        let is_single = |name: &String| !HANDING_ON.contains(&name.as_str());
        self.shared |= !name.as_ref().is_some_and(is_single);
        self.readers.extend(name);
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::bashkit::script::read;

    #[track_caller]
    fn check(script: &str, expected: &[&str], shared: bool) {
        let pipes = read(script).pipes;
        assert_eq!(pipes.readers, expected, "{script}");
        assert_eq!(pipes.shared, shared, "{script}");
    }

    #[test]
    fn readers_stand_behind_pipes() {
        check("a | b", &["b"], false);
        check("a|b|&c;d", &["b", "c"], false);
        check("a |\n  b -x | (c)", &["b"], true);
        check("a || b", &[], false);
        check("a 'x|y' \"x|y\\\"|z\" | b", &["b"], false);
        check("a \\| b '|' | c", &["c"], false);
        check("ä | ö", &["ö"], false);
        check("x=$(a | b); c ${y:-$(f | g)}", &["b", "g"], false);
    }

    #[test]
    fn pipes_that_several_commands_read() {
        for script in [
            "a | while read f; do head -1 $f; done",
            "a | { head -1; cat; }",
            "a | bash -c 'head -1; cat'",
            "a | $b",
            "f() { head -1; }; a | f",
            "while read f; do head -1; done < <(a)",
            "coproc a; head -1",
        ] {
            assert!(read(script).pipes.shared, "{script}");
        }
        for script in ["a | head -1 | sort", "a > b; head -1 b && c", "! a | head"] {
            assert!(!read(script).pipes.shared, "{script}");
        }
    }
}
