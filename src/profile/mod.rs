//! Profiles: provider-aligned behaviour as data (spec 3.1 to 3.6).
//!
//! A profile is a folder and one line in the table below. It never talks to a
//! provider; adapters do. In the folder:
//!
//! | file | |
//! |---|---|
//! | `profile.json` | defaults and capabilities |
//! | `system.md` | base instructions in our own words; `template.rs` says how they name tools |
//! | `tools.spec.json` | tools under the names of spec 3.4 to 3.6 |
//! | `tools.native.json` | tools as the provider's own agent advertises them |
//!
//! Both lists are declarations as [`crate::tool::Registry::declared`] reads
//! them, and run on the same executors. `docs/toolsets.md` lists them. Hosts
//! define and change profiles with the same data: `settings.rs`.

mod prompt;
mod settings;
mod template;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::llm::{adapter_names, model_info};
use crate::text::from_json;
use crate::tool::{Offers, RegisterError, Registry, Vocabulary};

pub use prompt::{Document, GitSnapshot, ProjectFacts};
pub(crate) use prompt::{EnvironmentFacts, Layers, git_branch};
pub(crate) use settings::ProfileSettings;

/// Which names tools have in requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    /// Those of spec 3.4 to 3.6.
    #[default]
    Spec,
    /// Those of the provider's own agent.
    Native,
}

/// A part of the system prompt (spec 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptLayer {
    /// Base instructions.
    Base,
    /// Facts of the environment.
    Environment,
    /// State of the git repository.
    Git,
    /// The list of tools.
    Tools,
    /// Project documents.
    Documents,
    /// The user's own instructions.
    User,
}

impl PromptLayer {
    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Environment => "environment",
            Self::Git => "git",
            Self::Tools => "tools",
            Self::Documents => "documents",
            Self::User => "user",
        }
    }
}

/// What the loop needs to know about a provider's models and habits.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Provider id: `anthropic`.
    pub id: String,
    /// What people call the provider: `Anthropic`.
    pub display_name: String,
    /// Adapter that speaks to the provider: `anthropic`.
    pub wire: &'static str,
    /// Model used when the configuration names none; empty where there is no
    /// sensible one.
    pub default_model: String,
    /// Names of the project documents that its models read (spec 6.5).
    pub documents: Vec<String>,
    command_timeout_ms: CommandTimeouts,
    parallel_tool_calls: bool,
    reasoning: bool,
    context_window: u64,
    provider_options: Map<String, Value>,
    system: &'static str,
    spec: Declarations,
    native: Declarations,
    /// What a host has put in place of parts of the system prompt.
    prompt: BTreeMap<PromptLayer, Option<String>>,
    /// Characters of a tool's output that the model gets, by tool.
    pub tool_output_limits: BTreeMap<String, u64>,
    /// Lines of a tool's output that the model gets, by tool.
    pub tool_line_limits: BTreeMap<String, Option<u64>>,
    /// Tokens that fit, as a host says.
    own_context_window: Option<u64>,
}

/// Tool declarations: JSON in the format of [`Registry::declared`].
#[derive(Clone, Debug)]
enum Declarations {
    /// Of a built-in profile: read once.
    BuiltIn(&'static str),
    /// Of a host.
    Own(Arc<str>),
}

/// What a model can do (spec 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it reasons.
    pub reasoning: bool,
    /// Whether answers are streamed; every adapter streams.
    pub streaming: bool,
    /// Whether one answer may hold several tool calls, which then run at the
    /// same time.
    pub parallel_tool_calls: bool,
    /// Tokens that fit, input and output together.
    pub context_window: u64,
    /// Whether `context_window` is the model's own; otherwise it is a guess.
    pub context_window_known: bool,
}

/// `profile.json`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    display_name: String,
    default_model: String,
    documents: Vec<String>,
    command_timeout_ms: CommandTimeouts,
    /// Of models that the catalogue does not know.
    parallel_tool_calls: bool,
    /// Of models that the catalogue does not know.
    reasoning: bool,
    /// Of models that the catalogue does not know: a guess, rather too small.
    context_window: u64,
    provider_options: Map<String, Value>,
}

/// Time limit of a command whose call names none, in ms. A toolset without a
/// parameter for it needs a generous one.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandTimeouts {
    spec: u64,
    native: u64,
}

macro_rules! folder {
    ($id:literal) => {
        Profile::load(
            $id,
            include_str!(concat!($id, "/profile.json")),
            include_str!(concat!($id, "/system.md")),
            include_str!(concat!($id, "/tools.spec.json")),
            include_str!(concat!($id, "/tools.native.json")),
        )
    };
}

/// The profiles. A test loads them all; one that cannot be read is not there.
static PROFILES: LazyLock<Vec<Arc<Profile>>> = LazyLock::new(|| {
    let all = [
        folder!("anthropic"),
        folder!("openai"),
        folder!("gemini"),
        folder!("chat"),
    ];
    all.into_iter().flatten().map(Arc::new).collect()
});

impl Profile {
    fn load(
        id: &'static str,
        file: &str,
        system: &'static str,
        spec: &'static str,
        native: &'static str,
    ) -> Option<Self> {
        let file: File = from_json(file).ok()?;
        Some(Self {
            id: id.to_owned(),
            display_name: file.display_name,
            wire: id,
            default_model: file.default_model,
            documents: file.documents,
            command_timeout_ms: file.command_timeout_ms,
            parallel_tool_calls: file.parallel_tool_calls,
            reasoning: file.reasoning,
            context_window: file.context_window,
            provider_options: file.provider_options,
            system,
            spec: Declarations::BuiltIn(spec),
            native: Declarations::BuiltIn(native),
            prompt: BTreeMap::new(),
            tool_output_limits: BTreeMap::new(),
            tool_line_limits: BTreeMap::new(),
            own_context_window: None,
        })
    }

