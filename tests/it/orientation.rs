//! The system prompt's picture of the project (spec 6.4, 6.5).

use std::collections::BTreeMap;

use hermitcrab::effect::EffectKind;
use serde_json::{Value, json};

use super::bench::Bench;

/// A bench in `/repo/pkg` with these files.
fn bench(files: &[(&'static str, &'static [u8])]) -> Bench {
    let script = json!({"steps": [{"text": "ok"}]});
    let mut bench = Bench::still(&script, json!({"instructions": "Mine."}), "/repo/pkg");
    bench.files = files.iter().copied().collect();
    bench.commands = vec![
        ("config --list", "core.bare\0"),
        ("status", " M a\nA  b\n?? c\n"),
        ("log", "abc1 Second\nabc0 First\n"),
    ];
    bench
}

/// The system prompt after `</environment>`, and what was warned of.
fn prompt(mut bench: Bench) -> (String, Vec<String>) {
    bench.run();
    bench.submit("go");
    let request = bench.model.requests().next().expect("a request");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let system = body["system"][0]["text"].as_str().expect("a system prompt");
    let (head, rest) = system.split_once("</environment>").expect("the block");
    let tools = rest.find("# Available tools").expect("the tools");
    let after = rest[tools..]
        .find("\n\n# ")
        .map_or("", |at| &rest[tools + at..]);
    let git = rest[..tools].trim();
    let environment = head.split("Is git").nth(1).unwrap_or_default();
    let environment: Vec<_> = environment.lines().take(2).collect();
    let warnings = bench.data("WARNING");
    let warnings = warnings
        .iter()
        .map(|data| data["message"].as_str().unwrap_or_default().to_owned());
    let text = format!("Is git{}\n{git}{after}", environment.join("\n"));
    (text, warnings.collect())
}

const HEAD: (&str, &[u8]) = ("/repo/.git/HEAD", b"ref: refs/heads/main\n");

