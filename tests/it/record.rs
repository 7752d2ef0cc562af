//! Records: a session that is cut off anywhere goes on in another instance, and
//! its model reads what it would have read.

use base64::Engine as _;
use hermitcrab::event::SessionState;
use hermitcrab::llm::Part;
use hermitcrab::session::{Session, SessionErrorKind, SessionRecord};
use serde_json::{Value, json};

use super::bench::{Bench, tool};

const CUT_OFF: &str = "Tool error (wait): interrupted before it ended";

/// Two rounds of calls; `wait` is the one that a test may leave open.
fn script() -> Value {
    json!({"steps": [
        {"thinking": {"text": "First this."}, "text": "Let me look.",
         "tool_calls": [{"name": "quick", "arguments": {"n": 1}}]},
        {"tool_calls": [
            {"name": "wait", "arguments": {"n": 2}},
            {"name": "quick", "arguments": {"n": 3}}
        ]},
        {"text": "Done."}
    ]})
}

fn config(provider: &str) -> Value {
    json!({"provider": provider, "model": "m", "tools": [tool("quick"), tool("wait")],
           "auto_cache": false})
}

/// The messages of a request, wherever the provider has them.
fn messages(bench: &Bench, request: usize) -> Vec<Value> {
    let request = bench.model.requests().nth(request).expect("the request");
    let body: Value = serde_json::from_slice(&request.body).expect("JSON");
    let list = ["messages", "input", "contents"]
        .iter()
        .find_map(|name| body[name].as_array());
    list.expect("messages").clone()
}

/// A session that goes on from `record`, which has been JSON in between.
fn reopen(record: &SessionRecord, script: &Value, config: Value) -> Bench {
    let json = serde_json::to_string(record).expect("JSON");
    let record = SessionRecord::from_json(&json).expect("a record");
    let mut bench = Bench::recorded(script, config, record);
    bench.run();
    bench
}

fn kind<T>(result: Result<T, hermitcrab::session::SessionError>) -> Option<SessionErrorKind> {
    result.err().map(|error| error.kind)
}

/// A session in the middle of round 2: `quick` has given its result, `wait` not.
fn in_round_two(provider: &str) -> Bench {
    let mut bench = Bench::new(&script(), config(provider));
    bench.stuck = vec!["wait"];
    bench.submit("go");
    assert_eq!(
        bench.session.state(),
        SessionState::Processing,
        "{provider}"
    );
    bench
}

/// Cuts a session in round 2 and has another one go on: the model reads the
/// same as if the session had been interrupted there and gone on itself.
fn check_cut_in_round_two(provider: &str) {
    let mut whole = in_round_two(provider);
    whole.session.interrupt().expect("interrupt is legal");
    whole.run();
    whole.session.resume().expect("a round is open");
    whole.run();

    let cut = in_round_two(provider);
    let script = json!({"steps": [{"text": "Done."}]});
    let mut later = reopen(&cut.session.record(), &script, config(provider));
    assert_eq!(later.session.state(), SessionState::Idle, "{provider}");
    later.session.resume().expect("a round is open");
    later.run();
    let messages_read = messages(&later, 0);
    assert_eq!(messages_read, messages(&whole, 2), "{provider}");
    let text = serde_json::to_string(&messages_read).expect("JSON");
    for result in ["quick done", CUT_OFF] {
        assert!(text.contains(result), "{provider}: {text}");
    }
    let ends = later.data("PROCESSING_END");
    let fields = ["reason", "rounds", "turns"].map(|name| &ends[0][name]);
    assert_eq!(json!(fields), json!(["completed", 0, 3]), "{provider}");
    // What the first session used is not among what this one has.
    assert_eq!(ends[0]["totals"]["responses"], 1, "{provider}");
    assert_eq!(ends.len(), 1, "{provider}");
    assert!(later.data("USER_INPUT").is_empty(), "{provider}");
}

#[test]
fn anthropic_goes_on_in_the_middle_of_a_round() {
    check_cut_in_round_two("anthropic");
}

#[test]
fn openai_goes_on_in_the_middle_of_a_round() {
    check_cut_in_round_two("openai");
}

#[test]
fn gemini_goes_on_in_the_middle_of_a_round() {
    check_cut_in_round_two("gemini");
}

#[test]
fn chat_goes_on_in_the_middle_of_a_round() {
    check_cut_in_round_two("chat");
}

#[test]
fn another_provider_can_go_on() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    bench.submit("go");
    let mut later = reopen(
        &bench.session.record(),
        &json!({"steps": [{"text": "Yes."}]}),
        config("openai"),
    );
    later.submit("really?");
    let texts = serde_json::to_string(&messages(&later, 0)).expect("JSON");
    for text in ["Let me look.", "quick done", "wait done", "really?"] {
        assert!(texts.contains(text), "{text} is not in {texts}");
    }
}

/// One white pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg==";

