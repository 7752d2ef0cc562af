//! The output pipes of a child process.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes read into `buffer`; 0 at the end of the pipe, which is then none. Never ends for a
/// pipe that has ended before.
pub(crate) async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut [u8]) -> usize {
    let Some(open) = pipe else {
        return std::future::pending().await;
    };
    match open.read(buffer).await {
        Ok(length) if length > 0 => length,
        _ => {
            *pipe = None;
            0
        }
    }
}
