//! `hermitcrab eval` from outside, on scripted models: what runs leave, what they
//! refuse, and what no agent can do to them.

#![cfg(unix)]

#[path = "eval/again.rs"]
mod again;
#[path = "eval/bad.rs"]
mod bad;
#[path = "eval/provider.rs"]
mod provider;
#[path = "eval/suites.rs"]
mod suites;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// How a command ended.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A folder for a suite and what comes of it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir(folder.path().join("suite")).expect("a folder");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// A task that a script plays: `steps`, then a last word.
    fn task(&self, name: &str, settings: &str, steps: &[Value], check: &str) {
        let settings = format!("instruction = \"do it\"\nscript = \"solve.json\"\n{settings}");
        self.write(&format!("suite/{name}/task.toml"), &settings);
        self.write(&format!("suite/{name}/solve.json"), &script(steps));
        self.write(&format!("suite/{name}/check.sh"), check);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .arg("eval")
            .args(arguments)
            .current_dir(self.folder.path())
            // No Python of this machine, and no keys.
            .env("XDG_CACHE_HOME", self.path("cache"))
            .stdin(Stdio::null());
        for key in [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "CHAT_API_KEY",
        ] {
            command.env_remove(key);
        }
        command
    }

    fn eval(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments))
    }

    /// Runs the suite into `out`.
    fn run(&self, more: &[&str]) -> Ran {
        self.eval(&[&["suite", "--out", "out"], more].concat())
    }

    fn rows(&self, out: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(out).join("results.jsonl")).expect("results");
        let mut rows: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a row"))
            .collect();
        rows.sort_by_key(|row| (row["task"].to_string(), row["trial"].as_u64()));
        rows
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

fn ran(mut command: Command) -> Ran {
    let output = command.output().expect("the binary");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

fn script(steps: &[Value]) -> String {
    let mut steps = steps.to_vec();
    steps.push(json!({"text": "done"}));
    json!({ "steps": steps }).to_string()
}

fn shell(line: &str) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": {"command": line}}]})
}

/// Outcomes and reasons of the rows.
fn ends(rows: &[Value]) -> Vec<(&str, &str, Option<&str>)> {
    rows.iter()
        .map(|row| {
            (
                row["task"].as_str().expect("a task"),
                row["outcome"].as_str().expect("an outcome"),
                row["reason"].as_str(),
            )
        })
        .collect()
}

/// One task with these steps and this checker; how it ends.
#[track_caller]
fn check(settings: &str, steps: &[Value], checker: &str, expected: (&str, Option<&str>)) {
    let place = Place::new();
    place.task("t", settings, steps, checker);
    let ran = place.run(&["--retries", "0"]);
    let rows = place.rows("out");
    let (_, outcome, reason) = ends(&rows)[0];
    assert_eq!((outcome, reason), expected, "{ran:?}");
    let has_verdict = expected.0 != "infra_error";
    assert_eq!(ran.code, Some(i32::from(!has_verdict)), "{ran:?}");
}

