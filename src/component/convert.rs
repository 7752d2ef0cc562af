//! Between the types of `wit/hermitcrab.wit` and the core's own, both ways: for the
//! component, and for hosts of it, which include this file (`host/src/component_core`).
//! Field by field, no logic.

use hermitcrab::effect::{Approval, EffectKind, HostToolResult, Outcome, OutcomeKind};
use hermitcrab::environment::{
    DirEntry, Entries, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    EnvironmentReply, ExecRequest, ExecStatus, FileChange, FileNode, GlobRequest, GrepRequest,
    Match, Matches, Metadata, OutputStream, ProgramFiles, ProgramRequest, ProgramResult,
};
use hermitcrab::event::SessionState;
use hermitcrab::llm::{
    Auth, Content, HttpRequest, Media, MediaSource, Part, TransportError, TransportErrorKind,
};
use hermitcrab::memory::{Change, ChangeKind, EndReason};
use hermitcrab::session::{
    Action, AgentCall, AgentInfo, AgentStatus, JobReportKind, LogLine, SessionCall, SessionError,
    SessionErrorKind, SessionReply,
};
use serde_json::Value;

use super::wit;

/// An enum whose variants bear the same names and nothing else; a variant that
/// only a newer core has becomes the `other`.
macro_rules! same_names {
    ($core:ident = $wit:ident { $($variant:ident),* $(,)? } $(other $other:ident)?) => {
        impl From<$core> for wit::$wit {
            fn from(value: $core) -> Self {
                #[allow(unreachable_patterns, reason = "only other crates see the enum as open")]
                match value {
                    $($core::$variant => Self::$variant,)*
                    $(_ => Self::$other,)?
                }
            }
        }

        impl From<wit::$wit> for $core {
            fn from(value: wit::$wit) -> Self {
                match value { $(wit::$wit::$variant => Self::$variant),* }
            }
        }
    };
}

/// A record whose fields bear the same names; `each` are lists of converted ones.
macro_rules! same_fields {
    ($core:ident = $wit:ident { $($field:ident),* $(,)? } $(each { $($list:ident),* })?) => {
        impl From<$core> for wit::$wit {
            fn from(value: $core) -> Self {
                Self {
                    $($field: value.$field.into(),)*
                    $($($list: all(value.$list),)*)?
                }
            }
        }

        impl From<wit::$wit> for $core {
            fn from(value: wit::$wit) -> Self {
                Self {
                    $($field: value.$field.into(),)*
                    $($($list: all(value.$list),)*)?
                }
            }
        }
    };
}

fn all<A, B: From<A>, C: FromIterator<B>>(values: impl IntoIterator<Item = A>) -> C {
    values.into_iter().map(B::from).collect()
}

fn either<A, B: From<A>, E, F: From<E>>(result: Result<A, E>) -> Result<B, F> {
    result.map(B::from).map_err(F::from)
}

same_names!(
    SessionState = SessionState {
        Idle,
        Processing,
        AwaitingInput,
        Closed
    }
);
same_names!(
    AgentStatus = AgentStatus {
        Running,
        Completed,
        Failed
    }
);
same_names!(OutputStream = Pipe { Stdout, Stderr });
same_names!(
    ChangeKind = ChangeKind {
        Added,
        Changed,
        Removed
    }
);
same_names!(
    EndReason = EndReason {
        Work,
        Memory,
        Stack,
        Failed
    }
);
same_names!(
    ProgramFiles = ProgramFiles {
        Kept,
        Lost,
        Missing
    }
);
same_names!(TransportErrorKind = TransportErrorKind {
    Connect, Broken, Timeout, Credential, Invalid,
} other Invalid);
same_names!(EnvironmentErrorKind = EnvironmentErrorKind {
    NotFound, PermissionDenied, IsDirectory, NotDirectory, ReadOnly, InvalidInput, TooLarge,
    Unsupported, Cancelled, Io,
} other Io);
same_names!(SessionErrorKind = SessionErrorKind {
    IllegalState, Closed, InvalidConfig, UnknownProvider, NotFound, InvalidTool, InvalidInput,
} other InvalidInput);

