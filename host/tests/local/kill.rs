//! Ending commands: time limit, cancel, background processes. The canary is a
//! file that grows while somebody is left alive.

use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::environment::{ExecRequest, ExecStatus, OutputStream};
use hermitcrab_host::{CancellationToken, ExecIo, HostEnvironment};

use crate::{Ran, command, fresh, run, run_until};

/// Ignores SIGTERM, holds the pipe, writes the canary every 100 ms.
const STUBBORN: &str =
    "bash -c 'trap \"\" TERM; while :; do echo x >> canary; echo tick; sleep 0.1; done'";

const TIMEOUT_MS: u64 = 500;

fn canary(directory: &Path) -> u64 {
    std::fs::metadata(directory.join("canary")).map_or(0, |metadata| metadata.len())
}

async fn check_canary_stopped(directory: &Path) {
    let before = canary(directory);
    assert!(before > 0, "the canary never sang");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(canary(directory), before, "somebody is left alive");
}

/// Plays `attempt`, which gives the time that it took, until one keeps `limit`:
/// a busy machine only ever makes it longer, so that one run shows the bound.
async fn within(limit: Duration, attempt: impl AsyncFn() -> Duration) {
    let mut took = Vec::new();
    while took.len() < 3 {
        took.push(attempt().await);
        if took.last() < Some(&limit) {
            return;
        }
    }
    panic!("{took:?}, each longer than {limit:?}");
}

/// `exec` returns within timeout + 2.5 s, with the output so far, and nobody is
/// left.
async fn check_timeout(line: &str) {
    let limit = Duration::from_millis(TIMEOUT_MS + 2500);
    within(limit, async || timed_out(line).await).await;
}

async fn timed_out(line: &str) -> Duration {
    let (directory, environment) = fresh();
    let request = ExecRequest {
        timeout_ms: TIMEOUT_MS,
        ..command(format!("echo begun; {line}"))
    };
    let started = Instant::now();
    let ran = run(&environment, request).await;
    let took = started.elapsed();
    let expected = ExecStatus {
        exit_code: 124,
        timed_out: true,
        ..ExecStatus::default()
    };
    assert_eq!(ran.status, expected);
    assert!(ran.stdout.starts_with("begun\n"), "{}", ran.stdout);
    check_canary_stopped(directory.path()).await;
    took
}

#[tokio::test]
async fn a_grandchild_that_ignores_sigterm_dies() {
    check_timeout(&format!("{STUBBORN} & wait")).await;
}

#[tokio::test]
async fn a_stubborn_foreground_child_dies() {
    check_timeout(STUBBORN).await;
}

#[tokio::test]
async fn a_stubborn_shell_dies() {
    check_timeout("trap '' TERM; while :; do echo x >> canary; sleep 0.1; done").await;
}

#[tokio::test]
async fn a_grandchild_without_the_pipe_dies() {
    check_timeout(&format!("{STUBBORN} >/dev/null 2>&1 & sleep 60")).await;
}

#[tokio::test]
async fn a_group_of_its_own_does_not_help() {
    check_timeout(&format!("timeout 60 {STUBBORN}; true")).await;
}

