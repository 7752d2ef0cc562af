//! `hermitcrab compile-core`, for the build: the component that `cargo xtask
//! build` makes becomes the machine code that is put into this program.

use crate::cli::CompileOptions;
use crate::failure::{Code, Failure};

/// Compiles one component.
///
/// # Errors
/// A file that cannot be read or written, or that is no core.
pub(crate) fn compile(options: &CompileOptions) -> Result<Code, Failure> {
    hermitcrab_host::compile_core(&options.input, &options.output)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(Code::DONE)
}
