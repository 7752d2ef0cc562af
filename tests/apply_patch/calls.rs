//! How a patch reaches the tool, calls that run side by side, and interrupts.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use hermitcrab::effect::{EffectKind, EffectPort, Executor, Outcome, OutcomeKind};
use hermitcrab::environment::{
    Environment, EnvironmentCall, EnvironmentError, EnvironmentInfo, EnvironmentReply, ExecRequest,
    ExecStatus, ExecutionEnvironment, OutputSink, RemoteEnvironment, Scope,
};
use hermitcrab::llm::{CustomFormat, ToolCall};
use hermitcrab::tool::{ApplyPatch, CallContext};
use serde_json::{Value, json};

use crate::support::{freeform, pipeline, run};
use crate::tree::Tree;

const PATCH: &str = "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch\n";

fn check(arguments: Value, expected: Result<&str, &str>) {
    let result = call(arguments);
    let result = result.as_ref().map(String::as_str);
    assert_eq!(result.map_err(String::as_str), expected);
}

/// What the tool itself makes of `arguments`, which no schema has seen.
fn call(arguments: Value) -> Result<String, String> {
    let tree = Rc::new(Tree::new(std::iter::empty(), &[]));
    let pipeline = pipeline(tree.clone());
    let scope = Scope::new("s");
    let call = CallContext {
        gate: None,
        environment: Environment::new(tree, scope.clone()),
        call_id: "c1".into(),
        scope,
        port: pipeline.port,
        timeouts: pipeline.timeouts,
        max_captured_bytes: pipeline.max_captured_bytes,
        files: pipeline.files,
        known: pipeline.known,
        background: pipeline.background,
        progress: Rc::new(|_, _| ()),
    };
    let tool = freeform();
    let invocation = tool.read(arguments).map_err(|error| error.message)?;
    let result = invocation.execute(&call).now_or_never();
    let result = result.expect("the tree answers at once");
    let result = result.map(|output| output.text);
    result.map_err(|error| error.message)
}

#[test]
fn forms_of_arguments() {
    let added = Ok("Patch applied. Changed files:\nA n");
    check(json!({ "patch": PATCH }), added);
    check(json!({ "input": PATCH }), added);
    check(
        json!({ "text": PATCH }),
        Err("invalid arguments: missing field `patch`"),
    );
    check(
        json!({ "patch": 1 }),
        Err("invalid arguments: invalid type: integer `1`, expected a string"),
    );
}

