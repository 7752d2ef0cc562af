//! The profiles as data: names, prompts, capabilities, and every declared tool
//! called with its advertised arguments. `tests/calls.json` holds the calls.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::effect::{EffectKind, Executor, HostToolResult, Outcome, OutcomeKind};
use crate::environment::testing::TreeEnvironment;
use crate::environment::{
    Cancel, EnvironmentCall, EnvironmentError, EnvironmentInfo, EnvironmentReply, ExecRequest,
    ExecStatus, ExecutionEnvironment, OutputSink, OutputStream, Scope,
};
use crate::llm::ToolDefinition;
use crate::tool::testing::{call, pipeline_of};
use crate::tool::{BackgroundCommands, HostTool};

const TOOLSETS: [Toolset; 2] = [Toolset::Spec, Toolset::Native];

fn profile(id: &str) -> &'static Profile {
    let known = PROFILES.iter().find(|profile| profile.id == id);
    known.unwrap_or_else(|| panic!("no profile {id}"))
}

fn host_tool(name: &str) -> ToolDefinition {
    ToolDefinition {
        name: name.to_owned(),
        description: "of the host".to_owned(),
        parameters: json!({"type": "object", "properties": {"query": {"type": "string"}}}),
        custom: None,
        strict: None,
        unchecked: false,
    }
}

/// All that can be on offer.
fn everything(profile: &Profile, toolset: Toolset) -> Registry {
    let offers = Offers {
        host_tools: &[host_tool("web_search")],
        web_fetch_hosts: &["docs.rs".to_owned()],
        background_commands: true,
        freeform: false,
    };
    profile
        .registry(toolset, &offers)
        .unwrap_or_else(|error| panic!("{} {toolset:?}: {error}", profile.id))
}

/// What there is without configuration.
fn plain(profile: &Profile, toolset: Toolset) -> Registry {
    profile
        .registry(toolset, &Offers::default())
        .unwrap_or_else(|error| panic!("{} {toolset:?}: {error}", profile.id))
}

fn every_toolset() -> impl Iterator<Item = (&'static Profile, Toolset)> {
    let ids = Profile::names().into_iter();
    ids.flat_map(|id| TOOLSETS.map(|toolset| (profile(id), toolset)))
}

fn check_names(id: &str, toolset: Toolset, always: &[&str], on_offer: &[&str]) {
    let names = |registry: Registry| registry.names().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        names(plain(profile(id), toolset)),
        always,
        "{id} {toolset:?}"
    );
    let all: Vec<_> = always.iter().chain(on_offer).copied().collect();
    assert_eq!(
        names(everything(profile(id), toolset)),
        all,
        "{id} {toolset:?}"
    );
}

#[test]
fn every_folder_is_a_profile() {
    assert_eq!(Profile::names(), ["anthropic", "openai", "gemini", "chat"]);
}

#[test]
fn names_of_the_spec() {
    let core = [
        "read_file",
        "write_file",
        "edit_file",
        "shell",
        "grep",
        "glob",
    ];
    check_names(
        "anthropic",
        Toolset::Spec,
        &core,
        &["web_fetch", "command_output", "stop_command"],
    );
    check_names(
        "openai",
        Toolset::Spec,
        &[
            "read_file",
            "apply_patch",
            "write_file",
            "shell",
            "grep",
            "glob",
        ],
        &["web_fetch", "command_output", "stop_command"],
    );
    check_names(
        "gemini",
        Toolset::Spec,
        &[
            "read_file",
            "read_many_files",
            "write_file",
            "edit_file",
            "shell",
            "grep",
            "glob",
            "list_dir",
        ],
        &["web_fetch", "web_search", "command_output", "stop_command"],
    );
    check_names(
        "chat",
        Toolset::Spec,
        &[
            "read_file",
            "write_file",
            "edit_file",
            "shell",
            "grep",
            "glob",
            "list_dir",
        ],
        &["web_fetch", "command_output", "stop_command"],
    );
}

