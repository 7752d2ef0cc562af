//! The smoke script of the specification (9.13), for every provider over the
//! component and the local environment: against the scripted model, and against
//! the provider itself where its key is set (`ANTHROPIC_API_KEY`, …).

#![cfg(unix)]

mod support;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use hermitcrab::event::SessionState;
use hermitcrab::llm::adapter;
use hermitcrab::script::ScriptedModel;
use hermitcrab::session::Turn;
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::{
    EnvironmentChoice, Event, Host, LocalEnvironment, Session, SessionConfig, SessionOptions,
};
use serde_json::{Value, json};
use support::harness::{self, Trial};

const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];

/// A hang guard for one input: a real model takes its time.
const GUARD: Duration = Duration::from_secs(300);

fn main() -> ExitCode {
    let trials = PROVIDERS.into_iter().flat_map(|provider| {
        [
            Trial::new(format!("scripted::{provider}"), move || scripted(provider)),
            Trial::new(format!("real::{provider}"), move || real(provider)),
        ]
    });
    harness::main(trials.collect())
}

fn scripted(provider: &str) -> Result<(), String> {
    let model = ScriptedModel::from_json(&script(provider).to_string())
        .map_err(|error| error.to_string())?;
    let model = ServeModel::start(model, 0).map_err(|error| error.to_string())?;
    let config = SessionConfig {
        provider: provider.to_owned(),
        base_url: Some(model.url()),
        default_command_timeout_ms: Some(5_000),
        ..SessionConfig::default()
    };
    smoke(config, "sk-test", &model.url())?;
    ensure(model.finished(), "the script was not played to its end")
}

fn real(provider: &str) -> Result<(), String> {
    let adapter = adapter(provider).ok_or("an adapter")?;
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(key) = adapter.variables().keys.iter().find_map(|name| set(name)) else {
        println!("skipped: no key for {provider}");
        return Ok(());
    };
    let base_url =
        set(adapter.variables().base_url).unwrap_or_else(|| adapter.default_base_url().to_owned());
    let config = SessionConfig {
        provider: provider.to_owned(),
        base_url: Some(base_url.clone()),
        default_command_timeout_ms: Some(10_000),
        ..SessionConfig::default()
    };
    smoke(config, &key, &base_url)
}

#[tokio::main(flavor = "current_thread")]
async fn smoke(config: SessionConfig, key: &str, base_url: &str) -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let at = directory.path();
    let local = LocalEnvironment::builder(at)
        .build()
        .map_err(|error| error.to_string())?;
    let host = Host::builder()
        .credential(&config.provider, key, base_url)
        .build()
        .map_err(|error| error.to_string())?;
    let options = SessionOptions::new(config, EnvironmentChoice::Host(Arc::new(local)));
    let mut session = host
        .open_session(options)
        .await
        .map_err(|error| error.to_string())?;
    let session = &mut session;

    turn(
        session,
        "Create a file called hello.py that prints 'Hello World'",
        None,
    )
    .await?;
    ensure(
        read(at, "hello.py")?.contains("Hello"),
        "hello.py says no Hello",
    )?;

    let more = "Read hello.py and add a second print statement that says 'Goodbye'";
    turn(session, more, None).await?;
    let content = read(at, "hello.py")?;
    ensure(
        content.contains("Hello") && content.contains("Goodbye"),
        &content,
    )?;

    let events = turn(session, "Run hello.py and show the output", None).await?;
    let ran = ends(&events, false).any(|end| tool(end) == "shell" && output(end).contains("Hello"));
    ensure(ran, "no command showed Hello")?;

    let big = "x".repeat(100_000);
    std::fs::write(at.join("big.txt"), &big).map_err(|error| error.to_string())?;
    let events = turn(session, "Read big.txt", None).await?;
    let whole = ends(&events, false).any(|end| output(end).contains(&big));
    ensure(whole, "no event has all of big.txt")?;
    ensure(
        last_results(session).await?.contains("truncated"),
        "the model got it uncut",
    )?;

    let steering = "Actually, just create a single /health endpoint for now";
    let flask = "Create a Flask web application with multiple routes";
    let events = turn(session, flask, Some(steering)).await?;
    let injected = |event: &Event| {
        event.kind() == "STEERING_INJECTED" && event.value().to_string().contains(steering)
    };
    ensure(
        events.iter().any(injected),
        "the steering was not delivered",
    )?;
    ensure(
        any_file_contains(at, "/health"),
        "no file has a /health route",
    )?;

    let spawn = "Spawn a subagent to write tests for hello.py, then review its output";
    let events = turn(session, spawn, None).await?;
    ensure(
        ends(&events, true).next().is_some(),
        "no tool call of a subagent",
    )?;

    let events = turn(session, "Run 'sleep 30' with the default timeout", None).await?;
    let late = ends(&events, false).any(|end| output(end).contains("timed out"));
    ensure(late, "the command did not time out")?;
    let state = session.state().await.map_err(|error| error.to_string())?;
    ensure(
        state == SessionState::Idle,
        "the session did not go on after the timeout",
    )?;
    session.close().await.map_err(|error| error.to_string())
}

