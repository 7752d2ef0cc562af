//! The session on its own. What needs a real environment is in `tests/cases/`.

use bytes::Bytes;
use hermitcrab::effect::{Effect, EffectKind, HostToolResult, Outcome, OutcomeKind};
use hermitcrab::environment::{EnvironmentCall, EnvironmentInfo, EnvironmentReply};
use hermitcrab::event::SessionState;
use hermitcrab::session::{Instance, SessionConfig, SessionErrorKind};
use serde_json::{Value, json};

use super::bench::{Bench, tool};

/// The id of the first effect that makes this call.
fn call_id(effects: &[Effect], wanted: &EnvironmentCall) -> Option<u64> {
    let matches = |effect: &&Effect| matches!(&effect.kind, EffectKind::Environment { call, .. } if call == wanted);
    effects.iter().find(matches).map(|effect| effect.id)
}

#[test]
fn an_answer_without_calls_ends_the_input() {
    let script = json!({"steps": [{"texts": ["Hel", "lo."]}]});
    let mut bench = Bench::new(&script, json!({}));
    bench.submit("hi");
    assert_eq!(
        bench.kinds(),
        [
            "SESSION_START",
            "STATE_CHANGED",
            "USER_INPUT",
            "ASSISTANT_TEXT_START",
            "ASSISTANT_TEXT_DELTA",
            "ASSISTANT_TEXT_DELTA",
            "ASSISTANT_TEXT_END",
            "USAGE",
            "PROCESSING_END",
            "STATE_CHANGED",
        ]
    );
    assert_eq!(bench.data("ASSISTANT_TEXT_END")[0]["text"], "Hello.");
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "completed");
    let seqs: Vec<_> = bench
        .events
        .iter()
        .map(|event| event["seq"].as_u64())
        .collect();
    let expected: Vec<_> = (1..=10).map(Some).collect();
    assert_eq!(seqs, expected);
    bench.session.close().expect("close is legal");
    bench.run();
    assert_eq!(bench.kinds().last(), Some(&"SESSION_END"));
    assert_eq!(bench.instance.port().outstanding(), 0);
}

#[test]
fn ten_thousand_follow_ups_need_no_stack() {
    let script = json!({"steps": [{"text": "ok"}]});
    // After one turn each follow-up meets the limit: ten thousand requests that
    // carry ten thousand messages would test memory, not the stack.
    let mut bench = Bench::new(&script, json!({"max_turns": 1}));
    for index in 0..10_000 {
        bench
            .session
            .follow_up(format!("{index}"))
            .expect("follow_up is legal");
    }
    bench.submit("first");
    assert_eq!(bench.data("PROCESSING_END").len(), 10_001);
    assert_eq!(bench.session.state(), SessionState::Idle);
}

#[test]
fn illegal_calls_are_typed_errors_and_change_nothing() {
    let script =
        json!({"steps": [{"tool_calls": [{"name": "wait", "arguments": {}}]}, {"text": "ok"}]});
    let mut bench = Bench::new(&script, json!({"tools": [tool("wait")]}));
    bench.stuck = vec!["wait"];
    let kind = |result: Result<(), hermitcrab::session::SessionError>| result.err().map(|e| e.kind);
    let illegal = Some(SessionErrorKind::IllegalState);
    assert_eq!(kind(bench.session.interrupt()), None, "nothing to end");
    assert_eq!(kind(bench.session.answer("x")), illegal, "idle");
    bench.submit("go");
    assert_eq!(kind(bench.session.submit("x")), illegal, "processing");
    assert_eq!(
        kind(bench.session.configure(&json!({"provider": "x"}))),
        Some(SessionErrorKind::InvalidConfig)
    );
    assert_eq!(
        kind(bench.session.configure(&json!({"max_truns": 1}))),
        Some(SessionErrorKind::InvalidConfig)
    );
    bench.session.abort();
    let closed = Some(SessionErrorKind::Closed);
    assert_eq!(kind(bench.session.submit("x")), closed);
    assert_eq!(kind(bench.session.follow_up("x")), closed);
    assert_eq!(bench.session.steer("x").err().map(|e| e.kind), closed);
    assert_eq!(kind(bench.session.interrupt()), closed);
    assert_eq!(kind(bench.session.close()), None, "closing twice is fine");
    bench.run();
    assert_eq!(bench.kinds().last(), Some(&"SESSION_END"));
}

