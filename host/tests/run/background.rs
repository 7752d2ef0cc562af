//! Commands that a run leaves in the background.

use std::path::Path;
use std::time::Instant;

use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};

use super::{GUARD, command, scratch, serve, shell};

/// A command that goes on in the background.
fn background(text: &str) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": {
        "command": text, "run_in_background": true,
    }}]})
}

fn follow(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// What the model got for its calls, in order.
fn results(model: &ServeModel) -> Vec<String> {
    let requests = model.requests();
    let last: Value =
        serde_json::from_slice(&requests.last().expect("a request").body).expect("JSON");
    let messages = last["messages"].as_array().expect("messages").iter();
    let blocks = messages
        .filter_map(|message| message["content"].as_array())
        .flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| match &block["content"] {
            Value::String(text) => text.clone(),
            content => content[0]["text"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

#[test]
fn a_server_serves_while_the_model_goes_on() {
    let directory = scratch();
    let model = serve(json!([
        background("echo listening; echo up > up; while [ ! -e stop ]; do sleep 0.02; done; echo bye; exit 3"),
        shell("while [ ! -e up ]; do sleep 0.02; done; echo asked"),
        follow("command_output", json!({"command_id": 1})),
        shell("touch stop"),
        follow("command_output", json!({"command_id": 1, "wait_ms": 60_000})),
        {"text": "Done."},
    ]));
    let output = command(&model.url(), directory.path(), &["go"])
        .output()
        .expect("the binary");
    assert!(output.status.success(), "{output:?}");
    let results = results(&model);
    assert!(
        results[0].contains("Command 1 runs in the background"),
        "{results:?}"
    );
    assert!(results[1].starts_with("asked\n"), "{results:?}");
    assert!(results[2].contains("[runs since"), "{results:?}");
    assert!(results[4].contains("\n[exit code: 3"), "{results:?}");
    // What it printed comes when it has arrived: at the first question or at the next.
    let printed: String = [&results[2], &results[4]]
        .into_iter()
        .filter_map(|result| result.split('[').next())
        .filter(|text| *text != "(no new output)\n")
        .collect();
    assert_eq!(printed, "listening\nbye\n", "{results:?}");
}

#[test]
fn its_processes_end_with_it_or_with_the_session() {
    let directory = scratch();
    let left = |file: &str| {
        background(&format!(
            "sleep 300 & echo $! > {file}.part; mv {file}.part {file}; wait"
        ))
    };
    let wait = |file: &str| shell(&format!("while [ ! -e {file} ]; do sleep 0.02; done"));
    let model = serve(json!([
        left("one"),
        left("two"),
        wait("one"),
        wait("two"),
        follow("stop_command", json!({"command_id": 1})),
        shell("while kill -0 $(cat one) 2>/dev/null; do sleep 0.02; done; echo gone"),
        shell("kill -0 $(cat two) && echo alive"),
        {"text": "Done."},
    ]));
    let output = command(&model.url(), directory.path(), &["go"])
        .output()
        .expect("the binary");
    assert!(output.status.success(), "{output:?}");
    let results = results(&model);
    assert!(results[4].contains("[exit code: "), "{results:?}");
    assert!(results[5].contains("gone"), "{results:?}");
    assert!(results[6].contains("alive"), "{results:?}");
    let pid = std::fs::read_to_string(directory.path().join("two")).expect("a pid");
    let process = Path::new("/proc").join(pid.trim());
    let start = Instant::now();
    while process.exists() {
        assert!(start.elapsed() < GUARD, "{} is left", process.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_sandbox_has_none_unless_it_is_asked_for() {
    let directory = scratch();
    let done = json!({"text": "Done."});
    let model = serve(json!([done, done, done]));
    let run = |arguments: &[&str]| {
        let output = command(&model.url(), directory.path(), arguments).output();
        assert!(output.expect("the binary").status.success());
        let requests = model.requests();
        String::from_utf8_lossy(&requests.last().expect("a request").body).into_owned()
    };
    assert!(run(&["go"]).contains("run_in_background"));
    assert!(!run(&["--env", "memory", "go"]).contains("run_in_background"));
    let config = directory.path().join("config.json");
    std::fs::write(&config, r#"{"background_commands": false}"#).expect("a file");
    let config = config.to_str().expect("UTF-8");
    assert!(!run(&["--config", config, "go"]).contains("run_in_background"));
}
