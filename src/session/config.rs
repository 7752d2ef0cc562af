//! Configuration of a session: spec 2.2, and settings that the spec lacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::compaction::settings::Compaction;
use super::error::{SessionError, SessionErrorKind};
use crate::llm::{Endpoint, Prices, RetryPolicy, ToolDefinition, model_info};
use crate::profile::{Profile, ProfileSettings, ProjectFacts, Toolset, check_options};
use crate::tool::approval::{ApprovalPolicy, ApprovalSettings};
use crate::tool::{HostList, Offers, RegisterError, Registry, Schema};

/// Settings of a session. In JSON every field may be left out; unknown fields
/// are an error, so that a misspelt limit cannot go unnoticed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionConfig {
    /// Provider whose profile and wire format to use: `anthropic`, or one of
    /// `profiles`.
    pub provider: String,
    /// Profiles that the host defines, or changes where they are built in, by
    /// id: `docs/toolsets.md`.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// Model id or alias; empty, in JSON absent: the profile's default model.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Origin and path of the provider's API; absent: as `endpoints` says, else
    /// the provider's own.
    pub base_url: Option<String>,
    /// Name of the credential that the host fills in; absent: as `endpoints`
    /// says, else the provider's name.
    pub credential: Option<String>,
    /// Assistant turns in the whole session; 0: unlimited.
    pub max_turns: u32,
    /// Tool rounds for one input.
    pub max_tool_rounds_per_input: u32,
    /// Wall time for one input, in ms; 0: unlimited.
    pub max_wall_ms: u64,
    /// What the session may cost with its subagents, in US dollars: no request is sent
    /// once it has; absent: no limit. The price of each model must be known.
    pub max_cost_usd: Option<f64>,
    /// Time limit of a command whose call names none, in ms; absent: the
    /// profile's default, else 10,000.
    pub default_command_timeout_ms: Option<u64>,
    /// Upper bound of any command's time limit, in ms.
    pub max_command_timeout_ms: u64,
    /// Time for reading the project's documents at the start, in ms.
    pub document_timeout_ms: u64,
    /// Time for what git says at the start, in ms.
    pub git_timeout_ms: u64,
    /// `low`, `medium`, `high` or what else the provider has; absent: its default.
    pub reasoning_effort: Option<String>,
    /// Output tokens per model response; absent: the model's default.
    pub max_tokens: Option<u64>,
    /// Characters of a tool's output that the model gets, by tool (spec 5.2).
    pub tool_output_limits: BTreeMap<String, u64>,
    /// Lines of a tool's output that the model gets, by tool (spec 5.3); null: no limit.
    pub tool_line_limits: BTreeMap<String, Option<u64>>,
    /// Whether repeated tool calls are noticed (spec 2.10).
    pub enable_loop_detection: bool,
    /// How many of the last tool calls must repeat a pattern.
    pub loop_detection_window: u32,
    /// How deep subagents may nest.
    pub max_subagent_depth: u32,
    /// How many subagents may work at the same time.
    pub max_subagents: u32,
    /// How providers are reached, by provider: the session's own, and others for
    /// subagents whose model is another provider's.
    pub endpoints: BTreeMap<String, ProviderEndpoint>,
    /// When a text answer counts as a question to the user.
    pub awaiting_input: AwaitingInput,
    /// Bytes of one tool call's output that are kept in full.
    pub max_captured_bytes: u64,
    /// Silence on a model stream after which it counts as broken, in ms.
    pub stream_idle_timeout_ms: u64,
    /// Time limit for connecting to the provider, in ms.
    pub connect_timeout_ms: u64,
    /// Retries of a model call that failed before any content arrived.
    pub retry: RetryPolicy,
    /// Retries of a model stream that broke after content had arrived, as far
    /// apart as `retry` says.
    pub max_stream_retries: u32,
    /// Tokens that fit the model, for the warning that they run out; 0: no
    /// warning; absent: from the model catalogue, else what models of the
    /// provider usually have.
    pub context_window: Option<u64>,
    /// When the older part of the conversation is replaced by a summary, and what
    /// stays; absent: only when the host calls.
    pub compaction: Option<Compaction>,
    /// Prices by model id, in US dollars per million tokens: they replace those
    /// of the catalogue, or supply what it lacks.
    pub prices: BTreeMap<String, Prices>,
    /// Text that replaces the profile's base instructions.
    pub base_instructions: Option<String>,
    /// The user's own instructions; last part of the system prompt but for the form of
    /// the final answer.
    pub instructions: Option<String>,
    /// JSON Schema of the final answer of each input, which `PROCESSING_END` then bears
    /// as `output`; absent: the answer is text. A question to the user is no final
    /// answer. Subagents have the form that their call asks for.
    pub output_schema: Option<Value>,
    /// What the host knows of the project around the working directory, where
    /// the session works on a part of it; absent: nothing.
    pub project: Option<ProjectFacts>,
    /// Names of the tools in requests.
    pub toolset: Toolset,
    /// Declarations that replace the profile's: a list in the format that
    /// `docs/toolsets.md` describes, or its JSON text.
    pub tool_declarations: Option<Value>,
    /// Hosts that `web_fetch` may ask, such as `docs.rs` or `*.python.org`;
    /// the tool is not there when there are none.
    pub web_fetch_hosts: Vec<String>,
    /// Whether the model may leave commands running in the background, such as a server
    /// or a watcher; they end with the session.
    pub background_commands: bool,
    /// Whether `apply_patch` takes freeform text instead of JSON where the
    /// provider has freeform tools.
    pub freeform_tools: bool,
    /// Tools that the host executes, on top of the profile's; the latest of a name wins.
    pub tools: Vec<ToolDefinition>,
    /// Which calls need the host's approval: `docs/approval.md`.
    pub approval: ApprovalSettings,
    /// Whether cache breakpoints are set where the provider has them.
    pub auto_cache: bool,
    /// Extra options by provider, merged into the request last.
    pub provider_options: Value,
    /// The session runs in a web page, which providers want to know.
    pub browser: bool,
}

