//! What the areas share: fixtures as files, requests from JSON.

use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use hermitcrab::llm::{Endpoint, Request};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// All adapters.
pub(crate) const ADAPTERS: [&str; 4] = ["openai", "anthropic", "gemini", "chat"];

/// A module per adapter with one `#[test]` per name, each calling `check` with
/// the adapter and that name.
macro_rules! cases {
    ($check:path, $directory:expr; $($adapter:ident: [$($name:ident),* $(,)?])*) => {
        $(mod $adapter {
            $(#[test] fn $name() { $check(stringify!($adapter), stringify!($name)); })*

            #[test]
            fn every_fixture_has_a_test() {
                let directory = format!("{}/{}", $directory, stringify!($adapter));
                crate::support::assert_listed(&directory, &[$(stringify!($name)),*]);
            }
        })*
    };
}
pub(crate) use cases;

/// A module per name with one `#[test]` per adapter, for fixtures that say what
/// every adapter makes of the same thing.
macro_rules! shared_cases {
    ($check:path, $directory:expr; $($name:ident),* $(,)?) => {
        $(mod $name {
            #[test] fn openai() { $check("openai", stringify!($name)); }
            #[test] fn anthropic() { $check("anthropic", stringify!($name)); }
            #[test] fn gemini() { $check("gemini", stringify!($name)); }
            #[test] fn chat() { $check("chat", stringify!($name)); }
        })*

        #[test]
        fn every_fixture_has_a_test() {
            crate::support::assert_listed($directory, &[$(stringify!($name)),*]);
        }
    };
}
pub(crate) use shared_cases;

/// Held while a fixture is rewritten that several tests share.
pub(crate) static UPDATING: std::sync::Mutex<()> = std::sync::Mutex::new(());

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
    provider: Option<String>,
    #[serde(default)]
    cache_key: Option<String>,
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
pub(crate) fn test_model(adapter: &str) -> &'static str {
    match adapter {
        "openai" => "gpt-test",
        "anthropic" => "claude-test",
        "gemini" => "gemini-test",
        _ => "test",
    }
}

pub(crate) fn request(adapter: &str, fixture: Value) -> Request {
    let fixture: RequestFixture = serde_json::from_value(fixture).expect("a request");
    Request {
        provider: fixture.provider,
        system: fixture.system,
        tools: fixture.tools.into_iter().map(Rc::new).collect(),
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
        cache_key: fixture.cache_key,
        auto_cache: fixture.auto_cache,
        ..Request::new(
            fixture
                .model
                .unwrap_or_else(|| test_model(adapter).to_owned()),
            fixture.messages.into_iter().collect(),
        )
    }
}

pub(crate) fn endpoint(adapter: &str) -> Endpoint {
    Endpoint::new("", adapter)
}
