//! `read_file` (spec 3.3): text with line numbers, or an image.

mod large;

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::{CallContext, Declared, MAX_FILE_BYTES, ToolError, ToolOutput};
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind};
use crate::llm::{Media, MediaSource};
use crate::text::{
    Encoding, LineEnding, TextFormat, check_image, decode_file, named_as_image, near_names,
    number_from, number_lines, sniff_image,
};

/// Lines read when the call sets no limit (spec 3.3).
const DEFAULT_LIMIT: u64 = 2000;

/// Names suggested for a file that does not exist.
const SUGGESTIONS: usize = 3;

pub(super) const PARAMETERS: &[Parameter] = &[
    required("file_path", Kind::Text),
    optional("offset", Kind::Count),
    optional("limit", Kind::Count),
    optional("end_line", Kind::Count),
];

pub(super) const IMAGE_PARAMETERS: &[Parameter] = &[required("file_path", Kind::Text)];

/// Reads files.
pub(super) struct ReadFile {
    /// Refuses what is not an image.
    pub(super) images_only: bool,
}

/// Lines count from 1; `end_line` is the last one.
#[derive(Deserialize)]
pub(super) struct Arguments {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    end_line: Option<u64>,
}

#[async_trait(?Send)]
impl Executor for ReadFile {
    type Arguments = Arguments;

    const KIND: &'static str = "read_file";

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        let path = &arguments.file_path;
        if path.is_empty() {
            let name = declared.named("file_path");
            return Err(ToolError::new(format!(
                "{name} is empty; name the file to read"
            )));
        }
        let environment = &call.environment;
        let content = match environment.read(path, MAX_FILE_BYTES).await {
            Ok(content) => content,
            Err(error) if error.kind == EnvironmentErrorKind::TooLarge && self.reads_text(path) => {
                return read_large(declared, call, &arguments, error).await;
            }
            Err(error) => return Err(explain(environment, declared, path, error).await),
        };
        call.known
            .note(&environment.absolute(path), content.clone());
        if self.images_only || named_as_image(path) || sniff_image(&content).is_some() {
            return image(path, content);
        }
        let (text, encoding) = decode_file(&content)
            .map_err(|reason| ToolError::new(format!("cannot show {path} as text: {reason}")))?;
        Ok(ToolOutput::bounded(
            numbered(&arguments, &text, encoding, declared)?,
            call.max_captured_bytes,
        ))
    }
}

impl ReadFile {
    fn reads_text(&self, path: &str) -> bool {
        !self.images_only && !named_as_image(path)
    }
}

/// Lines of a file that cannot be held, for which `too_large` was the answer.
async fn read_large(
    declared: &Declared,
    call: &CallContext,
    arguments: &Arguments,
    too_large: EnvironmentError,
) -> Result<ToolOutput, ToolError> {
    let (environment, path) = (&call.environment, &arguments.file_path);
    let (first, limit) = window(arguments, declared)?;
    let max_bytes = call.max_captured_bytes;
    let stretch = match large::lines(environment, path, first, limit, max_bytes).await {
        Ok(stretch) => stretch,
        Err(error) if error.kind == EnvironmentErrorKind::Unsupported => {
            return Err(explain(environment, declared, path, too_large).await);
        }
        Err(error) => return Err(error.into()),
    };
    if stretch.bytes.is_empty() && limit > 0 {
        return Err(past_the_end(path, first, stretch.seen, declared));
    }
    let (text, encoding) = decode_file(&stretch.bytes)
        .map_err(|reason| ToolError::new(format!("cannot show {path} as text: {reason}")))?;
    let last = stretch.seen.max(first);
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let lines = TextFormat::strip_bom(&text).lines();
    let mut shown = number_from(lines, index(first), index(last));
    let hint = match declared.shown("offset", last + 1) {
        Some(offset) => format!("; read on with {offset}"),
        None => String::new(),
    };
    shown += &match stretch.end {
        large::End::File => format!("\n\n[lines {first} to {last} of {last}]"),
        large::End::Line => format!("\n\n[lines {first} to {last}; more follow{hint}]"),
        large::End::Bytes => {
            format!("\n\n[lines {first} to {last}, the last one cut; more follow{hint}]")
        }
    };
    if let Some(note) = encoding.note() {
        shown = shown + "\n\n" + &note;
    }
    Ok(ToolOutput::bounded(shown, call.max_captured_bytes))
}

