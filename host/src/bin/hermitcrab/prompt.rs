//! The task's text, from the command line or from stdin, and what is piped
//! beside it.

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

/// What [`read`] read from the command line, with the text that is piped into
/// `stdin` behind it. Of a long one the middle is left out; the model and the
/// notice on stderr say so.
///
/// # Errors
/// Stdin cannot be read.
pub(crate) fn with_piped(prompt: String, stdin: impl Read) -> Result<String, Failure> {
    let piped = read_ends(stdin).map_err(|error| {
        Failure::usage(format!(
            "cannot read what is piped into stdin: {}: pipe text into it, or give it < /dev/null",
            reason(&error)
        ))
    })?;
    let Some((text, left_out)) = piped else {
        return Ok(prompt);
    };
    if left_out > 0 {
        eprintln!(
            "! stdin is too long for a prompt: {left_out} bytes in its middle are left out; put \
             what is long into a file that the model can read"
        );
    }
    let prompt = prompt.trim_end();
    Ok(format!(
        "{prompt}\n\n<stdin>\n{}\n</stdin>",
        text.trim_end()
    ))
}

/// Bytes that are kept of what is piped, at each end.
const MAX_PIPED_END: usize = 128 << 10;

/// Bytes that are read of what is piped; nobody waits for an endless one.
const MAX_PIPED: usize = 64 << 20;

/// The text of `input`, and how many bytes of its middle are missing; none
/// where it is blank.
fn read_ends(mut input: impl Read) -> io::Result<Option<(String, usize)>> {
    let mut head = Vec::new();
    let mut tail: std::collections::VecDeque<u8> = std::collections::VecDeque::new();
    let mut left_out = 0;
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    while total < MAX_PIPED {
        let length = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        total += length;
        let room = (MAX_PIPED_END - head.len()).min(length);
        head.extend_from_slice(&buffer[..room]);
        tail.extend(&buffer[room..length]);
        let over = tail.len().saturating_sub(MAX_PIPED_END);
        tail.drain(..over);
        left_out += over;
    }
    let mut bytes = head;
    if left_out > 0 {
        bytes.extend_from_slice(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
    }
    bytes.extend(tail);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok((!text.trim().is_empty()).then_some((text, left_out)))
}

/// Whether somebody pipes something in: stdin is a pipe, a socket or a file.
#[cfg(unix)]
pub(crate) fn is_piped(stdin: &io::Stdin) -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;
    let file = stdin.as_fd().try_clone_to_owned().map(std::fs::File::from);
    let kind = file.and_then(|file| file.metadata());
    kind.is_ok_and(|metadata| {
        let kind = metadata.file_type();
        kind.is_fifo() || kind.is_socket() || kind.is_file()
    })
}

#[cfg(not(unix))]
pub(crate) fn is_piped(stdin: &io::Stdin) -> bool {
    !io::IsTerminal::is_terminal(stdin)
}

/// Whether something comes from stdin, or its end. A program that starts this
/// one may leave a pipe open into which it never writes: nobody waits for that.
#[cfg(unix)]
pub(crate) fn something_comes() -> bool {
    use nix::libc;
    let mut stdin = libc::pollfd {
        fd: libc::STDIN_FILENO,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the pointer is to one descriptor, which poll reads and writes.
    let ready = unsafe { libc::poll(&raw mut stdin, 1, PATIENCE_MS) };
    if ready == 0 {
        let seconds = PATIENCE_MS / 1000;
        eprintln!(
            "! nothing has come from stdin for {seconds} s: the run goes on without it; close \
             stdin (< /dev/null), or give - as the prompt to wait for it"
        );
    }
    ready != 0
}

#[cfg(not(unix))]
pub(crate) fn something_comes() -> bool {
    true
}

/// How long stdin may be silent, in ms.
#[cfg(unix)]
const PATIENCE_MS: i32 = 5_000;

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

    fn check_piped(stdin: &[u8], expected: &str) {
        let text = with_piped("explain\n".to_owned(), stdin);
        assert_eq!(text.as_deref(), Ok(expected));
    }

    #[test]
    fn piped_beside_a_prompt() {
        check_piped(b"a\nb\n", "explain\n\n<stdin>\na\nb\n</stdin>");
        check_piped(b"a\xff", "explain\n\n<stdin>\na\u{fffd}\n</stdin>");
        check_piped(b"", "explain\n");
        check_piped(b"\n\n", "explain\n");
    }

    #[test]
    fn a_long_pipe_keeps_its_ends() {
        let long = format!("first{}last", "x".repeat(3 * MAX_PIPED_END));
        let text = with_piped("explain".to_owned(), long.as_bytes()).expect("a prompt");
        let left_out = long.len() - 2 * MAX_PIPED_END;
        assert!(text.starts_with("explain\n\n<stdin>\nfirstx"));
        assert!(text.ends_with("xlast\n</stdin>"));
        assert!(text.contains(&format!("x\n[... {left_out} bytes left out ...]\nx")));
    }

    #[test]
    fn nobody_waits_for_an_endless_pipe() {
        let text = with_piped("explain".to_owned(), io::repeat(b'y')).expect("a prompt");
        assert!(text.len() < 3 * MAX_PIPED_END);
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
