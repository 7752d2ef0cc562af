//! Large contents, once. A file that a tool read stands in what was delivered, in events
//! and in the request behind them; a log has it once, by its SHA-256, and each place
//! names that.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest as _, Sha256};

/// Bytes of a JSON string from which on it stands apart.
pub(super) const LARGE: usize = 16 << 10;
/// Bytes that a line with its contents may have: a small file could name one very often.
const MOST: usize = 1 << 30;
/// What a name of a content begins with.
const MARK: &str = "content:";
/// Characters of such a name.
const NAME: usize = MARK.len() + 64;

/// Contents that were written.
#[derive(Default)]
pub(super) struct Written(BTreeSet<String>);

/// Contents that were read, as JSON strings by their names.
#[derive(Default)]
pub(super) struct Known(BTreeMap<String, String>);

impl Written {
    /// Replaces the large strings of `line`, which is JSON, by names. `put` gets each that
    /// was not written before, with its name.
    pub(super) fn take_out(&mut self, line: &mut Vec<u8>, mut put: impl FnMut(&str, &[u8])) {
        let Some(mut string) = next_string(line, 0) else {
            return;
        };
        let mut short = Vec::new();
        let mut kept = 0;
        loop {
            let text = &line[string.0..string.1];
            if text.len() > LARGE || is_name(&text[1..text.len() - 1]) {
                let name = name_of(text);
                if self.0.insert(name.clone()) {
                    put(&name, text);
                }
                short.extend_from_slice(&line[kept..string.0]);
                short.push(b'"');
                short.extend_from_slice(name.as_bytes());
                short.push(b'"');
                kept = string.1;
            }
            match next_string(line, string.1) {
                Some(next) => string = next,
                None => break,
            }
        }
        if kept > 0 {
            short.extend_from_slice(&line[kept..]);
            *line = short;
        }
    }
}

impl Known {
    /// Notes a content; says whether its name is right.
    pub(super) fn add(&mut self, name: &str, text: String) -> bool {
        let is_right = name_of(text.as_bytes()) == name;
        self.0.insert(name.to_owned(), text);
        is_right
    }

    /// The line with all contents in their places; `None`: one is missing, or they are
    /// more than [`MOST`].
    pub(super) fn put_back(&self, line: String) -> Option<String> {
        let quoted = format!("\"{MARK}");
        if !line.contains(&quoted) {
            return Some(line);
        }
        let mut whole = String::new();
        let mut rest = line.as_str();
        while let Some(at) = rest.find(&quoted) {
            let name = rest.get(at + 1..at + 1 + NAME);
            let name = name.filter(|name| is_name(name.as_bytes()));
            // A quote behind a backslash is within a string.
            let begins = !rest[..at].ends_with('\\');
            let is_whole = |_: &&str| begins && rest[at + 1 + NAME..].starts_with('"');
            let Some(name) = name.filter(is_whole) else {
                whole.push_str(&rest[..at + quoted.len()]);
                rest = &rest[at + quoted.len()..];
                continue;
            };
            whole.push_str(&rest[..at]);
            whole.push_str(self.0.get(name)?);
            if whole.len() > MOST {
                return None;
            }
            rest = &rest[at + NAME + 2..];
        }
        whole.push_str(rest);
        Some(whole)
    }
}

/// Whether `line` has a string that a reader could take for a name: it stands apart, too.
pub(super) fn is_named_in(line: &[u8]) -> bool {
    let quoted = format!("\"{MARK}");
    memchr::memmem::find(line, quoted.as_bytes()).is_some()
}

fn name_of(text: &[u8]) -> String {
    let digest = Sha256::digest(text);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{MARK}{digits}")
}

fn is_name(text: &[u8]) -> bool {
    text.len() == NAME
        && text.starts_with(MARK.as_bytes())
        && text[MARK.len()..].iter().all(u8::is_ascii_hexdigit)
}

/// Where the next string of JSON begins and ends, quotes included.
fn next_string(json: &[u8], from: usize) -> Option<(usize, usize)> {
    let start = from + json[from..].iter().position(|byte| *byte == b'"')?;
    let mut at = start + 1;
    loop {
        at += json[at..]
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\'))?;
        match json[at] {
            b'"' => return Some((start, at + 1)),
            _ => at += 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of lines, and that they come back.
    fn check(lines: &[&str], contents: usize) {
        let (mut written, mut known) = (Written::default(), Known::default());
        let mut count = 0;
        for whole in lines {
            let mut line = whole.as_bytes().to_vec();
            written.take_out(&mut line, |name, text| {
                count += 1;
                let text = String::from_utf8(text.to_vec()).expect("UTF-8");
                assert!(known.add(name, text));
            });
            let line = String::from_utf8(line).expect("UTF-8");
            assert!(line.len() < LARGE, "{} bytes", line.len());
            assert_eq!(known.put_back(line).as_deref(), Some(*whole));
        }
        assert_eq!(count, contents);
    }

    #[test]
    fn large_strings_stand_apart_once() {
        let large = "é\\\"\\\\\\n".repeat(LARGE / 4);
        check(&[r#"{"a":"b\\","c":["d\"",1]}"#, "{}", "1"], 0);
        let line = format!(r#"{{"a":"{large}","b":["x","{large}"],"c":"{large}!"}}"#);
        check(&[&line, &format!(r#"["{large}"]"#)], 2);
        // A text that looks like a name is a content, too, in short lines as well.
        assert!(is_named_in(format!("[\"{}\"]", name_of(b"x")).as_bytes()));
        assert!(!is_named_in(b"[\"x\"]"));
        let name = name_of(b"x");
        check(&[&format!(r#"["\\"{name}"]"#)], 0);
        check(
            &[&format!(
                r#"{{"a":"{name}","b":"content:x","c":"{name}x"}}"#
            )],
            1,
        );
    }

    #[test]
    fn what_is_missing_or_wrong_is_seen() {
        let known = Known::default();
        let line = format!("[\"{}\"]", name_of(b"x"));
        assert_eq!(known.put_back(line), None);
        assert!(!Known::default().add(&name_of(b"x"), "y".to_owned()));
    }
}