    /// The built-in profile of `provider`, if there is one.
    pub fn of(provider: &str) -> Option<Arc<Self>> {
        let mut profiles = PROFILES.iter();
        profiles.find(|profile| profile.id == provider).cloned()
    }

    /// Ids of the built-in profiles, in order.
    pub fn names() -> Vec<&'static str> {
        PROFILES.iter().map(|profile| profile.wire).collect()
    }

    /// Base instructions: layer 1 of the system prompt (spec 6.2), with the
    /// names that the tools have in `vocabulary`.
    pub fn base_instructions(&self, vocabulary: &Vocabulary) -> String {
        template::resolve(self.system, vocabulary, None)
    }

    /// What stands in the place of `layer`, whose own text is `text`.
    pub(crate) fn layer(
        &self,
        layer: PromptLayer,
        text: Option<String>,
        vocabulary: &Vocabulary,
    ) -> Option<String> {
        match self.prompt.get(&layer) {
            None => text,
            Some(None) => None,
            Some(Some(own)) => {
                let own = template::resolve(own, vocabulary, text.as_deref());
                Some(own.trim_end().to_owned()).filter(|own| !own.is_empty())
            }
        }
    }

    /// The tools of `toolset`, as far as they are on offer.
    pub fn registry(
        &self,
        toolset: Toolset,
        offers: &Offers<'_>,
    ) -> Result<Registry, RegisterError> {
        let declarations = match toolset {
            Toolset::Spec => &self.spec,
            Toolset::Native => &self.native,
        };
        match declarations {
            Declarations::BuiltIn(json) => Registry::built_in(json, offers),
            Declarations::Own(json) => Registry::offered(json, offers),
        }
    }

    /// Time limit of a command whose call names none, in ms (spec 5.4).
    pub fn default_command_timeout_ms(&self, toolset: Toolset) -> u64 {
        match toolset {
            Toolset::Spec => self.command_timeout_ms.spec,
            Toolset::Native => self.command_timeout_ms.native,
        }
    }

    /// What `model` can do: from the model catalogue, else what models of the
    /// provider usually can.
    pub fn capabilities(&self, model: &str) -> Capabilities {
        let known = model_info(model);
        let window = self.own_context_window;
        let window = window.or(known.map(|known| known.context_window));
        Capabilities {
            reasoning: known.map_or(self.reasoning, |known| known.supports_reasoning),
            streaming: true,
            parallel_tool_calls: known
                .map_or(self.parallel_tool_calls, |known| known.parallel_tool_calls),
            context_window: window.unwrap_or(self.context_window),
            context_window_known: window.is_some(),
        }
    }

    /// `options` of a session over the profile's own: per provider an object,
    /// in which the session's entries replace the profile's (spec 3.2), except
    /// that `beta_headers` add up: a session asks for one beta more, and the
    /// profile's prompts rely on its own. An entry of `null` is left to the
    /// adapter, which leaves it out.
    pub fn provider_options(&self, options: &Value) -> Value {
        let mut merged = self.provider_options.clone();
        for (provider, given) in options.as_object().into_iter().flatten() {
            match (merged.get_mut(provider), given) {
                (Some(Value::Object(own)), Value::Object(given)) => {
                    for (key, value) in given {
                        let value = match own.get(key) {
                            Some(known) if key == BETAS && !value.is_null() => {
                                let mut betas = beta_names(known);
                                betas.extend(beta_names(value));
                                Value::from(betas)
                            }
                            _ => value.clone(),
                        };
                        own.insert(key.clone(), value);
                    }
                }
                _ => {
                    merged.insert(provider.clone(), given.clone());
                }
            }
        }
        if merged.is_empty() {
            return Value::Null;
        }
        Value::Object(merged)
    }
}

/// Option with names of betas: a list, or one text with commas.
const BETAS: &str = "beta_headers";

fn beta_names(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(names) => names.clone(),
        Value::String(names) => names.split(',').map(Value::from).collect(),
        other => vec![other.clone()],
    }
}

/// What is wrong with the `provider_options` of a session.
pub(crate) fn check_options(options: &Value) -> Result<(), String> {
    let providers = match options {
        Value::Null => return Ok(()),
        Value::Object(providers) => providers,
        _ => return Err("must be an object with one entry per provider".to_owned()),
    };
    for (provider, options) in providers {
        if !adapter_names().any(|known| known == provider) {
            let known = Profile::names().join(", ");
            return Err(format!(
                "has {provider:?}, which is no provider; there are {known}"
            ));
        }
        if !(options.is_null() || options.is_object()) {
            return Err(format!(
                "has {options} for {provider}; give an object with its options"
            ));
        }
        let betas = options.get(BETAS).filter(|betas| !betas.is_null());
        for name in betas.map(beta_names).into_iter().flatten() {
            let is_header = |name: &str| !name.chars().any(char::is_control);
            if !name.as_str().is_some_and(is_header) {
                return Err(format!(
                    "has {name} in `{BETAS}` of {provider}; give names of betas as texts without \
                     control characters"
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
