//! `read_many_files` (spec 3.6): several files in one call, named or by glob.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use serde::Deserialize;

use super::executor::Executor;
use super::glob::place;
use super::mapping::{Kind, Parameter, optional, required};
use super::read_file::image;
use super::{CallContext, Declared, MAX_FILE_BYTES, ToolError, ToolOutput};
use crate::environment::search::{PathGlob, display_path};
use crate::environment::{Environment, EnvironmentError, EnvironmentErrorKind, GlobRequest};
use crate::llm::Media;
use crate::text::{TextFormat, decode_file, named_as_image, number_lines, sniff_image};

/// Files read at most.
const MAX_FILES: usize = 200;

/// Files that one pattern may find.
const MAX_FOUND: u64 = 10_000;

/// Lines of one file at most, as in `read_file`.
const MAX_LINES: usize = 2000;

/// Images shown at most.
const MAX_IMAGES: usize = 10;

/// Reads under way at the same time.
const PARALLEL_READS: usize = 16;

pub(super) const PARAMETERS: &[Parameter] = &[
    required("paths", Kind::Texts),
    optional("exclude", Kind::Texts),
];

/// Reads several files.
pub(super) struct ReadManyFiles;

/// `paths` are files, directories (everything below) and globs; `exclude` are
/// globs of files to leave out.
#[derive(Deserialize)]
pub(super) struct Arguments {
    paths: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
}

#[async_trait(?Send)]
impl Executor for ReadManyFiles {
    type Arguments = Arguments;

    const KIND: &'static str = "read_many_files";

    async fn execute(
        &self,
        declared: &Declared,
        call: &CallContext,
        arguments: Arguments,
    ) -> Result<ToolOutput, ToolError> {
        if arguments.paths.is_empty() {
            return Err(ToolError::new(format!(
                "{} is empty; name files, directories or globs",
                declared.named("paths")
            )));
        }
        let exclude = arguments.exclude.iter().map(|glob| PathGlob::new(glob));
        let exclude: Vec<_> = exclude.collect::<Result<_, _>>()?;
        let environment = &call.environment;
        let mut chosen = Chosen::default();
        for path in &arguments.paths {
            chosen.add(environment, path).await?;
        }
        let unwanted = |file: &File| {
            let absolute = environment.absolute(&file.path);
            exclude
                .iter()
                .any(|glob| glob.matches_any([&file.path], &absolute))
        };
        chosen.files.retain(|file| !unwanted(file));
        let left_out = chosen.files.len().saturating_sub(MAX_FILES);
        chosen.files.truncate(MAX_FILES);
        let mut report = Report::new(call.max_captured_bytes);
        let reads = chosen.files.iter().map(|file| async move {
            let content = environment.read(&file.path, MAX_FILE_BYTES).await;
            if let Ok(content) = &content {
                let absolute = environment.absolute(&file.path);
                call.known.note(&absolute, content.clone());
            }
            (file, content)
        });
        let mut contents =
            stream::iter(reads.map(|work| work.boxed_local())).buffered(PARALLEL_READS);
        while let Some((file, content)) = contents.next().await {
            report.add(file, content)?;
            if report.full() {
                break;
            }
        }
        drop(contents);
        Ok(report.finish(&chosen, left_out))
    }
}

/// A file to read.
struct File {
    /// Relative to the working directory where it is below it.
    path: String,
    /// Named itself, not found by a pattern.
    named: bool,
}

#[derive(Default)]
struct Chosen {
    files: Vec<File>,
    seen: BTreeSet<String>,
    /// What was asked for and is not there.
    missing: Vec<String>,
}

