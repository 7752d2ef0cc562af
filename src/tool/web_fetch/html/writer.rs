//! `Writer`: the text as it grows, with the marks of Markdown.

use super::reference::decode;
use super::tag::{Tag, attribute};

/// Elements that stand on separate lines.
const BLOCKS: [&str; 29] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "html",
    "main",
    "nav",
    "ol",
    "option",
    "section",
    "summary",
    "table",
    "tbody",
    "thead",
    "tr",
    "ul",
];

/// Text as it grows: white space collapsed, blocks on separate lines.
#[derive(Default)]
pub(super) struct Writer {
    out: String,
    /// Line breaks to write before the next text.
    breaks: usize,
    /// A space to write before the next text.
    space: bool,
    /// Written at the next text: `- ` or `# `.
    mark: &'static str,
    /// How deep in `<pre>`.
    preformatted: usize,
    /// How deep in lists.
    lists: usize,
    /// Where the open link's text begins, and where the link leads.
    link: Option<(usize, String)>,
}

impl Writer {
    pub(super) fn text(&mut self, html: &str) {
        let text = decode(html);
        if self.preformatted > 0 {
            if !text.is_empty() {
                self.start();
                self.out.push_str(&text);
            }
            return;
        }
        for c in text.chars() {
            if c.is_whitespace() {
                self.space = true;
            } else {
                self.start();
                self.out.push(c);
            }
        }
    }

    /// Writes the white space and the mark that wait.
    fn start(&mut self) {
        if self.breaks > 0 && !self.out.is_empty() {
            self.out.extend(std::iter::repeat_n('\n', self.breaks));
        } else if self.space && self.breaks == 0 && !self.out.is_empty() {
            self.out.push(' ');
        }
        self.breaks = 0;
        self.space = false;
        if !self.mark.is_empty() {
            if self.mark == "- " {
                let depth = self.lists.clamp(1, 8) - 1;
                self.out.extend(std::iter::repeat_n("  ", depth));
            }
            self.out.push_str(self.mark);
            self.mark = "";
        }
    }

    fn line(&mut self, breaks: usize) {
        self.breaks = self.breaks.max(breaks);
        self.space = false;
    }

    pub(super) fn tag(&mut self, tag: &Tag<'_>) {
        match (tag.name.as_str(), tag.closes) {
            ("br", _) => self.line(1),
            ("p", _) => self.line(2),
            ("pre", false) => {
                self.line(2);
                self.start();
                self.out.push_str("```\n");
                self.preformatted += 1;
            }
            ("pre", true) if self.preformatted > 0 => {
                self.preformatted -= 1;
                let kept = self.out.trim_end_matches('\n').len();
                self.out.truncate(kept);
                self.out.push_str("\n```");
                self.line(2);
            }
            ("code", _) if self.preformatted == 0 => self.code(tag.closes),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => {
                self.line(2);
                self.mark = match tag.name.as_bytes()[1] {
                    b'1' => "# ",
                    b'2' => "## ",
                    b'3' => "### ",
                    b'4' => "#### ",
                    b'5' => "##### ",
                    _ => "###### ",
                };
            }
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", true) => {
                self.line(2);
                self.mark = "";
            }
            ("ul" | "ol", closes) => {
                self.lists = match closes {
                    true => self.lists.saturating_sub(1),
                    false => self.lists + 1,
                };
                self.line(if self.lists == 0 || !closes && self.lists == 1 {
                    2
                } else {
                    1
                });
            }
            ("li", false) => {
                self.line(1);
                self.mark = "- ";
            }
            ("li", true) => self.line(1),
            ("td" | "th", false) if self.breaks == 0 && !self.out.is_empty() => {
                self.space = false;
                self.out.push_str(" | ");
            }
            ("a", false) => {
                if let Some(target) = attribute(tag.attributes, "href").filter(|t| leads(t)) {
                    self.link = Some((self.out.len(), target));
                }
            }
            ("a", true) => self.end_link(),
            ("img", false) => {
                if let Some(alt) = attribute(tag.attributes, "alt").filter(|alt| !alt.is_empty()) {
                    self.start();
                    self.out.push_str(&format!("[image: {}]", alt.trim()));
                }
            }
            (name, _) if BLOCKS.contains(&name) => self.line(1),
            _ => {}
        }
    }

    fn code(&mut self, closes: bool) {
        if closes {
            self.out.push('`');
        } else {
            self.start();
            self.out.push('`');
        }
    }

    /// `[text](target)`, where the text is one line.
    fn end_link(&mut self) {
        let Some((start, target)) = self.link.take() else {
            return;
        };
        let text = &self.out[start..];
        let skip = text.len() - text.trim_start().len();
        let text = text.trim_start();
        if text.is_empty() || text.contains('\n') || text.starts_with(['#', '-']) {
            return;
        }
        self.out.insert(start + skip, '[');
        self.out.push_str(&format!("]({target})"));
    }

    pub(super) fn finish(self) -> String {
        self.out.trim().to_owned()
    }
}

/// Whether a link leads somewhere else.
fn leads(target: &str) -> bool {
    let target = target.trim();
    !target.is_empty() && !target.starts_with('#') && !target.starts_with("javascript:")
}
