//! Applies a patch to a directory with the tool that models use:
//!
//! ```text
//! cargo run --example apply_patch DIRECTORY < PATCH
//! ```
//!
//! It shows a tool called without a session, over an environment of one's own,
//! and is our side of the comparison in `tests/peers/apply-patch.mjs`.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::{fs, io};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use hermitcrab::effect::EffectPort;
use hermitcrab::environment::{
    DirEntry, Entries, Environment, EnvironmentCall, EnvironmentError, EnvironmentErrorKind,
    EnvironmentInfo, EnvironmentReply, ExecRequest, ExecStatus, ExecutionEnvironment, Metadata,
    OutputSink, Scope,
};
use hermitcrab::llm::ToolDefinition;
use hermitcrab::tool::{
    ApplyPatch, BackgroundCommands, CallContext, FileLocks, KnownFiles, Timeouts,
};
use serde_json::json;

fn main() -> ExitCode {
    let Some(directory) = std::env::args().nth(1) else {
        eprintln!("usage: apply_patch DIRECTORY < PATCH");
        return ExitCode::from(2);
    };
    match run(&directory) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run(directory: &str) -> Result<String, String> {
    let mut patch = String::new();
    let read = io::stdin().read_to_string(&mut patch);
    read.map_err(|error| format!("cannot read the patch: {error}"))?;
    let disk = Disk::new(directory).map_err(|error| format!("{directory}: {error}"))?;
    let tool = ApplyPatch::tool(ToolDefinition {
        name: "apply_patch".to_owned(),
        description: String::new(),
        parameters: json!({"type": "object"}),
        custom: Some(ApplyPatch::freeform()),
        strict: None,
        unchecked: false,
    });
    let scope = Scope::new("example");
    let call = CallContext {
        environment: Environment::new(Rc::new(disk), scope.clone()),
        call_id: "call".into(),
        scope,
        port: EffectPort::new(),
        timeouts: Timeouts::default(),
        max_captured_bytes: usize::MAX,
        files: FileLocks::default(),
        known: KnownFiles::default(),
        background: BackgroundCommands::default(),
        gate: None,
        progress: Rc::new(|_, _| ()),
    };
    let invocation = tool.read(json!({ "patch": patch }));
    let invocation = invocation.map_err(|error| error.message)?;
    let executed = invocation.execute(&call).now_or_never();
    // The disk answers at once, so the call never waits.
    match executed.ok_or("the call is still waiting")? {
        Ok(output) => Ok(output.text),
        Err(error) => Err(error.message),
    }
}

/// The files below one directory, without commands and without search.
struct Disk {
    info: EnvironmentInfo,
}

impl Disk {
    fn new(directory: &str) -> io::Result<Self> {
        let root = fs::canonicalize(directory)?;
        Ok(Self {
            info: EnvironmentInfo {
                working_directory: root.to_string_lossy().into_owned(),
                platform: std::env::consts::OS.to_owned(),
                os_version: String::new(),
                utc_offset_minutes: 0,
                bounds: String::new(),
                warning: String::new(),
            },
        })
    }

    fn path(&self, path: &str) -> PathBuf {
        Path::new(&self.info.working_directory).join(path)
    }

    fn answer(&self, call: &EnvironmentCall) -> io::Result<EnvironmentReply> {
        match call {
            EnvironmentCall::Read { path, .. } => {
                let content = fs::read(self.path(path))?;
                return Ok(EnvironmentReply::Bytes(content.into()));
            }
            EnvironmentCall::Stat { path } => {
                let found = fs::metadata(self.path(path))?;
                return Ok(EnvironmentReply::Stat(Metadata {
                    is_dir: found.is_dir(),
                    size: if found.is_dir() { 0 } else { found.len() },
                    modified_ms: None,
                }));
            }
            EnvironmentCall::List { path, depth } => {
                let mut entries = Vec::new();
                list(&self.path(path), "", *depth, &mut entries)?;
                entries.sort_by(|a, b| a.path.cmp(&b.path));
                let truncated = false;
                return Ok(EnvironmentReply::Entries(Entries { entries, truncated }));
            }
            EnvironmentCall::Write { path, content } => {
                let path = self.path(path);
                if let Some(parent) = path.parent() {
                    fs::create_dir_all(parent)?;
                }
                fs::write(path, content)?;
            }
            EnvironmentCall::Remove { path } => {
                let path = self.path(path);
                if path.is_dir() {
                    fs::remove_dir_all(path)?;
                } else {
                    fs::remove_file(path)?;
                }
            }
            EnvironmentCall::Rename { from, to } => fs::rename(self.path(from), self.path(to))?,
            EnvironmentCall::MakeDir { path } => fs::create_dir_all(self.path(path))?,
            EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {}
            EnvironmentCall::ReadPart { .. }
            | EnvironmentCall::RealPath { .. }
            | EnvironmentCall::Grep(_)
            | EnvironmentCall::Glob(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }
        Ok(EnvironmentReply::Done)
    }
}

fn list(directory: &Path, prefix: &str, depth: u32, entries: &mut Vec<DirEntry>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let is_dir = entry.file_type()?.is_dir();
        if is_dir && depth > 1 {
            list(&entry.path(), &format!("{path}/"), depth - 1, entries)?;
        }
        entries.push(DirEntry {
            path,
            is_dir,
            size: None,
            modified_ms: None,
        });
    }
    Ok(())
}

#[async_trait(?Send)]
impl ExecutionEnvironment for Disk {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        _scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.answer(&call).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound => EnvironmentErrorKind::NotFound,
                io::ErrorKind::NotADirectory => EnvironmentErrorKind::NotDirectory,
                io::ErrorKind::IsADirectory => EnvironmentErrorKind::IsDirectory,
                io::ErrorKind::PermissionDenied => EnvironmentErrorKind::PermissionDenied,
                io::ErrorKind::Unsupported => EnvironmentErrorKind::Unsupported,
                _ => EnvironmentErrorKind::Io,
            };
            EnvironmentError::new(kind, error.to_string())
        })
    }

    async fn exec(
        &self,
        _scope: &Scope,
        _request: ExecRequest,
        _output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let kind = EnvironmentErrorKind::Unsupported;
        Err(EnvironmentError::new(
            kind,
            "this environment runs no commands",
        ))
    }
}
