//! The directory in which the host keeps what outlives a run.

use std::env;
use std::path::PathBuf;

/// Names the directory, if it is set.
pub const STATE_DIR: &str = "HERMITCRAB_STATE_DIR";

/// `$HERMITCRAB_STATE_DIR`; else `hermitcrab` in the directory that the platform has for
/// state: `$XDG_STATE_HOME` or `~/.local/state`, on macOS `~/Library/Application Support`,
/// on Windows `%LOCALAPPDATA%`. None: the user has no home directory.
pub fn state_dir() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(named) = set(STATE_DIR) {
        return Some(PathBuf::from(named));
    }
    let home = || set("HOME").map(PathBuf::from);
    let base = if cfg!(windows) {
        PathBuf::from(set("LOCALAPPDATA")?)
    } else if cfg!(target_os = "macos") {
        home()?.join("Library/Application Support")
    } else {
        let named = set("XDG_STATE_HOME").map(PathBuf::from);
        // The specification of these directories ignores relative paths.
        match named.filter(|path| path.is_absolute()) {
            Some(path) => path,
            None => home()?.join(".local/state"),
        }
    };
    Some(base.join("hermitcrab"))
}
