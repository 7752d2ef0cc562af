//! `apply_patch` (spec 3.4, appendix A): adds, deletes, changes and moves files
//! as one patch says, all of it or nothing.
//!
//! The way of a patch: [`parse`] reads it, `plan` applies it in memory to what
//! the files hold, `commit` writes the result and takes it back if it cannot.
//!
//! Where the appendix is silent the tool does what codex 0.169 does, which
//! `tests/peers/apply-patch.mjs` compares. It differs on purpose:
//!
//! | | here | codex |
//! |---|---|---|
//! | a patch that fails | changes nothing | leaves what came before the failure |
//! | a path that leaves the working directory, also by a symbolic link | refused | written |
//! | two names of one file | refused | changed twice |
//! | several `@@` lines before a hunk | nest | refused |
//! | a hunk of only added lines under a `@@` line | goes behind that line | goes to the end of the file |
//! | a `@@` line that is also the first old line | is found | is refused |
//! | a byte-order mark | overlooked and kept | its line is not found |
//! | a missing newline at the end of a file | stays missing | is added |
//! | a file that is deleted or added over, and changed since it was read | refused | done |
//! | a move to the same path | an update | deletes the file |
//! | `*** End of File` after one surplus empty line | pins to the end | is forgotten |
//! | a heredoc with `apply_patch` or another word than `EOF` | tolerated | refused |
//! | `*** Environment ID:` | refused | chooses where to work |

mod patch;

mod parser;

mod seek;

mod apply;

mod plan;

mod commit;

pub use apply::apply;
pub use parser::parse;
pub use patch::{Action, Anchor, FilePatch, Hunk, HunkLine, Patch, PatchError};

use std::rc::Rc;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::executor::{Executor, Presented};
use super::mapping::{Kind, Parameter, required};
use super::{CallContext, Declared, Tool, ToolError, ToolOutput};
use crate::llm::{CustomFormat, ToolDefinition};

pub(super) const PARAMETERS: &[Parameter] = &[required("patch", Kind::Text)];

/// Applies patches.
pub struct ApplyPatch(());

impl ApplyPatch {
    /// The patch format as a Lark grammar, for a model that writes freeform input.
    pub const GRAMMAR: &str = include_str!("grammar.lark");

    /// The tool as `definition` presents it, outside of any profile.
    pub fn tool(definition: ToolDefinition) -> Rc<dyn Tool> {
        Rc::new(Presented::new(definition, Self::executor()))
    }

    pub(super) fn executor() -> Self {
        Self(())
    }

    /// The format of freeform input: put it into `definition.custom` and the
    /// model writes the bare patch instead of JSON.
    pub fn freeform() -> CustomFormat {
        CustomFormat::Grammar {
            syntax: "lark".to_owned(),
            definition: Self::GRAMMAR.to_owned(),
        }
    }
}

/// The patch, read.
#[derive(Deserialize)]
#[serde(from = "Text")]
pub(super) struct Arguments {
    patch: Result<Patch, PatchError>,
}

/// The patch, under the name of spec 3.4 or that of a freeform tool.
#[derive(Deserialize)]
struct Text {
    #[serde(alias = "input")]
    patch: String,
}

impl From<Text> for Arguments {
    fn from(text: Text) -> Self {
        Self {
            patch: parse(&text.patch),
        }
    }
}

#[async_trait(?Send)]
impl Executor for ApplyPatch {
    type Arguments = Arguments;

    const KIND: &'static str = "apply_patch";

    fn writes(&self, arguments: &Arguments) -> Vec<String> {
        let paths = arguments.patch.iter().flat_map(Patch::paths);
        paths.map(str::to_owned).collect()
    }

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let patch = arguments.patch?;
        let paths = plan::paths(&call.environment, &patch)?;
        let _turn = call.files.lock(&call.environment, paths).await;
        let links = plan::links(&call.environment, &patch).await?;
        let plan = plan::plan(&call.environment, declared, &patch, links).await?;
        plan.refuse_unseen(call, &patch)?;
        let summary = plan.summary();
        let after: Vec<(String, Bytes)> = plan.after().collect();
        commit::commit(call, plan).await?;
        for (path, content) in after {
            call.known.note(&path, content);
        }
        Ok(ToolOutput::bounded(summary, call.max_captured_bytes))
    }
}

impl From<PatchError> for ToolError {
    fn from(error: PatchError) -> Self {
        Self::new(error.to_string())
    }
}