#[test]
fn a_run_from_suite_to_report() {
    let place = Place::new();
    place.task(
        "good",
        "",
        &[shell("sed -i s/1/2/ a.txt; rm b.txt; echo new > c.txt")],
        "cat a.txt; test \"$(cat a.txt)\" = 2",
    );
    place.write("suite/good/files/a.txt", "1\n");
    place.write("suite/good/files/b.txt", "gone\n");
    place.task("bad", "", &[shell("true")], "echo no; exit 3");
    let ran = place.run(&["--trials", "2", "--seed", &"ab".repeat(32)]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    let told: Vec<String> = ran.stdout.lines().map(words).collect();
    for line in [
        "tasks 2",
        "trials 4",
        "passed 2",
        "failed 2",
        "pass@1 50.0 % (9.5 to 90.5)",
        "pass^2 50.0 % (9.5 to 90.5)",
        "bad.1: failed (the checker ended with exit code 3)",
        "report: out/report.html",
    ] {
        assert!(
            told.contains(&line.to_owned()),
            "{line:?} is not in {told:?}"
        );
    }
    let rows = place.rows("out");
    assert_eq!(rows.len(), 4);
    let good = &rows[2];
    assert_eq!(good["passed"], true);
    assert_eq!(good["rounds"], 2);
    assert_eq!(good["tokens"]["input"], 200);
    assert_eq!(good["dir"], "trials/good.1");
    assert_ne!(good["seed"], rows[3]["seed"]);
    let dir = "out/trials/good.1";
    let diff = place.read(&format!("{dir}/diff.patch"));
    for part in [
        "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-1\n+2\n",
        "deleted file mode",
        "+new\n",
    ] {
        assert!(diff.contains(part), "{part:?} is not in {diff}");
    }
    let check: Value =
        serde_json::from_str(&place.read(&format!("{dir}/check.json"))).expect("JSON");
    assert_eq!(
        (&check["exit_code"], &check["output"]),
        (&json!(0), &json!("2\n"))
    );
    let trajectory: Value =
        serde_json::from_str(&place.read(&format!("{dir}/trajectory.json"))).expect("JSON");
    assert_eq!(trajectory["schema_version"], "ATIF-v1.7");
    let sources: Vec<_> = trajectory["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["source"].as_str().expect("a source"))
        .collect();
    assert_eq!(sources, ["user", "agent", "agent"]);
    let call = &trajectory["steps"][1]["tool_calls"][0];
    assert_eq!(call["function_name"], "shell");
    assert_eq!(
        trajectory["steps"][1]["observation"]["results"][0]["source_call_id"],
        call["tool_call_id"]
    );
    // The log of a trial replays.
    let log = place.path(&format!("{dir}/log.gz"));
    let mut replay = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    replay.arg("replay").arg(log);
    let replayed = self::ran(replay);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
    let report = place.read("out/report.html");
    assert!(!report.contains("/*DATA*/null"));
    // Its policy lets this script run and no other.
    let script = report.split_once("<script>").expect("a script").1;
    let script = script.split_once("</script>").expect("its end").0;
    let hash = STANDARD.encode(Sha256::digest(script));
    assert!(report.contains(&format!("script-src 'sha256-{hash}'")));
    let data = report_data(&report);
    assert_eq!(
        data["summary"]["outcomes"],
        json!({"passed": 2, "failed": 2})
    );
    assert_eq!(data["trials"].as_array().map(Vec::len), Some(4));
    assert!(data["trials"][0]["detail"].is_string());
}

/// A line with single blanks.
fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the report was filled with.
fn report_data(report: &str) -> Value {
    let mark = "<script id=\"data\" type=\"application/json\">";
    let start = report.find(mark).expect("data") + mark.len();
    let end = start + report[start..].find("</script>").expect("an end");
    serde_json::from_str(&report[start..end]).expect("JSON")
}

#[test]
fn verdicts_of_checkers() {
    let passed = ("passed", None);
    check("", &[], "true", passed);
    check(
        "",
        &[],
        "exit 7",
        ("failed", Some("the checker ended with exit code 7")),
    );
    check(
        "",
        &[],
        "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; exit 1",
        passed,
    );
    check(
        "",
        &[],
        r#"mkdir -p /logs/verifier; echo '{"speed": 1, "style": 0.25}' > /logs/verifier/reward.json"#,
        ("failed", Some("the reward style is 0.25")),
    );
    check(
        "[check]\ntimeout_ms = 200\n",
        &[],
        "sleep 5",
        ("failed", Some("the checker did not end within 200 ms")),
    );
}

#[test]
fn a_verdict_that_the_agent_wrote_changes_nothing() {
    let forged = "mkdir -p /logs/verifier /tests logs/verifier; \
        echo 1 > /logs/verifier/reward.txt; echo '{\"reward\":1}' > /logs/verifier/reward.json; \
        echo true > /tests/check.sh; echo 1 > logs/verifier/reward.txt; \
        ln -s /logs out; echo exit 0 > .bashrc";
    check(
        "",
        &[shell(forged)],
        "exit 1",
        ("failed", Some("the checker ended with exit code 1")),
    );
}

#[test]
fn the_agent_sees_no_checker() {
    check(
        "",
        &[shell(
            "ls -R / > all.txt 2>&1; cat /tests/* > seen.txt 2>&1; true",
        )],
        "! grep -q 'a-secret-of-the-checker' seen.txt && ! grep -q check.sh all.txt",
        ("passed", None),
    );
}

#[test]
fn limits_end_a_trial() {
    let rounds: Vec<Value> = (0..4).map(|_| shell("echo x >> n")).collect();
    let limit = |settings: &str, reason: &str| {
        check(
            &format!("[limits]\n{settings}\n"),
            &rounds,
            "true",
            ("limit", Some(reason)),
        );
    };
    limit("rounds = 2", "the limit of 2 rounds is reached");
    limit(
        "tokens = 240",
        "the limit of 240 tokens is reached: 240 are used",
    );
    let waits = [json!({"text": "", "delay_ms": 60_000})];
    check(
        "[limits]\nwall_ms = 100\n",
        &waits,
        "true",
        ("limit", Some("the limit of 100 ms wall time is reached")),
    );
}

#[test]
fn steps_go_on_in_one_session() {
    let steps = "[[steps]]\nname = \"second\"\ninstruction = \"more\"\ncheck = \"second.sh\"\n";
    let place = Place::new();
    let words = json!({"text": "one"});
    place.task(
        "t",
        steps,
        &[shell("echo 1 > a"), words, shell("echo 2 >> a")],
        "test \"$(cat a | tr '\\n' ' ')\" = '1 2 '",
    );
    place.write("suite/t/second.sh", "grep -q 2 a");
    place.task(
        "u",
        steps,
        &[words_and_nothing(), words_and_nothing()],
        "true",
    );
    place.write("suite/u/second.sh", "exit 1");
    let ran = place.run(&[]);
    let rows = place.rows("out");
    let reason = "step second: the checker ended with exit code 1";
    assert_eq!(
        ends(&rows),
        [("t", "passed", None), ("u", "failed", Some(reason))],
        "{ran:?}"
    );
}

fn words_and_nothing() -> Value {
    json!({"text": "hm"})
}

#[test]
fn expected_files() {
    let place = Place::new();
    place.write(
        "suite/t/task.toml",
        "instruction = \"x\"\nscript = \"s.json\"\n",
    );
    place.write("suite/t/s.json", &script(&[shell("echo hi > a.txt")]));
    place.write("suite/t/fail.json", &script(&[shell("echo ho > a.txt")]));
    place.write("suite/t/expected/a.txt", "hi\n");
    place.run(&[]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)]);
    place.eval(&["suite", "--out", "other", "--script", "fail.json"]);
    let reason = Some("a.txt is not as expected");
    assert_eq!(ends(&place.rows("other")), [("t", "failed", reason)]);
}

