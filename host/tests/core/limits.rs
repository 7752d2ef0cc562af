//! A guest that does not behave: it is stopped, its sessions are told, and the
//! host goes on.

use std::time::Duration;

use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{
    CoreLimits, EnvironmentChoice, HostError, MemoryOptions, SessionConfig, SessionOptions,
};

use crate::{component, kinds, until};

fn command(command: &str) -> ExecRequest {
    ExecRequest {
        command: command.to_owned(),
        timeout_ms: 60_000,
        ..ExecRequest::default()
    }
}

/// Opens a session over a sandbox with `limits`, runs `bad` outside of it and
/// checks the code that kills the instance.
async fn check(limits: CoreLimits, bad: &str, code: &str) {
    let host = component().limits(limits).build().expect("a core");
    let memory = EnvironmentChoice::Memory(MemoryOptions::default());
    let mut session = host
        .open_session(SessionOptions::new(SessionConfig::default(), memory))
        .await
        .expect("a session");
    until(&mut session, "SESSION_START").await;
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

/// Whatever ends it, what it held before is there again.
async fn check_recovery(limits: CoreLimits, bad: &str) {
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
    let alive = sandbox.recover_tar().await.expect_err("it lives");
    assert_eq!(
        alive.to_string(),
        "the instance is alive; ask for what it holds now"
    );
    let work = "echo two >> a; rm gone; mkdir -p d/e; ln -s a l; for i in $(seq 2000); do :; done";
    sandbox.exec(command(work)).await.expect("a shell");
    sandbox.write("w", "three").await.expect("written");
    let held = sandbox.export_tar().await.expect("an archive");
    sandbox.exec(command(bad)).await.expect_err("the end");
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
    check_recovery(short_steps(), "echo half > half; awk 'BEGIN{while(1);}'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_recovered_from_a_core_without_stack() {
    check_recovery(CoreLimits::default(), "jq -n 'def f: 1 + f; f'").await;
}

#[tokio::test]
async fn files_are_recovered_from_a_core_without_memory() {
    let limits = CoreLimits {
        memory_bytes: 48 << 20,
        ..CoreLimits::default()
    };
    check_recovery(limits, "yes | sort").await;
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
    check(short_steps(), "awk 'BEGIN{while(1);}'", "core_stalled").await;
}

#[tokio::test]
async fn a_guest_that_wants_too_much_memory_is_stopped() {
    let limits = CoreLimits {
        memory_bytes: 24 << 20,
        ..CoreLimits::default()
    };
    let bad = "printf '%10000s' x > a; for i in 1 2 3 4 5 6 7 8 9 10 11 12 13; do cat a a > b; mv b a; done; wc -c a";
    check(limits, bad, "core_memory").await;
}