#[test]
fn images_and_documents_are_in_the_record() {
    let image = || {
        let data = base64::engine::general_purpose::STANDARD.decode(PNG);
        Part::image(data.expect("base64"))
    };
    for provider in ["anthropic", "openai", "gemini", "chat"] {
        let mut bench = Bench::new(&json!({"steps": [{"text": "One."}]}), config(provider));
        let parts = vec![
            Part::text("See"),
            image(),
            Part::document("a").named("a.txt"),
        ];
        bench.session.submit(parts).expect("idle");
        bench.run();
        bench.session.steer(vec![image()]).expect("open");
        bench
            .session
            .follow_up(vec![Part::document("b")])
            .expect("open");
        let record = bench.session.record();
        let script = json!({"steps": [{"text": "Two."}, {"text": "Three."}]});
        let mut later = reopen(&record, &script, config(provider));
        assert_eq!(later.session.record().turns, record.turns, "{provider}");
        assert_eq!(
            later.session.record().follow_ups,
            record.follow_ups,
            "{provider}"
        );
        later.submit("on");
        let read = messages(&later, 0);
        let before = messages(&bench, 0);
        assert_eq!(read[..before.len()], before[..], "{provider}");
        let text = serde_json::to_string(&read).expect("JSON");
        assert_eq!(text.matches(PNG).count(), 2, "{provider}: {text}");
    }
}

#[test]
fn an_array_of_turns_is_a_record() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    bench.submit("go");
    let history = serde_json::to_string(&bench.session.history()).expect("JSON");
    let record = SessionRecord::from_json(&history).expect("a record");
    let mut later = Bench::recorded(
        &json!({"steps": [{"text": "Yes."}]}),
        config("anthropic"),
        record,
    );
    later.submit("really?");
    let before = messages(&bench, 2);
    let actual = messages(&later, 0);
    assert_eq!(actual[..before.len()], before);
    assert_eq!(actual.len(), before.len() + 2);
}

#[test]
fn an_input_that_had_not_begun_is_not_lost() {
    let bench = Bench::new(&script(), config("anthropic"));
    bench.session.submit("go").expect("submit is legal");
    let mut later = reopen(&bench.session.record(), &script(), config("anthropic"));
    later.session.resume().expect("the input is open");
    later.run();
    assert_eq!(
        messages(&later, 0),
        [json!({"role": "user", "content": [{"type": "text", "text": "go"}]})]
    );
}

#[test]
fn queues_go_on() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    bench.stuck = vec!["wait"];
    bench.submit("go");
    let queue = |session: &Session| {
        session.steer("in French").expect("steer is legal");
        session.add_system_turn("be brief").expect("legal");
        session.follow_up("and then?").expect("legal");
    };
    queue(&bench.session);
    let record = bench.session.record();
    let script = json!({"steps": [{"text": "Voilà."}, {"text": "Nothing."}]});
    let mut later = reopen(&record, &script, config("anthropic"));
    assert_eq!(
        later.session.record().follow_ups,
        record.follow_ups,
        "a record of a record"
    );
    later.session.resume().expect("a round is open");
    later.run();
    let injected = later.data("STEERING_INJECTED");
    assert_eq!(
        injected,
        [&json!({"id": 1, "source": "host", "content": "in French"})]
    );
    let inputs = later.data("USER_INPUT");
    assert_eq!(inputs, [&json!({"content": "and then?"})]);
    let texts = serde_json::to_string(&messages(&later, 1)).expect("JSON");
    assert!(texts.contains("be brief"), "{texts}");
}

#[test]
fn a_question_still_awaits_its_answer() {
    let script = json!({"steps": [{"text": "Which one?"}, {"text": "Done."}]});
    let mut bench = Bench::new(&script, config("anthropic"));
    bench.submit("go");
    let mut later = reopen(
        &bench.session.record(),
        &json!({"steps": [{"text": "Done."}]}),
        config("anthropic"),
    );
    assert_eq!(later.session.state(), SessionState::AwaitingInput);
    let nothing_open = Some(SessionErrorKind::IllegalState);
    assert_eq!(kind(later.session.resume()), nothing_open);
    later.session.answer("both").expect("answer is legal");
    later.run();
    assert_eq!(messages(&later, 0).len(), 3);
}

#[test]
fn an_interrupted_input_can_go_on_in_its_own_session() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    assert_eq!(
        kind(bench.session.resume()),
        Some(SessionErrorKind::IllegalState),
        "nothing is open yet"
    );
    bench.stuck = vec!["wait"];
    bench.submit("go");
    assert_eq!(
        kind(bench.session.resume()),
        Some(SessionErrorKind::IllegalState),
        "it is at work"
    );
    bench.session.interrupt().expect("interrupt is legal");
    bench.run();
    bench.session.resume().expect("a round is open");
    bench.run();
    assert_eq!(bench.data("PROCESSING_END")[1]["reason"], "completed");
}

#[test]
fn turns_of_before_count() {
    let mut bench = Bench::new(&script(), config("anthropic"));
    bench.submit("go");
    let mut config = config("anthropic");
    config["max_turns"] = json!(3);
    let mut later = reopen(&bench.session.record(), &script(), config);
    later.submit("more");
    assert_eq!(later.data("PROCESSING_END")[0]["reason"], "turn_limit");
}

#[test]
fn the_cache_of_before_is_used() {
    let openai = config("openai");
    let mut bench = Bench::new(&script(), openai.clone());
    bench.submit("go");
    let mut later = reopen(&bench.session.record(), &script(), openai);
    later.submit("more");
    let key = |bench: &Bench| {
        let request = bench.model.requests().next().expect("a request");
        let body: Value = serde_json::from_slice(&request.body).expect("JSON");
        body["prompt_cache_key"].clone()
    };
    assert!(key(&bench).is_string());
    assert_eq!(key(&later), key(&bench));
}
