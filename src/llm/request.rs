//! What one model call asks for (LLM-client brief §2).

use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::conversation::Conversation;
use super::message::{Message, Role};
use super::tool::{ToolChoice, ToolDefinition};

/// One model call. Cheap to clone: tools and conversation are shared.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name under which the client knows the provider; `None` for its default.
    pub provider: Option<String>,
    /// Model id, passed through as given.
    pub model: String,
    /// System text, one block per entry, in order.
    pub system: Vec<String>,
    /// Tools the model may call.
    pub tools: Rc<[Rc<ToolDefinition>]>,
    /// Which of them it may or must call.
    pub tool_choice: ToolChoice,
    /// Everything said so far.
    pub conversation: Conversation,
    /// Limit of output tokens; `None` takes the model catalogue's.
    pub max_tokens: Option<u64>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Texts at which the model stops.
    pub stop_sequences: Vec<String>,
    /// `none`, `minimal`, `low`, `medium`, `high`, `xhigh` or `max`.
    pub reasoning_effort: Option<String>,
    /// `Some(false)` allows one tool call per answer.
    pub parallel_tool_calls: Option<bool>,
    /// Form of the answer's text.
    pub response_format: ResponseFormat,
    /// Labels for the provider's books, such as `user_id`.
    pub metadata: BTreeMap<String, String>,
    /// Options that only one provider knows, by the name of its adapter or the
    /// name under which the client knows it: `{"openai": {…}, "gemini": {…}}`.
    /// Merged into the body last, first those of the adapter, then those of
    /// the provider: objects merge into objects unless their `type` differs,
    /// `null` takes a field out, everything else replaces. The module of an adapter names the keys that
    /// are not fields of the body, and those that it keeps for itself. Other
    /// adapters ignore it.
    pub provider_options: Value,
    /// Key of the provider's prompt cache, stable per session.
    pub cache_key: Option<String>,
    /// Whether the adapter places cache breakpoints itself.
    pub auto_cache: bool,
}

impl Request {
    /// A request with everything optional left out and caching on.
    pub fn new(model: impl Into<String>, conversation: Conversation) -> Self {
        Self {
            provider: None,
            model: model.into(),
            system: Vec::new(),
            tools: Rc::new([]),
            tool_choice: ToolChoice::Auto,
            conversation,
            max_tokens: None,
            temperature: None,
            top_p: None,
            stop_sequences: Vec::new(),
            reasoning_effort: None,
            parallel_tool_calls: None,
            response_format: ResponseFormat::Text,
            metadata: BTreeMap::new(),
            provider_options: Value::Null,
            cache_key: None,
            auto_cache: true,
        }
    }

    /// A request of one message of the user's.
    pub fn prompt(model: impl Into<String>, text: impl Into<String>) -> Self {
        let mut conversation = Conversation::new();
        conversation.push(Message::text(Role::User, text));
        Self::new(model, conversation)
    }

    /// The options of `provider`, if they are an object with that key.
    pub fn options(&self, provider: &str) -> Option<&serde_json::Map<String, Value>> {
        self.provider_options.get(provider)?.as_object()
    }
}

/// Form of the answer's text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponseFormat {
    /// Free text.
    #[default]
    Text,
    /// Some JSON value.
    Json,
    /// JSON that follows a schema.
    JsonSchema {
        /// JSON Schema of the answer.
        schema: Value,
        /// Ask the provider to enforce it.
        strict: bool,
    },
}
