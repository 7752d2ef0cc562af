//! `Output`: what a program prints, cut at a limit.

use bytes::Bytes;

/// Which stream of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// What a program has printed.
pub(super) struct Output {
    limit: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A stream is full: the program ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

impl Output {
    /// At most `limit` bytes per stream.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            stdout: Vec::new(),
            stderr: Vec::new(),
        }
    }

    /// Adds to a stream; what does not fit is cut off, and standard error says
    /// so in its last line.
    pub(super) fn write(&mut self, stream: Stream, data: &[u8]) -> Result<(), Full> {
        let limit = self.limit;
        let place = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = limit.saturating_sub(place.len());
        place.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() <= room {
            return Ok(());
        }
        self.say(&format!(
            "output was cut and the program ended: the limit is {limit} bytes per stream\n"
        ));
        Err(Full)
    }

    /// Adds a line of ours to standard error, beyond the limit.
    pub(super) fn say(&mut self, line: &str) {
        self.stderr.extend_from_slice(line.as_bytes());
    }

    /// Standard output and standard error.
    pub(super) fn into_streams(self) -> (Bytes, Bytes) {
        (self.stdout.into(), self.stderr.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_has_its_own_limit() {
        let mut output = Output::new(4);
        assert_eq!(output.write(Stream::Stdout, b"abc"), Ok(()));
        assert_eq!(output.write(Stream::Stderr, b"1234"), Ok(()));
        assert_eq!(output.write(Stream::Stdout, b"d"), Ok(()));
        assert_eq!(output.write(Stream::Stdout, b""), Ok(()));
        assert_eq!(output.write(Stream::Stdout, b"ef"), Err(Full));
        let (stdout, stderr) = output.into_streams();
        assert_eq!(stdout, "abcd");
        assert_eq!(
            stderr,
            "1234output was cut and the program ended: the limit is 4 bytes per stream\n"
        );
    }
}
