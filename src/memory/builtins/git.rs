//! `git`, which the sandbox does not have.
//!
//! bashkit's keeps a format of its own in `.git` (it would damage a real
//! repository), never looks whether a file changed, invents its diffs and
//! ignores most options, all with exit code 0. A model that believes it loses
//! work, so every call fails with a sentence.

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};

/// Exit code of a command that does not exist.
const NOT_FOUND: i32 = 127;

/// Says that there is no git.
pub(super) struct Git;

#[async_trait]
impl Builtin for Git {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let call = ctx.args.first().map_or("", String::as_str);
        Ok(ExecResult::err(
            format!(
                "git: the sandbox has no git, so 'git {call}' did nothing; compare files with diff, keep copies with cp\n"
            ),
            NOT_FOUND,
        ))
    }
}
