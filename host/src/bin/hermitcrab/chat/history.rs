//! What a person has sent in earlier sessions, so that `↑` finds it.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use hermitcrab_host::state_dir;
use tempfile::NamedTempFile;

/// Texts that are kept.
const MAX_TEXTS: usize = 500;
/// Bytes of a text that is kept.
const MAX_BYTES: usize = 8 << 10;

fn file() -> Option<PathBuf> {
    Some(state_dir()?.join("history.jsonl"))
}

/// What is kept, oldest first. What cannot be read is left out.
pub(super) fn read() -> Vec<String> {
    let text = file().and_then(|file| fs::read_to_string(file).ok());
    let lines = text.as_deref().unwrap_or_default().lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

/// Keeps `text`. It is private to the user, as the file's directory is.
///
/// # Errors
/// There is no place for it.
pub(super) fn add(text: &str) -> io::Result<()> {
    let Some(file) = file() else { return Ok(()) };
    if text.len() > MAX_BYTES {
        return Ok(());
    }
    let mut all = read();
    all.retain(|one| one != text);
    all.push(text.to_owned());
    let over = all.len().saturating_sub(MAX_TEXTS);
    let directory = file.parent().ok_or(io::ErrorKind::NotFound)?;
    fs::create_dir_all(directory)?;
    let mut temporary = NamedTempFile::new_in(directory)?;
    for text in &all[over..] {
        serde_json::to_writer(&mut temporary, text)?;
        temporary.write_all(b"\n")?;
    }
    temporary.persist(file)?;
    Ok(())
}
