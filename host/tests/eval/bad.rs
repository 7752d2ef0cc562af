//! Tasks, agents and checkers that go wrong: each in one sentence, and no other
//! trial notices.

use super::*;

/// A suite with a bad task `bad` beside a good one; how the bad one ends.
#[track_caller]
fn beside(place: &Place, arguments: &[&str], expected: (&str, &str)) {
    place.task("good", "", &[shell("echo hi > x")], "test -f x");
    let ran = place.run(&[&["--retries", "0"], arguments].concat());
    let rows = place.rows("out");
    assert_eq!(
        ends(&rows),
        [
            ("bad", expected.0, Some(expected.1)),
            ("good", "passed", None)
        ],
        "{ran:?}"
    );
}

#[test]
fn a_task_without_a_checker() {
    let place = Place::new();
    place.task("bad", "", &[], "true");
    std::fs::remove_file(place.path("suite/bad/check.sh")).expect("removed");
    beside(
        &place,
        &[],
        (
            "infra_error",
            "task bad has no checker: add check.sh, check.py or the folder expected/",
        ),
    );
}

#[test]
fn a_key_that_is_unknown() {
    let place = Place::new();
    place.task("bad", "modle = \"x\"\n", &[], "true");
    beside(
        &place,
        &[],
        (
            "infra_error",
            "task bad: task.toml line 3: unknown field `modle`, expected one of `instruction`, `provider`, `model`, `script`, `env`, `limits`, `programs`, `check`, `steps`",
        ),
    );
}

#[test]
fn a_tool_that_is_unknown() {
    let place = Place::new();
    let steps = [json!({"tool_calls": [{"name": "teleport", "arguments": {}}]})];
    place.task("bad", "", &steps, "exit 1");
    beside(
        &place,
        &[],
        ("failed", "the checker ended with exit code 1"),
    );
}

#[test]
fn a_script_that_ends_too_early() {
    let place = Place::new();
    place.task("bad", "", &[], "true");
    let script = json!({"steps": [shell("true")]}).to_string();
    place.write("suite/bad/solve.json", &script);
    place.task("good", "", &[shell("echo hi > x")], "test -f x");
    place.run(&["--retries", "0"]);
    let rows = place.rows("out");
    assert_eq!(rows[0]["outcome"], "agent_error");
    let reason = rows[0]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("the script has no step for request 2"),
        "{reason}"
    );
    assert_eq!(rows[1]["outcome"], "passed");
}

#[test]
fn an_agent_that_takes_all_memory_or_never_ends() {
    let place = Place::new();
    place.task(
        "bad",
        "",
        &[shell(
            "awk 'BEGIN{while(1) s = s \"xxxxxxxxxxxxxxxx\" s}'; jq -n 'last(repeat(1))'",
        )],
        "exit 1",
    );
    place.task("good", "", &[shell("echo hi > x")], "test -f x");
    place.run(&["--retries", "0", "--max-memory-mib", "64"]);
    let rows = place.rows("out");
    // Its command was ended, or with it the whole sandbox.
    assert!(
        ["failed", "limit"].contains(&rows[0]["outcome"].as_str().expect("an outcome")),
        "{rows:?}"
    );
    assert_eq!(rows[1]["outcome"], "passed");
}

#[test]
fn a_checker_that_writes_without_end() {
    let place = Place::new();
    place.task("bad", "", &[], "yes 0123456789 | head -c 1000000000");
    place.task("good", "", &[shell("echo hi > x")], "test -f x");
    place.run(&["--retries", "0"]);
    let rows = place.rows("out");
    assert_eq!(rows[0]["outcome"], "failed", "{rows:?}");
    assert_eq!(rows[1]["outcome"], "passed");
}

#[test]
fn python_that_is_not_there() {
    let place = Place::new();
    place.task("bad", "[programs]\npython3 = true\n", &[], "true");
    beside(
        &place,
        &[],
        (
            "infra_error",
            "the task needs Python: make it with `cargo xtask python`, and name the python.tar.gz with --python, or put it beside the binary",
        ),
    );
}

#[test]
fn a_model_that_nobody_plays() {
    let place = Place::new();
    place.write("suite/bad/task.toml", "instruction = \"x\"\n");
    place.write("suite/bad/check.sh", "true");
    beside(
        &place,
        &[],
        (
            "infra_error",
            "the task has no script, and no provider has a key: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, CHAT_API_KEY, or try `hermitcrab demo`, which needs none",
        ),
    );
}

#[test]
fn wrong_usage() {
    let place = Place::new();
    let check = |arguments: &[&str], expected: &str| {
        let ran = place.eval(arguments);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(expected), "{ran:?}");
    };
    check(
        &["nowhere", "--out", "out"],
        "the suite nowhere does not exist: name a folder of tasks or a .jsonl file",
    );
    check(
        &["suite", "--out", "out"],
        "suite holds no task: a task is a folder with a task.toml",
    );
    check(&["suite"], "--out");
    check(
        &["suite", "--out", "out", "--shard", "3/2"],
        "give the number of the shard and of all, such as 1/4",
    );
    check(
        &["suite", "--out", "out", "--seed", "12"],
        "give 64 hexadecimal digits",
    );
    check(
        &["regrade", "nowhere"],
        "cannot read nowhere/run.json: no such file or directory",
    );
    check(
        &["diff", "nowhere", "nowhere"],
        "nowhere holds no results: name the --out of a run",
    );
}

#[test]
fn a_hundred_thousand_tasks_are_an_index() {
    let place = Place::new();
    let mut lines = String::new();
    for number in 0..100_000 {
        lines += &format!(
            "{{\"name\":\"t{number}\",\"instruction\":\"x\",\"check\":\"true\",\"script\":{{\"steps\":[{{\"text\":\"a\"}}]}}}}\n"
        );
    }
    place.write("many.jsonl", &lines);
    let ran = place.eval(&["many.jsonl", "--out", "out", "--filter", "t9999"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.rows("out").len(), 11);
}
