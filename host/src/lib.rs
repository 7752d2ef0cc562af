//! The native host of the Hermitcrab core.

mod credential;
mod environment;
mod http;
mod local;
pub mod serve_model;

pub use credential::{CredentialError, Credentials};
pub use environment::{ExecIo, HostEnvironment, OutputWriter};
pub use http::{HttpTransport, OutcomeSink};
pub use local::{EnvPolicy, LocalBuilder, LocalEnvironment};
pub use tokio_util::sync::CancellationToken;
