//! The final answer as a JSON value: asked for in the system prompt, checked, and asked
//! for again where it has another form.

use serde_json::Value;

use super::state::Shared;
use crate::llm::{Content, LlmError, LlmErrorKind, Response};
use crate::object::ObjectForm;

/// How often the model is asked again.
const MAX_CORRECTIONS: u32 = 2;

/// What becomes of an answer without tool calls.
pub(super) enum Final {
    /// It ends the input, with its value where one was asked for.
    Done(Option<Value>),
    /// The model reads this and answers once more.
    Again(Content),
    /// It had its chances.
    Failed(LlmError),
}

/// Judges the answer of an input that was corrected `corrections` times.
pub(super) fn judge(session: &Shared, response: &Response, corrections: u32) -> Final {
    let config = session.config.borrow();
    let Some(schema) = &config.output_schema else {
        return Final::Done(None);
    };
    let problem = match ObjectForm::new(schema).and_then(|form| form.value(response)) {
        Ok(value) => return Final::Done(Some(value)),
        Err(problem) => problem.message,
    };
    if corrections < MAX_CORRECTIONS {
        let message = format!(
            "Your final answer is not the JSON value that was asked for: {problem}. Answer with \
             the JSON value alone."
        );
        return Final::Again(message.as_str().into());
    }
    let message = format!(
        "the final answer does not follow `output_schema`, after {corrections} corrections: \
         {problem}"
    );
    Final::Failed(LlmError::new(
        LlmErrorKind::NoObjectGenerated,
        &session.profile.id,
        message,
    ))
}
