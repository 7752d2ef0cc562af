//! Commands: exit codes, streams, input, environment, directories.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{EnvironmentErrorKind, ExecRequest, ExecStatus, OutputStream};
use hermitcrab_host::{
    CancellationToken, EnvPolicy, ExecIo, HostEnvironment, LocalEnvironment, OutputWriter,
};

use crate::{Ran, command, fresh, run};

async fn check(line: &str, exit_code: i32, stdout: &str, stderr: &str) {
    let (_directory, environment) = fresh();
    let expected = Ran {
        status: ExecStatus {
            exit_code,
            ..ExecStatus::default()
        },
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    };
    assert_eq!(run(&environment, command(line)).await, expected);
}

#[tokio::test]
async fn both_streams_are_kept_apart() {
    check("echo out; echo err >&2", 0, "out\n", "err\n").await;
}

#[tokio::test]
async fn an_exit_code_is_passed_on() {
    check("exit 7", 7, "", "").await;
}

#[tokio::test]
async fn a_missing_command_is_127() {
    let (_directory, environment) = fresh();
    let ran = run(&environment, command("no-such-command-here")).await;
    assert_eq!(ran.status.exit_code, 127);
    assert!(ran.stderr.contains("no-such-command-here"), "{ran:?}");
}

#[tokio::test]
async fn a_signal_is_128_and_its_number() {
    check("kill -KILL $$", 137, "", "").await;
}

#[tokio::test]
async fn a_signal_of_an_inner_command_is_bashs_own_code() {
    check(
        "bash -c 'kill -TERM $$'; echo $?",
        0,
        "143\n",
        "Terminated\n",
    )
    .await;
}

#[tokio::test]
async fn standard_input_is_empty() {
    check("cat; echo $?", 0, "0\n", "").await;
}

#[tokio::test]
async fn there_is_no_terminal_to_wait_at() {
    check(
        "(read -r line </dev/tty) 2>/dev/null; echo $?",
        0,
        "1\n",
        "",
    )
    .await;
}

#[tokio::test]
async fn a_broken_pipe_ends_the_writer_quietly() {
    check("yes | head -1", 0, "y\n", "").await;
}

#[tokio::test]
async fn it_is_bash() {
    check("x=(a b); echo ${x[1]} $BASH_SUBSHELL", 0, "b 0\n", "").await;
}

#[tokio::test]
async fn each_command_starts_pristine() {
    let (_directory, environment) = fresh();
    run(
        &environment,
        command("cd /; export LEFT=1; shopt -s nullglob"),
    )
    .await;
    let ran = run(&environment, command("echo \"[$LEFT]\"; pwd")).await;
    let here = environment.info().working_directory;
    assert_eq!(ran.stdout, format!("[]\n{here}\n"));
}

#[tokio::test]
async fn quotes_and_many_lines_arrive_unchanged() {
    check(
        "cat <<'EOF'\n\"a\" 'b' $c \\d `e`\nEOF\nprintf '%s\\n' \"ünïcode\"",
        0,
        "\"a\" 'b' $c \\d `e`\nünïcode\n",
        "",
    )
    .await;
}

#[tokio::test]
async fn variables_of_the_request_are_added() {
    let (_directory, environment) = fresh();
    let request = ExecRequest {
        env: BTreeMap::from([("GREETING".to_owned(), "hi there".to_owned())]),
        ..command("echo \"$GREETING\"; test -n \"$PATH\"")
    };
    let ran = run(&environment, request).await;
    assert_eq!(
        (ran.status.exit_code, ran.stdout.as_str()),
        (0, "hi there\n")
    );
}

#[tokio::test]
async fn the_working_directory_can_be_chosen() {
    let (directory, environment) = fresh();
    std::fs::create_dir(directory.path().join("sub")).unwrap();
    let request = ExecRequest {
        working_dir: Some("sub".to_owned()),
        ..command("pwd")
    };
    let here = environment.info().working_directory;
    assert_eq!(
        run(&environment, request).await.stdout,
        format!("{here}/sub\n")
    );
}

/// Asserts that the command does not start.
async fn check_refused(request: ExecRequest, kind: EnvironmentErrorKind, message: &str) {
    let (_directory, environment) = fresh();
    let mut output = |_: OutputStream, _: Bytes| {};
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let error = environment.exec(request, io).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
}

#[tokio::test]
async fn a_missing_working_directory_is_an_error() {
    let request = ExecRequest {
        working_dir: Some("nowhere".to_owned()),
        ..command("pwd")
    };
    check_refused(
        request,
        EnvironmentErrorKind::NotFound,
        "cannot run a command in `nowhere`: no such directory",
    )
    .await;
}

#[tokio::test]
async fn a_nul_byte_is_an_error() {
    check_refused(
        command("echo a\0b"),
        EnvironmentErrorKind::InvalidInput,
        "the command `echo a\\0b` holds a NUL byte",
    )
    .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_command_beyond_the_systems_limit_is_an_error() {
    check_refused(
        command(format!("echo {}", "x".repeat(200_000))),
        EnvironmentErrorKind::TooLarge,
        "the command is too long for the system (200005 bytes); write it to a file and run that",
    )
    .await;
}

#[tokio::test]
async fn a_directory_that_does_not_exist_cannot_be_worked_in() {
    let error = LocalEnvironment::new("/no/such/place").unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            EnvironmentErrorKind::NotFound,
            "cannot work in `/no/such/place`: no such file or directory"
        )
    );
}

#[tokio::test]
async fn a_file_cannot_be_worked_in() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let error = LocalEnvironment::new(file.path()).unwrap_err();
    assert_eq!(error.kind, EnvironmentErrorKind::NotDirectory);
    assert!(error.message.ends_with("it is not a directory"), "{error}");
}

