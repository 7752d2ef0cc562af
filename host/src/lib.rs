//! The native host of the Hermitcrab core: runs the sealed component under
//! wasmtime, performs its effects with tokio, and offers sessions as a Rust API.
//!
//! Start with [`Host`].

mod approval;
mod cache;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod checkpoint;
mod component_core;
mod core;
mod credential;
mod driver;
mod embedded;
mod environment;
mod error;
pub mod eval;
mod event;
mod fork;
mod host;
mod http;
mod instance;
mod job;
mod journal;
mod keys;
mod local;
pub mod log;
mod memory;
mod model_client;
mod native_core;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub mod overlay;
mod pipe;
mod program;
mod remote;
mod resume;
pub mod serve_model;
mod session;
mod state_dir;
pub mod store;
mod tool;
pub mod trajectory;
pub mod tree;

pub use approval::{ApprovalFn, ApprovalRequest};
pub use component_core::{ComponentCore, CoreLimits, LoadedCore};
pub use core::{
    CallResult, CommandPolicy, Core, CoreEffect, CoreError, CoreEvent, CoreFailure, CoreReport,
    CoreStep,
};
pub use credential::{CredentialError, Credentials};
pub use driver::{Progress, ToolEnvironment, ToolFn, ToolInvocation};
pub use environment::{ExecIo, HostEnvironment, OutputWriter};
pub use error::{HostError, reason};
pub use event::Event;
pub use fork::{Continuation, Fork, ForkError, ForkOptions};
pub use hermitcrab::memory::EndReason;
pub use hermitcrab::session::AgentInfo;
pub use host::{Host, HostBuilder, InstanceOptions};
pub use http::{HttpPerformer, HttpTransport, OutcomeSink};
pub use instance::Instance;
pub use keys::without_secrets;
pub use local::{EnvPolicy, Guardian, LocalBuilder, LocalEnvironment, Sandbox, looks_secret};
pub use memory::{EnvironmentChoice, EnvironmentHandle, ExecOutput, MemoryOptions, Snapshot};
pub use model_client::ModelClient;
pub use native_core::NativeCore;
pub use program::{ProgramCall, ProgramFn, Python, PythonBuilder, WasiCommand};
pub use remote::{Remote, RemoteEnvironment};
pub use session::{Controller, Session, SessionOptions, TakeoverOptions};
pub use state_dir::{STATE_DIR, state_dir};
pub use tokio_util::sync::CancellationToken;
pub use tool::HostTool;

pub use hermitcrab::effect::{Approval, HostToolResult};
pub use hermitcrab::llm::ToolDefinition;
pub use hermitcrab::llm::{Content, Part};
pub use hermitcrab::session::{AgentCall, AgentStatus, SessionConfig, SessionRecord, Turn};
