//! Resuming: a run goes on live where its log ends, whether it was closed there or its
//! process was killed in the middle of it.

use std::io::{Read, Write};
use std::path::Path;

use hermitcrab::event::SessionState;

use crate::error::HostError;
use crate::fork::{Continuation, Fork, ForkError, ForkOptions};
use crate::host::Host;
use crate::log::Replay;
use crate::memory::EnvironmentChoice;
use crate::session::SessionOptions;

/// What the model reads of a call that was under way when its process ended.
const CUT_OFF: &str = "cut off, because the agent's process ended here: it may have taken effect, \
                       in whole or in part; look before you do it again";

impl Host {
    /// Runs the log `source`, which errors call `path`, again to its end and goes on from
    /// there. The last request that the model gets begins with the same bytes as the one
    /// before. Of what was under way the session gets the news that it was cut off, and
    /// the model is asked again. A session that was closed goes on as another
    /// one with the same settings, history and files. `journal` gets the log of all that,
    /// from the beginning. Needs a tokio runtime.
    ///
    /// # Errors
    /// The log is damaged, was written by another core, or holds no session; what the run
    /// needs is missing.
    pub async fn resume(
        &self,
        path: &Path,
        source: Box<dyn Read + Send>,
        journal: Option<Box<dyn Write + Send>>,
        options: ForkOptions,
    ) -> Result<Fork, ForkError> {
        let place = self.place()?;
        let mut failed = None;
        let replay = Replay::read(path, source, |seed, header| {
            let mut core = self
                .journaled_core(seed, self.limits_of(header))?
                .hold(place);
            let record = options.record.as_deref();
            let record = record.map(|file| self.recorder(file, &seed)).transpose();
            let journal = journal.map(|sink| self.keeper(sink, &seed)).transpose();
            match record {
                Ok(Some(recorder)) => core = core.record(recorder),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
            match journal {
                Ok(Some(recorder)) => core = core.keep_in(recorder),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
            Ok(core)
        });
        if let Some(error) = failed {
            return Err(error.into());
        }
        let mut replay = replay?;
        let stop = replay.to_end()?;
        if let Some(info) = replay.remote().next()
            && options.environment.is_none()
        {
            return Err(ForkError::NoEnvironment(info.working_directory.clone()));
        }
        let mut continuation = Continuation::Input;
        let state = replay.state(&stop.session).map_err(HostError::from)?;
        if state == SessionState::Processing {
            // Before its next request it waits for the settings that it goes on with.
            if !stop.is_paused {
                replay.pause(&stop.session).map_err(HostError::from)?;
            }
            continuation = Continuation::Unpause;
        }
        let has_agents = replay.owners().any(|owner| owner != stop.session);
        let approval = options.approval.clone();
        let mut fork = self.go_on(replay, stop, options, CUT_OFF);
        fork.continuation = continuation;
        // What was cut off ends first; agents that were at work go on by themselves.
        while !has_agents
            && fork.session.state().await? == SessionState::Processing
            && !fork.session.is_paused().await?
        {
            tokio::task::yield_now().await;
        }
        match fork.session.state().await? {
            SessionState::Closed => Ok(reopened(fork, approval).await?),
            SessionState::Idle | SessionState::AwaitingInput => Ok(Fork {
                continuation: Continuation::Input,
                ..fork
            }),
            SessionState::Processing => Ok(fork),
        }
    }
}

/// Another session with what the closed one had.
async fn reopened(
    fork: Fork,
    approval: Option<crate::approval::ApprovalFn>,
) -> Result<Fork, HostError> {
    let config = fork.session.config().await?;
    let record = fork.session.record().await?;
    let continuation = Continuation::of(&record);
    let environment = EnvironmentChoice::Existing(fork.session.environment().clone());
    let mut options = SessionOptions::new(config, environment).record(record);
    options.approval = approval;
    let session = fork.instance.open_session(options).await?;
    Ok(Fork {
        session,
        continuation,
        ..fork
    })
}
