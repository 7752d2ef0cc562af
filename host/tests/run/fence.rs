//! `--sandbox`, from outside.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fork::bodies;
use super::{CANARY, Ran, finish, serve, shell};

/// A working directory and one beside it, outside of the temporary directories.
pub(super) struct Place {
    root: TempDir,
}

impl Place {
    pub(super) fn new() -> Self {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let is_temporary = ["/tmp", "/var/tmp"].map(|path| target.starts_with(path));
        let base = match is_temporary.contains(&true) {
            // A checkout there is writable as a whole.
            true => std::env::home_dir().expect("a home directory"),
            false => target.to_owned(),
        };
        let root = tempfile::tempdir_in(base).expect("a directory");
        for name in ["work", "out", "config/hermitcrab"] {
            fs::create_dir_all(root.path().join(name)).expect("a directory");
        }
        Self { root }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        // As the program sees it.
        fs::canonicalize(self.root.path()).expect("it").join(name)
    }

    fn user(&self, text: &str) {
        fs::write(self.path("config/hermitcrab/hermitcrab.toml"), text).expect("a file");
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command
            .args(arguments)
            .current_dir(self.path("work"))
            .env("HERMITCRAB_STATE_DIR", self.path("state"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("ANTHROPIC_API_KEY", CANARY)
            .env_remove("ANTHROPIC_BASE_URL")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// One run over two attempts to leave, by a command and by a file tool; what came of
    /// it, and its requests.
    fn leave(&self, arguments: &[&str]) -> (Ran, Vec<Value>) {
        let model = serve(json!([
            shell("echo in > made; echo out > ../out/made"),
            {"tool_calls": [{"name": "write_file",
                "arguments": {"file_path": "../out/written", "content": "out"}}]},
            {"text": "Done."},
        ]));
        let url = model.url();
        let mut all = vec!["run", "--quiet", "--base-url", &url];
        all.extend(arguments);
        let ran = finish(self.command(&all), b"");
        let requests = bodies(&model);
        let parsed = requests.iter().map(|body| serde_json::from_slice(body));
        (ran, parsed.collect::<Result<_, _>>().expect("JSON"))
    }

    /// Whether the working directory, and the other, were written to; both are empty then.
    fn written(&self) -> (bool, bool) {
        let took = |name: &str| {
            let there = [
                self.path(name).join("made"),
                self.path(name).join("written"),
            ];
            let removed = there.map(|path| fs::remove_file(path).is_ok());
            removed.contains(&true)
        };
        (took("work"), took("out"))
    }
}

/// The text of the last result in the last request.
fn last_result(requests: &[Value], number: usize) -> String {
    requests[number]["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("a message")
        .to_string()
}

#[test]
fn tools_stay_where_they_may_be_and_say_so() {
    let place = Place::new();
    let (ran, requests) = place.leave(&["--sandbox", "workspace-write", "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, false));
    let allowed = format!("changes in `{}`", place.path("work").display());
    assert!(requests[0]["system"].to_string().contains(&allowed));
    for number in [1, 2] {
        let result = last_result(&requests, number);
        assert!(result.contains(&allowed), "{result}");
        assert!(result.contains("--allow-write DIR"), "{result}");
    }
    let (ran, _) = place.leave(&["--sandbox", "read-only", "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (false, false));
    let (ran, requests) = place.leave(&["Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, true));
    assert!(!requests[0]["system"].to_string().contains("Limits:"));
    let out = place.path("out");
    let out = out.to_str().expect("UTF-8");
    let (ran, _) = place.leave(&["--sandbox", "workspace-write", "--allow-write", out, "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, true));
}

#[test]
fn files_of_settings_say_it_and_a_project_does_not_open_it() {
    let place = Place::new();
    let leave = |arguments: &[&str]| {
        let (ran, _) = place.leave(arguments);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        (place.written(), ran.stderr)
    };
    place.user("sandbox = \"workspace-write\"\nallow_write = [\"/nowhere/at/all\"]\n");
    assert_eq!(leave(&["Go"]).0, (true, false));
    assert_eq!(leave(&["--sandbox", "off", "Go"]).0, (true, true));
    let project = place.path("work").join("hermitcrab.toml");
    fs::write(&project, "sandbox = \"off\"\nallow_write = [\"..\"]\n").expect("a file");
    let (written, stderr) = leave(&["Go"]);
    assert_eq!(written, (true, false));
    assert!(stderr.contains("allow_write, sandbox of"), "{stderr}");
    fs::remove_file(project).expect("a file");
    let out = place.path("out");
    place.user(&format!(
        "sandbox = \"workspace-write\"\nallow_write = [{out:?}]\n"
    ));
    assert_eq!(leave(&["Go"]).0, (true, true));
    // One that goes on stays within, too.
    place.user("sandbox = \"workspace-write\"\n");
    let saved = place.path("saved.tar");
    let saved = saved.to_str().expect("UTF-8");
    assert_eq!(leave(&["--save", saved, "Go"]).0, (true, false));
    assert_eq!(leave(&["--restore", saved, "Go"]).0, (true, false));
}

#[test]
fn a_session_that_goes_on_keeps_its_sandbox() {
    let place = Place::new();
    let (ran, _) = place.leave(&["--sandbox", "workspace-write", "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, false));
    let (ran, requests) = place.leave(&["--continue", "Again"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, false));
    let result = last_result(&requests, 1);
    assert!(result.contains("--allow-write DIR"), "{result}");
    // Who asks for another one gets it.
    let (ran, _) = place.leave(&["--continue", "--sandbox", "off", "Again"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, true));
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let place = Place::new();
    for (arguments, expected) in [
        (&["--net"][..], "--net needs --sandbox"),
        (
            &["--allow-write", "."],
            "--allow-write needs --sandbox workspace-write",
        ),
        (
            &["--sandbox", "read-only", "--allow-write", "."],
            "--allow-write needs --sandbox workspace-write",
        ),
        (
            &["--sandbox", "workspace-write", "--allow-write", "nowhere"],
            "cannot open --allow-write nowhere",
        ),
        (
            &["--sandbox", "workspace-write", "--env", "memory"],
            "--sandbox needs --env local",
        ),
        (&["--net", "--env", "memory"], "--net needs --env local"),
    ] {
        let mut all = arguments.to_vec();
        all.push("Go");
        let (ran, requests) = place.leave(&all);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{arguments:?}: {ran:?}");
        assert!(requests.is_empty());
    }
    for (user, expected) in [
        (
            "sandbox = \"all\"\n",
            "`sandbox` is off, read-only or workspace-write",
        ),
        ("net = 1\n", "`net` has a wrong value: 1"),
        ("allow_write = \"x\"\n", "`allow_write` has a wrong value"),
    ] {
        place.user(user);
        let (ran, _) = place.leave(&["Go"]);
        assert_eq!(ran.code, Some(2), "{user}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{user}: {ran:?}");
    }
}

/// A kernel without Landlock.
fn without_landlock() -> BpfProgram {
    let call = nix::libc::SYS_landlock_create_ruleset;
    SeccompFilter::new(
        [(call, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(nix::libc::ENOSYS as u32),
        std::env::consts::ARCH.try_into().expect("an architecture"),
    )
    .and_then(BpfProgram::try_from)
    .expect("a filter")
}

#[test]
fn a_kernel_without_a_fence_is_said_and_stops_nothing() {
    let place = Place::new();
    let model = serve(json!([shell("echo in > made"), {"text": "Done."}]));
    let url = model.url();
    let arguments = [
        "run",
        "--json",
        "--sandbox",
        "workspace-write",
        "--base-url",
        &url,
        "Go",
    ];
    let mut command = place.command(&arguments);
    let filter = without_landlock();
    // SAFETY: only system calls, on memory that was allocated before.
    unsafe {
        command.pre_exec(move || {
            seccompiler::apply_filter(&filter).map_err(|_| std::io::ErrorKind::Other.into())
        });
    }
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(place.written(), (true, false));
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let warning = events.iter().find(|event| event["kind"] == "WARNING");
    let data = &warning.expect("a warning")["data"];
    assert_eq!(data["code"], "environment");
    let message = data["message"].as_str().unwrap_or_default();
    assert!(message.contains("this kernel has no Landlock"), "{message}");
}

/// Bounds of the sandbox do not keep the host from what is its own.
#[test]
fn the_host_keeps_its_session_and_log() {
    let place = Place::new();
    let log = place.path("out").join("run.log");
    let log = Path::new(&log).to_str().expect("UTF-8");
    let (ran, _) = place.leave(&["--sandbox", "read-only", "--record", log, "Go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(fs::metadata(log).expect("a log").len() > 1_000);
    let sessions = fs::read_dir(place.path("state/sessions")).expect("a directory");
    assert!(sessions.count() > 0);
}
