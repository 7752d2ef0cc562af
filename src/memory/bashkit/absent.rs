//! Programs that the sandbox does not have, where bashkit has something by
//! their name that would mislead: each call fails with a sentence.
//!
//! Seen in bashkit 0.20.2; gone when `absent` of `tests/it/bashkit.rs` fails.

use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, BuiltinRegistry, ExecResult, async_trait};

/// Exit code of a command that does not exist.
const NOT_FOUND: i32 = 127;

/// bashkit's git keeps another format in `.git` (it would damage a real
/// repository), never looks whether a file changed, invents its diffs and
/// ignores most options, all with exit code 0. A model that believes it loses
/// work.
const GIT: &str = "compare files with diff, keep copies with cp";

/// bashkit's network programs speak of how they could be compiled in, and its
/// `http` ends with exit code 0.
const NETWORK: &str = "there is no network; work with the files that are here";

const ABSENT: [(&str, &str); 7] = [
    ("curl", NETWORK),
    ("git", GIT),
    ("http", NETWORK),
    ("scp", NETWORK),
    ("sftp", NETWORK),
    ("ssh", NETWORK),
    ("wget", NETWORK),
];

/// Says that a program is not there.
struct Absent {
    name: &'static str,
    instead: &'static str,
}

pub(super) fn register(registry: &BuiltinRegistry) {
    for (name, instead) in ABSENT {
        registry.insert_trusted(name, Arc::new(Absent { name, instead }));
    }
}

#[async_trait]
impl Builtin for Absent {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let Self { name, instead } = self;
        let call = ctx.args.first().map_or("", String::as_str);
        Ok(ExecResult::err(
            format!(
                "{name}: the sandbox has no {name}, so '{name} {call}' did nothing; {instead}\n"
            ),
            NOT_FOUND,
        ))
    }
}