/// How a provider is reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderEndpoint {
    /// Origin and path of its API; absent: the provider's own.
    pub base_url: Option<String>,
    /// Name of the credential that the host fills in; absent: the provider's name.
    pub credential: Option<String>,
    /// Options of its adapter, an object: `organization`, `project` and
    /// `reasoning_summary` of `openai`, `max_tokens_field` and others of `chat`;
    /// the modules of [`crate::llm::adapter`] name them.
    pub options: Value,
}

/// When a text answer moves the session to `AWAITING_INPUT`: the spec names the
/// state and not how to find it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AwaitingInput {
    /// Its last non-empty line ends in a question mark.
    #[default]
    Heuristic,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            provider: "anthropic".to_owned(),
            profiles: BTreeMap::new(),
            model: String::new(),
            base_url: None,
            credential: None,
            max_turns: 0,
            max_tool_rounds_per_input: 200,
            max_wall_ms: 0,
            max_cost_usd: None,
            default_command_timeout_ms: None,
            max_command_timeout_ms: 600_000,
            document_timeout_ms: 10_000,
            git_timeout_ms: 2_000,
            reasoning_effort: None,
            max_tokens: None,
            tool_output_limits: BTreeMap::new(),
            tool_line_limits: BTreeMap::new(),
            enable_loop_detection: true,
            loop_detection_window: 10,
            max_subagent_depth: 1,
            max_subagents: 8,
            endpoints: BTreeMap::new(),
            awaiting_input: AwaitingInput::default(),
            max_captured_bytes: 8 * 1024 * 1024,
            stream_idle_timeout_ms: 300_000,
            connect_timeout_ms: 10_000,
            retry: RetryPolicy::default(),
            max_stream_retries: 2,
            context_window: None,
            compaction: None,
            prices: BTreeMap::new(),
            base_instructions: None,
            instructions: None,
            output_schema: None,
            project: None,
            toolset: Toolset::default(),
            tool_declarations: None,
            web_fetch_hosts: Vec::new(),
            background_commands: false,
            freeform_tools: false,
            tools: Vec::new(),
            approval: ApprovalSettings::default(),
            auto_cache: true,
            provider_options: Value::Null,
            browser: false,
        }
    }
}

