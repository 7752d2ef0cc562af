//! `read_file` (spec 3.3): text with line numbers, or an image.

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::{CallContext, MAX_FILE_BYTES, Tool, ToolError, ToolOutput, parse};
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind};
use crate::llm::{Media, MediaSource, ToolDefinition};
use crate::text::{
    LineEnding, TextFormat, check_image, decode_text, named_as_image, near_names, number_lines,
    sniff_image,
};

/// Lines read when the call sets no limit (spec 3.3).
const DEFAULT_LIMIT: u64 = 2000;

/// Names suggested for a file that does not exist.
const SUGGESTIONS: usize = 3;

/// Reads files.
#[derive(Clone, Debug)]
pub struct ReadFile {
    definition: ToolDefinition,
}

impl ReadFile {
    /// Presents itself as `definition` says.
    pub fn new(definition: ToolDefinition) -> Self {
        Self { definition }
    }
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

#[async_trait(?Send)]
impl Tool for ReadFile {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn kind(&self) -> &str {
        "read_file"
    }

    async fn execute(&self, call: &CallContext, arguments: Value) -> Result<ToolOutput, ToolError> {
        let arguments: Arguments = parse(arguments)?;
        let path = &arguments.file_path;
        let content = read_existing(&call.environment, path).await?;
        if named_as_image(path) || sniff_image(&content).is_some() {
            return image(path, content);
        }
        let text = decode_text(&content)
            .map_err(|reason| ToolError::new(format!("cannot show {path} as text: {reason}")))?;
        Ok(ToolOutput::bounded(
            numbered(&arguments, text)?,
            call.max_captured_bytes,
        ))
    }
}

fn image(path: &str, content: Bytes) -> Result<ToolOutput, ToolError> {
    let media_type =
        check_image(&content).map_err(|reason| ToolError::new(format!("{path}: {reason}")))?;
    let text = format!("Image {path} ({media_type}, {} bytes)", content.len());
    Ok(ToolOutput {
        media: vec![Media {
            source: MediaSource::Data(content),
            media_type: media_type.to_owned(),
            detail: None,
            file_name: None,
        }],
        ..ToolOutput::text(text)
    })
}

fn numbered(arguments: &Arguments, text: &str) -> Result<String, ToolError> {
    let path = &arguments.file_path;
    let format = TextFormat::detect(text);
    let text = TextFormat::strip_bom(text);
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let offset = index(arguments.offset.unwrap_or(1)).max(1);
    let limit = index(arguments.limit.unwrap_or(DEFAULT_LIMIT));
    let lines = number_lines(text, offset, limit);
    if lines.total == 0 {
        return Ok(format!("[{path} is empty]"));
    }
    if offset > lines.total {
        return Err(ToolError::new(format!(
            "offset {offset} is past the end of {path}, which has {} lines",
            lines.total
        )));
    }
    let mut shown = lines.text;
    if lines.last < lines.total {
        shown.push_str(&format!(
            "\n\n[lines {offset} to {} of {}; read on with offset {}]",
            lines.last,
            lines.total,
            lines.last.max(offset - 1) + 1
        ));
    }
    if format.ending == LineEnding::Crlf {
        shown.push_str("\n\n[lines end with CRLF]");
    }
    Ok(shown)
}

/// Content of a file; a file that does not exist is answered with names that
/// may be meant.
pub(super) async fn read_existing(
    environment: &Environment,
    path: &str,
) -> Result<Bytes, ToolError> {
    match environment.read(path, MAX_FILE_BYTES).await {
        Ok(content) => Ok(content),
        Err(error) => Err(explain(environment, path, error).await),
    }
}

async fn explain(environment: &Environment, path: &str, error: EnvironmentError) -> ToolError {
    match error.kind {
        EnvironmentErrorKind::NotFound => ToolError::new(format!(
            "file not found: {path}{}",
            hint(environment, path).await
        )),
        EnvironmentErrorKind::IsDirectory => {
            ToolError::new(format!("{path} is a directory; list it with glob or shell"))
        }
        EnvironmentErrorKind::TooLarge => ToolError::new(format!(
            "{path} is larger than {MAX_FILE_BYTES} bytes; look at parts of it with grep or shell"
        )),
        _ => error.into(),
    }
}

async fn hint(environment: &Environment, path: &str) -> String {
    let absolute = environment.absolute(path);
    let (parent, name) = match absolute.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => return String::new(),
    };
    match environment.list(parent, 1).await {
        Ok(listing) => {
            let names = listing.entries.iter().map(|entry| entry.path.as_str());
            let near = near_names(name, names, SUGGESTIONS);
            if near.is_empty() {
                String::new()
            } else {
                let shown = path.strip_suffix(name).unwrap_or("");
                let near: Vec<_> = near.iter().map(|near| format!("{shown}{near}")).collect();
                format!("; did you mean {}?", near.join(" or "))
            }
        }
        Err(error) if error.kind == EnvironmentErrorKind::NotFound => {
            format!("; directory {parent} does not exist either")
        }
        Err(_) => String::new(),
    }
}