same_fields!(LogLine = LogLine { log, line });
same_fields!(Change = Change { path, kind });
same_fields!(
    AgentInfo = Agent {
        id,
        parent_id,
        task,
        state,
        status,
        depth,
        turns
    }
);
same_fields!(TransportError = TransportError { kind, message });
same_fields!(SessionError = SessionError { kind, message });
same_fields!(EnvironmentError = EnvironmentError { kind, message });
same_fields!(
    EnvironmentInfo = EnvironmentInfo {
        working_directory,
        platform,
        os_version,
        utc_offset_minutes,
        bounds,
        warning,
    }
);
same_fields!(
    ExecStatus = ExecStatus {
        exit_code,
        timed_out,
        cancelled,
        duration_ms
    }
);
same_fields!(ExecRequest = ExecRequest { command, timeout_ms, working_dir } each { env });
same_fields!(
    Auth = Auth {
        credential,
        header,
        prefix
    }
);
same_fields!(
    GrepRequest = GrepRequest {
        pattern,
        path,
        glob_filter,
        case_insensitive,
        max_results,
    }
);
same_fields!(
    GlobRequest = GlobRequest {
        pattern,
        path,
        max_results
    }
);
same_fields!(
    Metadata = Metadata {
        is_dir,
        size,
        modified_ms
    }
);
same_fields!(
    DirEntry = DirEntry {
        path,
        is_dir,
        size,
        modified_ms
    }
);
same_fields!(Entries = Entries { truncated } each { entries });
same_fields!(Match = LineMatch { path, line, text });
same_fields!(Matches = Matches { truncated } each { matches });
same_fields!(FileChange = FileChange { path, node, mode });
same_fields!(ProgramRequest = ProgramRequest {
    environment, name, args, working_dir, stdin, since, state,
} each { env, changes });
same_fields!(ProgramResult = ProgramResult { exit_code, stdout, stderr, files } each { changes });

// ---- What is said ------------------------------------------------------------

/// Parts in order, as the core has them.
pub(super) fn content(parts: Vec<wit::Part>) -> Content {
    let part = |part| match part {
        wit::Part::Text(text) => Part::Text { text },
        wit::Part::Image(image) => Part::Image(image.into()),
        wit::Part::Document(document) => Part::Document(document.into()),
    };
    parts.into_iter().map(part).collect::<Vec<_>>().into()
}

