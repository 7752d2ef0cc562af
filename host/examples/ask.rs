//! Asks a model without a session and prints what arrives, one event a line, as
//! JSON.
//!
//!     cargo run --release --workspace --example ask -- chat http://127.0.0.1:8080 MODEL "What is a crab?"
//!
//! The key is in `MODEL_KEY`; a server on this machine mostly needs none.

use std::error::Error;

use hermitcrab::llm::{Request, StreamEvent};
use hermitcrab_host::ModelClient;

/// Output tokens at most: enough to see an answer.
const MAX_TOKENS: u64 = 64;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [provider, base_url, model, prompt] = arguments.as_slice() else {
        return Err("give a provider, a base URL, a model and a prompt".into());
    };
    let key = std::env::var("MODEL_KEY").unwrap_or_else(|_| "no-key".to_owned());
    let models = ModelClient::connect(provider, &key, Some(base_url))?;
    let request = Request {
        max_tokens: Some(MAX_TOKENS),
        ..Request::prompt(model, prompt)
    };
    let mut events = models.stream(request).await?;
    while let Some(event) = events.next_event().await {
        println!("{}", serde_json::to_string(&event)?);
        if let StreamEvent::Error { error, .. } = event {
            return Err(error.into());
        }
    }
    Ok(())
}