#[test]
fn repository_and_documents_from_its_root_down() {
    let (text, warnings) = prompt(bench(&[
        HEAD,
        ("/AGENTS.md", b"above the repository"),
        ("/repo/AGENTS.md", b"root\n"),
        ("/repo/CLAUDE.md", b"root, for this provider"),
        ("/repo/GEMINI.md", b"for another provider"),
        ("/repo/pkg/AGENTS.md", b"here"),
        ("/repo/pkg/CLAUDE.md", b"  \n"),
    ]));
    assert_eq!(
        text,
        "Is git repository: true\nGit branch: main\n\
         <git>\nWhen the session started; ask git for the state now.\nStatus: 2 changed files, \
         1 untracked\nRecent commits:\n  abc1 Second\n  abc0 First\n</git>\n\n\
         # Project instructions\n\nWritten by the project's authors; where they differ, the later \
         ones count.\n\n## /repo/AGENTS.md\n\nroot\n\n## /repo/CLAUDE.md\n\nroot, for this \
         provider\n\n## /repo/pkg/AGENTS.md\n\nhere\n\n# User instructions\n\nMine."
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn outside_a_repository_only_the_directory_counts_and_nothing_runs() {
    let mut bench = bench(&[
        ("/repo/AGENTS.md", b"not ours"),
        ("/repo/pkg/AGENTS.md", b"ours"),
    ]);
    bench.run();
    let ran = |effect: &hermitcrab::effect::Effect| matches!(effect.kind, EffectKind::Exec { .. });
    assert!(!bench.seen.iter().any(ran));
    let (text, _) = prompt(bench);
    assert!(
        text.starts_with("Is git repository: false\nPlatform: linux"),
        "{text}"
    );
    assert!(
        text.contains("ours") && !text.contains("not ours"),
        "{text}"
    );
}

#[test]
fn a_worktree_points_to_its_head() {
    let (text, _) = prompt(bench(&[
        ("/repo/.git", b"gitdir: ../main/.git/worktrees/w\n"),
        (
            "/repo/../main/.git/worktrees/w/HEAD",
            b"ref: refs/heads/side\n",
        ),
    ]));
    assert!(
        text.starts_with("Is git repository: true\nGit branch: side"),
        "{text}"
    );
}

#[test]
fn a_document_that_is_no_text_is_left_out_and_told() {
    let (text, warnings) = prompt(bench(&[("/repo/pkg/AGENTS.md", b"a\0b")]));
    assert!(!text.contains("Project instructions"));
    assert_eq!(
        warnings,
        [
            "/repo/pkg/AGENTS.md is left out of the system prompt: binary file (it contains NUL bytes)"
        ]
    );
}

#[test]
fn a_document_that_leads_out_of_the_repository_is_left_out_and_told() {
    let mut bench = bench(&[
        HEAD,
        ("/repo/AGENTS.md", b"a secret"),
        ("/repo/CLAUDE.md", b"root"),
        ("/repo/pkg/AGENTS.md", b"docs"),
        ("/repo/pkg/CLAUDE.md", b"another secret"),
    ]);
    bench.links = BTreeMap::from([
        ("/repo/AGENTS.md", "/home/me/.ssh/id"),
        ("/repo/pkg/AGENTS.md", "/repo/docs/agents.md"),
        ("/repo/pkg/CLAUDE.md", "/repository/x"),
    ]);
    let (text, warnings) = prompt(bench);
    assert!(
        text.ends_with("## /repo/CLAUDE.md\n\nroot\n\n## /repo/pkg/AGENTS.md\n\ndocs\n\n# User instructions\n\nMine."),
        "{text}"
    );
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(
        warnings,
        [
            "/repo/AGENTS.md is left out of the system prompt: it is a link out of /repo to \
             /home/me/.ssh/id; copy it there to have it read",
            "/repo/pkg/CLAUDE.md is left out of the system prompt: it is a link out of /repo to \
             /repository/x; copy it there to have it read",
        ]
    );
}

#[test]
fn outside_of_a_repository_documents_lie_in_the_working_directory() {
    let mut bench = bench(&[
        ("/repo/pkg/AGENTS.md", b"above"),
        ("/repo/pkg/CLAUDE.md", b"here"),
    ]);
    // The working directory itself may be a link.
    bench.links = BTreeMap::from([
        ("/repo/pkg", "/real/pkg"),
        ("/repo/pkg/AGENTS.md", "/real/AGENTS.md"),
        ("/repo/pkg/CLAUDE.md", "/real/pkg/CLAUDE.md"),
    ]);
    let (text, warnings) = prompt(bench);
    assert!(text.contains("here") && !text.contains("above"), "{text}");
    assert_eq!(
        warnings,
        [
            "/repo/pkg/AGENTS.md is left out of the system prompt: it is a link out of /real/pkg \
             to /real/AGENTS.md; copy it there to have it read"
        ]
    );
}

#[test]
fn a_document_of_two_names_is_shown_once() {
    let mut bench = bench(&[
        HEAD,
        ("/repo/AGENTS.md", b"once"),
        ("/repo/CLAUDE.md", b"once"),
    ]);
    bench.links = BTreeMap::from([("/repo/CLAUDE.md", "/repo/AGENTS.md")]);
    let (text, warnings) = prompt(bench);
    assert!(
        text.ends_with("## /repo/AGENTS.md\n\nonce\n\n# User instructions\n\nMine."),
        "{text}"
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn documents_that_take_too_long_are_left_out_and_git_is_not() {
    let mut bench = bench(&[HEAD, ("/repo/pkg/AGENTS.md", b"here")]);
    bench.slow = vec!["/repo/CLAUDE.md"];
    bench.run();
    bench.end_sleep(10_000);
    let (text, warnings) = prompt(bench);
    assert!(
        text.contains("abc1 Second") && text.contains("Status: 2") && text.contains("here"),
        "{text}"
    );
    let missing = "the project's documents were not all read within 10000 ms";
    let said =
        format!("Not all of them are here: {missing}. Look for more before you change files.");
    assert!(text.contains(&said), "{text}");
    assert_eq!(
        warnings,
        [format!(
            "{missing}; the system prompt goes without the rest (`document_timeout_ms` gives more \
             time)"
        )]
    );
}

#[test]
fn git_that_takes_too_long_is_left_out_and_documents_are_not() {
    let mut bench = bench(&[HEAD, ("/repo/AGENTS.md", b"root")]);
    bench.slow = vec!["status"];
    bench.run();
    bench.end_sleep(2_000);
    let (text, warnings) = prompt(bench);
    assert!(
        text.contains("abc1 Second") && text.contains("root") && !text.contains("Status"),
        "{text}"
    );
    let missing = "git did not answer within 2000 ms";
    let said = format!("Not all of it is here: {missing}.");
    assert!(text.contains(&said), "{text}");
    assert_eq!(
        warnings,
        [format!(
            "{missing}; the system prompt goes without the rest (`git_timeout_ms` gives more time)"
        )]
    );
}

#[test]
fn the_limits_are_settings() {
    let script = json!({"steps": [{"text": "ok"}]});
    let config = json!({"document_timeout_ms": 20_000, "git_timeout_ms": 1});
    let mut bench = Bench::still(&script, config, "/repo/pkg");
    bench.files = [HEAD].into_iter().collect();
    bench.slow = vec!["/repo/CLAUDE.md", "status", "log", "config"];
    bench.run();
    bench.end_sleep(1);
    bench.end_sleep(20_000);
    assert_eq!(bench.data("WARNING").len(), 2);
}

#[test]
fn what_the_host_knows_of_the_project_comes_first() {
    let script = json!({"steps": [{"text": "ok"}]});
    let project = json!({
        "documents": [{"path": "../AGENTS.md", "text": "root"}],
        "git": {"branch": "main", "changes": [2, 1], "commits": ["abc1 Second"]},
    });
    let mut bench = Bench::still(&script, json!({"project": project}), "/work");
    bench.files = [("/work/AGENTS.md", &b"here"[..])].into_iter().collect();
    let (text, warnings) = prompt(bench);
    assert_eq!(
        text,
        "Is git repository: true\nGit branch: main\n\
         <git>\nWhen the session started; ask git for the state now.\nStatus: 2 changed files, \
         1 untracked\nRecent commits:\n  abc1 Second\n</git>\n\n\
         # Project instructions\n\nWritten by the project's authors; where they differ, the later \
         ones count.\n\n## ../AGENTS.md\n\nroot\n\n## /work/AGENTS.md\n\nhere"
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}
