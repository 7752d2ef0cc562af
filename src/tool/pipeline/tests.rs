//! Calls through the pipeline: failures, approval, host tools, cancelling.

use bytes::Bytes;
use serde_json::json;

use super::super::testing::{call, pipeline, play, remote};
use super::super::{HostTool, Tool};
use super::*;
use crate::effect::{Approval, EffectKind, Executor, HostToolResult, Outcome, OutcomeKind};
use crate::environment::testing::TreeEnvironment;
use crate::environment::{EnvironmentCall, EnvironmentReply};

fn check_error(call: &ToolCall, message: &str) {
    let tree = TreeEnvironment::new(&[]);
    let (pipeline, log) = pipeline(Rc::new(tree));
    let (executed, effects) = play(&pipeline, &Scope::new("s"), call.clone(), Vec::new());
    let expected = Executed {
        call_id: "c1".to_owned(),
        tool_name: call.name.clone(),
        full: message.to_owned(),
        model_text: message.to_owned(),
        media: Vec::new(),
        is_error: true,
        raised: true,
        refusal: None,
        output_bytes: message.len() as u64,
        output_complete: true,
        exit_code: None,
        duration_ms: 0,
        timed_out: false,
    };
    assert_eq!(executed, expected);
    assert_eq!(effects, []);
    let name = &call.name;
    let events = [
        format!("start {name}"),
        format!("end {name} {}", message.len()),
    ];
    assert_eq!(*log.0.borrow(), events);
}

#[test]
fn unknown_tool() {
    check_error(
        &call("nope", "{}"),
        "Unknown tool: nope\n\
         Available tools: read_file, write_file, edit_file, shell, grep, glob",
    );
}

#[test]
fn arguments_that_are_not_json() {
    check_error(
        &call("glob", "{\"pattern\": \"*\""),
        "Tool error (glob): invalid arguments: cut off, so not valid JSON: EOF while parsing an object at \
         line 1 column 15",
    );
    check_error(
        &call("glob", "[]"),
        "Tool error (glob): invalid arguments: expected a JSON object such as {\"name\": \
         \"value\"}",
    );
}

