//! Archives that are none, and `tar -O`.
//!
//! bashkit's takes what is no archive for an empty one, with exit code 0.
//!
//! Seen in bashkit 0.20.2; gone when `tar` of `tests/it/bashkit.rs` fails.

use bashkit::{BuiltinContext, normalize_path, vfs_join};

use super::checked::content;

/// Exit code of `tar` where it gives up.
pub(super) const TROUBLE: i32 = 2;
/// Bytes of a block, the first of which holds the name and the sum of its bytes.
const BLOCK: usize = 512;
/// Where the sum stands, in octal digits.
const SUM: std::ops::Range<usize> = 148..156;

/// Why an archive cannot be read, if there is one that cannot.
pub(super) async fn problem(ctx: &BuiltinContext<'_>) -> Option<String> {
    let call = Call::of(ctx.args);
    let archive = match call.archive.filter(|_| call.reads)? {
        "-" => ctx.stdin_bytes().unwrap_or_default().to_vec(),
        file => content(&*ctx.fs, &normalize_path(&vfs_join(ctx.cwd, file))).await,
    };
    (!may_be_archive(&archive)).then(|| {
        "tar: This does not look like a tar archive\n\
         tar: Exiting with failure status due to previous errors\n"
            .to_owned()
    })
}

/// Whether `content` is nothing, packed, or begins as an archive does.
fn may_be_archive(content: &[u8]) -> bool {
    let is_packed = [&b"\x1f\x8b"[..], b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd"]
        .iter()
        .any(|magic| content.starts_with(magic));
    if content.is_empty() || is_packed {
        return true;
    }
    let Some(block) = content.get(..BLOCK) else {
        return false;
    };
    if block.iter().all(|byte| *byte == 0) {
        return true;
    }
    let digits: String = block[SUM]
        .iter()
        .map(|byte| char::from(*byte))
        .filter(|digit| digit.is_digit(8))
        .collect();
    let others = block.iter().enumerate().filter(|(at, _)| !SUM.contains(at));
    let sum = others.map(|(_, byte)| u64::from(*byte)).sum::<u64>() + 8 * u64::from(b' ');
    u64::from_str_radix(&digits, 8) == Ok(sum)
}

/// What a call is about.
#[derive(Debug, Default, PartialEq)]
struct Call<'a> {
    reads: bool,
    archive: Option<&'a str>,
    writes_to_output: bool,
}

impl<'a> Call<'a> {
    fn of(args: &'a [String]) -> Self {
        let mut call = Self::default();
        let mut rest = args.iter().map(String::as_str).enumerate();
        while let Some((at, argument)) = rest.next() {
            if let Some(long) = argument.strip_prefix("--") {
                match long.split_once('=') {
                    Some(("file", file)) => call.archive = Some(file),
                    _ => {
                        call.reads |= matches!(long, "list" | "extract" | "get");
                        call.writes_to_output |= long == "to-stdout";
                        if long == "file" {
                            call.archive = rest.next().map(|it| it.1);
                        }
                    }
                }
                continue;
            }
            let letters = match argument.strip_prefix('-') {
                Some(letters) => letters,
                None if at == 0 => argument,
                None => continue,
            };
            call.reads |= letters.contains(['t', 'x']);
            call.writes_to_output |= letters.contains('O');
            if let Some(place) = letters.find('f') {
                let attached = Some(&letters[place + 1..]).filter(|it| !it.is_empty());
                // Without a dash letters go on behind the `f`.
                let attached = attached.filter(|_| argument.starts_with('-'));
                call.archive = attached.or_else(|| rest.next().map(|it| it.1));
            }
        }
        call
    }
}

/// Whether a `tar` with `args` prints the files themselves.
pub(super) fn writes_to_output(args: &[String]) -> bool {
    Call::of(args).writes_to_output
}
