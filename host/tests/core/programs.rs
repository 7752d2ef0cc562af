//! Programs lent to a sandbox, as Rust functions: what a call tells them, and
//! how it ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use hermitcrab::environment::{ExecRequest, FileChange, FileNode, ProgramFiles, ProgramResult};
use hermitcrab_host::{EnvironmentHandle, ExecOutput, MemoryOptions, ProgramCall, ProgramFn};

use crate::component;

fn program<F>(run: impl Fn(ProgramCall) -> F + Send + Sync + 'static) -> ProgramFn
where
    F: Future<Output = ProgramResult> + Send + 'static,
{
    Arc::new(move |call| run(call).boxed())
}

fn printed(text: impl Into<String>) -> ProgramResult {
    ProgramResult {
        stdout: text.into().into(),
        ..ProgramResult::default()
    }
}

/// A sandbox, in an instance of its own, to which `p` is lent.
async fn sandbox(program: &ProgramFn) -> EnvironmentHandle {
    let host = component().build().expect("a core");
    let instance = host.instance().expect("an instance");
    let options = MemoryOptions {
        programs: BTreeMap::from([("p".to_owned(), program.clone())]),
        ..MemoryOptions::default()
    };
    instance.add_memory(options).await.expect("a sandbox")
}

fn command(command: &str, timeout_ms: u64) -> ExecRequest {
    ExecRequest {
        command: command.to_owned(),
        timeout_ms,
        ..ExecRequest::default()
    }
}

fn shown(output: &ExecOutput) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.exit_code;
    (code, text(&output.stdout), text(&output.stderr))
}

fn answers(code: i32, stdout: &str, stderr: &str) -> (i32, String, String) {
    (code, stdout.to_owned(), stderr.to_owned())
}

/// Prints when it is told to end, and not before.
fn patient() -> ProgramFn {
    program(|call| async move {
        call.cancel.cancelled().await;
        printed("last words\n")
    })
}

#[tokio::test]
async fn what_a_program_says_after_its_time_limit_counts() {
    let sandbox = sandbox(&patient()).await;
    let output = sandbox.exec(command("p", 300)).await.expect("a shell");
    assert!(output.status.timed_out, "{output:?}");
    assert_eq!(
        (shown(&output).0, &*shown(&output).1),
        (124, "last words\n")
    );
}

/// Prints 20,000 lines on both streams when it is told to end.
fn talkative() -> ProgramFn {
    program(|call| async move {
        call.cancel.cancelled().await;
        ProgramResult {
            exit_code: 7,
            stderr: "e\n".repeat(20_000).into(),
            ..printed("o\n".repeat(20_000))
        }
    })
}

#[tokio::test]
async fn what_an_ended_program_printed_goes_where_it_would_have_gone() {
    let (o, e) = ("o\n".repeat(20_000), "e\n".repeat(20_000));
    for (script, code, stdout, stderr) in [
        ("p; echo never", 124, &*o, &*e),
        ("p | cat", 124, &o, &e),
        ("p | tail -n 1 | tr o x; echo never", 124, "x\n", &e),
        ("p 2>&1 >/dev/null | tee copy | wc -l", 124, "20000\n", ""),
        ("p 2> errors | head -n 1", 124, "o\n", ""),
        (
            "echo 'a | echo never'; p; echo never",
            124,
            &format!("a | echo never\n{o}"),
            &e,
        ),
        // A `timeout` of its own ends it before, and the script goes on.
        ("timeout 0.2 p; echo $?", 0, &format!("{o}124\n"), &e),
        ("timeout -p 0.2 p; echo $?", 0, &format!("{o}7\n"), &e),
        (
            "timeout 0.2 p 2>/dev/null | tail -n 1 && date +%s | wc -l",
            0,
            "o\n1\n",
            "",
        ),
        (
            "timeout 0.2 p > out 2> err || wc -l < out",
            0,
            "20000\n",
            "",
        ),
        (
            "timeout 0.2 timeout 60 p 2> err | head -n 1; timeout 1 sleep 2; echo $?",
            0,
            "o\n124\n",
            "",
        ),
        (
            "(timeout 0.2 p 2> /dev/null | head -n 1) & (timeout 0.4 p 2>&1 | tail -n 1) & wait",
            0,
            "o\ne\n",
            "",
        ),
    ] {
        let sandbox = sandbox(&talkative()).await;
        let output = sandbox.exec(command(script, 1_500)).await.expect("a shell");
        assert_eq!(shown(&output), answers(code, stdout, stderr), "{script}");
    }
}

