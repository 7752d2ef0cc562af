//! Lines of a file that is too large to be held: it is read in pieces, up to
//! the last line that is wanted.

use crate::environment::{Environment, EnvironmentError};

/// Bytes of a piece.
const PIECE: u64 = 4 << 20;

/// A stretch of lines.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// The lines with their ends.
    pub(super) bytes: Vec<u8>,
    /// Lines up to the last one that was seen.
    pub(super) seen: u64,
    /// How it ended.
    pub(super) end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum End {
    /// With the file.
    #[default]
    File,
    /// With the last line wanted; the file goes on.
    Line,
    /// In the middle of a line, at the limit of bytes.
    Bytes,
}

/// At most `limit` lines of the file at `path`, from line `first` (from 1) on,
/// and at most `max_bytes` bytes of them.
pub(super) async fn lines(
    environment: &Environment,
    path: &str,
    first: u64,
    limit: u64,
    max_bytes: usize,
) -> Result<Stretch, EnvironmentError> {
    let mut stretch = Stretch::default();
    // Lines that have ended, and whether the next one has begun.
    let (mut ended, mut begun) = (0_u64, false);
    let mut at = 0;
    loop {
        let piece = environment.read_part(path, at, PIECE).await?;
        if piece.is_empty() {
            break;
        }
        at += piece.len() as u64;
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let wanted = ended + 1 >= first;
            if wanted && ended + 1 - first >= limit {
                stretch.end = End::Line;
                stretch.seen = ended;
                return Ok(stretch);
            }
            let line = match memchr::memchr(b'\n', rest) {
                Some(end) => &rest[..=end],
                None => rest,
            };
            begun = !line.ends_with(b"\n");
            ended += u64::from(!begun);
            rest = &rest[line.len()..];
            if wanted {
                stretch.bytes.extend_from_slice(line);
                if stretch.bytes.len() > max_bytes {
                    stretch.bytes.truncate(max_bytes);
                    stretch.end = End::Bytes;
                    stretch.seen = ended + u64::from(begun);
                    return Ok(stretch);
                }
            }
        }
    }
    stretch.seen = ended + u64::from(begun);
    Ok(stretch)
}
