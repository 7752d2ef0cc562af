//! Provider-neutral model client: messages, requests, stream events, errors.
//!
//! Nothing here does I/O: adapters turn a request into an [`HttpRequest`] and
//! bytes into stream events; a transport outside performs the exchange.

mod adapter;
mod builder;
mod calls;
mod client;
mod content;
mod conversation;
mod endpoint;
mod error;
mod head;
mod http;
mod mcp;
mod message;
mod model;
mod names;
mod price;
mod request;
mod response;
mod retry;
mod sse;
mod stream;
mod tool;
mod warning;
mod wire;

pub(crate) use adapter::unbound;
pub use adapter::{Adapter, Encoded, adapter, adapter_names};
pub use client::{Client, EventStream, HttpResponse, Middleware, Next, Transport};
pub use content::{BadPart, Content, Part};
pub use conversation::{Conversation, MediaSum};
pub use endpoint::{Endpoint, ProviderVariables};
pub use error::{LlmError, LlmErrorKind};
pub use http::{Auth, HttpRequest, TransportError, TransportErrorKind};
pub use message::{
    ContentPart, MEDIA_CHARS, Media, MediaSource, Message, Replay, Role, ToolCall, ToolResult,
};
pub use model::{Capability, ModelInfo, ThinkingControl, latest_model, list_models, model_info};
pub use names::Names;
pub use price::{Cost, LongPrompt, Prices};
pub use request::{Request, ResponseFormat};
pub use response::{FinishKind, FinishReason, RateLimit, Response, Sampled, Usage};
pub use retry::{RetryDecision, RetryPolicy, retry_delay_ms};
pub use sse::{SseDecoder, SseItem};
pub use stream::{StreamAccumulator, StreamDecoder, StreamEvent};
pub use tool::{CustomFormat, ToolChoice, ToolDefinition};
pub use warning::Warning;
pub use wire::{Resume, Wire, WireFormat};
