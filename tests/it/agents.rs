//! Subagents (spec 7): a parent and its children in one instance.

use hermitcrab::effect::EffectKind;
use hermitcrab::environment::EnvironmentCall;
use hermitcrab::event::SessionState;
use hermitcrab::session::AgentCall;
use serde_json::{Value, json};

use super::bench::{Bench, tool};

/// A call of one tool.
fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// A step for the requests of the subagent whose task holds `task`.
fn child(task: &str, step: Value) -> Value {
    let mut step = step;
    step["match"] = json!({"contains": ["# You are a subagent", task]});
    step
}

/// A step for the session's own requests.
fn parent(step: Value) -> Value {
    let mut step = step;
    step["match"] = json!({"not_contains": "# You are a subagent"});
    step
}

fn play(steps: &[Value], config: Value) -> Bench {
    let mut bench = Bench::new(&json!({"steps": steps}), config);
    bench.stuck = vec!["stuck"];
    bench.submit("go");
    bench
}

/// Outputs of the session's own tool calls, in the order of their ends.
fn outputs(bench: &Bench) -> Vec<String> {
    let own = bench
        .events
        .iter()
        .filter(|event| event["kind"] == "TOOL_CALL_END" && event.get("agent_id").is_none());
    own.map(|event| {
        let data = &event["data"];
        let text = data["output"].as_str().or(data["error"].as_str());
        text.unwrap_or_default().to_owned()
    })
    .collect()
}

/// The requests whose system prompt says that they are a subagent's.
fn children_bodies(bench: &Bench) -> Vec<Value> {
    let bodies = bench
        .model
        .requests()
        .map(|request| serde_json::from_slice::<Value>(&request.body).expect("JSON"));
    bodies
        .filter(|body| body["system"].to_string().contains("# You are a subagent"))
        .collect()
}

fn tool_names(body: &Value) -> Vec<&str> {
    let tools = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect()
}

#[test]
fn two_work_side_by_side_and_report() {
    let mut bench = play(
        &[
            parent(json!({"tool_calls": [
                {"name": "spawn_agent", "arguments": {"task": "task A"}},
                {"name": "spawn_agent", "arguments": {"task": "task B"}},
            ]})),
            parent(json!({"tool_calls": [
                {"name": "wait", "arguments": {"agent_id": "agent-1"}},
                {"name": "wait", "arguments": {"agent_id": "agent-2"}},
            ]})),
            child("task A", call("quick", json!({}))),
            child("task A", json!({"text": "A done?"})),
            child("task B", json!({"text": "B done."})),
            parent(json!({"text": "Both done."})),
        ],
        json!({"tools": [tool("quick")]}),
    );
    let running = |id: &str| format!("agent_id: {id}\nstatus: running");
    let all = outputs(&bench);
    let report = |id: &str, turns: u32, text: &str| {
        format!("agent_id: {id}\nstatus: completed\nsuccess: true\nturns_used: {turns}\n\n{text}")
    };
    let (a, b) = (
        report("agent-1", 2, "A done?"),
        report("agent-2", 1, "B done."),
    );
    assert_eq!(all[..2], [running("agent-1"), running("agent-2")]);
    assert!(
        all[2..] == [a.clone(), b.clone()] || all[2..] == [b, a],
        "{all:?}"
    );
    assert_eq!(bench.session.state(), SessionState::Idle);
    // One stream: gapless numbers, every event of a child named as such.
    let root = bench.session.id().to_string();
    for (index, event) in bench.events.iter().enumerate() {
        assert_eq!(event["seq"], index + 1);
        assert_eq!(event["session_id"], *root);
        let is_child = event["agent_id"].is_string();
        assert_eq!(event["parent_id"] == *root, is_child, "{event}");
    }
    let of = |id: &str| -> Vec<&Value> {
        let own = bench.events.iter().filter(|event| event["agent_id"] == *id);
        own.map(|event| &event["kind"]).collect()
    };
    assert_eq!(of("agent-1")[0], "SESSION_START");
    assert!(of("agent-1").contains(&&json!("TOOL_CALL_END")));
    bench.session.close().expect("close is legal");
    bench.run();
    let ends: Vec<_> = bench
        .events
        .iter()
        .filter(|event| event["kind"] == "SESSION_END")
        .map(|event| event["agent_id"].clone())
        .collect();
    assert_eq!(ends, [json!("agent-1"), json!("agent-2"), Value::Null]);
    assert_eq!(bench.instance.port().outstanding(), 0);
}