#[test]
fn an_interrupt_right_behind_a_submit_is_not_lost() {
    let script = json!({"steps": [{"text": "ok"}]});
    let mut bench = Bench::new(&script, json!({}));
    bench.session.submit("go").expect("submit is legal");
    bench.session.interrupt().expect("interrupt is legal");
    bench.run();
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "interrupted");
    assert_eq!(bench.session.state(), SessionState::Idle);
    bench.submit("again");
    assert_eq!(bench.data("PROCESSING_END")[1]["reason"], "completed");
}

#[test]
fn an_interrupted_tool_call_has_a_result_and_the_session_goes_on() {
    let script = json!({"steps": [
        {"tool_calls": [
            {"name": "quick", "id": "a", "arguments": {}},
            {"name": "wait", "id": "b", "arguments": {}}
        ]},
        {"text": "ok"}
    ]});
    let mut bench = Bench::new(&script, json!({"tools": [tool("quick"), tool("wait")]}));
    bench.stuck = vec!["wait"];
    bench.submit("go");
    assert_eq!(bench.session.state(), SessionState::Processing);
    bench.session.interrupt().expect("interrupt is legal");
    bench.run();
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "interrupted");
    assert_eq!(bench.instance.port().outstanding(), 0);
    bench.submit("go on");
    let request = bench.model.requests().last().expect("a second request");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let results: Vec<_> = body["messages"][2]["content"]
        .as_array()
        .expect("blocks")
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| (block["tool_use_id"].clone(), block["is_error"] == true))
        .collect();
    assert_eq!(results, [(json!("a"), false), (json!("b"), true)]);
}

/// Spec appendix B: a host is slow to end what was cancelled.
#[test]
fn the_last_event_waits_for_the_last_effect() {
    let script = json!({"steps": [{"text": "ok"}]});
    let mut bench = Bench::still(&script, json!({}), "/work");
    bench.slow = vec!["/work/AGENTS.md"];
    bench.deaf = true;
    bench.run();
    bench.end_sleep(10_000);
    bench.session.close().expect("close is legal");
    bench.run();
    assert_eq!(bench.kinds(), ["SESSION_START", "WARNING"]);
    let cancelled = bench.open.drain(..).map(|effect| Outcome {
        id: effect.id,
        kind: OutcomeKind::Cancelled,
    });
    bench.queue.extend(cancelled);
    bench.run();
    assert_eq!(
        bench.kinds(),
        ["SESSION_START", "WARNING", "STATE_CHANGED", "SESSION_END"]
    );
    assert_eq!(bench.instance.port().outstanding(), 0);
}

#[test]
fn the_wall_clock_ends_an_input() {
    let script =
        json!({"steps": [{"tool_calls": [{"name": "wait", "arguments": {}}]}, {"text": "ok"}]});
    let config = json!({"tools": [tool("wait")], "max_wall_ms": 5_000});
    let mut bench = Bench::new(&script, config);
    bench.stuck = vec!["wait"];
    bench.submit("go");
    bench.end_sleep(5_000);
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "time_limit");
    assert_eq!(
        bench.data("TOOL_CALL_END")[0]["error"],
        "Tool error (wait): the session's time limit was reached before it ended"
    );
    assert_eq!(
        bench.data("TURN_LIMIT")[0],
        &json!({"limit": "wall_time", "value": 5_000, "round": 1, "total_turns": 1})
    );
    assert_eq!(bench.session.state(), SessionState::Idle);
}

