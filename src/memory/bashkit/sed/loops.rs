//! Whether what a call works on is too long for its loops ([`SedCall`]).

use bashkit::{BuiltinContext, vfs_join};

use super::SedCall;

/// Why a call cannot be run, if it cannot.
pub(in super::super) async fn refusal_of_loops(ctx: &BuiltinContext<'_>) -> Option<String> {
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
