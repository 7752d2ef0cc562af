//! Approval in sessions: what the host and the model see, and what subagents
//! inherit.

use hermitcrab::effect::EffectKind;
use serde_json::{Value, json};

use super::bench::Bench;

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

fn shell(command: &str) -> Value {
    call("shell", json!({"command": command}))
}

fn write(path: &str) -> Value {
    call("write_file", json!({"file_path": path, "content": "x"}))
}

fn play(steps: &[Value], approval: Value) -> Bench {
    let mut bench = Bench::new(&json!({"steps": steps}), json!({"approval": approval}));
    bench.submit("go");
    bench
}

/// Tool and reason of every question to the host.
fn asked(bench: &Bench) -> Vec<(String, String)> {
    let asked = bench.seen.iter().filter_map(|effect| match &effect.kind {
        EffectKind::AskApproval {
            tool_name, reason, ..
        } => Some((tool_name.clone(), reason.clone())),
        _ => None,
    });
    asked.collect()
}

fn asks(tool: &str, reason: &str) -> (String, String) {
    (tool.to_owned(), reason.to_owned())
}

#[test]
fn commands_and_paths_ask_with_their_reason() {
    let bench = play(
        &[
            shell("ls -l src"),
            shell("ls && rm -rf src"),
            write("src/a.rs"),
            write("../a.rs"),
            json!({"text": "Done."}),
        ],
        json!({"commands": ["@safe"], "write_paths": ["src/**"]}),
    );
    let expected = [
        asks("shell", "rm is not among the listed commands"),
        asks(
            "write_file",
            "it writes ../a.rs, which is outside of write_paths",
        ),
    ];
    // Without the parser, `ls -l src` asks too.
    #[cfg(feature = "analysis")]
    assert_eq!(asked(&bench), expected);
    #[cfg(not(feature = "analysis"))]
    assert_eq!(asked(&bench)[2], expected[1]);
    let events = bench.data("APPROVAL_REQUESTED");
    let reasons: Vec<_> = events.iter().map(|data| data["reason"].clone()).collect();
    let of_effects: Vec<_> = asked(&bench)
        .into_iter()
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(reasons, of_effects);
}

#[test]
fn a_denied_tool_is_refused_without_a_question() {
    let bench = play(
        &[shell("ls"), json!({"text": "Done."})],
        json!({"tools": {"shell": "deny"}}),
    );
    assert_eq!(asked(&bench), []);
    let execs = bench
        .seen
        .iter()
        .filter(|effect| matches!(&effect.kind, EffectKind::Exec { request, .. } if request.command == "ls"));
    assert_eq!(execs.count(), 0);
    let ends = bench.data("TOOL_CALL_END");
    assert_eq!(
        (&ends[0]["error"], &ends[0]["is_error"], &ends[0]["refusal"]),
        (
            &json!("Tool error (shell): denied by policy: this session does not allow shell"),
            &json!(true),
            &json!("denied_by_policy")
        )
    );
}

#[test]
fn subagents_inherit_the_rules() {
    let child = |mut step: Value| {
        step["match"] = json!({"contains": ["# You are a subagent"]});
        step
    };
    let parent = |mut step: Value| {
        step["match"] = json!({"not_contains": "# You are a subagent"});
        step
    };
    let spawn = json!({"task": "work", "working_dir": "src"});
    let bench = play(
        &[
            parent(call("spawn_agent", spawn)),
            child(shell("ls")),
            // From `src`: `/work/src/src/a` and `/work/src/a`.
            child(write("docs/a")),
            child(write("../docs/a")),
            child(json!({"text": "ok"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "Done."})),
        ],
        json!({"tools": {"shell": "deny"}, "write_paths": ["docs/**"]}),
    );
    let expected = [asks(
        "write_file",
        "it writes docs/a, which is outside of write_paths",
    )];
    assert_eq!(asked(&bench), expected);
    let ends = bench.data("TOOL_CALL_END");
    let denied = ends.iter().any(|data| {
        data["error"] == "Tool error (shell): denied by policy: this session does not allow shell"
    });
    assert!(denied, "{ends:?}");
}

#[test]
fn rules_change_between_calls() {
    let mut bench = play(
        &[
            shell("ls"),
            json!({"text": "Done."}),
            shell("ls"),
            json!({"text": "Done."}),
        ],
        json!({}),
    );
    assert_eq!(asked(&bench), []);
    let patch = json!({"approval": {"tools": {"*": "ask"}}});
    bench.session.configure(&patch).expect("a valid patch");
    bench.submit("again");
    assert_eq!(asked(&bench), [asks("shell", "this tool needs approval")]);
    let invalid = json!({"approval": {"write_paths": ["["]}});
    let error = bench.session.configure(&invalid).expect_err("invalid");
    assert_eq!(
        error.message,
        "invalid session configuration: `approval`: `write_paths` has \"[\": unclosed character \
         class; missing ']'"
    );
}
