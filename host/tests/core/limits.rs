//! A guest that does not behave: the command that made it so ends alone; where
//! that cannot be, the instance and its sessions end with a reason, and the host
//! goes on.

use std::time::Duration;

use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{
    CoreLimits, EnvironmentChoice, Host, HostError, MemoryOptions, Session, SessionConfig,
    SessionOptions,
};

use crate::{component, kinds, until};

fn command(command: &str) -> ExecRequest {
    ExecRequest {
        command: command.to_owned(),
        timeout_ms: 60_000,
        ..ExecRequest::default()
    }
}

/// A session over a sandbox, after its first event.
async fn opened(host: &Host) -> Session {
    let memory = EnvironmentChoice::Memory(MemoryOptions::default());
    let mut session = host
        .open_session(SessionOptions::new(SessionConfig::default(), memory))
        .await
        .expect("a session");
    until(&mut session, "SESSION_START").await;
    session
}

/// Commands that would never end, or take the memory or the stack of the core.
const HOSTILE: &str = include_str!("../../../tests/sandbox/hostile.json");

/// Each of them ends alone: the sandbox and its session go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_command_ends_alone() {
    let rows: serde_json::Value = serde_json::from_str(HOSTILE).expect("JSON");
    let host = component().build().expect("a core");
    let mut session = opened(&host).await;
    let sandbox = session.environment();
    for row in rows.as_array().expect("rows") {
        let bad = row["command"].as_str().expect("a command");
        let request = ExecRequest {
            timeout_ms: 1_000,
            ..command(bad)
        };
        let output = sandbox.exec(request).await;
        let output = output.unwrap_or_else(|error| panic!("{bad}: {error}"));
        let code = i64::from(output.status.exit_code);
        let codes = row["exit"].as_array().expect("exit codes");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(codes.contains(&code.into()), "{bad}: {code}: {stderr}");
        assert_eq!(output.status.timed_out, code == 124, "{bad}");
        let after = sandbox.exec(command("echo fine")).await.expect("a shell");
        assert_eq!(after.stdout, b"fine\n", "{bad}");
    }
    session.close().await.expect("idle");
    let events = until(&mut session, "SESSION_END").await;
    assert!(!kinds(&events).contains(&"ERROR"), "{events:?}");
}

/// Opens a session over a sandbox with `limits`, runs `bad` outside of it and
/// checks the code that kills the instance.
async fn check(limits: CoreLimits, bad: &str, code: &str) {
    let host = component().limits(limits).build().expect("a core");
    let mut session = opened(&host).await;
    let ran = session.environment().exec(command(bad)).await;
    assert!(ran.is_err(), "{bad}: {ran:?}");
    let events = until(&mut session, "SESSION_END").await;
    assert_eq!(kinds(&events), ["ERROR", "SESSION_END"]);
    assert_eq!(events[0].data()["code"], code);
    assert_eq!(events[1].data()["reason"], "error");
    assert_eq!(events[0].seq() + 1, events[1].seq());
    assert!(events[0].parse().is_some() && events[1].parse().is_some());
    assert_eq!(session.next_event().await, None);
    match session.submit("hi").await {
        Err(HostError::Core(failure)) => assert_eq!(failure.code, code),
        other => panic!("{other:?}"),
    }
    // Another instance of the same host is not touched.
    let other = host.instance().expect("an instance");
    let sandbox = other
        .add_memory(MemoryOptions::default())
        .await
        .expect("a sandbox");
    let output = sandbox.exec(command("echo fine")).await.expect("a shell");
    assert_eq!(output.stdout, b"fine\n");
}

/// A core that can be stopped, and does not go on.
fn without_journal(limits: CoreLimits) -> CoreLimits {
    CoreLimits {
        journal_bytes: 0,
        ..limits
    }
}

