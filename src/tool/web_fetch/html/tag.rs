//! Tags: where they begin and end, their names and attributes.

use super::reference::decode;

/// Bytes of an element's name at most.
const MAX_NAME_BYTES: usize = 64;

/// A start or end tag.
pub(super) struct Tag<'a> {
    pub(super) name: String,
    pub(super) closes: bool,
    pub(super) attributes: &'a str,
}

/// Reads tags.
pub(super) struct Tags {
    /// Bytes that may still be looked at in vain for the end of a tag that has
    /// quotes; after that, quotes do not count.
    patience: usize,
    /// Nothing ends a tag from here on.
    no_end: bool,
}

impl Tags {
    pub(super) fn of(html: &str) -> Self {
        Self {
            patience: html.len().saturating_mul(4),
            no_end: false,
        }
    }

    /// The tag that `html` begins with, and what follows it.
    pub(super) fn read<'a>(&mut self, html: &'a str) -> Option<(Tag<'a>, &'a str)> {
        if self.no_end {
            return None;
        }
        let (name, closes, rest) = tag_name(html)?;
        let quoted_end = if self.patience > 0 {
            let end = end_outside_quotes(rest);
            if end.is_none() {
                self.patience = self.patience.saturating_sub(rest.len());
            }
            end
        } else {
            None
        };
        // A quote that is never closed must not swallow the page.
        let Some(end) = quoted_end.or_else(|| rest.find('>')) else {
            self.no_end = true;
            return None;
        };
        let tag = Tag {
            name: name.to_ascii_lowercase(),
            closes,
            attributes: &rest[..end],
        };
        Some((tag, &rest[end + 1..]))
    }

    /// Position of the first start tag `name`, and what follows it.
    pub(super) fn find<'a>(&mut self, html: &'a str, name: &str) -> Option<(usize, &'a str)> {
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            rest = &rest[start..];
            let at = html.len() - rest.len();
            match self.read(rest) {
                Some((tag, after)) if !tag.closes && tag.name == name => return Some((at, after)),
                Some((_, after)) => rest = after,
                None => rest = skip_declaration(rest).unwrap_or(&rest[1..]),
            }
        }
        None
    }
}

/// Name of the tag that `html` begins with, whether it closes, and the rest.
fn tag_name(html: &str) -> Option<(&str, bool, &str)> {
    let rest = html.strip_prefix('<')?;
    let (closes, rest) = match rest.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let ends = |c: char| c.is_whitespace() || c == '>' || c == '/';
    // No element has a longer name; the search must not run through the page.
    let limit = rest.floor_char_boundary(MAX_NAME_BYTES);
    let name_end = rest[..limit].find(ends)?;
    let (name, rest) = rest.split_at(name_end);
    Some((name, closes, rest))
}

fn end_outside_quotes(rest: &str) -> Option<usize> {
    let mut quote = None;
    rest.bytes().position(|byte| {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'>') => return true,
            (None, _) => {}
        }
        false
    })
}

/// What follows a comment, a doctype or a processing instruction.
pub(super) fn skip_declaration(html: &str) -> Option<&str> {
    if let Some(rest) = html.strip_prefix("<!--") {
        let end = rest.find("-->").map_or(rest.len(), |end| end + 3);
        return Some(&rest[end..]);
    }
    if html.starts_with("<!") || html.starts_with("<?") || html.starts_with("</") {
        let end = html.find('>').map_or(html.len(), |end| end + 1);
        return Some(&html[end..]);
    }
    None
}

/// Position of the first `</name`.
pub(super) fn find_close(html: &str, name: &str) -> Option<usize> {
    html.match_indices("</")
        .map(|(at, _)| at)
        .find(|at| is_close(&html[*at..], name))
}

pub(super) fn rfind_close(html: &str, name: &str) -> Option<usize> {
    html.rmatch_indices("</")
        .map(|(at, _)| at)
        .find(|at| is_close(&html[*at..], name))
}

fn is_close(html: &str, name: &str) -> bool {
    let bytes = html.as_bytes();
    let end = 2 + name.len();
    let named = bytes
        .get(2..end)
        .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()));
    named && !bytes.get(end).is_some_and(u8::is_ascii_alphanumeric)
}

/// Value of an attribute.
pub(super) fn attribute(attributes: &str, wanted: &str) -> Option<String> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
        if rest.is_empty() {
            return None;
        }
        let ends = |c: char| c.is_whitespace() || c == '=' || c == '/';
        // A `=` in front is part of the name, so that every turn makes way.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let name_end = rest[first..]
            .find(ends)
            .map_or(rest.len(), |end| first + end);
        let (name, after) = rest.split_at(name_end);
        let after = after.trim_start();
        let value = match after.strip_prefix('=') {
            None => {
                rest = after;
                ""
            }
            Some(after) => {
                let after = after.trim_start();
                let (value, left) = match after.chars().next() {
                    Some(quote @ ('"' | '\'')) => {
                        let inside = &after[1..];
                        inside.split_once(quote).unwrap_or((inside, ""))
                    }
                    _ => {
                        let end = after.find(char::is_whitespace).unwrap_or(after.len());
                        after.split_at(end)
                    }
                };
                rest = left;
                value
            }
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(decode(value));
        }
    }
}
