//! The task's text, from the command line or from stdin.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;

use crate::failure::{Failure, reason};

/// Longest text taken, in MiB: no provider takes a longer request, and the core
/// holds some copies of it.
const MAX_MIB: u64 = 32;
const MAX_BYTES: u64 = MAX_MIB << 20;

/// The prompt that `argument` names; `-` reads all of `stdin`.
///
/// # Errors
/// There is none, it is blank, too long, or not UTF-8.
pub(crate) fn read(argument: Option<&OsStr>, stdin: impl Read) -> Result<String, Failure> {
    let Some(argument) = argument else {
        return Err(Failure::usage(
            "there is no prompt: give the task as an argument, or - to read it from stdin",
        ));
    };
    let (text, source) = if argument == "-" {
        let bytes = read_bounded(stdin).map_err(|error| {
            Failure::usage(format!(
                "cannot read the prompt from stdin: {}: pipe text into it, or give the task as an argument",
                reason(&error)
            ))
        })?;
        (text(bytes, "the prompt on stdin")?, "stdin")
    } else {
        let text = argument.to_str().ok_or_else(|| {
            Failure::usage("the prompt is not valid UTF-8: give it as UTF-8 text")
        })?;
        (text.to_owned(), "the argument")
    };
    if text.trim().is_empty() {
        return Err(Failure::usage(format!(
            "the prompt is empty: put the task into {source}"
        )));
    }
    Ok(text)
}

/// The text of a file that an option names.
///
/// # Errors
/// It cannot be read, is too long, or not UTF-8.
pub(crate) fn read_file(path: &Path, option: &str) -> Result<String, Failure> {
    let shown = path.display();
    let bytes = std::fs::File::open(path).and_then(read_bounded);
    let bytes = bytes.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => ": check the path",
            io::ErrorKind::IsADirectory => ": name a file",
            io::ErrorKind::PermissionDenied => ": make it readable for you",
            _ => ": check the file",
        };
        Failure::usage(format!(
            "cannot read {option} {shown}: {}{hint}",
            reason(&error)
        ))
    })?;
    text(bytes, &format!("{option} {shown}"))
}

/// All of `input`, or one byte more than is allowed.
fn read_bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>, what: &str) -> Result<String, Failure> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::usage(format!(
            "{what} has more than {MAX_MIB} MiB: put what is long into a file that the model can read"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::usage(format!(
            "{what} is not valid UTF-8 (byte {at}): convert it to UTF-8 text"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(argument: Option<&str>, stdin: &[u8], expected: Result<&str, &str>) {
        let result = read(argument.map(OsStr::new), stdin);
        let expected = expected.map(str::to_owned).map_err(Failure::usage);
        assert_eq!(result, expected);
    }

    #[test]
    fn argument() {
        check(Some("fix it"), b"ignored", Ok("fix it"));
    }

    #[test]
    fn stdin() {
        check(Some("-"), "müde\n".as_bytes(), Ok("müde\n"));
    }

    #[test]
    fn stdin_of_ten_megabytes() {
        let long = "0123456789".repeat(1_000_000);
        check(Some("-"), long.as_bytes(), Ok(&long));
    }

    #[test]
    fn stdin_not_utf8() {
        check(
            Some("-"),
            b"ab\xff",
            Err("the prompt on stdin is not valid UTF-8 (byte 2): convert it to UTF-8 text"),
        );
    }

    #[test]
    fn stdin_at_the_limit_and_beyond() {
        let mut long = vec![b'x'; usize::try_from(MAX_BYTES).expect("64 bits")];
        let text = String::from_utf8(long.clone()).expect("UTF-8");
        check(Some("-"), &long, Ok(&text));
        long.push(b'x');
        check(
            Some("-"),
            &long,
            Err(
                "the prompt on stdin has more than 32 MiB: put what is long into a file that the model can read",
            ),
        );
    }

    #[test]
    fn none() {
        check(
            None,
            b"ignored",
            Err("there is no prompt: give the task as an argument, or - to read it from stdin"),
        );
    }

    #[test]
    fn blank() {
        check(
            Some(" "),
            b"",
            Err("the prompt is empty: put the task into the argument"),
        );
        check(
            Some("-"),
            b"\n",
            Err("the prompt is empty: put the task into stdin"),
        );
    }
}
