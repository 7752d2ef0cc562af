//! Sessions that survive: `--resume`, `--continue` and `hermitcrab sessions`, over runs
//! that were ended at every place at which their log can end.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fork::bodies;
use super::{CANARY, GUARD, Ran, finish, scratch, serve, shell};

/// A state directory and a working directory.
pub(super) struct Place {
    root: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let root = scratch();
        fs::create_dir(root.path().join("work")).expect("a directory");
        Self { root }
    }

    pub(super) fn work(&self) -> PathBuf {
        // As the program sees it.
        fs::canonicalize(self.root.path().join("work")).expect("a directory")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.root.path().join("state")
    }

    fn sessions(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.state().join("sessions")) else {
            return Vec::new();
        };
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    /// The only session.
    pub(super) fn session(&self) -> PathBuf {
        let [session] = &self.sessions()[..] else {
            panic!("one session: {:?}", self.sessions());
        };
        session.clone()
    }

    fn id(&self) -> String {
        let session = self.session();
        let name = session.file_name().and_then(|name| name.to_str());
        name.expect("a name").to_owned()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(self.work())
            .env("HERMITCRAB_STATE_DIR", self.state())
            .env("ANTHROPIC_API_KEY", CANARY)
            .env_remove("ANTHROPIC_BASE_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Ran {
        finish(self.command(arguments), b"")
    }

    /// `hermitcrab run` on a model.
    pub(super) fn ask(&self, model: &ServeModel, arguments: &[&str]) -> Ran {
        let url = model.url();
        let mut all = vec!["run", "--base-url", &url];
        all.extend(arguments);
        self.run(&all)
    }
}

pub(super) fn requests(model: &ServeModel) -> Vec<Value> {
    let bodies = bodies(model);
    let parsed = bodies.iter().map(|body| serde_json::from_slice(body));
    parsed.collect::<Result<_, _>>().expect("JSON")
}

fn messages(request: &Value) -> &Vec<Value> {
    request["messages"].as_array().expect("messages")
}

/// The blocks of a message, without the marks of what is cached.
fn blocks(message: &Value) -> Vec<Value> {
    let mut blocks = message["content"].as_array().cloned().unwrap_or_default();
    for block in &mut blocks {
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
        }
    }
    blocks
}

/// Every call has one result, in the message behind it.
pub(super) fn assert_valid(request: &Value) {
    let messages = messages(request);
    for (index, message) in messages.iter().enumerate() {
        let ids = |message: &Value, kind: &str, id: &str| -> Vec<String> {
            let blocks = blocks(message).into_iter();
            let of_kind = blocks.filter(|block| block["type"] == kind);
            of_kind.map(|block| block[id].to_string()).collect()
        };
        let calls = ids(message, "tool_use", "id");
        if calls.is_empty() {
            continue;
        }
        let next = messages.get(index + 1).expect("results");
        assert_eq!(ids(next, "tool_result", "tool_use_id"), calls);
    }
}

/// Ten rounds of every kind of call; each answer is for the request that has the results
/// of the one before.
pub(super) fn ten_rounds() -> Value {
    let calls = [
        json!({"name": "shell", "arguments": {"command": "echo 1 > one.txt; cat one.txt"}}),
        json!({"name": "write_file", "arguments": {"file_path": "two.txt", "content": "two\n"}}),
        json!({"name": "read_file", "arguments": {"file_path": "two.txt"}}),
        json!({"name": "edit_file", "arguments": {"file_path": "two.txt", "old_string": "two", "new_string": "2"}}),
        json!({"name": "grep", "arguments": {"pattern": "2"}}),
        json!({"name": "shell", "arguments": {"command": "seq 1 20000"}}),
        json!({"name": "glob", "arguments": {"pattern": "*.txt"}}),
        json!({"name": "write_file", "arguments": {"file_path": "deep/er/three.txt", "content": "3\n"}}),
        json!({"name": "shell", "arguments": {"command": "false"}}),
        json!({"name": "shell", "arguments": {"command": "ls"}}),
    ];
    let mut steps = Vec::new();
    for (round, mut call) in calls.into_iter().enumerate() {
        call["id"] = json!(format!("call_{round}_"));
        let mut condition = json!({"not_contains": format!("call_{round}_")});
        if round > 0 {
            condition["contains"] = json!(format!("call_{}_", round - 1));
        }
        let texts = json!([format!("Round {round}"), " it is."]);
        steps.push(json!({"match": condition, "texts": texts, "tool_calls": [call]}));
    }
    steps.push(json!({"match": {"contains": "call_9_"}, "text": "All ten rounds."}));
    json!(steps)
}

/// Where the log was handed on: gzip marks each place with these bytes.
fn ends(log: &[u8]) -> Vec<usize> {
    let mark = [0x00, 0x00, 0xff, 0xff];
    let at = |at: &usize| log[..*at].ends_with(&mark);
    (4..=log.len()).filter(at).collect()
}

