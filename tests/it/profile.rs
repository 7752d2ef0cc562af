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

/// The system prompt of each request so far, in Anthropic's form.
fn prompts(bench: &Bench) -> Vec<String> {
    let prompts = bench.model.requests().map(|request| {
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        let prompt = &body["system"][0]["text"];
        prompt.as_str().expect("a prompt").to_owned()
    });
    prompts.collect()
}

#[test]
fn the_prompt_follows_the_model_and_the_tools() {
    let answers = ["1", "2", "3", "4", "5", "6"].map(|text| json!({"text": text}));
    let config = json!({"model": "claude-haiku-4-5"});
    let mut bench = Bench::still(&json!({"steps": answers}), config, "/repo");
    bench.now_ms = NOW_MS;
    bench.files = [
        ("/repo/.git/HEAD", &b"ref: refs/heads/main\n"[..]),
        ("/repo/AGENTS.md", b"for all"),
    ]
    .into();
    bench.run();
    bench.submit("first");
    // A day and a document later: what was found at the start stays.
    bench.now_ms += 86_400_000;
    bench.files.insert("/repo/AGENTS.md", b"for nobody");
    bench.submit("nothing has changed");
    let patch = json!({"model": "claude-opus-4-5", "max_turns": 100});
    bench.session.configure(&patch).expect("a patch");
    bench.submit("another model");
    let late = serde_json::from_value(tool("late")).expect("a definition");
    bench.session.register_tool(late).expect("a tool");
    bench.submit("one tool more");
    assert_eq!(bench.session.unregister_tool("late"), Ok(true));
    bench.submit("as before");
    assert_eq!(bench.session.unregister_tool("grep"), Ok(true));
    bench.submit("one tool less");
    let prompts = prompts(&bench);
    assert_eq!(prompts[0], prompts[1]);
    let other = prompts[0]
        .replace(
            "Model: Claude Haiku 4.5\nKnowledge cutoff: 2025-02",
            "MODEL",
        )
        .replace("Model: Claude Haiku 4.5", "MODEL");
    let (before, after) = other.split_once("MODEL").expect("it names the model");
    assert!(prompts[2].starts_with(before) && prompts[2].ends_with(after));
    assert!(prompts[2].contains("Model: Claude Opus 4.5"));
    assert!(prompts[2].contains("Today's date: 2026-11-21") && prompts[2].contains("for all"));
    let (line, rest) = prompts[3]
        .split_once("\n- `late`: ")
        .map(|(head, rest)| (head, rest.split_once('\n').expect("more").1))
        .expect("the new tool is listed");
    assert_eq!(format!("{line}\n{rest}"), prompts[2]);
    assert_eq!(prompts[4], prompts[2]);
    assert!(prompts[4].contains("`grep` searches contents"));
    assert!(!prompts[5].contains("`grep`") && prompts[5].contains("Search with `shell`"));
}

#[test]
fn a_host_changes_a_built_in_profile() {
    let script = json!({"steps": [
        {"tool_calls": [{"name": "spawn_agent", "arguments": {"task": "part"}}],
         "match": {"not_contains": "# You are a subagent"}},
        {"text": "part done", "match": {"contains": "# You are a subagent"}},
        {"text": "done", "match": {"not_contains": "# You are a subagent"}},
    ]});
    let config = json!({
        "instructions": "No tabs.",
        "profiles": {"anthropic": {
            "documents": ["NOTES.md"],
            "prompt": {
                "base": "You are the bot of Acme. Use `{{tool:shell}}`.\nOr {{tool:apply_patch}}.",
                "environment": "<environment>\nAcme's machine\n</environment>",
                "git": null,
                "tools": null,
                "documents": "# Notes\n\n{{default}}",
                "user": "# House rules\n\n{{default}}",
            },
        }},
    });
    let mut bench = Bench::still(&script, config, "/repo");
    bench.files = [
        ("/repo/.git/HEAD", &b"ref: refs/heads/main\n"[..]),
        ("/repo/AGENTS.md", b"for all"),
        ("/repo/NOTES.md", b"for Acme"),
    ]
    .into();
    bench.run();
    bench.submit("go");
    let prompts = prompts(&bench);
    let head = "You are the bot of Acme. Use `shell`.\n\n<environment>\nAcme's machine\n\
                </environment>\n\n";
    let tail = "# Notes\n\n# Project instructions\n\nWritten by the project's authors; where they \
                differ, the later ones count.\n\n## /repo/NOTES.md\n\nfor Acme\n\n# House \
                rules\n\n# User instructions\n\nNo tabs.";
    assert_eq!(prompts[0], format!("{head}{tail}"));
    let subagent = prompts
        .iter()
        .find(|prompt| prompt.contains("# You are a subagent"))
        .expect("a subagent has asked");
    assert!(
        subagent.starts_with(head) && subagent.ends_with(tail),
        "{subagent}"
    );
}

#[test]
fn a_host_defines_a_profile() {
    let script = json!({"steps": [
        {"tool_calls": [{"name": "run", "arguments": {"cmd": "make"}}]},
        {"text": "x".repeat(3_400)},
        {"text": "ok"},
    ]});
    let config = json!({
        "provider": "acme",
        "profiles": {"acme": {
            "wire": "chat",
            "default_model": "acme-1",
            "context_window": 1000,
            "command_timeout_ms": 1234,
            "tool_line_limits": {"run": 2},
            "prompt": {"base": "You are the bot of Acme.", "environment": null, "tools": null},
            "tool_declarations": [{
                "name": "run", "executor": "shell", "description": "Runs.",
                "parameters": {"type": "object", "required": ["cmd"],
                               "properties": {"cmd": {"type": "string"}}},
                "map": {"cmd": "command"},
            }],
        }},
        "max_subagent_depth": 0,
    });
    let mut bench = Bench::new(&script, config);
    bench.commands = vec![("make", "1\n2\n3\n4\n5\n6\n")];
    bench.submit("go");
    bench.submit("again");
    let request = bench.model.requests().next().expect("a request");
    assert_eq!(request.path, "/v1/chat/completions");
    let body = first_body(&bench);
    assert_eq!(body["model"], "acme-1");
    assert_eq!(body["messages"][0]["content"], "You are the bot of Acme.");
    assert_eq!(body["tools"].as_array().map(Vec::len), Some(1));
    let limit = bench.seen.iter().find_map(|effect| match &effect.kind {
        EffectKind::Exec { request, .. } => Some(request.timeout_ms),
        _ => None,
    });
    assert_eq!(limit, Some(1_234));
    let second: Value = bench
        .model
        .requests()
        .nth(1)
        .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
        .expect("a second request");
    let result = second["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .and_then(|message| message["content"].as_str())
        .expect("a result");
    assert!(
        result.contains("omitted") && !result.contains("\n3\n"),
        "{result}"
    );
    let started = &bench.events[0]["data"];
    assert_eq!(started["provider"], "acme");
    let warned = bench
        .events
        .iter()
        .any(|event| event["data"]["code"] == "context_usage");
    assert!(
        warned,
        "3,400 characters are over 80 % of a window of 1,000 tokens"
    );
}