/// The image at `path`, or why it cannot be shown.
pub(super) fn image(path: &str, content: Bytes) -> Result<ToolOutput, ToolError> {
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

fn numbered(
    arguments: &Arguments,
    text: &str,
    encoding: Encoding,
    declared: &Declared,
) -> Result<String, ToolError> {
    let path = &arguments.file_path;
    let format = TextFormat::detect(text);
    let text = TextFormat::strip_bom(text);
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (offset, limit) = window(arguments, declared)?;
    let lines = number_lines(text, index(offset), index(limit));
    if lines.total == 0 {
        return Ok(format!("[{path} is empty]"));
    }
    if index(offset) > lines.total {
        return Err(past_the_end(path, offset, lines.total as u64, declared));
    }
    let mut text_shown = lines.text;
    if lines.last < lines.total {
        let next = lines.last.max(index(offset) - 1) + 1;
        let hint = match declared.shown("offset", next as u64) {
            Some(offset) => format!("; read on with {offset}"),
            None => String::new(),
        };
        text_shown.push_str(&format!(
            "\n\n[lines {offset} to {} of {}{hint}]",
            lines.last, lines.total
        ));
    }
    if format.ending == LineEnding::Crlf {
        text_shown.push_str("\n\n[lines end with CRLF]");
    }
    if let Some(note) = encoding.note() {
        text_shown = text_shown + "\n\n" + &note;
    }
    Ok(text_shown)
}

/// The first line to read, and how many lines at most.
fn window(arguments: &Arguments, declared: &Declared) -> Result<(u64, u64), ToolError> {
    let offset = arguments.offset.unwrap_or(1).max(1);
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT);
    match arguments.end_line {
        Some(end) if end < offset => Err(ToolError::new(format!(
            "{} is before the first line to read, {offset}",
            shown(declared, "end_line", end)
        ))),
        Some(end) => Ok((offset, limit.min((end - offset).saturating_add(1)))),
        None => Ok((offset, limit)),
    }
}

fn past_the_end(path: &str, offset: u64, total: u64, declared: &Declared) -> ToolError {
    ToolError::new(format!(
        "{} is past the end of {path}, which has {total} lines",
        shown(declared, "offset", offset)
    ))
}

fn shown(declared: &Declared, parameter: &str, line: u64) -> String {
    let shown = declared.shown(parameter, line);
    shown.unwrap_or_else(|| format!("line {line}"))
}

/// Content of a file; a file that does not exist is answered with names that
/// may be meant.
pub(super) async fn read_existing(
    environment: &Environment,
    declared: &Declared,
    path: &str,
) -> Result<Bytes, ToolError> {
    match environment.read(path, MAX_FILE_BYTES).await {
        Ok(content) => Ok(content),
        Err(error) => Err(explain(environment, declared, path, error).await),
    }
}

