//! What a session takes from its profile and its model: the prompt's layers,
//! time limits of commands, options, and whether calls run side by side.

use hermitcrab::effect::{EffectKind, HostToolResult, Outcome, OutcomeKind};
use serde_json::{Value, json};

use super::bench::{Bench, tool};

/// 2026-11-21T23:30:00Z.
const NOW_MS: u64 = 1_795_303_800_000;

/// The body of the first request.
fn first_body(bench: &Bench) -> Value {
    let request = bench.model.requests().next().expect("a request");
    serde_json::from_slice(&request.body).expect("JSON")
}

/// A session in a repository that has a document for everybody: the first line
/// of its prompt, its environment block, and the documents that it shows.
fn check_prompt(config: Value, pointer: &str, first: &str, model: &str, documents: &[&str]) {
    let script = json!({"steps": [{"text": "ok"}]});
    let mut bench = Bench::still(&script, config, "/repo");
    bench.now_ms = NOW_MS;
    bench.files = [
        ("/repo/.git/HEAD", &b"ref: refs/heads/main\n"[..]),
        ("/repo/.codex/instructions.md", b"for codex"),
        ("/repo/AGENTS.md", b"for all"),
        ("/repo/CLAUDE.md", b"for Claude"),
        ("/repo/GEMINI.md", b"for Gemini"),
    ]
    .into();
    bench.run();
    bench.submit("go");
    let body = first_body(&bench);
    let prompt = body.pointer(pointer).and_then(Value::as_str);
    let prompt = prompt.unwrap_or_else(|| panic!("no prompt at {pointer}: {body}"));
    let (base, rest) = prompt.split_once("<environment>\n").expect("the block");
    let (block, rest) = rest.split_once("\n</environment>").expect("its end");
    let block: Vec<_> = block.lines().collect();
    let shown: Vec<_> = rest
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let mut expected = vec![
        "Working directory: /repo",
        "Is git repository: true",
        "Git branch: main",
        "Platform: linux",
        "OS version: 6.1",
        "Today's date: 2026-11-21",
    ];
    expected.extend(model.lines());
    assert_eq!(block, expected);
    assert_eq!(shown, documents);
    assert!(base.starts_with(first), "{base}");
}

#[test]
fn prompts_are_the_providers_own() {
    check_prompt(
        json!({"provider": "anthropic", "model": "claude-haiku-4-5"}),
        "/system/0/text",
        "You are a coding agent. You work in a user's repository",
        "Model: Claude Haiku 4.5\nKnowledge cutoff: 2025-02",
        &["/repo/AGENTS.md", "/repo/CLAUDE.md"],
    );
    check_prompt(
        json!({"provider": "openai", "model": "gpt-5.2"}),
        "/instructions",
        "You are a coding agent on a user's machine.",
        "Model: GPT-5.2\nKnowledge cutoff: 2025-08",
        &["/repo/AGENTS.md", "/repo/.codex/instructions.md"],
    );
    check_prompt(
        json!({"provider": "gemini", "model": "gemini-3.5-flash"}),
        "/systemInstruction/parts/0/text",
        "You are an interactive agent for software engineering.",
        "Model: Gemini 3.5 Flash\nKnowledge cutoff: 2025-01",
        &["/repo/AGENTS.md", "/repo/GEMINI.md"],
    );
    check_prompt(
        json!({"provider": "chat", "model": "my-model"}),
        "/messages/0/content",
        "You are a coding agent. You solve a task in a user's repository",
        "Model: my-model",
        &["/repo/AGENTS.md"],
    );
}

fn check_tools(provider: &str, model: &str, expected: &str) {
    let script = json!({"steps": [{"text": "ok"}]});
    let bench = Bench::new(&script, json!({"provider": provider, "model": model}));
    assert_eq!(bench.session.tool_names().join(" "), expected, "{provider}");
}

