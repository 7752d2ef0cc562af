//! `RemoteEnvironment`: the files and processes of another machine or of a container.
//!
//! Each call runs one script there (`there.sh`) through `ssh` or `docker exec`. Nothing is
//! installed on the other side, which needs a POSIX shell and the tools of GNU or BusyBox
//! on Linux.
//!
//! A command bears a mark in its environment, by which everything that it started is found
//! again when it has to end. Source: spec 4.1 to 4.3.

mod carrier;
mod failure;
mod run;

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind as Kind, EnvironmentInfo,
    ExecRequest, ExecStatus, Metadata,
};
use tokio::io::AsyncWriteExt;
use tokio::sync::Semaphore;

pub use carrier::Remote;

use crate::environment::{ExecIo, HostEnvironment, without_nul};
use carrier::Carrier;

/// File calls at the same time; a server of SSH takes ten over one connection.
const CALLS: usize = 8;
/// More entries than this are cut off a listing.
const MAX_ENTRIES: usize = 100_000;

/// Runs tools on another machine through SSH, or in a container.
///
/// Commands run under `bash -c` (`sh -c` where there is no bash) with the environment of
/// the login or container, in a session without a terminal where the system has `setsid`. A
/// command that is ended takes everything along that has kept its environment. When the
/// connection breaks or this process is killed, what runs there goes on.
///
/// Searches are the core's own, over listings and files: each file that is searched is one
/// call.
pub struct RemoteEnvironment {
    info: EnvironmentInfo,
    carrier: Arc<Carrier>,
    calls: Semaphore,
}

impl RemoteEnvironment {
    /// Connects, and works in `directory` there, which may be relative to where a login or
    /// the container begins.
    ///
    /// # Errors
    /// One sentence when there is no way there, when the directory does not exist or cannot
    /// be entered, or when the machine is not one of Linux.
    pub async fn connect(remote: Remote, directory: &str) -> Result<Self, EnvironmentError> {
        let mut environment = Self {
            info: EnvironmentInfo {
                working_directory: String::new(),
                platform: "linux".to_owned(),
                os_version: String::new(),
                utc_offset_minutes: 0,
                bounds: String::new(),
                warning: String::new(),
            },
            carrier: Arc::new(Carrier::open(remote).await?),
            calls: Semaphore::new(CALLS),
        };
        let directory = if directory.is_empty() { "." } else { directory };
        let facts = environment
            .ask("work in", directory, &["open", directory], None)
            .await?;
        let facts = text(facts)?;
        let mut lines = facts.lines();
        let mut next = || lines.next().unwrap_or_default().to_owned();
        environment.info.working_directory = next();
        environment.info.os_version = next();
        environment.info.utc_offset_minutes = offset(&next());
        Ok(environment)
    }

    /// `path` there, absolute.
    fn resolve(&self, path: &str) -> Result<String, EnvironmentError> {
        let directory = &self.info.working_directory;
        Ok(match without_nul(path)? {
            "" => directory.clone(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!("{directory}/{path}"),
        })
    }

    /// Makes one call of the script, with `content` on its standard input; returns what it
    /// wrote. It does `verb` to `path`.
    async fn ask(
        &self,
        verb: &str,
        path: &str,
        arguments: &[&str],
        content: Option<Bytes>,
    ) -> Result<Bytes, EnvironmentError> {
        let Ok(_turn) = self.calls.acquire().await else {
            return Err(self.carrier.broken("it is closed"));
        };
        self.carrier.reach().await?;
        let broken = |error: std::io::Error| self.carrier.broken(&error.to_string());
        let mut command = self.carrier.call(arguments)?;
        if content.is_some() {
            command.stdin(Stdio::piped());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(broken)?;
        let stdin = child.stdin.take();
        let give = async {
            if let (Some(mut stdin), Some(content)) = (stdin, content) {
                // One that is refused is not read; its exit code says why.
                let _ = stdin.write_all(&content).await;
                let _ = stdin.shutdown().await;
            }
        };
        let ((), output) = tokio::join!(give, child.wait_with_output());
        let output = output.map_err(broken)?;
        if output.status.success() {
            return Ok(output.stdout.into());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let code = output.status.code().unwrap_or_default();
        Err(failure::of_code(code, verb, path, &said).unwrap_or_else(|| self.carrier.broken(&said)))
    }
}

impl std::fmt::Debug for RemoteEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteEnvironment")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl HostEnvironment for RemoteEnvironment {
    fn info(&self) -> EnvironmentInfo {
        self.info.clone()
    }

    async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
        let there = self.resolve(path)?;
        // One more, so that a file is seen to be too large; shells count to 2^63.
        let most = (max_bytes.min(i64::MAX as u64 - 1) + 1).to_string();
        let content = self
            .ask("read", path, &["read", &there, &most], None)
            .await?;
        if content.len() as u64 > max_bytes {
            let message = format!("cannot read `{path}`: it is larger than {max_bytes} bytes");
            return Err(EnvironmentError::new(Kind::TooLarge, message));
        }
        Ok(content)
    }

    async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        let there = self.resolve(path)?;
        let first = (offset.min(i64::MAX as u64 - 1) + 1).to_string();
        let most = max_bytes.min(i64::MAX as u64).to_string();
        self.ask("read", path, &["part", &there, &first, &most], None)
            .await
    }

