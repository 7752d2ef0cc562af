//! Profiles as a host defines or changes them: data of a session's settings
//! (spec 1.3, 2.1, 3.2).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Declarations, Profile, PromptLayer, check_options, template};
use crate::llm::adapter;
use crate::tool::{Offers, Registry};

/// A profile of the host's, or what it changes of a built-in one: what is left
/// out is as in the built-in profile of the same id, else as in that of `wire`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileSettings {
    /// Adapter that encodes requests and reads answers: `anthropic`, `openai`,
    /// `gemini` or `chat`; may be left out where a built-in profile is changed.
    pub wire: Option<String>,
    /// What people call the provider; a new profile that says nothing is called
    /// by its id.
    pub display_name: Option<String>,
    /// Model used when the session names none.
    pub default_model: Option<String>,
    /// Tokens that fit its models, input and output together.
    pub context_window: Option<u64>,
    /// Names of the project documents that its models read, relative to every
    /// directory from the repository's root down; none: an empty list.
    pub documents: Option<Vec<String>>,
    /// By layer of the system prompt: a text in its place, or null to leave it
    /// out. `docs/toolsets.md` describes the texts.
    pub prompt: BTreeMap<PromptLayer, Option<String>>,
    /// Tools in place of the built-in ones, in both toolsets: declarations as
    /// `docs/toolsets.md` describes them, or their JSON text.
    pub tool_declarations: Option<Value>,
    /// Time limit of a command whose call names none, in ms.
    pub command_timeout_ms: Option<u64>,
    /// Characters of a tool's output that the model gets, by tool; those of the
    /// session win.
    pub tool_output_limits: BTreeMap<String, u64>,
    /// Lines of a tool's output that the model gets, by tool; null: no limit.
    pub tool_line_limits: BTreeMap<String, Option<u64>>,
    /// Whether one answer may hold several tool calls, for models that the
    /// catalogue does not know.
    pub parallel_tool_calls: Option<bool>,
    /// Whether models that the catalogue does not know reason.
    pub reasoning: Option<bool>,
    /// Options by adapter, over those of the built-in profile.
    pub provider_options: Value,
}

impl Profile {
    /// The profile of `provider` where a host has defined or changed those in
    /// `settings`, or what is wrong with its entry; `None`: there is none.
    pub fn defined(
        provider: &str,
        settings: &BTreeMap<String, ProfileSettings>,
    ) -> Result<Option<Arc<Self>>, String> {
        match settings.get(provider) {
            None => Ok(Self::of(provider)),
            Some(own) => own.profile(provider).map(Arc::new).map(Some),
        }
    }
}

impl ProfileSettings {
    /// The profile `id` that they make; the error names the field.
    fn profile(&self, id: &str) -> Result<Profile, String> {
        self.check(id)?;
        let wire = match (&self.wire, Profile::of(id)) {
            (Some(wire), _) => wire.as_str(),
            (None, Some(built_in)) => built_in.wire,
            (None, None) => {
                return Err(format!(
                    "`wire` is missing; {id} is no built-in profile, so name the adapter that it \
                     speaks: {}",
                    Profile::names().join(", ")
                ));
            }
        };
        let of_wire = Profile::of(wire).zip(adapter(wire));
        let (of_wire, adapter) = of_wire.ok_or_else(|| {
            let known = Profile::names().join(", ");
            format!("`wire` is {wire:?}, which is no adapter; there are {known}")
        })?;
        let base = Profile::of(id).unwrap_or(of_wire);
        let mut profile = Profile {
            id: id.to_owned(),
            wire: adapter.name(),
            ..(*base).clone()
        };
        if Profile::of(id).is_none() {
            profile.display_name = id.to_owned();
            // A name of the provider's own models means nothing to another server.
            profile.default_model = String::new();
        }
        self.change(&mut profile);
        Ok(profile)
    }

    fn change(&self, profile: &mut Profile) {
        if let Some(name) = &self.display_name {
            profile.display_name.clone_from(name);
        }
        if let Some(model) = &self.default_model {
            profile.default_model.clone_from(model);
        }
        if let Some(documents) = &self.documents {
            profile.documents.clone_from(documents);
        }
        if let Some(limit) = self.command_timeout_ms {
            profile.command_timeout_ms.spec = limit;
            profile.command_timeout_ms.native = limit;
        }
        if let Some(json) = self.declarations() {
            profile.spec = Declarations::Own(json.into());
            profile.native = profile.spec.clone();
        }
        profile.own_context_window = self.context_window;
        profile.prompt.clone_from(&self.prompt);
        profile
            .tool_output_limits
            .clone_from(&self.tool_output_limits);
        profile.tool_line_limits.clone_from(&self.tool_line_limits);
        profile.parallel_tool_calls = self
            .parallel_tool_calls
            .unwrap_or(profile.parallel_tool_calls);
        profile.reasoning = self.reasoning.unwrap_or(profile.reasoning);
        if let Value::Object(options) = profile.provider_options(&self.provider_options) {
            profile.provider_options = options;
        }
    }

    fn declarations(&self) -> Option<String> {
        match self.tool_declarations.as_ref()? {
            Value::Null => None,
            Value::String(json) => Some(json.clone()),
            list => Some(list.to_string()),
        }
    }

    fn check(&self, id: &str) -> Result<(), String> {
        let is_id = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if id.is_empty() || !id.chars().all(is_id) {
            return Err(format!(
                "{id:?} cannot be an id: give letters, digits, `-`, `_` and `.`"
            ));
        }
        if self.context_window == Some(0) {
            return Err("`context_window` must be at least 1".to_owned());
        }
        if self.command_timeout_ms == Some(0) {
            return Err("`command_timeout_ms` must be at least 1".to_owned());
        }
        for name in self.documents.iter().flatten() {
            let odd =
                name.is_empty() || name.starts_with('/') || name.split('/').any(|p| p == "..");
            if odd {
                return Err(format!(
                    "`documents` has {name:?}; give names such as NOTES.md or .agent/notes.md"
                ));
            }
        }
        for (layer, text) in &self.prompt {
            let problem = text.as_deref().map_or(Ok(()), template::check);
            problem.map_err(|problem| format!("`prompt.{}`: {problem}", layer.name()))?;
        }
        if let Some(json) = self.declarations() {
            Registry::offered(&json, &Offers::default())
                .map_err(|error| format!("`tool_declarations`: {error}"))?;
        }
        check_options(&self.provider_options)
            .map_err(|problem| format!("`provider_options` {problem}"))
    }
}
