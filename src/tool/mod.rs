//! Tools: the trait, the registry, the pipeline that runs a call, and one file
//! per tool. A tool never talks to a model and never touches the outside
//! except through the environment and the effects that it is given.

pub mod approval;
mod core;
mod definition;
mod host;
mod limit;
mod lock;
mod pipeline;
mod registry;
mod schema;

#[cfg(test)]
mod testing;

mod edit_file;
mod glob;
mod grep;
mod read_file;
mod shell;
mod write_file;

pub use definition::{CallContext, Progress, Timeouts, Tool, ToolError, ToolOutput};
pub use host::HostTool;
pub use limit::OutputLimits;
pub use lock::{FileGuard, FileLocks};
pub use pipeline::{Executed, Pipeline, PipelineEvents};
pub use registry::{RegisterError, Registry};
pub use schema::{Schema, SchemaError};

pub use edit_file::EditFile;
pub use glob::Glob;
pub use grep::Grep;
pub use read_file::ReadFile;
pub use shell::Shell;
pub use write_file::WriteFile;

/// Largest file that tools read: 50 MB.
const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;

/// Parses validated arguments into a tool's own type.
pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    arguments: serde_json::Value,
) -> Result<T, ToolError> {
    // A profile may declare other types than the executor knows.
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(format!("invalid arguments: {error}")))
}