/// Patches that no one writes by hand are refused in short time.
#[test]
fn monstrous_patches() {
    let path = "d/".repeat(3_000);
    let patch = format!("*** Begin Patch\n*** Add File: {path}n\n+x\n*** End Patch");
    check(
        json!({ "patch": patch }),
        Err("patch line 2: a path has at most 4096 bytes, this one 6001"),
    );
    let lines = "+\n".repeat(200_000);
    let update = "*** Update File: n\n@@\n-\n".repeat(10_000);
    let patch = format!("*** Begin Patch\n*** Add File: n\n{lines}{update}*** End Patch");
    let expected = "the patch takes too long, there are too many equal lines to look through; \
                    use smaller patches, or write the whole file";
    let message = call(json!({ "patch": patch })).expect_err("a refusal");
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn the_schema_asks_for_the_patch() {
    let pipeline = pipeline(Rc::new(Tree::new(std::iter::empty(), &[])));
    let executed = run(&pipeline, false, "{}".to_owned());
    assert!(executed.is_error);
    assert!(executed.full.contains("patch"), "{}", executed.full);
}

#[test]
fn the_grammar_is_offered_as_it_stands() {
    let CustomFormat::Grammar { syntax, definition } = ApplyPatch::freeform() else {
        panic!("not a grammar");
    };
    assert_eq!(syntax, "lark");
    assert_eq!(definition, ApplyPatch::GRAMMAR);
    for marker in [
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: ",
        "*** Delete File: ",
        "*** Update File: ",
        "*** Move to: ",
        "*** End of File",
    ] {
        assert!(definition.contains(marker), "{marker}");
    }
}

/// A tree that lets others go first before each of its answers.
struct Slow(Rc<Tree>);

#[async_trait(?Send)]
impl ExecutionEnvironment for Slow {
    fn info(&self) -> &EnvironmentInfo {
        self.0.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let mut polled = false;
        std::future::poll_fn(|context| {
            if std::mem::replace(&mut polled, true) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        self.0.call(scope, call).await
    }

    async fn exec(
        &self,
        scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        self.0.exec(scope, request, output).await
    }
}

/// Every one of many calls changes the same two files, named in either order.
#[test]
fn parallel_patches_take_turns() {
    let files = [("a", "0\n"), ("b", "0\n")];
    let files = files.map(|(path, text)| (path, bytes::Bytes::from_static(text.as_bytes())));
    let tree = Rc::new(Tree::new(files.into_iter(), &[]));
    let pipeline = pipeline(Rc::new(Slow(tree.clone())));
    let mut executor = Executor::new();
    let results = Rc::new(RefCell::new(Vec::new()));
    for round in 1..=20 {
        let (first, second) = if round % 2 == 0 {
            ("a", "b")
        } else {
            ("b", "a")
        };
        let last = round - 1;
        let patch = format!(
            "*** Begin Patch\n*** Update File: {first}\n@@\n-{last}\n+{round}\n\
             *** Update File: {second}\n@@\n-{last}\n+{round}\n*** End Patch"
        );
        let call = ToolCall {
            id: format!("c{round}"),
            name: "apply_patch".to_owned(),
            arguments: json!({ "patch": patch }).to_string(),
            custom: false,
        };
        let (pipeline, results) = (pipeline.clone(), results.clone());
        executor.spawner().spawn(async move {
            let executed = pipeline.run(&Scope::new("s"), &call).await;
            results
                .borrow_mut()
                .push((executed.is_error, executed.full));
        });
    }
    executor.run(|| false);
    assert!(executor.is_empty());
    assert_eq!(results.borrow().len(), 20);
    assert!(results.borrow().iter().all(|(is_error, _)| !is_error));
    let nodes = tree.nodes();
    assert_eq!(nodes["a"].as_deref(), Some(&b"20\n"[..]));
    assert_eq!(nodes["b"].as_deref(), Some(&b"20\n"[..]));
}

/// What a host sees of a call, one word per effect, and the result.
struct Interrupted {
    effects: Vec<String>,
    result: String,
}

/// Plays a patch of two files for a host that interrupts the call when the
/// first write arrives. The write ends well, or only when it is cancelled.
fn interrupt(is_hung: bool) -> Interrupted {
    let port = EffectPort::new();
    let info = EnvironmentInfo {
        working_directory: "/work".to_owned(),
        platform: "linux".to_owned(),
        os_version: String::new(),
        utc_offset_minutes: 0,
        bounds: String::new(),
        warning: String::new(),
    };
    let environment = RemoteEnvironment::new(0, info, Rc::new(port.clone()));
    let mut pipeline = pipeline(Rc::new(environment));
    pipeline.port = port.clone();
    let patch = "*** Begin Patch\n*** Update File: a\n@@\n-1\n+2\n\
                 *** Update File: b\n@@\n-1\n+2\n*** End Patch";
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "apply_patch".to_owned(),
        arguments: json!({ "patch": patch }).to_string(),
        custom: false,
    };
    let scope = Scope::new("s");
    let result = Rc::new(RefCell::new(None));
    let mut executor = Executor::new();
    let (running, slot, owner) = (pipeline, result.clone(), scope.clone());
    executor.spawner().spawn(async move {
        let executed = running.run(&owner, &call).await;
        slot.replace(Some(executed.full));
    });
    let mut seen = Vec::new();
    let mut asleep = Vec::new();
    loop {
        executor.run(|| false);
        let effects = port.take_effects();
        if effects.is_empty() {
            break;
        }
        for effect in effects {
            let deliver = |id, kind| port.deliver(Outcome { id, kind });
            let done = |reply| OutcomeKind::Environment(Ok(reply));
            match effect.kind {
                EffectKind::Environment { call, .. } => match call {
                    EnvironmentCall::Read { path, .. } => {
                        seen.push(format!("read {path}"));
                        let content = bytes::Bytes::from_static(b"1\n");
                        deliver(effect.id, done(EnvironmentReply::Bytes(content)));
                    }
                    EnvironmentCall::RealPath { path } => {
                        deliver(effect.id, done(EnvironmentReply::Path(path)));
                    }
                    EnvironmentCall::Write { path, .. } => {
                        seen.push(format!("write {path}"));
                        scope.cancel.cancel();
                        if !is_hung {
                            deliver(effect.id, done(EnvironmentReply::Done));
                        }
                    }
                    other => panic!("{other:?}"),
                },
                EffectKind::Sleep { ms } => {
                    seen.push(format!("sleep {ms}"));
                    asleep.push(effect.id);
                    if is_hung && seen.len() < 5 {
                        deliver(effect.id, OutcomeKind::Slept);
                    }
                }
                EffectKind::Cancel { target } => {
                    let what = if asleep.contains(&target) {
                        "sleep"
                    } else {
                        "write"
                    };
                    seen.push(format!("cancel {what}"));
                    deliver(target, OutcomeKind::Cancelled);
                }
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(executor.is_empty());
    assert_eq!(port.outstanding(), 0);
    let result = result.take().expect("the call ends");
    Interrupted {
        effects: seen,
        result,
    }
}

#[test]
fn an_interrupt_lets_begun_writes_finish() {
    let played = interrupt(false);
    assert_eq!(played.result, "Patch applied. Changed files:\nM a\nM b");
    let expected = [
        "read /work/a",
        "read /work/b",
        "write /work/a",
        "write /work/b",
        "sleep 2000",
        "cancel sleep",
    ];
    assert_eq!(played.effects, expected);
}

#[test]
fn an_interrupt_does_not_wait_for_ever() {
    let played = interrupt(true);
    assert_eq!(
        played.result,
        "Tool error (apply_patch): interrupted before it ended; the patch changed nothing"
    );
    let expected = [
        "read /work/a",
        "read /work/b",
        "write /work/a",
        "sleep 2000",
        "cancel write",
        "read /work/a",
        "sleep 2000",
        "cancel sleep",
    ];
    assert_eq!(played.effects, expected);
}
