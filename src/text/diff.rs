//! Unified diffs, for people and models to read.

use similar::TextDiff;

/// Hunks that turn `old` into `new`, with `context` lines around each change;
/// empty when they are equal. There are no file headers.
pub fn unified_diff(old: &str, new: &str, context: usize) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(context)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(unified_diff(old, new, 1), expected);
    }

    #[test]
    fn hunks() {
        check("a\n", "a\n", "");
        check(
            "a\nb\nc\nd\n",
            "a\nB\nc\nd\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        );
        check("", "x\n", "@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn missing_final_newline() {
        check(
            "a\nb",
            "a\nc",
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n",
        );
    }
}
