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
use serde::Deserialize;
use serde_json::Value;

use super::mapping::{Kind, Parameter, required};
use super::{CallContext, Declared, Tool, ToolError, ToolOutput};
use crate::llm::{CustomFormat, ToolDefinition};

pub(super) const PARAMETERS: &[Parameter] = &[required("patch", Kind::Text)];

/// Applies patches.
#[derive(Clone, Debug)]
pub struct ApplyPatch {
    declared: Declared,
}

impl ApplyPatch {
    /// The patch format as a Lark grammar, for a model that writes freeform input.
    pub const GRAMMAR: &str = include_str!("grammar.lark");

    /// Presents itself as declared.
    pub fn new(declared: impl Into<Declared>) -> Self {
        Self {
            declared: declared.into(),
        }
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

/// The patch, under the name of spec 3.4 or that of a freeform tool.
#[derive(Deserialize)]
struct Arguments {
    #[serde(alias = "input")]
    patch: String,
}

#[async_trait(?Send)]
impl Tool for ApplyPatch {
    fn definition(&self) -> &Rc<ToolDefinition> {
        self.declared.definition()
    }

    fn kind(&self) -> &str {
        "apply_patch"
    }

    fn writes(&self, arguments: &Value) -> Vec<String> {
        let patch = self.declared.parse::<Arguments>(arguments.clone());
        let patch = patch.ok().and_then(|call| parse(&call.patch).ok());
        let files = patch.map(|patch| patch.files).unwrap_or_default();
        let paths = files.into_iter().flat_map(|file| {
            let target = match file.action {
                Action::Update { move_to, .. } => move_to,
                Action::Add { .. } | Action::Delete => None,
            };
            [Some(file.path), target]
        });
        paths.flatten().collect()
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let text = match arguments {
            Value::String(text) => text,
            arguments => self.declared.parse::<Arguments>(arguments)?.patch,
        };
        let patch = parse(&text)?;
        let paths = plan::paths(&call.environment, &patch)?;
        let _turn = call.files.lock(&call.environment, paths).await;
        let links = plan::links(&call.environment, &patch).await?;
        let plan = plan::plan(&call.environment, &self.declared, &patch, links).await?;
        let summary = plan.summary();
        commit::commit(call, plan).await?;
        Ok(ToolOutput::bounded(summary, call.max_captured_bytes))
    }
}

impl From<PatchError> for ToolError {
    fn from(error: PatchError) -> Self {
        Self::new(error.to_string())
    }
}
