//! Commands that only look: `safe.json`.

use std::sync::LazyLock;

use crate::text::from_json;

/// Empty only if the file is no list of strings, which a test rules out.
static SAFE: LazyLock<Vec<String>> =
    LazyLock::new(|| from_json(include_str!("safe.json")).unwrap_or_default());

/// The commands that `@safe` stands for.
pub fn safe_commands() -> &'static [String] {
    &SAFE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_there() {
        assert!(safe_commands().contains(&"ls".to_owned()));
    }
}