#[tokio::test]
async fn a_program_that_does_not_listen_is_ended() {
    let deaf = program(|_| std::future::pending());
    let sandbox = sandbox(&deaf).await;
    let stop = tokio::time::sleep(Duration::from_millis(50));
    let run = sandbox.exec_until(command("p", 600_000), |_, _| {}, stop);
    let guard = Duration::from_secs(60);
    let status = tokio::time::timeout(guard, run).await.expect("an end");
    assert!(status.expect("a status").cancelled);
}

#[tokio::test]
async fn a_program_that_panics_has_failed() {
    // Both where it is called and where it is awaited.
    for at_once in [true, false] {
        let broken = program(move |call| {
            assert!(!at_once, "at once");
            async move { panic!("{} later", call.request.name) }
        });
        let sandbox = sandbox(&broken).await;
        let output = sandbox.exec(command("p", 60_000)).await.expect("a shell");
        assert_eq!(
            shown(&output),
            answers(126, "", "p: panicked in the host\n"),
            "at once: {at_once}"
        );
        let output = sandbox.exec(command("echo on", 60_000)).await;
        assert_eq!(shown(&output.expect("a shell")), answers(0, "on\n", ""));
    }
}

#[tokio::test]
async fn a_program_that_was_not_lent_is_not_found() {
    let sandbox = sandbox(&patient()).await;
    let output = sandbox.exec(command("q", 60_000)).await.expect("a shell");
    assert_eq!(output.status.exit_code, 127, "{output:?}");
}

#[tokio::test]
async fn of_two_calls_side_by_side_the_last_one_counts_and_says_so() {
    // Both have begun before either ends.
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let writer = program(move |call| {
        let both = both.clone();
        async move {
            both.wait().await;
            let content = call.request.args.concat();
            let change = FileChange {
                mode: Some(0o755),
                ..FileChange::new("/workspace/log", FileNode::File(content.into()))
            };
            ProgramResult {
                changes: vec![change],
                ..ProgramResult::default()
            }
        }
    });
    let sandbox = sandbox(&writer).await;
    let exec = |line: &str| sandbox.exec(command(line, 60_000));
    let (one, two) = tokio::join!(exec("p one"), exec("p two"));
    let mut said = [one, two].map(|output| shown(&output.expect("a shell")).2);
    said.sort();
    assert_eq!(
        said,
        [
            "",
            "p: something else changed /workspace/log while it ran; what p made of it has taken the place of that\n"
        ]
    );
    let output = exec("stat -c '%a %s' log").await.expect("a shell");
    assert_eq!(shown(&output), answers(0, "755 3\n", ""));
}

/// A call as the program saw it: sandbox, since, state, paths of the changes.
type Seen = (u64, Option<u64>, u64, Vec<String>);

#[tokio::test]
async fn each_sandbox_has_a_number_and_tells_what_changed() {
    let seen = Arc::<Mutex<Vec<Seen>>>::default();
    let forgetful = {
        let seen = seen.clone();
        program(move |call| {
            let request = call.request;
            let changes = request.changes.iter();
            let paths = changes
                .map(|change| change.path.clone())
                .filter(|path| path.starts_with("/workspace/"));
            let told = (call.sandbox, request.since, request.state, paths.collect());
            seen.lock().expect("no panic").push(told);
            // The second call of all finds that it knows nothing any more.
            let files = match request.state {
                2 => ProgramFiles::Missing,
                _ => ProgramFiles::Kept,
            };
            std::future::ready(ProgramResult {
                files,
                ..ProgramResult::default()
            })
        })
    };
    let (one, two) = (sandbox(&forgetful).await, sandbox(&forgetful).await);
    assert_eq!(one.number(), two.number());
    let run = "echo 1 > a; p; echo 2 > b; p; echo 3 > c; p";
    one.exec(command(run, 60_000)).await.expect("a shell");
    two.exec(command("p", 60_000)).await.expect("a shell");
    let seen = seen.lock().expect("no panic").clone();
    let paths = |names: &[&str]| -> Vec<String> {
        let names = names.iter();
        names.map(|name| format!("/workspace/{name}")).collect()
    };
    let number = seen[0].0;
    assert_eq!(
        seen[..4],
        [
            (number, None, 1, paths(&["a"])),
            (number, Some(1), 2, paths(&["b"])),
            (number, None, 3, paths(&["a", "b"])),
            (number, Some(3), 4, paths(&["c"])),
        ]
    );
    assert_ne!(seen[4].0, number);
    assert_eq!((seen[4].1, seen[4].2), (None, 1));
}
