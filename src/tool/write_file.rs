//! `write_file` (spec 3.3): creates or replaces a whole file.

use async_trait::async_trait;
use bytes::Bytes;
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind as Of, Parameter, required};
use super::{CallContext, Declared, MAX_FILE_BYTES, ToolError, ToolOutput};
use crate::environment::EnvironmentErrorKind as Kind;
use crate::text::{Encoding, LineEnding, NotEncodable, TextFormat, decode_file};

pub(super) const PARAMETERS: &[Parameter] = &[
    required("file_path", Of::Text),
    required("content", Of::Text),
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
        let environment = &call.environment;
        let absolute = environment.absolute(&file_path);
        let _turn = call.files.lock(environment, [absolute.clone()]).await;
        let mut kept = Vec::new();
        let mut content = Bytes::from(content);
        let verb = match environment.read(&file_path, MAX_FILE_BYTES).await {
            Ok(old) => {
                if let Some(change) = call.known.change(&absolute, &old) {
                    return Err(ToolError::new(format!(
                        "{file_path} was not written: {change}"
                    )));
                }
                (content, kept) = in_format_of(&old, content).map_err(|reason| {
                    ToolError::new(format!("cannot write {file_path}: {reason}"))
                })?;
                "Replaced"
            }
            Err(error) => match error.kind {
                Kind::NotFound => "Created",
                Kind::Cancelled => return Err(error.into()),
                // Too large, or not to be read: writing says what is wrong, if anything is.
                _ => "Replaced",
            },
        };
        let bytes = content.len();
        environment.write(&file_path, content.clone()).await?;
        call.known.note(&absolute, content);
        let kept = match &kept[..] {
            [] => String::new(),
            kept => format!("; kept from the old file: {}", kept.join(", ")),
        };
        Ok(ToolOutput::text(format!(
            "{verb} {file_path} ({bytes} bytes written{kept})"
        )))
    }
}