#[test]
fn names_of_the_providers_own_agents() {
    check_names(
        "anthropic",
        Toolset::Native,
        &["Bash", "Read", "Edit", "Write"],
        &["WebFetch", "WebSearch", "TaskOutput", "TaskStop"],
    );
    check_names(
        "openai",
        Toolset::Native,
        &["exec_command", "apply_patch", "view_image"],
        &["web_fetch", "command_output", "stop_command"],
    );
    check_names(
        "gemini",
        Toolset::Native,
        &[
            "run_shell_command",
            "read_file",
            "replace",
            "write_file",
            "glob",
            "grep_search",
            "list_directory",
        ],
        &[
            "web_fetch",
            "google_web_search",
            "read_background_output",
            "stop_command",
        ],
    );
    check_names(
        "chat",
        Toolset::Native,
        &["bash", "read", "edit", "write", "glob", "grep"],
        &["webfetch", "command_output", "stop_command"],
    );
}

fn check_parameters(id: &str, toolset: Toolset, tool: &str, expected: &str) {
    let registry = everything(profile(id), toolset);
    let tool = registry.get(tool).expect("a tool of this name");
    let schema = &tool.definition().parameters;
    let required: BTreeSet<_> = schema["required"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let parameters = schema["properties"].as_object().expect("properties").iter();
    let described = parameters.map(|(name, schema)| {
        let mark = if required.contains(name.as_str()) {
            ""
        } else {
            "?"
        };
        format!("{name}{mark}:{}", schema["type"].as_str().unwrap_or("any"))
    });
    assert_eq!(described.collect::<Vec<_>>().join(" "), expected);
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn parameters_that_differ_between_providers() {
    use Toolset::{Native, Spec};
    let check = check_parameters;
    check(
        "anthropic",
        Spec,
        "read_file",
        "file_path:string offset?:integer limit?:integer",
    );
    check(
        "anthropic",
        Spec,
        "grep",
        "pattern:string path?:string glob_filter?:string case_insensitive?:boolean \
         max_results?:integer output_mode?:string context_lines?:integer",
    );
    check(
        "anthropic",
        Spec,
        "edit_file",
        "file_path:string old_string:string new_string:string replace_all?:boolean",
    );
    check(
        "anthropic",
        Native,
        "Bash",
        "command:string timeout?:number description?:string run_in_background?:boolean",
    );
    check(
        "openai",
        Spec,
        "shell",
        "command:string timeout_ms?:integer working_dir?:string description?:string \
         run_in_background?:boolean",
    );
    check(
        "openai",
        Native,
        "exec_command",
        "cmd:string workdir?:string max_output_tokens?:number run_in_background?:boolean",
    );
    check("openai", Native, "view_image", "path:string");
    check(
        "gemini",
        Spec,
        "read_file",
        "path:string offset?:integer limit?:integer",
    );
    check(
        "gemini",
        Spec,
        "edit_file",
        "file_path:string old_string:string new_string:string expected_replacements?:integer",
    );
    check(
        "gemini",
        Spec,
        "list_dir",
        "path:string depth?:integer ignore?:array respect_git_ignore?:boolean",
    );
    check(
        "gemini",
        Spec,
        "glob",
        "pattern:string path?:string case_sensitive?:boolean",
    );
    check(
        "gemini",
        Spec,
        "read_many_files",
        "paths:array exclude?:array",
    );
    check(
        "gemini",
        Native,
        "replace",
        "file_path:string instruction:string old_string:string new_string:string \
         allow_multiple?:boolean",
    );
    check("gemini", Native, "web_fetch", "prompt:string");
    check(
        "chat",
        Native,
        "read",
        "filePath:string offset?:integer limit?:integer",
    );
}

#[test]
fn display_names() {
    let own: BTreeMap<String, ProfileSettings> = from_json(
        r#"{"acme": {"wire": "chat"}, "b": {"wire": "chat", "display_name": "Bee"}, "gemini": {}}"#,
    )
    .expect("profiles");
    let names = ["anthropic", "openai", "gemini", "chat", "acme", "b"].map(|id| {
        let profile = Profile::defined(id, &own).expect("valid");
        profile.expect("a profile").display_name.clone()
    });
    assert_eq!(
        names,
        [
            "Anthropic",
            "OpenAI",
            "Google Gemini",
            "OpenAI-compatible",
            "acme",
            "Bee"
        ]
    );
}

#[test]
fn defaults() {
    let defaults = every_toolset().map(|(profile, toolset)| {
        let timeout = profile.default_command_timeout_ms(toolset);
        format!(
            "{} {toolset:?} {timeout} {:?}",
            profile.id, profile.documents
        )
    });
    assert_eq!(
        defaults.collect::<Vec<_>>(),
        [
            r#"anthropic Spec 120000 ["AGENTS.md", "CLAUDE.md"]"#,
            r#"anthropic Native 120000 ["AGENTS.md", "CLAUDE.md"]"#,
            r#"openai Spec 10000 ["AGENTS.md", ".codex/instructions.md"]"#,
            r#"openai Native 120000 ["AGENTS.md", ".codex/instructions.md"]"#,
            r#"gemini Spec 10000 ["AGENTS.md", "GEMINI.md"]"#,
            r#"gemini Native 120000 ["AGENTS.md", "GEMINI.md"]"#,
            r#"chat Spec 120000 ["AGENTS.md"]"#,
            r#"chat Native 120000 ["AGENTS.md"]"#,
        ]
    );
}

#[test]
fn the_document_lists_the_tools() {
    let document = include_str!("../../docs/toolsets.md");
    for (profile, toolset) in every_toolset() {
        for name in everything(profile, toolset).names() {
            let listed = document.contains(&format!(" `{name}` |"));
            assert!(listed, "{} {toolset:?} {name}", profile.id);
        }
    }
}

#[test]
fn every_executor_is_advertised_somewhere() {
    let advertised = every_toolset().flat_map(|(profile, toolset)| {
        let registry = everything(profile, toolset);
        let keys = Registry::executors().filter(|key| registry.vocabulary().tool(key).is_some());
        keys.collect::<Vec<_>>()
    });
    let advertised: BTreeSet<_> = advertised.collect();
    assert_eq!(advertised, Registry::executors().collect());
}

#[test]
fn prompts_name_only_tools_that_are_there() {
    let all: BTreeSet<String> = every_toolset()
        .flat_map(|(profile, toolset)| {
            let registry = everything(profile, toolset);
            registry.names().map(str::to_owned).collect::<Vec<_>>()
        })
        .chain(Registry::executors().map(str::to_owned))
        .collect();
    for (profile, toolset) in every_toolset() {
        for registry in [plain(profile, toolset), everything(profile, toolset)] {
            let prompt = profile.base_instructions(registry.vocabulary());
            let at = format!("{} {toolset:?}", profile.id);
            assert!(
                !prompt.contains("{{") && !prompt.contains("}}"),
                "{at}: {prompt}"
            );
            let names: BTreeSet<_> = registry.names().collect();
            for (index, quoted) in prompt.split('`').enumerate() {
                if index % 2 == 1 && all.contains(quoted) {
                    assert!(names.contains(quoted), "{at} names {quoted}: {prompt}");
                }
            }
        }
    }
}

#[test]
fn every_placeholder_means_something() {
    for id in Profile::names() {
        let profile = profile(id);
        let texts = TOOLSETS.map(|toolset| everything(profile, toolset));
        for line in profile.system.lines().filter(|line| line.contains("{{")) {
            let shown = texts.iter().filter(|registry| {
                let shown = template::resolve(line, registry.vocabulary(), None);
                !shown.trim().is_empty()
            });
            assert!(shown.count() > 0, "{id}: no toolset shows {line:?}");
        }
    }
}

fn check_topics(id: &str, topics: &[&str]) {
    for toolset in TOOLSETS {
        let registry = plain(profile(id), toolset);
        let prompt = profile(id).base_instructions(registry.vocabulary());
        for topic in topics {
            assert!(
                prompt.contains(topic),
                "{id} {toolset:?} says nothing of {topic:?}"
            );
        }
    }
}

#[test]
fn prompts_cover_the_topics_of_the_spec() {
    check_topics(
        "anthropic",
        &[
            "You are a coding agent",
            "Read a file before you edit it",
            "must occur exactly once",
            "Prefer editing existing files",
            "absolute paths",
            "CLAUDE.md",
            "prove it",
        ],
    );
    check_topics(
        "openai",
        &[
            "You are a coding agent",
            "*** Begin Patch",
            "*** Move to:",
            "Paths are relative",
            "# When something fails",
            "AGENTS.md",
            "at its root",
            "short plan",
        ],
    );
    check_topics(
        "gemini",
        &[
            "interactive agent for software engineering",
            "# GEMINI.md",
            "conventions",
            "# Tools",
            "# Safety",
            "Never assume that a library",
        ],
    );
    check_topics("chat", &["You are a coding agent", "# Tools", "AGENTS.md"]);
}

#[test]
fn capabilities_come_from_the_catalogue() {
    let known = profile("anthropic").capabilities("claude-haiku-4-5");
    let expected = Capabilities {
        reasoning: true,
        streaming: true,
        parallel_tool_calls: true,
        context_window: 200_000,
        context_window_known: true,
    };
    assert_eq!(known, expected);
    let unknown = profile("chat").capabilities("my-model");
    let expected = Capabilities {
        reasoning: false,
        context_window: 32_768,
        context_window_known: false,
        ..expected
    };
    assert_eq!(unknown, expected);
    for (id, window) in [
        ("anthropic", 200_000),
        ("openai", 128_000),
        ("gemini", 1_048_576),
    ] {
        let unknown = profile(id).capabilities("my-model");
        assert_eq!(
            (unknown.context_window, unknown.context_window_known),
            (window, false),
            "{id}"
        );
    }
}

fn check_options(id: &str, given: Value, expected: Value) {
    assert_eq!(profile(id).provider_options(&given), expected);
}

#[test]
fn options_of_a_session_replace_those_of_the_profile() {
    let beta = "interleaved-thinking-2025-05-14";
    check_options(
        "anthropic",
        json!(null),
        json!({"anthropic": {"beta_headers": [beta]}}),
    );
    check_options(
        "anthropic",
        json!({"anthropic": {"cache_ttl": "1h"}, "openai": {"x": 1}}),
        json!({"anthropic": {"beta_headers": [beta], "cache_ttl": "1h"}, "openai": {"x": 1}}),
    );
    check_options(
        "anthropic",
        json!({"anthropic": {"beta_headers": ["context-1m-2025-08-07"]}}),
        json!({"anthropic": {"beta_headers": [beta, "context-1m-2025-08-07"]}}),
    );
    check_options(
        "anthropic",
        json!({"anthropic": {"beta_headers": "a,b"}}),
        json!({"anthropic": {"beta_headers": [beta, "a", "b"]}}),
    );
    check_options(
        "anthropic",
        json!({"anthropic": {"beta_headers": null}}),
        json!({"anthropic": {"beta_headers": null}}),
    );
    check_options("openai", json!(null), json!(null));
    check_options(
        "openai",
        json!({"openai": {"a": 1}}),
        json!({"openai": {"a": 1}}),
    );
    check_options(
        "gemini",
        json!({"gemini": {"safetySettings": null, "tools": [{"googleSearch": {}}]}}),
        json!({"gemini": {"safetySettings": null, "tools": [{"googleSearch": {}}]}}),
    );
    let safety = profile("gemini").provider_options(&Value::Null);
    let list = safety["gemini"]["safetySettings"]
        .as_array()
        .expect("a list");
    assert!(
        list.iter()
            .all(|entry| entry["threshold"] == "BLOCK_ONLY_HIGH")
    );
    assert_eq!(list.len(), 4);
}

#[test]
fn custom_tools_join_and_replace_those_of_every_profile() {
    for (profile, toolset) in every_toolset() {
        let mut registry = plain(profile, toolset);
        let first = registry.names().next().expect("a tool").to_owned();
        let count = registry.names().count();
        for name in ["run_tests", first.as_str()] {
            let tool = Rc::new(HostTool::new(host_tool(name)));
            registry.register(tool).expect("a good tool");
        }
        let definitions = registry.definitions();
        assert_eq!(definitions.len(), count + 1);
        assert_eq!(definitions[0].name, first);
        assert_eq!(definitions[0].description, "of the host");
        assert!(registry.unregister(&first));
        assert!(registry.get(&first).is_none());
    }
}

/// One call and what comes of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    profile: String,
    toolset: Toolset,
    tool: String,
    arguments: Value,
    /// Arguments of the shell, called before.
    before: Option<Value>,
    /// The whole output, as the event has it.
    output: String,
    /// What the model gets, where that is not the output.
    shown: Option<String>,
    /// Content of `a.txt` afterwards, where it changes.
    file: Option<String>,
}

const FILES: &[(&str, &[u8])] = &[
    ("a.txt", b"one\ntwo\nthree two\n"),
    ("src/Main.rs", b"fn main() {}\n// fn old\n"),
    ("out/x.o", b"fn"),
    (".gitignore", b"out\n"),
    ("pixel.png", crate::text::PNG),
];

/// The files, and commands that only say how they were run.
struct Place(TreeEnvironment);

#[async_trait(?Send)]
impl ExecutionEnvironment for Place {
    fn info(&self) -> &EnvironmentInfo {
        self.0.info()
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.0.call(scope, call).await
    }

    async fn exec(
        &self,
        _scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let directory = request.working_dir.as_deref().unwrap_or(".");
        let text = format!(
            "{} in {directory}, {} ms",
            request.command, request.timeout_ms
        );
        output(OutputStream::Stdout, text.as_bytes());
        let timed_out = request.command == "sleep";
        Ok(ExecStatus {
            timed_out,
            ..ExecStatus::default()
        })
    }
}

/// Runs the case and says what differs.
fn play_case(case: &Case) -> Result<(), String> {
    let place = Rc::new(Place(TreeEnvironment::new(FILES)));
    let profile = profile(&case.profile);
    let registry = everything(profile, case.toolset);
    let (mut pipeline, _) = pipeline_of(registry, place.clone());
    pipeline.timeouts.profile_ms = Some(profile.default_command_timeout_ms(case.toolset));
    let result = Rc::new(RefCell::new(None));
    let mut executor = Executor::new();
    pipeline.background = BackgroundCommands::new(executor.spawner(), Cancel::new());
    let before = case.before.as_ref().map(|arguments| {
        let shell = pipeline.registry.vocabulary().tool("shell");
        call(shell.expect("a shell"), &arguments.to_string())
    });
    let (running, slot) = (pipeline.clone(), result.clone());
    let called = call(&case.tool, &case.arguments.to_string());
    executor.spawner().spawn(async move {
        if let Some(before) = before {
            running.run(&Scope::new("s"), &before).await;
        }
        slot.replace(Some(running.run(&Scope::new("s"), &called).await));
    });
    loop {
        executor.run(|| false);
        let effects = pipeline.port.take_effects();
        if effects.is_empty() {
            break;
        }
        for effect in effects {
            let outcomes = match effect.kind {
                EffectKind::Http(request) => vec![
                    OutcomeKind::HttpHead {
                        status: 200,
                        headers: Vec::new(),
                    },
                    OutcomeKind::HttpChunk(Bytes::from(format!("page {}", request.url))),
                    OutcomeKind::HttpEnd,
                ],
                EffectKind::CallTool {
                    name, arguments, ..
                } => vec![OutcomeKind::ToolEnd(HostToolResult::ok(format!(
                    "{name} {arguments}"
                )))],
                _ => Vec::new(),
            };
            for kind in outcomes {
                let id = effect.id;
                pipeline.port.deliver(Outcome { id, kind });
            }
        }
    }
    let executed = result.take().ok_or("the call does not end")?;
    let file = place.0.content("a.txt").unwrap_or_default();
    let actual = (
        executed.full,
        executed.model_text,
        String::from_utf8_lossy(&file).into_owned(),
    );
    let before = String::from_utf8_lossy(FILES[0].1).into_owned();
    let expected = (
        case.output.clone(),
        case.shown.clone().unwrap_or_else(|| case.output.clone()),
        case.file.clone().unwrap_or(before),
    );
    if actual == expected {
        return Ok(());
    }
    let Case {
        profile,
        toolset,
        tool,
        arguments,
        ..
    } = case;
    Err(format!(
        "{profile} {toolset:?} {tool} {arguments}\n expected {expected:?}\n got      {actual:?}"
    ))
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("tests/calls.json")).expect("calls.json")
}

#[test]
fn calls_with_advertised_arguments() {
    let failures: Vec<_> = cases()
        .iter()
        .filter_map(|case| play_case(case).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_declared_tool_has_a_call_and_a_refusal() {
    let mut seen: BTreeMap<(String, String, String), (bool, bool)> = BTreeMap::new();
    for case in cases() {
        let toolset = format!("{:?}", case.toolset);
        let entry = seen.entry((case.profile, toolset, case.tool)).or_default();
        if case.output.starts_with("Tool error") {
            entry.1 = true;
        } else {
            entry.0 = true;
        }
    }
    for (profile, toolset) in every_toolset() {
        for name in everything(profile, toolset).names() {
            let key = (profile.id.clone(), format!("{toolset:?}"), name.to_owned());
            assert_eq!(seen.get(&key), Some(&(true, true)), "{key:?}");
        }
    }
}
