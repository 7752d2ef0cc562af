//! The automaton beside the `regex` crate.

use regex_syntax::ParserBuilder;

use super::TOO_LARGE;
use super::automaton::Automaton;

/// Parsed as a search within lines parses.
fn automaton(pattern: &str) -> Result<Automaton, &'static str> {
    let mut parser = ParserBuilder::new();
    let hir = parser.utf8(false).multi_line(true).crlf(true);
    Automaton::new(&hir.build().parse(pattern).expect("a valid pattern"))
}

/// The peer: the `regex` crate on `pattern`. Where a match ends first is where
/// the shortest text with a match ends; what follows it is seen by `$` and `\b`,
/// so only whether there is a match is compared.
fn check(pattern: &str, texts: &[impl AsRef<[u8]>]) {
    let ours = automaton(pattern).expect("a small pattern");
    let mut peer = regex::bytes::RegexBuilder::new(pattern);
    let peer = peer.multi_line(true).crlf(true).build().expect("a pattern");
    for text in texts {
        let text = text.as_ref();
        let shown = String::from_utf8_lossy(text);
        let end = ours.shortest_match_at(text, 0);
        assert_eq!(
            end.is_some(),
            peer.is_match(text),
            "{pattern:?} in {shown:?}"
        );
        if let Some(end) = end {
            let all = (0..=text.len()).filter_map(|from| peer.find_at(text, from));
            let first = all.map(|found| found.start()).min();
            assert!(
                first.is_some_and(|first| first <= end),
                "{pattern:?} in {shown:?}"
            );
        }
    }
}

/// Every text of up to `length` parts.
fn texts(parts: &[&[u8]], length: usize) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new()];
    let mut begin = 0;
    for _ in 0..length {
        let end = all.len();
        for index in begin..end {
            for part in parts {
                all.push([all[index].as_slice(), part].concat());
            }
        }
        begin = end;
    }
    all
}

#[test]
fn the_same_as_regex_for_every_small_pattern() {
    let atoms = [
        "a",
        "b",
        ".",
        "[^a]",
        "é",
        "^",
        "$",
        r"\b",
        r"\B",
        r"\b{start}",
        r"\b{end}",
        r"\b{start-half}",
        r"\b{end-half}",
        r"\A",
        r"\z",
        r"(?-u:\b)",
        r"\s",
        "(?i:É)",
        r"(?-R:^)",
        r"(?-R:$)",
        r"(?-m:$)",
    ];
    let texts = texts(
        &[b"a", b"b", "é".as_bytes(), b"\r", b"\n", b" ", b"\xFF"],
        3,
    );
    for first in atoms {
        for times in ["+", "?", "{2}", "{1,2}", "{2,}"] {
            check(&format!("(?:{first}){times}b"), &texts);
        }
        for second in atoms {
            check(&format!("(?:{first})*{second}"), &texts);
        }
        for second in atoms {
            check(&format!("(?:{first}a|b{second})+b"), &texts);
        }
    }
}

#[test]
fn the_same_as_regex_for_patterns_as_models_write_them() {
    let texts = [
        "fn main() {\n    println!(\"hi\");\n}\n",
        "NOTE: später\r\n// WARNING(straße) KELVIN \u{212A} 5 km\r\n",
        "import { a, b } from './x.js';\nconst naïve = 42_000.5e-3;\n",
        "日本語 text, Ελληνικά, ٣٤٥ and ½; x\u{301}y\u{200D}z\n",
        "",
        "\n\n",
        "a\u{85}b\u{2028}c\u{A0}d\u{FEFF}\n",
    ];
    let patterns = [
        r"fn\s+\w+\s*\(",
        r"(?i)note|warning",
        r"(?i)kelvin",
        r"(?i)\bk\b",
        r"(?i)STRASSE|straße",
        r"\bimport\b.*\bfrom\b",
        r"^\s*const\s+[[:word:]]+\s*=",
        r"\d{2,}",
        r"\d+[_.]\d+",
        r"\p{L}+",
        r"\p{Lu}\p{Ll}",
        r"\PL",
        r"[\p{N}--\d]",
        r"[^\p{L}\s]",
        r"\W\W",
        r"[日-語]",
        r"\x{1F600}",
        r"(?x) a \s # spaces",
        r"a*?",
        r"(a|ab)(c|bcd)*$",
        r"[a-z&&[^aeiou]]{3}",
        r"(?s).\z",
        r"^$",
        r"\S+$",
        r"(?i-u:straße)",
        r"(?-u:\w)\b",
        r"(?-u:\B)x",
        r"\bnaïve\b",
        r"na\b{end}",
        r"\u0301",
        r"",
        r"()*",
        r"(?:)|a",
        r"[^\x00-\x{10FFFF}]",
        r"(?:a+)+(?:b+)+$",
    ];
    for pattern in patterns {
        check(pattern, &texts);
    }
}

#[test]
fn a_search_goes_on_after_a_line() {
    let ours = automaton(r"^\w+$").expect("a pattern");
    let text = b"a b\nc\nd";
    assert_eq!(ours.shortest_match_at(text, 0), Some(5));
    assert_eq!(ours.shortest_match_at(text, 6), Some(7));
    assert_eq!(ours.shortest_match_at(text, 7), None);
}

#[test]
fn states_that_are_forgotten_are_made_again() {
    // Each place of an `a` in the last 14 characters is another state.
    let ours = automaton("a.{14}c").expect("a pattern");
    let mut number = 1_u32;
    let mut text: Vec<u8> = (0..400_000)
        .map(|_| {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if number >> 31 == 0 { b'a' } else { b'b' }
        })
        .collect();
    assert_eq!(ours.shortest_match_at(&text, 0), None);
    text.extend(b"a12345678901234c");
    assert_eq!(ours.shortest_match_at(&text, 0), Some(text.len()));
}

#[test]
fn what_is_refused() {
    let refused = |pattern| automaton(pattern).map(|_| ()).expect_err("no automaton");
    assert_eq!(refused("((a{1000}){1000}){1000}"), TOO_LARGE);
    assert_eq!(
        refused(r"(?-u:\xFF)"),
        "without Unicode it names bytes beyond ASCII; take `(?-u)` out of it"
    );
    assert_eq!(refused("(?-u:[^a])"), refused(r"(?-u:\xFF)"));
    assert!(automaton(r"((a*)*|(?:a{0,50}){20})+\w{1000}").is_ok());
}
