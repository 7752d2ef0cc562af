//! What the areas share: fixtures as files, requests from JSON.

use std::fs;
use std::path::{Path, PathBuf};

use hermitcrab::llm::{Endpoint, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One `#[test]` per name, each calling `check` with that name.
macro_rules! cases {
    ($check:path: $($name:ident),* $(,)?) => {
        $(#[test] fn $name() { $check(stringify!($name)); })*
        #[test]
        fn every_fixture_has_a_test() {
            crate::support::assert_listed(DIRECTORY, &[$(stringify!($name)),*]);
        }
    };
}
pub(crate) use cases;

pub(crate) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/llm")
        .join(file)
}

pub(crate) fn read(file: &str) -> String {
    fs::read_to_string(path(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn parse<T: DeserializeOwned>(file: &str) -> T {
    serde_json::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub(crate) fn updating() -> bool {
    std::env::var_os("UPDATE_FIXTURES").is_some()
}

pub(crate) fn write(file: &str, value: &Value) {
    let text = serde_json::to_string_pretty(value).expect("a value");
    fs::write(path(file), text + "\n").expect("a writable fixture");
}

/// A fixture that no test names would never be checked.
pub(crate) fn assert_listed(directory: &str, names: &[&str]) {
    let mut found: Vec<String> = fs::read_dir(path(directory))
        .expect("a directory")
        .filter_map(|entry| {
            let path = entry.expect("an entry").path();
            let is_fixture = path
                .extension()
                .is_some_and(|extension| extension == "json");
            is_fixture.then(|| {
                path.file_stem()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned()
            })
        })
        .collect();
    found.sort();
    let mut names = names.to_vec();
    names.sort_unstable();
    assert_eq!(found, names);
}

/// A request as fixtures write it; everything but the messages is optional.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFixture {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    system: Vec<String>,
    #[serde(default)]
    tools: Vec<hermitcrab::llm::ToolDefinition>,
    #[serde(default)]
    tool_choice: hermitcrab::llm::ToolChoice,
    #[serde(default)]
    messages: Vec<hermitcrab::llm::Message>,
    #[serde(default)]
    max_tokens: Option<u64>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    stop_sequences: Vec<String>,
    #[serde(default)]
    reasoning_effort: Option<String>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    response_format: hermitcrab::llm::ResponseFormat,
    #[serde(default)]
    metadata: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    provider_options: Value,
    #[serde(default = "yes")]
    auto_cache: bool,
}

fn yes() -> bool {
    true
}

/// The model of fixtures that name none: not in the catalogue.
pub(crate) const MODEL: &str = "claude-test";

pub(crate) fn request(fixture: Value) -> Request {
    let fixture: RequestFixture = serde_json::from_value(fixture).expect("a request");
    Request {
        system: fixture.system,
        tools: fixture.tools.into(),
        tool_choice: fixture.tool_choice,
        max_tokens: fixture.max_tokens,
        temperature: fixture.temperature,
        top_p: fixture.top_p,
        stop_sequences: fixture.stop_sequences,
        reasoning_effort: fixture.reasoning_effort,
        parallel_tool_calls: fixture.parallel_tool_calls,
        response_format: fixture.response_format,
        metadata: fixture.metadata,
        provider_options: fixture.provider_options,
        auto_cache: fixture.auto_cache,
        ..Request::new(
            fixture.model.unwrap_or_else(|| MODEL.to_owned()),
            fixture.messages.into_iter().collect(),
        )
    }
}

pub(crate) fn endpoint() -> Endpoint {
    Endpoint::new("", "anthropic")
}
