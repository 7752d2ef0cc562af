//! Base instructions that name tools: one text for every toolset.
//!
//! | in the text | becomes |
//! |---|---|
//! | `{{tool:KEY}}` | the name of the tool that executor `KEY` runs |
//! | `{{parameter:KEY.NAME}}` | what that tool calls the executor's parameter `NAME` |
//! | `{{without:KEY}}` | nothing, in a line that is only for toolsets without such a tool |
//! | `{{default}}` | in a host's text: the text in whose place it stands |
//!
//! A line that names something that is not there is left out.

use crate::tool::{Registry, Vocabulary};

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const DEFAULT: &str = "default";

/// Finds placeholders that no toolset could fill: their lines would be missing
/// without a word.
pub(super) fn check(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(OPEN) {
        let (placeholder, after) = after
            .split_once(CLOSE)
            .ok_or_else(|| "a `{{` has no `}}`".to_owned())?;
        let executor = match placeholder.split_once(':') {
            None if placeholder == DEFAULT => None,
            Some(("tool" | "without", executor)) => Some(executor),
            Some(("parameter", what)) => what.rsplit_once('.').map(|(executor, _)| executor),
            _ => {
                return Err(format!(
                    "`{{{{{placeholder}}}}}` means nothing; there are default, tool:KEY, \
                     parameter:KEY.NAME and without:KEY"
                ));
            }
        };
        let is_known =
            |key: &str| key.starts_with("host:") || Registry::executors().any(|k| k == key);
        if let Some(key) = executor.filter(|key| !is_known(key)) {
            let known: Vec<_> = Registry::executors().collect();
            return Err(format!(
                "`{{{{{placeholder}}}}}` names no executor `{key}`; known are {}",
                known.join(", ")
            ));
        }
        rest = after;
    }
    Ok(())
}

/// `text` with the names of `vocabulary`, and `default` where it asks for it.
pub(super) fn resolve(text: &str, vocabulary: &Vocabulary, default: Option<&str>) -> String {
    let mut resolved = String::with_capacity(text.len());
    for text in text.lines() {
        let start = resolved.len();
        match line(text, vocabulary, default, &mut resolved) {
            Some(()) => resolved.push('\n'),
            None => resolved.truncate(start),
        }
    }
    resolved
}

/// Appends the line; `None` if it is not for this toolset.
fn line(
    text: &str,
    vocabulary: &Vocabulary,
    default: Option<&str>,
    resolved: &mut String,
) -> Option<()> {
    let mut rest = text;
    while rest.contains('{')
        && let Some((before, after)) = rest.split_once(OPEN)
    {
        resolved.push_str(before);
        let (placeholder, after) = after.split_once(CLOSE)?;
        resolved.push_str(match placeholder {
            DEFAULT => default?,
            other => name(other, vocabulary)?,
        });
        rest = after;
    }
    resolved.push_str(rest);
    Some(())
}

fn name<'a>(placeholder: &str, vocabulary: &'a Vocabulary) -> Option<&'a str> {
    let (kind, what) = placeholder.split_once(':')?;
    match kind {
        "tool" => vocabulary.tool(what),
        "parameter" => {
            let (executor, parameter) = what.rsplit_once('.')?;
            vocabulary.parameter(executor, parameter)
        }
        "without" => vocabulary.tool(what).is_none().then_some(""),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: &str = r#"[{"name": "run", "executor": "shell", "description": "",
        "parameters": {"type": "object", "required": ["cmd"],
                       "properties": {"cmd": {"type": "string"}}},
        "map": {"cmd": "command"}}]"#;

    fn check(text: &str, expected: &str) {
        let registry = Registry::declared(TOOLS).expect("valid");
        let resolved = resolve(text, registry.vocabulary(), Some("own"));
        assert_eq!(resolved, expected);
    }

    #[test]
    fn the_text_that_is_replaced() {
        check("a\n{{default}}\nb", "a\nown\nb\n");
        assert_eq!(
            resolve("a\n{{default}}", &Vocabulary::default(), None),
            "a\n"
        );
    }

    #[test]
    fn placeholders_that_mean_nothing() {
        let problem = |text| super::check(text).expect_err("a problem");
        assert_eq!(
            super::check("{{tool:grep}} {{default}} {{without:host:x}}"),
            Ok(())
        );
        assert!(problem("{{tool:gerp}}").starts_with("`{{tool:gerp}}` names no executor `gerp`"));
        assert!(problem("{{date}}").starts_with("`{{date}}` means nothing; there are default"));
        assert_eq!(problem("{{tool:grep"), "a `{{` has no `}}`");
    }

    #[test]
    fn names() {
        check(
            "Use `{{tool:shell}}` with `{{parameter:shell.command}}`.\n",
            "Use `run` with `cmd`.\n",
        );
    }

    #[test]
    fn lines_about_what_is_not_there() {
        check("a\n- {{tool:grep}} searches\nb", "a\nb\n");
        check(
            "a\n{{tool:shell}} {{parameter:shell.timeout_ms}}\nb",
            "a\nb\n",
        );
        check("{{without:grep}}rg\n{{without:shell}}none\n", "rg\n");
        check("{{tool:shell\n{{what:ever}}\n{{}}\nx\n", "x\n");
    }
}
