//! What happens to runs: signals, a reader that goes away, a disk that is full at every
//! write, a place for sessions that cannot be written.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::resume::{Place, assert_valid, requests, ten_rounds};
use super::{GUARD, finish, serve, shell};

/// Waits for `path`, which a command makes.
fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(begun.elapsed() < GUARD, "no {}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process of this number lives; a zombie does not.
fn lives(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = state.rsplit_once(") ").map(|(_, rest)| rest.to_owned());
    state.is_some_and(|state| !state.starts_with('Z'))
}

#[track_caller]
fn check_signal(signal: Signal) {
    let place = Place::new();
    let model = serve(json!([
        shell("sleep 300 & echo $! > pid.part; mv pid.part pid; wait"),
        {"text": "Never."},
    ]));
    let url = model.url();
    let mut run = place.command(&["run", "--quiet", "--base-url", &url, "Wait."]);
    let child = run.spawn().expect("the binary");
    let pid = place.work().join("pid");
    wait_for(&pid);
    let run = Pid::from_raw(i32::try_from(child.id()).expect("a number"));
    kill(run, signal).expect("a signal");
    let ended = child.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(130), "{signal}: {ended:?}");
    let pid: i32 = fs::read_to_string(pid)
        .expect("it")
        .trim()
        .parse()
        .expect("a number");
    let begun = Instant::now();
    while lives(pid) {
        assert!(begun.elapsed() < GUARD, "{signal}: its command lives");
        std::thread::sleep(Duration::from_millis(10));
    }
    // What was asked of the model goes on.
    let model = serve(json!([{"text": "Well."}]));
    let ran = place.ask(&model, &["--quiet", "--continue", "Go on."]);
    assert_eq!(ran.code, Some(0), "{signal}: {ran:?}");
    assert_valid(&requests(&model)[0]);
}

#[test]
fn sigint_ends_a_run_that_can_go_on() {
    check_signal(Signal::SIGINT);
}

#[test]
fn sigterm_ends_a_run_that_can_go_on() {
    check_signal(Signal::SIGTERM);
}

#[test]
fn sighup_ends_a_run_that_can_go_on() {
    check_signal(Signal::SIGHUP);
}

