//! `sed`, but for loops that may pass a limit of bashkit's without a word
//! ([`SedCall`]). Everything else is bashkit's, which its stub in `/usr/bin` runs.

use bashkit::{
    Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand, async_trait, vfs_join,
};

use super::{SedCall, TROUBLE};

/// `sed [OPTION]... SCRIPT [FILE]...`
pub(in super::super) struct Sed;

#[async_trait]
impl Builtin for Sed {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let refusal = refusal(&ctx).await.unwrap_or_default();
        Ok(ExecResult::err(refusal, TROUBLE))
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        if refusal(ctx).await.is_some() {
            return Ok(None);
        }
        Ok(Some(ExecutionPlan::Batch {
            commands: vec![SubCommand {
                name: "/usr/bin/sed".to_owned(),
                args: ctx.args.to_vec(),
                stdin: ctx.stdin.cloned(),
                assignments: Vec::new(),
            }],
        }))
    }
}

/// Why the call cannot be run, if it cannot.
async fn refusal(ctx: &BuiltinContext<'_>) -> Option<String> {
    let call = SedCall::parse(ctx.args);
    let longest = call.longest()?;
    let mut text = Vec::new();
    if call.files.is_empty() {
        text.extend_from_slice(ctx.stdin_bytes().unwrap_or_default());
    }
    for file in &call.files {
        let content = ctx.fs.read_file(&vfs_join(ctx.cwd, file)).await;
        text.extend(content.unwrap_or_default());
    }
    longest.is_passed_by(&text).then(|| {
        format!(
            "hermitcrab: sed: a loop over {longest} may pass the sandbox's limit of 1,000 turns; nothing was changed, use awk\n"
        )
    })
}
