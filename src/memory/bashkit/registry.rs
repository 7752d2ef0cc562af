//! The builtins of ours in place of bashkit's.

use std::sync::Arc;

use bashkit::BuiltinRegistry;

use super::{
    absent, checked, diff, gzip, head, ls, mktemp, seq, shuf, sleep, stat, tar, tee, timeout, yes,
};

/// Puts every builtin of ours in `registry`.
pub(in crate::memory) fn register(registry: &BuiltinRegistry) {
    registry.insert_trusted("seq", Arc::new(seq::Seq));
    registry.insert_trusted("shuf", Arc::new(shuf::Shuf));
    absent::register(registry);
    checked::register(registry);
    head::register(registry);
    registry.insert_trusted("diff", Arc::new(diff::Diff));
    registry.insert_trusted("tee", Arc::new(tee::Tee));
    registry.insert_trusted("mktemp", Arc::new(mktemp::Mktemp));
    registry.insert_trusted("stat", Arc::new(stat::Stat));
    registry.insert_command("yes", yes::Yes);
    registry.insert_trusted("ls", Arc::new(ls::Ls));
    registry.insert_trusted("dir", Arc::new(ls::Ls));
    registry.insert_trusted("tar", Arc::new(tar::Tar));
    for name in ["gzip", "gunzip", "zcat"] {
        registry.insert_trusted(name, Arc::new(gzip::Gzip { name }));
    }
    registry.insert_trusted("sleep", Arc::new(sleep::Sleep));
    registry.insert_trusted("timeout", Arc::new(timeout::Timeout));
    checked::register_paths(registry);
}

/// Why a file operation failed, in the words of `strerror`.
pub(super) fn reason(error: &bashkit::Error) -> String {
    let bashkit::Error::Io(error) = error else {
        return error.to_string();
    };
    match error.kind() {
        std::io::ErrorKind::NotFound => "No such file or directory".to_owned(),
        std::io::ErrorKind::NotADirectory => "Not a directory".to_owned(),
        std::io::ErrorKind::AlreadyExists => "File exists".to_owned(),
        _ => match error.to_string().as_str() {
            "is a directory" => "Is a directory".to_owned(),
            "not a directory" => "Not a directory".to_owned(),
            other => other.to_owned(),
        },
    }
}