#[test]
fn a_child_has_its_own_history_and_cannot_spawn() {
    let bench = play(
        &[
            parent(call("spawn_agent", json!({"task": "only this"}))),
            child("only this", json!({"text": "ok"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "done"})),
        ],
        json!({}),
    );
    let bodies = children_bodies(&bench);
    let body = &bodies[0];
    assert_eq!(body["messages"].as_array().map(Vec::len), Some(1));
    assert!(body["messages"].to_string().contains("only this"));
    assert!(!body["messages"].to_string().contains("\"go\""));
    assert!(!tool_names(body).contains(&"spawn_agent"), "depth 1 of 1");
    assert!(tool_names(body).contains(&"read_file"));
}

#[test]
fn depth_is_a_setting() {
    let steps = [
        parent(call("spawn_agent", json!({"task": "outer"}))),
        child("outer", call("spawn_agent", json!({"task": "inner"}))),
        json!({
            "match": {"contains": "inner", "not_contains": "outer"},
            "text": "from the inside",
        }),
        child("outer", call("wait", json!({"agent_id": "agent-2"}))),
        child("outer", json!({"text": "passed on"})),
        parent(call("wait", json!({"agent_id": "agent-1"}))),
        parent(json!({"text": "done"})),
    ];
    let bench = play(&steps, json!({"max_subagent_depth": 2}));
    let inner = bench
        .events
        .iter()
        .find(|event| event["agent_id"] == "agent-2")
        .expect("a grandchild");
    assert_eq!(inner["parent_id"], "agent-1");
    assert!(outputs(&bench)[1].ends_with("passed on"));
    let none = play(
        &[
            parent(call("spawn_agent", json!({"task": "x"}))),
            parent(json!({"text": "done"})),
        ],
        json!({"max_subagent_depth": 0}),
    );
    assert!(outputs(&none)[0].starts_with("Unknown tool: spawn_agent"));
}