    async fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        let there = self.resolve(path)?;
        let length = content.len().to_string();
        self.ask("write", path, &["write", &there, &length], Some(content))
            .await
            .map(drop)
    }

    async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        let there = self.resolve(path)?;
        let facts = self
            .ask("look at", path, &["stat", &there], None)
            .await
            .and_then(text)?;
        let mut fields = facts.trim_end().splitn(3, '|');
        let mut next = || fields.next().unwrap_or_default();
        let is_dir = next() == "directory";
        let size = next().parse().unwrap_or_default();
        Ok(Metadata {
            is_dir,
            size: if is_dir { 0 } else { size },
            modified_ms: milliseconds(next()),
        })
    }

    async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        let there = self.resolve(path)?;
        let real = self.ask("follow", path, &["real", &there], None).await?;
        Ok(normalised(&text(real)?))
    }

    async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let there = self.resolve(path)?;
        let depth = depth.max(1).to_string();
        let found = self
            .ask("list", path, &["list", &there, &depth], None)
            .await?;
        let found = String::from_utf8_lossy(&found);
        let mut entries: Vec<DirEntry> = found.lines().filter_map(entry).collect();
        let truncated = entries.len() > MAX_ENTRIES;
        entries.truncate(MAX_ENTRIES);
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Entries { entries, truncated })
    }

    async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        let there = self.resolve(path)?;
        self.ask("remove", path, &["remove", &there], None)
            .await
            .map(drop)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        let (source, target) = (self.resolve(from)?, self.resolve(to)?);
        let verb = format!("rename `{from}` to");
        let renamed = self
            .ask(&verb, to, &["rename", &source, &target], None)
            .await;
        renamed.map(drop).map_err(|error| match error.kind {
            Kind::NotFound => {
                let message = format!("cannot rename `{from}`: no such file or directory");
                EnvironmentError::new(Kind::NotFound, message)
            }
            _ => error,
        })
    }

    async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        let there = self.resolve(path)?;
        self.ask("make directory", path, &["make", &there], None)
            .await
            .map(drop)
    }

    async fn exec(
        &self,
        request: ExecRequest,
        io: ExecIo<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let shown = request.working_dir.as_deref().unwrap_or_default();
        let directory = self.resolve(shown)?;
        run::run(&self.carrier, &request, &directory, io).await
    }
}

fn text(bytes: Bytes) -> Result<String, EnvironmentError> {
    String::from_utf8(bytes.into()).map_err(|_| {
        EnvironmentError::new(Kind::InvalidInput, "a path there is not UTF-8".to_owned())
    })
}

/// One line of a listing: what it is, its size, its time and its path.
fn entry(line: &str) -> Option<DirEntry> {
    let mut fields = line.splitn(4, '|');
    let what = fields.next()?;
    let size = fields.next()?;
    let time = fields.next()?;
    let path = fields.next()?.strip_prefix("./")?;
    let is_dir = what == "directory";
    Some(DirEntry {
        path: path.to_owned(),
        is_dir,
        size: size.parse().ok().filter(|_| !is_dir),
        modified_ms: milliseconds(time),
    })
}

/// Seconds with or without fractions as milliseconds.
fn milliseconds(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let whole: u64 = whole.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    whole.checked_mul(1000)?.checked_add(fraction)
}

/// Minutes of an offset as `date +%z` writes it, such as `+0530`.
fn offset(text: &str) -> i32 {
    let number: i32 = text.parse().unwrap_or_default();
    number / 100 * 60 + number % 100
}

/// An absolute path without `.`, `..` and doubled `/`; its links are followed already.
fn normalised(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_offsets() {
        assert_eq!(milliseconds("1700000000.25"), Some(1_700_000_000_250));
        assert_eq!(milliseconds("1700000000"), Some(1_700_000_000_000));
        assert_eq!(milliseconds("-1"), None);
        assert_eq!(milliseconds(""), None);
        assert_eq!(offset("+0530"), 330);
        assert_eq!(offset("-0800"), -480);
        assert_eq!(offset("UTC"), 0);
    }

    #[test]
    fn lines_of_a_listing() {
        let found = entry("link|||./a|b").expect("an entry");
        assert_eq!(
            (found.path.as_str(), found.is_dir, found.size),
            ("a|b", false, None)
        );
        assert_eq!(entry("not one"), None);
    }

    #[test]
    fn paths_are_normalised() {
        assert_eq!(normalised("//a/./b/../c"), "/a/c");
        assert_eq!(normalised("/../.."), "/");
    }
}