#[tokio::test]
async fn facts_are_those_of_the_machine() {
    let (directory, environment) = fresh();
    let info = environment.info();
    let real = std::fs::canonicalize(directory.path()).unwrap();
    assert_eq!(Path::new(&info.working_directory), real);
    let ran = run(
        &environment,
        command("echo \"$(uname -s) $(uname -r)\"; date +%z"),
    )
    .await;
    let offset = format!(
        "{}{:02}{:02}",
        if info.utc_offset_minutes < 0 {
            '-'
        } else {
            '+'
        },
        info.utc_offset_minutes.abs() / 60,
        info.utc_offset_minutes.abs() % 60
    );
    assert_eq!(ran.stdout, format!("{}\n{offset}\n", info.os_version));
}

/// The value of a variable that cargo gives to this test, which stands for a
/// key that the host holds.
const HELD: &str = env!("CARGO_MANIFEST_DIR");

async fn check_environment(environment: LocalEnvironment, line: &str, stdout: &str) {
    assert_eq!(run(&environment, command(line)).await.stdout, stdout);
}

#[tokio::test]
async fn other_variables_are_inherited() {
    let (_directory, environment) = fresh();
    check_environment(
        environment,
        "echo \"$CARGO_MANIFEST_DIR\"",
        &format!("{HELD}\n"),
    )
    .await;
}

#[tokio::test]
async fn a_held_secret_is_not_inherited() {
    let directory = tempfile::tempdir().unwrap();
    for policy in [EnvPolicy::Filtered, EnvPolicy::All] {
        let environment = LocalEnvironment::builder(directory.path())
            .env_policy(policy)
            .secrets([HELD])
            .build()
            .unwrap();
        let ran = run(&environment, command("env")).await;
        assert!(!ran.stdout.contains(HELD), "{policy:?}: {}", ran.stdout);
    }
}

#[tokio::test]
async fn none_gives_only_what_is_added() {
    let directory = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::builder(directory.path())
        .env_policy(EnvPolicy::None)
        .env("ADDED", "1")
        .build()
        .unwrap();
    check_environment(
        environment,
        "echo \"$ADDED[$HOME][$CARGO_MANIFEST_DIR]\"",
        "1[][]\n",
    )
    .await;
}

#[tokio::test]
async fn core_only_gives_path_and_home() {
    let directory = tempfile::tempdir().unwrap();
    let environment = LocalEnvironment::builder(directory.path())
        .env_policy(EnvPolicy::CoreOnly)
        .build()
        .unwrap();
    let path = std::env::var("PATH").unwrap();
    check_environment(
        environment,
        "echo \"$PATH[$CARGO_MANIFEST_DIR]\"",
        &format!("{path}[]\n"),
    )
    .await;
}

/// Counts bytes and the largest chunk, and is slow now and then.
#[derive(Default)]
struct Slow {
    bytes: usize,
    largest: usize,
    chunks: usize,
}

#[async_trait::async_trait]
impl OutputWriter for Slow {
    async fn write(&mut self, _: OutputStream, data: Bytes) {
        self.bytes += data.len();
        self.largest = self.largest.max(data.len());
        self.chunks += 1;
        if self.chunks.is_multiple_of(64) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn huge_output_arrives_complete_in_bounded_chunks() {
    // 5 GB where there is time.
    let is_long = std::env::var_os("HERMITCRAB_TEST_ALL").is_some();
    let bytes = if is_long { 5_000_000_000 } else { 50_000_000 };
    let memory_before = resident_bytes();
    let (_directory, environment) = fresh();
    let mut output = Slow::default();
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let request = ExecRequest {
        timeout_ms: 600_000,
        ..command(format!("head -c {bytes} /dev/zero"))
    };
    let status = environment.exec(request, io).await.unwrap();
    assert_eq!((status.exit_code, output.bytes), (0, bytes));
    assert!(output.largest <= 64 * 1024, "{}", output.largest);
    // The tests beside it take as much as the short form would.
    let grown = resident_bytes().saturating_sub(memory_before);
    assert!(!is_long || grown < bytes / 5, "{grown} bytes more");
}

/// What this process holds in memory; 0 where the system does not tell.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// Blocks until the command has been seen to wait for it.
struct Blocked<'a> {
    written: &'a AtomicUsize,
    release: &'a tokio::sync::Notify,
}

#[async_trait::async_trait]
impl OutputWriter for Blocked<'_> {
    async fn write(&mut self, _: OutputStream, data: Bytes) {
        self.written.fetch_add(data.len(), Ordering::SeqCst);
        self.release.notified().await;
        self.release.notify_one();
    }
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_down() {
    let (directory, environment) = fresh();
    let written = AtomicUsize::new(0);
    let release = tokio::sync::Notify::new();
    let mut output = Blocked {
        written: &written,
        release: &release,
    };
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let line = "head -c 5000000 /dev/zero; touch done";
    let exec = environment.exec(command(line), io);
    let watch = async {
        while written.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Time enough for the command to end if nothing held it.
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!directory.path().join("done").exists());
        release.notify_one();
    };
    let (status, ()) = tokio::join!(exec, watch);
    assert_eq!(status.unwrap().exit_code, 0);
    assert_eq!(written.load(Ordering::SeqCst), 5_000_000);
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let (directory, environment) = fresh();
    let go = directory.path().join("go");
    // The command goes on only once its first line has been seen outside.
    let mut output = |_: OutputStream, data: Bytes| {
        if data.starts_with(b"first") {
            std::fs::write(&go, "").unwrap();
        }
    };
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let line = "echo first; until test -e go; do sleep 0.02; done; echo second";
    let status = environment.exec(command(line), io).await.unwrap();
    assert_eq!((status.exit_code, status.timed_out), (0, false));
}
