//! `hermitcrab run` from outside, on a scripted model: what a user and the
//! user's scripts see, and what nobody may see.

#![cfg(unix)]

#[cfg(target_os = "linux")]
#[path = "run/background.rs"]
mod background;
#[path = "run/chat.rs"]
mod chat;
#[path = "run/compare.rs"]
mod compare;
#[path = "run/defaults.rs"]
mod defaults;
#[cfg(target_os = "linux")]
#[path = "run/elsewhere.rs"]
mod elsewhere;
#[cfg(target_os = "linux")]
#[path = "run/faults.rs"]
mod faults;
#[cfg(target_os = "linux")]
#[path = "run/fence.rs"]
mod fence;
#[path = "run/foreign.rs"]
mod foreign;
#[path = "run/fork.rs"]
mod fork;
#[path = "run/git.rs"]
mod git;
#[path = "run/limits.rs"]
mod limits;
#[path = "run/overlay.rs"]
mod overlay;
#[path = "run/people.rs"]
mod people;
#[path = "run/record.rs"]
mod record;
#[path = "run/resume.rs"]
mod resume;
#[path = "run/saved.rs"]
mod saved;
#[path = "run/terminal.rs"]
mod terminal;
#[path = "run/undo.rs"]
mod undo;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hermitcrab::script::{ModelRequest, ScriptedModel};
use hermitcrab_host::serve_model::ServeModel;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};

/// A hang guard, far above what any test takes.
const GUARD: Duration = Duration::from_secs(60);

/// In no other place than this file and the environment of the binary.
const CANARY: &str = "sk-canary-run-51b7e2f09c4d83a6";

/// How a run ended.
#[derive(Debug, PartialEq)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn ran(code: i32, stdout: &str, stderr: &str) -> Ran {
    Ran {
        code: Some(code),
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn serve(steps: Value) -> ServeModel {
    let script = json!({ "steps": steps }).to_string();
    ServeModel::start(ScriptedModel::from_json(&script).expect("a script"), 0).expect("a model")
}

/// The sessions of earlier test runs go: those of this one are not to be evicted, which
/// is said on stderr. `.cargo/config.toml` names their directory.
fn forget_sessions() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let state = PathBuf::from(env!("HERMITCRAB_STATE_DIR"));
        assert!(state.ends_with("target/state"), "{}", state.display());
        let _ = std::fs::remove_dir_all(state);
    });
}

fn command(url: &str, directory: &Path, arguments: &[&str]) -> Command {
    run_command(&["--quiet"], url, directory, arguments)
}

/// A run that is not quiet.
fn loud_command(url: &str, directory: &Path, arguments: &[&str]) -> Command {
    run_command(&[], url, directory, arguments)
}

