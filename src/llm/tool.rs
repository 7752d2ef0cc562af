//! Tool definitions and tool choice, as every provider needs them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool that the model may call (spec 3.8).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    /// `[A-Za-z][A-Za-z0-9_]{0,63}`.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments; the root is an object.
    pub parameters: Value,
    /// Freeform input instead of JSON arguments, where the provider has it.
    /// Elsewhere the model calls a JSON function with one string field: the
    /// only property of `parameters` if that is a string, else `input`. Either
    /// way the call arrives as text, see [`ToolCall::custom`](super::ToolCall::custom).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomFormat>,
    /// Ask the provider to enforce the schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
    /// Calls are not checked against `parameters` before they reach the tool,
    /// which does so itself; the schema may then use keywords that the core
    /// does not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
}

/// Format of a freeform tool's input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CustomFormat {
    /// Any text.
    Text,
    /// Text of a grammar.
    Grammar {
        /// `lark` or `regex`.
        syntax: String,
        /// The grammar.
        definition: String,
    },
}

/// Which tools the model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// No tool.
    None,
    /// Some tool.
    Required,
    /// This tool.
    Named(String),
}
