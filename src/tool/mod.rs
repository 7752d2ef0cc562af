//! Tools: the trait, the registry, the pipeline that runs a call, and one file
//! per tool. A tool never talks to a model and never touches the outside
//! except through the environment and the effects that it is given.

mod definition;
mod host;
mod limit;
mod pipeline;
mod registry;
mod schema;

pub use definition::{CallContext, Progress, Timeouts, Tool, ToolError, ToolOutput};
pub use host::HostTool;
pub use limit::OutputLimits;
pub use pipeline::{ApprovalPolicy, Executed, Pipeline, PipelineEvents};
pub use registry::{RegisterError, Registry};
pub use schema::{Schema, SchemaError};