/// Levels of reasoning that adapters know for every model that reasons.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// Fields that are fixed once a session is open.
const FIXED: [&str; 14] = [
    "provider",
    "profiles",
    "credential",
    "base_instructions",
    "instructions",
    "output_schema",
    "project",
    "toolset",
    "tool_declarations",
    "web_fetch_hosts",
    "background_commands",
    "freeform_tools",
    "tools",
    "browser",
];

impl SessionConfig {
    /// These settings without where requests go. Keys go there, too: who goes on with a
    /// session that somebody recorded or saved says where that is, not the file.
    #[must_use]
    pub fn without_address(self) -> Self {
        Self {
            base_url: None,
            credential: None,
            endpoints: Default::default(),
            ..self
        }
    }

    /// Parses a JSON object; the error names the field.
    pub fn from_json(json: &str) -> Result<Self, SessionError> {
        let given: Value = serde_json::from_str(json)
            .map_err(|error| SessionError::invalid_config(error.to_string()))?;
        // The default is to say nothing; who gives an empty name meant one.
        let empty = given.get("model").is_some_and(|model| model == "");
        let config = Self::from_value(&given)?;
        config.check()?;
        if empty {
            return Err(no_model());
        }
        Ok(config)
    }

    /// Whether the setting of this name stays as it is once a session is open.
    pub fn is_fixed(name: &str) -> bool {
        FIXED.contains(&name)
    }

    /// This configuration with the fields of `patch` replaced: what
    /// `configure` does between two model calls (spec 1.2, 2.7). Fields that
    /// are fixed once the session is open are an error.
    pub fn patched(&self, patch: &Value) -> Result<Self, SessionError> {
        let Value::Object(patch) = patch else {
            return Err(SessionError::invalid_config(
                "the patch must be a JSON object of settings",
            ));
        };
        if let Some(name) = patch.keys().find(|name| Self::is_fixed(name)) {
            return Err(SessionError::invalid_config(format!(
                "`{name}` is fixed once the session is open; open a new session to change it"
            )));
        }
        if patch.get("model") == Some(&Value::from("")) {
            return Err(no_model());
        }
        let mut value = serde_json::to_value(self)
            .map_err(|error| SessionError::invalid_config(error.to_string()))?;
        if let Value::Object(fields) = &mut value {
            for (name, new) in patch {
                fields.insert(name.clone(), new.clone());
            }
        }
        let config = Self::from_value(&value)?;
        config.check()?;
        Ok(config)
    }

    fn from_value(given: &Value) -> Result<Self, SessionError> {
        serde_json::from_value(given.clone()).map_err(|error| {
            let problem = error.to_string();
            let place = Self::place_of(&problem, given, &mut |field| field);
            let mut told = place.map_or(problem.clone(), |place| format!("`{place}`: {problem}"));
            for number in ["u32", "u64", "usize"] {
                let expected = format!("expected {number}");
                told = told.replace(&expected, "expected a whole number, 0 or more");
            }
            SessionError::invalid_config(told)
        })
    }

    /// The field of `fields` that has the problem, such as `retry.max_retries`:
    /// the one that has it alone. serde says what is wrong, not where.
    fn place_of(
        problem: &str,
        fields: &Value,
        around: &mut dyn FnMut(Value) -> Value,
    ) -> Option<String> {
        let fields = fields.as_object()?;
        let missing = problem.starts_with("missing field");
        fields.iter().find_map(|(name, value)| {
            // What is missing from an object is not missing from a number or text in it.
            if missing && !value.is_object() && !value.is_array() {
                return None;
            }
            let mut alone = |value: Value| around(json!({ name.as_str(): value }));
            let error = serde_json::from_value::<Self>(alone(value.clone())).err()?;
            if error.to_string() != problem || problem.starts_with("unknown field") {
                return None;
            }
            let place = match Self::place_of(problem, value, &mut alone) {
                Some(inner) => format!("{name}.{inner}"),
                None => name.clone(),
            };
            Some(place)
        })
    }

