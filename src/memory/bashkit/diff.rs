//! `diff` of operands that cannot be compared ends with 2, as GNU's: with 1, as
//! bashkit's ends, a script takes a missing file for a different one. Everything
//! else is bashkit's, which its stub in `/usr/bin` runs.
//!
//! Seen in bashkit 0.20.2; gone when `diff` of `tests/it/bashkit.rs` fails.

use bashkit::{
    Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait, vfs_join,
};

use super::reason;

/// Exit code of trouble.
const TROUBLE: i32 = 2;

/// `diff [OPTION]... FILE FILE`
pub(super) struct Diff;

#[async_trait]
impl Builtin for Diff {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let trouble = trouble(&ctx).await.unwrap_or_default();
        Ok(ExecResult::err(trouble, TROUBLE))
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        if trouble(ctx).await.is_some() {
            return Ok(None);
        }
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![SubCommand {
                name: "/usr/bin/diff".to_owned(),
                args: ctx.args.to_vec(),
                stdin: ctx.stdin.cloned(),
                assignments: Vec::new(),
            }],
        }))
    }
}

/// What stands in the way of a comparison, if anything does.
async fn trouble(ctx: &BuiltinContext<'_>) -> Option<String> {
    if ctx
        .args
        .iter()
        .any(|arg| arg == "--help" || arg == "--version")
    {
        return None;
    }
    let is_operand = |arg: &&String| !arg.starts_with('-') || *arg == "-";
    let operands: Vec<_> = ctx.args.iter().filter(is_operand).collect();
    match operands[..] {
        [] => return Some("diff: missing operand\n".to_owned()),
        [only] => return Some(format!("diff: missing operand after '{only}'\n")),
        [_, _] => {}
        [_, _, extra, ..] => return Some(format!("diff: extra operand '{extra}'\n")),
    }
    let mut trouble = String::new();
    for operand in operands {
        // A process substitution is no file of the tree.
        if operand == "-" || operand.starts_with("/dev/") {
            continue;
        }
        match ctx.fs.stat(&vfs_join(ctx.cwd, operand)).await {
            Ok(found) if found.file_type.is_dir() => {
                trouble += &format!(
                    "diff: {operand}: directories are not compared in the sandbox; name files\n"
                );
            }
            Ok(_) => {}
            Err(error) => trouble += &format!("diff: {operand}: {}\n", reason(&error)),
        }
    }
    (!trouble.is_empty()).then_some(trouble)
}