#[test]
fn messages_reach_one_that_works_and_wake_one_that_rests() {
    let bench = play(
        &[
            parent(call("spawn_agent", json!({"task": "task A"}))),
            child("task A", call("quick", json!({}))),
            parent(call(
                "send_input",
                json!({"agent_id": "agent-1", "message": "hurry"}),
            )),
            child("task A", json!({"text": "first answer"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(call(
                "send_input",
                json!({"agent_id": "agent-1", "message": "once more"}),
            )),
            child("once more", json!({"text": "second answer"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(call("close_agent", json!({"agent_id": "agent-1"}))),
            parent(call(
                "send_input",
                json!({"agent_id": "agent-1", "message": "still there?"}),
            )),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "done"})),
        ],
        json!({"tools": [tool("quick")]}),
    );
    let outputs = outputs(&bench);
    assert_eq!(outputs[1], "agent-1 gets the message at its next step");
    assert!(outputs[2].ends_with("first answer"));
    assert_eq!(outputs[3], "agent-1 works on the message");
    assert!(
        outputs[4].contains("turns_used: 3\n\nsecond answer"),
        "{outputs:?}"
    );
    assert_eq!(outputs[5], "agent_id: agent-1\nstatus: completed, closed");
    assert_eq!(
        outputs[6],
        "Tool error (send_input): agent-1 is closed; start another one"
    );
    assert!(outputs[7].ends_with("second answer"), "the result stays");
    let injected: Vec<_> = bench.data("STEERING_INJECTED");
    assert_eq!(injected[0]["content"], "hurry");
}

#[test]
fn failures_are_results() {
    let bench = play(
        &[
            parent(call("spawn_agent", json!({"task": "fails"}))),
            child(
                "fails",
                json!({"error": {"status": 401, "type": "authentication_error", "message": "bad key"}}),
            ),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(call("spawn_agent", json!({"task": "long", "max_turns": 1}))),
            child("long", call("quick", json!({}))),
            parent(call("wait", json!({"agent_id": "agent-2"}))),
            parent(call("wait", json!({"agent_id": "agent-9"}))),
            parent(call("spawn_agent", json!({"task": " "}))),
            parent(call(
                "spawn_agent",
                json!({"task": "x", "working_dir": "../up"}),
            )),
            parent(call(
                "spawn_agent",
                json!({"task": "x", "working_dir": "gone"}),
            )),
            parent(json!({"text": "done"})),
        ],
        json!({"tools": [tool("quick")]}),
    );
    let outputs = outputs(&bench);
    assert!(
        outputs[1].starts_with(
            "agent_id: agent-1\nstatus: failed, closed\nsuccess: false\nturns_used: 0\nerror: "
        ) && outputs[1].contains("bad key"),
        "{}",
        outputs[1]
    );
    assert_eq!(
        outputs[3],
        "agent_id: agent-2\nstatus: failed\nsuccess: false\nturns_used: 1\nerror: it was stopped by \
         its limit: max_turns 1\n\n(no answer)"
    );
    let error = |tool: &str, text: &str| format!("Tool error ({tool}): {text}");
    assert_eq!(
        outputs[4..],
        [
            error("wait", "no subagent agent-9; there are agent-1, agent-2"),
            error(
                "spawn_agent",
                "task is empty; say what the subagent is to do"
            ),
            error(
                "spawn_agent",
                "working_dir ../up is not below the working directory /work"
            ),
            error("spawn_agent", "working_dir gone does not exist"),
        ]
    );
    assert_eq!(
        bench.session.state(),
        SessionState::Idle,
        "the parent lives"
    );
}

#[test]
fn a_child_answers_in_the_form_that_its_call_asks_for() {
    let schema = json!({"type": "array", "items": {"type": "integer"}});
    let asked = |task| {
        call(
            "spawn_agent",
            json!({"task": task, "output_schema": schema}),
        )
    };
    let bench = play(
        &[
            parent(asked("primes")),
            child("primes", json!({"text": "They are 2 and 3."})),
            child("primes", json!({"text": "```json\n[2, 3]\n```"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(asked("never")),
            child("never", json!({"text": "No."})),
            child("never", json!({"text": "{}"})),
            child("never", json!({"text": "[\"2\"]"})),
            parent(call("wait", json!({"agent_id": "agent-2"}))),
            parent(call(
                "spawn_agent",
                json!({"task": "x", "output_schema": {"type": 1}}),
            )),
            parent(json!({"text": "done"})),
        ],
        json!({}),
    );
    let outputs = outputs(&bench);
    assert_eq!(
        outputs[1],
        "agent_id: agent-1\nstatus: completed\nsuccess: true\nturns_used: 2\n\n[2,3]"
    );
    assert!(
        outputs[3].starts_with("agent_id: agent-2\nstatus: failed")
            && outputs[3].contains("does not follow `output_schema`, after 2 corrections"),
        "{}",
        outputs[3]
    );
    assert!(
        outputs[4].starts_with("Tool error (spawn_agent): output_schema: "),
        "{}",
        outputs[4]
    );
    let first = children_bodies(&bench).swap_remove(0);
    assert!(first["system"].to_string().contains("JSON Schema"));
    // The session's own answer is text.
    assert_eq!(bench.session.state(), SessionState::Idle);
}

#[test]
fn turns_are_limited_unless_told_otherwise() {
    let mut steps = vec![parent(call("spawn_agent", json!({"task": "endless"})))];
    steps.extend((0..51).map(|n| child("endless", call("quick", json!({"n": n})))));
    steps.push(parent(call("wait", json!({"agent_id": "agent-1"}))));
    steps.push(parent(json!({"text": "done"})));
    let bench = play(&steps, json!({"tools": [tool("quick")]}));
    assert_eq!(
        outputs(&bench)[1],
        "agent_id: agent-1\nstatus: failed\nsuccess: false\nturns_used: 50\nerror: it was stopped \
         by its limit: max_turns 50\n\n(no answer)"
    );
}

#[test]
fn a_directory_of_its_own() {
    let bench = play(
        &[
            parent(call(
                "spawn_agent",
                json!({"task": "scoped", "working_dir": "src"}),
            )),
            child("scoped", call("read_file", json!({"file_path": "a.rs"}))),
            child("scoped", json!({"text": "ok"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "done"})),
        ],
        json!({}),
    );
    let start = bench
        .events
        .iter()
        .find(|event| event["agent_id"] == "agent-1")
        .expect("a child");
    assert_eq!(start["data"]["working_directory"], "/work/src");
    let body = &children_bodies(&bench)[0];
    assert!(
        body["system"]
            .to_string()
            .contains("Working directory: /work/src")
    );
    // Its relative paths start there, in the parent's environment.
    let read = |effect: &hermitcrab::effect::Effect| match &effect.kind {
        EffectKind::Environment {
            environment,
            call: EnvironmentCall::Read { path, .. },
        } if path.ends_with("a.rs") => Some((*environment, path.clone())),
        _ => None,
    };
    let reads: Vec<_> = bench.seen.iter().filter_map(read).collect();
    assert_eq!(reads, [(1, "/work/src/a.rs".to_owned())]);
}

#[test]
fn as_many_at_once_as_the_limit_allows() {
    let bench = play(
        &[
            parent(json!({"tool_calls": [
                {"name": "spawn_agent", "arguments": {"task": "one"}},
                {"name": "spawn_agent", "arguments": {"task": "two"}},
            ]})),
            child("one", call("stuck", json!({}))),
            parent(json!({"text": "done"})),
        ],
        json!({"max_subagents": 1, "tools": [tool("stuck")]}),
    );
    assert!(
        outputs(&bench).contains(
            &"Tool error (spawn_agent): 1 subagents are at work, the limit is 1; wait for one of \
              them or close it first"
                .to_owned()
        )
    );
}

/// The parent waits for a child whose tool never ends.
fn stuck() -> Bench {
    let steps = [
        parent(call("spawn_agent", json!({"task": "hangs"}))),
        child("hangs", call("stuck", json!({}))),
        parent(call("wait", json!({"agent_id": "agent-1"}))),
        child("hangs", json!({"text": "awake again"})),
        parent(call("wait", json!({"agent_id": "agent-1"}))),
        parent(json!({"text": "done"})),
    ];
    play(&steps, json!({"tools": [tool("stuck")]}))
}

#[test]
fn an_interrupt_stops_parent_and_children() {
    let mut bench = stuck();
    assert_eq!(bench.session.state(), SessionState::Processing);
    bench.session.interrupt().expect("interrupt is legal");
    bench.run();
    let ends: Vec<_> = bench
        .events
        .iter()
        .filter(|event| event["kind"] == "PROCESSING_END")
        .map(|event| (event["agent_id"].clone(), event["data"]["reason"].clone()))
        .collect();
    let interrupted = json!("interrupted");
    assert_eq!(
        ends,
        [
            (json!("agent-1"), interrupted.clone()),
            (Value::Null, interrupted)
        ],
        "the child first"
    );
    assert_eq!(bench.instance.port().outstanding(), 0);
    assert_eq!(bench.session.state(), SessionState::Idle);
    bench.submit("go on");
    let last = outputs(&bench).pop().expect("an output");
    assert!(
        last.contains("status: failed") && last.contains("it was interrupted"),
        "{last}"
    );
}

#[test]
fn an_abort_closes_the_children_first() {
    let mut bench = stuck();
    bench.session.abort();
    bench.run();
    let ends: Vec<_> = bench
        .events
        .iter()
        .filter(|event| event["kind"] == "SESSION_END")
        .map(|event| (event["agent_id"].clone(), event["data"]["reason"].clone()))
        .collect();
    let aborted = json!("aborted");
    assert_eq!(
        ends,
        [(json!("agent-1"), aborted.clone()), (Value::Null, aborted)]
    );
    assert_eq!(bench.kinds().last(), Some(&"SESSION_END"));
    assert_eq!(bench.instance.port().outstanding(), 0);
}

#[test]
fn a_child_has_no_tool_that_its_parent_lacks() {
    let mut bench = Bench::new(
        &json!({"steps": [
            parent(call("spawn_agent", json!({"task": "look"}))),
            child("look", json!({"text": "ok"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "done"})),
        ]}),
        json!({"tools": [tool("extra")]}),
    );
    bench.session.unregister_tool("shell").expect("open");
    bench.submit("go");
    let bodies = children_bodies(&bench);
    let names = tool_names(&bodies[0]);
    assert!(
        names.contains(&"extra") && !names.contains(&"shell"),
        "{names:?}"
    );
}

/// Where the model requests went, with their organization.
fn destinations(bench: &Bench) -> Vec<(String, Option<String>)> {
    let requests = bench.seen.iter().filter_map(|effect| match &effect.kind {
        EffectKind::Http(request) => Some(request),
        _ => None,
    });
    requests
        .map(|request| {
            let mut headers = request.headers.iter();
            let organization = headers.find(|(name, _)| name == "openai-organization");
            (
                request.url.clone(),
                organization.map(|(_, value)| value.clone()),
            )
        })
        .collect()
}

#[test]
fn a_child_of_another_provider_and_its_own_child_back_home() {
    let bench = play(
        &[
            parent(call(
                "spawn_agent",
                json!({"task": "outer", "model": "openai:gpt-x"}),
            )),
            child(
                "outer",
                call(
                    "spawn_agent",
                    json!({"task": "inner", "model": "anthropic:claude-x"}),
                ),
            ),
            json!({"match": {"contains": "inner", "not_contains": "outer"}, "text": "from home"}),
            child("outer", call("wait", json!({"agent_id": "agent-2"}))),
            child("outer", json!({"text": "passed on"})),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
            parent(json!({"text": "done"})),
        ],
        json!({
            "max_subagent_depth": 2,
            "base_url": "http://home.test",
            "endpoints": {"openai": {
                "base_url": "http://abroad.test/v1",
                "options": {"organization": "org-1"},
            }},
        }),
    );
    assert!(
        outputs(&bench)[1].ends_with("passed on"),
        "{:?}",
        outputs(&bench)
    );
    let mut destinations = destinations(&bench);
    destinations.sort();
    destinations.dedup();
    let home = ("http://home.test/v1/messages".to_owned(), None);
    let abroad = "http://abroad.test/v1/responses".to_owned();
    assert_eq!(destinations, [(abroad, Some("org-1".to_owned())), home]);
    let inner = bench
        .events
        .iter()
        .find(|event| event["agent_id"] == "agent-2");
    assert_eq!(
        inner.expect("a grandchild")["data"]["provider"],
        "anthropic"
    );
}

/// Plays a task through the tool that starts subagents on `provider`, with its
/// native tools; returns what the parent's calls came to.
fn check_native(provider: &str, calls: &[Value], expected: &[&str]) {
    let mut steps = vec![child("part one", json!({"text": "found it"}))];
    steps.extend(calls.iter().cloned().map(parent));
    steps.push(parent(json!({"text": "done"})));
    let config = json!({"provider": provider, "model": "m", "toolset": "native"});
    let bench = play(&steps, config);
    assert_eq!(outputs(&bench), expected, "{provider}");
}

#[test]
fn native_tools_for_subagents() {
    let whole = "agent_id: agent-1\nstatus: completed\nsuccess: true\nturns_used: 1\n\nfound it";
    let head = "agent_id: agent-1\nstatus: running";
    let wait = call("wait", json!({"agent_id": "agent-1"}));
    let described = json!({"description": "look", "prompt": "part one"});
    check_native("anthropic", &[call("Agent", described.clone())], &[whole]);
    check_native("chat", &[call("task", described.clone())], &[whole]);
    let prompt = json!({"prompt": "part one"});
    check_native("gemini", &[call("invoke_agent", prompt)], &[whole]);
    let task = json!({"task": "part one"});
    check_native(
        "openai",
        &[call("spawn_agent", task), wait.clone()],
        &[head, whole],
    );
    let mut background = described;
    background["run_in_background"] = json!(true);
    check_native(
        "anthropic",
        &[call("Agent", background), wait],
        &[head, whole],
    );
}

#[test]
fn the_time_limit_of_a_parent_reaches_what_a_child_does() {
    let mut bench = play(
        &[
            parent(call("spawn_agent", json!({"task": "task A"}))),
            child("task A", call("stuck", json!({}))),
            parent(call("wait", json!({"agent_id": "agent-1"}))),
        ],
        json!({"tools": [tool("stuck")], "max_wall_ms": 5_000}),
    );
    bench.end_sleep(5_000);
    let errors: Vec<_> = bench
        .data("TOOL_CALL_END")
        .into_iter()
        .filter_map(|data| data["error"].as_str())
        .collect();
    assert_eq!(
        errors,
        [
            "Tool error (wait): the session's time limit was reached before it ended",
            "Tool error (stuck): the session's time limit was reached before it ended",
        ]
    );
}

#[test]
fn a_subagent_that_is_closed_does_not_run_any_more() {
    let mut bench = play(
        &[
            parent(call("spawn_agent", json!({"task": "task A"}))),
            child("task A", call("stuck", json!({}))),
            parent(json!({"text": "Started."})),
        ],
        json!({"tools": [tool("stuck")]}),
    );
    let listed = |bench: &Bench| {
        let infos = serde_json::to_value(bench.session.agents()).expect("JSON");
        (infos[0]["state"].clone(), infos[0]["status"].clone())
    };
    assert_eq!(listed(&bench).1, json!("running"));
    let close = bench.session.tell_agent("agent-1", AgentCall::Close);
    close.expect("it is there");
    assert_eq!(listed(&bench), (json!("CLOSED"), json!("failed")));
    bench.run();
    assert_eq!(listed(&bench), (json!("CLOSED"), json!("failed")));
}
