//! `write_file` (spec 3.3): creates or replaces a whole file.

use async_trait::async_trait;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, required};
use super::{CallContext, Declared, ToolError, ToolOutput};

pub(super) const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text),
    required("content", Kind::Text),
];

/// Writes files.
pub(super) struct WriteFile;

#[derive(Deserialize)]
pub(super) struct Arguments {
    file_path: String,
    content: String,
}

#[async_trait(?Send)]
impl Executor for WriteFile {
    type Arguments = Arguments;

    const KIND: &'static str = "write_file";

    fn writes(&self, arguments: &Arguments) -> Vec<String> {
        vec![arguments.file_path.clone()]
    }

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let Arguments { file_path, content } = arguments;
        if file_path.is_empty() {
            let name = declared.named("file_path");
            return Err(ToolError::new(format!(
                "{name} is empty; name the file to write"
            )));
        }
        let absolute = call.environment.absolute(&file_path);
        let _turn = call.files.lock(&call.environment, [absolute]).await;
        let existed = call.environment.exists(&file_path).await?;
        let bytes = content.len();
        call.environment.write(&file_path, content).await?;
        let verb = if existed { "Replaced" } else { "Created" };
        Ok(ToolOutput::text(format!(
            "{verb} {file_path} ({bytes} bytes written)"
        )))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::testing::run;

    fn check(files: &[(&str, &[u8])], path: &str, content: &str, expected: &str) {
        let arguments = json!({"file_path": path, "content": content});
        let (executed, tree) = run(files, "write_file", arguments);
        assert_eq!(executed.full, expected);
        let written = tree.content(path);
        let expected = (!executed.is_error).then_some(content.as_bytes());
        assert_eq!(written.as_deref(), expected);
    }

    #[test]
    fn files() {
        check(
            &[],
            "a/b/c.txt",
            "grün\n",
            "Created a/b/c.txt (6 bytes written)",
        );
        check(&[("a", b"x")], "a", "", "Replaced a (0 bytes written)");
        check(&[], "/tmp/x", "\r\n", "Created /tmp/x (2 bytes written)");
        check(
            &[("a/b", b"")],
            "a",
            "x",
            "Tool error (write_file): is a directory: a",
        );
        let (executed, _) = run(&[], "write_file", json!({"file_path": "", "content": "x"}));
        assert_eq!(
            executed.full,
            "Tool error (write_file): file_path is empty; name the file to write"
        );
    }
}
