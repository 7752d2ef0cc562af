//! grep and glob.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use hermitcrab::environment::{EnvironmentErrorKind as Kind, GlobRequest, GrepRequest};
use hermitcrab_host::HostEnvironment;

use crate::{GUARD, command, run, with_files};

/// A tree with one of each thing that a search treats specially.
const TREE: &[(&str, &str)] = &[
    (".gitignore", "/ignored\n*.log\n"),
    (".hidden/a.rs", "needle\n"),
    ("a.txt", "one\nneedle two\nNeedle three\r\n"),
    ("a/b.rs", "x\n  needle();\n"),
    ("a/c/deep.rs", "needle deep\n"),
    ("binary", "needle\0needle\n"),
    ("ignored/x.rs", "needle\n"),
    ("noise.log", "needle\n"),
    ("sub/.ignore", "skipped\n"),
    ("sub/skipped", "needle\n"),
    ("sub/kept", "no newline needle"),
];

fn grep_for(pattern: &str) -> GrepRequest {
    GrepRequest {
        pattern: pattern.to_owned(),
        ..GrepRequest::default()
    }
}

async fn check_grep(request: GrepRequest, expected: &[(&str, u64, &str)], truncated: bool) {
    let (directory, environment) = with_files(TREE);
    symlink("a/b.rs", directory.path().join("link.rs")).unwrap();
    symlink("a", directory.path().join("linked-dir")).unwrap();
    run(&environment, command("mkfifo pipe")).await;
    let found = tokio::time::timeout(GUARD, environment.grep(request))
        .await
        .expect("the search hangs")
        .unwrap();
    let matches: Vec<_> = found
        .matches
        .iter()
        .map(|m| (m.path.as_str(), m.line, m.text.as_str()))
        .collect();
    assert_eq!((matches.as_slice(), found.truncated), (expected, truncated));
}

#[tokio::test]
async fn grep_respects_ignore_files_and_sorts_by_path() {
    let expected = [
        ("a.txt", 2, "needle two"),
        ("a/b.rs", 2, "  needle();"),
        ("a/c/deep.rs", 1, "needle deep"),
        ("link.rs", 2, "  needle();"),
        ("sub/kept", 1, "no newline needle"),
    ];
    check_grep(grep_for("needle"), &expected, false).await;
}

#[tokio::test]
async fn grep_can_ignore_case_and_drops_line_endings() {
    let request = GrepRequest {
        case_insensitive: true,
        path: "a.txt".to_owned(),
        ..grep_for("^NEEDLE.*e$")
    };
    check_grep(request, &[("a.txt", 3, "Needle three")], false).await;
}

#[tokio::test]
async fn grep_filter_on_names() {
    let request = GrepRequest {
        glob_filter: Some("*.rs".to_owned()),
        path: "a".to_owned(),
        ..grep_for("needle")
    };
    let expected = [
        ("a/b.rs", 2, "  needle();"),
        ("a/c/deep.rs", 1, "needle deep"),
    ];
    check_grep(request, &expected, false).await;
}

#[tokio::test]
async fn grep_filter_on_paths() {
    let request = GrepRequest {
        glob_filter: Some("a/**/d*.{rs,txt}".to_owned()),
        ..grep_for("needle")
    };
    check_grep(request, &[("a/c/deep.rs", 1, "needle deep")], false).await;
}

#[tokio::test]
async fn grep_stops_at_the_limit_in_path_order() {
    let request = GrepRequest {
        max_results: 2,
        ..grep_for("needle")
    };
    let expected = [("a.txt", 2, "needle two"), ("a/b.rs", 2, "  needle();")];
    check_grep(request, &expected, true).await;
}

#[tokio::test]
async fn grep_at_the_limit_is_not_cut() {
    let request = GrepRequest {
        max_results: 5,
        glob_filter: Some("*.txt".to_owned()),
        ..grep_for("e")
    };
    let expected = [
        ("a.txt", 1, "one"),
        ("a.txt", 2, "needle two"),
        ("a.txt", 3, "Needle three"),
    ];
    check_grep(request, &expected, false).await;
}

#[tokio::test]
async fn a_named_file_is_searched_whatever_it_is() {
    for (path, text) in [("noise.log", "needle"), (".hidden/a.rs", "needle")] {
        let request = GrepRequest {
            path: path.to_owned(),
            ..grep_for("needle")
        };
        check_grep(request, &[(path, 1, text)], false).await;
    }
}