async fn explain(
    environment: &Environment,
    declared: &Declared,
    path: &str,
    error: EnvironmentError,
) -> ToolError {
    let way_out = |what: &str, executors: &[&str]| match declared.others(executors) {
        Some(others) => format!("; {what} with {others}"),
        None => String::new(),
    };
    match error.kind {
        EnvironmentErrorKind::NotFound => ToolError::new(format!(
            "file not found: {path}{}",
            hint(environment, path).await
        )),
        EnvironmentErrorKind::IsDirectory => ToolError::new(format!(
            "{path} is a directory{}",
            way_out("list it", &["list_dir", "glob", "shell"])
        )),
        EnvironmentErrorKind::TooLarge => ToolError::new(format!(
            "{path} is larger than {MAX_FILE_BYTES} bytes{}",
            way_out("look at parts of it", &["grep", "shell"])
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run;
    use super::*;
    use crate::text::PNG;

    fn check(files: &[(&str, &[u8])], arguments: Value, expected: Result<&str, &str>) {
        let (executed, _) = run(files, "read_file", arguments);
        let expected = match expected {
            Ok(text) => (text.to_owned(), false),
            Err(message) => (format!("Tool error (read_file): {message}"), true),
        };
        assert_eq!((executed.full, executed.is_error), expected);
    }

    fn check_text(content: &str, expected: &str) {
        let files = [("a.txt", content.as_bytes())];
        check(&files, json!({"file_path": "a.txt"}), Ok(expected));
    }

    #[test]
    fn whole_files() {
        check_text("one\ntwo\n", "1 | one\n2 | two");
        check_text("one\n\nthree", "1 | one\n2 | \n3 | three");
        check_text("\u{FEFF}grün 😀\n", "1 | grün 😀");
        check_text("a\r\nb\r\n", "1 | a\n2 | b\n\n[lines end with CRLF]");
        check_text("", "[a.txt is empty]");
    }

    #[test]
    fn windows() {
        let text: String = (1..=12).map(|n| format!("l{n}\n")).collect();
        let files = [("a", text.as_bytes())];
        check(
            &files,
            json!({"file_path": "/work/a", "offset": 9, "limit": 2}),
            Ok(" 9 | l9\n10 | l10\n\n[lines 9 to 10 of 12; read on with offset 11]"),
        );
        check(
            &files,
            json!({"file_path": "a", "offset": 12}),
            Ok("12 | l12"),
        );
        check(
            &files,
            json!({"file_path": "a", "offset": 13}),
            Err("offset 13 is past the end of a, which has 12 lines"),
        );
    }

    #[test]
    fn two_thousand_lines_unless_told_otherwise() {
        let (executed, _) = run(
            &[("a", "x\n".repeat(2001).as_bytes())],
            "read_file",
            json!({"file_path": "a"}),
        );
        let end = "2000 | x\n\n[lines 1 to 2000 of 2001; read on with offset 2001]";
        assert!(executed.full.ends_with(end), "{}", executed.full);
    }

    #[test]
    fn other_encodings_come_with_a_note() {
        let arguments = json!({"file_path": "a"});
        check(
            &[("a", b"gr\xFCn\n")],
            arguments.clone(),
            Ok(
                "1 | grün\n\n[the file is not UTF-8; its bytes are shown as Windows-1252, and \
                edits keep them]",
            ),
        );
        check(
            &[("a", b"\xFE\xFF\0a\x21\x92")],
            arguments,
            Ok("1 | a→\n\n[the file is UTF-16 (big-endian); edits keep that]"),
        );
    }

    #[test]
    fn lines_of_a_file_over_the_limit() {
        let text = "0123456789\n".repeat(5_000_000) + "end";
        let files = [("big", text.as_bytes())];
        check(
            &files,
            json!({"file_path": "big", "offset": 4_999_999, "limit": 1}),
            Ok(
                "4999999 | 0123456789\n\n[lines 4999999 to 4999999; more follow; read on with offset \
                5000000]",
            ),
        );
        check(
            &files,
            json!({"file_path": "big", "offset": 5_000_000}),
            Ok("5000000 | 0123456789\n5000001 | end\n\n[lines 5000000 to 5000001 of 5000001]"),
        );
        check(
            &files,
            json!({"file_path": "big", "offset": 5_000_002}),
            Err("offset 5000002 is past the end of big, which has 5000001 lines"),
        );
        let (executed, _) = run(&files, "read_file", json!({"file_path": "big"}));
        let end = "2000 | 0123456789\n\n[lines 1 to 2000; more follow; read on with offset 2001]";
        assert!(executed.full.ends_with(end), "{}", executed.full);
    }

    #[test]
    fn what_is_not_text() {
        let arguments = json!({"file_path": "a"});
        check(
            &[("a", b"a\0b")],
            arguments.clone(),
            Err("cannot show a as text: binary file (it contains NUL bytes)"),
        );
        check(
            &[("a", b"ab\xFF\x01")],
            arguments.clone(),
            Err("cannot show a as text: binary file (it contains control characters)"),
        );
        check(
            &[("a/b", b"")],
            arguments,
            Err("a is a directory; list it with glob or shell"),
        );
        check(
            &[],
            json!({"file_path": ""}),
            Err("file_path is empty; name the file to read"),
        );
    }

    #[test]
    fn a_missing_file_comes_with_suggestions() {
        let files: &[(&str, &[u8])] = &[("src/main.rs", b""), ("src/lib.rs", b"")];
        check(
            files,
            json!({"file_path": "src/mian.rs"}),
            Err("file not found: src/mian.rs; did you mean src/main.rs?"),
        );
        check(
            files,
            json!({"file_path": "src/other.py"}),
            Err("file not found: src/other.py"),
        );
        check(
            files,
            json!({"file_path": "scr/main.rs"}),
            Err("file not found: scr/main.rs; directory /work/scr does not exist either"),
        );
    }

    #[test]
    fn images() {
        let (executed, _) = run(
            &[("a.png", PNG)],
            "read_file",
            json!({"file_path": "a.png"}),
        );
        let media = Media {
            source: MediaSource::Data(Bytes::from_static(PNG)),
            media_type: "image/png".to_owned(),
            detail: None,
            file_name: None,
        };
        assert_eq!(executed.media, [media]);
        assert_eq!(
            executed.full,
            format!("Image a.png (image/png, {} bytes)", PNG.len())
        );
    }

    #[test]
    fn bad_images_never_get_in() {
        let arguments = json!({"file_path": "a.png"});
        check(
            &[("a.png", &PNG[..40])],
            arguments.clone(),
            Err("a.png: damaged or incomplete PNG image"),
        );
        check(
            &[("a.png", b"text")],
            arguments.clone(),
            Err("a.png: not a PNG, JPEG, GIF or WebP image"),
        );
        let mut large = PNG.to_vec();
        large.resize(6_000_000, 0);
        check(
            &[("a.png", &large)],
            arguments,
            Err("a.png: image of 6000000 bytes, the limit is 5242880 bytes"),
        );
    }
}
