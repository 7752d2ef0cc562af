//! `compare`, from outside.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};

use super::fork::{Recorded, bodies, hermitcrab, recorded, shared};
use super::{CANARY, Ran, scratch, serve, shell};

const OPUS: &str = "claude-opus-4-6";
const SONNET: &str = "claude-sonnet-4-5";

/// A step that only this model plays.
fn only(model: &str, mut step: Value) -> Value {
    step["match"] = json!({ "contains": model });
    step
}

/// In each of so many branches a model appends its word.
fn words(words: &[(&str, &str)], branches: usize) -> Value {
    let mut steps = Vec::new();
    for (model, word) in words {
        let command = format!("echo {word} >> a.txt");
        let mut writes = shell(&command);
        writes["match"] = json!({"contains": model, "not_contains": command});
        let mut ends = json!({"text": "written"});
        ends["match"] = json!({"contains": [model, command]});
        for _ in 0..branches {
            steps.extend([writes.clone(), ends.clone()]);
        }
    }
    steps.into()
}

fn compare(run: &Recorded, model: &ServeModel, round: u32, more: &[&str]) -> Ran {
    let (at, url) = (round.to_string(), model.url());
    let log = run.log.to_str().expect("UTF-8");
    let mut all = vec!["compare", log, "--at", &at, "--base-url", &url];
    all.extend(more);
    hermitcrab(&all)
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    fs::write(&path, text).expect("a file");
    path.to_str().expect("UTF-8").to_owned()
}

/// The objects of `--json`, by model and trial.
fn branches(stdout: &str) -> Vec<Value> {
    let lines = stdout.lines();
    let mut all: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    all.sort_by_key(|branch| (branch["model"].to_string(), branch["trial"].as_u64()));
    all
}

/// The cells of the lines of a table.
fn cells(stdout: &str) -> Vec<Vec<&str>> {
    let lines = stdout.lines();
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn a_table_with_a_line_for_each_model() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let check = write(
        directory.path(),
        "check.sh",
        "tail -n 1 a.txt | grep -q good\n",
    );
    let model = serve(words(&[(OPUS, "good"), (SONNET, "bad")], 2));
    let models = format!("{OPUS},{SONNET}");
    let more = ["--models", &models, "--trials", "2", "--check", &check];
    let ran = compare(&run, &model, 2, &more);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let table = cells(&ran.stdout);
    let head = "MODEL PASSED ROUNDS READ CACHED WRITTEN COST TIME DIFF";
    assert_eq!(table[0].join(" "), head);
    assert_eq!(table[1][..6], [OPUS, "2/2", "2", "200", "0", "40"]);
    assert_eq!(table[2][..6], [SONNET, "0/2", "2", "200", "0", "40"]);
    for row in &table[1..3] {
        assert!(row[6].starts_with("$0.00"), "{ran:?}");
        assert_eq!(row[9..], ["1", "file,", "+1", "−0"]);
    }
    assert_eq!(table[3].join(" "), "medians over the branches of a model");
    assert!(ran.stderr.contains("4 of 4: "), "{ran:?}");
    let why = format!("{SONNET}.1 failed: 2 rounds");
    assert!(ran.stderr.contains(&why), "{ran:?}");
    assert!(
        ran.stderr.contains("the checker ended with exit code 1"),
        "{ran:?}"
    );
    assert_eq!(model.requests().len(), 8);
}

