//! Sessions that are saved, restored and forked, with a scripted model over loopback
//! HTTP.

use std::collections::BTreeMap;
use std::sync::Arc;

use hermitcrab::environment::{ExecRequest, ProgramResult};
use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::{
    CommandPolicy, EnvironmentChoice, Event, Host, HostError, HostTool, HostToolResult,
    LocalEnvironment, MemoryOptions, Session, SessionConfig, SessionOptions, TakeoverOptions,
    ToolDefinition,
};
use serde_json::{Value, json};

use crate::{component, until};

fn serve(steps: Value) -> ServeModel {
    let script = json!({ "steps": steps }).to_string();
    let model = ScriptedModel::from_json(&script).expect("a script");
    ServeModel::start(model, 0).expect("a model")
}

fn host(model: &ServeModel) -> Host {
    component()
        .credential("anthropic", "sk-secret-saved", &model.url())
        .build()
        .expect("a host")
}

fn config(model: &ServeModel) -> SessionConfig {
    SessionConfig {
        base_url: Some(model.url()),
        max_turns: 9,
        ..SessionConfig::default()
    }
}

fn shell(command: &str) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": {"command": command}}]})
}

fn memory() -> EnvironmentChoice {
    EnvironmentChoice::Memory(MemoryOptions {
        files: vec![
            ("AGENTS.md".to_owned(), "Be brief.\n".into()),
            ("a.txt".to_owned(), "a\n".into()),
        ],
        ..MemoryOptions::default()
    })
}

async fn input(session: &mut Session, text: &str) -> Event {
    session.submit(text).await.expect("idle");
    until(session, "PROCESSING_END")
        .await
        .pop()
        .expect("an end")
}

/// A session that has done its first input: a command, a virtual hour, an answer.
async fn begun(model: &ServeModel) -> Session {
    let host = host(model);
    let options = SessionOptions::new(config(model), memory());
    let mut session = host.open_session(options).await.expect("a session");
    let end = input(&mut session, "begin").await;
    assert_eq!(end.data()["reason"], "completed", "{end:?}");
    session
}

fn first() -> Vec<Value> {
    vec![
        shell("echo b >> a.txt; chmod 755 a.txt; ln -s a.txt l; rm AGENTS.md; sleep 3600"),
        json!({"text": "done"}),
    ]
}

/// A model that plays `steps` behind the first input.
fn serve_behind_first(steps: Vec<Value>) -> ServeModel {
    serve([first(), steps].concat().into())
}

fn other_model(model: &ServeModel) -> TakeoverOptions {
    TakeoverOptions {
        settings: json!({ "base_url": model.url() }),
        ..TakeoverOptions::default()
    }
}

async fn look(session: &Session, command: &str) -> String {
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms: 10_000,
        ..ExecRequest::default()
    };
    let output = session.environment().exec(request).await.expect("it ran");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn last_body(model: &ServeModel) -> String {
    let requests = model.requests();
    let last = requests.last().expect("a request");
    String::from_utf8_lossy(&last.body).into_owned()
}

#[tokio::test]
async fn a_restored_session_goes_on_as_the_one_that_stayed() {
    let second = || {
        vec![
            shell("ls -l a.txt l; cat l; date +%s"),
            json!({"text": "seen"}),
        ]
    };
    let model = serve_behind_first(second());
    let mut stayed = begun(&model).await;
    stayed.follow_up("and then").await.expect("open");
    let saved = stayed.save().await.expect("a file");
    let text = String::from_utf8_lossy(&saved).into_owned();
    assert!(!text.contains("sk-secret-saved"), "a key is in the file");
    assert!(!text.contains(&model.url()), "an address is in the file");

    let elsewhere = serve(json!(second()));
    let instance = host(&elsewhere).instance().expect("an instance");
    let restored = instance.restore(saved, other_model(&elsewhere)).await;
    let mut restored = restored.expect("a session");
    for command in ["cat l; stat -c '%a %Y' a.txt; ls -a", "pwd"] {
        assert_eq!(look(&restored, command).await, look(&stayed, command).await);
    }
    let clock = |text: String| text.trim().parse::<u64>().expect("seconds");
    let (here, there) = (
        clock(look(&stayed, "date +%s").await),
        clock(look(&restored, "date +%s").await),
    );
    assert!(
        there.abs_diff(here) < 600,
        "its virtual hour is lost: {here} {there}"
    );
    // Everything but the time that `date` prints, the same to the byte: the prompt, too,
    // though its document is gone.
    let ends = [
        input(&mut stayed, "go on").await,
        input(&mut restored, "go on").await,
    ];
    let [stayed_requests, restored_requests] = [&model, &elsewhere].map(ServeModel::requests);
    let asked = &restored_requests[0].body;
    assert_eq!(*asked, stayed_requests[2].body);
    assert!(String::from_utf8_lossy(asked).contains("Be brief."));
    for field in ["totals", "turns", "reason"] {
        assert_eq!(ends[0].data()[field], ends[1].data()[field], "{field}");
    }
    // The follow-up was queued in both.
    assert_eq!(
        restored.history().await.expect("turns").len(),
        stayed.history().await.expect("turns").len()
    );
    let config = restored.config().await.expect("settings");
    assert_eq!(config.max_turns, 9);
}

