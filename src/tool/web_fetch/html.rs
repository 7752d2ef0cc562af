//! Text out of HTML: what a reader would see, with the marks of Markdown for
//! headings, lists, links and code. One pass, no tree, nothing nested by
//! recursion, and what was looked for in vain is not looked for again: the time
//! is linear in the page, whatever is in it.
//!
//! Tags are read as the HTML standard's tokenizer reads them, roughly; broken
//! markup costs a line break, never the rest of the page.

/// Bytes of an element's name at most.
const MAX_NAME_BYTES: usize = 64;

/// Elements whose content nobody reads.
const UNSEEN: [&str; 10] = [
    "script", "style", "noscript", "template", "svg", "math", "iframe", "object", "head", "title",
];

/// Elements that stand on lines of their own.
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

/// Named characters beside the five of XML.
const NAMED: [(&str, &str); 31] = [
    ("nbsp", " "),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("hellip", "…"),
    ("mdash", "—"),
    ("ndash", "–"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("bull", "•"),
    ("middot", "·"),
    ("times", "×"),
    ("deg", "°"),
    ("larr", "←"),
    ("rarr", "→"),
    ("uarr", "↑"),
    ("darr", "↓"),
    ("le", "≤"),
    ("ge", "≥"),
    ("ne", "≠"),
    ("plusmn", "±"),
    ("para", "¶"),
    ("sect", "§"),
    ("euro", "€"),
    ("pound", "£"),
    ("shy", ""),
    ("zwnj", ""),
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

/// A start or end tag.
struct Tag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
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

/// Reads tags.
struct Tags {
    /// Bytes that may still be looked at in vain for the end of a tag that has
    /// quotes; after that, quotes do not count.
    patience: usize,
    /// Nothing ends a tag from here on.
    no_end: bool,
}

impl Tags {
    fn of(html: &str) -> Self {
        Self {
            patience: html.len().saturating_mul(4),
            no_end: false,
        }
    }

    /// The tag that `html` begins with, and what follows it.
    fn read<'a>(&mut self, html: &'a str) -> Option<(Tag<'a>, &'a str)> {
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
    fn find<'a>(&mut self, html: &'a str, name: &str) -> Option<(usize, &'a str)> {
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
fn skip_declaration(html: &str) -> Option<&str> {
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
fn find_close(html: &str, name: &str) -> Option<usize> {
    html.match_indices("</")
        .map(|(at, _)| at)
        .find(|at| is_close(&html[*at..], name))
}

fn rfind_close(html: &str, name: &str) -> Option<usize> {
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
fn attribute(attributes: &str, wanted: &str) -> Option<String> {
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

/// Text as it grows: white space collapsed, blocks on lines of their own.
#[derive(Default)]
struct Writer {
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
    fn text(&mut self, html: &str) {
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

    fn tag(&mut self, tag: &Tag<'_>) {
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

    fn finish(self) -> String {
        self.out.trim().to_owned()
    }
}

/// Whether a link leads somewhere else.
fn leads(target: &str) -> bool {
    let target = target.trim();
    !target.is_empty() && !target.starts_with('#') && !target.starts_with("javascript:")
}

/// Text with character references resolved; what is none stays as it is.
fn decode(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        // No reference that is known here is longer.
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((reference(&rest[1..end])?, end))) {
            Some((text, end)) => {
                out.push_str(&text);
                rest = &rest[end + 1..];
            }
            None => {
                out.push('&');
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<String> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        };
        return Some(
            char::from_u32(code)
                .filter(|c| *c != '\0')
                .unwrap_or('\u{FFFD}')
                .to_string(),
        );
    }
    let text = match name {
        "amp" => "&",
        "lt" => "<",
        "gt" => ">",
        "quot" => "\"",
        "apos" => "'",
        name => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(html: &str, expected: &str) {
        assert_eq!(extract(html).text, expected, "{html}");
    }

    #[test]
    fn pages() {
        let page = extract(
            "<!DOCTYPE html><html><head><title>A &amp; B\n</title><style>p{}</style></head>\
             <body><nav>menu</nav><main><h1>Top</h1><p>One\n two.<p>Three<br>four</main>\
             <script>if (a < b) {}</script></body></html>",
        );
        assert_eq!(page.title, "A & B");
        assert_eq!(page.text, "# Top\n\nOne two.\n\nThree\nfour");
        check("<main></main><p>x</p>", "x");
        check("<head><title>T</title><body>text", "text");
        check("plain < text & more", "plain < text & more");
        check("", "");
    }

    #[test]
    fn blocks() {
        check("<div>a</div><div>b</div>", "a\nb");
        check(
            "<ul><li>a<li>b<ul><li>c</ul></ul>after",
            "- a\n- b\n  - c\n\nafter",
        );
        check("<h2>x <b>y</b></h2>z", "## x y\n\nz");
        check(
            "<table><tr><th>a<th>b</tr><tr><td>1</td><td>2</td></tr></table>",
            "a | b\n1 | 2",
        );
        check(
            "<p>x<pre><code>a  b\n  c &lt;d&gt;\n</code></pre>y",
            "x\n\n```\na  b\n  c <d>\n```\n\ny",
        );
        check("use <code>x y</code> now", "use `x y` now");
    }

    #[test]
    fn links_and_images() {
        check(
            "see <a href='/x?a=1&amp;b'> the\n docs </a>.",
            "see [the docs](/x?a=1&b) .",
        );
        check("<a href=\"#top\">up</a> <a>no</a>", "up no");
        check("<a href=x><div>a</div><div>b</div></a>", "a\nb");
        check(
            "<a class=c href = https://x.org/ >x</a>",
            "[x](https://x.org/)",
        );
        check("<img src=x alt=\"a cat\"><img src=y>", "[image: a cat]");
    }

    #[test]
    fn references() {
        check("&lt;&gt;&quot;&#65;&#x42;&nbsp;&hellip;", "<>\"AB …");
        check("&unknown; &#xD800; &#0; &", "&unknown; \u{FFFD} \u{FFFD} &");
        check("&amp;lt;", "&lt;");
    }

    #[test]
    fn broken_markup() {
        check("a<b", "a<b");
        check("a <!-- never closed", "a");
        check("a<!-- b -->c", "ac");
        check("<p title=\"open>x</p>", "x");
        check("<script>never closed", "");
        check("</p></ul></pre></a>x", "x");
        check("<a href=", "<a href=");
        check("<a href>x</a>", "x");
        check("<a = =b>x</a>", "x");
        check("é<ü>&é;", "é<ü>&é;");
    }

    /// Each would take minutes if something were looked for again and again.
    #[test]
    fn time_is_linear() {
        for piece in [
            "<a href=x>",
            "<ul><li>",
            "<",
            "</",
            "<a \"",
            "<a '\"",
            "<a '\">",
            "<a \"'><b '\"",
            "<head>",
            "<title>",
            "<!--",
            "<!",
            "<script",
            "<x",
            "&",
            "&#",
            "<main",
            "<pre>",
            "<a",
            "</title",
            "</pre>",
        ] {
            extract(&piece.repeat(20_000));
        }
    }
}