#[tokio::test]
async fn a_binary_file_is_not_searched() {
    let request = GrepRequest {
        path: "binary".to_owned(),
        ..grep_for("needle")
    };
    check_grep(request, &[], false).await;
}

#[tokio::test]
async fn binary_data_counts_in_the_first_8_kib() {
    let near = format!("needle\n{}\0", "x".repeat(8 * 1024 - 8));
    let far = format!("needle\n{}\0", "x".repeat(8 * 1024 - 7));
    let (_directory, environment) = with_files(&[("near", &near), ("far", &far)]);
    let found = environment.grep(grep_for("needle")).await.unwrap();
    let paths: Vec<_> = found.matches.iter().map(|m| m.path.as_str()).collect();
    assert_eq!(paths, ["far"]);
}

#[tokio::test]
async fn lines_keep_their_numbers_across_buffers() {
    let content = format!("\u{feff}needle\n{}needle\n", "some line\n".repeat(100_000));
    let (_directory, environment) = with_files(&[("f", &content)]);
    let found = environment.grep(grep_for("^needle$")).await.unwrap();
    let lines: Vec<_> = found
        .matches
        .iter()
        .map(|m| (m.line, m.text.as_str()))
        .collect();
    assert_eq!(lines, [(1, "needle"), (100_002, "needle")]);
}

#[tokio::test]
async fn a_long_line_is_cut() {
    let content = format!("needle{}\n", "x".repeat(10_000));
    let (_directory, environment) = with_files(&[("f", &content)]);
    let found = environment.grep(grep_for("needle")).await.unwrap();
    assert_eq!(found.matches[0].text.len(), 4096);
}

#[tokio::test]
async fn invalid_text_is_replaced() {
    let (directory, environment) = with_files(&[]);
    std::fs::write(directory.path().join("f"), b"caf\xe9 needle\n").unwrap();
    let found = environment.grep(grep_for("needle")).await.unwrap();
    assert_eq!(found.matches[0].text, "caf\u{fffd} needle");
}

async fn check_grep_error(request: GrepRequest, kind: Kind, message: &str) {
    let (_directory, environment) = with_files(TREE);
    let error = environment.grep(request).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
}

#[tokio::test]
async fn a_bad_pattern_says_why() {
    let message = "invalid regular expression \"(\": unclosed group";
    check_grep_error(grep_for("("), Kind::InvalidInput, message).await;
}

#[tokio::test]
async fn a_pattern_cannot_hold_a_line_break() {
    let message = "invalid regular expression \"a\\\\nb\": it is matched line by line and \
                   cannot contain a line break";
    check_grep_error(grep_for("a\\nb"), Kind::InvalidInput, message).await;
}

#[tokio::test]
async fn a_bad_filter_says_why() {
    for (filter, reason) in [
        ("", "it is empty"),
        ("a[", "unclosed character class; missing ']'"),
    ] {
        let request = GrepRequest {
            glob_filter: Some(filter.to_owned()),
            ..grep_for("x")
        };
        let message = format!("invalid glob {filter:?}: {reason}");
        check_grep_error(request, Kind::InvalidInput, &message).await;
    }
}

#[tokio::test]
async fn grep_filter_seen_from_the_working_directory() {
    let request = GrepRequest {
        glob_filter: Some("a/c/*".to_owned()),
        path: "a".to_owned(),
        ..grep_for("needle")
    };
    check_grep(request, &[("a/c/deep.rs", 1, "needle deep")], false).await;
}

#[tokio::test]
async fn grep_filter_turned_around() {
    let request = GrepRequest {
        glob_filter: Some("!*.rs".to_owned()),
        ..grep_for("needle")
    };
    let expected = [
        ("a.txt", 2, "needle two"),
        ("sub/kept", 1, "no newline needle"),
    ];
    check_grep(request, &expected, false).await;
}

#[tokio::test]
async fn a_missing_place_says_so() {
    let request = GrepRequest {
        path: "none".to_owned(),
        ..grep_for("x")
    };
    let message = "cannot search `none`: no such file or directory";
    check_grep_error(request, Kind::NotFound, message).await;
}

