//! Jobs: commands and calls in an environment, on behalf of whoever may use it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentReply, ExecRequest,
    ExecStatus, OutputStream,
};
use hermitcrab::session::{Action, InstanceCall, JobReportKind};

use crate::core::{CallResult, Core};
use crate::driver::{DriverHandle, Queue};
use crate::error::HostError;

/// Whose environment it is, and who uses it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The environment of this number, outside of any session.
    Environment(u32),
    /// The environment of the session whose tool runs as this effect.
    Tool(u64),
}

impl Target {
    fn start(self, core: &mut dyn Core, action: Action) -> CallResult<Arc<str>> {
        core.id(match (self, action) {
            (Self::Environment(environment), Action::Exec(request)) => InstanceCall::StartExec {
                environment,
                request,
            },
            (Self::Environment(environment), Action::Call(request)) => InstanceCall::StartCall {
                environment,
                request,
            },
            (Self::Tool(effect), action) => InstanceCall::Act { effect, action },
        })
    }
}

/// Runs a command and hands its output over as it comes; `stop` cancels it.
pub(crate) async fn exec(
    driver: &DriverHandle,
    target: Target,
    request: ExecRequest,
    mut output: impl FnMut(OutputStream, Bytes),
    stop: impl Future<Output = ()>,
) -> Result<ExecStatus, HostError> {
    let mut job = Job::start(driver, target, Action::Exec(request)).await?;
    let mut stop = std::pin::pin!(stop.fuse());
    loop {
        let next = tokio::select! {
            biased;
            () = &mut stop => {
                job.cancel();
                continue;
            }
            next = job.next() => next,
        };
        match next {
            Some(JobReportKind::Output { stream, data }) => output(stream, data),
            Some(JobReportKind::Exec(result)) => return Ok(result?),
            Some(JobReportKind::Call(Err(error))) => return Err(error.into()),
            Some(JobReportKind::Call(Ok(_))) | None => return Err(HostError::Stopped),
        }
    }
}

/// Makes a call.
pub(crate) async fn call(
    driver: &DriverHandle,
    target: Target,
    call: EnvironmentCall,
) -> Result<EnvironmentReply, HostError> {
    let mut job = Job::start(driver, target, Action::Call(call)).await?;
    match job.next().await {
        Some(JobReportKind::Call(result)) => Ok(result?),
        Some(_) => Err(out_of_place("call")),
        None => Err(HostError::Stopped),
    }
}

/// Content of a file.
pub(crate) async fn read(
    driver: &DriverHandle,
    target: Target,
    path: &str,
) -> Result<Bytes, HostError> {
    let asked = EnvironmentCall::Read {
        path: path.to_owned(),
        max_bytes: u64::MAX,
    };
    match call(driver, target, asked).await? {
        EnvironmentReply::Bytes(bytes) => Ok(bytes),
        _ => Err(out_of_place("read")),
    }
}

/// Replaces or creates a file, with its parents.
pub(crate) async fn write(
    driver: &DriverHandle,
    target: Target,
    path: &str,
    content: Bytes,
) -> Result<(), HostError> {
    let asked = EnvironmentCall::Write {
        path: path.to_owned(),
        content,
    };
    call(driver, target, asked).await.map(drop)
}

pub(crate) fn out_of_place(call: &str) -> HostError {
    let error = format!("the environment answered {call} with something else");
    EnvironmentError::new(EnvironmentErrorKind::Io, error).into()
}

/// A job under way; cancelled when it is dropped early.
struct Job {
    driver: DriverHandle,
    id: Arc<str>,
    reports: Arc<Queue<JobReportKind>>,
}

impl Job {
    async fn start(
        driver: &DriverHandle,
        target: Target,
        action: Action,
    ) -> Result<Self, HostError> {
        let reports = Arc::<Queue<JobReportKind>>::default();
        let queue = reports.clone();
        let id = driver
            .call(move |driver| {
                let id = target.start(&mut driver.core, action)?;
                driver.jobs.insert(id.clone(), queue);
                Ok(id)
            })
            .await?;
        Ok(Self {
            driver: driver.clone(),
            id,
            reports,
        })
    }

    /// Ends it early; its last report still comes.
    fn cancel(&self) {
        let id = self.id.clone();
        self.driver.send(move |driver| {
            let job = id.to_string();
            let _ = driver.core.tell(InstanceCall::CancelJob { job });
        });
    }

    /// The next report; none when the driver has ended.
    async fn next(&mut self) -> Option<JobReportKind> {
        std::future::poll_fn(|cx| self.reports.poll_next(cx)).await
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.reports.abandon();
        let id = self.id.clone();
        self.driver.send(move |driver| {
            if driver.jobs.remove(&id).is_some() {
                let job = id.to_string();
                let _ = driver.core.tell(InstanceCall::CancelJob { job });
            }
        });
    }
}