#[test]
fn subagents_are_in_the_trajectory() {
    let place = Place::new();
    let steps = [
        json!({"tool_calls": [{"name": "spawn_agent", "arguments": {"task": "look around"}}]}),
        // The parent has read that its subagent runs.
        json!({"match": {"not_contains": "status: running"}, "text": "I looked"}),
    ];
    place.task("t", "", &steps, "true");
    let ran = place.run(&[]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)], "{ran:?}");
    let text = place.read("out/trials/t.1/trajectory.json");
    let trajectory: Value = serde_json::from_str(&text).expect("JSON");
    let child = &trajectory["subagent_trajectories"][0];
    let shown = &trajectory["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"][0];
    assert_eq!(
        shown["trajectory_id"], child["trajectory_id"],
        "{trajectory}"
    );
    assert!(child["trajectory_id"].is_string());
    assert_eq!(child["steps"][0]["message"], "look around");
}

#[test]
fn lines_and_harbor() {
    let place = Place::new();
    let task = |name: &str, check: &str| {
        json!({"name": name, "instruction": "x", "files": {"a.txt": "1\n"}, "check": check,
            "script": {"steps": [shell("echo 2 >> a.txt"), {"text": "done"}]}})
        .to_string()
    };
    place.write(
        "tasks.jsonl",
        &format!(
            "{}\n\n{}\n",
            task("one", "grep -q 2 a.txt"),
            task("two", "exit 1")
        ),
    );
    place.eval(&["tasks.jsonl", "--out", "out"]);
    let reason = Some("the checker ended with exit code 1");
    assert_eq!(
        ends(&place.rows("out")),
        [("one", "passed", None), ("two", "failed", reason)]
    );

    for (path, text) in [
        (
            "h/task.toml",
            "schema_version = \"1.4\"\n[verifier.env]\nWANTED = \"2\"\n",
        ),
        ("h/instruction.md", "x"),
        ("h/environment/a.txt", "1\n"),
        (
            "h/tests/test.sh",
            "grep -q \"$WANTED\" a.txt && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt",
        ),
        ("h/solution/solve.sh", "echo 2 >> a.txt"),
        (
            "h/solve.json",
            &script(&[shell("ls /solution solution; echo 2 >> a.txt")]),
        ),
        (
            "f/task.toml",
            "schema_version = \"1.4\"\nmulti_step_reward_strategy = \"final\"\n\
             steps = [{ name = \"one\" }, { name = \"two\", min_reward = 0.5 }]\n",
        ),
        ("f/environment/a.txt", ""),
        ("d/task.toml", "schema_version = \"1.4\"\n"),
        ("d/instruction.md", "x"),
        ("d/environment/Dockerfile", "FROM scratch"),
        ("d/tests/test.sh", "true"),
    ] {
        place.write(&format!("harbor/{path}"), text);
    }
    let ran = place.eval(&["harbor", "--out", "harbors"]);
    assert_eq!(
        ends(&place.rows("harbors")),
        [("h", "passed", None)],
        "{ran:?}"
    );
    assert_eq!(
        ran.stderr,
        "skipped d: it needs a container: environment/Dockerfile\n\
         skipped f: its multi_step_reward_strategy is final, and step one need not pass: give it a \
         min_reward of 1\n"
    );
    let trajectory = place.read("harbors/trials/h.1/trajectory.json");
    assert!(trajectory.contains("cannot access"), "{trajectory}");
}

