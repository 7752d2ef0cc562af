//! Runs that ask a provider, here the scripted model over loopback HTTP: retries,
//! budgets, and failures that are nobody's fault.

use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;

use super::*;

const KEY: &str = "sk-canary-eval-51b7e2f09c4d83a6";

fn serve(steps: &Value) -> ServeModel {
    let script = steps.to_string();
    let model = ScriptedModel::from_json(&script)
        .expect("a script")
        .looping();
    ServeModel::start(model, 0).expect("a model")
}

fn asked(place: &Place, model: &ServeModel, arguments: &[&str]) -> Ran {
    let url = model.url();
    let all = [
        &[
            "suite",
            "--out",
            "out",
            "--provider",
            "anthropic",
            "--base-url",
            &url,
        ],
        arguments,
    ];
    let mut command = place.command(&all.concat());
    command.env("ANTHROPIC_API_KEY", KEY);
    ran(command)
}

fn plain(place: &Place, names: &[&str]) {
    for name in names {
        place.write(&format!("suite/{name}/task.toml"), "instruction = \"x\"\n");
        place.write(&format!("suite/{name}/check.sh"), "true\n");
    }
}

#[test]
fn a_provider_answers_and_its_key_is_nowhere() {
    let place = Place::new();
    plain(&place, &["a", "b"]);
    let model = serve(&json!({"steps": [{"text": "fine"}]}));
    let ran = asked(&place, &model, &["--trials", "3"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.rows("out").len(), 6);
    assert_eq!(model.requests().len(), 6);
    let found = Command::new("grep")
        .args(["-ra", KEY])
        .arg(place.path("out"))
        .output();
    assert!(found.expect("grep").stdout.is_empty());
}

#[test]
fn what_the_provider_fails_at_is_tried_again_and_never_a_failure() {
    let place = Place::new();
    plain(&place, &["a"]);
    let fails = json!({"error": {"status": 529, "headers": {"retry-after": "0"}}});
    // The session tries three times by itself.
    let model = serve(&json!({"steps": [fails, fails, fails, {"text": "fine"}]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1"]);
    let rows = place.rows("out");
    assert_eq!(ends(&rows), [("a", "passed", None)], "{ran:?}");
    assert_eq!(rows[0]["attempts"], 2);
    assert!(ran.stderr.starts_with("retry a.1: "), "{ran:?}");

    let place = Place::new();
    plain(&place, &["a"]);
    let model = serve(&json!({"steps": [fails]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1", "--retries", "1"]);
    let rows = place.rows("out");
    assert_eq!(rows[0]["outcome"], "infra_error");
    assert_eq!(rows[0]["passed"], Value::Null);
    assert_eq!(ran.code, Some(1), "{ran:?}");
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let place = Place::new();
    plain(&place, &["a"]);
    let model =
        serve(&json!({"steps": [{"error": {"status": 401, "type": "authentication_error"}}]}));
    let ran = asked(&place, &model, &["--retry-delay-ms", "1"]);
    let rows = place.rows("out");
    assert_eq!(
        (&rows[0]["outcome"], &rows[0]["attempts"]),
        (&json!("infra_error"), &json!(1)),
        "{ran:?}"
    );
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_budget_ends_the_run_and_a_larger_one_goes_on() {
    let place = Place::new();
    plain(&place, &["a", "b", "c", "d"]);
    let model = serve(&json!({"steps": [{"text": "fine"}]}));
    let ran = asked(&place, &model, &["--jobs", "1", "--budget-tokens", "240"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "hermitcrab: the run's budget of 240 tokens is used up: go on with --resume and a larger one\n"
    );
    assert_eq!((place.rows("out").len(), model.requests().len()), (2, 2));
    let ran = asked(&place, &model, &["--jobs", "1", "--resume"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((place.rows("out").len(), model.requests().len()), (4, 4));
}

/// Answers each request with the same events.
fn serve_events(events: &[Value]) -> String {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let lines = events.iter().map(|event| format!("data: {event}\n\n"));
    let body = lines.collect::<String>() + "data: [DONE]\n\n";
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a length");
                }
                line.clear();
            }
            reader.read_exact(&mut vec![0; length]).expect("a request");
            let head =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
            write!(
                &stream,
                "{head}content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .expect("written");
        }
    });
    url
}

#[test]
fn token_ids_and_logprobs_are_in_the_trajectory() {
    let place = Place::new();
    plain(&place, &["a"]);
    let url = serve_events(&[
        json!({"id": "1", "model": "m", "prompt_token_ids": [1, 2, 3],
            "choices": [{"delta": {"role": "assistant", "content": ""}}]}),
        json!({"id": "1", "model": "m", "choices": [{"delta": {"content": "fi"},
            "token_ids": [10], "logprobs": {"content": [{"token": "fi", "logprob": -0.25}]}}]}),
        json!({"id": "1", "model": "m", "choices": [{"delta": {"content": "ne"},
            "token_ids": [11], "logprobs": {"content": [{"token": "ne", "logprob": -0.5}]},
            "finish_reason": "stop"}]}),
    ]);
    let asks = json!({"provider_options": {"chat": {"logprobs": true, "return_token_ids": true}}});
    place.write("config.json", &asks.to_string());
    let run = |out: &str, more: &[&str]| {
        let all = [
            "suite",
            "--out",
            out,
            "--provider",
            "chat",
            "--model",
            "m",
            "--base-url",
            &url,
        ];
        let mut command = place.command(&[&all[..], more].concat());
        command.env("CHAT_API_KEY", KEY);
        assert_eq!(ran(command).code, Some(0));
        let trajectory = place.read(&format!("{out}/trials/a.1/trajectory.json"));
        let trajectory: Value = serde_json::from_str(&trajectory).expect("JSON");
        let steps = trajectory["steps"].as_array().expect("steps").clone();
        let answer = steps.into_iter().find(|step| step["source"] == "agent");
        answer.expect("an answer")["metrics"].clone()
    };
    let metrics = run("out", &["--config", "config.json"]);
    assert_eq!(metrics["prompt_token_ids"], json!([1, 2, 3]));
    assert_eq!(metrics["completion_token_ids"], json!([10, 11]));
    assert_eq!(metrics["logprobs"], json!([-0.25, -0.5]));
    let metrics = run("unasked", &[]);
    assert_eq!(metrics.get("completion_token_ids"), None);
}
