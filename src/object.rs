//! Answers that are a JSON value of a given form, for models without a session.

use serde_json::Value;

use crate::llm::{LlmError, LlmErrorKind, Request, Response, ResponseFormat};
use crate::tool::Schema;

/// The form of an answer.
#[derive(Clone, Debug)]
pub struct ObjectForm {
    schema: Value,
    checked: Schema,
}

impl ObjectForm {
    /// The form that the JSON Schema `schema` describes.
    ///
    /// # Errors
    /// [`LlmErrorKind::InvalidRequest`] for a schema that cannot be checked.
    pub fn new(schema: &Value) -> Result<Self, LlmError> {
        let checked = Schema::compile(schema).map_err(|error| {
            let message = format!("the schema of the object: {error}");
            LlmError::new(LlmErrorKind::InvalidRequest, "", message)
        })?;
        Ok(Self {
            schema: schema.clone(),
            checked,
        })
    }

    /// `request`, asking for an answer of this form.
    pub fn asked(&self, request: Request) -> Request {
        Request {
            response_format: ResponseFormat::JsonSchema {
                schema: self.schema.clone(),
                strict: false,
            },
            ..request
        }
    }

    /// The value that `response` holds; the provider may have ignored the form.
    ///
    /// # Errors
    /// [`LlmErrorKind::NoObjectGenerated`] where it does not follow the schema.
    pub fn value(&self, response: &Response) -> Result<Value, LlmError> {
        let missing =
            |why: String| LlmError::new(LlmErrorKind::NoObjectGenerated, &response.provider, why);
        let value: Value = serde_json::from_str(unfenced(&response.text()))
            .map_err(|error| missing(format!("the answer is not JSON: {error}")))?;
        self.checked
            .validate(&value, "the answer")
            .map_err(|problems| missing(problems.join("; ")))?;
        Ok(value)
    }
}
/// `text` without the code fence around all of it, which many models add.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix("```").and_then(|text| {
        let (language, text) = text.split_once('\n')?;
        let text = text.strip_suffix("```")?;
        (language.trim().is_empty() || language.trim() == "json").then_some(text)
    });
    inner.unwrap_or(text)
}
