//! `diff` as a builtin: what it reads, and what it could not.

use std::fmt::Write as _;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, vfs_join};

use super::{TROUBLE, compare, parse};
use crate::memory::bashkit::{bytes, reason};

/// `diff [OPTION]... FILE FILE`
pub(in crate::memory::bashkit) struct Diff;

#[async_trait]
impl Builtin for Diff {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let call = match parse(ctx.args) {
            Ok(call) => call,
            Err(message) => {
                let help = "diff: Try 'diff --help' for more information.";
                return Ok(ExecResult::err(
                    format!("diff: {message}\n{help}\n"),
                    TROUBLE,
                ));
            }
        };
        let mut sides = Vec::new();
        let mut trouble = String::new();
        for name in &call.files {
            if name == "-" {
                sides.push(ctx.stdin_bytes().unwrap_or_default().to_vec());
                continue;
            }
            let path = vfs_join(ctx.cwd, name);
            let is_dir = ctx.fs.stat(&path).await;
            if is_dir.is_ok_and(|found| found.file_type.is_dir()) {
                let _ = writeln!(
                    trouble,
                    "diff: {name}: directories are not compared in the sandbox; name files"
                );
                continue;
            }
            match ctx.fs.read_file(&path).await {
                Ok(content) => sides.push(content),
                Err(error) => match reason(&error).as_str() {
                    "No such file or directory" if call.absent_is_empty => sides.push(Vec::new()),
                    reason => {
                        let _ = writeln!(trouble, "diff: {name}: {reason}");
                    }
                },
            }
        }
        let [old, new] = &sides[..] else {
            return Ok(ExecResult::err(trouble, TROUBLE));
        };
        let (text, code) = compare(&call, old, new);
        let mut result = ExecResult::ok_bytes(bytes::to_bytes(text.as_bytes()).into_owned());
        result.exit_code = code;
        Ok(result)
    }
}