#[tokio::test]
async fn forks_share_nothing_with_their_original() {
    let model = serve_behind_first(vec![json!({"text": "left"}), json!({"text": "right"})]);
    let host = host(&model);
    let options = SessionOptions::new(config(&model), memory());
    let mut original = host.open_session(options).await.expect("a session");
    input(&mut original, "begin").await;
    original
        .environment()
        .make_read_only(CommandPolicy::Deny)
        .await
        .expect("a sandbox");
    let mut forks = Vec::new();
    for _ in 0..3 {
        forks.push(
            original
                .fork(TakeoverOptions::default())
                .await
                .expect("a fork"),
        );
    }
    for fork in &forks {
        let refused = fork
            .environment()
            .write("c", "c")
            .await
            .expect_err("read-only");
        assert!(refused.to_string().contains("read-only"), "{refused}");
    }
    drop(forks);
    // Of one that may write, each has its own files.
    let model = serve_behind_first(vec![
        shell("echo left > a.txt"),
        json!({"text": "left"}),
        json!({"text": "right"}),
    ]);
    let mut original = begun(&model).await;
    let mut fork = original
        .fork(TakeoverOptions::default())
        .await
        .expect("a fork");
    input(&mut fork, "one").await;
    input(&mut original, "two").await;
    assert_eq!(look(&fork, "cat a.txt").await, "left\n");
    assert_eq!(look(&original, "cat a.txt").await, "a\nb\n");
    assert!(
        !last_body(&model).contains("\"one\""),
        "the original heard what its fork did"
    );
    drop(original);
    assert_eq!(look(&fork, "cat a.txt").await, "left\n");
}

#[tokio::test]
async fn programs_and_tools_go_along() {
    let add = || {
        let definition = ToolDefinition {
            name: "add".to_owned(),
            description: "Adds.".to_owned(),
            parameters: json!({"type": "object", "properties": {}}),
            custom: None,
            strict: None,
            unchecked: false,
        };
        HostTool::new(definition, |_| async { HostToolResult::ok("42") })
    };
    let program = || -> BTreeMap<String, hermitcrab_host::ProgramFn> {
        let hi: hermitcrab_host::ProgramFn = Arc::new(|_| {
            Box::pin(async {
                ProgramResult {
                    stdout: "hi\n".into(),
                    ..ProgramResult::default()
                }
            })
        });
        [("hi".to_owned(), hi)].into()
    };
    let call = json!({"tool_calls": [{"name": "add", "arguments": {}}]});
    let model = serve(json!([{"text": "ready"}, call, {"text": "done"}, call, {"text": "done"}]));
    let host = host(&model);
    let memory = MemoryOptions {
        programs: program(),
        ..MemoryOptions::default()
    };
    let options =
        SessionOptions::new(config(&model), EnvironmentChoice::Memory(memory)).tool(add());
    let mut original = host.open_session(options).await.expect("a session");
    input(&mut original, "begin").await;
    let with = TakeoverOptions {
        tools: vec![add()],
        programs: program(),
        ..other_model(&model)
    };
    let mut fork = original.fork(with.clone()).await.expect("a fork");
    let saved = original.save().await.expect("a file");
    let instance = host.instance().expect("an instance");
    let restored = instance.restore(saved.clone(), with).await;
    let mut restored = restored.expect("a session");
    for session in [&mut fork, &mut restored] {
        assert_eq!(look(session, "hi | cat").await, "hi\n");
        session.submit("add").await.expect("idle");
        let events = until(session, "PROCESSING_END").await;
        let ended = events.iter().find(|event| event.kind() == "TOOL_CALL_END");
        assert_eq!(ended.expect("a call").data()["output"], "42");
    }
    // A program that is lent no more is not there.
    let instance = host.instance().expect("an instance");
    let with = other_model(&model);
    let without = instance.restore(saved, with).await.expect("a session");
    let command = "hi 2>&1; echo $?; ls /usr/local/bin";
    let seen = look(&without, command).await;
    assert!(seen.ends_with("command not found\n127\n"), "{seen}");
}