/// What the sandbox held before the command is there again, and the command has
/// left nothing.
async fn check_recovery(limits: CoreLimits, bad: &str, code: i32) {
    let host = component().limits(limits).build().expect("a core");
    let instance = host.instance().expect("an instance");
    let options = MemoryOptions {
        files: vec![
            ("a".to_owned(), "one\n".into()),
            ("gone".to_owned(), "x".into()),
        ],
        ..MemoryOptions::default()
    };
    let sandbox = instance.add_memory(options).await.expect("a sandbox");
    let work = "echo two >> a; rm gone; mkdir -p d/e; ln -s a l; for i in $(seq 2000); do :; done";
    sandbox.exec(command(work)).await.expect("a shell");
    sandbox.write("w", "three").await.expect("written");
    let held = sandbox.export_tar().await.expect("an archive");
    let output = sandbox.exec(command(bad)).await.expect("a result");
    assert_eq!(output.status.exit_code, code, "{bad}");
    assert_eq!(sandbox.export_tar().await, Ok(held), "{bad}");
}

#[tokio::test]
async fn files_are_recovered_from_a_core_that_died() {
    let limits = CoreLimits {
        memory_bytes: 24 << 20,
        ..CoreLimits::default()
    };
    let host = component().limits(limits).build().expect("a core");
    let instance = host.instance().expect("an instance");
    let sandbox = instance
        .add_memory(MemoryOptions::default())
        .await
        .expect("a sandbox");
    sandbox.write("w", "three").await.expect("written");
    let held = sandbox.export_tar().await.expect("an archive");
    let alive = sandbox.recover_tar().await.expect_err("it lives");
    assert_eq!(
        alive.to_string(),
        "the instance is alive; ask for what it holds now"
    );
    // No command: there is nothing to go on without.
    let huge = vec![b'x'; 30 << 20];
    let end = sandbox.write("huge", huge).await.expect_err("the end");
    assert!(matches!(end, HostError::Core(_)), "{end:?}");
    let dead = sandbox.export_tar().await;
    assert!(matches!(dead, Err(HostError::Core(_))), "{dead:?}");
    assert_eq!(sandbox.recover_tar().await, Ok(held.clone()));
    assert_eq!(sandbox.recover_tar().await, Ok(held));
}

fn short_steps() -> CoreLimits {
    CoreLimits {
        step_timeout: Duration::from_millis(300),
        ..CoreLimits::default()
    }
}

#[tokio::test]
async fn files_are_recovered_from_a_core_that_spun() {
    let bad = "echo half > half; awk 'BEGIN{while(1);}'";
    check_recovery(short_steps(), bad, 124).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_recovered_from_a_core_without_stack() {
    check_recovery(CoreLimits::default(), "jq -n 'def f: 1 + f; f'", 139).await;
}

#[tokio::test]
async fn files_are_recovered_from_a_core_without_memory() {
    let limits = CoreLimits {
        memory_bytes: 48 << 20,
        ..CoreLimits::default()
    };
    check_recovery(limits, "yes | sort", 137).await;
}

#[tokio::test]
async fn what_is_not_kept_cannot_be_recovered() {
    let limits = CoreLimits {
        journal_bytes: 10_000,
        ..short_steps()
    };
    let host = component().limits(limits).build().expect("a core");
    let instance = host.instance().expect("an instance");
    let sandbox = instance
        .add_memory(MemoryOptions::default())
        .await
        .expect("a sandbox");
    sandbox
        .write("a", "x".repeat(10_000))
        .await
        .expect("written");
    let bad = command("awk 'BEGIN{while(1);}'");
    sandbox.exec(bad).await.expect_err("the end");
    let lost = sandbox.recover_tar().await;
    assert!(matches!(lost, Err(HostError::Core(_))), "{lost:?}");
}

#[tokio::test]
async fn a_spinning_guest_is_stopped_by_the_epoch() {
    let limits = without_journal(short_steps());
    check(limits, "awk 'BEGIN{while(1);}'", "core_stalled").await;
}

#[tokio::test]
async fn a_guest_that_wants_too_much_memory_is_stopped() {
    let limits = CoreLimits {
        memory_bytes: 24 << 20,
        ..CoreLimits::default()
    };
    let bad = "printf '%10000s' x > a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do cat a a > b; mv b a; done; wc -c a";
    check(without_journal(limits), bad, "core_memory").await;
}
