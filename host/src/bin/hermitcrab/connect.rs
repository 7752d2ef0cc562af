//! Opens a session of the host library for a plan, and speaks to it as
//! [`drive`](crate::session::drive) wants.
//!
//! For those who work on the core: `HERMITCRAB_CORE=FILE.wasm` runs that
//! component instead of the core that is built in, `HERMITCRAB_CORE=native` the
//! core as a Rust library, which has no sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::llm::Content;
use hermitcrab_host::{
    Continuation, Controller, CoreLimits, EnvironmentChoice, Guardian, Host, HostBuilder,
    HostError, Instance, LocalEnvironment, MemoryOptions, SessionOptions,
};

use crate::failure::Failure;
use crate::ground::{Ground, Variables};
use crate::plan::Plan;
use crate::provider::Chosen;
use crate::save;
use crate::session::{Ended, Session};

/// A session of the host.
pub(crate) struct HostSession {
    pub(crate) session: hermitcrab_host::Session,
    pub(crate) instance: Instance,
    pub(crate) continuation: Continuation,
    /// Where it goes when its task is done.
    pub(crate) save: Option<save::File>,
    /// Outlives the session's commands.
    pub(crate) _guardian: Option<Guardian>,
}

/// What is left of a sandbox's tree.
pub(crate) enum Export {
    /// The tree as it is.
    Now(Bytes),
    /// The core has died: the tree as it was before the command that ended it.
    Before(Bytes),
    /// Nothing.
    Lost(Failure),
}

/// Opens a session.
///
/// # Errors
/// The host cannot be set up as planned.
pub(crate) async fn open(plan: Plan) -> Result<HostSession, Failure> {
    let Plan {
        providers,
        config,
        ground,
        approver,
        history,
        record,
        save,
    } = plan;
    let mut builder = with_keys(&providers);
    if let Ground::Memory(archive, _) = &ground {
        let limits = CoreLimits::default();
        builder = builder.limits(CoreLimits {
            // The files are given once and shared.
            journal_bytes: limits.journal_bytes + archive.len(),
            ..limits
        });
    }
    let host = chosen_core(builder).build().map_err(failed)?;
    let mut guardian = None;
    let environment = match ground {
        Ground::Local(directory, watching, variables) => {
            let watching = guardian.insert(watching);
            let local = local(directory, watching, variables, &providers)?;
            EnvironmentChoice::Host(Arc::new(local))
        }
        Ground::Memory(archive, programs) => EnvironmentChoice::Memory(MemoryOptions {
            archive: Some(archive),
            programs,
            ..MemoryOptions::default()
        }),
    };
    let mut options = SessionOptions::new(config, environment);
    options.approval = approver;
    let continuation = history
        .as_ref()
        .map_or(Continuation::Input, Continuation::of);
    options.record = history;
    let instance = instance(&host, record.as_deref())?;
    let session = instance.open_session(options).await.map_err(failed)?;
    Ok(HostSession {
        session,
        instance,
        continuation,
        save,
        _guardian: guardian,
    })
}

/// An instance of `host`, whose log goes to `record`.
///
/// # Errors
/// The log cannot be written there.
pub(crate) fn instance(host: &Host, record: Option<&Path>) -> Result<Instance, Failure> {
    match record {
        Some(file) => host
            .recorded_instance(file)
            .map_err(|error| Failure::usage(error.to_string())),
        None => host.instance().map_err(failed),
    }
}

/// A host with the keys of `providers`.
pub(crate) fn with_keys(providers: &[Chosen]) -> HostBuilder {
    let with = |builder: HostBuilder, chosen: &Chosen| {
        builder.credential(chosen.provider, &chosen.key, &chosen.base_url)
    };
    providers.iter().fold(Host::builder(), with)
}

/// `directory` for tools, with `variables` and without what is secret.
///
/// # Errors
/// Commands cannot run there.
pub(crate) fn local(
    directory: PathBuf,
    guardian: &Guardian,
    variables: Variables,
    providers: &[Chosen],
) -> Result<LocalEnvironment, Failure> {
    let builder = LocalEnvironment::builder(directory)
        .secrets(providers.iter().map(|chosen| chosen.key.clone()))
        .guardian(guardian);
    variables
        .into_iter()
        .fold(builder, |builder, (name, value)| builder.env(name, value))
        .build()
        .map_err(|error| Failure::usage(error.to_string()))
}

/// With the core that `HERMITCRAB_CORE` chooses.
pub(crate) fn chosen_core(builder: HostBuilder) -> HostBuilder {
    match std::env::var_os("HERMITCRAB_CORE") {
        None => builder,
        Some(core) if core == "native" => builder.native_core(),
        Some(core) => builder.core(core),
    }
}

pub(crate) fn failed(error: HostError) -> Failure {
    Failure::failed(error.to_string())
}

impl HostSession {
    /// The sandbox's tree as a tar.
    pub(crate) async fn export(&mut self) -> Export {
        let sandbox = self.session.environment();
        match sandbox.export_tar().await {
            Ok(tar) => Export::Now(tar),
            Err(HostError::Core(_)) => match sandbox.recover_tar().await {
                Ok(tar) => Export::Before(tar),
                Err(error) => Export::Lost(failed(error)),
            },
            Err(error) => Export::Lost(failed(error)),
        }
    }

    /// Ends the log of the run. Says why it is not whole, if it is not.
    pub(crate) async fn end_record(&self) -> Option<String> {
        let failure = self.instance.end_record().await.ok().flatten()?;
        Some(failure.to_string())
    }

    /// How the run ended, with what became of the file that it was to be saved to.
    pub(crate) fn saved(&self, ended: Ended) -> Ended {
        match &self.save {
            Some(file) => file.end(ended),
            None => ended,
        }
    }

    /// Tells the session something without waiting for it: a core that is busy
    /// must not keep the second Ctrl-C from being heard. What comes of it, or
    /// of its refusal, are events.
    fn tell<F: Future<Output = Result<(), HostError>> + Send + 'static>(
        &self,
        what: impl FnOnce(Controller) -> F,
    ) {
        tokio::spawn(what(self.session.controller()));
    }
}

impl Session for HostSession {
    async fn submit(&mut self, prompt: Content) -> Result<(), Failure> {
        let session = self.session.controller();
        let begun = self.continuation.begin(&session, prompt).await;
        begun.map_err(failed)
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        Some(self.session.next_event().await?.json().clone())
    }

    fn abort(&mut self) {
        self.tell(|session| async move { session.abort().await });
    }

    fn close(&mut self) {
        let save = self.save.clone();
        self.tell(|session| async move {
            if let Some(file) = save {
                file.write(&session).await;
            }
            session.close().await
        });
    }
}
