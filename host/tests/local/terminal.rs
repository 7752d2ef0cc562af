//! Commands whose output is a terminal.

use std::time::Instant;

use hermitcrab::environment::ExecStatus;
use hermitcrab_host::LocalEnvironment;

use crate::{GUARD, Ran, command, run};

fn with_terminal() -> (tempfile::TempDir, LocalEnvironment) {
    let directory = tempfile::tempdir().expect("a directory");
    let builder = LocalEnvironment::builder(directory.path()).terminal();
    let environment = builder.build().expect("an environment");
    (directory, environment)
}

async fn check(line: &str, exit_code: i32, stdout: &str) {
    let (_directory, environment) = with_terminal();
    let expected = Ran {
        status: ExecStatus {
            exit_code,
            ..ExecStatus::default()
        },
        stdout: stdout.to_owned(),
        stderr: String::new(),
    };
    assert_eq!(run(&environment, command(line)).await, expected);
}

#[tokio::test]
async fn both_streams_are_a_terminal_and_the_input_is_none() {
    check(
        "for fd in 0 1 2; do test -t $fd; echo $?; done; stty size <&1",
        0,
        "1\n0\n0\n24 80\n",
    )
    .await;
}

#[tokio::test]
async fn lines_arrive_in_order_as_they_were_written() {
    let line = "printf 'a\\n\\tb\\r\\nc'; printf 'd\\n' >&2; exit 5";
    check(line, 5, "a\n\tb\r\ncd\n").await;
}

#[tokio::test]
async fn a_program_that_asks_there_finds_nobody() {
    let line = "read -r answer < /dev/tty; echo $?";
    let (_directory, environment) = with_terminal();
    let ran = run(&environment, command(line)).await;
    assert!(ran.stdout.contains("/dev/tty"), "{ran:?}");
    assert!(ran.stdout.ends_with("1\n"), "{ran:?}");
}

#[tokio::test]
async fn long_output_is_whole() {
    let (_directory, environment) = with_terminal();
    let ran = run(&environment, command("seq 1 300000")).await;
    let expected: String = (1..=300_000).map(|number| format!("{number}\n")).collect();
    assert!(ran.stdout == expected, "{} bytes", ran.stdout.len());
}

#[tokio::test]
async fn what_is_left_in_the_background_holds_nobody_up() {
    let begun = Instant::now();
    check("sleep 20 & echo up", 0, "up\n").await;
    assert!(begun.elapsed() < GUARD);
}

#[tokio::test]
async fn a_time_limit_ends_all_of_it() {
    let (directory, environment) = with_terminal();
    let mut request = command("sleep 300 & echo $! > pid; echo before; wait");
    request.timeout_ms = 300;
    let ran = run(&environment, request).await;
    assert!(ran.status.timed_out, "{ran:?}");
    assert_eq!(ran.stdout, "before\n");
    let pid = std::fs::read_to_string(directory.path().join("pid")).expect("it");
    let pid = pid.trim();
    let wait = format!("while kill -0 {pid} 2> /dev/null; do sleep 0.02; done; echo gone");
    let left = run(&environment, command(wait)).await;
    assert_eq!(left.stdout, "gone\n", "{left:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_fence_lets_the_terminal_be_written_to() {
    use hermitcrab_host::Sandbox;

    for sandbox in [Sandbox::ReadOnly, Sandbox::WorkspaceWrite] {
        let directory = tempfile::tempdir().expect("a directory");
        let builder = LocalEnvironment::builder(directory.path()).terminal();
        let environment = builder.sandbox(sandbox).build().expect("an environment");
        let ran = run(&environment, command("test -t 1 && echo hi")).await;
        assert_eq!(
            (ran.status.exit_code, &*ran.stdout),
            (0, "hi\n"),
            "{sandbox:?}"
        );
    }
}