#[tokio::test]
async fn job_control_does_not_help() {
    check_timeout(&format!("set -m; {STUBBORN} & wait")).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_session_of_its_own_does_not_help() {
    check_timeout(&format!("setsid {STUBBORN} & wait")).await;
}

#[tokio::test]
async fn a_stopped_child_dies() {
    check_timeout("echo x >> canary; kill -STOP $$; echo x >> canary").await;
}

/// SIGTERM comes first: what a command does about it within the 2 s of grace is
/// done, and its output arrives. Gives the time that it took.
async fn check_clean_up(handler: &str) -> Duration {
    let (ran, took) = clean_up(handler).await;
    assert_eq!(ran, cleaned());
    took
}

/// A command that did what its handler says.
fn cleaned() -> Ran {
    Ran {
        status: ExecStatus {
            exit_code: 3,
            cancelled: true,
            ..ExecStatus::default()
        },
        stdout: "cleaned\n".to_owned(),
        stderr: String::new(),
    }
}

/// Cancels a command with this handler; gives what came of it and the time that it took.
async fn clean_up(handler: &str) -> (Ran, Duration) {
    let (directory, environment) = fresh();
    let ready = directory.path().join("ready");
    // The signal reaches the whole group. Where it meets a `sleep`, bash reports that.
    let line = format!(
        "exec 2> /dev/null; trap '{handler}' TERM; : > ready; while :; do sleep 0.05; done"
    );
    let cancel = CancellationToken::new();
    // A signal before the trap is set would end the command at once.
    let canceller = async {
        while !ready.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
        Instant::now()
    };
    let (ran, cancelled) = tokio::join!(
        run_until(&environment, command(line), cancel.clone()),
        canceller
    );
    let took = cancelled.elapsed();
    assert!(ran != cleaned() || directory.path().join("clean").exists());
    (ran, took)
}

#[tokio::test]
async fn sigterm_gives_time_to_clean_up() {
    // It ended politely, so that the 2 s of grace are not used up.
    let limit = Duration::from_millis(2000);
    let polite = async || check_clean_up("echo cleaned; : > clean; exit 3").await;
    within(limit, polite).await;
}

#[tokio::test]
async fn the_grace_is_not_cut_short() {
    // On a busy machine a handler of a second may take two, and is then cut off rightly.
    for _ in 0..10 {
        let (ran, took) = clean_up("sleep 1; echo cleaned; : > clean; exit 3").await;
        if ran == cleaned() {
            assert!(took >= Duration::from_millis(1_000), "{took:?}");
            return;
        }
    }
    panic!("a handler of 1 s never came to its end");
}

#[tokio::test]
async fn cancel_ends_it_like_a_timeout() {
    within(Duration::from_millis(2500), cancelled).await;
}

/// Cancels a stubborn command; gives the time that it still took.
async fn cancelled() -> Duration {
    let (directory, environment) = fresh();
    let cancel = CancellationToken::new();
    let begun = directory.path().join("canary");
    let canceller = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
        Instant::now()
    };
    let request = command(format!("{STUBBORN} & wait"));
    let (ran, cancelled) =
        tokio::join!(run_until(&environment, request, cancel.clone()), canceller);
    let took = cancelled.elapsed();
    let expected = ExecStatus {
        exit_code: 143,
        cancelled: true,
        ..ExecStatus::default()
    };
    assert_eq!(ran.status, expected);
    assert!(ran.stdout.contains("tick"), "{}", ran.stdout);
    check_canary_stopped(directory.path()).await;
    took
}

#[tokio::test]
async fn a_cancelled_command_does_not_start() {
    let (directory, environment) = fresh();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let ran = run_until(&environment, command("touch started"), cancel).await;
    assert!(ran.status.cancelled);
    assert!(!directory.path().join("started").exists());
}

#[tokio::test]
async fn dropping_the_call_kills_too() {
    let (directory, environment) = fresh();
    let begun = directory.path().join("canary");
    let mut output = |_: OutputStream, _: Bytes| {};
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let sings = async {
        while !begun.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        status = environment.exec(command(STUBBORN), io) => panic!("ended: {status:?}"),
        () = sings => {}
    }
    // The signal is sent when the call is dropped; dying takes a moment.
    tokio::time::sleep(Duration::from_millis(200)).await;
    check_canary_stopped(directory.path()).await;
}

#[tokio::test]
async fn a_background_process_does_not_hold_the_call() {
    let (directory, environment) = fresh();
    let line = "(sleep 2; touch lived) & echo $! > pid; echo started";
    let ran = run(&environment, command(line)).await;
    let expected = Ran {
        status: ExecStatus::default(),
        stdout: "started\n".to_owned(),
        stderr: String::new(),
    };
    assert_eq!(ran, expected);
    assert!(!directory.path().join("lived").exists());
    // It lives on, as it would under a shell.
    let lived = directory.path().join("lived");
    let guard = Instant::now() + crate::GUARD;
    while !lived.exists() {
        assert!(Instant::now() < guard, "the background process died");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_noisy_background_process_does_not_hold_the_call() {
    let (_directory, environment) = fresh();
    // Held, it would run into its time limit.
    let ran = run(&environment, command("yes & echo started >&2")).await;
    assert_eq!(
        (ran.status, ran.stderr.as_str()),
        (ExecStatus::default(), "started\n")
    );
}

#[tokio::test]
async fn what_was_written_before_the_end_is_complete() {
    let (_directory, environment) = fresh();
    let ran = run(
        &environment,
        command("sleep 5 & head -c 60000 /dev/zero | tr '\\0' x"),
    )
    .await;
    assert_eq!(ran.stdout, "x".repeat(60_000));
}

#[tokio::test]
async fn many_commands_at_once() {
    let (_directory, environment) = fresh();
    let runs = (0..40).map(|n| {
        run(
            &environment,
            command(format!("sleep 0.1; echo {n}; exit {n}")),
        )
    });
    let ran = futures_util::future::join_all(runs).await;
    for (n, ran) in ran.into_iter().enumerate() {
        assert_eq!(
            (ran.status.exit_code, ran.stdout),
            (n as i32, format!("{n}\n"))
        );
    }
}
