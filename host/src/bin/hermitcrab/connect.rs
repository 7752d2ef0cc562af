//! Opens a session of the host library for a plan, and speaks to it as
//! [`drive`](crate::session::drive) wants.
//!
//! For those who work on the core: `HERMITCRAB_CORE=FILE.wasm` runs that
//! component instead of the core that is built in, `HERMITCRAB_CORE=native` the
//! core as a Rust library, which has no sandbox.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::llm::Content;
use hermitcrab_host::{
    Continuation, Controller, CoreLimits, EnvironmentChoice, Guardian, Host, HostBuilder,
    HostEnvironment, HostError, Instance, InstanceOptions, LocalEnvironment, MemoryOptions,
    RemoteEnvironment, Sandbox, SessionOptions, log::CoreId,
};

use crate::cli::SandboxMode;
use crate::failure::Failure;
use crate::journal::Held;
use crate::plan::Plan;
use crate::provider::Chosen;
use crate::save;
use crate::session::{Ended, Session};
use crate::undo::Undo;
use crate::workspace::{Machine, Workspace};

/// A session of the host.
pub(crate) struct HostSession {
    pub(crate) session: hermitcrab_host::Session,
    pub(crate) instance: Instance,
    pub(crate) continuation: Continuation,
    /// Where it goes when its task is done.
    pub(crate) save: Option<save::File>,
    /// Where it is kept.
    pub(crate) held: Option<Held>,
    /// Undoes what it changed.
    pub(crate) undo: Undo,
    /// What it may cost, in US dollars.
    pub(crate) max_cost_usd: Option<f64>,
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
        workspace,
        approver,
        history,
        record,
        keep,
        save,
    } = plan;
    let mut builder = with_keys(&providers);
    if let Workspace::Memory(archive, _) = &workspace {
        let limits = CoreLimits::default();
        builder = builder.limits(CoreLimits {
            // The files are given once and shared.
            journal_bytes: limits.journal_bytes + archive.len(),
            ..limits
        });
    }
    let host = chosen_core(builder).build().map_err(failed)?;
    let mut guardian = None;
    let mut undo = Undo::default();
    let held = keep.and_then(|keep| keep.begin(&config, &secrets(&providers)));
    let environment = match workspace {
        Workspace::Local(machine) => {
            let local = local(&machine, &providers, held.as_ref(), &mut undo)?;
            guardian = Some(machine.guardian);
            EnvironmentChoice::Host(local)
        }
        Workspace::Elsewhere(remote, directory) => {
            let there = RemoteEnvironment::connect(remote, &directory).await;
            let there = there.map_err(|error| Failure::usage(error.to_string()))?;
            EnvironmentChoice::Host(Arc::new(there))
        }
        Workspace::Memory(archive, programs) => EnvironmentChoice::Memory(MemoryOptions {
            archive: Some(archive),
            programs,
            ..MemoryOptions::default()
        }),
    };
    let max_cost_usd = config.max_cost_usd;
    let mut options = SessionOptions::new(config, environment);
    options.approval = approver;
    let continuation = history
        .as_ref()
        .map_or(Continuation::Input, Continuation::of);
    options.record = history;
    let instance = instance(&host, record.as_deref(), held.as_ref()).await?;
    let session = instance.open_session(options).await.map_err(failed)?;
    Ok(HostSession {
        session,
        instance,
        continuation,
        save,
        held,
        undo,
        max_cost_usd,
        _guardian: guardian,
    })
}

/// An instance of `host`, whose log goes to `record`, and to what is `held`.
///
/// # Errors
/// The log cannot be written there.
pub(crate) async fn instance(
    host: &Host,
    record: Option<&Path>,
    held: Option<&Held>,
) -> Result<Instance, Failure> {
    let options = InstanceOptions {
        record: record.map(Path::to_owned),
        journal: held.and_then(Held::log),
        ..InstanceOptions::default()
    };
    let started = host.start_instance(options).await;
    started.map_err(|error| match record {
        Some(_) => Failure::usage(error.to_string()),
        None => failed(error),
    })
}

