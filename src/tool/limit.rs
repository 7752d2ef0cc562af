//! Output limits per tool (spec 5.2, 5.3); the defaults are `limits.json`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::text::{TruncationMode, from_json, truncate_lines, truncate_output};

/// Limits that a host set, by tool name; where it set none the defaults hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputLimits {
    /// `tool_output_limits`: characters.
    pub chars: BTreeMap<String, usize>,
    /// `tool_line_limits`: lines.
    pub lines: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultLimit {
    max_chars: usize,
    mode: TruncationMode,
    max_lines: Option<usize>,
}

/// Key of the default for all other tools.
const ANY: &str = "*";

static DEFAULTS: LazyLock<BTreeMap<String, DefaultLimit>> =
    LazyLock::new(|| from_json(include_str!("limits.json")).unwrap_or_default());

/// Holds only if `limits.json` has no `*`, which a test rules out.
const FALLBACK: DefaultLimit = DefaultLimit {
    max_chars: 30_000,
    mode: TruncationMode::HeadTail,
    max_lines: None,
};

impl OutputLimits {
    /// `truncate_tool_output` of spec 5.3: characters first, then lines. `kind`
    /// is [`super::Tool::kind`]; a limit set under either name counts. `asked`
    /// is what the call asked for at most, in characters.
    pub fn truncate<'a>(
        &self,
        output: &'a str,
        name: &str,
        kind: &str,
        asked: usize,
    ) -> Cow<'a, str> {
        let default = DEFAULTS
            .get(name)
            .or_else(|| DEFAULTS.get(kind))
            .or_else(|| DEFAULTS.get(ANY))
            .unwrap_or(&FALLBACK);
        let set = |limits: &BTreeMap<String, usize>| {
            limits.get(name).or_else(|| limits.get(kind)).copied()
        };
        let max_chars = set(&self.chars).unwrap_or(default.max_chars).min(asked);
        let max_lines = set(&self.lines).or(default.max_lines);
        let result = truncate_output(output, max_chars, default.mode);
        match (max_lines, result) {
            (None, result) => result,
            (Some(max), Cow::Borrowed(text)) => truncate_lines(text, max),
            (Some(max), Cow::Owned(text)) => Cow::Owned(truncate_lines(&text, max).into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_spec() {
        let table: Vec<_> = DEFAULTS
            .iter()
            .map(|(name, limit)| (name.as_str(), limit.max_chars, limit.mode, limit.max_lines))
            .collect();
        use TruncationMode::{HeadTail, Tail};
        assert_eq!(
            table,
            [
                ("*", 30_000, HeadTail, None),
                ("apply_patch", 10_000, Tail, None),
                ("edit_file", 10_000, Tail, None),
                ("glob", 20_000, Tail, Some(500)),
                ("grep", 20_000, Tail, Some(200)),
                ("list_dir", 20_000, Tail, Some(500)),
                ("read_file", 50_000, HeadTail, None),
                ("read_many_files", 50_000, HeadTail, None),
                ("shell", 30_000, HeadTail, Some(256)),
                ("spawn_agent", 20_000, HeadTail, None),
                ("web_fetch", 50_000, HeadTail, None),
                ("write_file", 1_000, Tail, None),
            ]
        );
    }

    #[test]
    fn characters_then_lines() {
        let limits = OutputLimits {
            chars: BTreeMap::from([("shell".to_owned(), 8)]),
            lines: BTreeMap::from([("shell".to_owned(), 4)]),
        };
        // Four characters of each end survive, and of what that leaves, four lines.
        assert_eq!(
            limits.truncate("a\nb\nc\nd\ne\nf\ng", "run", "shell", usize::MAX),
            "a\nb\n[... 5 lines omitted ...]\nf\ng"
        );
    }

    #[test]
    fn a_name_beats_a_kind() {
        let limits = OutputLimits {
            chars: BTreeMap::from([("run".to_owned(), 100), ("shell".to_owned(), 1)]),
            lines: BTreeMap::new(),
        };
        let truncate = |asked| limits.truncate("abc", "run", "shell", asked);
        assert_eq!(truncate(usize::MAX), "abc");
        assert!(truncate(2).starts_with("a\n\n[WARNING"), "{}", truncate(2));
    }
}
