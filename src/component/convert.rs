//! Conversions between the WIT types and the core's own. Field by field, no logic.

use super::wit;
use crate::effect::{Approval, Effect, EffectKind, HostToolResult, Outcome, OutcomeKind};
use crate::environment::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, FileChange, FileNode, GlobRequest, GrepRequest,
    Match, Matches, Metadata, OutputStream, ProgramFiles, ProgramRequest, ProgramResult,
};
use crate::event::SessionState;
use crate::llm::{
    Content, HttpRequest, Media, MediaSource, Part, TransportError, TransportErrorKind,
};
use crate::memory::{Change, ChangeKind};
use crate::session::{
    Action, AgentCall, AgentInfo, AgentStatus, JobReport, JobReportKind, LogLine, SessionError,
    SessionErrorKind, SessionEvent, Step,
};

// ---- Core → WIT: what a step returns, and errors of calls ---------------------

/// Parts in order.
pub(super) fn content(parts: Vec<wit::Part>) -> Content {
    let part = |part| match part {
        wit::Part::Text(text) => Part::Text { text },
        wit::Part::Image(image) => Part::Image(image.into()),
        wit::Part::Document(document) => Part::Document(document.into()),
    };
    parts.into_iter().map(part).collect::<Vec<_>>().into()
}

impl From<wit::Action> for Action {
    fn from(action: wit::Action) -> Self {
        match action {
            wit::Action::Exec(request) => Self::Exec(request.into()),
            wit::Action::Call(call) => Self::Call(call.into()),
        }
    }
}

impl From<AgentInfo> for wit::Agent {
    fn from(agent: AgentInfo) -> Self {
        Self {
            id: agent.id.to_string(),
            parent_id: agent.parent_id.to_string(),
            task: agent.task.to_string(),
            state: agent.state.into(),
            status: match agent.status {
                AgentStatus::Running => wit::AgentStatus::Running,
                AgentStatus::Completed => wit::AgentStatus::Completed,
                AgentStatus::Failed => wit::AgentStatus::Failed,
            },
            depth: agent.depth,
            turns: agent.turns,
        }
    }
}

impl From<wit::AgentCall> for AgentCall {
    fn from(call: wit::AgentCall) -> Self {
        match call {
            wit::AgentCall::Steer(message) => Self::Steer(content(message)),
            wit::AgentCall::Interrupt => Self::Interrupt,
            wit::AgentCall::Close => Self::Close,
        }
    }
}

impl From<wit::Attachment> for Media {
    fn from(attachment: wit::Attachment) -> Self {
        Self {
            source: MediaSource::Data(attachment.data.into()),
            media_type: String::new(),
            detail: attachment.detail,
            file_name: attachment.name,
        }
    }
}

impl From<Step> for wit::StepResult {
    fn from(step: Step) -> Self {
        Self {
            events: step.events.into_iter().map(Into::into).collect(),
            reports: step.reports.into_iter().map(Into::into).collect(),
            effects: step.effects.into_iter().map(Into::into).collect(),
            log: step.log.into_iter().map(Into::into).collect(),
            busy: step.busy,
        }
    }
}

impl From<SessionEvent> for wit::Event {
    fn from(event: SessionEvent) -> Self {
        Self {
            session_id: event.session_id.to_string(),
            json: event.json.into(),
        }
    }
}

impl From<LogLine> for wit::LogLine {
    fn from(LogLine { log, line }: LogLine) -> Self {
        Self { log, line }
    }
}

impl From<JobReport> for wit::Report {
    fn from(report: JobReport) -> Self {
        Self {
            job: report.job.to_string(),
            news: match report.kind {
                JobReportKind::Output { stream, data } => wit::News::Output(wit::ExecOutput {
                    pipe: stream.into(),
                    data: data.into(),
                }),
                JobReportKind::Exec(result) => {
                    wit::News::Exec(result.map(Into::into).map_err(Into::into))
                }
                JobReportKind::Call(result) => {
                    wit::News::Call(result.map(Into::into).map_err(Into::into))
                }
            },
        }
    }
}

impl From<Effect> for wit::Effect {
    fn from(effect: Effect) -> Self {
        Self {
            id: effect.id,
            owner: effect.owner.to_string(),
            request: effect.kind.into(),
        }
    }
}

impl From<EffectKind> for wit::EffectRequest {
    fn from(kind: EffectKind) -> Self {
        match kind {
            EffectKind::Http(request) => Self::Http(request.into()),
            EffectKind::Exec {
                environment,
                request,
            } => Self::Exec(wit::ExecEffect {
                environment,
                request: request.into(),
            }),
            EffectKind::Environment { environment, call } => {
                Self::Environment(wit::EnvironmentEffect {
                    environment,
                    call: call.into(),
                })
            }
            EffectKind::CallTool {
                name,
                call_id,
                agent_id,
                working_directory,
                arguments,
            } => Self::CallTool(wit::ToolCall {
                name,
                call_id,
                agent_id,
                working_directory,
                arguments,
            }),
            EffectKind::RunProgram(request) => Self::RunProgram(request.into()),
            EffectKind::AskApproval {
                tool_name,
                call_id,
                arguments,
                reason,
            } => Self::AskApproval(wit::ApprovalRequest {
                tool_name,
                call_id,
                arguments,
                reason,
            }),
            EffectKind::Sleep { ms } => Self::Sleep(ms),
            EffectKind::Cancel { target } => Self::Cancel(target),
        }
    }
}

