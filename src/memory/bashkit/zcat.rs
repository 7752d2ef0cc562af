//! `zcat`, which bashkit lacks: `gzip -dc` under another name.
//!
//! Seen in bashkit 0.20.2; gone when `zcat` of `tests/it/bashkit.rs` fails.

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait};

/// `zcat [FILE]...`
pub(super) struct Zcat;

#[async_trait]
impl Builtin for Zcat {
    async fn execute(&self, _ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        // Only where a plan cannot be followed.
        Ok(ExecResult::err(
            "zcat: cannot be called from here; use gzip -dc\n",
            1,
        ))
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let flags = ["-d".to_owned(), "-c".to_owned()];
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![SubCommand {
                name: "gzip".to_owned(),
                args: flags.into_iter().chain(ctx.args.iter().cloned()).collect(),
                stdin: ctx.stdin.cloned(),
                assignments: Vec::new(),
            }],
        }))
    }
}
