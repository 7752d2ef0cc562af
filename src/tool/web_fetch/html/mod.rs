//! Text out of HTML: what a reader would see, with the marks of Markdown for
//! headings, lists, links and code. One pass, no tree, nothing nested by
//! recursion, and what was looked for in vain is not looked for again: the time
//! is linear in the page, whatever is in it.
//!
//! Tags are read as the HTML standard's tokenizer reads them, roughly; broken
//! markup costs a line break, never the rest of the page.

mod reference;
mod tag;
#[cfg(test)]
mod tests;
mod writer;

use tag::{Tags, find_close, rfind_close, skip_declaration};
use writer::Writer;

/// Elements whose content nobody reads.
const UNSEEN: [&str; 10] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head", "title",
];

/// What a page says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// Content of `<title>`.
    pub(super) title: String,
    /// The text; of `<main>` alone where there is one.
    pub(super) text: String,
}

/// Extracts title and text.
pub(super) fn extract(html: &str) -> Page {
    let mut page = Page::default();
    if let Some((_, rest)) = Tags::of(html).find(html, "title") {
        let end = find_close(rest, "title").unwrap_or(0);
        let mut title = Writer::default();
        title.text(&rest[..end]);
        page.title = title.finish().replace('\n', " ");
    }
    let main = Tags::of(html).find(html, "main").map(|(_, rest)| {
        let end = rfind_close(rest, "main").unwrap_or(rest.len());
        &rest[..end]
    });
    page.text = read(main.unwrap_or(html));
    if page.text.is_empty() && main.is_some() {
        page.text = read(html);
    }
    page
}

fn read(html: &str) -> String {
    let mut out = Writer::default();
    let mut tags = Tags::of(html);
    // Elements that are never closed from here on.
    let mut open: Vec<String> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.text(&rest[..start]);
        rest = &rest[start..];
        let Some((tag, after)) = tags.read(rest) else {
            match skip_declaration(rest) {
                Some(after) => rest = after,
                // A bare `<` is text.
                None => {
                    out.text("<");
                    rest = &rest[1..];
                }
            }
            continue;
        };
        rest = after;
        if !tag.closes && UNSEEN.contains(&tag.name.as_str()) && !open.contains(&tag.name) {
            match (find_close(rest, &tag.name), tag.name.as_str()) {
                (Some(end), _) => rest = &rest[end..],
                // These cannot hide the page; the end of a head may be left out.
                (None, "head" | "title") => open.push(tag.name),
                (None, _) => rest = "",
            }
            continue;
        }
        out.tag(&tag);
    }
    out.text(rest);
    out.finish()
}