/// The host's clock shows `shown_ms` while a tool works: no limit of time is reached by
/// that, and no time is below zero.
#[track_caller]
fn check_clock_jump(shown_ms: u64) {
    let script =
        json!({"steps": [{"tool_calls": [{"name": "wait", "arguments": {}}]}, {"text": "ok"}]});
    let config = json!({
        "tools": [tool("wait")], "max_wall_ms": 5_000, "stream_idle_timeout_ms": 700,
    });
    let mut bench = Bench::new(&script, config);
    bench.now_ms = 1_700_000_000_000;
    bench.stuck = vec!["wait"];
    bench.submit("go");
    bench.now_ms = shown_ms;
    let is_call = |effect: &Effect| matches!(effect.kind, EffectKind::CallTool { .. });
    let open = bench.open.iter().position(is_call).expect("an open call");
    let id = bench.open.remove(open).id;
    bench.queue.push_back(Outcome {
        id,
        kind: OutcomeKind::ToolEnd(HostToolResult::ok("done")),
    });
    bench.run();
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "completed");
    let took = bench.data("TOOL_CALL_END")[0]["duration_ms"].as_u64();
    assert_eq!(took, Some(shown_ms.saturating_sub(1_700_000_000_000)));
}

#[test]
fn a_clock_that_jumps_back() {
    check_clock_jump(1_600_000_000_000);
    check_clock_jump(0);
}

#[test]
fn a_clock_that_jumps_ahead() {
    check_clock_jump(1_700_086_400_000);
    check_clock_jump(u64::from(u32::MAX) * 1_000);
}

#[test]
fn a_silent_stream_is_broken_after_the_idle_timeout() {
    let script = json!({"steps": [{"text": "ok"}]});
    let config = json!({"stream_idle_timeout_ms": 700, "retry": {"max_retries": 0}});
    let mut bench = Bench::new(&script, config);
    bench.session.submit("go").expect("submit is legal");
    let step = bench.instance.step(bench.now_ms, []);
    let http = step
        .effects
        .iter()
        .find(|effect| matches!(effect.kind, EffectKind::Http(_)))
        .expect("a request")
        .clone();
    for effect in step.effects {
        bench.open.push(effect);
    }
    // A sign of life starts the clock anew.
    bench.now_ms += 500;
    bench.queue.push_back(Outcome {
        id: http.id,
        kind: OutcomeKind::HttpHead {
            status: 200,
            headers: vec![],
        },
    });
    bench.queue.push_back(Outcome {
        id: http.id,
        kind: OutcomeKind::HttpChunk(Bytes::from_static(b": ping\n\n")),
    });
    bench.run();
    bench.now_ms -= 500;
    bench.end_sleep(700);
    assert_eq!(bench.data("ERROR").len(), 0, "500 ms of the 700 are left");
    bench.end_sleep(500);
    let error = bench.data("ERROR");
    assert!(
        error[0]["message"]
            .as_str()
            .is_some_and(|m| m.contains("sent nothing for 700 ms")),
        "{error:?}"
    );
    assert_eq!(bench.data("PROCESSING_END")[0]["reason"], "error");
    assert_eq!(bench.session.state(), SessionState::Idle);
}

#[test]
fn the_same_inputs_give_the_same_bytes() {
    let play = || {
        let script = json!({"steps": [
            {"thinking": {"text": "hm", "signature": "s"}, "text": "a", "tool_calls": [{"name": "quick", "arguments": {"n": 1}}]},
            {"error": {"status": 529, "type": "overloaded_error", "message": "busy"}},
            {"text": "done?"}
        ]});
        let mut bench = Bench::new(&script, json!({"tools": [tool("quick")]}));
        bench.submit("go");
        let delay = bench.data("RETRY")[0]["delay_ms"]
            .as_u64()
            .expect("a delay");
        bench.end_sleep(delay);
        assert_eq!(bench.session.state(), SessionState::AwaitingInput);
        let bodies: Vec<_> = bench.model.requests().map(|r| r.body.clone()).collect();
        (bench.events, bodies)
    };
    assert_eq!(play(), play());
}