impl Chosen {
    async fn add(&mut self, environment: &Environment, path: &str) -> Result<(), EnvironmentError> {
        let wild = path.contains(['*', '?', '[', '{']);
        match environment.stat(path).await {
            Ok(found) if !found.is_dir => {
                self.push(environment, path, true);
                Ok(())
            }
            Ok(_) => self.find(environment, path, "**".to_owned(), path).await,
            Err(error) if error.kind == EnvironmentErrorKind::Cancelled => Err(error),
            Err(_) if wild => {
                let (directory, pattern) = place(environment, String::new(), path.to_owned());
                self.find(environment, path, pattern, &directory).await
            }
            Err(error) if error.kind == EnvironmentErrorKind::NotFound => {
                self.missing.push(path.to_owned());
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Files that match, in the order of their paths.
    async fn find(
        &mut self,
        environment: &Environment,
        asked: &str,
        pattern: String,
        directory: &str,
    ) -> Result<(), EnvironmentError> {
        let request = GlobRequest {
            pattern,
            path: directory.to_owned(),
            max_results: MAX_FOUND,
        };
        let found = match environment.glob(request).await {
            Ok(found) => found,
            Err(error) if error.kind == EnvironmentErrorKind::NotFound => {
                self.missing.push(asked.to_owned());
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if found.entries.is_empty() {
            self.missing.push(asked.to_owned());
        }
        let mut paths: Vec<_> = found.entries.into_iter().map(|entry| entry.path).collect();
        paths.sort_unstable();
        for path in paths {
            self.push(environment, &path, false);
        }
        Ok(())
    }

    fn push(&mut self, environment: &Environment, path: &str, named: bool) {
        let absolute = environment.absolute(path);
        let path = display_path(&environment.absolute(""), &absolute);
        if self.seen.insert(path.to_owned()) {
            self.files.push(File {
                path: path.to_owned(),
                named,
            });
        }
    }
}

/// The output as it grows.
struct Report {
    max_bytes: usize,
    sections: Vec<String>,
    bytes: usize,
    media: Vec<Media>,
    /// Files without text, with the reason.
    skipped: Vec<String>,
    read: usize,
}

impl Report {
    fn new(max_bytes: usize) -> Self {
        Self {
            max_bytes,
            sections: Vec::new(),
            bytes: 0,
            media: Vec::new(),
            skipped: Vec::new(),
            read: 0,
        }
    }

    fn full(&self) -> bool {
        self.bytes >= self.max_bytes
    }

    fn add(
        &mut self,
        file: &File,
        content: Result<Bytes, EnvironmentError>,
    ) -> Result<(), EnvironmentError> {
        let path = &file.path;
        let content = match content {
            Ok(content) => content,
            Err(error) if error.kind == EnvironmentErrorKind::Cancelled => return Err(error),
            Err(error) => {
                self.skipped.push(format!("{path}: {}", error.message));
                return Ok(());
            }
        };
        let section = if named_as_image(path) || sniff_image(&content).is_some() {
            self.image(file, content)
        } else {
            decode_file(&content)
                .map(|(text, encoding)| {
                    let notes = encoding.note().into_iter();
                    notes.fold(numbered(&text), |text, note| text + "\n" + &note)
                })
                .map_err(|reason| reason.to_string())
        };
        match section {
            Ok(text) => {
                self.read += 1;
                let section = format!("--- {path} ---\n{text}");
                self.bytes += section.len();
                self.sections.push(section);
            }
            Err(reason) => self.skipped.push(format!("{path}: {reason}")),
        }
        Ok(())
    }

    /// Images that a pattern happens to find would only cost.
    fn image(&mut self, file: &File, content: Bytes) -> Result<String, String> {
        if !file.named {
            return Err("image; name it to see it".to_owned());
        }
        if self.media.len() >= MAX_IMAGES {
            return Err(format!("more than {MAX_IMAGES} images"));
        }
        let shown = image(&file.path, content).map_err(|error| error.message)?;
        self.media.extend(shown.media);
        Ok(shown.text)
    }

    fn finish(self, chosen: &Chosen, left_out: usize) -> ToolOutput {
        let mut sections = self.sections;
        if self.read == 0 {
            sections.push("[no file was read]".to_owned());
        }
        let unread = chosen.files.len() - self.read - self.skipped.len() + left_out;
        if unread > 0 {
            sections.push(format!(
                "[{unread} more files were not read; ask for fewer at a time]"
            ));
        }
        if !self.skipped.is_empty() {
            sections.push(format!("[skipped]\n{}", self.skipped.join("\n")));
        }
        if !chosen.missing.is_empty() {
            sections.push(format!(
                "[nothing found for]\n{}",
                chosen.missing.join("\n")
            ));
        }
        ToolOutput {
            media: self.media,
            is_error: self.read == 0,
            ..ToolOutput::bounded(sections.join("\n\n"), self.max_bytes)
        }
    }
}

fn numbered(text: &str) -> String {
    let lines = number_lines(TextFormat::strip_bom(text), 1, MAX_LINES);
    match lines.total {
        0 => "[empty]".to_owned(),
        total if total > MAX_LINES => {
            format!("{}\n[lines 1 to {MAX_LINES} of {total}]", lines.text)
        }
        _ => lines.text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::run_declared;
    use crate::text::PNG;

    const FILES: &[(&str, &[u8])] = &[
        ("b.txt", b"one\ntwo\n"),
        ("src/a.rs", b"fn a() {}\n"),
        ("src/deep/b.rs", b"fn b() {}\n"),
        ("src/bin", b"\0"),
        ("src/x.png", PNG),
        (".gitignore", b"out\n"),
        ("out/c.rs", b""),
        ("empty", b""),
    ];

    const DECLARATION: &str = r#"[{"name": "read_many_files", "description": "", "parameters": {
        "type": "object", "required": ["paths"], "properties": {
            "paths": {"type": "array", "items": {"type": "string"}},
            "exclude": {"type": "array", "items": {"type": "string"}}}}}]"#;

    fn check(paths: Value, exclude: Value, expected: &str) {
        let arguments = json!({"paths": paths, "exclude": exclude});
        let executed = run_declared(DECLARATION, FILES, "read_many_files", arguments);
        assert_eq!(executed.full, expected);
    }

    #[test]
    fn files_and_globs() {
        check(
            json!(["b.txt", "empty"]),
            json!([]),
            "--- b.txt ---\n1 | one\n2 | two\n\n--- empty ---\n[empty]",
        );
        check(
            json!(["**/*.rs", "src/a.rs"]),
            json!([]),
            "--- src/a.rs ---\n1 | fn a() {}\n\n--- src/deep/b.rs ---\n1 | fn b() {}",
        );
        check(
            json!(["src/*.rs"]),
            json!([]),
            "--- src/a.rs ---\n1 | fn a() {}",
        );
        check(
            json!(["/work/src/*.rs"]),
            json!(null),
            "--- src/a.rs ---\n1 | fn a() {}",
        );
        check(
            json!(["src"]),
            json!(["*.png", "deep/**"]),
            "--- src/a.rs ---\n1 | fn a() {}\n\n--- src/deep/b.rs ---\n1 | fn b() {}\n\n\
             [skipped]\nsrc/bin: binary file (it contains NUL bytes)",
        );
    }

    #[test]
    fn images_are_shown_when_named() {
        let shown = |paths: Value| {
            let arguments = json!({"paths": paths});
            run_declared(DECLARATION, FILES, "read_many_files", arguments)
        };
        let executed = shown(json!(["src/x.png"]));
        assert_eq!(executed.media.len(), 1);
        let size = PNG.len();
        assert_eq!(
            executed.full,
            format!("--- src/x.png ---\nImage src/x.png (image/png, {size} bytes)")
        );
        let executed = shown(json!(["src/*.png"]));
        assert_eq!(
            (
                executed.full.as_str(),
                executed.is_error,
                executed.media.len()
            ),
            (
                "[no file was read]\n\n[skipped]\nsrc/x.png: image; name it to see it",
                true,
                0
            )
        );
    }

    #[test]
    fn what_is_not_there() {
        check(
            json!(["b.txt", "nowhere", "*.py", "gone/*.rs"]),
            json!([]),
            "--- b.txt ---\n1 | one\n2 | two\n\n[nothing found for]\nnowhere\n*.py\ngone/*.rs",
        );
        check(
            json!([]),
            json!([]),
            "Tool error (read_many_files): paths is empty; name files, directories or globs",
        );
        check(
            json!(["b.txt"]),
            json!(["["]),
            "Tool error (read_many_files): invalid glob \"[\": unclosed character class; missing ']'",
        );
    }
}
