//! A real, small environment for native tests: files in an ordered map, no
//! commands, no search. (MemoryEnvironment exists on wasm32 only.)

use std::cell::RefCell;
use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, Metadata, OutputSink, Scope,
    absolute_path,
};

/// Files below `/`, with `/work` as working directory. A directory is there as
/// soon as a file below it is. Every write is one ms later than the one before.
pub(crate) struct TreeEnvironment {
    info: EnvironmentInfo,
    files: RefCell<BTreeMap<String, (Bytes, u64)>>,
}

impl TreeEnvironment {
    /// `files`: paths relative to `/work`, with contents, oldest first.
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let tree = Self {
            info: EnvironmentInfo {
                working_directory: "/work".to_owned(),
                platform: "wasm".to_owned(),
                os_version: String::new(),
                utc_offset_minutes: 0,
                bounds: String::new(),
                warning: String::new(),
            },
            files: RefCell::default(),
        };
        for (path, content) in files {
            tree.write(path, Bytes::copy_from_slice(content));
        }
        tree
    }

    /// Content of a file.
    pub(crate) fn content(&self, path: &str) -> Option<Bytes> {
        let files = self.files.borrow();
        let file = files.get(&absolute_path("/work", path));
        file.map(|(content, _)| content.clone())
    }

    pub(crate) fn write(&self, path: &str, content: Bytes) {
        let mut files = self.files.borrow_mut();
        let modified = files.values().map(|(_, modified)| modified + 1).max();
        let path = absolute_path("/work", path);
        files.insert(path, (content, modified.unwrap_or(1)));
    }

    fn is_dir(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        let files = self.files.borrow();
        path == "/work" || files.keys().any(|file| file.starts_with(&below))
    }

    fn answer(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        let fail = |kind, what: &str, path: &str| {
            Err(EnvironmentError::new(kind, format!("{what}: {path}")))
        };
        match call {
            EnvironmentCall::Initialize
            | EnvironmentCall::Cleanup
            | EnvironmentCall::MakeDir { .. } => Ok(EnvironmentReply::Done),
            EnvironmentCall::Read { path, max_bytes } => match self.content(&path) {
                Some(content) if content.len() as u64 > max_bytes => {
                    fail(EnvironmentErrorKind::TooLarge, "file too large", &path)
                }
                Some(content) => Ok(EnvironmentReply::Bytes(content)),
                None if self.is_dir(&absolute_path("/work", &path)) => {
                    fail(EnvironmentErrorKind::IsDirectory, "is a directory", &path)
                }
                None => fail(EnvironmentErrorKind::NotFound, "no such file", &path),
            },
            EnvironmentCall::Write { path, content } => {
                if self.is_dir(&absolute_path("/work", &path)) {
                    return fail(EnvironmentErrorKind::IsDirectory, "is a directory", &path);
                }
                self.write(&path, content);
                Ok(EnvironmentReply::Done)
            }
            EnvironmentCall::Stat { path } => {
                let absolute = absolute_path("/work", &path);
                if let Some((content, modified)) = self.files.borrow().get(&absolute) {
                    return Ok(EnvironmentReply::Stat(Metadata {
                        is_dir: false,
                        size: content.len() as u64,
                        modified_ms: Some(*modified),
                    }));
                }
                if self.is_dir(&absolute) {
                    return Ok(EnvironmentReply::Stat(Metadata {
                        is_dir: true,
                        size: 0,
                        modified_ms: None,
                    }));
                }
                fail(EnvironmentErrorKind::NotFound, "no such file", &path)
            }
            EnvironmentCall::ReadPart {
                path,
                offset,
                max_bytes,
            } => match self.content(&absolute_path("/work", &path)) {
                Some(content) => {
                    let place = |at: u64| (at as usize).min(content.len());
                    let part = place(offset)..place(offset + max_bytes);
                    Ok(EnvironmentReply::Bytes(content.slice(part)))
                }
                None => fail(EnvironmentErrorKind::NotFound, "no such file", &path),
            },
            EnvironmentCall::List { path, depth } => {
                let absolute = absolute_path("/work", &path);
                if !self.is_dir(&absolute) {
                    return fail(EnvironmentErrorKind::NotFound, "no such directory", &path);
                }
                let below = format!("{}/", absolute.trim_end_matches('/'));
                let mut entries = BTreeMap::new();
                for (file, (content, modified)) in &*self.files.borrow() {
                    let Some(relative) = file.strip_prefix(&below) else {
                        continue;
                    };
                    let parts: Vec<_> = relative.split('/').collect();
                    for level in 1..=parts.len().min(depth as usize) {
                        let is_dir = level < parts.len();
                        let path = parts[..level].join("/");
                        let entry = DirEntry {
                            path: path.clone(),
                            is_dir,
                            size: (!is_dir).then_some(content.len() as u64),
                            modified_ms: (!is_dir).then_some(*modified),
                        };
                        entries.insert(path, entry);
                    }
                }
                Ok(EnvironmentReply::Entries(Entries {
                    entries: entries.into_values().collect(),
                    truncated: false,
                }))
            }
            EnvironmentCall::Remove { .. } | EnvironmentCall::Rename { .. } => {
                fail(EnvironmentErrorKind::Unsupported, "unsupported", "")
            }
            EnvironmentCall::RealPath { path } => {
                fail(EnvironmentErrorKind::Unsupported, "no links", &path)
            }
            EnvironmentCall::Grep(_) | EnvironmentCall::Glob(_) => {
                fail(EnvironmentErrorKind::Unsupported, "no search", "")
            }
        }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for TreeEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        _scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.answer(call)
    }

    async fn exec(
        &self,
        _scope: &Scope,
        _request: ExecRequest,
        _output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        Err(EnvironmentError::new(
            EnvironmentErrorKind::Unsupported,
            "this environment runs no commands",
        ))
    }
}