fn run_command(first: &[&str], url: &str, directory: &Path, arguments: &[&str]) -> Command {
    forget_sessions();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .arg("run")
        .args(first)
        .args(["--base-url", url, "--dir"])
        .arg(directory)
        .args(arguments)
        .env("ANTHROPIC_API_KEY", CANARY)
        .env_remove("ANTHROPIC_BASE_URL")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn finish(mut command: Command, stdin: &[u8]) -> Ran {
    let mut child = command.spawn().expect("the binary");
    let _ = child.stdin.take().expect("stdin").write_all(stdin);
    let output = child.wait_with_output().expect("an end");
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

/// Runs the steps in `directory`.
fn run_in(directory: &Path, steps: Value, arguments: &[&str]) -> Ran {
    let model = serve(steps);
    finish(command(&model.url(), directory, arguments), b"")
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn shell(line: &str) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": {"command": line}}]})
}

fn check_end(step: Value, expected: &Ran) {
    assert_eq!(run_in(scratch().path(), json!([step]), &["x"]), *expected);
}

#[test]
fn a_natural_end() {
    check_end(json!({"text": "done"}), &ran(0, "done\n", ""));
}

#[test]
fn an_answer_that_was_cut_off_is_a_limit() {
    check_end(
        json!({"text": "half", "stop_reason": "max_tokens"}),
        &ran(
            3,
            "half\n",
            "hermitcrab: the last answer was cut off at the model's token limit: ask for less at once, or go on in another run\n",
        ),
    );
}

#[test]
fn a_refusal_is_a_failure() {
    check_end(
        json!({"text": "I will not", "stop_reason": "refusal"}),
        &ran(
            1,
            "I will not\n",
            "hermitcrab: the model refused to answer: put the task in other words or choose another --model\n",
        ),
    );
}

#[test]
fn no_answer_is_a_failure() {
    check_end(
        json!({"text": ""}),
        &ran(
            1,
            "",
            "hermitcrab: the model answered nothing: try again or choose another --model\n",
        ),
    );
}

#[test]
fn no_last_word_after_work_is_a_notice() {
    let ran = run_in(
        scratch().path(),
        json!([shell("true"), {"text": ""}]),
        &["x"],
    );
    assert_eq!(ran.code, Some(0));
    assert_eq!(ran.stderr, "! the model ended without a last word\n");
}

#[test]
fn notices_go_to_stderr_and_escapes_nowhere() {
    let retry = json!({"error": {"status": 500, "message": "\u{1b}[2Jbusy", "headers": {"retry-after-ms": 5}}});
    let ran_ = run_in(
        scratch().path(),
        json!([retry, {"text": "\u{1b}]0;title\u{7}done\r\n"}]),
        &["x"],
    );
    let expected = ran(
        0,
        "]0;titledone\n",
        "! trying again in 5 ms: anthropic failed (500 api_error: [2Jbusy); try again later\n",
    );
    assert_eq!(ran_, expected);
}

#[test]
fn errors_have_no_escapes() {
    let error = json!({"error": {"status": 401, "message": "no \u{1b}[31mkey"}});
    let ran = run_in(scratch().path(), json!([error]), &["x"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("no [31mkey"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_no_model_is_named() {
    let model = serve(json!([
        {"garbage": "<html>Sign in</html>"}, {"garbage": "<html>Sign in</html>"},
        {"garbage": "<html>Sign in</html>"}, {"garbage": "<html>Sign in</html>"},
    ]));
    let url = model.url();
    let ran = finish(command(&url, scratch().path(), &["x"]), b"");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let expected = format!(
        "hermitcrab: the answer of anthropic broke off: what the base URL {url} sends is not an \
         event stream, it begins with `<html>Sign in</html>`; try again\n"
    );
    assert!(ran.stderr.ends_with(&expected), "{}", ran.stderr);
}

#[test]
fn files_are_attached_by_what_they_are() {
    let directory = scratch();
    let at = |name: &str| {
        directory
            .path()
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    let png = STANDARD.decode(PNG).expect("base64");
    std::fs::write(at("a.txt"), &png).expect("a file");
    std::fs::write(at("b.md"), "two").expect("a file");
    std::fs::write(at("bad.png"), &png[..40]).expect("a file");
    let model = serve(json!([{"text": "Seen."}]));
    let arguments = ["look", "--attach", &at("a.txt"), "--attach", &at("b.md")];
    let run = finish(command(&model.url(), directory.path(), &arguments), b"");
    assert_eq!(run.code, Some(0), "{run:?}");
    let body: Value = serde_json::from_slice(&model.requests()[0].body).expect("JSON");
    let content = &body["messages"][0]["content"];
    assert_eq!(content[0]["text"], "look");
    assert_eq!(content[1]["source"]["media_type"], "image/png");
    assert_eq!(content[1]["source"]["data"], PNG);
    assert_eq!(content[2]["source"]["data"], "two");
    assert_eq!(content[2]["title"], "b.md");
    for (name, problem) in [
        ("bad.png", "image bad.png: damaged or incomplete PNG image"),
        ("none.png", "no such file or directory"),
    ] {
        let arguments = ["look", "--attach", &at(name)];
        let run = finish(command(&model.url(), directory.path(), &arguments), b"");
        assert_eq!(run.code, Some(2), "{run:?}");
        assert!(run.stderr.contains(problem), "{}", run.stderr);
    }
    assert_eq!(model.requests().len(), 1);
}

/// One white pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAG7buVgAAAABJRU5ErkJggg==";

#[test]
fn a_prompt_of_ten_megabytes() {
    let model = serve(json!([{"expect": {"contains": "the end"}, "text": "read"}]));
    let prompt = format!("{}the end", "0123456789".repeat(1_000_000));
    let ran_ = finish(
        command(&model.url(), scratch().path(), &["-"]),
        prompt.as_bytes(),
    );
    let expected = ran(0, "read\n", "! Context usage at ~250% of context window\n");
    assert_eq!(ran_, expected);
}

/// The command reads what the kernel shows of the binary and its guardian.
#[cfg(target_os = "linux")]
/// A document that is a link within the repository is one; a link out of it is
/// not, also when what it leads to is there.
#[test]
fn documents_that_lead_out_of_the_repository_are_left_out() {
    use std::os::unix::fs::symlink;

    let directory = scratch();
    let outside = directory.path().join("secret");
    std::fs::write(&outside, "the secret").expect("a file");
    let repository = directory.path().join("repository");
    for (path, content) in [
        (".git/HEAD", "ref: refs/heads/main\n"),
        ("docs/agents.md", "the house rules"),
        ("pkg/x", ""),
    ] {
        let path = repository.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        std::fs::write(path, content).expect("a file");
    }
    symlink("../secret", repository.join("AGENTS.md")).expect("a link");
    symlink("docs/agents.md", repository.join("CLAUDE.md")).expect("a link");
    symlink(&outside, repository.join("pkg/AGENTS.md")).expect("a link");
    symlink("../CLAUDE.md", repository.join("pkg/CLAUDE.md")).expect("a link");
    let model = serve(json!([{"text": "Done."}]));
    let ran = finish(command(&model.url(), &repository.join("pkg"), &["go"]), b"");
    let root = std::fs::canonicalize(&repository).expect("a path");
    let left_out = |path: &str| {
        format!(
            "! {}/{path} is left out of the system prompt: it is a link out of {} to {}; copy it \
             there to have it read\n",
            root.display(),
            root.display(),
            root.with_file_name("secret").display()
        )
    };
    assert_eq!(
        ran.stderr,
        left_out("AGENTS.md") + &left_out("pkg/AGENTS.md")
    );
    let requests = model.requests();
    let body = String::from_utf8_lossy(&requests[0].body);
    assert!(!body.contains("the secret"), "{body}");
    assert_eq!(body.matches("the house rules").count(), 1, "{body}");
}

#[test]
fn the_key_is_in_no_environment_output_or_log() {
    let look = "for p in $PPID $(cat /proc/$PPID/task/*/children); do \
                tr '\\0' '\\n' < /proc/$p/environ; tr '\\0' '\\n' < /proc/$p/cmdline; done 2>&1; \
                env; echo environment ends";
    let steps = || {
        json!([
            shell(look),
            {"error": {"status": 500, "message": format!("{CANARY} is slow"),
                "headers": {"retry-after-ms": 1}}},
            {"text": format!("Half of {CANARY}"), "disconnect": "after_text"},
            {"error": {"status": 401, "message": format!("invalid x-api-key: {CANARY}.")}},
        ])
    };
    for arguments in [&["x"][..], &["--json", "x"]] {
        let model = serve(steps());
        let directory = scratch();
        let mut command = command(&model.url(), directory.path(), arguments);
        command
            .env("HC_UNSUSPICIOUS_NAME", format!("Bearer {CANARY}"))
            .env("MY_TOKEN", "another-secret-4711")
            .env("GITHUB_PAT", "another-secret-4711")
            .env("apikey", "another-secret-4711")
            .env("DATABASE_URL", "postgres://me:another-secret-4711@db/app")
            .env("HC_HARMLESS", "seen");
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        // Looking at nothing would prove nothing: one may look (root), or not.
        let bodies: Vec<u8> = model
            .requests()
            .into_iter()
            .flat_map(|request| request.body.to_vec())
            .collect();
        let told = String::from_utf8(bodies).expect("UTF-8");
        assert!(told.contains("environment ends"), "{told}");
        assert!(
            told.contains("ANTHROPIC_API_KEY=\\n") || told.contains("ermission denied"),
            "{told}"
        );
        assert!(told.contains("HC_HARMLESS=seen"), "{told}");
        let end = "invalid x-api-key: [redacted].";
        assert!(ran.stderr.contains(end), "{}", ran.stderr);
        for secret in [CANARY, "another-secret-4711"] {
            for place in [&told, &ran.stdout, &ran.stderr] {
                assert!(!place.contains(secret), "{place}");
            }
        }
    }
}

/// Not even as the same user, but for `CAP_SYS_PTRACE`: a root runs this as nobody.
#[cfg(target_os = "linux")]
#[test]
fn the_binary_is_closed_to_commands_of_the_same_user() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;

    let open = std::fs::Permissions::from_mode(0o777);
    let directory = scratch();
    std::fs::set_permissions(directory.path(), open.clone()).expect("a mode");
    let binary = directory.path().join("hermitcrab");
    std::fs::copy(env!("CARGO_BIN_EXE_hermitcrab"), &binary).expect("a copy");
    std::fs::set_permissions(&binary, open).expect("a mode");
    let look = "cat /proc/self/environ > /dev/null && echo own is open; \
                cat /proc/$PPID/environ > /dev/null || echo environ is closed; \
                : < /proc/$PPID/mem || echo memory is closed";
    let model = serve(json!([shell(look), {"text": "done"}]));
    let mut command = Command::new(&binary);
    command
        .args(["run", "--json", "--base-url", &model.url(), "x"])
        .current_dir(directory.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if std::fs::metadata("/proc/self").expect("/proc").uid() == 0 {
        command.uid(65534);
    }
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in ["own is open", "environ is closed", "memory is closed"] {
        assert!(
            ran.stdout.contains(&format!("{line}\\n")),
            "{line}: {ran:?}"
        );
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Whoever holds the pipe, left the group or the session: nobody is left.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_run_takes_its_commands_along() {
    let sing = |canary: &str| format!("sh -c 'while :; do echo x >> {canary}; sleep 0.05; done'");
    let line = format!(
        "{} & timeout 100 {} & setsid {} & wait",
        sing("one"),
        sing("two"),
        sing("three")
    );
    let model = serve(json!([shell(&line), {"text": "done"}]));
    let directory = scratch();
    let mut child = command(&model.url(), directory.path(), &["x"])
        .stdin(Stdio::null())
        .spawn()
        .expect("the binary");
    let canaries: Vec<PathBuf> = ["one", "two", "three"]
        .map(|name| directory.path().join(name))
        .into();
    let guard = Instant::now() + GUARD;
    while canaries.iter().any(|canary| size(canary) == 0) {
        assert!(Instant::now() < guard, "the canaries never sang");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("an end");
    // The guardian holds nothing open: the output ends with it.
    let mut rest = String::new();
    let mut stdout = child.stdout.take().expect("stdout");
    stdout.read_to_string(&mut rest).expect("an end");
    let sizes = || canaries.iter().map(|path| size(path)).collect::<Vec<_>>();
    loop {
        let before = sizes();
        std::thread::sleep(Duration::from_millis(500));
        if sizes() == before {
            break;
        }
        assert!(Instant::now() < guard, "somebody is left alive");
    }
}

/// It may be dead before it knows what it has started.
#[cfg(target_os = "linux")]
#[test]
fn a_run_that_its_command_kills_takes_that_along() {
    // A number of seconds that nothing else sleeps.
    let seconds = 90_000_000 + u64::from(std::process::id());
    let kill = shell(&format!("kill -9 $PPID; exec sleep {seconds}"));
    let sleepers = || {
        let processes = std::fs::read_dir("/proc").expect("/proc");
        let line = |entry: std::fs::DirEntry| std::fs::read(entry.path().join("cmdline")).ok();
        let lines = processes.filter_map(|entry| line(entry.ok()?));
        let wanted = format!("sleep\0{seconds}\0");
        lines.filter(|line| *line == wanted.as_bytes()).count()
    };
    for _ in 0..20 {
        let model = serve(json!([kill]));
        let directory = scratch();
        let child = command(&model.url(), directory.path(), &["x"])
            .stdin(Stdio::null())
            .spawn()
            .expect("the binary");
        let output = child.wait_with_output().expect("an end");
        assert_eq!(output.status.code(), None, "{output:?}");
    }
    let guard = Instant::now() + GUARD;
    while sleepers() > 0 {
        assert!(Instant::now() < guard, "{} are left alive", sleepers());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Paths in a tar, with a final `/` for directories.
fn entries(tar: &Path) -> Vec<String> {
    let bytes = std::fs::read(tar).expect("a tar");
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut paths: Vec<String> = archive
        .entries()
        .expect("entries")
        .map(|entry| {
            let path = entry.expect("an entry");
            let path = path.path().expect("a path").display().to_string();
            path.trim_start_matches("./").to_owned()
        })
        .filter(|path| !path.is_empty())
        .collect();
    paths.sort();
    paths
}

/// A subdirectory of a repository, loaded into the sandbox.
#[test]
fn a_part_of_a_repository_knows_the_rest_and_keeps_its_times() {
    let directory = scratch();
    let part = directory.path().join("part");
    std::fs::create_dir(&part).expect("a directory");
    for (path, text) in [
        ("AGENTS.md", "the house rules"),
        ("part/new", ""),
        ("part/old", ""),
    ] {
        std::fs::write(directory.path().join(path), text).expect("a file");
    }
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
            .args(arguments)
            .current_dir(directory.path())
            .status();
        assert!(status.expect("git").success(), "{arguments:?}");
    };
    git(&["init", "-q", "-b", "trunk"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "All of it"]);
    let second = std::time::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for (name, micros) in [("old", 250_000), ("new", 750_000)] {
        let file = std::fs::File::options().write(true).open(part.join(name));
        let time = second + Duration::from_micros(micros);
        file.expect("a file").set_modified(time).expect("a time");
    }
    let out = directory.path().join("out.tar");
    let model = serve(json!([
        shell("ls -t; find . -name new -newer old; touch made; ls -t | head -1"),
        {"text": "done"},
    ]));
    let arguments = [
        "--env",
        "memory",
        "--out",
        out.to_str().expect("UTF-8"),
        "x",
    ];
    let ran = finish(command(&model.url(), &part, &arguments), b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let bodies = model.requests();
    let body = String::from_utf8_lossy(&bodies[0].body);
    for part in [
        "## ../AGENTS.md\\n\\nthe house rules",
        "Is git repository: true\\nGit branch: trunk",
        "Status: ",
        " All of it\\n",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
    let result = String::from_utf8_lossy(&bodies[1].body);
    assert!(result.contains("new\\nold\\n./new\\nmade"), "{result}");
    let unpacked = scratch();
    let tar = Command::new("tar")
        .arg("-xf")
        .arg(&out)
        .current_dir(unpacked.path())
        .status();
    assert!(tar.expect("tar").success());
    for name in ["old", "new"] {
        let modified = |path: &Path| {
            path.metadata()
                .and_then(|it| it.modified())
                .expect("a time")
        };
        assert_eq!(
            modified(&unpacked.path().join(name)),
            modified(&part.join(name)),
            "{name}"
        );
    }
}

#[test]
fn the_result_has_empty_directories_and_not_itself() {
    let directory = scratch();
    std::fs::create_dir_all(directory.path().join("empty/inner")).expect("a directory");
    std::fs::write(directory.path().join("a"), "a\n").expect("a file");
    let out = directory.path().join("out.tar");
    std::fs::write(&out, "an older result").expect("a file");
    let arguments = [
        "--env",
        "memory",
        "--out",
        out.to_str().expect("UTF-8"),
        "x",
    ];
    let steps = json!([shell("mkdir new; ls -a > listing"), {"text": "done"}]);
    let ran = run_in(directory.path(), steps, &arguments);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        entries(&out),
        ["a", "empty/", "empty/inner/", "listing", "new/"]
    );
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("the directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a", "empty", "out.tar"]);
}

fn check_out(steps: Value, arguments: &[&str], code: i32, expected: Option<&[&str]>) {
    let directory = scratch();
    std::fs::write(directory.path().join("a"), "a\n").expect("a file");
    let place = scratch();
    let out = place.path().join("out.tar");
    std::fs::write(&out, "an older result").expect("a file");
    let mut all = vec!["--env", "memory", "--out", out.to_str().expect("UTF-8")];
    all.extend(arguments);
    let ran = run_in(directory.path(), steps, &all);
    assert_eq!(ran.code, Some(code), "{ran:?}");
    match expected {
        Some(paths) => assert_eq!(entries(&out), paths),
        None => assert_eq!(std::fs::read(&out).expect("the file"), b"an older result"),
    }
}

#[test]
fn a_failed_run_keeps_an_older_result() {
    check_out(json!([{"error": {"status": 401}}]), &["x"], 1, None);
}

#[test]
fn a_failed_run_that_changed_something_writes_it() {
    let steps = json!([shell("echo b > b"), {"error": {"status": 401}}]);
    check_out(steps, &["x"], 1, Some(&["a", "b"]));
}

#[test]
fn a_run_cut_short_writes_what_there_is() {
    let steps = json!([shell("true"), shell("true"), {"text": "done"}]);
    check_out(steps, &["--max-tool-rounds", "1", "x"], 3, Some(&["a"]));
}

#[test]
fn a_run_that_costs_too_much_is_a_limit() {
    let steps = json!([shell("true"), {"text": "never"}]);
    let ran = run_in(scratch().path(), steps, &["--max-cost", "0.0001", "x"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stderr
            .contains("the limit of 0.0001 US dollars ended the task: raise --max-cost"),
        "{ran:?}"
    );
}

/// Without compaction the summary would be the answer.
#[test]
fn a_long_run_compacts_where_it_may() {
    let directory = scratch();
    let config = directory.path().join("config.json");
    std::fs::write(&config, r#"{"context_window": 100000}"#).expect("a file");
    let config = config.to_str().expect("UTF-8");
    let full = |mut step: Value| {
        step["usage"] = json!({"input_tokens": 81_000});
        step
    };
    let steps = json!([shell("echo 1"), shell("echo 2"), shell("echo 3"), full(shell("echo 4")),
                       {"text": "a summary"}, {"text": "done"}]);
    let ran = run_in(
        directory.path(),
        steps,
        &["--compact", "--config", config, "x"],
    );
    let is_answer = ran.stdout.ends_with("\ndone\n") && !ran.stdout.contains("summary");
    assert!(ran.code == Some(0) && is_answer, "{ran:?}");
}

/// A command that the core cannot end is not the end of the work, nor of the run.
#[test]
fn a_command_that_ends_the_core_ends_alone() {
    let work = json!({"tool_calls": [
        {"name": "write_file", "arguments": {"file_path": "c", "content": "c\n"}},
        {"name": "shell", "arguments": {"command": "echo d > d; jq -n 'def f: 1 + f; f'"}},
    ]});
    let steps = || json!([shell("echo b > b"), work, {"text": "it goes on"}]);
    let paths = ["a", "b", "c"];
    check_out(steps(), &["x"], 0, Some(&paths));
    let ran_ = run_in(scratch().path(), steps(), &["--env", "memory", "x"]);
    let diff = |name: &str| {
        format!(
            "diff --git a/{name} b/{name}\nnew file mode 100644\n--- /dev/null\n+++ b/{name}\n\
             @@ -0,0 +1 @@\n+{name}\n"
        )
    };
    assert_eq!(ran_.code, Some(0), "{ran_:?}");
    let out = without_times(&ran_.stdout);
    assert!(out.contains("it goes on"), "{out}");
    assert!(
        out.ends_with(&format!("{}{}", diff("b"), diff("c"))),
        "{out}"
    );
}

/// `(12 ms)` as `(N ms)`.
fn without_times(text: &str) -> String {
    let mut parts = text.split(" ms)");
    let mut timeless = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        timeless.truncate(
            timeless
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .len(),
        );
        timeless.push_str("N ms)");
        timeless.push_str(part);
    }
    timeless
}

#[test]
fn variables_that_look_like_secrets_can_be_passed() {
    let check = |arguments: &[&str], code, expected: &str| {
        let model = serve(json!([shell("env | grep HC_ | sort"), {"text": "done"}]));
        let directory = scratch();
        let mut command = command(&model.url(), directory.path(), arguments);
        command
            .env("HC_DB_TOKEN", "t1")
            .env("HC_URL", "redis://:t2@cache/")
            .env("HC_KEY", format!("Bearer {CANARY}"));
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let told = ran.stdout + &ran.stderr;
        assert!(told.contains(expected), "{told}");
    };
    let kept = r#""output":"HC_DB_TOKEN=t1\n[exit code: 0,"#;
    check(&["--json", "--pass-env", "HC_DB_TOKEN", "x"], 0, kept);
    let both = [
        "--json",
        "--pass-env",
        "HC_DB_TOKEN",
        "--pass-env",
        "HC_URL",
        "x",
    ];
    check(
        &both,
        0,
        r#""output":"HC_DB_TOKEN=t1\nHC_URL=redis://:t2@cache/\n[exit code: 0,"#,
    );
    let theirs = "hermitcrab: --pass-env HC_KEY: it holds the key of a provider, which no command \
                  gets: make one of its own for commands\n";
    check(&["--pass-env", "HC_KEY", "x"], 2, theirs);
    let missing = "hermitcrab: --pass-env HC_NONE: there is no such variable: set it or leave the \
                   option out\n";
    check(&["--pass-env", "HC_NONE", "x"], 2, missing);
}

fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy();
            (name.into_owned(), std::fs::read(&path).expect("a file"))
        })
        .collect()
}

#[test]
fn the_printed_diff_can_be_applied() {
    let directory = scratch();
    for (name, content) in [
        ("crlf", "one\r\ntwo\r\n"),
        ("gone", "x\n"),
        ("tail", "no end"),
        ("binary", "\0\u{1}"),
    ] {
        std::fs::write(directory.path().join(name), content).expect("a file");
    }
    let line = "sed -i 's/two/2/' crlf; rm gone; printf 'an end' > tail; : > empty; \
                printf 'new\\n' > new; printf '\\0x' > binary; mkdir hollow";
    let steps = json!([shell(line), {"text": "done"}]);
    let ran = run_in(directory.path(), steps, &["--env", "memory", "x"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "hermitcrab: the diff cannot hold binary files and empty directories (binary, hollow/): use --out FILE.tar to get them\n"
    );
    let mut git = Command::new("git")
        .args(["apply", "-"])
        .current_dir(directory.path())
        .env("GIT_CEILING_DIRECTORIES", "/")
        .stdin(Stdio::piped())
        .spawn()
        .expect("git");
    // All of stdout, as a pipe would bring it.
    let mut stdin = git.stdin.take().expect("stdin");
    stdin.write_all(ran.stdout.as_bytes()).expect("a patch");
    drop(stdin);
    assert!(git.wait().expect("an end").success(), "{}", ran.stdout);
    let expected = [
        ("binary", "\0\u{1}"),
        ("crlf", "one\r\n2\r\n"),
        ("empty", ""),
        ("new", "new\n"),
        ("tail", "an end"),
    ]
    .map(|(name, content)| (name.to_owned(), content.as_bytes().to_vec()));
    assert_eq!(tree(directory.path()), BTreeMap::from(expected));
}

/// A scripted model behind TLS, with a certificate that no system knows.
fn serve_tls(script: Value) -> String {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/localhost.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/localhost.key"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.expect("a certificate")],
            key.expect("a key"),
        )
        .expect("a server");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let mut model = ScriptedModel::from_json(&script.to_string()).expect("a script");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(config.clone()).expect("a connection");
            let stream = rustls::StreamOwned::new(connection, stream.expect("a client"));
            // A client that does not trust the certificate hangs up.
            let _ = answer(BufReader::new(stream), &mut model);
        }
    });
    format!("https://localhost:{port}")
}

/// Answers one request and closes the connection.
fn answer(
    mut stream: BufReader<impl Read + Write>,
    model: &mut ScriptedModel,
) -> std::io::Result<()> {
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or_default();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let response = model.respond(&ModelRequest {
        path,
        headers: Vec::new(),
        body: body.into(),
    });
    let body: Vec<u8> = response
        .chunks
        .iter()
        .flat_map(|chunk| chunk.bytes.to_vec())
        .collect();
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {} X\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        response.status,
        body.len()
    )?;
    stream.write_all(&body)?;
    stream.flush()
}

fn tls_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/tls")
        .join(name)
}

/// What users behind a company proxy do.
#[cfg(target_os = "linux")]
#[test]
fn https_with_a_root_of_ones_own() {
    let url = serve_tls(json!({"steps": [shell("echo hi"), {"text": "over TLS"}]}));
    let directory = scratch();
    let mut command = command(&url, directory.path(), &["x"]);
    command.env("SSL_CERT_FILE", tls_file("localhost.pem"));
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.ends_with("\n\nover TLS\n"), "{}", ran.stdout);
}

#[cfg(target_os = "linux")]
#[test]
fn https_with_an_unknown_root() {
    let url = serve_tls(json!({"steps": [{"text": "never"}]}));
    let directory = scratch();
    let mut command = command(&url, directory.path(), &["--json", "x"]);
    command
        .env_remove("SSL_CERT_FILE")
        .env_remove("SSL_CERT_DIR");
    // The scripted model is the only one who waits for this run.
    command.args(["--max-wall-ms", "20000"]);
    let ran = finish(command, b"");
    assert_ne!(ran.code, Some(0));
    let told = ran.stdout.contains("invalid peer certificate: UnknownIssuer; check the server's certificate and the system's root certificates");
    assert!(told, "{ran:?}");
}

#[test]
fn https_to_a_server_without_tls() {
    let model = serve(json!([{"text": "never"}]));
    let url = model.url().replace("http://", "https://");
    let directory = scratch();
    let mut command = command(&url, directory.path(), &["--json", "x"]);
    command.args(["--max-wall-ms", "20000"]);
    let ran = finish(command, b"");
    assert_ne!(ran.code, Some(0));
    let told = ran
        .stdout
        .contains("; this server does not speak TLS: use http:// in the base URL");
    assert!(told, "{ran:?}");
}

#[test]
fn a_subagent_on_another_provider_whose_key_is_set() {
    const OTHER: &str = "sk-canary-other-3a9d51c07be2";
    let subagent = "# You are a subagent";
    let model = serve(json!([
        {"match": {"not_contains": subagent}, "tool_calls": [
            {"name": "spawn_agent", "arguments": {"task": "say hi", "model": "openai:gpt-x"}},
        ]},
        {"match": {"contains": subagent}, "tool_calls": [
            {"name": "shell", "arguments": {"command": "env"}},
        ]},
        {"match": {"contains": subagent}, "text": "hi"},
        {"match": {"not_contains": subagent}, "tool_calls": [
            {"name": "wait", "arguments": {"agent_id": "agent-1"}},
        ]},
        {"match": {"not_contains": subagent}, "text": "it said hi"},
    ]));
    let directory = scratch();
    let url = format!("{}/v1", model.url());
    let mut command = command(&model.url(), directory.path(), &["--json", "go"]);
    command
        .args(["--provider", "anthropic"])
        .env("OPENAI_API_KEY", OTHER)
        .env("OPENAI_BASE_URL", url)
        .env("OPENAI_ORG_ID", "org-1");
    let ran = finish(command, b"");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.stdout.contains("success: true"), "{}", ran.stdout);
    assert!(!ran.stdout.contains(OTHER) && !ran.stdout.contains(CANARY));
    // The scripted model keeps which headers came, not the keys in them.
    let mut seen: Vec<_> = model
        .requests()
        .iter()
        .map(|recorded| {
            let told = ["x-api-key", "authorization", "openai-organization"];
            let headers = recorded.headers.iter();
            let headers = headers.filter(|(name, _)| told.contains(&name.as_str()));
            let headers: BTreeMap<_, _> = headers.cloned().collect();
            (recorded.path.clone(), headers)
        })
        .collect();
    seen.sort();
    seen.dedup();
    let expected = |path: &str, headers: &[(&str, &str)]| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        (path.to_owned(), headers.iter().map(owned).collect())
    };
    let messages = expected("/v1/messages", &[("x-api-key", "(present)")]);
    let responses = expected(
        "/v1/responses",
        &[
            ("authorization", "(present)"),
            ("openai-organization", "org-1"),
        ],
    );
    assert_eq!(seen, [messages, responses]);
}

#[test]
fn a_subagent_on_a_provider_without_a_key_says_so() {
    let subagent = "# You are a subagent";
    let ran = {
        let model = serve(json!([
            {"match": {"not_contains": subagent}, "tool_calls": [
                {"name": "spawn_agent", "arguments": {"task": "say hi", "model": "openai:gpt-x"}},
            ]},
            {"match": {"not_contains": subagent}, "tool_calls": [
                {"name": "wait", "arguments": {"agent_id": "agent-1"}},
            ]},
            {"text": "no luck"},
        ]));
        let directory = scratch();
        let mut command = command(&model.url(), directory.path(), &["--json", "go"]);
        for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL"] {
            command.env_remove(name);
        }
        finish(command, b"")
    };
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stdout.contains("the host holds no credential `openai`"),
        "{}",
        ran.stdout
    );
}
