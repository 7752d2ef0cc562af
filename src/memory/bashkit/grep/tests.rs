//! Tests of narrowing: what a pattern needs, and what a `grep` is shown. That
//! the shell's `grep` prints the same is tested against the real one
//! (`tests/sandbox/commands.json`).

use super::*;
use crate::memory::tree::{Content, Tree, TreeLimits};

/// Compares the needles of each pattern; `-` where nothing is certain.
fn check_needles(syntax: Syntax, cases: &[(&str, &str)]) {
    for (pattern, expected) in cases {
        let needles = needles_of(pattern, syntax).map_or("-".to_owned(), |it| it.join(" "));
        assert_eq!(needles, *expected, "{pattern}");
    }
}

#[test]
fn needles_of_basic_patterns() {
    check_needles(
        Syntax::Basic,
        &[
            ("needle", "needle"),
            ("fn main(", "fn main"),
            (r"foo\|barbar", "foo barbar"),
            (r"foo\|", "-"),
            (r"foo.*barbar", "barbar"),
            ("^import os$", "import os"),
            ("abc*", "ab"),
            (r"abc\+d", "ab"),
            (r"abc\?", "ab"),
            ("a+b", "b"),
            ("a|b", "a"),
            (r"ab\{2\}", "-"),
            (r"\(ab\)c", "-"),
            (r"ab\1", "-"),
            (r"\bword\b", "word"),
            (r"a\.b", "a.b"),
            (r"x[a-z]long", "long"),
            ("x[^a-z_-]long", "long"),
            ("x[]a]long", "-"),
            ("x[[:alpha:]]long", "-"),
            ("x[z-a]long", "-"),
            ("x[long", "-"),
            (r"long\", "-"),
            (r"a\x41", "-"),
            (".*", "-"),
            ("", "-"),
        ],
    );
}

#[test]
fn needles_of_other_patterns() {
    check_needles(
        Syntax::Extended,
        &[
            ("foo|barbar", "foo barbar"),
            ("foo|", "-"),
            ("(foo)", "-"),
            (r"foo\(", "foo("),
            ("abc+d", "ab"),
            ("abc?", "ab"),
            ("ab{2}", "-"),
            (r"ab\{", "ab{"),
            (r"a\|b", "a|b"),
            (r"\<word", "word"),
        ],
    );
    check_needles(
        Syntax::Perl,
        &[
            (r"\d+ms_long", "ms_long"),
            (r"(?i)x", "-"),
            (r"\x41", "-"),
            (r"\Qa.b\E", "-"),
            ("ab+?c", "a"),
        ],
    );
    check_needles(Syntax::Fixed, &[("a.b|c*", "a.b|c*"), ("", "-")]);
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// Lists directories from `/w` on as `grep` does, and prints what it is shown.
fn shown(call: &str) -> String {
    let mut tree = Tree::new(TreeLimits::default());
    for (path, text) in [
        ("/w/a.txt", "Needle"),
        ("/w/b.txt", "needle"),
        ("/w/c.txt", "hay"),
        ("/w/d.txt", "h\u{e4}y"),
        ("/w/out/e.txt", "needle"),
        ("/w/sub/deep/f.txt", "hay"),
        ("/w/sub/g.txt", "hay needle"),
        ("/w/zed/h.txt", "hay"),
    ] {
        let content = Content::from(text.as_bytes());
        tree.write_with_parents(path, content, 1).unwrap();
    }
    tree.link("/w/link", "c.txt", 1).unwrap();
    let Some(mut narrow) = Narrow::of_grep(&words(call)) else {
        return "not narrowed".to_owned();
    };
    let mut log = Vec::new();
    let mut stack = vec!["/w".to_owned()];
    while let Some(path) = stack.pop() {
        if !narrow.is_next(&path) {
            log.push(format!("{path}?"));
            break;
        }
        let (kept, _, more) = narrow.list(&path, tree.list(&path).unwrap());
        let names: Vec<&str> = kept.iter().map(|(name, _)| *name).collect();
        log.push(format!("{path}: {}", names.join(" ")));
        for (name, node) in kept.iter().rev() {
            if node.is_directory() && !call.contains(&format!("--exclude-dir={name}")) {
                stack.push(format!("{path}/{name}"));
            }
        }
        assert_eq!(more, !stack.is_empty(), "{call}");
    }
    log.join(" | ")
}

#[test]
fn grep_is_shown_what_may_match() {
    let all = "/w: b.txt link out sub zed | /w/out: e.txt | /w/sub: deep g.txt | /w/sub/deep:  | /w/zed: ";
    for (call, expected) in [
        ("-rn needle", all),
        ("-rn needle .", all),
        ("-r needle /w", all),
        ("-rl -e needle -- w/", all),
        ("--recursive --line-number --include=*.txt needle", all),
        ("-r needle --include *.txt --exclude x .", all),
        (
            "-ri NEEDLE ./",
            "/w: a.txt b.txt d.txt link out sub zed | /w/out: e.txt | /w/sub: deep g.txt | /w/sub/deep:  | /w/zed: ",
        ),
        (
            "-r -A 3 needle . --exclude-dir=out --exclude-dir=sub",
            "/w: b.txt link out sub zed | /w/zed: ",
        ),
        ("-r needle elsewhere", "/w?"),
        ("-r needle /", "not narrowed"),
        ("-r needle ../w", "not narrowed"),
        ("-r needle w sub", "not narrowed"),
        ("-r needle -", "not narrowed"),
        ("-n needle w", "not narrowed"),
        ("-rv needle", "not narrowed"),
        ("-rc needle", "not narrowed"),
        ("-rL needle", "not narrowed"),
        ("-rq needle", "not narrowed"),
        ("-R needle", "not narrowed"),
        ("-r -m 0 needle", "not narrowed"),
        ("-r -A x needle", "not narrowed"),
        ("-r -f patterns", "not narrowed"),
        ("-r --exclude-dir=o* needle", "not narrowed"),
        ("-r --files-without-match needle", "not narrowed"),
        ("-ri n\u{e4}dle", "not narrowed"),
        ("-r", "not narrowed"),
        ("-r needle --include", "not narrowed"),
    ] {
        assert_eq!(shown(call), expected, "grep {call}");
    }
}
