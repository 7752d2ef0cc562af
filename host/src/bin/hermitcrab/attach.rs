//! `--attach`: files that the model gets with the task.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use hermitcrab::llm::{Content, Part};

use crate::failure::{Failure, reason};

/// No file that a model can have is larger, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The task with `files`, each what its bytes are: an image, a PDF document or
/// a text.
///
/// # Errors
/// One cannot be read, or no model can have it.
pub(crate) fn attached(prompt: String, files: &[PathBuf]) -> Result<Content, Failure> {
    let mut parts = vec![Part::text(prompt)];
    for path in files {
        parts.push(part(path)?);
    }
    Ok(parts.into())
}

fn part(path: &Path) -> Result<Part, Failure> {
    let shown = path.display();
    let mut data = Vec::new();
    let read = |file: File| file.take(MAX_BYTES + 1).read_to_end(&mut data);
    File::open(path).and_then(read).map_err(|error| {
        Failure::usage(format!("cannot read --attach {shown}: {}", reason(&error)))
    })?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    let part = Part::file(name.to_string_lossy(), data);
    Content::from(vec![part.clone()])
        .checked()
        .map_err(|bad| Failure::usage(format!("--attach {shown}: {}", bad.reason)))?;
    Ok(part)
}
