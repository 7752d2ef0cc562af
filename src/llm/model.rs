//! The model catalogue: advice about known models, from `models.json`.
//!
//! Unknown ids pass through with the adapter's defaults; nothing here forbids
//! a model (LLM-client brief §1). The file lists the newest models first, one a
//! line: an entry is read when somebody asks for it, because reading all of them
//! was a large part of starting a session.

use std::sync::{LazyLock, OnceLock};

use serde::{Deserialize, Serialize};

use super::price::{LongPrompt, Prices};
use crate::text::from_json;

static MODELS: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let lines = include_str!("models.json").lines();
    let entries = lines.filter_map(|line| {
        let json = line.trim().trim_end_matches(',');
        json.starts_with('{').then(|| Entry {
            json,
            model: OnceLock::new(),
        })
    });
    entries.collect()
});

/// One line of the file.
struct Entry {
    json: &'static str,
    model: OnceLock<Option<ModelInfo>>,
}

impl Entry {
    fn model(&self) -> Option<&ModelInfo> {
        // A test checks that every line parses; without it there is no advice.
        let read = || from_json(self.json).ok();
        self.model.get_or_init(read).as_ref()
    }

    /// Whether `id` is its id, the first field.
    fn is(&self, id: &str) -> bool {
        let rest = self.json.strip_prefix("{\"id\": \"");
        let rest = rest.and_then(|rest| rest.strip_prefix(id));
        rest.is_some_and(|rest| rest.starts_with('"'))
    }
}

fn models() -> impl Iterator<Item = &'static ModelInfo> {
    MODELS.iter().filter_map(Entry::model)
}

/// What is known about a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelInfo {
    /// Id on the wire.
    pub id: String,
    /// Provider that serves it.
    pub provider: String,
    /// Name for people.
    pub display_name: String,
    /// When its knowledge ends, such as `2026-01`, if published.
    #[serde(default)]
    pub knowledge_cutoff: Option<String>,
    /// Tokens that fit, input and output together.
    pub context_window: u64,
    /// Most output tokens of one answer.
    pub max_output: Option<u64>,
    /// Output tokens to ask for when the caller does not say.
    pub default_max_tokens: Option<u64>,
    /// Whether it calls tools.
    pub supports_tools: bool,
    /// Whether it sees images.
    pub supports_vision: bool,
    /// Whether it reasons.
    pub supports_reasoning: bool,
    /// Whether one answer may hold several tool calls.
    #[serde(default = "yes")]
    pub parallel_tool_calls: bool,
    /// US dollars per million input tokens.
    pub input_cost: Option<f64>,
    /// US dollars per million output tokens.
    pub output_cost: Option<f64>,
    /// US dollars per million input tokens that come from the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_cost: Option<f64>,
    /// US dollars per million input tokens that are written to the prompt cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_cost: Option<f64>,
    /// What a long prompt changes in the price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_prompt: Option<LongPrompt>,
    /// Other names.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Accepted values of a `thinking.type` field.
    #[serde(default)]
    pub thinking_types: Vec<String>,
    /// Whether it reasons when nothing is asked for.
    #[serde(default)]
    pub thinks_by_default: bool,
    /// Accepted effort levels, ascending.
    #[serde(default)]
    pub effort_levels: Vec<String>,
    /// How reasoning is measured out.
    pub thinking_control: Option<ThinkingControl>,
    /// Whether it takes temperature and the like.
    pub sampling_params: bool,
    /// Whether a tool choice may force a call.
    pub forced_tool_choice: bool,
    /// Whether system messages may stand among the others.
    pub system_in_messages: bool,
    /// Whether a tool result may carry images.
    pub tool_result_media: bool,
}

fn yes() -> bool {
    true
}

impl ModelInfo {
    /// The accepted effort levels, ascending.
    pub(crate) fn levels(&self) -> Vec<&str> {
        self.effort_levels.iter().map(String::as_str).collect()
    }
}

impl Prices {
    /// What the catalogue knows; `None` where it lacks a price of input or output.
    pub fn of(model: &ModelInfo) -> Option<Self> {
        Some(Self {
            input: model.input_cost?,
            output: model.output_cost?,
            cache_read: model.cache_read_cost,
            cache_write: model.cache_write_cost,
            long_prompt: model.long_prompt.clone(),
        })
    }
}

/// How reasoning is measured out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingControl {
    /// By a named level.
    Level,
    /// By a number of tokens.
    Budget,
}

/// What a model can do, for [`latest_model`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Calls tools.
    Tools,
    /// Sees images.
    Vision,
    /// Reasons.
    Reasoning,
}

/// What is known about `id`: by id, by alias, or by the id without the date of
/// a snapshot (`-20251001`, `@20251001`, `-2025-12-11`) and without `models/`.
pub fn model_info(id: &str) -> Option<&'static ModelInfo> {
    let exact = |id: &str| {
        let by_id = MODELS.iter().find(|entry| entry.is(id));
        by_id.and_then(Entry::model).or_else(|| {
            let named = MODELS.iter().filter(|entry| entry.json.contains(id));
            let mut named = named.filter_map(Entry::model);
            named.find(|model| model.aliases.iter().any(|alias| alias == id))
        })
    };
    let id = id.strip_prefix("models/").unwrap_or(id);
    exact(id).or_else(|| exact(without_date(id)?))
}

/// `id` without the date of a snapshot; `None` when there is none.
fn without_date(id: &str) -> Option<&str> {
    let digits = |text: &str, count: usize| {
        text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let (head, last) = id.rsplit_once(['-', '@'])?;
    if digits(last, 8) {
        return Some(head);
    }
    let (head, month) = head.rsplit_once('-')?;
    let (head, year) = head.rsplit_once('-')?;
    (digits(last, 2) && digits(month, 2) && digits(year, 4)).then_some(head)
}

/// Known models of `provider`, or of all, newest first.
pub fn list_models(provider: Option<&str>) -> Vec<&'static ModelInfo> {
    models()
        .filter(|model| provider.is_none_or(|provider| model.provider == provider))
        .collect()
}

/// The newest known model of `provider` that has `capability`.
pub fn latest_model(provider: &str, capability: Option<Capability>) -> Option<&'static ModelInfo> {
    models().find(|model| {
        model.provider == provider
            && match capability {
                None => true,
                Some(Capability::Tools) => model.supports_tools,
                Some(Capability::Vision) => model.supports_vision,
                Some(Capability::Reasoning) => model.supports_reasoning,
            }
    })
}