/// `new` with the encoding, byte-order mark and line endings of `old`, where it says
/// nothing else, and what was kept.
fn in_format_of(old: &[u8], new: Bytes) -> Result<(Bytes, Vec<String>), NotEncodable> {
    let mut kept = Vec::new();
    let (Ok((text, encoding)), Ok(content)) = (decode_file(old), std::str::from_utf8(&new)) else {
        return Ok((new, kept));
    };
    let format = TextFormat::detect(&text);
    let mut content = content.to_owned();
    if format.ending == LineEnding::Crlf && !content.contains('\r') && content.contains('\n') {
        content = format.ending.apply(&content).into_owned();
        kept.push("CRLF line endings".to_owned());
    }
    let has_mark = TextFormat::strip_bom(&content).len() < content.len();
    if format.bom && !has_mark && !content.is_empty() {
        content.insert(0, '\u{FEFF}');
        kept.push("byte-order mark".to_owned());
    }
    match encoding {
        Encoding::Utf8 | Encoding::StrayBytes(_) => {}
        _ if content.is_ascii() && encoding == Encoding::Windows1252 => {}
        encoding => kept.push(encoding.to_string()),
    }
    let content = encoding.encode(content)?;
    Ok((content.into(), kept))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::json;

    use std::rc::Rc;

    use super::super::testing::{call, pipeline, play, run};
    use crate::environment::Scope;
    use crate::environment::testing::TreeEnvironment;

    fn check(files: &[(&str, &[u8])], path: &str, content: &str, expected: &str) {
        let arguments = json!({"file_path": path, "content": content});
        let (executed, tree) = run(files, "write_file", arguments);
        assert_eq!(executed.full, expected);
        let written = tree.content(path);
        let expected = (!executed.is_error).then_some(content.as_bytes());
        assert_eq!(written.as_deref(), expected);
    }

    #[track_caller]
    fn check_format(old: &[u8], content: &str, new: &[u8], kept: &str) {
        let arguments = json!({"file_path": "a", "content": content});
        let (executed, tree) = run(&[("a", old)], "write_file", arguments);
        let kept = match kept {
            "" => String::new(),
            kept => format!("; kept from the old file: {kept}"),
        };
        let expected = format!("Replaced a ({} bytes written{kept})", new.len());
        assert_eq!(executed.full, expected);
        assert_eq!(tree.content("a").as_deref(), Some(new));
    }

    #[test]
    fn the_format_of_an_older_file_is_kept() {
        let crlf = "CRLF line endings";
        check_format(b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n", crlf);
        check_format(b"a\r\nb", "x\ny", b"x\r\ny", crlf);
        check_format(b"a\r\n", "x\r\ny\n", b"x\r\ny\n", "");
        check_format(b"a\r\n", "x", b"x", "");
        check_format(b"a\n", "x\r\n", b"x\r\n", "");
        let mark = "\u{FEFF}";
        let marked = format!("{mark}a\r\n");
        check_format(
            marked.as_bytes(),
            "x\n",
            format!("{mark}x\r\n").as_bytes(),
            &format!("{crlf}, byte-order mark"),
        );
        check_format(
            marked.as_bytes(),
            &format!("{mark}x"),
            format!("{mark}x").as_bytes(),
            "",
        );
        check_format(marked.as_bytes(), "", b"", "");
        check_format(
            b"\xFF\xFEa\0\n\0",
            "ü\n",
            b"\xFF\xFE\xFC\0\n\0",
            "byte-order mark, UTF-16",
        );
        check_format(b"gr\xFCn\n", "blau\n", b"blau\n", "");
        check_format(b"gr\xFCn\n", "wei\u{DF}\n", b"wei\xDF\n", "Windows-1252");
        check_format(b"a\0b\r\n", "x\n", b"x\n", "");
        let arguments = json!({"file_path": "a", "content": "→"});
        let (executed, tree) = run(&[("a", b"gr\xFCn")], "write_file", arguments);
        assert!(executed.is_error);
        assert!(executed.full.contains("Windows-1252"), "{}", executed.full);
        assert_eq!(tree.content("a").as_deref(), Some(&b"gr\xFCn"[..]));
    }

    #[test]
    fn what_changed_since_it_was_read_is_refused_once() {
        let tree = Rc::new(TreeEnvironment::new(&[("a", b"one\ntwo\n")]));
        let (pipeline, _) = pipeline(tree.clone());
        let do_it = |name: &str, arguments: serde_json::Value| {
            let call = call(name, &arguments.to_string());
            play(&pipeline, &Scope::new("s"), call, Vec::new()).0.full
        };
        let write = json!({"file_path": "a", "content": "mine\n"});
        do_it("read_file", json!({"file_path": "a"}));
        // Somebody else.
        tree.write("a", Bytes::from_static(b"one\n2\n"));
        let refused = do_it("write_file", write.clone());
        assert!(
            refused.contains("a was not written: it changed since"),
            "{refused}"
        );
        assert!(refused.contains("-two\n+2"), "{refused}");
        assert_eq!(tree.content("a").as_deref(), Some(&b"one\n2\n"[..]));
        assert_eq!(
            do_it("write_file", write.clone()),
            "Replaced a (5 bytes written)"
        );
        // Its own change is known; a file that it never read is, too, after that.
        assert_eq!(do_it("write_file", write), "Replaced a (5 bytes written)");
        do_it(
            "edit_file",
            json!({"file_path": "a", "old_string": "mine", "new_string": "yours"}),
        );
        tree.write("a", Bytes::from_static(b"yours\nand more\n"));
        // An edit finds its text, and keeps the rest.
        let edited = do_it(
            "edit_file",
            json!({"file_path": "a", "old_string": "yours", "new_string": "ours"}),
        );
        assert!(edited.starts_with("Made 1 replacement"), "{edited}");
        assert_eq!(tree.content("a").as_deref(), Some(&b"ours\nand more\n"[..]));
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