#[test]
fn arguments_that_break_the_schema() {
    check_error(
        &call("glob", ""),
        "Tool error (glob): invalid arguments: arguments: missing required property \
         \"pattern\"",
    );
    check_error(
        &call("read_file", r#"{"file_path": 1, "offset": 0, "x": 1}"#),
        "Tool error (read_file): invalid arguments: arguments.file_path: expected string, got \
         integer 1; arguments.offset: expected at least 1, got 0; arguments: unknown property \
         \"x\", known are \"file_path\", \"offset\", \"limit\"",
    );
}

#[test]
fn null_stands_for_an_optional_argument_left_out() {
    let tree = TreeEnvironment::new(&[("a", b"x")]);
    let (pipeline, _) = pipeline(Rc::new(tree));
    let call = call("read_file", r#"{"file_path": "a", "offset": null}"#);
    let (executed, _) = play(&pipeline, &Scope::new("s"), call, Vec::new());
    assert_eq!(executed.model_text, "1 | x");
    check_error(
        &super::super::testing::call("read_file", r#"{"file_path": null}"#),
        "Tool error (read_file): invalid arguments: arguments.file_path: expected string, got \
         null",
    );
}

#[test]
fn the_event_has_all_and_the_model_what_fits() {
    let content = "x".repeat(100_000);
    let tree = TreeEnvironment::new(&[("big.txt", content.as_bytes())]);
    let (pipeline, _) = pipeline(Rc::new(tree));
    let call = call("read_file", r#"{"file_path": "big.txt"}"#);
    let (executed, _) = play(&pipeline, &Scope::new("s"), call, Vec::new());
    assert_eq!(executed.full, format!("1 | {content}"));
    assert_eq!(executed.output_bytes, 100_004);
    assert!(executed.model_text.contains(
        "[WARNING: Tool output was truncated. 50004 characters were removed from the middle."
    ));
    assert!(!executed.is_error);
}

fn host_tool() -> Rc<dyn Tool> {
    Rc::new(HostTool::new(ToolDefinition {
        name: "ask".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "required": ["q"],
                           "properties": {"q": {"type": "string"}}}),
        custom: None,
        strict: None,
        unchecked: false,
    }))
}

fn call_effect(arguments: &str) -> EffectKind {
    EffectKind::CallTool {
        name: "ask".to_owned(),
        call_id: "c1".to_owned(),
        agent_id: None,
        working_directory: "/work".to_owned(),
        arguments: arguments.to_owned(),
    }
}

#[test]
fn host_tools_run_by_effect() {
    let (mut pipeline, log) = remote();
    pipeline
        .registry
        .register(host_tool())
        .expect("a good tool");
    let answer = vec![
        OutcomeKind::ToolOutput("50 %".to_owned()),
        OutcomeKind::ToolEnd(HostToolResult::error("42".to_owned())),
    ];
    let scope = Scope::new("s");
    let asked = call("ask", r#"{"q": "?"}"#);
    let (executed, effects) = play(&pipeline, &scope, asked, vec![answer]);
    assert_eq!(effects, [call_effect(r#"{"q":"?"}"#)]);
    assert_eq!((executed.full.as_str(), executed.is_error), ("42", true));
    assert!(!executed.raised);
    assert_eq!(
        *log.0.borrow(),
        ["start ask", "delta None 50 %", "end ask 2"]
    );
}

#[test]
fn arguments_of_an_unchecked_tool_reach_it_as_they_are() {
    let (mut pipeline, _) = remote();
    let definition = ToolDefinition {
        unchecked: true,
        parameters: json!({"type": "object", "required": ["q"], "unevaluatedProperties": false}),
        ..(**host_tool().definition()).clone()
    };
    let tool = Rc::new(HostTool::new(definition));
    pipeline.registry.register(tool).expect("a good tool");
    let answer = vec![OutcomeKind::ToolEnd(HostToolResult::default())];
    let asked = call("ask", r#"{"r": 1}"#);
    let (_, effects) = play(&pipeline, &Scope::new("s"), asked, vec![answer]);
    assert_eq!(effects, [call_effect(r#"{"r":1}"#)]);
}

#[test]
fn freeform_text_becomes_the_required_argument() {
    let (mut pipeline, _) = remote();
    pipeline
        .registry
        .register(host_tool())
        .expect("a good tool");
    let asked = ToolCall {
        custom: true,
        ..call("ask", "not {json")
    };
    let answer = vec![OutcomeKind::ToolEnd(HostToolResult::default())];
    let (_, effects) = play(&pipeline, &Scope::new("s"), asked, vec![answer]);
    assert_eq!(effects, [call_effect(r#"{"q":"not {json"}"#)]);
}

fn policy(settings: Value) -> ApprovalPolicy {
    let settings = serde_json::from_value(settings).expect("settings");
    ApprovalPolicy::new(&settings).expect("valid settings")
}

fn check_approval(answer: OutcomeKind, refusal: Option<Refusal>, expected: &str) {
    let (mut pipeline, log) = remote();
    pipeline.approvals = policy(json!({"tools": {"shell": "ask"}})).into();
    let asked = call("shell", r#"{"command": "ls"}"#);
    let ended = OutcomeKind::ExecEnd(Default::default());
    let answers = vec![vec![answer], vec![ended]];
    let (executed, effects) = play(&pipeline, &Scope::new("s"), asked, answers);
    let ask = EffectKind::AskApproval {
        tool_name: "shell".to_owned(),
        call_id: "c1".to_owned(),
        arguments: r#"{"command":"ls"}"#.to_owned(),
        reason: "this tool needs approval".to_owned(),
    };
    assert_eq!(effects[0], ask);
    assert_eq!(executed.model_text, expected);
    assert_eq!(executed.refusal, refusal);
    assert_eq!(
        log.0.borrow()[1],
        r#"approve shell {"command":"ls"} this tool needs approval"#
    );
}

/// Whoever is asked sees the executor's names: what a model calls its arguments says
/// nothing to a host that shows a command's directory or a diff.
#[test]
fn approval_of_a_renamed_tool() {
    const DECLARATION: &str = r#"[{"name": "bash", "executor": "shell", "description": "",
        "parameters": {"type": "object", "required": ["cmd"], "properties": {
            "cmd": {"type": "string"}, "workdir": {"type": "string"}}},
        "map": {"cmd": "command", "workdir": "working_dir"}}]"#;
    let (mut pipeline, _) = remote();
    pipeline.registry = Registry::declared(DECLARATION).expect("valid declarations");
    pipeline.approvals = policy(json!({"tools": {"bash": "ask"}})).into();
    let asked = call("bash", r#"{"cmd": "ls", "workdir": "src"}"#);
    let deny = OutcomeKind::Approval(Approval::Deny {
        reason: "no".to_owned(),
    });
    let (_, effects) = play(&pipeline, &Scope::new("s"), asked, vec![vec![deny]]);
    let EffectKind::AskApproval {
        tool_name,
        arguments,
        ..
    } = &effects[0]
    else {
        panic!("{effects:?}");
    };
    assert_eq!(tool_name, "bash");
    assert_eq!(arguments, r#"{"command":"ls","working_dir":"src"}"#);
}

/// What a subagent does may start from another directory than the session's.
#[test]
fn approval_of_a_subagent() {
    let (mut pipeline, _) = remote();
    pipeline.approvals = policy(json!({"tools": {"shell": "ask"}})).into();
    let check = |arguments: &str, expected: &str| {
        let scope = Scope {
            agent: Some("a".into()),
            ..Scope::new("s")
        };
        let deny = OutcomeKind::Approval(Approval::NoApprover);
        let (_, effects) = play(
            &pipeline,
            &scope,
            call("shell", arguments),
            vec![vec![deny]],
        );
        let EffectKind::AskApproval { arguments, .. } = &effects[0] else {
            panic!("{effects:?}");
        };
        assert_eq!(arguments, expected);
    };
    check(
        r#"{"command": "ls"}"#,
        r#"{"command":"ls","working_dir":"/work"}"#,
    );
    check(
        r#"{"command": "ls", "working_dir": "src"}"#,
        r#"{"command":"ls","working_dir":"/work/src"}"#,
    );
}

#[test]
fn approval() {
    let allow = OutcomeKind::Approval(Approval::Allow);
    check_approval(allow, None, "(no output)\n[exit code: 0, duration: 0.0 s]");
    let reason = "not today".to_owned();
    check_approval(
        OutcomeKind::Approval(Approval::Deny { reason }),
        Some(Refusal::NotApproved),
        "Tool error (shell): not approved: not today",
    );
    check_approval(
        OutcomeKind::Approval(Approval::NoApprover),
        Some(Refusal::NoApprover),
        "Tool error (shell): not approved: nobody is there to approve it: this tool needs approval",
    );
    check_approval(
        OutcomeKind::Cancelled,
        None,
        "Tool error (shell): interrupted before it started",
    );
    check_approval(
        OutcomeKind::Slept,
        Some(Refusal::NoApprover),
        "Tool error (shell): not approved: the host answered with an outcome of another effect; \
         fix the host",
    );
}

#[test]
fn denied_by_policy() {
    let (mut pipeline, _) = remote();
    pipeline.approvals = policy(json!({"tools": {"shell": "deny"}})).into();
    let asked = call("shell", r#"{"command": "ls"}"#);
    let (executed, effects) = play(&pipeline, &Scope::new("s"), asked, Vec::new());
    assert_eq!(effects, []);
    assert_eq!(executed.refusal, Some(Refusal::DeniedByPolicy));
}

#[test]
fn cancelled_before_it_starts() {
    let (pipeline, _) = remote();
    let scope = Scope::new("s");
    scope.cancel.cancel();
    let asked = call("shell", r#"{"command": "ls"}"#);
    let (executed, effects) = play(&pipeline, &scope, asked, Vec::new());
    assert_eq!(effects, []);
    assert_eq!(
        executed.model_text,
        "Tool error (shell): interrupted before it started"
    );
}

#[test]
fn cancelled_while_it_runs_keeps_what_had_arrived() {
    let (mut pipeline, _) = remote();
    pipeline
        .registry
        .register(host_tool())
        .expect("a good tool");
    let answer = vec![
        OutcomeKind::ToolOutput("half".to_owned()),
        OutcomeKind::Cancelled,
    ];
    let asked = call("ask", r#"{"q": "?"}"#);
    let (executed, _) = play(&pipeline, &Scope::new("s"), asked, vec![answer]);
    assert_eq!(
        executed.model_text,
        "Tool error (ask): interrupted before it ended\nPartial output:\nhalf"
    );
    assert!(executed.is_error && executed.raised);
}

#[test]
fn parallel_edits_of_one_file_take_turns() {
    let (pipeline, _) = remote();
    let mut executor = Executor::new();
    for (old, new) in [("1", "one"), ("2", "two")] {
        let pipeline = pipeline.clone();
        let arguments = json!({"file_path": "a", "old_string": old, "new_string": new});
        let call = call("edit_file", &arguments.to_string());
        executor.spawner().spawn(async move {
            let executed = pipeline.run(&Scope::new("s"), &call).await;
            assert!(!executed.is_error, "{}", executed.full);
        });
    }
    let mut content = Bytes::from_static(b"1 2 3");
    let mut rounds = 0;
    while !executor.is_empty() {
        executor.run(|| false);
        let effects = pipeline.port.take_effects();
        assert!(effects.len() <= 1, "one call at a time: {effects:?}");
        for effect in effects {
            rounds += 1;
            let EffectKind::Environment { call, .. } = effect.kind else {
                continue;
            };
            let reply = match call {
                EnvironmentCall::Write { content: new, .. } => {
                    content = new;
                    EnvironmentReply::Done
                }
                _ => EnvironmentReply::Bytes(content.clone()),
            };
            pipeline.port.deliver(Outcome {
                id: effect.id,
                kind: OutcomeKind::Environment(Ok(reply)),
            });
        }
    }
    assert_eq!((&content[..], rounds), (&b"one two 3"[..], 4));
}
