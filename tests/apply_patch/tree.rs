//! A file tree in memory whose calls fail where a case says so.

use std::cell::RefCell;
use std::collections::BTreeMap;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, Metadata, OutputSink, Scope,
};
use serde::Deserialize;

/// One failure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    /// `read`, `write`, `remove` or `rename`.
    call: String,
    /// Path relative to the working directory; of a rename the old one.
    path: String,
    /// Calls that go well before.
    #[serde(default)]
    after: u32,
    /// The call takes effect all the same.
    #[serde(default)]
    late: bool,
    /// The call fires its scope's cancellation; every later call in that scope
    /// is refused.
    #[serde(default)]
    cancel: bool,
}

/// Directories and files by absolute path; `None` is a directory.
pub(crate) type Nodes = BTreeMap<String, Option<Bytes>>;

/// The tree, with `/work` as working directory.
pub(crate) struct Tree {
    info: EnvironmentInfo,
    nodes: RefCell<Nodes>,
    faults: RefCell<Vec<Fault>>,
}

impl Tree {
    pub(crate) fn new<'a>(files: impl Iterator<Item = (&'a str, Bytes)>, faults: &[Fault]) -> Self {
        let tree = Self {
            info: EnvironmentInfo {
                working_directory: "/work".to_owned(),
                platform: "linux".to_owned(),
                os_version: String::new(),
                utc_offset_minutes: 0,
                bounds: String::new(),
                warning: String::new(),
            },
            nodes: RefCell::default(),
            faults: RefCell::new(faults.to_vec()),
        };
        tree.make_dir("/work").expect("a directory");
        for (path, content) in files {
            tree.write(&absolute(path), content).expect("a file");
        }
        tree
    }

    /// Everything below the working directory.
    pub(crate) fn nodes(&self) -> Nodes {
        let nodes = self.nodes.borrow();
        let below = nodes.iter().filter_map(|(path, node)| {
            let path = path.strip_prefix("/work/")?;
            Some((path.to_owned(), node.clone()))
        });
        below.collect()
    }

    fn node(&self, path: &str) -> Result<Option<Bytes>, EnvironmentError> {
        let nodes = self.nodes.borrow();
        if let Some(node) = nodes.get(path) {
            return Ok(node.clone());
        }
        for (at, _) in path.match_indices('/') {
            if matches!(nodes.get(&path[..at]), Some(Some(_))) {
                return Err(fail(EnvironmentErrorKind::NotDirectory, "not a directory"));
            }
        }
        Err(fail(EnvironmentErrorKind::NotFound, "no such file"))
    }

    fn make_dir(&self, path: &str) -> Result<(), EnvironmentError> {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        for end in ends.filter(|end| *end > 0) {
            match self.node(&path[..end]) {
                Ok(None) => {}
                Ok(Some(_)) => {
                    return Err(fail(EnvironmentErrorKind::NotDirectory, "not a directory"));
                }
                Err(_) => {
                    self.nodes.borrow_mut().insert(path[..end].to_owned(), None);
                }
            }
        }
        Ok(())
    }

    fn write(&self, path: &str, content: Bytes) -> Result<(), EnvironmentError> {
        if let Ok(None) = self.node(path) {
            return Err(fail(EnvironmentErrorKind::IsDirectory, "is a directory"));
        }
        let (parent, _) = path.rsplit_once('/').expect("an absolute path");
        self.make_dir(parent)?;
        self.nodes
            .borrow_mut()
            .insert(path.to_owned(), Some(content));
        Ok(())
    }

    fn answer(&self, call: &EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError> {
        match call {
            EnvironmentCall::Read { path, .. } => match self.node(&absolute(path))? {
                Some(content) => return Ok(EnvironmentReply::Bytes(content)),
                None => return Err(fail(EnvironmentErrorKind::IsDirectory, "is a directory")),
            },
            EnvironmentCall::Stat { path } => {
                let node = self.node(&absolute(path))?;
                return Ok(EnvironmentReply::Stat(Metadata {
                    is_dir: node.is_none(),
                    size: node.map_or(0, |content| content.len() as u64),
                    modified_ms: None,
                }));
            }
            EnvironmentCall::List { path, depth } => {
                let path = absolute(path);
                self.node(&path)?;
                let below = format!("{path}/");
                let nodes = self.nodes.borrow();
                let entries = nodes.iter().filter_map(|(path, node)| {
                    let path = path.strip_prefix(&below)?;
                    (path.matches('/').count() < *depth as usize).then(|| DirEntry {
                        path: path.to_owned(),
                        is_dir: node.is_none(),
                        size: None,
                        modified_ms: None,
                    })
                });
                return Ok(EnvironmentReply::Entries(Entries {
                    entries: entries.collect(),
                    truncated: false,
                }));
            }
            EnvironmentCall::Write { path, content } => {
                self.write(&absolute(path), content.clone())?;
            }
            EnvironmentCall::Remove { path } => {
                let path = absolute(path);
                self.node(&path)?;
                let below = format!("{path}/");
                let mut nodes = self.nodes.borrow_mut();
                nodes.retain(|other, _| *other != path && !other.starts_with(&below));
            }
            EnvironmentCall::Rename { from, to } => {
                let content = self.node(&absolute(from))?;
                let (parent, _) = to.rsplit_once('/').expect("an absolute path");
                self.node(parent)?;
                let mut nodes = self.nodes.borrow_mut();
                nodes.remove(&absolute(from));
                nodes.insert(absolute(to), content);
            }
            EnvironmentCall::MakeDir { path } => self.make_dir(&absolute(path))?,
            _ => return Err(fail(EnvironmentErrorKind::Unsupported, "unsupported")),
        }
        Ok(EnvironmentReply::Done)
    }

    /// The fault that strikes `call`.
    fn strike(&self, call: &EnvironmentCall) -> Option<Fault> {
        let (name, path) = match call {
            EnvironmentCall::Read { path, .. } => ("read", path),
            EnvironmentCall::Write { path, .. } => ("write", path),
            EnvironmentCall::Remove { path } => ("remove", path),
            EnvironmentCall::Rename { from, .. } => ("rename", from),
            _ => return None,
        };
        let mut faults = self.faults.borrow_mut();
        let index = faults
            .iter()
            .position(|fault| fault.call == name && absolute(&fault.path) == absolute(path))?;
        if faults[index].after > 0 {
            faults[index].after -= 1;
            return None;
        }
        Some(faults.remove(index))
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for Tree {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        let cancelled = || Err(fail(EnvironmentErrorKind::Cancelled, "cancelled"));
        if scope.cancel.is_cancelled() {
            return cancelled();
        }
        let Some(fault) = self.strike(&call) else {
            return self.answer(&call);
        };
        if fault.late {
            self.answer(&call)?;
        }
        if fault.cancel {
            scope.cancel.cancel();
            return cancelled();
        }
        Err(fail(EnvironmentErrorKind::Io, "no space left on device"))
    }

    async fn exec(
        &self,
        _scope: &Scope,
        _request: ExecRequest,
        _output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        Err(fail(EnvironmentErrorKind::Unsupported, "unsupported"))
    }
}

fn fail(kind: EnvironmentErrorKind, message: &str) -> EnvironmentError {
    EnvironmentError::new(kind, message)
}

fn absolute(path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("/work/{path}")
    }
}
