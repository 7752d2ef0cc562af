//! Provider-neutral model client: messages, requests, stream events, errors.
//!
//! Nothing here does I/O: adapters turn a request into an [`HttpRequest`] and
//! bytes into stream events; a transport outside performs the exchange.

mod http;
mod message;
mod tool;

pub use http::{Auth, HttpRequest, TransportError, TransportErrorKind};
pub use message::{ContentPart, Media, MediaSource, Message, Replay, Role, ToolCall, ToolResult};
pub use tool::{CustomFormat, ToolChoice, ToolDefinition};
