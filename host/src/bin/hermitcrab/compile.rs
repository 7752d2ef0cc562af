//! `hermitcrab compile-core`, for the build: the component that `cargo xtask
//! build` makes becomes the machine code that is put into this program.

use crate::cli::CompileOptions;
use crate::failure::{Code, Failure};

/// Compiles one component.
pub(crate) fn compile(options: &CompileOptions) -> Result<Code, Failure> {
    Err(Failure::failed(format!(
        "this build cannot compile {} to {}",
        options.input.display(),
        options.output.display()
    )))
}