#[cfg(unix)]
#[test]
fn files_of_checkers_keep_links_and_modes() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new();
    let check = "cat '/tests/a b/link/x' && test -d /tests/empty && /tests/tool && ! test -x /tests/check.sh";
    place.task("t", "", &[words_and_nothing()], check);
    let inside = |name: &str| format!("suite/t/check/{name}");
    place.write(&inside("real/x"), "");
    place.write(&inside("tool"), "#!/bin/sh\nexit 0\n");
    fs::create_dir(place.path(&inside("a b"))).expect("a folder");
    symlink("../real", place.path(&inside("a b/link"))).expect("a link");
    fs::create_dir(place.path(&inside("empty"))).expect("a folder");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(place.path(&inside("tool")), mode).expect("a mode");
    let ran = place.run(&[]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)], "{ran:?}");
}

#[test]
fn a_checker_in_python_gives_no_verdict_without_python() {
    let place = Place::new();
    place.task("t", "", &[words_and_nothing()], "");
    fs::remove_file(place.path("suite/t/check.sh")).expect("a file");
    place.write("suite/t/check.py", "");
    place.run(&[]);
    let row = &place.rows("out")[0];
    assert_eq!(
        (&row["outcome"], &row["passed"]),
        (&json!("infra_error"), &Value::Null)
    );
    let reason = row["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("the task needs Python"), "{reason}");
}

#[test]
fn shards_are_merged_and_runs_compared() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.task(name, "", &[shell("echo hi > x")], "test -f x");
        place.write(&format!("suite/{name}/fail.json"), &script(&[]));
    }
    let seed = "cd".repeat(32);
    let shard = |of: &str, out: &str| {
        place.eval(&[
            "suite", "--out", out, "--trials", "3", "--seed", &seed, "--shard", of,
        ])
    };
    assert_eq!(shard("1/2", "s1").code, Some(0));
    assert_eq!(shard("2/2", "s2").code, Some(0));
    assert_eq!((place.rows("s1").len(), place.rows("s2").len()), (5, 4));
    let merged = place.eval(&["merge", "s1", "s2", "--out", "all"]);
    assert_eq!(merged.code, Some(0), "{merged:?}");
    assert_eq!(place.rows("all").len(), 9);
    assert!(place.path("all/trials/c.3/trajectory.json").exists());
    assert_eq!(merged.stderr, "");
    let half = place.eval(&["merge", "s2", "--out", "half"]);
    assert_eq!(half.code, Some(1));
    assert_eq!(half.stderr, "hermitcrab: no shard 1/2 is among them\n");
    let settings = place
        .read("s1/run.json")
        .replace("\"ended\": true", "\"ended\": false");
    place.write("s1/run.json", &settings);
    let early = place.eval(&["merge", "s1", "s2", "--out", "early"]);
    assert_eq!(
        early.stderr,
        "hermitcrab: s1 has not ended: run it again with --resume\n"
    );
    place.write(
        "s1/run.json",
        &settings.replace("\"ended\": false", "\"ended\": true"),
    );
    let rows = place.read("s1/results.jsonl");
    place.write("s1/results.jsonl", rows.split_once('\n').expect("rows").1);
    let moved = place.path("s2/trials/b.1");
    fs::rename(&moved, place.path("elsewhere")).expect("moved");
    let lost = place.eval(&["merge", "s1", "s2", "--out", "lost"]);
    assert_eq!(
        lost.stderr,
        "hermitcrab: s1 has 4 of its 5 results: run it again with --resume\n\
         hermitcrab: s2/trials/b.1 is missing: its files are lost\n"
    );
    place.write("s1/results.jsonl", &rows);
    fs::rename(place.path("elsewhere"), moved).expect("moved");
    // What is graded again is this run's, not that of the shards whose files it links.
    let before = place.read("s1/trials/a.1/check.json");
    place.write("suite/a/check.sh", "exit 1");
    assert_eq!(place.eval(&["regrade", "all"]).code, Some(0));
    assert_ne!(place.read("all/trials/a.1/check.json"), before);
    assert_eq!(place.read("s1/trials/a.1/check.json"), before);
    place.write("suite/a/check.sh", "test -f x");
    assert_eq!(place.eval(&["regrade", "all"]).code, Some(0));
    let twice = place.eval(&["merge", "s1", "s1", "--out", "twice"]);
    assert_eq!(twice.code, Some(2));
    assert!(!place.path("twice").exists(), "nothing is left of it");
    assert_eq!(
        twice.stderr,
        "hermitcrab: s1 and s1 both have trial 1 of a\n"
    );
    place.eval(&[
        "suite",
        "--out",
        "worse",
        "--trials",
        "3",
        "--script",
        "fail.json",
    ]);
    let diff = place.eval(&["diff", "all", "worse"]);
    assert_eq!(diff.code, Some(0));
    assert!(
        diff.stdout
            .starts_with("a.1: passed → failed (the checker ended with exit code 1)\n"),
        "{diff:?}"
    );
    assert!(
        diff.stdout
            .contains("9 trials ended otherwise, 0 the same\n"),
        "{diff:?}"
    );
    assert!(diff.stdout.contains("p = 0.004"), "{diff:?}");
}

