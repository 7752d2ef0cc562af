//! Conversions between the WIT types and plain data. Field by field, no logic.

use std::sync::Arc;

use hermitcrab::effect::{Approval, EffectKind, Outcome, OutcomeKind};
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, FileChange, FileNode, GlobRequest, GrepRequest,
    Match, Matches, Metadata, OutputStream, ProgramFiles, ProgramRequest, ProgramResult,
};
use hermitcrab::event::SessionState;
use hermitcrab::llm::{
    Auth, Content, HttpRequest, Media, MediaSource, Part, TransportError, TransportErrorKind,
};
use hermitcrab::memory::{Change, ChangeKind};
use hermitcrab::session::{
    Action, AgentCall, AgentStatus, JobReportKind, LogLine, SessionError, SessionErrorKind,
};

use super::wit;
use crate::core::{AgentInfo, CoreEffect};

// ---- WIT → data: what a step returns, and errors of calls ---------------------

/// An effect, its owner's name made by `owner`.
pub(super) fn effect(effect: wit::Effect, owner: impl FnOnce(String) -> Arc<str>) -> CoreEffect {
    CoreEffect {
        id: effect.id,
        owner: owner(effect.owner),
        kind: effect.request.into(),
    }
}

/// Parts in order.
pub(super) fn content(content: &Content) -> Vec<wit::Part> {
    let part = |part: &Part| match part {
        Part::Text { text } => wit::Part::Text(text.clone()),
        Part::Image(media) => wit::Part::Image(media.into()),
        Part::Document(media) => wit::Part::Document(media.into()),
    };
    content.parts().iter().map(part).collect()
}

impl From<Action> for wit::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::Exec(request) => Self::Exec(request.into()),
            Action::Call(call) => Self::Call(call.into()),
        }
    }
}

impl From<AgentCall> for wit::AgentCall {
    fn from(call: AgentCall) -> Self {
        match call {
            AgentCall::Steer(message) => Self::Steer(content(&message)),
            AgentCall::Interrupt => Self::Interrupt,
            AgentCall::Close => Self::Close,
        }
    }
}

impl From<wit::Agent> for AgentInfo {
    fn from(agent: wit::Agent) -> Self {
        Self {
            id: agent.id.into(),
            parent_id: agent.parent_id.into(),
            task: agent.task,
            state: agent.state.into(),
            status: match agent.status {
                wit::AgentStatus::Running => AgentStatus::Running,
                wit::AgentStatus::Completed => AgentStatus::Completed,
                wit::AgentStatus::Failed => AgentStatus::Failed,
            },
            depth: agent.depth,
            turns: agent.turns,
        }
    }
}

impl From<&Media> for wit::Attachment {
    fn from(media: &Media) -> Self {
        Self {
            data: match &media.source {
                MediaSource::Data(data) => data.to_vec(),
                // The core refuses it as it refuses what is empty.
                MediaSource::Url(_) => Vec::new(),
            },
            name: media.file_name.clone(),
            detail: media.detail.clone(),
        }
    }
}

impl From<wit::News> for JobReportKind {
    fn from(news: wit::News) -> Self {
        match news {
            wit::News::Output(output) => Self::Output {
                stream: output.pipe.into(),
                data: output.data.into(),
            },
            wit::News::Exec(result) => Self::Exec(result.map(Into::into).map_err(Into::into)),
            wit::News::Call(result) => Self::Call(result.map(Into::into).map_err(Into::into)),
        }
    }
}

impl From<wit::LogLine> for LogLine {
    fn from(wit::LogLine { log, line }: wit::LogLine) -> Self {
        Self { log, line }
    }
}

impl From<wit::EffectRequest> for EffectKind {
    fn from(request: wit::EffectRequest) -> Self {
        match request {
            wit::EffectRequest::Http(request) => Self::Http(request.into()),
            wit::EffectRequest::Exec(exec) => Self::Exec {
                environment: exec.environment,
                request: exec.request.into(),
            },
            wit::EffectRequest::Environment(effect) => Self::Environment {
                environment: effect.environment,
                call: effect.call.into(),
            },
            wit::EffectRequest::CallTool(call) => Self::CallTool {
                name: call.name,
                call_id: call.call_id,
                agent_id: call.agent_id,
                working_directory: call.working_directory,
                arguments: call.arguments,
            },
            wit::EffectRequest::RunProgram(request) => Self::RunProgram(request.into()),
            wit::EffectRequest::AskApproval(request) => Self::AskApproval {
                tool_name: request.tool_name,
                call_id: request.call_id,
                arguments: request.arguments,
                reason: request.reason,
            },
            wit::EffectRequest::Sleep(ms) => Self::Sleep { ms },
            wit::EffectRequest::Cancel(target) => Self::Cancel { target },
        }
    }
}

