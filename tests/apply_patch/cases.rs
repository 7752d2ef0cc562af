//! `cases.json`: patches and what comes of them, one test per case. Each is
//! called as a JSON function and as a freeform tool.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{freeform, pipeline, run};
use crate::tree::{Fault, Nodes, Tree};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The rule that the case shows.
    #[serde(rename = "says")]
    _says: String,
    files: BTreeMap<String, Content>,
    /// Lines between the outer markers.
    patch: Option<Vec<String>>,
    /// Lines of the whole text instead.
    raw: Option<Vec<String>>,
    /// Calls of the environment that fail.
    #[serde(default)]
    fail: Vec<Fault>,
    /// What codex does otherwise; for the comparison with it.
    #[serde(rename = "codex")]
    _codex: Option<String>,
    expect: Option<Value>,
}

/// A file's content: text, or bytes that are no text.
#[derive(Clone, Deserialize, Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl Content {
    fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::Bytes { bytes } => Bytes::copy_from_slice(bytes),
        }
    }
}

/// What came of a call: the result, whether it is an error, and the tree after
/// it: contents of files, null for directories.
fn play(case: &Case, custom: bool) -> Value {
    let files = case.files.iter();
    let files = files.map(|(path, content)| (path.as_str(), content.bytes()));
    let tree = Rc::new(Tree::new(files, &case.fail));
    let before = tree.nodes();
    let mut pipeline = pipeline(tree.clone());
    if custom {
        let registered = pipeline.registry.register(freeform());
        registered.expect("a valid tool");
    }
    let text = match (&case.patch, &case.raw) {
        (Some(lines), None) => format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n")),
        (None, Some(lines)) => lines.join("\n"),
        _ => panic!("a case has patch or raw"),
    };
    let arguments = match custom {
        true => text,
        false => json!({ "patch": text }).to_string(),
    };
    let executed = run(&pipeline, custom, arguments);
    let after = tree.nodes();
    // A patch that fails changes nothing, unless it says what.
    if executed.is_error && !executed.full.contains("except for") {
        assert_eq!(after, before, "{}", executed.full);
    }
    assert_eq!(executed.full, executed.model_text);
    json!({ "result": executed.full, "is_error": executed.is_error, "after": shown(after) })
}

fn shown(nodes: Nodes) -> Value {
    let nodes = nodes.into_iter().map(|(path, node)| {
        let content = node.map(|content| match String::from_utf8(content.to_vec()) {
            Ok(text) => Content::Text(text),
            Err(error) => Content::Bytes {
                bytes: error.into_bytes(),
            },
        });
        (path, json!(content))
    });
    nodes.collect::<serde_json::Map<_, _>>().into()
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apply_patch/cases.json")
}

fn table() -> serde_json::Map<String, Value> {
    let text = fs::read_to_string(path()).expect("cases.json");
    serde_json::from_str(&text).expect("a table of cases")
}

fn check(name: &str) {
    let case: Case = serde_json::from_value(table()[name].clone()).expect("a case");
    let found = play(&case, false);
    assert_eq!(play(&case, true), found, "{name} as freeform input");
    assert_eq!(Some(found), case.expect, "{name}");
}

macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_case_has_a_test() {
            let mut table = table();
            let names: Vec<_> = table.keys().cloned().collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            if std::env::var_os("UPDATE_FIXTURES").is_some() {
                for row in table.values_mut() {
                    let case = serde_json::from_value(row.clone()).expect("a case");
                    row["expect"] = play(&case, false);
                }
                write(&table);
            }
        }
    };
}

/// One line per field, so that a case is short and a diff of it readable.
fn write(table: &serde_json::Map<String, Value>) {
    let rows = table.iter().map(|(name, row)| {
        let fields = row.as_object().expect("an object").iter();
        let fields: Vec<_> = fields
            .map(|(key, value)| format!("    {key:?}: {value}"))
            .collect();
        format!("  {name:?}: {{\n{}\n  }}", fields.join(",\n"))
    });
    let rows: Vec<_> = rows.collect();
    fs::write(path(), format!("{{\n{}\n}}\n", rows.join(",\n"))).expect("a writable table");
}

