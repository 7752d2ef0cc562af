//! `yes` without end.
//!
//! bashkit's stops after 10,000 lines. Ours writes as it goes, until nobody reads.
//!
//! Seen in bashkit 0.20.2; gone when `yes` of `tests/it/bashkit.rs` fails.

use bashkit::{Command, CommandContext, CommandStatus, Error, Result, async_trait};

use crate::memory::clock;

/// Bytes written at once.
const CHUNK: usize = 4 << 10;
/// Chunks written before others run, where nothing slows it down
/// (`yes > /dev/null`).
const CHUNKS_IN_ONE_GO: u32 = 64;
/// Exit code of a command that SIGPIPE ended.
const BROKEN_PIPE: i32 = 141;

/// `yes [STRING]...`
pub(super) struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, ctx: CommandContext<'_>) -> Result<CommandStatus> {
        let words = match ctx.args {
            [first, rest @ ..] if first == "--" => rest,
            all => all,
        };
        let line = if words.is_empty() {
            "y\n".to_owned()
        } else {
            words.join(" ") + "\n"
        };
        let chunk = line.repeat((CHUNK / line.len()).max(1));
        let mut chunks = 0;
        while write(&ctx, chunk.as_bytes()).await? {
            clock::spend(1);
            chunks += 1;
            if chunks % CHUNKS_IN_ONE_GO == 0 {
                clock::pause().await;
            }
        }
        Ok(CommandStatus::with_code(BROKEN_PIPE))
    }
}

/// Writes `bytes`; whether somebody still reads.
async fn write(ctx: &CommandContext<'_>, bytes: &[u8]) -> Result<bool> {
    match ctx.stdout.write_all(bytes).await {
        Ok(()) => Ok(true),
        Err(Error::Io(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(error),
    }
}