    /// The profile of `provider`, as this configuration defines or changes it.
    pub fn profile_of(&self, provider: &str) -> Result<Arc<Profile>, SessionError> {
        let profile = Profile::defined(provider, &self.profiles)
            .map_err(|problem| wrong_profile(provider, &problem))?;
        profile.ok_or_else(|| {
            SessionError::new(
                SessionErrorKind::UnknownProvider,
                format!(
                    "unknown provider `{provider}`; known providers: {}",
                    self.providers().join(", ")
                ),
            )
        })
    }

    /// Ids of the profiles that there are.
    fn providers(&self) -> Vec<&str> {
        let own = self.profiles.keys().map(String::as_str);
        let mut all = Profile::names();
        all.extend(own.filter(|id| Profile::of(id).is_none()));
        all
    }

    /// The tools that `profile` declares, or that this configuration declares
    /// in their place. The host's own are not among them.
    pub fn registry(&self, profile: &Profile) -> Result<Registry, RegisterError> {
        let offers = Offers {
            host_tools: &self.tools,
            web_fetch_hosts: &self.web_fetch_hosts,
            background_commands: self.background_commands,
            freeform: self.freeform_tools,
        };
        match &self.tool_declarations {
            None => profile.registry(self.toolset, &offers),
            Some(Value::String(json)) => Registry::offered(json, &offers),
            Some(list) => Registry::offered(&list.to_string(), &offers),
        }
    }

    /// Where the session's requests go, and how.
    pub(super) fn endpoint(&self, profile: &Profile) -> Endpoint {
        // Where nothing is said of a host's profile, that of its adapter counts.
        let named = [self.provider.as_str(), profile.wire];
        let named = named
            .into_iter()
            .find(|name| self.endpoints.contains_key(*name));
        let named = named.unwrap_or(&self.provider);
        let known = self.endpoints.get(named).cloned().unwrap_or_default();
        let credential = self.credential.clone().or(known.credential);
        Endpoint {
            base_url: self.base_url.clone().or(known.base_url).unwrap_or_default(),
            credential: credential.unwrap_or_else(|| named.to_owned()),
            browser: self.browser,
            connect_timeout_ms: self.connect_timeout_ms,
            options: known.options,
        }
    }

    /// A level that no model has would be sent, or silently become another one.
    fn check_effort(&self) -> Result<(), SessionError> {
        let profile = self.profile_of(&self.provider).ok();
        let (Some(effort), Some(profile)) = (&self.reasoning_effort, profile) else {
            return Ok(());
        };
        let model = match self.model.as_str() {
            "" => &profile.default_model,
            model => model,
        };
        // What an unknown model takes is not known.
        let Some(known) = model_info(model) else {
            return Ok(());
        };
        let levels = known.effort_levels.iter().map(String::as_str);
        let all: Vec<&str> = EFFORTS.into_iter().chain(levels).collect();
        if all.contains(&effort.as_str()) {
            return Ok(());
        }
        Err(SessionError::invalid_config(format!(
            "`reasoning_effort` is {effort:?}; {model} takes one of {}",
            EFFORTS.join(", ")
        )))
    }

