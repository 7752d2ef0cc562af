//! Sessions and sandboxes through the public API, with a scripted model over
//! loopback HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use hermitcrab::environment::{EnvironmentErrorKind, ExecRequest, ProgramResult};
use hermitcrab::event::SessionState;
use hermitcrab::memory::ChangeKind;
use hermitcrab::script::ScriptedModel;
use hermitcrab::tool::approval::{ApprovalSettings, ToolRule};
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::{
    Approval, ApprovalFn, ApprovalRequest, CoreLimits, EnvironmentChoice, Event, Host, HostError,
    HostTool, HostToolResult, LocalEnvironment, MemoryOptions, SessionConfig, SessionOptions,
    ToolDefinition,
};
use serde_json::json;

use crate::{component, faces, kinds, until};

fn serve(script: serde_json::Value) -> ServeModel {
    let model = ScriptedModel::from_json(&script.to_string()).expect("a script");
    ServeModel::start(model, 0).expect("a model")
}

fn config(model: &ServeModel) -> SessionConfig {
    SessionConfig {
        base_url: Some(model.url()),
        ..SessionConfig::default()
    }
}

fn with_key(builder: hermitcrab_host::HostBuilder, model: &ServeModel) -> Host {
    builder
        .credential("anthropic", "sk-test", &model.url())
        .build()
        .expect("a host")
}

fn definition(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "Adds one.".to_owned(),
        parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}},
            "required": ["n"]}),
        custom: None,
        strict: None,
        unchecked: false,
    }
}

fn add_one() -> HostTool {
    HostTool::new(definition("add_one"), |call| async move {
        call.progress.show("adding").await;
        let arguments: serde_json::Value =
            serde_json::from_str(&call.arguments).unwrap_or_default();
        HostToolResult::ok((arguments["n"].as_i64().unwrap_or_default() + 1).to_string())
    })
}

/// A session that asks before each call of `add_one`.
fn asking_first(model: &ServeModel) -> SessionOptions {
    let config = SessionConfig {
        approval: ApprovalSettings {
            tools: [("add_one".to_owned(), ToolRule::Ask)].into(),
            ..ApprovalSettings::default()
        },
        ..config(model)
    };
    let memory = EnvironmentChoice::Memory(MemoryOptions::default());
    SessionOptions::new(config, memory).tool(add_one())
}

fn tool_script() -> serde_json::Value {
    json!({"steps": [
        {"tool_calls": [{"name": "add_one", "id": "c1", "arguments": {"n": 41}}]},
        {"text": "done"}
    ]})
}

fn one<'a>(events: &'a [Event], kind: &str) -> &'a Event {
    let mut found = events.iter().filter(|event| event.kind() == kind);
    let event = found
        .next()
        .unwrap_or_else(|| panic!("{kind} in {:?}", kinds(events)));
    assert!(found.next().is_none(), "more than one {kind}");
    event
}