impl From<wit::HttpRequest> for HttpRequest {
    fn from(request: wit::HttpRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body.into(),
            auth: request.auth.map(|auth| Auth {
                credential: auth.credential,
                header: auth.header,
                prefix: auth.prefix,
            }),
            connect_timeout_ms: request.connect_timeout_ms,
        }
    }
}

impl From<wit::ProgramRequest> for ProgramRequest {
    fn from(request: wit::ProgramRequest) -> Self {
        Self {
            environment: request.environment,
            name: request.name,
            args: request.args,
            env: request.env.into_iter().collect(),
            working_dir: request.working_dir,
            stdin: request.stdin.into(),
            since: request.since,
            state: request.state,
            changes: request.changes.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<wit::Change> for Change {
    fn from(change: wit::Change) -> Self {
        Self {
            path: change.path,
            kind: match change.kind {
                wit::ChangeKind::Added => ChangeKind::Added,
                wit::ChangeKind::Changed => ChangeKind::Changed,
                wit::ChangeKind::Removed => ChangeKind::Removed,
            },
        }
    }
}

impl From<wit::SessionState> for SessionState {
    fn from(state: wit::SessionState) -> Self {
        match state {
            wit::SessionState::Idle => Self::Idle,
            wit::SessionState::Processing => Self::Processing,
            wit::SessionState::AwaitingInput => Self::AwaitingInput,
            wit::SessionState::Closed => Self::Closed,
        }
    }
}

impl From<wit::SessionError> for SessionError {
    fn from(error: wit::SessionError) -> Self {
        let kind = match error.kind {
            wit::SessionErrorKind::IllegalState => SessionErrorKind::IllegalState,
            wit::SessionErrorKind::Closed => SessionErrorKind::Closed,
            wit::SessionErrorKind::InvalidConfig => SessionErrorKind::InvalidConfig,
            wit::SessionErrorKind::UnknownProvider => SessionErrorKind::UnknownProvider,
            wit::SessionErrorKind::NotFound => SessionErrorKind::NotFound,
            wit::SessionErrorKind::InvalidTool => SessionErrorKind::InvalidTool,
            wit::SessionErrorKind::InvalidInput => SessionErrorKind::InvalidInput,
        };
        Self::new(kind, error.message)
    }
}

impl From<wit::EnvironmentReply> for EnvironmentReply {
    fn from(reply: wit::EnvironmentReply) -> Self {
        match reply {
            wit::EnvironmentReply::Done => Self::Done,
            wit::EnvironmentReply::Bytes(bytes) => Self::Bytes(bytes.into()),
            wit::EnvironmentReply::Stat(metadata) => Self::Stat(Metadata {
                is_dir: metadata.is_dir,
                size: metadata.size,
                modified_ms: metadata.modified_ms,
            }),
            wit::EnvironmentReply::Path(path) => Self::Path(path),
            wit::EnvironmentReply::Entries(entries) => Self::Entries(Entries {
                entries: entries
                    .entries
                    .into_iter()
                    .map(|entry| DirEntry {
                        path: entry.path,
                        is_dir: entry.is_dir,
                        size: entry.size,
                        modified_ms: entry.modified_ms,
                    })
                    .collect(),
                truncated: entries.truncated,
            }),
            wit::EnvironmentReply::Matches(matches) => Self::Matches(Matches {
                matches: matches
                    .matches
                    .into_iter()
                    .map(|found| Match {
                        path: found.path,
                        line: found.line,
                        text: found.text,
                    })
                    .collect(),
                truncated: matches.truncated,
            }),
        }
    }
}

impl From<wit::ExecStatus> for ExecStatus {
    fn from(status: wit::ExecStatus) -> Self {
        Self {
            exit_code: status.exit_code,
            timed_out: status.timed_out,
            cancelled: status.cancelled,
            duration_ms: status.duration_ms,
        }
    }
}

impl From<wit::Pipe> for OutputStream {
    fn from(pipe: wit::Pipe) -> Self {
        match pipe {
            wit::Pipe::Stdout => Self::Stdout,
            wit::Pipe::Stderr => Self::Stderr,
        }
    }
}

impl From<wit::EnvironmentError> for EnvironmentError {
    fn from(error: wit::EnvironmentError) -> Self {
        Self {
            kind: match error.kind {
                wit::EnvironmentErrorKind::NotFound => EnvironmentErrorKind::NotFound,
                wit::EnvironmentErrorKind::PermissionDenied => {
                    EnvironmentErrorKind::PermissionDenied
                }
                wit::EnvironmentErrorKind::IsDirectory => EnvironmentErrorKind::IsDirectory,
                wit::EnvironmentErrorKind::NotDirectory => EnvironmentErrorKind::NotDirectory,
                wit::EnvironmentErrorKind::ReadOnly => EnvironmentErrorKind::ReadOnly,
                wit::EnvironmentErrorKind::InvalidInput => EnvironmentErrorKind::InvalidInput,
                wit::EnvironmentErrorKind::TooLarge => EnvironmentErrorKind::TooLarge,
                wit::EnvironmentErrorKind::Unsupported => EnvironmentErrorKind::Unsupported,
                wit::EnvironmentErrorKind::Cancelled => EnvironmentErrorKind::Cancelled,
                wit::EnvironmentErrorKind::Io => EnvironmentErrorKind::Io,
            },
            message: error.message,
        }
    }
}

impl From<wit::FileChange> for FileChange {
    fn from(change: wit::FileChange) -> Self {
        Self {
            path: change.path,
            node: match change.node {
                wit::FileNode::File(content) => FileNode::File(content.into()),
                wit::FileNode::Directory => FileNode::Directory,
                wit::FileNode::Link(target) => FileNode::Link(target),
                wit::FileNode::Removed => FileNode::Removed,
            },
            mode: change.mode,
        }
    }
}

impl From<wit::ExecRequest> for ExecRequest {
    fn from(request: wit::ExecRequest) -> Self {
        Self {
            command: request.command,
            timeout_ms: request.timeout_ms,
            working_dir: request.working_dir,
            env: request.env.into_iter().collect(),
        }
    }
}

impl From<wit::EnvironmentCall> for EnvironmentCall {
    fn from(call: wit::EnvironmentCall) -> Self {
        match call {
            wit::EnvironmentCall::Initialize => Self::Initialize,
            wit::EnvironmentCall::Cleanup => Self::Cleanup,
            wit::EnvironmentCall::Read(wit::ReadCall { path, max_bytes }) => {
                Self::Read { path, max_bytes }
            }
            wit::EnvironmentCall::ReadPart(part) => Self::ReadPart {
                path: part.path,
                offset: part.offset,
                max_bytes: part.max_bytes,
            },
            wit::EnvironmentCall::Write(file) => Self::Write {
                path: file.path,
                content: file.content.into(),
            },
            wit::EnvironmentCall::Stat(path) => Self::Stat { path },
            wit::EnvironmentCall::RealPath(path) => Self::RealPath { path },
            wit::EnvironmentCall::List(wit::ListCall { path, depth }) => Self::List { path, depth },
            wit::EnvironmentCall::Remove(path) => Self::Remove { path },
            wit::EnvironmentCall::Rename(wit::RenameCall { from, to }) => Self::Rename { from, to },
            wit::EnvironmentCall::MakeDir(path) => Self::MakeDir { path },
            wit::EnvironmentCall::Grep(request) => Self::Grep(GrepRequest {
                pattern: request.pattern,
                path: request.path,
                glob_filter: request.glob_filter,
                case_insensitive: request.case_insensitive,
                max_results: request.max_results,
            }),
            wit::EnvironmentCall::Glob(request) => Self::Glob(GlobRequest {
                pattern: request.pattern,
                path: request.path,
                max_results: request.max_results,
            }),
        }
    }
}

// ---- Data → WIT: outcomes and arguments of calls ------------------------------

impl From<Outcome> for wit::Outcome {
    fn from(outcome: Outcome) -> Self {
        Self {
            id: outcome.id,
            news: outcome.kind.into(),
        }
    }
}

impl From<OutcomeKind> for wit::OutcomeNews {
    fn from(kind: OutcomeKind) -> Self {
        match kind {
            OutcomeKind::HttpHead { status, headers } => {
                Self::HttpHead(wit::HttpHead { status, headers })
            }
            OutcomeKind::HttpChunk(chunk) => Self::HttpChunk(chunk.into()),
            OutcomeKind::HttpEnd => Self::HttpEnd,
            OutcomeKind::HttpFailed(error) => Self::HttpFailed(error.into()),
            OutcomeKind::ExecOutput { stream, data } => Self::ExecOutput(wit::ExecOutput {
                pipe: stream.into(),
                data: data.into(),
            }),
            OutcomeKind::ExecEnd(status) => Self::ExecEnd(status.into()),
            OutcomeKind::ExecFailed(error) => Self::ExecFailed(error.into()),
            OutcomeKind::Environment(result) => {
                Self::Environment(result.map(Into::into).map_err(Into::into))
            }
            OutcomeKind::ToolOutput(text) => Self::ToolOutput(text),
            OutcomeKind::ToolEnd(result) => Self::ToolEnd(wit::ToolResult {
                content: content(&result.content),
                is_error: result.is_error,
            }),
            OutcomeKind::ProgramEnd(result) => Self::ProgramEnd(result.into()),
            OutcomeKind::Approval(Approval::Allow) => Self::Approval(wit::Approval::Allow),
            OutcomeKind::Approval(Approval::Deny { reason }) => {
                Self::Approval(wit::Approval::Deny(reason))
            }
            OutcomeKind::Approval(Approval::NoApprover) => {
                Self::Approval(wit::Approval::NoApprover)
            }
            OutcomeKind::Slept => Self::Slept,
            OutcomeKind::Cancelled => Self::Cancelled,
        }
    }
}

impl From<TransportError> for wit::TransportError {
    fn from(error: TransportError) -> Self {
        Self {
            kind: match error.kind {
                TransportErrorKind::Connect => wit::TransportErrorKind::Connect,
                TransportErrorKind::Timeout => wit::TransportErrorKind::Timeout,
                TransportErrorKind::Credential => wit::TransportErrorKind::Credential,
                TransportErrorKind::Invalid => wit::TransportErrorKind::Invalid,
                // `Broken`, and kinds that this contract does not know.
                _ => wit::TransportErrorKind::Broken,
            },
            message: error.message,
        }
    }
}

impl From<ProgramResult> for wit::ProgramResult {
    fn from(result: ProgramResult) -> Self {
        Self {
            exit_code: result.exit_code,
            stdout: result.stdout.into(),
            stderr: result.stderr.into(),
            changes: result.changes.into_iter().map(Into::into).collect(),
            files: match result.files {
                ProgramFiles::Kept => wit::ProgramFiles::Kept,
                ProgramFiles::Lost => wit::ProgramFiles::Lost,
                ProgramFiles::Missing => wit::ProgramFiles::Missing,
            },
        }
    }
}

impl From<EnvironmentInfo> for wit::EnvironmentInfo {
    fn from(info: EnvironmentInfo) -> Self {
        Self {
            working_directory: info.working_directory,
            platform: info.platform,
            os_version: info.os_version,
            utc_offset_minutes: info.utc_offset_minutes,
        }
    }
}

impl From<EnvironmentReply> for wit::EnvironmentReply {
    fn from(reply: EnvironmentReply) -> Self {
        match reply {
            EnvironmentReply::Done => Self::Done,
            EnvironmentReply::Bytes(bytes) => Self::Bytes(bytes.into()),
            EnvironmentReply::Stat(metadata) => Self::Stat(wit::Metadata {
                is_dir: metadata.is_dir,
                size: metadata.size,
                modified_ms: metadata.modified_ms,
            }),
            EnvironmentReply::Path(path) => Self::Path(path),
            EnvironmentReply::Entries(entries) => Self::Entries(wit::Entries {
                entries: entries
                    .entries
                    .into_iter()
                    .map(|entry| wit::DirEntry {
                        path: entry.path,
                        is_dir: entry.is_dir,
                        size: entry.size,
                        modified_ms: entry.modified_ms,
                    })
                    .collect(),
                truncated: entries.truncated,
            }),
            EnvironmentReply::Matches(matches) => Self::Matches(wit::Matches {
                matches: matches
                    .matches
                    .into_iter()
                    .map(|found| wit::LineMatch {
                        path: found.path,
                        line: found.line,
                        text: found.text,
                    })
                    .collect(),
                truncated: matches.truncated,
            }),
        }
    }
}

impl From<ExecStatus> for wit::ExecStatus {
    fn from(status: ExecStatus) -> Self {
        Self {
            exit_code: status.exit_code,
            timed_out: status.timed_out,
            cancelled: status.cancelled,
            duration_ms: status.duration_ms,
        }
    }
}

impl From<OutputStream> for wit::Pipe {
    fn from(stream: OutputStream) -> Self {
        match stream {
            OutputStream::Stdout => Self::Stdout,
            OutputStream::Stderr => Self::Stderr,
        }
    }
}

impl From<EnvironmentError> for wit::EnvironmentError {
    fn from(error: EnvironmentError) -> Self {
        Self {
            kind: match error.kind {
                EnvironmentErrorKind::NotFound => wit::EnvironmentErrorKind::NotFound,
                EnvironmentErrorKind::PermissionDenied => {
                    wit::EnvironmentErrorKind::PermissionDenied
                }
                EnvironmentErrorKind::IsDirectory => wit::EnvironmentErrorKind::IsDirectory,
                EnvironmentErrorKind::NotDirectory => wit::EnvironmentErrorKind::NotDirectory,
                EnvironmentErrorKind::ReadOnly => wit::EnvironmentErrorKind::ReadOnly,
                EnvironmentErrorKind::InvalidInput => wit::EnvironmentErrorKind::InvalidInput,
                EnvironmentErrorKind::TooLarge => wit::EnvironmentErrorKind::TooLarge,
                EnvironmentErrorKind::Unsupported => wit::EnvironmentErrorKind::Unsupported,
                EnvironmentErrorKind::Cancelled => wit::EnvironmentErrorKind::Cancelled,
                // `Io`, and kinds that this contract does not know.
                _ => wit::EnvironmentErrorKind::Io,
            },
            message: error.message,
        }
    }
}

impl From<FileChange> for wit::FileChange {
    fn from(change: FileChange) -> Self {
        Self {
            path: change.path,
            node: match change.node {
                FileNode::File(content) => wit::FileNode::File(content.into()),
                FileNode::Directory => wit::FileNode::Directory,
                FileNode::Link(target) => wit::FileNode::Link(target),
                FileNode::Removed => wit::FileNode::Removed,
            },
            mode: change.mode,
        }
    }
}

impl From<ExecRequest> for wit::ExecRequest {
    fn from(request: ExecRequest) -> Self {
        Self {
            command: request.command,
            timeout_ms: request.timeout_ms,
            working_dir: request.working_dir,
            env: request.env.into_iter().collect(),
        }
    }
}

impl From<EnvironmentCall> for wit::EnvironmentCall {
    fn from(call: EnvironmentCall) -> Self {
        match call {
            EnvironmentCall::Initialize => Self::Initialize,
            EnvironmentCall::Cleanup => Self::Cleanup,
            EnvironmentCall::Read { path, max_bytes } => {
                Self::Read(wit::ReadCall { path, max_bytes })
            }
            EnvironmentCall::ReadPart {
                path,
                offset,
                max_bytes,
            } => Self::ReadPart(wit::ReadPartCall {
                path,
                offset,
                max_bytes,
            }),
            EnvironmentCall::Write { path, content } => Self::Write(wit::File {
                path,
                content: content.into(),
            }),
            EnvironmentCall::Stat { path } => Self::Stat(path),
            EnvironmentCall::RealPath { path } => Self::RealPath(path),
            EnvironmentCall::List { path, depth } => Self::List(wit::ListCall { path, depth }),
            EnvironmentCall::Remove { path } => Self::Remove(path),
            EnvironmentCall::Rename { from, to } => Self::Rename(wit::RenameCall { from, to }),
            EnvironmentCall::MakeDir { path } => Self::MakeDir(path),
            EnvironmentCall::Grep(request) => Self::Grep(wit::GrepRequest {
                pattern: request.pattern,
                path: request.path,
                glob_filter: request.glob_filter,
                case_insensitive: request.case_insensitive,
                max_results: request.max_results,
            }),
            EnvironmentCall::Glob(request) => Self::Glob(wit::GlobRequest {
                pattern: request.pattern,
                path: request.path,
                max_results: request.max_results,
            }),
        }
    }
}
