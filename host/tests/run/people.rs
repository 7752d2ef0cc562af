//! What a person sees of a run beside the answer, and what comes in by a pipe.

use std::fs;

use serde_json::{Value, json};

use super::{Ran, command, finish, loud_command, scratch, serve, shell};

/// A run that is not quiet.
fn run(steps: Value, arguments: &[&str], stdin: &[u8]) -> (Ran, Vec<String>) {
    let directory = scratch();
    let model = serve(steps);
    let command = loud_command(&model.url(), directory.path(), arguments);
    let ran = finish(command, stdin);
    let bodies = model.requests().into_iter();
    let bodies = bodies.map(|request| String::from_utf8_lossy(&request.body).into_owned());
    (ran, bodies.collect())
}

#[test]
fn header_output_of_failures_diffs_and_totals() {
    let edit = json!({"tool_calls": [{"name": "write_file",
        "arguments": {"file_path": "a", "content": "one\n"}}]});
    let steps = json!([shell("echo broken >&2; exit 3"), edit, {"text": "Done."}]);
    let (ran, _) = run(steps.clone(), &["x"], b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<_> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.stderr);
    assert!(
        lines[0].starts_with("hermitcrab: anthropic · "),
        "{}",
        ran.stderr
    );
    assert!(lines[1].starts_with("2 tool rounds · "), "{}", ran.stderr);
    for part in [
        "(exit 3, ",
        "\n    broken\n* write_file: a (",
        ")\n    +one\n",
    ] {
        assert!(ran.stdout.contains(part), "{part:?}: {}", ran.stdout);
    }
    let (ran, _) = run(steps.clone(), &["-q", "x"], b"");
    assert_eq!(ran.stderr, "");
    assert!(!ran.stdout.contains("\n    "), "{}", ran.stdout);
    // Events are for programs.
    let (ran, _) = run(steps, &["--json", "x"], b"");
    assert_eq!(ran.stderr, "");
    let is_event = |line: &str| serde_json::from_str::<Value>(line).is_ok();
    assert!(ran.stdout.lines().all(is_event), "{}", ran.stdout);
}

#[test]
fn what_is_piped_beside_a_prompt_reaches_the_model() {
    let steps = || json!([{"text": "ok"}]);
    let (ran, bodies) = run(steps(), &["-q", "explain"], b"line 1\nline 2\n");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let expected = r"explain\n\n<stdin>\nline 1\nline 2\n</stdin>";
    assert!(bodies[0].contains(expected), "{}", bodies[0]);
    let (_, bodies) = run(steps(), &["-q", "explain"], b"");
    assert!(!bodies[0].contains("<stdin>"), "{}", bodies[0]);
    let long = "x".repeat(1 << 20);
    let (ran, bodies) = run(steps(), &["-q", "explain"], long.as_bytes());
    assert_eq!(
        ran.stderr,
        "! stdin is too long for a prompt: 786432 bytes in its middle are left out; put what is \
         long into a file that the model can read\n"
    );
    assert!(bodies[0].contains("[... 786432 bytes left out ...]"));
}

/// Programs that start this one often leave a pipe open into which they never
/// write.
#[test]
fn an_open_pipe_does_not_hold_a_run() {
    let directory = scratch();
    let model = serve(json!([{"text": "ok"}]));
    let mut child = command(&model.url(), directory.path(), &["x"])
        .spawn()
        .expect("the binary");
    let stdin = child.stdin.take().expect("stdin");
    let output = child.wait_with_output().expect("an end");
    drop(stdin);
    assert_eq!(output.status.code(), Some(0));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("nothing has come from stdin for 5 s"),
        "{stderr}"
    );
}

#[test]
fn the_last_answer_in_a_file_and_in_a_form() {
    let directory = scratch();
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (answer, form) = (path("answer"), path("form.json"));
    fs::write(&answer, "older").expect("a file");
    fs::write(&form, r#"{"type": "object", "required": ["legs"]}"#).expect("a file");
    let last = || fs::read_to_string(&answer).expect("a file");
    let last_message = ["--output-last-message", &answer];

    let steps = json!([shell("echo hi"), {"text": "All is well.\n"}]);
    let (ran, _) = run(steps, &[&last_message[..], &["go"]].concat(), b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(last(), "All is well.\n");

    let schema = ["--output-schema", &form, "go"];
    let all = [&last_message[..], &schema].concat();
    let steps = json!([{"text": "ten"}, {"text": "```json\n{\"legs\": 10}\n```"}]);
    let (ran, asked) = run(steps, &all, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(last(), "{\"legs\":10}\n");
    assert!(asked[1].contains("the answer is not JSON"), "{asked:?}");

    let steps = json!([{"text": "ten"}, {"text": "{}"}, {"text": "eight"}]);
    let (ran, _) = run(steps, &all, b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let told = "the final answer does not follow `output_schema`, after 2 corrections";
    assert!(ran.stderr.contains(told), "{ran:?}");

    for (content, told) in [
        ("{", "--output-schema: not valid JSON"),
        (r#"{"type": "legs"}"#, "output_schema"),
    ] {
        fs::write(&form, content).expect("a file");
        let (ran, _) = run(json!([{"text": "ten"}]), &schema, b"");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(told), "{ran:?}");
    }
    let (ran, _) = run(
        json!([{"text": "ten"}]),
        &["--output-last-message", "/proc/x", "go"],
        b"",
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("cannot write --output-last-message /proc/x"),
        "{ran:?}"
    );
}
