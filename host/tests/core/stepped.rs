//! A core stepped by hand: the same inputs give the same steps in both faces.

use hermitcrab::effect::{EffectKind, Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
};
use hermitcrab::session::{InstanceCall, SessionCall, SessionErrorKind, SessionReply};
use hermitcrab_host::{Core, CoreError, CoreStep, Host};
use serde_json::{Value, json};

use crate::faces;

const NOW: u64 = 1_800_000_000_000;

fn info() -> EnvironmentInfo {
    EnvironmentInfo {
        working_directory: "/work".to_owned(),
        platform: "linux".to_owned(),
        os_version: "6.1".to_owned(),
        utc_offset_minutes: 60,
        bounds: String::new(),
        warning: String::new(),
    }
}

/// What a host without files, commands and other things than `body` answers.
fn answer(kind: &EffectKind, body: &str) -> Vec<OutcomeKind> {
    match kind {
        EffectKind::Environment { call, .. } => {
            vec![OutcomeKind::Environment(match call {
                EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {
                    Ok(EnvironmentReply::Done)
                }
                _ => Err(EnvironmentError::new(
                    EnvironmentErrorKind::NotFound,
                    "nothing is there",
                )),
            })]
        }
        EffectKind::Exec { .. } => vec![OutcomeKind::ExecFailed(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            "no commands",
        ))],
        EffectKind::Http(request) => {
            assert_eq!(request.method, "POST");
            assert_eq!(request.auth.as_ref().expect("auth").credential, "anthropic");
            let head = OutcomeKind::HttpHead {
                status: 200,
                headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            };
            let chunks = body.as_bytes().chunks(100);
            let chunks = chunks.map(|chunk| OutcomeKind::HttpChunk(chunk.to_vec().into()));
            std::iter::once(head)
                .chain(chunks)
                .chain([OutcomeKind::HttpEnd])
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Steps until nothing moves; returns all steps.
fn settle(core: &mut dyn Core, now: &mut u64, body: &str) -> Vec<CoreStep> {
    let mut outcomes = Vec::new();
    let mut steps = Vec::new();
    loop {
        *now += 1;
        let step = core
            .step(*now, std::mem::take(&mut outcomes))
            .expect("a step");
        for effect in &step.effects {
            if let EffectKind::Cancel { target } = effect.kind {
                outcomes.push(Outcome {
                    id: target,
                    kind: OutcomeKind::Cancelled,
                });
                continue;
            }
            let answers = answer(&effect.kind, body).into_iter();
            outcomes.extend(answers.map(|kind| Outcome {
                id: effect.id,
                kind,
            }));
        }
        let quiet = outcomes.is_empty() && !step.busy;
        steps.push(step);
        if quiet {
            return steps;
        }
    }
}

/// An answer as the model's server streams it.
fn stream(text: &str) -> String {
    let events = [
        ("message_start", r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}"#.to_owned()),
        ("content_block_start", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#.to_owned()),
        ("content_block_delta", format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#)),
        ("content_block_stop", r#"{"type":"content_block_stop","index":0}"#.to_owned()),
        ("message_delta", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":3}}"#.to_owned()),
        ("message_stop", r#"{"type":"message_stop"}"#.to_owned()),
    ];
    events
        .iter()
        .map(|(name, data)| format!("event: {name}\ndata: {data}\n\n"))
        .collect()
}

fn environment(core: &mut dyn Core) -> u32 {
    let call = InstanceCall::AddRemoteEnvironment { info: info() };
    core.small_number(call).expect("an environment")
}

fn open(environment: u32, config: Value) -> InstanceCall {
    InstanceCall::OpenSession {
        environment,
        config,
        record: None,
    }
}

fn play(host: &Host) -> Vec<CoreStep> {
    let mut core = host.core([7; 32]).expect("an instance");
    let environment = environment(&mut *core);
    let session = core.id(open(environment, json!({}))).expect("a session");
    let mut now = NOW;
    let body = stream("Hello");
    let mut steps = settle(&mut *core, &mut now, &body);
    let input = "Hi".into();
    core.ask(&session, SessionCall::Submit { input })
        .expect("idle");
    steps.extend(settle(&mut *core, &mut now, &body));
    let history = core.ask(&session, SessionCall::History);
    assert!(
        matches!(&history, Ok(SessionReply::Json(json)) if json.starts_with(b"[")),
        "{history:?}"
    );
    core.ask(&session, SessionCall::Close).expect("idle again");
    steps.extend(settle(&mut *core, &mut now, &body));
    steps
}

#[test]
fn both_faces_take_the_same_steps() {
    let [(_, native), (_, component)] = faces();
    let (native, component) = (play(&native), play(&component));
    let kinds: Vec<String> = component
        .iter()
        .flat_map(|step| &step.events)
        .map(|event| {
            let value: serde_json::Value = serde_json::from_slice(&event.json).expect("JSON");
            value["kind"].as_str().expect("a kind").to_owned()
        })
        .collect();
    for kind in [
        "SESSION_START",
        "ASSISTANT_TEXT_DELTA",
        "PROCESSING_END",
        "SESSION_END",
    ] {
        assert!(kinds.iter().any(|name| name == kind), "{kind} in {kinds:?}");
    }
    assert_eq!(native, component);
}

#[test]
fn refusals_are_typed() {
    for (face, host) in faces() {
        let mut core = host.core([1; 32]).expect("an instance");
        let environment = environment(&mut *core);
        let session = core.id(open(environment, json!({}))).expect("a session");
        let ask = |session: &str, ask| InstanceCall::Session {
            session: session.to_owned(),
            ask,
        };
        let say = |text: &str| text.into();
        let answer = SessionCall::Answer {
            input: say("not asked"),
        };
        let submit = SessionCall::Submit { input: say("hi") };
        let cases = [
            (open(99, json!({})), SessionErrorKind::NotFound),
            (
                open(environment, json!({"max_turn": 1})),
                SessionErrorKind::InvalidConfig,
            ),
            (
                open(environment, json!({"provider": "x"})),
                SessionErrorKind::UnknownProvider,
            ),
            (ask(&session, answer), SessionErrorKind::IllegalState),
            (ask("nobody", submit), SessionErrorKind::NotFound),
            (
                ask(&session, SessionCall::Configure { patch: json!([]) }),
                SessionErrorKind::InvalidConfig,
            ),
            (
                ask(
                    &session,
                    SessionCall::RegisterTool {
                        definition: json!({}),
                    },
                ),
                SessionErrorKind::InvalidTool,
            ),
        ];
        for (call, expected) in cases {
            let told = format!("{face}, {call:?}");
            match core.call(call) {
                Err(CoreError::Refused(error)) => assert_eq!(error.kind, expected, "{told}"),
                other => panic!("{told}: {other:?}"),
            }
        }
    }
}

/// The number that the limits in ARCHITECTURE.md are about; not asserted.
#[test]
fn start_up_times_are_printed() {
    let clock = std::time::Instant::now();
    let host = crate::component().build().expect("a core");
    let loaded = clock.elapsed();
    let mut core = host.core([2; 32]).expect("an instance");
    let first = clock.elapsed() - loaded;
    let clock = std::time::Instant::now();
    let many: Vec<_> = (0..100)
        .map(|n| host.core([n; 32]).expect("an instance"))
        .collect();
    let each = clock.elapsed() / 100;
    let environment = environment(&mut *core);
    core.id(open(environment, json!({}))).expect("a session");
    let clock = std::time::Instant::now();
    for n in 0..10_000 {
        core.step(NOW + n, Vec::new()).expect("a step");
    }
    let step = clock.elapsed() / 10_000;
    drop(many);
    println!(
        "load {loaded:?}, first instance {first:?}, each further {each:?}, empty step {step:?}"
    );
}