#[test]
fn the_run_s_own_model_asks_what_the_run_asked() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let done = json!({"text": "other"});
    for round in [0, 2] {
        let model = serve(json!([done, done, done]));
        let ran = compare(&run, &model, round, &["--trials", "3"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(cells(&ran.stdout)[1][1], "3/3", "{ran:?}");
        // To the byte: the provider has that prefix in its cache.
        let at = usize::try_from(round).expect("small");
        assert_eq!(bodies(&model), vec![run.bodies[at].clone(); 3]);
    }
}

#[test]
fn a_message_comes_behind_the_same_bytes() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let done = json!({"text": "other"});
    let model = serve(json!([done, done]));
    let ran = compare(&run, &model, 2, &["--trials", "2", "--steer", "Use tabs."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = bodies(&model);
    assert_eq!(asked[0], asked[1]);
    assert!(String::from_utf8_lossy(&asked[0]).contains("Use tabs."));
    assert!(shared(&asked[0], &run.bodies[2]) > run.bodies[1].len() * 9 / 10);
    // Another model has the same conversation.
    let model = serve(json!([done]));
    let ran = compare(&run, &model, 2, &["--models", OPUS]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let request: Value = serde_json::from_slice(&bodies(&model)[0]).expect("JSON");
    let old: Value = serde_json::from_slice(&run.bodies[2]).expect("JSON");
    assert_eq!(request["model"], OPUS);
    assert_eq!(request["messages"], old["messages"]);
    assert_eq!(request["tools"], old["tools"]);
}

#[test]
fn another_provider_has_the_conversation_in_its_own_words() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let model = serve(words(
        &[(OPUS, "one"), ("gpt-5.2", "two"), ("llama3:8b", "three")],
        1,
    ));
    let models = format!("{OPUS},gpt-5.2,chat:llama3:8b");
    let ran = compare(&run, &model, 1, &["--models", &models, "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = branches(&ran.stdout);
    let who = |branch: &Value| format!("{} {}", branch["provider"], branch["model"]);
    let who: Vec<String> = all.iter().map(who).collect();
    assert_eq!(
        who,
        [
            r#""anthropic" "claude-opus-4-6""#,
            r#""openai" "gpt-5.2""#,
            r#""chat" "llama3:8b""#
        ]
    );
    for branch in &all {
        assert_eq!(branch["outcome"], "ended");
        assert_eq!(branch["passed"], Value::Null);
        assert_eq!(branch["rounds"], 2);
        assert_eq!(
            branch["diff"],
            json!({"files": 1, "added": 1, "removed": 0})
        );
        assert_eq!(branch["dir"], Value::Null);
    }
    let asked: Vec<Value> = bodies(&model)
        .iter()
        .map(|body| serde_json::from_slice(body).expect("JSON"))
        .collect();
    let of_openai = asked.iter().find(|body| body["model"] == "gpt-5.2");
    let input = of_openai.expect("a request")["input"]
        .as_array()
        .expect("items");
    let calls = input.iter().filter(|item| item["type"] == "function_call");
    assert_eq!(calls.count(), 1);
}

#[test]
fn branches_leave_their_files() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let check = write(
        directory.path(),
        "check.sh",
        "mkdir -p /logs/verifier; echo '{\"reward\": 0.5}' > /logs/verifier/reward.json\n",
    );
    let out = directory.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let model = serve(words(&[(OPUS, "word")], 1));
    let more = ["--models", OPUS, "--out", out, "--check", &check, "--json"];
    let ran = compare(&run, &model, 1, &more);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [branch] = &branches(&ran.stdout)[..] else {
        panic!("{ran:?}")
    };
    assert_eq!(branch["rewards"], json!({"reward": 0.5}));
    assert_eq!(branch["reason"], "the reward is 0.5");
    let dir = Path::new(out).join(branch["dir"].as_str().expect("a directory"));
    let read = |name: &str| fs::read(dir.join(name)).expect(name);
    let json = |name: &str| -> Value { serde_json::from_slice(&read(name)).expect("JSON") };
    assert_eq!(json("branch.json"), *branch);
    assert_eq!(json("check.json")["exit_code"], 0);
    assert!(String::from_utf8_lossy(&read("diff.patch")).contains("+word"));
    // The whole conversation; what came before the fork is a copy.
    let trajectory = json("trajectory.json");
    let steps = trajectory["steps"].as_array().expect("steps");
    let short = |step: &Value| {
        (
            step["source"].to_string(),
            step["is_copied_context"] == true,
        )
    };
    let short: Vec<_> = steps.iter().map(short).collect();
    let (user, agent) = (r#""user""#.to_owned(), r#""agent""#.to_owned());
    let expected = [
        (user, true),
        (agent.clone(), true),
        (agent.clone(), false),
        (agent, false),
    ];
    assert_eq!(short, expected);
    assert_eq!(trajectory["final_metrics"]["total_prompt_tokens"], 200);
    let log = dir.join("log.gz");
    let replayed = hermitcrab(&["replay", log.to_str().expect("UTF-8")]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    // No key is anywhere, and nothing is written over.
    for name in ["branch.json", "trajectory.json", "diff.patch"] {
        assert!(!String::from_utf8_lossy(&read(name)).contains(CANARY));
    }
    let again = compare(&run, &serve(json!([{"text": "x"}])), 1, &more);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.stderr.contains("exists already"), "{again:?}");
}

#[test]
fn the_files_are_those_of_the_round() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let b = write(directory.path(), "b", "edited\n");
    let check = write(
        directory.path(),
        "check.sh",
        "test \"$(cat a.txt b.txt)\" = \"$(printf 'a\\n1\\n2\\nedited')\"\n",
    );
    let edit = format!("b.txt={b}");
    let model = serve(json!([{"text": "other"}]));
    let ran = compare(&run, &model, 2, &["--edit", &edit, "--check", &check]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(cells(&ran.stdout)[1][1], "1/1", "{ran:?}");
}

#[test]
fn limits_and_failures_of_the_provider() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let go_on = json!([shell("true"), shell("true"), {"text": "done"}]);
    let limit = ["--max-rounds", "1", "--json"];
    let ran = compare(&run, &serve(go_on.clone()), 1, &limit);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let all = branches(&ran.stdout);
    assert_eq!(all[0]["outcome"], "limit", "{ran:?}");
    assert_eq!(all[0]["reason"], "the limit of 1 rounds is reached");
    let ran = compare(&run, &serve(go_on), 1, &["--max-turns", "2", "--json"]);
    assert_eq!(branches(&ran.stdout)[0]["outcome"], "limit", "{ran:?}");
    // One branch has no result; the other one counts.
    let refused = json!({"error": {"status": 401, "type": "authentication_error"}});
    let steps = json!([only(OPUS, refused), only(SONNET, json!({"text": "fine"}))]);
    let models = format!("{OPUS},{SONNET}");
    let ran = compare(&run, &serve(steps), 1, &["--models", &models]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let table = cells(&ran.stdout);
    assert_eq!(table[1][..4], [OPUS, "0/0", "1", "-"]);
    assert_eq!(table[2][..4], [SONNET, "1/1", "0", "1"]);
    let why = "hermitcrab: 1 branch has no result: its line above says why\n";
    assert!(ran.stderr.ends_with(why), "{ran:?}");
    // A budget of all branches together.
    let done = json!({"text": "fine"});
    let budget = [
        "--trials",
        "2",
        "--jobs",
        "1",
        "--budget-tokens",
        "100",
        "--json",
    ];
    let ran = compare(&run, &serve(json!([done, done])), 1, &budget);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let outcomes: Vec<_> = branches(&ran.stdout);
    assert_eq!(outcomes[0]["outcome"], "ended");
    let why = "the run's budget of 100 tokens is used up";
    assert_eq!(outcomes[1]["reason"], why);
}

#[test]
fn an_interrupt_keeps_what_has_ended() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let held = json!({"text": "late", "hold": "never"});
    let model = serve(json!([
        only(SONNET, held),
        only(OPUS, json!({"text": "fine"}))
    ]));
    let (log, url) = (run.log.to_str().expect("UTF-8"), model.url());
    let models = format!("{OPUS},{SONNET}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .args([
            "compare",
            log,
            "--at",
            "1",
            "--base-url",
            &url,
            "--models",
            &models,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary");
    let mut stderr = BufReader::new(child.stderr.take().expect("stderr"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("a line");
    assert!(
        line.starts_with("1 of 2: claude-opus-4-6.1 ended: "),
        "{line}"
    );
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    let output = child.wait_with_output().expect("an end");
    assert_eq!(output.status.code(), Some(130));
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    let table = cells(&stdout);
    assert_eq!(table.len(), 2, "{stdout}");
    assert_eq!(table[1][..2], [OPUS, "1/1"]);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let directory = scratch();
    let run = recorded(directory.path(), &["--env", "memory"]);
    let model = serve(json!([{"text": "other"}]));
    let twice = format!("{OPUS},anthropic:{OPUS}");
    for (round, arguments, expected) in [
        (9, &[][..], "the run has 4 rounds: name one of 0 to 4"),
        (4, &[], "say what comes next, with --steer TEXT"),
        (1, &["--models", &twice], "names claude-opus-4-6 twice"),
        (1, &["--models", "a,,b"], "an empty name"),
        (
            1,
            &["--models", "gemini:x", "--base-url", "nonsense"],
            "not an absolute http",
        ),
        (
            1,
            &["--check", "/nowhere/check.sh"],
            "cannot read /nowhere/check.sh",
        ),
        (1, &["--edit", "a.txt"], "write PATH=FILE"),
        (1, &["--steer", " "], "the prompt is empty"),
        (1, &["--provider", "acme"], "there is no provider \"acme\""),
        (1, &["--trials", "0"], "a whole number from 1 on"),
    ] {
        let ran = match arguments.contains(&"--base-url") {
            false => compare(&run, &model, round, arguments),
            true => {
                let log = run.log.to_str().expect("UTF-8");
                hermitcrab(&[&["compare", log, "--at", "1"], arguments].concat())
            }
        };
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(model.requests().len(), 0);
    let other = scratch();
    let local = recorded(other.path(), &[]);
    let ran = compare(&local, &model, 1, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("record a run with --env memory"),
        "{ran:?}"
    );
    let no_log = write(other.path(), "no.gz", "no log");
    let ran = hermitcrab(&["compare", &no_log, "--at", "1"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