cases! {
    add,
    add_empty,
    add_empty_line,
    add_existing,
    add_twice,
    add_line_without_plus,
    add_blank_line_without_plus,
    add_over_directory,
    add_below_file,
    add_below_added_file,
    add_in_the_place_of_directory,
    add_below_deleted_file,
    delete,
    delete_missing,
    delete_directory,
    delete_twice,
    delete_with_lines,
    delete_binary,
    update,
    update_without_anchor_line,
    update_missing,
    update_directory,
    update_latin1,
    update_latin1_lacks,
    update_stray_byte,
    update_binary,
    update_utf16,
    update_utf16_damaged,
    update_nul,
    update_nothing,
    update_all_lines,
    update_empty_file,
    move_and_change,
    move_over_existing,
    move_to_itself,
    move_over_directory,
    move_without_hunk,
    move_without_path,
    move_too_late,
    move_below_itself,
    swap,
    several_files,
    add_then_update,
    update_twice,
    update_then_delete,
    delete_then_add,
    delete_then_update,
    move_then_update,
    move_then_update_old,
    move_then_add_old,
    match_first,
    match_exact_first,
    match_trailing_space,
    match_trailing_before_all,
    match_all_space,
    match_all_before_punctuation,
    match_punctuation,
    match_not_inside_space,
    match_not_case,
    match_empty_context,
    match_surplus_empty_line,
    match_surplus_removed_line,
    match_surplus_then_added,
    match_surplus_added_line,
    match_surplus_after_empty_line,
    match_two_surplus_lines,
    mismatch,
    mismatch_nothing_like_it,
    mismatch_past_the_end,
    mismatch_in_second_file,
    out_of_order,
    hunks_touch,
    hunks_overlap,
    anchor,
    anchor_is_shown,
    anchor_twice,
    anchor_twice_same,
    anchor_then_empty,
    anchor_nests,
    anchor_empty_then_line,
    anchor_nest_missing,
    anchor_is_shown_behind,
    anchor_is_shown_in_nest,
    anchor_is_shown_outer,
    anchor_is_shown_fuzzy,
    anchor_is_shown_surplus,
    anchor_is_shown_at_end,
    anchor_is_shown_not_at_end,
    anchor_is_shown_after_hunk,
    example_update,
    example_rename,
    example_hunks,
    anchor_fuzzy,
    anchor_exact_first,
    anchor_trailing_space,
    anchor_leading_space,
    anchor_whole_line,
    anchor_missing,
    anchor_above,
    near_after_anchor,
    anchor_line_numbers,
    anchor_white_space,
    anchor_without_space,
    lines_missing_after_anchor,
    end_of_file,
    end_of_file_elsewhere,
    end_of_file_with_anchor,
    end_of_file_overlap,
    end_of_file_fuzzy,
    end_of_file_surplus,
    end_of_file_insert,
    end_of_file_blank_lines,
    end_of_file_then_line,
    end_of_file_in_added_file,
    insert_appends,
    insert_behind_anchor,
    insert_behind_last_line,
    insert_behind_anchors,
    insert_behind_anchor_at_end,
    insert_behind_anchor_then_change,
    insert_behind_anchor_then_insert,
    insert_behind_hunk_and_anchor,
    insert_behind_missing_anchor,
    insert_then_change,
    insert_two,
    insert_after_change_of_last_line,
    insert_then_append_with_context,
    crlf,
    crlf_patch,
    crlf_patch_adds_lf,
    crlf_append,
    mixed_endings,
    lone_cr,
    no_final_newline,
    no_final_newline_crlf,
    no_final_newline_append,
    final_newlines,
    byte_order_mark,
    byte_order_mark_in_patch,
    padded_markers,
    padded_end_of_file,
    padded_header_in_hunk,
    heredoc,
    heredoc_bare,
    heredoc_command,
    heredoc_unclosed,
    no_begin,
    no_end,
    text_before,
    text_after,
    begin_twice,
    end_twice,
    nothing,
    begin_only,
    empty_patch,
    blank_patch,
    unified_diff,
    bad_header,
    bad_header_case,
    bad_header_no_path,
    bad_header_other_machine,
    bad_marker_in_hunk,
    bad_line,
    bad_first_line,
    bad_line_tab,
    no_hunk,
    empty_hunk,
    empty_hunk_at_end,
    empty_hunk_end_of_file,
    path_dots,
    path_spaces,
    path_absolute_inside,
    path_absolute_outside,
    path_parent,
    path_like_the_workspace,
    path_of_move,
    path_is_workspace,
    write_fails_first,
    write_fails_half_done,
    write_fails_later,
    remove_fails,
    removed_last,
    rename_fails,
    rename_fails_half_done,
    write_after_rename_fails,
    write_in_place_of_file_fails,
    roll_back_fails,
    roll_back_of_directory_fails,
    read_fails,
    interrupted_while_reading,
    interrupted_while_writing,
}
