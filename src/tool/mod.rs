//! Tools: the trait, the registry, the pipeline that runs a call, and one file
//! per tool. A tool never talks to a model and never touches the outside
//! except through the environment and the effects that it is given.

pub mod approval;
mod core;
mod declaration;
mod definition;
mod executor;
mod gate;
mod host;
mod limit;
mod lock;
mod mapping;
mod pipeline;
mod registry;
mod schema;
mod vocabulary;

#[cfg(test)]
pub(crate) mod testing;

pub mod apply_patch;
mod background;
mod edit_file;
mod glob;
mod grep;
mod list_dir;
mod read_file;
mod read_many_files;
mod shell;
mod web_fetch;
mod write_file;

pub use background::BackgroundCommands;
pub use core::Offers;
pub(crate) use declaration::Declared;
pub use definition::{CallContext, CommandLine, Timeouts, Tool};
pub(crate) use definition::{Invocation, ToolError, ToolOutput};
pub(crate) use gate::Gate;
pub use host::HostTool;
pub use limit::OutputLimits;
pub use lock::FileLocks;
mod known_files;
pub use known_files::KnownFiles;
pub use pipeline::{Executed, Pipeline, PipelineEvents};
pub(crate) use registry::RegisterError;
pub use registry::Registry;
pub(crate) use registry::compile;
pub use schema::Schema;
pub(crate) use schema::SchemaError;
pub(crate) use vocabulary::Vocabulary;

pub use apply_patch::ApplyPatch;
pub(crate) use web_fetch::HostList;

/// Largest file that tools read: 50 MB.
const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;
