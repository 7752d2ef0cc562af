//! `fork --from`, from outside: trajectories of ours and of other harnesses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::fork::{bodies, hermitcrab};
use super::{Ran, scratch, serve, shell};

const FOREIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/foreign.json");

/// Goes on from `round` of a trajectory in a sandbox with the files of `directory`; what
/// the model was asked.
fn fork(
    directory: &Path,
    from: &str,
    round: u32,
    steps: Value,
    more: &[&str],
) -> (Ran, Vec<Value>) {
    let model = serve(steps);
    let (at, url) = (round.to_string(), model.url());
    let dir = directory.to_str().expect("UTF-8");
    let mut all = vec!["fork", "--from", from, "--at", &at, "--quiet"];
    all.extend(["--base-url", &url, "--env", "memory", "--dir", dir]);
    all.extend(more);
    let ran = hermitcrab(&all);
    let asked = bodies(&model);
    let asked = asked
        .iter()
        .map(|body| serde_json::from_slice(body).expect("JSON"));
    (ran, asked.collect())
}

/// The messages of a request without marks of the cache.
fn messages(request: &Value) -> Vec<Value> {
    fn without_marks(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("cache_control");
                fields.values_mut().for_each(without_marks);
            }
            Value::Array(all) => all.iter_mut().for_each(without_marks),
            _ => {}
        }
    }
    let mut messages = request["messages"].clone();
    without_marks(&mut messages);
    messages.as_array().expect("messages").clone()
}

