//! What globs match.

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
    check("a?c", &["abc"], &["ac", "a/c", "abbc"]);
    // To `?` and to classes a character is a byte, as to ripgrep.
    check("a??c", &["abbc", "aéc"], &["abc"]);
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
    // A class may match a `/`, as in ripgrep.
    check("[!a-c]", &["d", "/"], &["a", ""]);
    check("[^a]", &["b"], &["a"]);
    check("[]a]", &["]", "a"], &["b"]);
    check("[-a]", &["-", "a"], &["b"]);
    check("[a-]", &["-", "a"], &["b"]);
    check("[+--]", &["+", ",", "-"], &["*", "."]);
    check("[*?{]", &["*", "?", "{"], &["a"]);
    check("a[.-9]b", &["a.b", "a0b"], &["ab"]);
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
        ("[b-a]", "invalid range; 'b' > 'a'"),
        (
            "{a",
            "unclosed alternate group; missing '}' (maybe escape '{' with '[{]'?)",
        ),
        (
            "a}",
            "unopened alternate group; missing '{' (maybe escape '}' with '[}]'?)",
        ),
        ("a\\", "dangling '\\'"),
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
