//! Fetching over played effects: pages, redirects, limits, failures.

use serde_json::{Value, json};

use super::super::testing::{call, play, remote_of};
use super::super::{Executed, Offers, Pipeline, Registry};
use super::*;
use crate::environment::Scope;
use crate::llm::{TransportError, TransportErrorKind};

const DECLARATION: &str = r#"[{"name": "web_fetch", "description": "", "parameters": {
    "type": "object", "properties": {"url": {"type": "string"}, "prompt": {"type": "string"}}}}]"#;

fn pipeline() -> Pipeline {
    let hosts = ["docs.rs".to_owned(), "*.x.org".to_owned()];
    let offers = Offers {
        web_fetch_hosts: &hosts,
        ..Offers::default()
    };
    let registry = Registry::offered(DECLARATION, &offers).expect("valid declarations");
    remote_of(registry).0
}

fn head(status: u16, headers: &[(&str, &str)]) -> OutcomeKind {
    let headers = headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    OutcomeKind::HttpHead {
        status,
        headers: headers.collect(),
    }
}

fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Vec<OutcomeKind> {
    let chunk = OutcomeKind::HttpChunk(Bytes::copy_from_slice(body));
    vec![head(status, headers), chunk, OutcomeKind::HttpEnd]
}

/// The result, and the addresses that were asked.
fn fetch(arguments: Value, answers: Vec<Vec<OutcomeKind>>) -> (Executed, Vec<String>) {
    // Every exchange comes with a sleep and, at its end, the sleep's cancel.
    let answers = answers
        .into_iter()
        .flat_map(|answer| [answer, Vec::new(), Vec::new()]);
    let call = call("web_fetch", &arguments.to_string());
    let (executed, effects) = play(&pipeline(), &Scope::new("s"), call, answers.collect());
    let asked = effects.into_iter().filter_map(|effect| match effect {
        EffectKind::Http(request) => {
            assert_eq!((request.method.as_str(), request.auth), ("GET", None));
            Some(request.url)
        }
        _ => None,
    });
    (executed, asked.collect())
}

fn check(url: &str, answers: Vec<Vec<OutcomeKind>>, asked: &[&str], expected: &str) {
    let (executed, actual) = fetch(json!({"url": url}), answers);
    assert_eq!(executed.full, expected);
    assert_eq!(executed.is_error, expected.starts_with("Tool error"));
    assert_eq!(actual, asked);
}

const HTML: &[(&str, &str)] = &[("content-type", "text/html; charset=utf-8")];

#[test]
fn pages() {
    check(
        "https://docs.rs/a#b",
        vec![answer(200, HTML, b"<title>T</title><h1>x</h1><p>y")],
        &["https://docs.rs/a"],
        "[https://docs.rs/a \u{2014} T]\n\n# x\n\ny",
    );
    check(
        "https://docs.rs/",
        vec![answer(
            200,
            &[("Content-Type", "application/json")],
            b"{\"a\": 1}",
        )],
        &["https://docs.rs/"],
        "[https://docs.rs/]\n\n{\"a\": 1}",
    );
    check(
        "https://docs.rs/",
        vec![answer(
            200,
            &[("content-type", "text/plain; charset=ISO-8859-1")],
            b"gr\xFCn",
        )],
        &["https://docs.rs/"],
        "[https://docs.rs/]\n\ngr\u{FC}n",
    );
    check(
        "https://docs.rs/",
        vec![answer(200, &[], b"")],
        &["https://docs.rs/"],
        "[https://docs.rs/]\n\n(no text)",
    );
}

#[test]
fn hosts_that_are_not_allowed() {
    check(
        "https://evil.org/",
        vec![],
        &[],
        "Tool error (web_fetch): host evil.org is not allowed; allowed are docs.rs, *.x.org",
    );
    check(
        "https://docs.rs@evil.org/",
        vec![],
        &[],
        "Tool error (web_fetch): host \"docs.rs@evil.org\": addresses with a user name are refused",
    );
}

#[test]
fn every_redirect_is_checked() {
    let to = |target| vec![head(302, &[("location", target)]), OutcomeKind::HttpEnd];
    check(
        "https://docs.rs/a",
        vec![to("/b"), to("https://www.x.org/c"), answer(200, &[], b"ok")],
        &[
            "https://docs.rs/a",
            "https://docs.rs/b",
            "https://www.x.org/c",
        ],
        "[https://www.x.org/c]\n\nok",
    );
    check(
        "https://docs.rs/a",
        vec![to("https://evil.org/")],
        &["https://docs.rs/a"],
        "Tool error (web_fetch): https://docs.rs/a redirects to https://evil.org/: host evil.org \
         is not allowed; allowed are docs.rs, *.x.org",
    );
    check(
        "https://docs.rs/a",
        vec![to("http://169.254.169.254/latest")],
        &["https://docs.rs/a"],
        "Tool error (web_fetch): redirected: https://docs.rs/a leads to \
         http://169.254.169.254/latest, which is not encrypted; such a redirect is not followed",
    );
    check(
        "https://docs.rs/a",
        vec![vec![head(301, &[]), OutcomeKind::HttpEnd]],
        &["https://docs.rs/a"],
        "Tool error (web_fetch): https://docs.rs/a answered 301 without saying where to go",
    );
    check(
        "https://docs.rs/",
        vec![to("/"); 6],
        &["https://docs.rs/"; 6],
        "Tool error (web_fetch): more than 5 redirects, the last to https://docs.rs/",
    );
}