/// Its reader goes before it begins to write.
#[track_caller]
fn check_reader_gone(arguments: &[&str]) {
    let place = Place::new();
    let model = serve(json!([
        shell("while [ ! -e go ]; do sleep 0.02; done; seq 5000; echo done > done"),
        {"text": "A long answer. ".repeat(20_000)},
    ]));
    let url = model.url();
    let all = [&["run", "--base-url", &url], arguments].concat();
    let mut child = place.command(&all).spawn().expect("the binary");
    drop(child.stdout.take());
    fs::write(place.work().join("go"), "").expect("a file");
    let ended = child.wait_with_output().expect("an end");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!said.contains("panicked"), "{said}");
    assert!(ended.status.code().is_some(), "{ended:?}");
    // It can go on, with a whole history.
    let model = serve(json!([{"text": "Well."}]));
    let ran = place.ask(&model, &["--quiet", "--continue", "Go on."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_valid(&requests(&model)[0]);
}

#[test]
fn a_reader_of_text_that_goes_away() {
    check_reader_gone(&["Go."]);
}

#[test]
fn a_reader_of_events_that_goes_away() {
    check_reader_gone(&["--json", "Go."]);
}

/// A run over the core as a library: the component's memory begins as a file, which a limit
/// on files would stop before its first round.
fn native(place: &Place, url: &str, arguments: &[&str]) -> Command {
    let mut run = place.command(&["run", "--base-url", url]);
    run.args(arguments).env("HERMITCRAB_CORE", "native");
    run
}

/// Ten rounds where no file of the run may be longer than `bytes`; it ends well, what
/// tools wrote is whole, and so is the log, or the run says that it is not.
fn check_full_at(bytes: u64) {
    let place = Place::new();
    let model = serve(ten_rounds());
    let mut run = native(&place, &model.url(), &["Do ten rounds."]);
    // SAFETY: one call of the system, which allocates nothing.
    unsafe {
        run.pre_exec(move || {
            let limit = libc::rlimit {
                rlim_cur: bytes,
                rlim_max: bytes,
            };
            match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{bytes}: {ran:?}");
    assert!(ran.stdout.contains("All ten rounds."), "{bytes}: {ran:?}");
    let work = place.work();
    let read = |path: &str| fs::read_to_string(work.join(path)).ok();
    assert_eq!(read("two.txt").as_deref(), Some("2\n"), "{bytes}");
    assert_eq!(read("deep/er/three.txt").as_deref(), Some("3\n"), "{bytes}");
    let is_said = ["is not kept", "is not whole"]
        .iter()
        .any(|said| ran.stderr.contains(said));
    // How long a log is depends on how output comes in pieces.
    assert!(is_said || log_is_whole(&place), "{bytes}: nobody said it");
    // Whatever is kept can be read, or is refused in a sentence.
    let listed = place.run(&["sessions"]);
    assert_eq!(listed.code, Some(0), "{bytes}: {listed:?}");
    let model = serve(json!([{"text": "Well."}]));
    let again = native(&place, &model.url(), &["--quiet", "--continue", "Go on."]);
    let ran = finish(again, b"");
    assert!(!ran.stderr.contains("panicked"), "{bytes}: {ran:?}");
    match ran.code {
        Some(0) => assert_valid(&requests(&model)[0]),
        _ => assert!(ran.stderr.starts_with("hermitcrab: "), "{bytes}: {ran:?}"),
    }
}

/// Whether the log of the only session goes to the end of its only input.
fn log_is_whole(place: &Place) -> bool {
    let log = fs::File::open(place.session().join("log.gz")).expect("a log");
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(log).read_to_end(&mut text);
    read.is_ok() && String::from_utf8_lossy(&text).contains(r#""to":"IDLE""#)
}

#[test]
fn a_disk_that_is_full_at_every_write_of_the_journal() {
    // How long the log of such a run is.
    let place = Place::new();
    let model = serve(ten_rounds());
    let whole = native(&place, &model.url(), &["--quiet", "Do ten rounds."]);
    let ran = finish(whole, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let log = fs::metadata(place.session().join("log.gz")).expect("a log");
    for part in 0..12 {
        let bytes = 16 + log.len() * part / 12;
        check_full_at(bytes);
    }
}

#[test]
fn a_place_for_sessions_that_is_a_file() {
    let place = Place::new();
    fs::write(place.state(), "in the way").expect("a file");
    let model = serve(ten_rounds());
    let ran = place.ask(&model, &["Do ten rounds."]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("All ten rounds."), "{ran:?}");
    assert!(ran.stderr.contains("not kept"), "{ran:?}");
    let text = fs::read_to_string(place.state());
    assert_eq!(text.expect("it"), "in the way");
}

/// A file system that makes no directories, not even for root.
#[cfg(target_os = "linux")]
const READ_ONLY: &str = "/proc/sys";

#[cfg(target_os = "linux")]
#[test]
fn a_place_for_sessions_that_is_read_only() {
    let place = Place::new();
    let model = serve(ten_rounds());
    let url = model.url();
    let mut run = place.command(&["run", "--base-url", &url, "Do ten rounds."]);
    run.env("HERMITCRAB_STATE_DIR", READ_ONLY);
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("All ten rounds."), "{ran:?}");
    assert!(ran.stderr.contains("not kept"), "{ran:?}");
    assert!(ran.stderr.contains("cannot be undone"), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_project_that_is_read_only() {
    let place = Place::new();
    let write = json!({"file_path": "new.txt", "content": "x"});
    let model = serve(json!([
        {"tool_calls": [{"name": "write_file", "arguments": write}]},
        {"expect": {"last_tool_result_contains": "cannot write"}, "text": "It cannot be written."},
    ]));
    let url = model.url();
    let run = place.command(&["run", "--base-url", &url, "--dir", READ_ONLY, "Write."]);
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("It cannot be written."), "{ran:?}");
}
