//! Brackets in the arguments of builtins that read programs or expressions.
//!
//! Each level is a call in bashkit, and some thousand end the stack, and the instance
//! with it.
//!
//! Seen in bashkit 0.20.2; gone when `nesting` of `tests/it/bashkit.rs` fails.

/// How deep brackets may nest in the arguments of [`NESTING`].
const MAX_NESTING: usize = 200;
/// Builtins that read programs or expressions.
const NESTING: [&str; 17] = [
    "jq", "yq", "tomlq", "awk", "gawk", "mawk", "bc", "expr", "find", "test", "[", "[[", "sed",
    "grep", "egrep", "rg", "let",
];

/// Why the builtin `name` cannot be run with `args`.
pub(super) fn refusal(name: &str, args: &[String]) -> Option<String> {
    if !NESTING.contains(&name) {
        return None;
    }
    let mut depth = 0_usize;
    for letter in args.iter().flat_map(|argument| argument.bytes()) {
        match letter {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Some(format!(
                "{name}: brackets nested more than {MAX_NESTING} deep are not supported in the sandbox"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_nest_so_deep() {
        let args = |depth: usize| vec!["(".repeat(depth), ")".repeat(depth)];
        assert_eq!(refusal("jq", &args(200)), None);
        assert_eq!(refusal("echo", &args(5_000)), None);
        assert_eq!(refusal("jq", &["()".repeat(5_000)]), None);
        assert_eq!(
            refusal("find", &vec!["(".to_owned(); 201]).as_deref(),
            Some("find: brackets nested more than 200 deep are not supported in the sandbox")
        );
    }
}
