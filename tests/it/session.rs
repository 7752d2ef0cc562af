//! The session on its own: one instance stepped by hand, a scripted model in
//! place of the network, time that passes only when someone sleeps. What needs
//! a real environment is in `tests/cases/`.

use std::collections::VecDeque;

use bytes::Bytes;
use hermitcrab::effect::{Approval, Effect, EffectKind, HostToolResult, Outcome, OutcomeKind};
use hermitcrab::environment::EnvironmentReply;
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
};
use hermitcrab::event::SessionState;
use hermitcrab::script::{Ending, ModelRequest, ScriptedModel};
use hermitcrab::session::{Instance, Session, SessionConfig, SessionErrorKind};
use serde_json::{Value, json};

/// An instance with one session, and a host that answers at once.
struct Bench {
    instance: Instance,
    session: Session,
    model: ScriptedModel,
    now_ms: u64,
    queue: VecDeque<Outcome>,
    events: Vec<Value>,
    /// Effects that nobody has answered.
    open: Vec<Effect>,
    /// Names of host tools whose calls stay open.
    stuck: Vec<&'static str>,
}

impl Bench {
    fn new(script: &Value, config: Value) -> Self {
        let mut instance = Instance::new([7; 32]);
        let environment = instance.add_remote_environment(EnvironmentInfo {
            working_directory: "/work".to_owned(),
            platform: "linux".to_owned(),
            os_version: String::new(),
            utc_offset_minutes: 0,
        });
        let config = SessionConfig::from_json(&config.to_string()).expect("configuration");
        let session = instance
            .open_session(environment, config)
            .expect("session opens");
        let mut bench = Self {
            instance,
            session,
            model: ScriptedModel::from_json(&script.to_string()).expect("script"),
            now_ms: 1_000,
            queue: VecDeque::new(),
            events: Vec::new(),
            open: Vec::new(),
            stuck: Vec::new(),
        };
        bench.run();
        bench
    }

    /// Steps until nothing happens any more. Sleeps end when nothing else is left.
    fn run(&mut self) {
        for _ in 0..100_000 {
            let outcomes: Vec<_> = self.queue.drain(..).collect();
            let step = self.instance.step(self.now_ms, outcomes);
            for event in step.events {
                let event = serde_json::from_slice(&event.json).expect("events are JSON");
                self.events.push(event);
            }
            for effect in step.effects {
                self.perform(effect);
            }
            if self.queue.is_empty() && !step.busy {
                return;
            }
        }
        panic!("the session does not come to rest");
    }

    fn perform(&mut self, effect: Effect) {
        let id = effect.id;
        let mut answer = |kind| self.queue.push_back(Outcome { id, kind });
        match &effect.kind {
            EffectKind::Http(request) => {
                let path = request.url.split_once("//").map_or("", |(_, rest)| rest);
                let path = path.find('/').map_or("/", |slash| &path[slash..]);
                let response = self.model.respond(&ModelRequest {
                    path: path.to_owned(),
                    headers: request.headers.clone(),
                    body: request.body.clone(),
                });
                answer(OutcomeKind::HttpHead {
                    status: response.status,
                    headers: response.headers,
                });
                for chunk in response.chunks {
                    answer(OutcomeKind::HttpChunk(chunk.bytes));
                }
                match response.ending {
                    Ending::Complete => answer(OutcomeKind::HttpEnd),
                    Ending::Disconnect => {
                        answer(OutcomeKind::HttpFailed(hermitcrab::llm::TransportError {
                            kind: hermitcrab::llm::TransportErrorKind::Broken,
                            message: "the connection broke".to_owned(),
                        }));
                    }
                }
            }
            EffectKind::Environment { call, .. } => {
                answer(OutcomeKind::Environment(match call {
                    EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {
                        Ok(EnvironmentReply::Done)
                    }
                    _ => Err(EnvironmentError::new(
                        EnvironmentErrorKind::NotFound,
                        "nothing is here",
                    )),
                }));
            }
            EffectKind::CallTool { name, .. } if !self.stuck.contains(&name.as_str()) => {
                answer(OutcomeKind::ToolEnd(HostToolResult {
                    content: format!("{name} done"),
                    is_error: false,
                }));
            }
            EffectKind::AskApproval { .. } => answer(OutcomeKind::Approval(Approval::Allow)),
            EffectKind::Cancel { target } => {
                let open = self.open.iter().position(|effect| effect.id == *target);
                if let Some(open) = open {
                    let id = self.open.remove(open).id;
                    self.queue.push_back(Outcome {
                        id,
                        kind: OutcomeKind::Cancelled,
                    });
                }
            }
            // Idle watches never expire here; what a test needs to expire it
            // ends itself.
            _ => self.open.push(effect),
        }
    }

    /// Ends the open sleep of `ms` milliseconds, time having passed.
    fn end_sleep(&mut self, ms: u64) {
        let index = self
            .open
            .iter()
            .position(|effect| effect.kind == EffectKind::Sleep { ms })
            .unwrap_or_else(|| panic!("no sleep of {ms} ms among {:?}", self.open));
        let id = self.open.remove(index).id;
        self.now_ms += ms;
        self.queue.push_back(Outcome {
            id,
            kind: OutcomeKind::Slept,
        });
        self.run();
    }

    fn submit(&mut self, input: &str) {
        self.session.submit(input).expect("submit is legal");
        self.run();
    }

    fn kinds(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["kind"].as_str().unwrap_or_default())
            .collect()
    }

    fn data(&self, kind: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["kind"] == kind)
            .map(|event| &event["data"])
            .collect()
    }
}

/// The id of the first effect that makes this call.
fn call_id(effects: &[Effect], wanted: &EnvironmentCall) -> Option<u64> {
    let matches = |effect: &&Effect| matches!(&effect.kind, EffectKind::Environment { call, .. } if call == wanted);
    effects.iter().find(matches).map(|effect| effect.id)
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": "", "parameters": {"type": "object"}})
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
    assert_eq!(bench.instance.port().outstanding(None), 0);
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
    assert_eq!(kind(bench.session.interrupt()), illegal, "idle");
    assert_eq!(kind(bench.session.answer("x")), illegal, "idle");
    bench.submit("go");
    assert_eq!(kind(bench.session.submit("x")), illegal, "processing");
    assert_eq!(kind(bench.session.close()), illegal, "processing");
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
    assert_eq!(bench.instance.port().outstanding(None), 0);
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
        bench.data("TURN_LIMIT")[0],
        &json!({"limit": "wall_time", "value": 5_000})
    );
    assert_eq!(bench.session.state(), SessionState::Idle);
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