/// Submits, perhaps steers, and collects the events of this input.
async fn turn(
    session: &mut Session,
    input: &str,
    steering: Option<&str>,
) -> Result<Vec<Event>, String> {
    session
        .submit(input)
        .await
        .map_err(|error| error.to_string())?;
    if let Some(message) = steering {
        session
            .steer(message)
            .await
            .map_err(|error| error.to_string())?;
    }
    let mut events = Vec::new();
    let collect = async {
        while let Some(event) = session.next_event().await {
            let own = event.value().get("agent_id").is_none();
            let kind = event.kind().to_owned();
            if kind == "ERROR" && own {
                return Err(format!("{input}: {}", event.data()));
            }
            events.push(event);
            if own && kind == "PROCESSING_END" {
                return Ok(());
            }
        }
        Err(format!("{input}: the session ended"))
    };
    tokio::time::timeout(GUARD, collect)
        .await
        .map_err(|_| format!("{input}: no end"))??;
    Ok(events)
}

/// The ended tool calls of the session itself, or of its subagents.
fn ends(events: &[Event], of_subagents: bool) -> impl Iterator<Item = &Event> {
    events.iter().filter(move |event| {
        event.kind() == "TOOL_CALL_END" && event.value().get("agent_id").is_some() == of_subagents
    })
}

fn tool(end: &Event) -> &str {
    end.data()["tool_name"].as_str().unwrap_or_default()
}

fn output(end: &Event) -> &str {
    end.data()["output"].as_str().unwrap_or_default()
}

/// What the model was told by the tools of the last round, as JSON.
async fn last_results(session: &Session) -> Result<String, String> {
    let history = session.history().await.map_err(|error| error.to_string())?;
    let results = history
        .into_iter()
        .rev()
        .find(|turn| matches!(turn, Turn::ToolResults { .. }));
    serde_json::to_string(&results).map_err(|error| error.to_string())
}

fn read(at: &Path, name: &str) -> Result<String, String> {
    std::fs::read_to_string(at.join(name)).map_err(|error| format!("{name}: {error}"))
}

/// Whether a file of the directory or of one below it has this text.
fn any_file_contains(at: &Path, text: &str) -> bool {
    let entries = std::fs::read_dir(at).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .any(|path| match path.is_dir() {
            true => any_file_contains(&path, text),
            false => std::fs::read_to_string(&path).is_ok_and(|content| content.contains(text)),
        })
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    holds.then_some(()).ok_or_else(|| otherwise.to_owned())
}

/// What a model would do with these inputs, with the tools of each provider.
fn script(provider: &str) -> Value {
    let create = |path: &str, line: &str| match provider {
        "openai" => call(
            "apply_patch",
            json!({"patch": format!("*** Begin Patch\n*** Add File: {path}\n+{line}\n*** End Patch")}),
        ),
        _ => call(
            "write_file",
            json!({"file_path": path, "content": format!("{line}\n")}),
        ),
    };
    let show = |path: &str| match provider {
        "gemini" => call("read_file", json!({"path": path})),
        _ => call("read_file", json!({"file_path": path})),
    };
    let first = "print('Hello World')";
    let second = "print('Goodbye')";
    let edit = match provider {
        "openai" => call(
            "apply_patch",
            json!({"patch": format!("*** Begin Patch\n*** Update File: hello.py\n@@\n {first}\n+{second}\n*** End Patch")}),
        ),
        _ => call(
            "edit_file",
            json!({"file_path": "hello.py", "old_string": first, "new_string": format!("{first}\n{second}")}),
        ),
    };
    let shell = |command: &str| call("shell", json!({"command": command}));
    let text = |text: &str| json!({"text": text});
    let of = |mut step: Value, child: bool| {
        let key = if child { "contains" } else { "not_contains" };
        step["match"] = json!({ key: "You are a subagent" });
        step
    };
    let steps: Vec<Value> = [
        (create("hello.py", first), false),
        (text("Created."), false),
        (show("hello.py"), false),
        (edit, false),
        (text("Added."), false),
        (shell("python3 hello.py || cat hello.py"), false),
        (text("It says Hello World and Goodbye."), false),
        (show("big.txt"), false),
        (text("Many x."), false),
        (create("app.py", "ROUTES = ['/health']"), false),
        (text("One route."), false),
        (
            call("spawn_agent", json!({"task": "Write tests for hello.py."})),
            false,
        ),
        (call("wait", json!({"agent_id": "agent-1"})), false),
        (create("test_hello.py", "import hello"), true),
        (text("Tests written."), true),
        (text("The tests look right."), false),
        (shell("sleep 30"), false),
        (text("It was too slow."), false),
    ]
    .into_iter()
    .map(|(step, child)| of(step, child))
    .collect();
    json!({ "steps": steps })
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}
