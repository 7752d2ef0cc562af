//! What globs match, beside ripgrep's own reading of them.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::{Glob, MAX_LENGTH, escape_glob};

fn check(pattern: &str, matching: &[&str], others: &[&str]) {
    let glob = Glob::new(pattern).expect("a valid glob");
    for path in matching {
        assert!(glob.is_match(path), "{pattern} {path}");
    }
    for path in others {
        assert!(!glob.is_match(path), "{pattern} {path}");
    }
}

#[test]
fn characters_stand_for_themselves() {
    check("a.b", &["a.b"], &["axb", "a.b/", "aa.b", "a", ""]);
    check("", &[""], &["a"]);
    check("é,", &["é,"], &["e,"]);
}

#[test]
fn stars_stay_in_a_name() {
    check("*", &["", "a", "é"], &["a/b", "/"]);
    check("a*b*c", &["abc", "a1b2c", "abbc"], &["ab", "a/bc", "abcd"]);
    check("a**b", &["ab", "a1b"], &["a/b"]);
}

#[test]
fn question_marks_are_one_character() {
    check("a?c", &["abc", "aéc"], &["ac", "a/c", "abbc"]);
}

#[test]
fn double_stars_are_directories() {
    check("**", &["", "a", "a/b", "/"], &[]);
    check("**/", &["", "a"], &[]);
    check("**/a", &["a", "/a", "b/a", "c/b/a"], &["ba", "a/b"]);
    check("a/**", &["a/", "a/b", "a/b/c"], &["a", "ab"]);
    check("a/**/b", &["a/b", "a/x/b", "a/x/y/b"], &["ab", "a/xb"]);
    check("a/**/**/b", &["a/b", "a/x/y/b"], &["ab"]);
    check("{a/**,b}", &["a/b/c", "b"], &["a", "b/c"]);
}

#[test]
fn classes_hold_characters() {
    check("[a-cx]", &["a", "b", "x"], &["d", "", "ab", "-"]);
    check("[!a-c]", &["d", "é"], &["a", "", "/"]);
    check("[^a]", &["b"], &["a", "/"]);
    check("[]a]", &["]", "a"], &["b"]);
    check("[-a]", &["-", "a"], &["b"]);
    check("[a-]", &["-", "a"], &["b"]);
    check("[+--]", &["+", ",", "-"], &["*", "."]);
    check("[*?{]", &["*", "?", "{"], &["a"]);
    check("a[.-9]b", &["a.b", "a0b"], &["a/b"]);
}

#[test]
fn braces_choose() {
    check("{a,b}c", &["ac", "bc"], &["c", "ab", "abc"]);
    check("*.{t,c}s{,x}", &["a.tsx", "a.csx"], &["a.ts", "a.xs"]);
    check("{a{b,c},d}", &["ab", "ac", "d"], &["a", "ad"]);
    check("{}a{{},}", &["a"], &["", "aa"]);
}

#[test]
fn backslashes_escape() {
    check(r"\*\{a\}\\", &[r"*{a}\"], &["b{a}"]);
    let odd = r"a*b?[c]{d,e}\f!";
    check(&escape_glob(odd), &[odd], &["a"]);
}

#[test]
fn errors_name_what_is_wrong() {
    for (pattern, reason) in [
        ("[a", "unclosed character class; missing ']'"),
        ("[]", "unclosed character class; missing ']'"),
        ("[b-a]", "the range `b-a` is backwards"),
        (
            "{a",
            "unclosed alternate group; missing '}' (`\\{` is the character)",
        ),
        (
            "a}",
            "unopened alternate group; missing '{' (`\\}` is the character)",
        ),
        ("a\\", "it ends with a `\\` that escapes nothing"),
        (&"{".repeat(17), "it nests braces deeper than 16"),
        (&"a".repeat(MAX_LENGTH + 1), "it is longer than 4096 bytes"),
    ] {
        let error = Glob::new(pattern).map(drop);
        assert_eq!(error, Err(reason.to_owned()), "{pattern:?}");
    }
}

#[test]
fn many_stars_end() {
    let glob = Glob::new(&"*a".repeat(500)).expect("a valid glob");
    assert!(!glob.is_match(&format!("{}b", "a".repeat(2000))));
    assert!(glob.is_match(&"a".repeat(2000)));
}

/// ASCII patterns mean what they mean to globset, which ripgrep and the tools
/// of a local disk use.
#[test]
fn the_same_as_globset() {
    const PARTS: [&str; 17] = [
        "a", "a", "b", "/", "/", "*", "*", "?", "**/", "/**", "/**/", "{", "{", "}", "}", ",",
        "[ab]",
    ];
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut pick = |below: usize| random.next_u32() as usize % below;
    let mut valid = 0;
    for _ in 0..6000 {
        let length = 1 + pick(7);
        let pattern: String = (0..length).map(|_| PARTS[pick(PARTS.len())]).collect();
        let peer = globset::GlobBuilder::new(&pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        let ours = Glob::new(&pattern);
        assert_eq!(ours.is_ok(), peer.is_ok(), "{pattern}");
        let (Ok(ours), Ok(peer)) = (ours, peer) else {
            continue;
        };
        valid += 1;
        let peer = peer.compile_matcher();
        for _ in 0..40 {
            let length = pick(7);
            let path: String = (0..length).map(|_| ["a", "b", "/"][pick(3)]).collect();
            let expected = peer.is_match(&path);
            assert_eq!(ours.is_match(&path), expected, "{pattern} {path}");
        }
    }
    assert!(valid > 2000, "{valid}");
}