    /// Finds values that make no sense; the error names the field.
    pub fn check(&self) -> Result<(), SessionError> {
        for id in self.profiles.keys() {
            Profile::defined(id, &self.profiles).map_err(|problem| wrong_profile(id, &problem))?;
        }
        for (provider, endpoint) in &self.endpoints {
            let problem = if !self.providers().contains(&provider.as_str()) {
                let known = self.providers().join(", ");
                format!("`endpoints` has {provider:?}, which is no provider; there are {known}")
            } else if !(endpoint.options.is_null() || endpoint.options.is_object()) {
                format!("`options` of {provider} in `endpoints` must be an object")
            } else {
                continue;
            };
            return Err(SessionError::invalid_config(problem));
        }
        if !self.model.is_empty() && self.model.trim().is_empty() {
            return Err(no_model());
        }
        self.check_effort()?;
        for (model, prices) in &self.prices {
            if let Some(problem) = prices.problem() {
                let problem = format!("`prices` of {model}: {problem}");
                return Err(SessionError::invalid_config(problem));
            }
        }
        if let Err(problem) = HostList::parse(&self.web_fetch_hosts) {
            let problem = format!("`web_fetch_hosts`: {problem}");
            return Err(SessionError::invalid_config(problem));
        }
        if let Err(problem) = check_options(&self.provider_options) {
            let problem = format!("`provider_options` {problem}");
            return Err(SessionError::invalid_config(problem));
        }
        if let Some(schema) = &self.output_schema {
            let problem = |error| format!("`output_schema`: {error}");
            Schema::compile(schema)
                .map_err(|error| SessionError::invalid_config(problem(error)))?;
        }
        if let Some(problem) = self.compaction.as_ref().and_then(Compaction::problem) {
            let problem = format!("`compaction`: {problem}");
            return Err(SessionError::invalid_config(problem));
        }
        if let Some(most) = self.max_cost_usd
            && !(most > 0.0 && most.is_finite())
        {
            return Err(SessionError::invalid_config(format!(
                "`max_cost_usd` is {most}; give US dollars above 0, or leave it out for no limit"
            )));
        }
        let problem = if self.max_tool_rounds_per_input == 0 {
            "`max_tool_rounds_per_input` must be at least 1"
        } else if self.max_tokens == Some(0) {
            "`max_tokens` must be at least 1; leave it out for the model's own limit"
        } else if self.max_command_timeout_ms == 0 {
            "`max_command_timeout_ms` must be at least 1"
        } else if self.document_timeout_ms == 0 {
            "`document_timeout_ms` must be at least 1"
        } else if self.git_timeout_ms == 0 {
            "`git_timeout_ms` must be at least 1"
        } else if self.default_command_timeout_ms == Some(0) {
            "`default_command_timeout_ms` must be at least 1"
        } else if self.enable_loop_detection && self.loop_detection_window < 2 {
            "`loop_detection_window` must be at least 2; set `enable_loop_detection` to false to turn it off"
        } else if self.stream_idle_timeout_ms == 0 {
            "`stream_idle_timeout_ms` must be at least 1"
        } else {
            let policy = ApprovalPolicy::new(&self.approval);
            return policy
                .map(drop)
                .map_err(|problem| SessionError::invalid_config(format!("`approval`: {problem}")));
        };
        Err(SessionError::invalid_config(problem))
    }
}

fn wrong_profile(id: &str, problem: &str) -> SessionError {
    SessionError::invalid_config(format!("`profiles.{id}`: {problem}"))
}