#[test]
fn tools_of_a_session() {
    check_tools(
        "openai",
        "gpt-5.2",
        "read_file apply_patch write_file shell grep glob spawn_agent send_input wait close_agent",
    );
    check_tools(
        "anthropic",
        "claude-haiku-4-5",
        "read_file write_file edit_file shell grep glob spawn_agent send_input wait close_agent",
    );
    check_tools(
        "gemini",
        "gemini-3.5-flash",
        "read_file read_many_files write_file edit_file shell grep glob list_dir spawn_agent \
         send_input wait close_agent",
    );
}

/// The time limit of a command, as the environment is told it.
fn check_timeout(config: Value, arguments: Value, expected_ms: u64) {
    let script = json!({"steps": [
        {"tool_calls": [{"name": "shell", "arguments": arguments}]},
        {"text": "ok"}
    ]});
    let mut bench = Bench::new(&script, config.clone());
    bench.submit("go");
    let limits: Vec<_> = bench
        .seen
        .iter()
        .filter_map(|effect| match &effect.kind {
            EffectKind::Exec { request, .. } => Some(request.timeout_ms),
            _ => None,
        })
        .collect();
    assert_eq!(limits, [expected_ms], "{config}");
}

#[test]
fn commands_have_time_limits() {
    let plain = json!({"command": "ls"});
    let own = json!({"command": "ls", "timeout_ms": 1_500});
    let openai = json!({"provider": "openai"});
    check_timeout(openai.clone(), plain.clone(), 10_000);
    check_timeout(openai, own.clone(), 1_500);
    check_timeout(json!({"provider": "gemini"}), plain.clone(), 10_000);
    check_timeout(json!({"provider": "anthropic"}), plain.clone(), 120_000);
    let set = json!({"default_command_timeout_ms": 10_000, "max_command_timeout_ms": 1_000_000});
    check_timeout(set.clone(), plain, 10_000);
    check_timeout(set, own, 1_500);
    let long = json!({"command": "ls", "timeout_ms": 5_000_000});
    check_timeout(json!({}), long, 600_000);
}

#[test]
fn options_of_the_profile_are_sent() {
    let script = json!({"steps": [{"text": "ok"}]});
    let mut bench = Bench::new(&script, json!({"provider": "anthropic"}));
    bench.submit("go");
    let request = bench.model.requests().next().expect("a request");
    let betas: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| name == "anthropic-beta")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(
        betas,
        ["prompt-caching-2024-07-31,interleaved-thinking-2025-05-14"]
    );

    let mut bench = Bench::new(&script, json!({"provider": "gemini"}));
    bench.submit("go");
    let settings = &first_body(&bench)["safetySettings"];
    assert_eq!(settings.as_array().map(Vec::len), Some(4), "{settings}");
}

/// Two calls in one answer: which of them the host is asked for before the
/// first has ended.
fn check_side_by_side(model: &str, at_once: &[&str]) {
    let script = json!({"steps": [
        {"tool_calls": [
            {"name": "first", "id": "a", "arguments": {}},
            {"name": "second", "id": "b", "arguments": {}}
        ]},
        {"text": "ok"}
    ]});
    let config = json!({"provider": "openai", "model": model,
                        "tools": [tool("first"), tool("second")]});
    let mut bench = Bench::new(&script, config);
    bench.stuck = vec!["first", "second"];
    bench.submit("go");
    assert_eq!(called(&bench), at_once, "{model}");
    while let Some(index) = bench.open.iter().position(|effect| name(effect).is_some()) {
        let effect = bench.open.remove(index);
        bench.queue.push_back(Outcome {
            id: effect.id,
            kind: OutcomeKind::ToolEnd(HostToolResult::default()),
        });
        bench.run();
    }
    assert_eq!(called(&bench), ["first", "second"], "{model}");
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "completed");
}

/// The host tool that an effect calls.
fn name(effect: &hermitcrab::effect::Effect) -> Option<&str> {
    match &effect.kind {
        EffectKind::CallTool { name, .. } => Some(name),
        _ => None,
    }
}

/// The host tools called so far, in order.
fn called(bench: &Bench) -> Vec<&str> {
    bench.seen.iter().filter_map(name).collect()
}

#[test]
fn calls_run_side_by_side_where_the_model_makes_several() {
    check_side_by_side("gpt-5.2", &["first", "second"]);
    check_side_by_side("o3", &["first"]);
}
