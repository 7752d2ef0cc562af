//! Runs whose tools act in a container or on another machine.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{CANARY, finish, loud_command, scratch, serve, shell};

/// What stands in for an engine of containers: it runs calls on this machine.
pub(super) const ENGINE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/engine.sh");

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

fn run(directory: &Path, steps: Value, arguments: &[&str]) -> super::Ran {
    let model = serve(steps);
    finish(loud_command(&model.url(), directory, arguments), b"")
}

#[test]
fn tools_act_in_the_directory_of_a_container() {
    let there = scratch();
    fs::write(there.path().join("AGENTS.md"), "Speak of crabs.\n").expect("a file");
    let at = there.path().to_str().expect("UTF-8");
    let steps = json!([
        {"match": {"contains": "Speak of crabs."}, "tool_calls": [
            {"name": "write_file", "arguments": {"file_path": "src/a.txt", "content": "one\n"}},
        ]},
        call("edit_file", json!({"file_path": "src/a.txt", "old_string": "one", "new_string": "two"})),
        call("grep", json!({"pattern": "tw."})),
        {"expect": {"last_tool_result_contains": "src/a.txt"}, "tool_calls": [
            {"name": "shell", "arguments": {"command": "pwd; env; exit 3"}},
        ]},
        {"expect": {"last_tool_result_contains": at}, "text": "Done."},
    ]);
    let ran = run(
        there.path(),
        steps,
        &["--container", "box", "--engine", ENGINE, "go"],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let text = fs::read_to_string(there.path().join("src/a.txt"));
    assert_eq!(text.expect("the file"), "two\n");
    let header = format!("container box: {at}\n");
    assert!(ran.stderr.contains(&header), "{ran:?}");
    // The engine gets what it needs of this process, and no key.
    assert!(!format!("{ran:?}").contains(CANARY), "{ran:?}");
}

#[test]
fn a_command_elsewhere_ends_with_all_that_it_started() {
    let there = scratch();
    let steps = json!([
        {"tool_calls": [{"name": "shell", "arguments": {
            "command": "setsid sleep 300 & echo $! > pid; sleep 300", "timeout_ms": 1000,
        }}]},
        shell("while kill -0 $(cat pid) 2> /dev/null; do sleep 0.02; done; echo all gone"),
        {"expect": {"last_tool_result_contains": "all gone"}, "text": "Done."},
    ]);
    let arguments = ["--container", "box", "--engine", ENGINE, "go"];
    let ran = run(there.path(), steps, &arguments);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[track_caller]
/// Runs `steps` over what stands in for `ssh`; the directories of that and of the tools.
fn over_ssh(steps: impl FnOnce(&Path) -> Value) -> (super::Ran, TempDir, TempDir) {
    let (bin, there) = (scratch(), scratch());
    let stand_in = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/ssh.sh");
    std::os::unix::fs::symlink(stand_in, bin.path().join("ssh")).expect("a link");
    let model = serve(steps(bin.path()));
    let mut run = loud_command(&model.url(), there.path(), &["--ssh", "box", "go"]);
    let mut path = bin.path().as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    run.env("PATH", path);
    (finish(run, b""), bin, there)
}

#[test]
fn a_connection_ends_by_itself_and_is_made_again() {
    let (ran, bin, there) = over_ssh(|bin| {
        let end = format!("rm \"$(cat '{}')\"", bin.join("socket").display());
        json!([
            shell(&end),
            shell("echo again > again.txt"),
            {"text": "Done."},
        ])
    });
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(there.path().join("again.txt").exists(), "{ran:?}");
    let made = fs::read_to_string(bin.path().join("made")).expect("a note");
    assert_eq!(made, "ControlPersist=60\n".repeat(2));
    // The process in the background was asked to end.
    let socket = fs::read_to_string(bin.path().join("socket")).expect("a note");
    assert!(!Path::new(socket.trim()).exists());
}

#[test]
fn a_command_whose_connection_broke_may_have_taken_effect() {
    let told = "cannot reach `ssh box`: client_loop: send disconnect: Broken pipe; the command \
                may have taken effect there: look before you repeat it";
    let (ran, _, there) = over_ssh(|_| {
        json!([
            shell("touch done.txt; : connection-breaks-here"),
            {"expect": {"last_tool_result_contains": told}, "text": "Done."},
        ])
    });
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(there.path().join("done.txt").exists());
}

fn check_refused(arguments: &[&str], said: &str) {
    // No directory of this machine.
    let there = Path::new("/nowhere/at/all");
    let ran = run(there, json!([{"text": "Never."}]), arguments);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn what_does_not_fit_is_refused() {
    check_refused(
        &["--container", "box", "--engine", ENGINE, "go"],
        "cannot work in `/nowhere/at/all`: no such file or directory",
    );
    check_refused(
        &["--container", "box", "--engine", "no-such-engine", "go"],
        "cannot reach `no-such-engine exec box`",
    );
    check_refused(
        &["--ssh=-oProxyCommand=id", "go"],
        "has no name of a machine",
    );
    for more in [
        &["--sandbox", "read-only"][..],
        &["--env", "memory"],
        &["--pass-env", "X"],
        &["--save", "s"],
        &["--ssh", "host"],
    ] {
        let arguments = [&["--container", "box"][..], more, &["go"]].concat();
        check_refused(&arguments, "cannot be used with");
    }
    check_refused(&["--engine", "podman", "go"], "--container");
}