#[tokio::test]
async fn host_tools_run_in_both_faces() {
    for native in [true, false] {
        let model = serve(tool_script());
        let builder = if native {
            Host::builder().native_core()
        } else {
            component()
        };
        let host = with_key(builder, &model);
        let directory = tempfile::tempdir().expect("a directory");
        let local = LocalEnvironment::builder(directory.path())
            .build()
            .expect("local");
        let options = SessionOptions::new(config(&model), EnvironmentChoice::Host(Arc::new(local)))
            .tool(add_one());
        let mut session = host.open_session(options).await.expect("a session");
        session.submit("add").await.expect("idle");
        let events = until(&mut session, "PROCESSING_END").await;
        assert_eq!(
            one(&events, "TOOL_CALL_OUTPUT_DELTA").data()["text"],
            "adding"
        );
        assert_eq!(one(&events, "TOOL_CALL_END").data()["output"], "42");
        session.close().await.expect("idle again");
        let rest = until(&mut session, "SESSION_END").await;
        assert_eq!(session.next_event().await, None);
        let seqs: Vec<u64> = events.iter().chain(&rest).map(Event::seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn nobody_to_approve_means_no() {
    let model = serve(tool_script());
    let host = with_key(component(), &model);
    let options = asking_first(&model);
    let mut session = host.open_session(options).await.expect("a session");
    session.submit("add").await.expect("idle");
    let events = until(&mut session, "PROCESSING_END").await;
    let end = one(&events, "TOOL_CALL_END").data();
    assert_eq!(end["is_error"], true);
    assert_eq!(end["refusal"], "no_approver");
    assert_eq!(
        end["error"],
        "Tool error (add_one): not approved: nobody is there to approve it: this tool needs approval"
    );
}

/// Calls `c0` to `c15` in one round, each of which needs approval; returns how
/// they ended.
async fn check_questions(approval: ApprovalFn) -> Vec<Event> {
    let calls: Vec<_> = (0..16)
        .map(|n| json!({"name": "add_one", "id": format!("c{n}"), "arguments": {"n": n}}))
        .collect();
    let model = serve(json!({"steps": [{"tool_calls": calls}, {"text": "done"}]}));
    let host = with_key(component(), &model);
    let options = asking_first(&model).approval(approval);
    let mut session = host.open_session(options).await.expect("a session");
    session.submit("add").await.expect("idle");
    let mut events = until(&mut session, "PROCESSING_END").await;
    events.retain(|event| event.kind() == "TOOL_CALL_END");
    assert_eq!(events.len(), 16);
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn questions_come_in_the_order_of_the_calls() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let ends = check_questions({
        let asked = asked.clone();
        Arc::new(move |request: ApprovalRequest| {
            let mut asked = asked.lock().expect("no panic while asking");
            asked.push(request.call_id);
            std::future::ready(Approval::Allow).boxed()
        })
    })
    .await;
    let asked = std::mem::take(&mut *asked.lock().expect("no panic while asking"));
    let calls: Vec<_> = (0..16).map(|n| format!("c{n}")).collect();
    assert_eq!(asked, calls);
    assert!(ends.iter().all(|end| end.data()["is_error"] == false));
}

#[tokio::test]
async fn an_approver_that_panics_allows_nothing() {
    let ends = check_questions(Arc::new(|request: ApprovalRequest| {
        assert_eq!(request.call_id, "", "an approver with a defect");
        std::future::ready(Approval::Allow).boxed()
    }))
    .await;
    assert!(ends.iter().all(|end| end.data()["is_error"] == true));
}

#[tokio::test]
async fn a_tool_that_hangs_is_over_2_5_s_after_an_interrupt() {
    for (face, host) in faces() {
        drop(host);
        let model = serve(tool_script());
        let builder = if face == "native" {
            Host::builder().native_core()
        } else {
            component()
        };
        let host = with_key(builder, &model);
        let hang = HostTool::new(definition("add_one"), |_| std::future::pending());
        let directory = tempfile::tempdir().expect("a directory");
        let local = LocalEnvironment::builder(directory.path())
            .build()
            .expect("local");
        let options = SessionOptions::new(config(&model), EnvironmentChoice::Host(Arc::new(local)))
            .tool(hang);
        let mut session = host.open_session(options).await.expect("a session");
        session.submit("add").await.expect("idle");
        until(&mut session, "TOOL_CALL_START").await;
        let controller = session.controller();
        tokio::spawn(async move { controller.interrupt().await });
        let events = until(&mut session, "PROCESSING_END").await;
        assert_eq!(
            one(&events, "PROCESSING_END").data()["reason"],
            "interrupted"
        );
    }
}

#[tokio::test]
async fn a_session_goes_on_in_another_host_of_the_other_face() {
    for native_first in [true, false] {
        let open = |model: &ServeModel, native: bool| {
            let builder = if native {
                Host::builder().native_core()
            } else {
                component()
            };
            with_key(builder, model)
        };
        let directory = tempfile::tempdir().expect("a directory");
        let options = |model: &ServeModel, tool: HostTool| {
            let local = LocalEnvironment::builder(directory.path())
                .build()
                .expect("local");
            let choice = EnvironmentChoice::Host(Arc::new(local));
            SessionOptions::new(config(model), choice).tool(tool)
        };
        let model = serve(tool_script());
        let host = open(&model, native_first);
        let hang = HostTool::new(definition("add_one"), |_| std::future::pending());
        let session = host.open_session(options(&model, hang)).await;
        let mut session = session.expect("a session");
        session.submit("add").await.expect("idle");
        until(&mut session, "TOOL_CALL_START").await;
        let record = session.record().await.expect("a record");
        drop(session);

        let model = serve(json!({"steps": [{"text": "It was cut off."}]}));
        let host = open(&model, !native_first);
        let session = host
            .open_session(options(&model, add_one()).record(record))
            .await;
        let mut session = session.expect("a session");
        session.resume().await.expect("a call is open");
        let events = until(&mut session, "PROCESSING_END").await;
        assert_eq!(
            one(&events, "ASSISTANT_TEXT_END").data()["text"],
            "It was cut off."
        );
        let history = session.history().await.expect("a history");
        let json = serde_json::to_value(&history).expect("JSON");
        assert_eq!(
            json[2]["results"][0]["content"],
            "Tool error (add_one): interrupted before it ended"
        );
        let again = session.resume().await.expect_err("nothing is open");
        assert!(again.to_string().contains("nothing was cut off"), "{again}");
    }
}

#[tokio::test]
async fn a_session_goes_on_where_its_core_has_died() {
    let model = serve(json!({"steps": [
        {"tool_calls": [
            {"name": "write_file", "id": "c1", "arguments": {"file_path": "a", "content": "one"}},
            {"name": "add_one", "id": "c2", "arguments": {"n": 1}},
        ]},
        {"text": "It was cut off."},
    ]}));
    let small = CoreLimits {
        memory_bytes: 24 << 20,
        ..CoreLimits::default()
    };
    let host = with_key(component().limits(small), &model);
    let memory = |archive| {
        EnvironmentChoice::Memory(MemoryOptions {
            archive,
            ..MemoryOptions::default()
        })
    };
    let hang = HostTool::new(definition("add_one"), |_| std::future::pending());
    let options = SessionOptions::new(config(&model), memory(None)).tool(hang);
    let mut session = host.open_session(options).await.expect("a session");
    session.submit("work").await.expect("idle");
    let events = until(&mut session, "TOOL_CALL_END").await;
    assert_eq!(one(&events, "TOOL_CALL_END").data()["call_id"], "c1");
    let huge = session.environment().write("huge", vec![b'x'; 30 << 20]);
    huge.await.expect_err("the end");
    let events = until(&mut session, "SESSION_END").await;
    let message = one(&events, "ERROR").data()["message"].clone();
    let message = message.as_str().expect("a sentence");
    let memory_ends = "the core needed more than its 24 MiB of memory and was stopped";
    assert!(message.starts_with(memory_ends), "{message}");
    let archive = session
        .environment()
        .recover_tar()
        .await
        .expect("the files");
    let record = session.recover_record().await.expect("a record");

    let options = SessionOptions::new(config(&model), memory(Some(archive))).record(record);
    let mut session = host.open_session(options).await.expect("a session");
    session.resume().await.expect("a call is open");
    until(&mut session, "PROCESSING_END").await;
    assert_eq!(session.environment().read("a").await, Ok("one".into()));
    let history = serde_json::to_value(session.history().await.expect("a history")).expect("JSON");
    let results = history[2]["results"].as_array().expect("results");
    let results: Vec<_> = results.iter().map(|result| &result["content"]).collect();
    assert_eq!(
        results[1],
        "Tool error (add_one): interrupted before it ended"
    );
    assert_eq!(history[3]["content"], "It was cut off.");
}

#[tokio::test]
async fn a_session_answers_while_a_tool_ignores_its_cancel() {
    let model = serve(tool_script());
    let host = with_key(component(), &model);
    let hang = HostTool::new(definition("add_one"), |_| std::future::pending());
    let memory = EnvironmentChoice::Memory(MemoryOptions::default());
    let options = SessionOptions::new(config(&model), memory).tool(hang);
    let mut session = host.open_session(options).await.expect("a session");
    session.submit("add").await.expect("idle");
    until(&mut session, "TOOL_CALL_START").await;
    session.interrupt().await.expect("it works on something");
    assert_eq!(session.steer("quick").await.expect("open"), 1);
    assert_eq!(
        session.state().await.expect("alive"),
        SessionState::Processing
    );
    // The steering is seen long before the tool is given up.
    let events = until(&mut session, "STEERING_QUEUED").await;
    assert!(events.iter().all(|event| event.kind() != "TOOL_CALL_END"));
    session.abort().await.expect("any state");
    assert_eq!(session.state().await.expect("alive"), SessionState::Closed);
    let events = until(&mut session, "SESSION_END").await;
    assert_eq!(
        one(&events, "TOOL_CALL_END").data()["error"],
        "Tool error (add_one): interrupted before it ended"
    );
    assert_eq!(one(&events, "STEERING_DROPPED").data()["content"], "quick");
    assert_eq!(one(&events, "SESSION_END").data()["reason"], "aborted");
}

#[tokio::test]
async fn a_slow_consumer_loses_nothing() {
    let deltas: Vec<String> = (0..5_000).map(|n| format!("{n} ")).collect();
    let model = serve(json!({"steps": [{"texts": deltas}]}));
    let host = with_key(component(), &model);
    let memory = EnvironmentChoice::Memory(MemoryOptions::default());
    let mut session = host
        .open_session(SessionOptions::new(config(&model), memory))
        .await
        .expect("a session");
    session.submit("count").await.expect("idle");
    // Time for the effects to run into the full queue; the test holds without it.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let events = until(&mut session, "PROCESSING_END").await;
    let text: String = events
        .iter()
        .filter(|event| event.kind() == "ASSISTANT_TEXT_DELTA")
        .map(|event| event.data()["text"].as_str().expect("text"))
        .collect();
    assert_eq!(text, deltas.concat());
}

#[tokio::test]
async fn a_sandbox_imports_runs_remembers_and_exports() {
    let host = component().build().expect("a core");
    let instance = host.instance().expect("an instance");
    let mut options = MemoryOptions {
        files: vec![("a.txt".to_owned(), "one\n".into())],
        ..MemoryOptions::default()
    };
    options.programs.insert(
        "shout".to_owned(),
        Arc::new(|call| {
            let words = call.request.args.join(" ").to_uppercase();
            std::future::ready(ProgramResult {
                stdout: format!("{words}\n").into(),
                ..ProgramResult::default()
            })
            .boxed()
        }),
    );
    let sandbox = instance.add_memory(options).await.expect("a sandbox");
    let run = async |command: &str| {
        let request = ExecRequest {
            command: command.to_owned(),
            timeout_ms: 10_000,
            ..ExecRequest::default()
        };
        let output = sandbox.exec(request).await.expect("a shell");
        (
            output.status.exit_code,
            String::from_utf8(output.stdout).expect("UTF-8"),
        )
    };
    assert_eq!(run("cat a.txt").await, (0, "one\n".to_owned()));
    assert_eq!(
        run("shout hi there | cat").await,
        (0, "HI THERE\n".to_owned())
    );
    let snapshot = sandbox.snapshot().await.expect("a snapshot");
    assert_eq!(run("echo two >> a.txt; echo b > b.txt; exit 3").await.0, 3);
    let changes = sandbox.changes(&snapshot).await.expect("changes");
    let changes: Vec<_> = changes
        .iter()
        .map(|change| (&*change.path, change.kind))
        .collect();
    assert_eq!(
        changes,
        [
            ("/workspace/a.txt", ChangeKind::Changed),
            ("/workspace/b.txt", ChangeKind::Added)
        ]
    );
    let archive = sandbox.export_tar().await.expect("an archive");
    sandbox.restore(&snapshot).await.expect("restored");
    assert_eq!(sandbox.read("a.txt").await.expect("a file"), "one\n");
    sandbox.import_tar(archive).await.expect("imported");
    assert_eq!(sandbox.read("a.txt").await.expect("a file"), "one\ntwo\n");
    sandbox.write("c/d.txt", "new").await.expect("written");
    assert_eq!(run("cat c/d.txt").await, (0, "new".to_owned()));
    match sandbox.read("missing").await {
        Err(HostError::Environment(error)) => {
            assert_eq!(error.kind, EnvironmentErrorKind::NotFound)
        }
        other => panic!("{other:?}"),
    }
    let other = host.instance().expect("an instance");
    let stranger = other
        .add_memory(MemoryOptions::default())
        .await
        .expect("a sandbox");
    assert!(stranger.restore(&snapshot).await.is_err());
}

/// A command that prints without end waits for whoever reads it.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_job_waits_for_its_reader() {
    const BLOCK: u64 = 64 * 1024;
    for (name, host) in faces() {
        let directory = tempfile::tempdir().expect("a directory");
        let local = LocalEnvironment::new(directory.path()).expect("an environment");
        let instance = host.instance().expect("an instance");
        let environment = instance
            .add_environment(Arc::new(local))
            .await
            .expect("added");
        let request = ExecRequest {
            command: format!(
                "while [ ! -e stop ]; do head -c {BLOCK} /dev/zero; printf x >> blocks; done"
            ),
            timeout_ms: 120_000,
            ..ExecRequest::default()
        };
        let written = || {
            let blocks = std::fs::metadata(directory.path().join("blocks"));
            blocks.map_or(0, |blocks| blocks.len()) * BLOCK
        };
        let mut stood = false;
        let mut read = 0;
        let status = environment
            .exec_with(request, |_, data| {
                read += data.len() as u64;
                if stood {
                    return;
                }
                // The reader stands still until the command does.
                loop {
                    let before = written();
                    assert!(before < 128 << 20, "{name}: nobody holds the command back");
                    std::thread::sleep(Duration::from_millis(700));
                    if before > 0 && written() == before {
                        break;
                    }
                }
                std::fs::write(directory.path().join("stop"), "").expect("a file");
                stood = true;
            })
            .await
            .expect("an end");
        assert_eq!(status.exit_code, 0, "{name}");
        assert_eq!(read, written(), "{name}");
    }
}
