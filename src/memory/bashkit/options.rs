//! Options of `set` and the exit code, from one line of a terminal to the next.
//!
//! bashkit forgets them between executions: `set -e` and `$?` would be gone.
//!
//! Seen in bashkit 0.20.2; gone when `options` of `tests/it/bashkit.rs` fails.

use std::fmt::Write as _;

use bashkit::ShellState;

/// Options of `set` that last, by the variable in which bashkit keeps them; it
/// takes them back before each execution.
const LASTING_OPTIONS: [(&str, &str); 11] = [
    ("SHOPT_a", "allexport"),
    ("SHOPT_e", "errexit"),
    ("SHOPT_E", "errtrace"),
    ("SHOPT_T", "functrace"),
    ("SHOPT_C", "noclobber"),
    ("SHOPT_f", "noglob"),
    ("SHOPT_u", "nounset"),
    ("SHOPT_P", "physical"),
    ("SHOPT_pipefail", "pipefail"),
    ("SHOPT_v", "verbose"),
    ("SHOPT_x", "xtrace"),
];

/// What has to run before a line in a shell that was `state`; `others` run with it.
pub(in crate::memory) fn preamble(state: &ShellState, others: &str) -> String {
    let mut preamble = String::new();
    for (variable, option) in LASTING_OPTIONS {
        if state.variables.get(variable).is_some_and(|on| on == "1") {
            let _ = write!(preamble, "set -o {option}; ");
        }
    }
    preamble.push_str(others);
    // From here on lines are remembered as they are read: this one is not.
    preamble.push_str("set -o history; ");
    let code = state.last_exit_code;
    if code != 0 {
        // Within a list that goes on, it ends no shell (`set -e`).
        let _ = write!(preamble, "(exit {code}) && :");
    }
    preamble.push('\n');
    preamble
}
