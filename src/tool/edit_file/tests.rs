//! Edits of small files: what is matched, what is kept, what is refused.

use serde_json::json;

use super::super::testing::run;

/// Edits `a.txt`; the file afterwards and the output or error message.
fn edit(content: &[u8], old: &str, new: &str, replace_all: bool) -> (Vec<u8>, String) {
    let arguments = json!({
        "file_path": "a.txt", "old_string": old, "new_string": new,
        "replace_all": replace_all,
    });
    let (executed, tree) = run(&[("a.txt", content)], "edit_file", arguments);
    let after = tree.content("a.txt").unwrap_or_default().to_vec();
    let prefix = "Tool error (edit_file): ";
    let text = executed.full;
    assert_eq!(executed.is_error, text.starts_with(prefix), "{text}");
    (after, text.strip_prefix(prefix).unwrap_or(&text).to_owned())
}

/// The first line of the output says how; the file is `after`.
fn check(content: &str, old: &str, new: &str, after: &str, how: &str) {
    let (actual, text) = edit(content.as_bytes(), old, new, false);
    assert_eq!(String::from_utf8_lossy(&actual), after, "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert_eq!(first, format!("Made 1 replacement in a.txt ({how}"));
}

fn check_error(content: &str, old: &str, new: &str, message: &str) {
    let (actual, text) = edit(content.as_bytes(), old, new, false);
    assert_eq!(text, message);
    assert_eq!(actual, content.as_bytes(), "the file is untouched");
}

const RELAXED: &str = "; old_string was not exact and matched ignoring ";

#[test]
fn exact() {
    check("a b c", "b", "B", "a B c", "line 1)");
    check("a\nb\nc\n", "b\n", "", "a\nc\n", "line 2)");
    check("a\nb", "b", "c", "a\nc", "line 2)");
    check("\u{FEFF}a\nb\n", "a\nb", "c", "\u{FEFF}c\n", "line 1)");
}

#[test]
fn crlf_is_kept() {
    check("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n", "line 1)");
    let how = format!("line 1){RELAXED}line endings");
    check("a\r\nb\r\nc", "a\nb\n", "x\n", "x\r\nc", &how);
    check(
        "\u{FEFF}a\r\nb\r\nc",
        "a\nb",
        "x\ny",
        "\u{FEFF}x\r\ny\r\nc",
        &how,
    );
}

#[test]
fn white_space() {
    let how = format!("line 1){RELAXED}trailing white space");
    check("a  \nb\nc", "a\nb", "x", "x\nc", &how);
    let how = format!("line 2){RELAXED}indentation and trailing white space");
    check(
        "if x:\n\ta = 1\n\tb = 2\nc",
        "    a = 1\n    b = 2\n",
        "\ta = 3\n",
        "if x:\n\ta = 3\nc",
        &how,
    );
}

#[test]
fn punctuation() {
    let how = format!("line 1){RELAXED}typographic punctuation");
    check(
        "say \u{201C}hi\u{201D}\n",
        "\"hi\"",
        "\"ho\"",
        "say \"ho\"\n",
        &how,
    );
}

#[test]
fn a_missing_final_newline_stays_missing() {
    let how = format!("line 2){RELAXED}indentation and trailing white space");
    check("a\n  b", "b \n", "  c\n", "a\n  c", &how);
}

#[test]
fn output_has_a_short_diff() {
    let (_, text) = edit(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "5", "five", false);
    assert_eq!(
        text,
        "Made 1 replacement in a.txt (line 5)\n\n\
         @@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8"
    );
    let (_, text) = edit(b"a\r\n\r\nb\r\n", "b", "c", false);
    assert_eq!(
        text,
        "Made 1 replacement in a.txt (line 3)\n\n@@ -1,3 +1,3 @@\n a\n \n-b\n+c"
    );
}

#[test]
fn a_long_change_has_no_diff() {
    let (_, text) = edit(b"a\n", "a", &"x\n".repeat(300), false);
    assert_eq!(text, "Made 1 replacement in a.txt (line 1)");
    let long = "y".repeat(10_000_000);
    let (after, text) = edit(format!("{long} z").as_bytes(), "z", "w", false);
    assert_eq!(text, "Made 1 replacement in a.txt (line 1)");
    assert!(after.ends_with(b"y w"));
}

#[test]
fn every_occurrence() {
    let (after, text) = edit(b"a\nb a\n", "a", "aa", true);
    assert_eq!(after, b"aa\nb aa\n");
    assert!(text.starts_with("Made 2 replacements in a.txt (lines 1 and 2)"));
    let (after, _) = edit(b"a\r\nb\r\nx\r\na\r\nb\r\n", "a\nb", "c\nd", true);
    assert_eq!(after, b"c\r\nd\r\nx\r\nc\r\nd\r\n");
}

#[test]
fn not_unique() {
    check_error(
        "a\nx\na\na\n",
        "a",
        "b",
        "old_string occurs 3 times in a.txt (lines 1, 3 and 4); include more of the lines \
         around it to name one, or set replace_all",
    );
    let (after, text) = edit(b"  a;\n\ta;\n", " a;", "b;", true);
    assert_eq!(after, b" b;\n\ta;\n", "one exact match is enough: {text}");
    let (after, text) = edit(b"  a;\n\ta;\n", "\t\ta;", "b;", true);
    assert_eq!(after, b"  a;\n\ta;\n");
    assert_eq!(
        text,
        "old_string is not in a.txt exactly; ignoring indentation and trailing white space it \
         occurs 2 times (lines 1 and 2); copy the text exactly and include more of the lines \
         around it"
    );
    let many = "a\n".repeat(12);
    check_error(
        &many,
        "a",
        "b",
        "old_string occurs 12 times in a.txt (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …); include \
         more of the lines around it to name one, or set replace_all",
    );
}

#[test]
fn not_found_shows_the_nearest_place() {
    check_error(
        "fn a() {\n    one();\n    two();\n}\n",
        "    one();\n    three();\n}",
        "",
        "old_string not found in a.txt; the nearest place is line 2, which first differs in \
         line 3:\n  file:       \"    two();\"\n  old_string: \"    three();\"",
    );
    check_error(
        "a\n",
        "a\nb",
        "",
        "old_string not found in a.txt; the nearest place is line 1, which first differs in \
         line 2:\n  file:       (past the end)\n  old_string: \"b\"",
    );
    check_error(
        "abc\n",
        "x",
        "",
        "old_string not found in a.txt; nothing like it is there, read the file again",
    );
    check_error(
        "one\ntwo\n",
        "1 | one\n2 | two",
        "",
        "old_string not found in a.txt; leave out the line numbers that read_file shows",
    );
}

#[test]
fn calls_that_make_no_sense() {
    check_error(
        "a",
        "",
        "b",
        "old_string is empty; give the text to replace, or use write_file to write a whole file",
    );
    check_error(
        "a",
        "a",
        "a",
        "old_string and new_string are the same; nothing would change",
    );
    check_error(
        "a\nb",
        "a \nb",
        "a\nb",
        "a.txt would not change: what old_string stands for is already new_string",
    );
}

#[test]
fn a_file_cannot_explode() {
    let content = "a".repeat(100_000);
    let (after, text) = edit(content.as_bytes(), "a", &"b".repeat(1000), true);
    assert_eq!(after, content.as_bytes());
    assert_eq!(
        text,
        "a.txt would grow to some 100100000 bytes, the limit is 52428800 bytes"
    );
}

#[test]
fn other_encodings_keep_their_bytes() {
    let latin = b"gr\xFCn\r\n\x93x\x94 na\xEFve\r\n";
    let (after, _) = edit(latin, "grün", "größer", false);
    assert_eq!(after, b"gr\xF6\xDFer\r\n\x93x\x94 na\xEFve\r\n");
    let (after, text) = edit(latin, "grün", "→", false);
    assert_eq!(after, latin);
    assert_eq!(
        text,
        "cannot edit a.txt: its encoding is Windows-1252, which has no '→'; leave that character \
         out, or convert the file to UTF-8 first"
    );
    let stray = b"\xC3\xBC\xC3\xB6\xC3\xA4\n\xFF\nred\n";
    let (after, _) = edit(stray, "red", "grün", false);
    assert_eq!(after, b"\xC3\xBC\xC3\xB6\xC3\xA4\n\xFF\ngr\xC3\xBCn\n");
    let (after, _) = edit(b"\xFF\xFEa\0\n\0", "a", "ü→", false);
    assert_eq!(after, b"\xFF\xFE\xFC\0\x92\x21\n\0");
}

#[test]
fn files_that_are_not_text() {
    let (after, text) = edit(b"a\xFF\x01", "a", "b", false);
    assert_eq!(after, b"a\xFF\x01");
    assert_eq!(
        text,
        "cannot edit a.txt: binary file (it contains control characters)"
    );
    let (_, text) = edit(b"a\0", "a", "b", false);
    assert_eq!(
        text,
        "cannot edit a.txt: binary file (it contains NUL bytes)"
    );
    let arguments = json!({"file_path": "b.txt", "old_string": "a", "new_string": "b"});
    let (executed, _) = run(&[("a.txt", b"a")], "edit_file", arguments);
    assert_eq!(
        executed.full,
        "Tool error (edit_file): file not found: b.txt; did you mean a.txt?"
    );
}