fn no_model() -> SessionError {
    SessionError::invalid_config(
        "`model` is empty; name a model, or leave `model` out for the provider's default",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_tools(config: Value, expected: Result<&[&str], &str>) {
        let names = SessionConfig::from_json(&config.to_string())
            .map_err(|error| error.message)
            .and_then(|config| {
                let profile = config.profile_of(&config.provider).expect("a profile");
                let registry = config.registry(&profile);
                let registry = registry.map_err(|error| error.to_string())?;
                Ok(registry.names().map(str::to_owned).collect::<Vec<_>>())
            });
        let expected = expected.map(|names| names.iter().map(|n| (*n).to_owned()).collect());
        assert_eq!(names, expected.map_err(str::to_owned));
    }

    #[test]
    fn tools_by_configuration() {
        check_tools(
            json!({"toolset": "native"}),
            Ok(&["Bash", "Read", "Edit", "Write"]),
        );
        check_tools(
            json!({"toolset": "native", "web_fetch_hosts": ["docs.rs"]}),
            Ok(&["Bash", "Read", "Edit", "Write", "WebFetch"]),
        );
        let run = json!([{"name": "run", "executor": "shell", "description": "",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}]);
        check_tools(json!({"tool_declarations": run}), Ok(&["run"]));
        check_tools(json!({"tool_declarations": run.to_string()}), Ok(&["run"]));
        check_tools(json!({"tool_declarations": []}), Ok(&[]));
    }

    #[test]
    fn tools_that_make_no_sense() {
        check_tools(
            json!({"tool_declarations": "[{"}),
            Err(
                "tool declarations: cut off, so not valid JSON: EOF while parsing an object at \
                 line 1 column 2",
            ),
        );
        check_tools(
            json!({"tool_declarations": [{"name": "run"}]}),
            Err("tool declarations: run: `description` is missing"),
        );
        check_tools(
            json!({"web_fetch_hosts": ["https://docs.rs"]}),
            Err(
                "invalid session configuration: `web_fetch_hosts`: `https://docs.rs` is no host to \
                 allow: give the host alone, such as docs.rs or *.python.org",
            ),
        );
    }

    #[test]
    fn an_empty_model_is_an_error() {
        let expected = "invalid session configuration: `model` is empty; name a model, or leave \
                        `model` out for the provider's default";
        for model in ["", "  "] {
            let json = json!({"model": model});
            let errors = [
                SessionConfig::from_json(&json.to_string()),
                SessionConfig::default().patched(&json),
            ];
            for error in errors {
                assert_eq!(error.expect_err("an error").message, expected);
            }
        }
        let unnamed = SessionConfig::from_json("{}").expect("a configuration");
        assert_eq!(unnamed, SessionConfig::default());
        assert!(unnamed.patched(&json!({"max_turns": 1})).is_ok());
    }

    fn check_effort(model: &str, effort: Value, expected: Result<(), &str>) {
        let config = json!({"model": model, "reasoning_effort": effort}).to_string();
        let error = SessionConfig::from_json(&config).map(drop);
        let start = "invalid session configuration: `reasoning_effort` is ";
        let expected = expected.map_err(|problem| format!("{start}{problem}"));
        assert_eq!(error.map_err(|error| error.message), expected, "{effort}");
    }

    #[test]
    fn efforts() {
        for effort in ["none", "minimal", "low", "medium", "high", "xhigh", "max"] {
            check_effort("claude-sonnet-4-5", json!(effort), Ok(()));
        }
        check_effort("claude-sonnet-4-5", json!(null), Ok(()));
        check_effort(
            "claude-sonnet-4-5",
            json!("hihg"),
            Err(
                "\"hihg\"; claude-sonnet-4-5 takes one of none, minimal, low, medium, high, \
                 xhigh, max",
            ),
        );
        check_effort("a-model-of-tomorrow", json!("ultra"), Ok(()));
    }

    fn check_provider_options(options: Value, expected: Result<(), &str>) {
        let config = json!({"provider_options": options}).to_string();
        let error = SessionConfig::from_json(&config).map(drop);
        let start = "invalid session configuration: `provider_options` ";
        let expected = expected.map_err(|problem| format!("{start}{problem}"));
        assert_eq!(error.map_err(|error| error.message), expected);
    }

    #[test]
    fn provider_options_that_make_no_sense() {
        check_provider_options(json!(null), Ok(()));
        check_provider_options(
            json!({"anthropic": {"beta_headers": ["a"]}, "openai": null, "gemini": {}}),
            Ok(()),
        );
        check_provider_options(
            json!([]),
            Err("must be an object with one entry per provider"),
        );
        check_provider_options(
            json!({"openai": 5}),
            Err("has 5 for openai; give an object with its options"),
        );
        check_provider_options(
            json!({"opnai": {}}),
            Err("has \"opnai\", which is no provider; there are anthropic, openai, gemini, chat"),
        );
        for (betas, wrong) in [
            (json!(["a", 5]), "5"),
            (json!(["a\nb"]), "\"a\\nb\""),
            (json!("a,b\r"), "\"b\\r\""),
            (json!({"a": true}), "{\"a\":true}"),
        ] {
            let expected = format!(
                "has {wrong} in `beta_headers` of anthropic; give names of betas as texts \
                 without control characters"
            );
            let options = json!({"anthropic": {"beta_headers": betas}});
            check_provider_options(options, Err(&expected));
        }
    }

    fn check_endpoint(config: Value, base_url: &str, credential: &str, options: Value) {
        let config = SessionConfig::from_json(&config.to_string()).expect("a configuration");
        let expected = Endpoint {
            options,
            ..Endpoint::new(base_url, credential)
        };
        let profile = config.profile_of(&config.provider).expect("a profile");
        assert_eq!(config.endpoint(&profile), expected);
    }

    #[test]
    fn endpoint_of_the_session() {
        check_endpoint(json!({}), "", "anthropic", Value::Null);
        let options = json!({"organization": "org-1"});
        let endpoints = json!({
            "openai": {"base_url": "http://a", "credential": "mine", "options": options},
            "gemini": {"base_url": "http://b"},
        });
        let mut config = json!({"provider": "openai", "endpoints": endpoints});
        check_endpoint(config.clone(), "http://a", "mine", options.clone());
        config["base_url"] = json!("http://c");
        config["credential"] = json!("other");
        check_endpoint(config, "http://c", "other", options);
        let mut own = json!({"provider": "acme", "profiles": {"acme": {"wire": "chat"}}});
        check_endpoint(own.clone(), "", "acme", Value::Null);
        own["endpoints"] = json!({"chat": {"base_url": "http://d"}});
        check_endpoint(own.clone(), "http://d", "chat", Value::Null);
        own["endpoints"]["acme"] = json!({"base_url": "http://e"});
        check_endpoint(own, "http://e", "acme", Value::Null);
    }

    #[test]
    fn a_wrong_value_names_its_field() {
        let check = |config: Value, expected: &str| {
            let error = SessionConfig::from_json(&config.to_string());
            let message = error.expect_err("an error").message;
            let expected = format!("invalid session configuration: {expected}");
            assert_eq!(message, expected);
            // So do those of a patch.
            let error = SessionConfig::default().patched(&config);
            assert_eq!(error.expect_err("an error").message, expected);
        };
        check(
            json!({"max_turns": -1, "user_instructions": "x"}),
            "`max_turns`: invalid value: integer `-1`, expected a whole number, 0 or more",
        );
        check(
            json!({"retry": {"max_retries": "two"}}),
            "`retry.max_retries`: invalid type: string \"two\", expected a whole number, 0 or more",
        );
        check(
            json!({"tool_output_limits": {"shell": -1}}),
            "`tool_output_limits.shell`: invalid value: integer `-1`, expected a whole number, 0 or more",
        );
        check(
            json!({"reasoning_effort": 5}),
            "`reasoning_effort`: invalid type: integer `5`, expected a string",
        );
        let error = SessionConfig::from_json(r#"{"retry": {"max": 1}}"#);
        let message = error.expect_err("an error").message;
        assert!(
            message.starts_with("invalid session configuration: unknown field `max`, expected")
        );
    }

    #[test]
    fn endpoints_that_make_no_sense() {
        let check = |endpoints: Value, expected: &str| {
            let error = SessionConfig::from_json(&json!({"endpoints": endpoints}).to_string());
            let message = error.expect_err("an error").message;
            assert_eq!(
                message,
                format!("invalid session configuration: {expected}")
            );
        };
        check(
            json!({"acme": {}}),
            "`endpoints` has \"acme\", which is no provider; there are anthropic, openai, \
             gemini, chat",
        );
        check(
            json!({"openai": {"options": []}}),
            "`options` of openai in `endpoints` must be an object",
        );
    }

    #[test]
    fn prices_that_make_no_sense() {
        let check = |prices: Value, expected: &str| {
            let json = json!({"prices": {"m": prices}}).to_string();
            let message = SessionConfig::from_json(&json)
                .expect_err("an error")
                .message;
            let start = format!("invalid session configuration: {expected}");
            assert!(message.starts_with(&start), "{message}");
        };
        check(
            json!({"input": -1, "output": 2}),
            "`prices` of m: `input` is -1; give a price of 0 or more",
        );
        let long = json!({"above_tokens": 9, "input_factor": 2, "output_factor": -0.5});
        check(
            json!({"input": 1, "output": 2, "long_prompt": long}),
            "`prices` of m: `long_prompt.output_factor` is -0.5; give",
        );
        check(json!({"input": 1}), "`prices.m`: missing field `output`");
        check(
            json!({"input": 1, "output": 2, "cached": 1}),
            "unknown field `cached`",
        );
    }

    #[test]
    fn tools_are_fixed_once_open() {
        for field in ["toolset", "tool_declarations", "web_fetch_hosts"] {
            let patch = json!({field: null});
            let error = SessionConfig::default().patched(&patch).expect_err(field);
            let message = format!(
                "`{field}` is fixed once the session is open; open a new session to change it"
            );
            assert!(error.message.contains(&message), "{}", error.message);
        }
    }
}