/// Parts in order, as the component takes them.
fn parts(content: &Content) -> Vec<wit::Part> {
    let part = |part: &Part| match part {
        Part::Text { text } => wit::Part::Text(text.clone()),
        Part::Image(media) => wit::Part::Image(media.into()),
        Part::Document(media) => wit::Part::Document(media.into()),
    };
    content.parts().iter().map(part).collect()
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

// ---- Calls on a session ------------------------------------------------------

impl TryFrom<wit::SessionCall> for SessionCall {
    /// What should be JSON is none.
    type Error = SessionError;

    fn try_from(call: wit::SessionCall) -> Result<Self, SessionError> {
        Ok(match call {
            wit::SessionCall::State => Self::State,
            wit::SessionCall::Submit(input) => Self::Submit {
                input: content(input),
            },
            wit::SessionCall::Answer(input) => Self::Answer {
                input: content(input),
            },
            wit::SessionCall::Resume => Self::Resume,
            wit::SessionCall::Steer(message) => Self::Steer {
                message: content(message),
            },
            wit::SessionCall::FollowUp(message) => Self::FollowUp {
                message: content(message),
            },
            wit::SessionCall::AddSystemTurn(content) => Self::AddSystemTurn { content },
            wit::SessionCall::Interrupt => Self::Interrupt,
            wit::SessionCall::Abort => Self::Abort,
            wit::SessionCall::Close => Self::Close,
            wit::SessionCall::PauseAt(answers) => Self::PauseAt { answers },
            wit::SessionCall::IsPaused => Self::IsPaused,
            wit::SessionCall::Config => Self::Config,
            wit::SessionCall::Configure(patch) => Self::Configure {
                patch: parsed(&patch, SessionErrorKind::InvalidConfig, "the patch")?,
            },
            wit::SessionCall::RegisterTool(definition) => Self::RegisterTool {
                definition: parsed(
                    &definition,
                    SessionErrorKind::InvalidTool,
                    "the tool definition",
                )?,
            },
            wit::SessionCall::UnregisterTool(name) => Self::UnregisterTool { name },
            wit::SessionCall::Agents => Self::Agents,
            wit::SessionCall::AgentHistory(agent) => Self::AgentHistory { agent },
            wit::SessionCall::TellAgent(wit::AgentRequest { agent, call }) => Self::TellAgent {
                agent,
                tell: call.into(),
            },
            wit::SessionCall::ToolNames => Self::ToolNames,
            wit::SessionCall::History => Self::History,
            wit::SessionCall::Record => Self::Record,
            wit::SessionCall::Compact => Self::Compact,
        })
    }
}

impl From<SessionCall> for wit::SessionCall {
    fn from(call: SessionCall) -> Self {
        match call {
            SessionCall::State => Self::State,
            SessionCall::Submit { input } => Self::Submit(parts(&input)),
            SessionCall::Answer { input } => Self::Answer(parts(&input)),
            SessionCall::Resume => Self::Resume,
            SessionCall::Steer { message } => Self::Steer(parts(&message)),
            SessionCall::FollowUp { message } => Self::FollowUp(parts(&message)),
            SessionCall::AddSystemTurn { content } => Self::AddSystemTurn(content),
            SessionCall::Interrupt => Self::Interrupt,
            SessionCall::Abort => Self::Abort,
            SessionCall::Close => Self::Close,
            SessionCall::PauseAt { answers } => Self::PauseAt(answers),
            SessionCall::IsPaused => Self::IsPaused,
            SessionCall::Config => Self::Config,
            SessionCall::Configure { patch } => Self::Configure(patch.to_string()),
            SessionCall::RegisterTool { definition } => Self::RegisterTool(definition.to_string()),
            SessionCall::UnregisterTool { name } => Self::UnregisterTool(name),
            SessionCall::Agents => Self::Agents,
            SessionCall::AgentHistory { agent } => Self::AgentHistory(agent),
            SessionCall::TellAgent { agent, tell } => Self::TellAgent(wit::AgentRequest {
                agent,
                call: tell.into(),
            }),
            SessionCall::ToolNames => Self::ToolNames,
            SessionCall::History => Self::History,
            SessionCall::Record => Self::Record,
            SessionCall::Compact => Self::Compact,
        }
    }
}

impl From<SessionReply> for wit::SessionReply {
    fn from(reply: SessionReply) -> Self {
        match reply {
            SessionReply::Done => Self::Done,
            SessionReply::State(state) => Self::State(state.into()),
            SessionReply::Number(number) => Self::Number(number),
            SessionReply::Flag(flag) => Self::Flag(flag),
            SessionReply::Agents(agents) => Self::Agents(all(agents)),
            SessionReply::Names(names) => Self::Names(names),
            SessionReply::Json(json) => Self::Json(json.into()),
        }
    }
}

impl From<wit::SessionReply> for SessionReply {
    fn from(reply: wit::SessionReply) -> Self {
        match reply {
            wit::SessionReply::Done => Self::Done,
            wit::SessionReply::State(state) => Self::State(state.into()),
            wit::SessionReply::Number(number) => Self::Number(number),
            wit::SessionReply::Flag(flag) => Self::Flag(flag),
            wit::SessionReply::Agents(agents) => Self::Agents(all(agents)),
            wit::SessionReply::Names(names) => Self::Names(names),
            wit::SessionReply::Json(json) => Self::Json(json.into()),
        }
    }
}

fn parsed(json: &str, kind: SessionErrorKind, what: &str) -> Result<Value, SessionError> {
    serde_json::from_str(json)
        .map_err(|error| SessionError::new(kind, format!("{what} cannot be used: {error}")))
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

impl From<AgentCall> for wit::AgentCall {
    fn from(call: AgentCall) -> Self {
        match call {
            AgentCall::Steer(message) => Self::Steer(parts(&message)),
            AgentCall::Interrupt => Self::Interrupt,
            AgentCall::Close => Self::Close,
        }
    }
}

// ---- Jobs --------------------------------------------------------------------

impl From<wit::Action> for Action {
    fn from(action: wit::Action) -> Self {
        match action {
            wit::Action::Exec(request) => Self::Exec(request.into()),
            wit::Action::Call(call) => Self::Call(call.into()),
        }
    }
}

impl From<Action> for wit::Action {
    fn from(action: Action) -> Self {
        match action {
            Action::Exec(request) => Self::Exec(request.into()),
            Action::Call(call) => Self::Call(call.into()),
        }
    }
}

impl From<JobReportKind> for wit::News {
    fn from(kind: JobReportKind) -> Self {
        match kind {
            JobReportKind::Output { stream, data } => Self::Output(wit::ExecOutput {
                pipe: stream.into(),
                data: data.into(),
            }),
            JobReportKind::Exec(result) => Self::Exec(either(result)),
            JobReportKind::Call(result) => Self::Call(either(result)),
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
            wit::News::Exec(result) => Self::Exec(either(result)),
            wit::News::Call(result) => Self::Call(either(result)),
        }
    }
}

// ---- Effects and outcomes ----------------------------------------------------

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

impl From<HttpRequest> for wit::HttpRequest {
    fn from(request: HttpRequest) -> Self {
        Self {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: request.body.into(),
            auth: request.auth.map(Into::into),
            connect_timeout_ms: request.connect_timeout_ms,
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
            auth: request.auth.map(Into::into),
            connect_timeout_ms: request.connect_timeout_ms,
        }
    }
}

impl From<Outcome> for wit::Outcome {
    fn from(outcome: Outcome) -> Self {
        Self {
            id: outcome.id,
            news: outcome.kind.into(),
        }
    }
}

impl From<wit::Outcome> for Outcome {
    fn from(outcome: wit::Outcome) -> Self {
        Self {
            id: outcome.id,
            kind: outcome.news.into(),
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
            OutcomeKind::Environment(result) => Self::Environment(either(result)),
            OutcomeKind::ToolOutput(text) => Self::ToolOutput(text),
            OutcomeKind::ToolEnd(result) => Self::ToolEnd(wit::ToolResult {
                content: parts(&result.content),
                is_error: result.is_error,
            }),
            OutcomeKind::ProgramEnd(result) => Self::ProgramEnd(result.into()),
            OutcomeKind::Approval(approval) => Self::Approval(match approval {
                Approval::Allow => wit::Approval::Allow,
                Approval::Deny { reason } => wit::Approval::Deny(reason),
                Approval::NoApprover => wit::Approval::NoApprover,
            }),
            OutcomeKind::Slept => Self::Slept,
            OutcomeKind::Cancelled => Self::Cancelled,
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
            wit::OutcomeNews::Environment(result) => Self::Environment(either(result)),
            wit::OutcomeNews::ToolOutput(text) => Self::ToolOutput(text),
            wit::OutcomeNews::ToolEnd(result) => Self::ToolEnd(HostToolResult {
                content: content(result.content),
                is_error: result.is_error,
            }),
            wit::OutcomeNews::ProgramEnd(result) => Self::ProgramEnd(result.into()),
            wit::OutcomeNews::Approval(approval) => Self::Approval(match approval {
                wit::Approval::Allow => Approval::Allow,
                wit::Approval::Deny(reason) => Approval::Deny { reason },
                wit::Approval::NoApprover => Approval::NoApprover,
            }),
            wit::OutcomeNews::Slept => Self::Slept,
            wit::OutcomeNews::Cancelled => Self::Cancelled,
        }
    }
}

// ---- What environments are asked, and answer ----------------------------------

impl From<FileNode> for wit::FileNode {
    fn from(node: FileNode) -> Self {
        match node {
            FileNode::File(content) => Self::File(content.into()),
            FileNode::Directory => Self::Directory,
            FileNode::Link(target) => Self::Link(target),
            FileNode::Removed => Self::Removed,
        }
    }
}

impl From<wit::FileNode> for FileNode {
    fn from(node: wit::FileNode) -> Self {
        match node {
            wit::FileNode::File(content) => Self::File(content.into()),
            wit::FileNode::Directory => Self::Directory,
            wit::FileNode::Link(target) => Self::Link(target),
            wit::FileNode::Removed => Self::Removed,
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
            EnvironmentCall::Grep(request) => Self::Grep(request.into()),
            EnvironmentCall::Glob(request) => Self::Glob(request.into()),
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
            wit::EnvironmentCall::Grep(request) => Self::Grep(request.into()),
            wit::EnvironmentCall::Glob(request) => Self::Glob(request.into()),
        }
    }
}

impl From<EnvironmentReply> for wit::EnvironmentReply {
    fn from(reply: EnvironmentReply) -> Self {
        match reply {
            EnvironmentReply::Done => Self::Done,
            EnvironmentReply::Bytes(bytes) => Self::Bytes(bytes.into()),
            EnvironmentReply::Stat(metadata) => Self::Stat(metadata.into()),
            EnvironmentReply::Path(path) => Self::Path(path),
            EnvironmentReply::Entries(entries) => Self::Entries(entries.into()),
            EnvironmentReply::Matches(matches) => Self::Matches(matches.into()),
        }
    }
}

impl From<wit::EnvironmentReply> for EnvironmentReply {
    fn from(reply: wit::EnvironmentReply) -> Self {
        match reply {
            wit::EnvironmentReply::Done => Self::Done,
            wit::EnvironmentReply::Bytes(bytes) => Self::Bytes(bytes.into()),
            wit::EnvironmentReply::Stat(metadata) => Self::Stat(metadata.into()),
            wit::EnvironmentReply::Path(path) => Self::Path(path),
            wit::EnvironmentReply::Entries(entries) => Self::Entries(entries.into()),
            wit::EnvironmentReply::Matches(matches) => Self::Matches(matches.into()),
        }
    }
}