/// Files of the tree in this order, the first the newest.
const BY_AGE: [&str; 5] = ["sub/kept", "a/b.rs", "a.txt", "a/c/deep.rs", "binary"];

async fn check_glob(pattern: &str, path: &str, max_results: u64, expected: &[&str]) {
    let (directory, environment) = with_files(TREE);
    let now = SystemTime::now();
    for (age, path) in BY_AGE.iter().enumerate() {
        let file = File::options()
            .write(true)
            .open(directory.path().join(path))
            .unwrap();
        file.set_modified(now - Duration::from_secs(60 * (age as u64 + 1)))
            .unwrap();
    }
    let request = GlobRequest {
        pattern: pattern.to_owned(),
        path: path.to_owned(),
        max_results,
    };
    let found = environment.glob(request).await.unwrap();
    let paths: Vec<_> = found
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(paths, expected);
    let cut = max_results != 0 && (expected.len() as u64) == max_results;
    assert_eq!(found.truncated, cut);
    assert!(
        found
            .entries
            .iter()
            .all(|entry| !entry.is_dir && entry.size.is_some())
    );
}

#[tokio::test]
async fn glob_newest_first() {
    check_glob("*", "", 0, &BY_AGE).await;
}

#[tokio::test]
async fn glob_names_at_any_depth() {
    check_glob("*.rs", "", 0, &["a/b.rs", "a/c/deep.rs"]).await;
}

#[tokio::test]
async fn glob_paths() {
    check_glob("a/*.rs", "", 0, &["a/b.rs"]).await;
}

#[tokio::test]
async fn glob_double_star_matches_no_directory_too() {
    check_glob("**/*.txt", "", 0, &["a.txt"]).await;
}

#[tokio::test]
async fn glob_below_a_path() {
    check_glob("c/*.rs", "a", 0, &["a/c/deep.rs"]).await;
}

#[tokio::test]
async fn glob_that_names_hidden_files() {
    check_glob(".hidden/*.rs", "", 0, &[".hidden/a.rs"]).await;
}

#[tokio::test]
async fn glob_never_looks_into_git() {
    let (_directory, environment) = with_files(&[(".git/x.rs", ""), (".github/x.rs", "")]);
    let request = GlobRequest {
        pattern: "{.git,.github}/*.rs".to_owned(),
        ..GlobRequest::default()
    };
    let found = environment.glob(request).await.unwrap();
    let paths: Vec<_> = found
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(paths, [".github/x.rs"]);
}

#[tokio::test]
async fn glob_stops_at_the_limit() {
    check_glob("*", "", 2, &BY_AGE[..2]).await;
}

#[tokio::test]
async fn glob_ties_by_path() {
    let (directory, environment) = with_files(&[("b", ""), ("a", ""), ("c/d", "")]);
    let then = SystemTime::now() - Duration::from_secs(60);
    for path in ["a", "b", "c/d"] {
        let file = File::options()
            .write(true)
            .open(directory.path().join(path))
            .unwrap();
        file.set_modified(then).unwrap();
    }
    let request = GlobRequest {
        pattern: "**".to_owned(),
        ..GlobRequest::default()
    };
    let found = environment.glob(request).await.unwrap();
    let paths: Vec<_> = found
        .entries
        .iter()
        .map(|entry| entry.path.as_str())
        .collect();
    assert_eq!(paths, ["a", "b", "c/d"]);
}

#[tokio::test]
async fn places_outside_are_shown_absolute() {
    let (directory, _) = with_files(&[("out/f", "needle")]);
    let (_inner, environment) = with_files(&[]);
    let outside = std::fs::canonicalize(directory.path()).unwrap().join("out");
    let request = GrepRequest {
        path: outside.to_str().unwrap().to_owned(),
        ..grep_for("needle")
    };
    let found = environment.grep(request).await.unwrap();
    assert_eq!(found.matches[0].path, format!("{}/f", outside.display()));
}

#[tokio::test]
async fn glob_in_a_file_is_refused() {
    let (_directory, environment) = with_files(TREE);
    let request = GlobRequest {
        pattern: "*".to_owned(),
        path: "a.txt".to_owned(),
        max_results: 0,
    };
    let error = environment.glob(request).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::NotDirectory, "not a directory: a.txt")
    );
}
