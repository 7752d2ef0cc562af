//! `Environment`: an environment together with a scope; what tools hold.

use std::rc::Rc;

use bytes::Bytes;

use super::{
    Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, GlobRequest, GrepRequest,
    Matches, Metadata, OutputSink, Scope, glob_files, grep_files,
};

/// An execution environment seen from one scope, with a method per call.
#[derive(Clone)]
pub struct Environment {
    inner: Rc<dyn ExecutionEnvironment>,
    scope: Scope,
}

impl Environment {
    /// Binds `inner` to `scope`.
    pub fn new(inner: Rc<dyn ExecutionEnvironment>, scope: Scope) -> Self {
        Self { inner, scope }
    }

    /// The scope that calls are made in.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The same environment, seen from `scope`.
    pub(crate) fn within(&self, scope: Scope) -> Self {
        Self::new(self.inner.clone(), scope)
    }

    /// The same environment for the same owner, out of reach of the scope's
    /// cancellation: for what must be put back in order after an interrupt.
    pub(crate) fn detached(&self) -> Self {
        Self::new(self.inner.clone(), Scope::new(self.scope.owner.clone()))
    }

    /// Fixed facts of the environment.
    pub fn info(&self) -> &EnvironmentInfo {
        self.inner.info()
    }

    /// `path` as an absolute, normalised path (no `.`, `..` or `//`).
    pub fn absolute(&self, path: &str) -> String {
        absolute_path(&self.info().working_directory, path)
    }