#[tokio::test]
async fn a_session_that_works_outside_is_saved_with_its_history() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = || {
        let local = LocalEnvironment::new(directory.path()).expect("an environment");
        EnvironmentChoice::Host(Arc::new(local))
    };
    let model = serve(json!([{"text": "one"}, {"text": "two"}, {"text": "two"}]));
    let host = host(&model);
    let options = SessionOptions::new(config(&model), place());
    let mut session = host.open_session(options).await.expect("a session");
    input(&mut session, "begin").await;
    let saved = session.save().await.expect("a file");
    let instance = host.instance().expect("an instance");
    let alone = instance
        .restore(saved.clone(), TakeoverOptions::default())
        .await;
    let error = alone.expect_err("no environment");
    assert_eq!(
        error.to_string(),
        "the saved session did not work in a sandbox; give it an environment"
    );
    let with = TakeoverOptions {
        environment: Some(place()),
        ..other_model(&model)
    };
    let mut restored = instance.restore(saved, with).await.expect("a session");
    let mut fork = session
        .fork(TakeoverOptions::default())
        .await
        .expect("a fork");
    input(&mut restored, "more").await;
    input(&mut fork, "more").await;
    let [_, a, b] = &model.requests()[..] else {
        panic!("three requests")
    };
    assert_eq!(a.body, b.body);
}

#[tokio::test]
async fn a_session_writes_its_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let log = directory.path().join("run.log.gz");
    let model = serve(first().into());
    let host = host(&model);
    let options = || SessionOptions::new(config(&model), memory()).log(&log);
    let mut session = host.open_session(options()).await.expect("a session");
    input(&mut session, "begin").await;
    let session = session;
    session.close().await.expect("idle");
    drop(session);
    let again = host.open_session(options()).await.expect_err("it exists");
    assert!(
        again
            .to_string()
            .ends_with("name another file, or remove it"),
        "{again}"
    );
    let instance = host.instance().expect("an instance");
    let late = instance
        .open_session(options())
        .await
        .expect_err("too late");
    assert!(
        late.to_string()
            .starts_with("a log begins with its instance"),
        "{late}"
    );
    // The driver writes the end when the last handle has gone.
    let replayed = loop {
        let replayed = host
            .replay(&log)
            .expect("a log")
            .run(|_| {})
            .expect("the same");
        if replayed.closed {
            break replayed;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(replayed.rounds, 2);
}

async fn refused(host: &Host, saved: &[u8], settings: Value) -> String {
    let instance = host.instance().expect("an instance");
    let with = TakeoverOptions {
        settings,
        ..TakeoverOptions::default()
    };
    let opened = instance.restore(saved.to_vec(), with).await;
    match opened.expect_err("refused") {
        HostError::Core(dead) => panic!("the core died: {dead}"),
        error => error.to_string(),
    }
}

#[tokio::test]
async fn what_cannot_be_saved_or_restored() {
    let model = serve_behind_first(vec![json!({"text": "late", "hold": "go"})]);
    let session = begun(&model).await;
    let saved = session.save().await.expect("a file");
    let host = host(&model);
    for bad in [&b""[..], b"x", &[0; 2_000], &saved[..700], &saved[512..]] {
        let message = refused(&host, bad, Value::Null).await;
        assert!(
            message.starts_with("this is no saved session, or it is damaged ("),
            "{message}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
    let torn = refused(&host, &saved[..saved.len() * 2 / 3], Value::Null).await;
    assert!(torn.contains("damaged"), "{torn}");
    let text = String::from_utf8_lossy(&saved).into_owned();
    let at = text.find("\"hermitcrab_session\":1").expect("its version") + 21;
    let mut newer = saved.to_vec();
    newer[at] = b'2';
    assert_eq!(
        refused(&host, &newer, Value::Null).await,
        "the saved session has format 2, this version reads format 1; open it with the version \
         that saved it"
    );
    let wrong = refused(&host, &saved, json!({"max_turn": 1})).await;
    assert!(wrong.contains("unknown field `max_turn`"), "{wrong}");
    let wrong = refused(&host, &saved, json!([])).await;
    assert_eq!(wrong, "the settings must be a JSON object");

    session.submit("more").await.expect("idle");
    for refused in [
        session.save().await.map(drop),
        session.fork(TakeoverOptions::default()).await.map(drop),
    ] {
        let message = refused.expect_err("at work").to_string();
        assert!(
            message
                .ends_with("not legal in state PROCESSING; wait until it is idle, or interrupt it"),
            "{message}"
        );
    }
    session.interrupt().await.expect("at work");
}
