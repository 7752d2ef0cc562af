//! Models without a session: one request, one answer, and what may succeed
//! later is tried again.

use async_trait::async_trait;
use serde_json::Value;

use crate::llm::{
    Client, LlmError, LlmErrorKind, Request, Response, ResponseFormat, RetryDecision, RetryPolicy,
    retry_delay_ms,
};
use crate::tool::Schema;

/// What waiting needs of the host: the core has no clock and no entropy.
#[async_trait(?Send)]
pub trait Clock {
    /// Returns after `ms` milliseconds.
    async fn sleep(&self, ms: u64);

    /// Ms since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;

    /// A random number in 0..1.
    fn random_unit(&self) -> f64;
}

/// The answer to `request`, whole.
///
/// # Errors
/// Those of the provider and of the connection, after the tries of `retry`.
pub async fn generate(
    client: &Client,
    retry: &RetryPolicy,
    clock: &dyn Clock,
    request: Request,
) -> Result<Response, LlmError> {
    let mut attempt = 0;
    loop {
        let error = match client.complete(request.clone()).await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        let decision = retry_delay_ms(retry, attempt, &error, clock.random_unit(), clock.now_ms());
        let RetryDecision::Retry { delay_ms } = decision else {
            return Err(error);
        };
        clock.sleep(delay_ms).await;
        attempt += 1;
    }
}

/// A JSON value that follows `schema`, and the answer that it came in. The
/// provider is asked for that form, and the value is checked here.
///
/// # Errors
/// Those of [`generate`]; [`LlmErrorKind::InvalidRequest`] for a schema that
/// cannot be checked; [`LlmErrorKind::NoObjectGenerated`] for an answer that
/// does not follow it, which is not tried again.
pub async fn generate_object(
    client: &Client,
    retry: &RetryPolicy,
    clock: &dyn Clock,
    mut request: Request,
    schema: &Value,
) -> Result<(Value, Response), LlmError> {
    let checked = Schema::compile(schema).map_err(|error| {
        let message = format!("the schema of the object: {error}");
        LlmError::new(LlmErrorKind::InvalidRequest, "", message)
    })?;
    request.response_format = ResponseFormat::JsonSchema {
        schema: schema.clone(),
        strict: false,
    };
    let response = generate(client, retry, clock, request).await?;
    let missing =
        |why: String| LlmError::new(LlmErrorKind::NoObjectGenerated, &response.provider, why);
    let value: Value = serde_json::from_str(&response.text())
        .map_err(|error| missing(format!("the answer is not JSON: {error}")))?;
    checked
        .validate(&value, "the answer")
        .map_err(|problems| missing(problems.join("; ")))?;
    Ok((value, response))
}