    /// Makes any call; searches on top of `List` and `Read` where the
    /// environment cannot search, and takes paths as they are where
    /// it has no links.
    pub async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        match call {
            EnvironmentCall::Grep(request) => {
                self.grep(request).await.map(EnvironmentReply::Matches)
            }
            EnvironmentCall::Glob(request) => {
                self.glob(request).await.map(EnvironmentReply::Entries)
            }
            EnvironmentCall::RealPath { path } => {
                self.real_path(&path).await.map(EnvironmentReply::Path)
            }
            call => self.inner.call(&self.scope, call).await,
        }
    }

    /// Sends `Initialize`.
    pub async fn initialize(&self) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::Initialize).await
    }

    /// Sends `Cleanup`.
    pub async fn cleanup(&self) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::Cleanup).await
    }

    /// Content of a file of at most `max_bytes` bytes.
    pub async fn read(&self, path: &str, max_bytes: u64) -> Result<Bytes, EnvironmentError> {
        let call = EnvironmentCall::Read {
            path: path.to_owned(),
            max_bytes,
        };
        match self.inner.call(&self.scope, call).await? {
            EnvironmentReply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected("read", &other)),
        }
    }

    /// At most `max_bytes` bytes of a file from `offset` on; none behind its end.
    pub async fn read_part(
        &self,
        path: &str,
        offset: u64,
        max_bytes: u64,
    ) -> Result<Bytes, EnvironmentError> {
        let call = EnvironmentCall::ReadPart {
            path: path.to_owned(),
            offset,
            max_bytes,
        };
        match self.inner.call(&self.scope, call).await? {
            EnvironmentReply::Bytes(bytes) => Ok(bytes),
            other => Err(unexpected("read part", &other)),
        }
    }

    /// Replaces or creates a file.
    pub async fn write(
        &self,
        path: &str,
        content: impl Into<Bytes>,
    ) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::Write {
            path: path.to_owned(),
            content: content.into(),
        })
        .await
    }

    /// Facts of a path.
    pub async fn stat(&self, path: &str) -> Result<Metadata, EnvironmentError> {
        let call = EnvironmentCall::Stat {
            path: path.to_owned(),
        };
        match self.inner.call(&self.scope, call).await? {
            EnvironmentReply::Stat(metadata) => Ok(metadata),
            other => Err(unexpected("stat", &other)),
        }
    }

    /// Where `path` leads, links followed, whether or not something is there;
    /// where the environment knows no links, its absolute form.
    pub async fn real_path(&self, path: &str) -> Result<String, EnvironmentError> {
        let call = EnvironmentCall::RealPath {
            path: path.to_owned(),
        };
        match self.inner.call(&self.scope, call).await {
            Ok(EnvironmentReply::Path(path)) => Ok(path),
            Ok(other) => Err(unexpected("real path", &other)),
            Err(error) if error.kind == EnvironmentErrorKind::Unsupported => {
                Ok(self.absolute(path))
            }
            Err(error) => Err(error),
        }
    }

    /// Whether something is at `path` (spec 4.1 `file_exists`).
    pub async fn exists(&self, path: &str) -> Result<bool, EnvironmentError> {
        match self.stat(path).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind == EnvironmentErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Entries below a directory, `depth` levels deep.
    pub async fn list(&self, path: &str, depth: u32) -> Result<Entries, EnvironmentError> {
        let call = EnvironmentCall::List {
            path: path.to_owned(),
            depth,
        };
        self.entries("list", call).await
    }

    /// Removes a file or a directory tree.
    pub async fn remove(&self, path: &str) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::Remove {
            path: path.to_owned(),
        })
        .await
    }

    /// Renames a file or directory.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
        })
        .await
    }

    /// Makes a directory and its parents.
    pub async fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        self.done(EnvironmentCall::MakeDir {
            path: path.to_owned(),
        })
        .await
    }

    /// Searches file contents; on top of `List` and `Read` where the
    /// environment cannot search.
    pub async fn grep(&self, request: GrepRequest) -> Result<Matches, EnvironmentError> {
        let call = EnvironmentCall::Grep(request.clone());
        match self.inner.call(&self.scope, call).await {
            Ok(EnvironmentReply::Matches(matches)) => Ok(matches),
            Ok(other) => Err(unexpected("grep", &other)),
            Err(error) if error.kind == EnvironmentErrorKind::Unsupported => {
                grep_files(self, &request).await
            }
            Err(error) => Err(error),
        }
    }

    /// Finds files by name, newest first; on top of `List` where the
    /// environment cannot search.
    pub async fn glob(&self, request: GlobRequest) -> Result<Entries, EnvironmentError> {
        let call = EnvironmentCall::Glob(request.clone());
        match self.entries("glob", call).await {
            Err(error) if error.kind == EnvironmentErrorKind::Unsupported => {
                glob_files(self, &request).await
            }
            result => result,
        }
    }

    /// Runs a command; output goes to `output` as it arrives.
    pub async fn exec(
        &self,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        self.inner.exec(&self.scope, request, output).await
    }

    async fn done(&self, call: EnvironmentCall) -> Result<(), EnvironmentError> {
        match self.inner.call(&self.scope, call).await? {
            EnvironmentReply::Done => Ok(()),
            other => Err(unexpected("call", &other)),
        }
    }

    async fn entries(
        &self,
        name: &str,
        call: EnvironmentCall,
    ) -> Result<Entries, EnvironmentError> {
        match self.inner.call(&self.scope, call).await? {
            EnvironmentReply::Entries(entries) => Ok(entries),
            other => Err(unexpected(name, &other)),
        }
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment")
            .field("info", self.info())
            .field("scope", &self.scope)
            .finish()
    }
}

/// Joins `path` to `base` and normalises it lexically; never leaves `/`.
pub(crate) fn absolute_path(base: &str, path: &str) -> String {
    let joined = if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{base}/{path}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in joined.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Whether the absolute `path` is `directory` or lies below it.
pub(crate) fn is_within(path: &str, directory: &str) -> bool {
    let rest = path.strip_prefix(directory.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn unexpected(call: &str, reply: &EnvironmentReply) -> EnvironmentError {
    let got = match reply {
        EnvironmentReply::Done => "done",
        EnvironmentReply::Bytes(_) => "bytes",
        EnvironmentReply::Stat(_) => "stat",
        EnvironmentReply::Path(_) => "path",
        EnvironmentReply::Entries(_) => "entries",
        EnvironmentReply::Matches(_) => "matches",
    };
    EnvironmentError::new(
        EnvironmentErrorKind::Io,
        format!("the environment answered {call} with {got}; fix its host implementation"),
    )
}
