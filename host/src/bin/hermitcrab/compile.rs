//! For the build: `hermitcrab prepare-core` and `hermitcrab compile-core`. What
//! `cargo xtask build` has made of the core becomes a component that starts
//! with its tables read, and then the machine code that is put into this
//! program.

use crate::cli::CoreOptions;
use crate::failure::{Code, Failure};

/// Prepares one component.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub(crate) fn prepare(options: &CoreOptions) -> Result<Code, Failure> {
    hermitcrab_host::prepare_core(&options.input, &options.output)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Code::DONE)
}

/// Compiles one component.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub(crate) fn compile(options: &CoreOptions) -> Result<Code, Failure> {
    hermitcrab_host::compile_core(&options.input, &options.output)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Code::DONE)
}
