//! What a call of a tool does, in lines that people read: a command as it is,
//! an edit as a diff.

use hermitcrab::text::unified_diff;
use serde_json::Value;

use crate::harmless::harmless;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Characters of a line where lines are cut, and those of them that are its end.
const MAX_LINE_CHARS: usize = 400;
const TAIL_CHARS: usize = 100;

/// The lines of the call with these arguments. `read` gives what a file holds
/// now, where that can be known.
pub(crate) fn lines(arguments: &Value, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let deed = text("command").map(split);
    let Some(mut lines) = deed.or_else(|| edit(arguments, read)) else {
        return match arguments {
            Value::Object(fields) if fields.is_empty() => Vec::new(),
            Value::Null => Vec::new(),
            other => split(&serde_json::to_string_pretty(other).unwrap_or_default()),
        };
    };
    let elsewhere = text("working_dir").filter(|directory| !directory.is_empty());
    lines.extend(elsewhere.map(|directory| format!("(in {})", harmless(directory))));
    lines
}

/// The diff of an edit, none where the call is no edit.
pub(crate) fn edit(
    arguments: &Value,
    read: impl Fn(&str) -> Option<String>,
) -> Option<Vec<String>> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let patch = ["patch", "input"].into_iter().find_map(text);
    if let Some(patch) = patch.filter(|patch| patch.contains("*** Begin Patch")) {
        return Some(split(patch));
    }
    let path = text("file_path").or_else(|| text("path"))?;
    let diff = match (text("old_string"), text("new_string"), text("content")) {
        // Parts of lines: that no newline ends them says nothing of the file.
        (Some(old), Some(new), _) if !old.ends_with('\n') && !new.ends_with('\n') => {
            unified_diff(&format!("{old}\n"), &format!("{new}\n"), CONTEXT)
        }
        (Some(old), Some(new), _) => unified_diff(old, new, CONTEXT),
        (_, _, Some(content)) => match read(path) {
            Some(old) => unified_diff(&old, content, CONTEXT),
            // Without a place: there may have been a file.
            None => content.lines().map(|line| format!("+{line}\n")).collect(),
        },
        _ => return None,
    };
    let mut lines = vec![format!("{}:", harmless(path))];
    lines.extend(split(&diff));
    if arguments.get("replace_all") == Some(&Value::Bool(true)) {
        lines.push("(in every place)".to_owned());
    }
    Some(lines)
}

/// The first `head` and the last `tail` of `lines`, the middle of each long one cut
/// out, with a line that says what is left out; whether all of it is there.
pub(crate) fn ends(lines: &[String], head: usize, tail: usize) -> (Vec<String>, bool) {
    let is_long = lines.len() > head + tail + 1;
    let mut whole = !is_long;
    let mut cut = |line: &String| {
        if line.chars().nth(MAX_LINE_CHARS).is_none() {
            return line.clone();
        }
        whole = false;
        let at = |place: Option<(usize, char)>| place.map_or(line.len(), |(at, _)| at);
        let end = at(line.char_indices().nth(MAX_LINE_CHARS - TAIL_CHARS));
        let rest = at(line.char_indices().nth_back(TAIL_CHARS - 1));
        format!(
            "{}… ({} bytes) …{}",
            &line[..end],
            line.len(),
            &line[rest..]
        )
    };
    if !is_long {
        let lines = lines.iter().map(&mut cut).collect();
        return (lines, whole);
    }
    let (first, last) = (&lines[..head], &lines[lines.len() - tail..]);
    let mut shown: Vec<String> = first.iter().map(&mut cut).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    shown.push(format!(
        "… {} more lines, {bytes} bytes in all",
        lines.len() - head - tail
    ));
    shown.extend(last.iter().map(&mut cut));
    (shown, false)
}

/// Lines that show what a terminal would not: a carriage return may hide the beginning of
/// a command, and other characters have no width or turn the direction.
fn split(text: &str) -> Vec<String> {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(
                c,
                '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}' | '\u{feff}'
            )
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let seen = |line: &str| {
        let mut seen = String::with_capacity(line.len());
        for c in line.chars() {
            match c {
                '\t' => seen.push(c),
                c if is_hidden(c) => seen.extend(c.escape_default()),
                c => seen.push(c),
            }
        }
        seen
    };
    text.lines().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(arguments: Value, expected: &[&str]) {
        let read = |path: &str| (path == "a").then(|| "one\ntwo\n".to_owned());
        assert_eq!(lines(&arguments, read), expected);
    }

    #[test]
    fn calls() {
        check(
            json!({"command": "a\nb \u{1b}[2J", "timeout_ms": 5}),
            &["a", "b \\u{1b}[2J"],
        );
        check(
            json!({"command": "ls x\ry\u{200b}z"}),
            &["ls x\\ry\\u{200b}z"],
        );
        check(
            json!({"command": "a", "working_dir": "e"}),
            &["a", "(in e)"],
        );
        check(
            json!({"file_path": "a", "content": "one\n2\n"}),
            &["a:", "@@ -1,2 +1,2 @@", " one", "-two", "+2"],
        );
        check(
            json!({"file_path": "b", "content": "x\n", "working_dir": "/w"}),
            &["b:", "+x", "(in /w)"],
        );
        check(
            json!({"file_path": "b", "content": "new\n"}),
            &["b:", "+new"],
        );
        check(
            json!({"file_path": "a", "old_string": "x\n", "new_string": "y\n"}),
            &["a:", "@@ -1 +1 @@", "-x", "+y"],
        );
        check(
            json!({"patch": "*** Begin Patch\n*** End Patch"}),
            &["*** Begin Patch", "*** End Patch"],
        );
        check(json!({"url": "x"}), &["{", "  \"url\": \"x\"", "}"]);
        check(json!({}), &[]);
    }

    #[test]
    fn long_texts_show_their_ends() {
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let (shown, whole) = ends(&many, 2, 1);
        assert_eq!(shown, ["0", "1", "… 97 more lines, 290 bytes in all", "99"]);
        assert!(!whole);
        let few = &many[..4];
        assert_eq!(ends(few, 2, 1), (few.to_vec(), true));
        let wide = |letters: usize| [format!("{}; rm", "ä".repeat(letters))];
        let (shown, whole) = ends(&wide(MAX_LINE_CHARS), 2, 1);
        let [head, tail] = [MAX_LINE_CHARS - TAIL_CHARS, TAIL_CHARS - 4].map(|n| "ä".repeat(n));
        let bytes = 2 * MAX_LINE_CHARS + 4;
        assert_eq!(shown, [format!("{head}… ({bytes} bytes) …{tail}; rm")]);
        assert!(!whole);
        let fits = wide(MAX_LINE_CHARS - 4);
        assert_eq!(ends(&fits, 2, 1), (fits.to_vec(), true));
    }
}