#[test]
fn a_session_that_gives_up_leaves_the_environment_to_the_next() {
    let mut instance = Instance::new([7; 32]);
    let environment = instance.add_remote_environment(EnvironmentInfo {
        working_directory: "/work".to_owned(),
        platform: "linux".to_owned(),
        os_version: String::new(),
        utc_offset_minutes: 0,
        bounds: String::new(),
        warning: String::new(),
    });
    let mut open = || {
        let config = SessionConfig::from_json("{}").expect("configuration");
        instance
            .open_session(environment, config)
            .expect("session opens")
    };
    let (first, second) = (open(), open());
    let step = instance.step(1, []);
    let initialize = call_id(&step.effects, &EnvironmentCall::Initialize).expect("the first asks");
    first.abort();
    assert_eq!(
        call_id(&instance.step(2, []).effects, &EnvironmentCall::Initialize),
        None
    );
    let cancelled = Outcome {
        id: initialize,
        kind: OutcomeKind::Cancelled,
    };
    let step = instance.step(3, [cancelled]);
    let again = call_id(&step.effects, &EnvironmentCall::Initialize).expect("the second asks");
    assert_eq!(first.state(), SessionState::Closed);
    let done = Outcome {
        id: again,
        kind: OutcomeKind::Environment(Ok(EnvironmentReply::Done)),
    };
    let step = instance.step(4, [done]);
    assert!(
        !step.effects.is_empty(),
        "the second session goes on: {step:?}"
    );
    assert_ne!(second.state(), SessionState::Closed);
}

/// What is out of the ordinary about an answer is said.
#[test]
fn odd_ends_of_an_answer_are_told() {
    let cases = [
        (
            json!({"text": "half", "stop_reason": "max_tokens"}),
            Some("answer_truncated"),
        ),
        (
            json!({"text": "no", "stop_reason": "refusal"}),
            Some("answer_refused"),
        ),
        (json!({"text": ""}), Some("answer_empty")),
        (json!({"text": "all good"}), None),
    ];
    for (step, expected) in cases {
        let mut bench = Bench::new(&json!({"steps": [step]}), json!({}));
        bench.submit("go");
        let codes: Vec<_> = bench
            .data("WARNING")
            .iter()
            .map(|data| data["code"].as_str())
            .collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(codes, expected, "{step}");
    }
}

/// Steered messages and the warning of a loop stand in the history as what they
/// are, and reach the model as the user's.
#[test]
fn steering_and_warnings_of_loops_are_turns_of_their_own() {
    let again = json!({"tool_calls": [{"name": "quick", "arguments": {}}]});
    let script = json!({"steps": [again, again, {"text": "ok"}]});
    let config = json!({"tools": [tool("quick")], "loop_detection_window": 2, "auto_cache": false});
    let mut bench = Bench::new(&script, config);
    bench.session.steer("be quick").expect("steer is legal");
    bench.submit("go");
    let turns: Vec<_> = bench
        .session
        .history()
        .iter()
        .map(|turn| {
            let turn = serde_json::to_value(turn).expect("JSON");
            let text = |name: &str| turn[name].as_str().unwrap_or_default().to_owned();
            (text("turn"), text("content"))
        })
        .collect();
    let warning = "Loop detected: the last 2 tool calls follow a repeating pattern. Try a \
                   different approach.";
    let expected = [
        ("user", "go"),
        ("steering", "be quick"),
        ("assistant", ""),
        ("tool_results", ""),
        ("assistant", ""),
        ("tool_results", ""),
        ("steering", warning),
        ("assistant", "ok"),
    ]
    .map(|(turn, content)| (turn.to_owned(), content.to_owned()));
    assert_eq!(turns, expected);
    let request = bench.model.requests().last().expect("a request");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let texts: Vec<_> = body["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .flat_map(|message| {
            let blocks = message["content"].as_array().into_iter().flatten();
            blocks
                .filter(|block| block["type"] == "text")
                .map(|block| (message["role"].clone(), block["text"].clone()))
        })
        .collect();
    let from_user = |text: &str| (json!("user"), json!(text));
    assert_eq!(
        texts,
        [from_user("go"), from_user("be quick"), from_user(warning)]
    );
}
