//! Jobs: work that the host starts on an environment without a session, such
//! as a terminal command or a read. Their results are reports, not events.

use std::rc::Rc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentReply, ExecRequest, ExecStatus, OutputStream,
};

/// What a job does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Runs a command.
    Exec(ExecRequest),
    /// Makes a call.
    Call(EnvironmentCall),
}

/// News of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobReport {
    /// Id of the job.
    pub job: Rc<str>,
    /// What happened.
    pub kind: JobReportKind,
}

/// The kinds of report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobReportKind {
    /// A command wrote something.
    Output {
        /// Which pipe.
        stream: OutputStream,
        /// The bytes.
        #[serde(with = "crate::text::blob")]
        data: Bytes,
    },
    /// Last report: a command ended.
    Exec(Result<ExecStatus, EnvironmentError>),
    /// Last report: a call was answered.
    Call(Result<EnvironmentReply, EnvironmentError>),
}