#[test]
fn a_killed_run_goes_on_from_every_write() {
    let place = Place::new();
    let model = serve(ten_rounds());
    let ran = place.ask(&model, &["--quiet", "Do ten rounds."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let whole = requests(&model);
    assert_eq!(whole.len(), 11);
    let session = place.session();
    let log = fs::read(session.join("log.gz")).expect("a log");
    // A request, its answer with what it asks for, and what came of that, ten times.
    let ends = ends(&log);
    assert!(ends.len() >= 20, "{ends:?}");
    let (mut cut_off, mut outer) = (0, 0);
    for end in ends {
        // What is written in part is not there.
        for bytes in [end, (end + 7).min(log.len())] {
            fs::write(session.join("log.gz"), &log[..bytes]).expect("a log");
            let _ = fs::remove_file(session.join("saved"));
            let model = serve(ten_rounds());
            let ran = place.ask(&model, &["--quiet", "--continue"]);
            let asked = requests(&model);
            if ran.code == Some(2) {
                let is_first = ran.stderr.contains("ended before it began");
                let is_last = ran.stderr.contains("say what comes next");
                assert!(
                    asked.is_empty() && (is_first || is_last),
                    "{bytes}: {ran:?}"
                );
                outer += 1;
                continue;
            }
            assert_eq!(ran.code, Some(0), "{bytes}: {ran:?}");
            assert!(
                ran.stdout.ends_with("All ten rounds.\n"),
                "{bytes}: {ran:?}"
            );
            for request in &asked {
                assert_valid(request);
            }
            // The first request is the one of the run at that place, but for the result of
            // what was cut off.
            let first = messages(&asked[0]);
            let then = whole.iter().find(|one| messages(one).len() == first.len());
            let then = then.unwrap_or_else(|| panic!("{bytes}: {} messages", first.len()));
            assert_eq!(asked[0]["system"], then["system"]);
            assert_eq!(asked[0]["tools"], then["tools"]);
            let (last, before) = first.split_last().expect("messages");
            let (then_last, then_before) = messages(then).split_last().expect("messages");
            assert_eq!(before, then_before, "{bytes}");
            if blocks(last) != blocks(then_last) {
                assert!(
                    last.to_string()
                        .contains("cut off, because the agent's process ended")
                );
                cut_off += 1;
            }
            let (answered, last) = (asked.last().expect("a request"), whole.last().expect("one"));
            assert_eq!(messages(answered).len(), messages(last).len());
        }
    }
    // Before the task, and behind its last answer.
    assert!(cut_off >= 5 && outer <= 6, "{cut_off}, {outer}");
}

#[test]
fn a_run_that_is_killed_in_a_command_goes_on() {
    let place = Place::new();
    let steps = json!([
        shell("echo begun > begun.txt; sleep 1000"),
        {"expect": {"last_tool_result_contains": "cut off"}, "text": "Well."},
    ]);
    let model = serve(steps.clone());
    let url = model.url();
    let mut child = place
        .command(&["run", "--base-url", &url, "Sleep."])
        .spawn()
        .expect("the binary");
    let guard = Instant::now();
    while !place.work().join("begun.txt").exists() {
        assert!(guard.elapsed() < GUARD);
        std::thread::yield_now();
    }
    // While it lives it has the session.
    let id = place.id();
    let second = place.run(&["run", "--resume", &id, "--base-url", &url]);
    assert_eq!(second.code, Some(2), "{second:?}");
    assert_eq!(
        second.stderr,
        format!(
            "hermitcrab: another process works on the session {id}: end it first, or go on with \
             another session\n"
        )
    );
    child.kill().expect("a kill");
    child.wait().expect("an end");
    let again = serve(json!([steps[1]]));
    let ran = place.ask(&again, &["--quiet", "--continue"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.ends_with("Well.\n"), "{ran:?}");
    let (before, after) = (requests(&model), requests(&again));
    assert_eq!(after[0]["system"], before[0]["system"]);
    assert_valid(&after[0]);
}

#[test]
fn a_conversation_goes_on_over_processes() {
    let place = Place::new();
    let first = serve(json!([shell("echo one"), {"text": "First."}]));
    let ran = place.ask(&first, &["--quiet", "Begin", "--max-turns", "7"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut before = requests(&first).pop().expect("a request");
    for input in ["And then?", "And in the end?"] {
        let model = serve(json!([{"text": "Next."}]));
        let ran = place.ask(&model, &["--quiet", "--continue", input]);
        assert_eq!(ran, super::ran(0, "Next.\n", ""), "{input}");
        let asked = requests(&model);
        let earlier: Vec<_> = messages(&before).iter().map(blocks).collect();
        let now: Vec<_> = messages(&asked[0]).iter().map(blocks).collect();
        assert_eq!(now[..earlier.len()], earlier[..], "{input}");
        assert_eq!(asked[0]["system"], before["system"], "{input}");
        assert_eq!(asked[0]["tools"], before["tools"], "{input}");
        assert!(
            now.last().expect("a message")[0]
                .to_string()
                .contains(input)
        );
        before = asked[0].clone();
    }
    let nothing = place.ask(&first, &["--quiet", "--continue"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(
        nothing.stderr.contains("say what comes next"),
        "{nothing:?}"
    );

    // What is kept is one session, which only its user reads.
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    let session = place.session();
    assert_eq!(mode(&session), 0o700);
    for name in ["log.gz", "about.json", "saved", "lock"] {
        assert_eq!(mode(&session.join(name)), 0o600, "{name}");
    }
    let id = place.id();
    let list = place.run(&["sessions"]);
    assert!(
        list.stdout.contains(&id) && list.stdout.contains("    Begin\n"),
        "{list:?}"
    );
    let list = place.run(&["sessions", "--json"]);
    let list: Value = serde_json::from_str(&list.stdout).expect("JSON");
    assert_eq!(list[0]["id"], json!(id));
    assert_eq!(list[0]["directory"], json!(place.work().to_str()));
    let shown = place.run(&["sessions", "show", &id]);
    assert!(
        shown.stdout.contains("> Begin\n") && shown.stdout.contains("> And in the end?\n"),
        "{shown:?}"
    );
    let export = place.run(&["sessions", "export", &id, "run.log.gz"]);
    assert_eq!(export.code, Some(0), "{export:?}");
    let replay = place.run(&["replay", "run.log.gz"]);
    assert_eq!(replay.code, Some(0), "{replay:?}");
    let twice = place.run(&["sessions", "export", &id, "run.log.gz"]);
    assert_eq!(twice.code, Some(2), "{twice:?}");
    let removed = place.run(&["sessions", "delete", &id]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
    assert!(place.sessions().is_empty());
    let gone = place.run(&["sessions", "show", &id]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.stderr.contains("there is no session"), "{gone:?}");
}

#[test]
fn a_session_of_another_core_goes_on_from_its_last_task() {
    let place = Place::new();
    let first = serve(json!([{"text": "First."}]));
    let url = first.url();
    let mut command = place.command(&["run", "--quiet", "--base-url", &url, "Begin"]);
    command.env("HERMITCRAB_CORE", "native");
    let ran = finish(command, b"");
    assert_eq!(ran, super::ran(0, "First.\n", ""));
    let id = place.id();
    let note = format!(
        "hermitcrab: another build of hermitcrab wrote the session {id}; it goes on from the end \
         of its last task\n"
    );
    for input in ["Then?", "And then?"] {
        let model = serve(json!([{"text": "Next."}]));
        let ran = place.ask(&model, &["--quiet", "--continue", input]);
        let note = if input == "Then?" { &*note } else { "" };
        assert_eq!(ran, super::ran(0, "Next.\n", note), "{input}");
        let asked = requests(&model);
        let text = asked[0]["messages"].to_string();
        assert!(text.contains("Begin") && text.contains("First.") && text.contains(input));
    }
    assert_eq!(place.id(), id);
}

#[test]
fn sessions_have_a_quota_and_an_off_switch() {
    let place = Place::new();
    let run = |arguments: &[&str]| {
        let model = serve(json!([{"text": "Done."}]));
        place.ask(&model, &[&["--quiet"], arguments].concat())
    };
    assert_eq!(run(&["--no-journal", "Go"]), super::ran(0, "Done.\n", ""));
    assert_eq!(place.sessions(), Vec::<PathBuf>::new());
    assert_eq!(run(&["Go"]), super::ran(0, "Done.\n", ""));
    let oldest = place.id();
    // Larger than all that is allowed.
    let filler = vec![0; 2 << 20];
    fs::write(place.session().join("saved"), filler).expect("a file");
    let ran = run(&["--journal-quota", "1", "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .contains(&format!("the oldest kept sessions were removed: {oldest};")),
        "{ran:?}"
    );
    assert_ne!(place.id(), oldest);
    // A place that cannot be written ends no run.
    let file = place.root.path().join("file");
    fs::write(&file, "").expect("a file");
    let model = serve(json!([{"text": "Done."}]));
    let url = model.url();
    let mut command = place.command(&["run", "--quiet", "--base-url", &url, "Go"]);
    command.env("HERMITCRAB_STATE_DIR", &file);
    let ran = finish(command, b"");
    assert_eq!((ran.code, &*ran.stdout), (Some(0), "Done.\n"), "{ran:?}");
    assert!(ran.stderr.contains("this run is not kept"), "{ran:?}");
}

#[test]
fn what_cannot_go_on_is_refused_in_a_sentence() {
    let place = Place::new();
    let cases: [(&[&str], &str); 5] = [
        (&["run", "--continue", "Go"], "no session has worked in"),
        (
            &["run", "--resume", "none", "Go"],
            "there is no session none",
        ),
        (
            &["run", "--resume", "../x", "Go"],
            "there is no session ../x",
        ),
        (&["sessions", "delete", ".."], "there is no session .."),
        (
            &["run", "--continue", "--no-journal", "Go"],
            "cannot be used with",
        ),
    ];
    for (arguments, expected) in cases {
        let ran = place.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {ran:?}");
    }
    // One that is damaged is named.
    let model = serve(json!([{"text": "Done."}]));
    place.ask(&model, &["--quiet", "Go"]);
    let log = place.session().join("log.gz");
    let mut bytes = fs::read(&log).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&log, bytes).expect("a log");
    let ran = place.run(&["run", "--continue", "Go"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the log is damaged"), "{ran:?}");
}
