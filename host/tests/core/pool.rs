//! A pool of instances: a full one makes callers wait, and what an instance left in
//! its place no later one sees.

use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{CoreLimits, HostError, Instance, InstanceOptions, MemoryOptions};

use crate::component;

async fn says(instance: &Instance, command: &str) -> String {
    let sandbox = instance.add_memory(MemoryOptions::default()).await;
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms: 60_000,
        ..ExecRequest::default()
    };
    let ran = sandbox.expect("a sandbox").exec(request).await;
    String::from_utf8(ran.expect("a command").stdout).expect("UTF-8")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_pool_makes_callers_wait() {
    let host = component().pool(2).build().expect("a host");
    let first = host.instance().expect("a place");
    let second = host.start_instance(InstanceOptions::default()).await;
    let second = second.expect("a place");
    let refused = host.instance().expect_err("no place");
    let expected = "all 2 places of the pool are taken; end an instance, wait for one with \
                    start_instance, or build the host with a larger pool";
    assert_eq!(refused, HostError::Setup(expected.to_owned()));
    let waiting = {
        let host = host.clone();
        tokio::spawn(async move { host.start_instance(InstanceOptions::default()).await })
    };
    assert_eq!(says(&second, "echo two").await, "two\n");
    drop(first);
    let third = waiting.await.expect("a task").expect("a place");
    assert_eq!(says(&third, "echo three").await, "three\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_place_is_clean_for_the_next() {
    let host = component().pool(1).build().expect("a host");
    let start = async || {
        let options = InstanceOptions {
            seed: Some([7; 32]),
            ..InstanceOptions::default()
        };
        host.start_instance(options).await.expect("a place")
    };
    let mut said = Vec::new();
    for _ in 0..20 {
        let instance = start().await;
        let command = "ls -A; echo $RANDOM; seq 20000 | sha256sum > left; export LEFT=1";
        said.push(says(&instance, command).await);
    }
    let first = said[0].clone();
    assert_eq!(said, vec![first; 20]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_takes_all_memory_leaves_its_place() {
    let limits = CoreLimits {
        memory_bytes: 64 << 20,
        journal_bytes: 0,
        ..CoreLimits::default()
    };
    let host = component().limits(limits).pool(1).build();
    let host = host.expect("a host");
    for _ in 0..3 {
        let instance = host.start_instance(InstanceOptions::default()).await;
        let instance = instance.expect("a place");
        let big = vec![0; 80 << 20];
        let options = MemoryOptions {
            files: vec![("big".to_owned(), big.into())],
            ..MemoryOptions::default()
        };
        let refused = instance.add_memory(options).await;
        assert!(refused.is_err(), "{refused:?}");
    }
}