/// Which core [`chosen_core`] chooses.
pub(crate) fn core_id() -> CoreId {
    chosen_core(Host::builder()).core_id()
}

/// A host with the keys of `providers`.
pub(crate) fn with_keys(providers: &[Chosen]) -> HostBuilder {
    let with = |builder: HostBuilder, chosen: &Chosen| {
        builder.credential(chosen.provider, &chosen.key, &chosen.base_url)
    };
    providers.iter().fold(Host::builder(), with)
}

/// The keys of `providers`, which nothing that is kept may hold.
pub(crate) fn secrets(providers: &[Chosen]) -> Vec<&str> {
    providers.iter().map(|chosen| &*chosen.key).collect()
}

/// The environment of `machine`, without what is secret, for the session that is `held`.
/// What changes there can be undone with `undo`.
///
/// # Errors
/// Commands cannot run there.
pub(crate) fn local(
    machine: &Machine,
    providers: &[Chosen],
    held: Option<&Held>,
    undo: &mut Undo,
) -> Result<Arc<dyn HostEnvironment>, Failure> {
    let fence = &machine.fence;
    let secrets = secrets(providers);
    let mut builder = LocalEnvironment::builder(&machine.directory)
        .secrets(secrets.iter().copied())
        .guardian(&machine.guardian)
        .sandbox(match fence.sandbox {
            None | Some(SandboxMode::Off) => Sandbox::Off,
            Some(SandboxMode::ReadOnly) => Sandbox::ReadOnly,
            Some(SandboxMode::WorkspaceWrite) => Sandbox::WorkspaceWrite,
        });
    if fence.net {
        builder = builder.network();
    }
    if machine.terminal {
        builder = builder.terminal();
    }
    for path in &fence.allow_write {
        builder = builder.writable(path);
    }
    if let Some(directories) = &fence.temporary {
        builder = builder.temporary(directories.iter().cloned());
    }
    for (name, value) in &machine.variables {
        builder = builder.env(name, value);
    }
    let local = builder
        .build()
        .map_err(|error| Failure::usage(error.to_string()))?;
    match machine.checkpoints {
        true => Ok(undo.checkpointed(local, &machine.directory, &secrets, held)),
        false => Ok(Arc::new(local)),
    }
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

    /// Ends what is kept of the run. `resume` is what goes on with it, if that is to be
    /// said.
    pub(crate) async fn end_journal(&self, resume: Option<&str>) {
        let Some(held) = &self.held else { return };
        match self.instance.end_journal().await {
            Ok(Some(why)) => {
                eprintln!("hermitcrab: what is kept of this run is not whole: {why}");
            }
            _ => {
                if let Some(resume) = resume {
                    eprintln!(
                        "hermitcrab: `{resume} {}` goes on with this session",
                        held.id()
                    );
                }
            }
        }
        held.end();
    }

    /// Whether its last task did not come to its end.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.continuation != Continuation::Input
    }

    /// Ends what it does now.
    pub(crate) fn interrupt(&self) {
        self.tell(|session| async move { session.interrupt().await });
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

    fn max_cost_usd(&self) -> Option<f64> {
        self.max_cost_usd
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        Some(self.session.next_event().await?.json().clone())
    }

    fn abort(&mut self) {
        self.tell(|session| async move { session.abort().await });
    }

    fn close(&mut self) {
        let (save, held) = (self.save.clone(), self.held.clone());
        self.tell(|session| async move {
            if let Some(file) = save {
                file.write(&session).await;
            }
            if let Some(held) = held {
                held.save(&session).await;
            }
            // One that works after all is ended.
            match session.close().await {
                Ok(()) => Ok(()),
                Err(_) => session.abort().await,
            }
        });
    }
}
