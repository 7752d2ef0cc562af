//! Base instructions that name tools: one text for every toolset.
//!
//! | in the text | becomes |
//! |---|---|
//! | `{{tool:KEY}}` | the name of the tool that executor `KEY` runs |
//! | `{{parameter:KEY.NAME}}` | what that tool calls the executor's parameter `NAME` |
//! | `{{without:KEY}}` | nothing, in a line that is only for toolsets without such a tool |
//!
//! A line that names something that the toolset lacks is left out.

use crate::tool::Vocabulary;

const OPEN: &str = "{{";
const CLOSE: &str = "}}";

/// `text` with the names of `vocabulary`.
pub(super) fn resolve(text: &str, vocabulary: &Vocabulary) -> String {
    let mut resolved = String::with_capacity(text.len());
    for text in text.lines() {
        let start = resolved.len();
        match line(text, vocabulary, &mut resolved) {
            Some(()) => resolved.push('\n'),
            None => resolved.truncate(start),
        }
    }
    resolved
}

/// Appends the line; `None` if it is not for this toolset.
fn line(text: &str, vocabulary: &Vocabulary, resolved: &mut String) -> Option<()> {
    let mut rest = text;
    while rest.contains('{')
        && let Some((before, after)) = rest.split_once(OPEN)
    {
        resolved.push_str(before);
        let (placeholder, after) = after.split_once(CLOSE)?;
        resolved.push_str(name(placeholder, vocabulary)?);
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
    use crate::tool::Registry;

    const TOOLS: &str = r#"[{"name": "run", "executor": "shell", "description": "",
        "parameters": {"type": "object", "required": ["cmd"],
                       "properties": {"cmd": {"type": "string"}}},
        "map": {"cmd": "command"}}]"#;

    fn check(text: &str, expected: &str) {
        let registry = Registry::declared(TOOLS).expect("valid");
        assert_eq!(resolve(text, registry.vocabulary()), expected);
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