#[test]
fn local_trials_work_in_copies() {
    let place = Place::new();
    place.task(
        "t",
        "",
        &[shell("echo hi > x; cat a.txt >> x")],
        "test \"$(cat x | wc -l)\" = 2",
    );
    place.write("suite/t/files/a.txt", "1\n");
    let ran = place.run(&["--env", "local"]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)], "{ran:?}");
    assert!(!Path::new(&place.path("suite/t/files/x")).exists());
    place.task("t", "env = \"local\"\n", &[], "true");
    place.eval(&["suite", "--out", "refused"]);
    let reason = Some("the task runs commands on this machine: allow that with --env local");
    assert_eq!(ends(&place.rows("refused")), [("t", "infra_error", reason)]);
}

#[test]
fn programs_are_lent_to_tasks_that_ask() {
    /// Prints `hi`: `fd_write(1, [(8, 3)], 20)`.
    const HI: &[u8] = b"\x00asm\x01\x00\x00\x00\x01\x0c\x02`\x04\x7f\x7f\x7f\x7f\x01\x7f`\x00\x00\x02#\x01\x16wasi_snapshot_preview1\x08fd_write\x00\x00\x03\x02\x01\x01\x05\x03\x01\x00\x01\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x01\x0a\x0f\x01\x0d\x00A\x01A\x00A\x01A\x14\x10\x00\x1a\x0b\x0b\x11\x01\x00A\x00\x0b\x0b\x08\x00\x00\x00\x03\x00\x00\x00hi\n";
    let place = Place::new();
    place.task(
        "t",
        "[programs]\nhi = true\n",
        &[shell("hi > a")],
        "test \"$(cat a; hi)\" = $'hi\\nhi'",
    );
    fs::write(place.path("hi.wasm"), HI).expect("a module");
    let ran = place.run(&["--program", "hi=hi.wasm"]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)], "{ran:?}");
    place.write("no.wasm", "#!/bin/sh");
    let refused = place.eval(&["suite", "--out", "other", "--program", "hi=no.wasm"]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.stderr,
        "hermitcrab: --program hi: no.wasm is not a WebAssembly module: name a command compiled for wasm32-wasip1\n"
    );
    place.eval(&["suite", "--out", "without"]);
    let reason = Some("the task needs the program hi: lend it with --program hi=FILE.wasm");
    assert_eq!(ends(&place.rows("without")), [("t", "infra_error", reason)]);
}