#[test]
fn a_trajectory_of_an_evaluation_goes_on() {
    let place = scratch();
    let at = |name: &str| place.path().join(name);
    fs::create_dir_all(at("suite/t/files")).expect("a folder");
    let read = json!({"tool_calls": [{"name": "read_file", "arguments": {"file_path": "a.txt"}}]});
    let steps = json!([
        {"text": "I look.", "tool_calls": [
            {"name": "shell", "arguments": {"command": "echo one; ls nowhere"}},
            {"name": "no_such_tool", "arguments": {"x": 1}},
        ]},
        read,
        shell("echo two > a.txt"),
        {"text": "done"},
    ]);
    for (name, text) in [
        (
            "task.toml",
            "instruction = \"Do it.\"\nscript = \"solve.json\"\n",
        ),
        ("files/a.txt", "one\n"),
        ("check.sh", "true\n"),
        ("solve.json", &json!({ "steps": steps }).to_string()),
    ] {
        fs::write(at("suite/t").join(name), text).expect("a file");
    }
    let (suite, out) = (at("suite"), at("out"));
    let ran = hermitcrab(&[
        "eval",
        suite.to_str().expect("UTF-8"),
        "--out",
        out.to_str().expect("UTF-8"),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let trial = at("out/trials/t.1");
    let (trajectory, log) = (trial.join("trajectory.json"), trial.join("log.gz"));
    let trajectory = trajectory.to_str().expect("UTF-8");
    for round in 0..=3 {
        let answer = json!([{"text": "other"}]);
        let (ran, asked) = fork(&at("suite/t/files"), trajectory, round, answer.clone(), &[]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with("other\n"), "{ran:?}");
        // The same conversation as that of the log.
        let model = serve(answer);
        let (at, url) = (round.to_string(), model.url());
        let log = log.to_str().expect("UTF-8");
        let of_log = hermitcrab(&["fork", log, "--at", &at, "--base-url", &url]);
        assert_eq!(of_log.code, Some(0), "{of_log:?}");
        let of_log: Value = serde_json::from_slice(&bodies(&model)[0]).expect("JSON");
        assert_eq!(messages(&asked[0]), messages(&of_log), "round {round}");
    }
    // The files are those of the directory, and the run is like any other.
    let record = at("again.log.gz");
    let record = record.to_str().expect("UTF-8");
    let steps = json!([shell("cat a.txt"), {"text": "other"}]);
    let more = ["--record", record, "And", "--max-turns", "9"];
    let (ran, asked) = fork(&at("suite/t/files"), trajectory, 4, steps, &more);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("not the files"), "{ran:?}");
    let last = messages(&asked[1]).pop().expect("a message");
    assert!(last.to_string().contains("one\\n"), "{last}");
    assert_eq!(hermitcrab(&["replay", record]).code, Some(0));
}

#[test]
fn a_foreign_trajectory_goes_on() {
    let place = scratch();
    let other = json!([{"text": "other"}]);
    let (ran, asked) = fork(place.path(), FOREIGN, 2, other.clone(), &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr.lines().nth(1),
        Some(
            "hermitcrab: left out of the trajectory: its system prompt; reasoning, which no \
             provider takes without its signature; the trajectories of subagents; 1 audio; \
             1 image"
        )
    );
    let asked = &asked[0];
    assert!(!asked["system"].to_string().contains("Terminal Walker"));
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let result = |id: &str, content: &str| json!({"type": "tool_result", "tool_use_id": id, "content": content});
    let task = "Look at the picture and fix greet.sh.\n[image, left out]\n[audio, left out]";
    let keys = |keys: &str| json!({ "keys": keys });
    let expected = json!([
        {"role": "user", "content": [text(task)]},
        {"role": "assistant", "content": [
            call("call_0", "read_file", json!({"path": "greet.sh"})),
            call("call_0_2", "keys", json!({})),
        ]},
        {"role": "user", "content": [
            result("call_0", "echo helo"),
            result("call_0_2", "a\nb"),
            text("Be quick."),
        ]},
        {"role": "assistant", "content": [
            text("I write."),
            call("call_0_3", "keys", keys("echo hello > greet.sh\n")),
            call("call_1", "keys", keys("cat greet.sh\n")),
            call("call_2", "keys", keys("exit\n")),
        ]},
        {"role": "user", "content": [
            result("call_0_3", ""),
            result("call_1", "echo hello"),
            result("call_2", "(no result is recorded)"),
        ]},
    ]);
    assert_eq!(Value::from(messages(asked)), expected);
    // A message comes behind that.
    let (ran, asked) = fork(place.path(), FOREIGN, 2, other.clone(), &["--steer", "On."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut expected = expected;
    let last = expected[4]["content"].as_array_mut().expect("blocks");
    last.push(text("On."));
    assert_eq!(Value::from(messages(&asked[0])), expected);
    // Every provider takes it.
    for provider in ["openai", "gemini", "chat"] {
        let more = ["--provider", provider, "--model", "m"];
        let (ran, asked) = fork(
            place.path(),
            FOREIGN,
            4,
            other.clone(),
            &[&more[..], &["On."]].concat(),
        );
        assert_eq!(ran.code, Some(0), "{provider}: {ran:?}");
        assert!(
            asked[0].to_string().contains("The walk is over."),
            "{provider}"
        );
    }
}

#[test]
fn it_goes_on_in_a_directory() {
    let place = scratch();
    fs::write(place.path().join("a.txt"), "here\n").expect("a file");
    let model = serve(json!([shell("cat a.txt; echo b > b.txt"), {"text": "other"}]));
    let (dir, url) = (place.path().to_str().expect("UTF-8"), model.url());
    let ran = hermitcrab(&[
        "fork",
        "--from",
        FOREIGN,
        "--at",
        "3",
        "--dir",
        dir,
        "--base-url",
        &url,
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr.contains(&format!("with the files of {dir}")),
        "{ran:?}"
    );
    assert!(String::from_utf8_lossy(&bodies(&model)[1]).contains("here\\n"));
    assert!(place.path().join("b.txt").exists());
}

#[test]
fn an_input_that_is_done_needs_another_one() {
    let place = scratch();
    let other = json!([{"text": "other"}]);
    let (ran, asked) = fork(place.path(), FOREIGN, 4, other.clone(), &[]);
    assert_eq!((ran.code, asked.len()), (Some(2), 0), "{ran:?}");
    assert!(ran.stderr.contains("say what comes next"), "{ran:?}");
    let b = place.path().join("b");
    fs::write(&b, "edited\n").expect("a file");
    let edit = format!("b.txt={}", b.display());
    for message in [&["--steer", "On."][..], &["On."]] {
        let more = [&["--edit", &edit][..], message].concat();
        let steps = json!([shell("cat b.txt"), {"text": "other"}]);
        let (ran, asked) = fork(place.path(), FOREIGN, 4, steps, &more);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let all = messages(&asked[0]);
        let last = all.last().expect("a message");
        // What followed in the trajectory is not there.
        assert_eq!(last["content"][0]["text"], "On.", "{last}");
        assert!(asked[1].to_string().contains("edited\\n"));
    }
}

#[test]
fn trajectories_that_are_none_are_refused() {
    let place = scratch();
    let file = place.path().join("t.json");
    let path = file.to_str().expect("UTF-8");
    let step = |step: Value| json!({"schema_version": "ATIF-v1.7", "steps": [step]}).to_string();
    let result = json!({"source": "agent", "message": "", "observation":
        {"results": [{"source_call_id": "c9", "content": "x"}]}});
    for (text, round, expected) in [
        ("{", 0, "it is not JSON: "),
        ("[]", 0, "it is not a trajectory in ATIF: it has no `steps`"),
        (r#"{"steps": []}"#, 0, "it has no `steps`"),
        (r#"{"messages": [{}]}"#, 0, "it has no `steps`"),
        (
            r#"{"schema_version": "ATIF-v2.0", "steps": [{}]}"#,
            0,
            "it is in ATIF-v2.0, and this version reads ATIF-v1.0 to ATIF-v1.8",
        ),
        (
            r#"{"schema_version": 7, "steps": [{}]}"#,
            0,
            "names another format",
        ),
        (
            &step(json!({"source": "tool"})),
            0,
            "step 1 is not as ATIF has it: unknown variant `tool`",
        ),
        (
            &step(json!({"source": "user", "message": 1})),
            0,
            "step 1 is not as ATIF has it",
        ),
        (
            &step(result),
            1,
            "step 1 has a result for the call \"c9\", which it does not make",
        ),
        (
            &step(json!({"source": "user", "message": "x"})),
            1,
            "name round 0",
        ),
        (
            &step(json!({"source": "agent", "message": "x"})),
            2,
            "1 round: name 0 or 1",
        ),
    ] {
        fs::write(&file, text).expect("a file");
        let (ran, asked) = fork(place.path(), path, round, json!([{"text": "x"}]), &["On."]);
        assert_eq!((ran.code, asked.len()), (Some(2), 0), "{text}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{text}: {ran:?}");
        assert!(
            ran.stderr
                .starts_with(&format!("hermitcrab: --from {path}: ")),
            "{ran:?}"
        );
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
    }
    let (ran, _) = fork(
        place.path(),
        "/nowhere.json",
        0,
        json!([{"text": "x"}]),
        &[],
    );
    let why = "hermitcrab: cannot read --from /nowhere.json: no such file or directory\n";
    assert_eq!(ran, super::ran(2, "", why));
    let (ran, _) = fork(place.path(), FOREIGN, 7, json!([{"text": "x"}]), &[]);
    assert!(
        ran.stderr.contains("has 5 rounds: name one of 0 to 5"),
        "{ran:?}"
    );
    let (ran, _) = fork(
        place.path(),
        FOREIGN,
        1,
        json!([{"text": "x"}]),
        &["a", "b"],
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let local = hermitcrab(&["fork", "--from", FOREIGN, "--at", "1", "--edit", "a=b"]);
    assert!(
        local.stderr.contains("--edit needs --env memory"),
        "{local:?}"
    );
    let neither = hermitcrab(&["fork", "--at", "1"]);
    assert_eq!(neither.code, Some(2), "{neither:?}");
}
