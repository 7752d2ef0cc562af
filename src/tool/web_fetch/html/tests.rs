//! Pages and the text they give.

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