#[test]
fn failures() {
    check(
        "https://docs.rs/",
        vec![answer(404, HTML, b"<p>gone")],
        &["https://docs.rs/"],
        "Tool error (web_fetch): https://docs.rs/ answered with status 404\nPartial output:\n\
         [https://docs.rs/]\n\ngone",
    );
    check(
        "https://docs.rs/",
        vec![answer(200, &[("content-type", "image/png")], b"PNG")],
        &["https://docs.rs/"],
        "Tool error (web_fetch): https://docs.rs/ is not text (image/png, 3 bytes)",
    );
    let error = TransportError {
        kind: TransportErrorKind::Connect,
        message: "cannot connect to docs.rs".to_owned(),
    };
    check(
        "https://docs.rs/",
        vec![vec![OutcomeKind::HttpFailed(error)]],
        &["https://docs.rs/"],
        "Tool error (web_fetch): cannot connect to docs.rs",
    );
    check(
        "https://docs.rs/",
        vec![vec![OutcomeKind::HttpEnd]],
        &["https://docs.rs/"],
        "Tool error (web_fetch): https://docs.rs/ closed without an answer",
    );
    check(
        "docs.rs",
        vec![],
        &[],
        "Tool error (web_fetch): \"docs.rs\" is not an absolute http or https address",
    );
    let (executed, _) = fetch(json!({}), vec![]);
    assert_eq!(
        executed.full,
        "Tool error (web_fetch): url names no address; give one that begins with https://"
    );
}

#[test]
fn a_body_without_end_is_cut() {
    let chunk = || OutcomeKind::HttpChunk(Bytes::from(vec![b'x'; 1024 * 1024]));
    let endless = vec![
        head(200, &[]),
        chunk(),
        chunk(),
        chunk(),
        OutcomeKind::Cancelled,
    ];
    let (executed, _) = fetch(json!({"url": "https://docs.rs/"}), vec![endless]);
    let end = "x\n\n[only the first 2097152 bytes were read]";
    assert!(executed.full.ends_with(end));
    assert!(!executed.is_error);
    assert!(executed.model_text.chars().count() < 51_000);
}

#[test]
fn silence_ends() {
    let call = call("web_fetch", r#"{"url": "https://docs.rs/"}"#);
    // The exchange stays unanswered until it is cancelled; the sleep ends.
    let answers = vec![Vec::new(), vec![OutcomeKind::Slept]];
    let pipeline = pipeline();
    let scope = Scope::new("s");
    let running = pipeline.clone();
    let mut executor = crate::effect::Executor::new();
    let slot = std::rc::Rc::new(std::cell::RefCell::new(None));
    let result = slot.clone();
    executor.spawner().spawn(async move {
        result.replace(Some(running.run(&scope, &call).await));
    });
    executor.run(|| false);
    let effects = pipeline.port.take_effects();
    let ids: Vec<_> = effects.iter().map(|effect| effect.id).collect();
    for (id, answers) in ids.iter().zip(answers) {
        for kind in answers {
            pipeline
                .port
                .deliver(crate::effect::Outcome { id: *id, kind });
        }
    }
    executor.run(|| false);
    assert!(slot.borrow().is_none(), "the last outcome is waited for");
    let cancels = pipeline.port.take_effects();
    assert_eq!(cancels[0].kind, EffectKind::Cancel { target: ids[0] });
    let kind = OutcomeKind::Cancelled;
    pipeline
        .port
        .deliver(crate::effect::Outcome { id: ids[0], kind });
    executor.run(|| false);
    let executed = slot.take().expect("the call ends");
    assert_eq!(
        executed.full,
        "Tool error (web_fetch): https://docs.rs/ took longer than 30 s"
    );
}

#[test]
fn addresses_in_a_prompt() {
    let prompt = "Compare https://docs.rs/a, (https://www.x.org/b) and <https://evil.org/>. \
                  Again https://docs.rs/a!";
    let call = call("web_fetch", &json!({"prompt": prompt}).to_string());
    // Both leave at once, each with its sleep.
    let answers = vec![
        answer(200, &[], b"one"),
        Vec::new(),
        answer(500, &[], b"two"),
    ];
    let (executed, effects) = play(&pipeline(), &Scope::new("s"), call, answers);
    assert_eq!(
        executed.full,
        "[https://docs.rs/a]\n\none\n\n\
         [https://www.x.org/b: https://www.x.org/b answered with status 500]\n\n\
         [https://evil.org/: host evil.org is not allowed; allowed are docs.rs, *.x.org]"
    );
    assert!(!executed.is_error);
    let asked = effects
        .iter()
        .filter(|effect| matches!(effect, EffectKind::Http(_)));
    assert_eq!(asked.count(), 2);
}