impl From<HttpRequest> for wit::HttpRequest {
    fn from(request: HttpRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body.into(),
            auth: request.auth.map(|auth| wit::Auth {
                credential: auth.credential,
                header: auth.header,
                prefix: auth.prefix,
            }),
            connect_timeout_ms: request.connect_timeout_ms,
        }
    }
}

impl From<ProgramRequest> for wit::ProgramRequest {
    fn from(request: ProgramRequest) -> Self {
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
                EnvironmentErrorKind::Io => wit::EnvironmentErrorKind::Io,
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

impl From<Change> for wit::Change {
    fn from(change: Change) -> Self {
        Self {
            path: change.path,
            kind: match change.kind {
                ChangeKind::Added => wit::ChangeKind::Added,
                ChangeKind::Changed => wit::ChangeKind::Changed,
                ChangeKind::Removed => wit::ChangeKind::Removed,
            },
        }
    }
}

impl From<SessionState> for wit::SessionState {
    fn from(state: SessionState) -> Self {
        match state {
            SessionState::Idle => Self::Idle,
            SessionState::Processing => Self::Processing,
            SessionState::AwaitingInput => Self::AwaitingInput,
            SessionState::Closed => Self::Closed,
        }
    }
}

impl From<SessionError> for wit::SessionError {
    fn from(error: SessionError) -> Self {
        Self {
            kind: match error.kind {
                SessionErrorKind::IllegalState => wit::SessionErrorKind::IllegalState,
                SessionErrorKind::Closed => wit::SessionErrorKind::Closed,
                SessionErrorKind::InvalidConfig => wit::SessionErrorKind::InvalidConfig,
                SessionErrorKind::UnknownProvider => wit::SessionErrorKind::UnknownProvider,
                SessionErrorKind::NotFound => wit::SessionErrorKind::NotFound,
                SessionErrorKind::InvalidTool => wit::SessionErrorKind::InvalidTool,
                SessionErrorKind::InvalidInput => wit::SessionErrorKind::InvalidInput,
            },
            message: error.message,
        }
    }
}

// ---- WIT → core: outcomes and arguments of calls ------------------------------

impl From<wit::Outcome> for Outcome {
    fn from(outcome: wit::Outcome) -> Self {
        Self {
            id: outcome.id,
            kind: outcome.news.into(),
        }
    }
}

impl From<wit::OutcomeNews> for OutcomeKind {
    fn from(news: wit::OutcomeNews) -> Self {
        match news {
            wit::OutcomeNews::HttpHead(head) => Self::HttpHead {
                status: head.status,
                headers: head.headers,
            },
            wit::OutcomeNews::HttpChunk(chunk) => Self::HttpChunk(chunk.into()),
            wit::OutcomeNews::HttpEnd => Self::HttpEnd,
            wit::OutcomeNews::HttpFailed(error) => Self::HttpFailed(error.into()),
            wit::OutcomeNews::ExecOutput(output) => Self::ExecOutput {
                stream: output.pipe.into(),
                data: output.data.into(),
            },
            wit::OutcomeNews::ExecEnd(status) => Self::ExecEnd(status.into()),
            wit::OutcomeNews::ExecFailed(error) => Self::ExecFailed(error.into()),
            wit::OutcomeNews::Environment(result) => {
                Self::Environment(result.map(Into::into).map_err(Into::into))
            }
            wit::OutcomeNews::ToolOutput(text) => Self::ToolOutput(text),
            wit::OutcomeNews::ToolEnd(result) => Self::ToolEnd(HostToolResult {
                content: content(result.content),
                is_error: result.is_error,
            }),
            wit::OutcomeNews::ProgramEnd(result) => Self::ProgramEnd(result.into()),
            wit::OutcomeNews::Approval(wit::Approval::Allow) => Self::Approval(Approval::Allow),
            wit::OutcomeNews::Approval(wit::Approval::Deny(reason)) => {
                Self::Approval(Approval::Deny { reason })
            }
            wit::OutcomeNews::Approval(wit::Approval::NoApprover) => {
                Self::Approval(Approval::NoApprover)
            }
            wit::OutcomeNews::Slept => Self::Slept,
            wit::OutcomeNews::Cancelled => Self::Cancelled,
        }
    }
}

impl From<wit::TransportError> for TransportError {
    fn from(error: wit::TransportError) -> Self {
        Self {
            kind: match error.kind {
                wit::TransportErrorKind::Connect => TransportErrorKind::Connect,
                wit::TransportErrorKind::Broken => TransportErrorKind::Broken,
                wit::TransportErrorKind::Timeout => TransportErrorKind::Timeout,
                wit::TransportErrorKind::Credential => TransportErrorKind::Credential,
                wit::TransportErrorKind::Invalid => TransportErrorKind::Invalid,
            },
            message: error.message,
        }
    }
}

impl From<wit::ProgramResult> for ProgramResult {
    fn from(result: wit::ProgramResult) -> Self {
        Self {
            exit_code: result.exit_code,
            stdout: result.stdout.into(),
            stderr: result.stderr.into(),
            changes: result.changes.into_iter().map(Into::into).collect(),
            files: match result.files {
                wit::ProgramFiles::Kept => ProgramFiles::Kept,
                wit::ProgramFiles::Lost => ProgramFiles::Lost,
                wit::ProgramFiles::Missing => ProgramFiles::Missing,
            },
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

impl From<wit::EnvironmentInfo> for EnvironmentInfo {
    fn from(info: wit::EnvironmentInfo) -> Self {
        Self {
            working_directory: info.working_directory,
            platform: info.platform,
            os_version: info.os_version,
            utc_offset_minutes: info.utc_offset_minutes,
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
