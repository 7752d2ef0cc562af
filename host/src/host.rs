//! `Host`: what an embedder builds once, and the instances it starts.

use hermitcrab_engine::{self as engine, EngineError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use hermitcrab::session::InstanceCall;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wasmtime::{Engine, MemoryCreator};

use crate::cache::{self, Cache};
use crate::component_core::{CoreLimits, LoadedCore};
use crate::core::{CallResult, Core};
use crate::credential::Credentials;
use crate::driver::DriverHandle;
use crate::embedded;
use crate::error::{HostError, reason};
use crate::http::{HttpPerformer, HttpTransport};
use crate::instance::Instance;
use crate::journal::Journaled;
use crate::log::{CoreId, Header, Recorder, Replay, ReplayError, Sink, Source};
use crate::native_core::NativeCore;
use crate::session::{Session, SessionOptions, TakeoverOptions};

/// Runs sessions: holds the core, the keys and the connections. Clones share
/// everything. Needs a tokio runtime when a session is opened.
///
/// ```no_run
/// use std::sync::Arc;
/// use hermitcrab_host::{EnvironmentChoice, Host, HostError, LocalEnvironment, SessionConfig,
///     SessionOptions};
///
/// # async fn example(key: &str, local: LocalEnvironment) -> Result<(), HostError> {
/// let host = Host::builder()
///     .credential("anthropic", key, "https://api.anthropic.com")
///     .build()?;
/// let environment = EnvironmentChoice::Host(Arc::new(local));
/// let mut session = host
///     .open_session(SessionOptions::new(SessionConfig::default(), environment))
///     .await?;
/// session.submit("Fix the failing test").await?;
/// let controller = session.controller();
/// tokio::spawn(async move { controller.steer("Keep the public API as it is").await });
/// while let Some(event) = session.next_event().await {
///     match event.kind() {
///         "ASSISTANT_TEXT_DELTA" => print!("{}", event.data()["text"].as_str().unwrap_or("")),
///         "PROCESSING_END" => session.close().await?,
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Host(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    transport: HttpTransport,
    core: Face,
    /// Where it came from; none: it is built in.
    core_file: Option<PathBuf>,
    limits: CoreLimits,
    pool: Option<Pool>,
}

/// The places of a host with a pool.
#[derive(Debug)]
struct Pool {
    size: u32,
    free: Arc<Semaphore>,
}

/// Which face of the core runs.
#[derive(Debug)]
enum Face {
    Component(Box<LoadedCore>),
    Native,
}

/// Settings of a [`Host`].
#[derive(Default)]
pub struct HostBuilder {
    credentials: Credentials,
    core: Option<PathBuf>,
    native: bool,
    cache: Cache,
    limits: CoreLimits,
    memory: Option<Arc<dyn MemoryCreator>>,
    pool: Option<u32>,
    problem: Option<HostError>,
}

/// How an instance starts, where [`Host::instance`] is not enough.
#[derive(Default)]
pub struct InstanceOptions {
    /// What its ids and other random numbers follow from; absent: the entropy of the
    /// system.
    pub seed: Option<[u8; 32]>,
    /// A new file for its log ([`Host::recorded_instance`]).
    pub record: Option<PathBuf>,
    /// Where its log is kept beside that, such as a place of a
    /// [`SessionStore`](crate::store::SessionStore), for [`Host::resume`].
    pub journal: Option<Box<dyn Write + Send>>,
    /// Who performs its HTTP exchanges; absent: the host's transport, which holds the
    /// credentials ([`Host::http`]).
    pub http: Option<Arc<dyn HttpPerformer>>,
}

impl std::fmt::Debug for InstanceOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InstanceOptions")
            .field("record", &self.record)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostBuilder")
            .field("credentials", &self.credentials)
            .field("core", &self.core)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl HostBuilder {
    /// Holds `key` under `name` for requests to the origin of `base_url`, and
    /// to no other. [`build`](Self::build) reports one that cannot be used.
    pub fn credential(mut self, name: &str, key: &str, base_url: &str) -> Self {
        if let Err(error) = self.credentials.add(name, key, base_url) {
            self.problem.get_or_insert(error.into());
        }
        self
    }

    /// Holds all of `credentials` and what is added later.
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials = credentials;
        self
    }

    /// Runs the component at `path` instead of the core that is built in. It
    /// is compiled at its first use, which takes seconds, and kept in a cache.
    pub fn core(mut self, path: impl Into<PathBuf>) -> Self {
        self.core = Some(path.into());
        self
    }

    /// Runs the core as a Rust library, without seal and sandbox.
    pub fn native_core(mut self) -> Self {
        self.native = true;
        self
    }

    /// Directory of compiled cores; the default is `hermitcrab/cores` in the
    /// user's cache directory. It becomes private to the user.
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = Cache::At(dir.into());
        self
    }

    /// Keeps no compiled cores on disk.
    pub fn no_cache(mut self) -> Self {
        self.cache = Cache::Off;
        self
    }

    /// Memory and time that an instance may take.
    pub fn limits(mut self, limits: CoreLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Keeps the memory of `instances` instances ready and uses it again, so that
    /// starting and ending one costs neither mapping nor unmapping. It is for hosts
    /// that start thousands.
    ///
    /// At most as many instances live at once. When all places are taken,
    /// [`Host::start_instance`] waits for one, and calls that do not wait, such as
    /// [`Host::instance`], answer an error. A place reserves 4 GiB of addresses, not of
    /// memory; [`limits`](Self::limits) says how much of it an instance may use.
    pub fn pool(mut self, instances: u32) -> Self {
        self.pool = Some(instances.max(1));
        self
    }

    /// Makes the memory of the guests, for tests that must look into it.
    #[doc(hidden)]
    pub fn memory_creator(mut self, memory: Arc<dyn MemoryCreator>) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Which core the host will run; what [`Host::core_id`] says then.
    pub fn core_id(&self) -> CoreId {
        CoreId {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hash: match &self.core {
                _ if self.native => "native".to_owned(),
                Some(file) => cache::hash_of(file),
                None => embedded::HASH.to_owned(),
            },
        }
    }

    /// Builds the host; loads the core, which takes about a millisecond when
    /// it is built in.
    ///
    /// # Errors
    /// A credential that cannot be used, no core, or one that does not load.
    pub fn build(self) -> Result<Host, HostError> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let core = if self.native {
            Face::Native
        } else {
            let dir = self.cache.dir("cores");
            let own = match (self.memory, self.pool) {
                (Some(memory), _) => Some(engine::with_memory(memory)?),
                (None, Some(size)) => Some(engine::pooled(size, self.limits.memory_bytes)?),
                (None, None) => None,
            };
            let loaded = load(self.core.as_deref(), dir.as_deref(), own.as_ref())?;
            Face::Component(Box::new(loaded))
        };
        Ok(Host(Arc::new(Inner {
            transport: HttpTransport::new(self.credentials),
            core,
            core_file: self.core,
            limits: self.limits,
            pool: self.pool.map(|size| Pool {
                size,
                free: Arc::new(Semaphore::new(size as usize)),
            }),
        })))
    }
}

fn load(
    path: Option<&Path>,
    cache: Option<&Path>,
    own: Option<&Engine>,
) -> Result<LoadedCore, HostError> {
    let component = match (path, own) {
        (Some(path), Some(engine)) => cache::load(engine, path, cache)?,
        (Some(path), None) => cache::load(engine::shared()?, path, cache)?,
        (None, Some(engine)) => embedded::copy(engine).ok_or_else(no_core)??,
        (None, None) => embedded::shared().ok_or_else(no_core)??,
    };
    LoadedCore::new(&component).map_err(|error: EngineError| match path {
        Some(path) => HostError::Setup(format!(
            "{} is not a core that this version can run: {error}",
            path.display()
        )),
        None => error.into(),
    })
}

fn no_core() -> HostError {
    HostError::Setup(
        "this build holds no core; build it with `cargo xtask build`, or pass a core made by \
         `cargo xtask component --out FILE` to Host::builder().core()"
            .to_owned(),
    )
}

impl Host {
    /// A host with the core that is built in and no credential.
    pub fn builder() -> HostBuilder {
        HostBuilder::default()
    }

    /// Opens a session in an instance that only it has.
    ///
    /// # Errors
    /// Settings that the core refuses, or files that do not fit the sandbox; its log
    /// cannot be written.
    pub async fn open_session(&self, mut options: SessionOptions) -> Result<Session, HostError> {
        let instance = match options.log.take() {
            Some(file) => self.recorded_instance(&file)?,
            None => self.instance()?,
        };
        instance.open_session(options).await
    }

    /// Starts an instance: for sessions that share an environment, and for
    /// environments without a session.
    ///
    /// # Errors
    /// No memory or entropy left; the pool is full.
    pub fn instance(&self) -> Result<Instance, HostError> {
        self.start(InstanceOptions::default(), self.place()?)
    }

    /// Starts an instance and writes its [log](crate::log) to a new `file`: all inputs
    /// and outputs until the instance ends. A write that fails ends the log, and the
    /// instance goes on ([`Instance::record_failure`]).
    ///
    /// # Errors
    /// No memory or entropy left; the pool is full; the file exists, or cannot be
    /// written.
    pub fn recorded_instance(&self, file: &Path) -> Result<Instance, HostError> {
        let options = InstanceOptions {
            record: Some(file.to_owned()),
            ..InstanceOptions::default()
        };
        self.start(options, self.place()?)
    }

    /// Starts an instance as `options` say. Where the host has a pool and all its
    /// places are taken, waits for one.
    ///
    /// # Errors
    /// No memory or entropy left; the log exists, or cannot be written.
    pub async fn start_instance(&self, options: InstanceOptions) -> Result<Instance, HostError> {
        let place = match &self.0.pool {
            // It is never closed.
            Some(pool) => pool.free.clone().acquire_owned().await.ok(),
            None => None,
        };
        self.start(options, place)
    }

    /// The host's own transport, which holds the credentials.
    pub fn http(&self) -> HttpTransport {
        self.0.transport.clone()
    }

    /// A free place of the pool, if there is a pool.
    pub(crate) fn place(&self) -> Result<Option<OwnedSemaphorePermit>, HostError> {
        let Some(pool) = &self.0.pool else {
            return Ok(None);
        };
        match pool.free.clone().try_acquire_owned() {
            Ok(place) => Ok(Some(place)),
            Err(_) => Err(HostError::Setup(format!(
                "all {} places of the pool are taken; end an instance, wait for one with \
                 start_instance, or build the host with a larger pool",
                pool.size
            ))),
        }
    }

    fn start(
        &self,
        options: InstanceOptions,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Instance, HostError> {
        let seed = match options.seed {
            Some(seed) => seed,
            None => random_seed()?,
        };
        // First: a core that cannot start leaves no log behind.
        let mut core = self.journaled(seed)?.hold(place);
        let recorder = options.record.map(|file| self.recorder(&file, &seed));
        let recorder = recorder.transpose()?;
        if let Some(recorder) = recorder {
            core = core.record(recorder);
        }
        if let Some(journal) = options.journal {
            core = core.keep_in(self.keeper(journal, &seed)?);
        }
        let http = options
            .http
            .unwrap_or_else(|| Arc::new(self.0.transport.clone()));
        Ok(Instance {
            driver: DriverHandle::start(core, http),
        })
    }

    fn header(&self, seed: &[u8; 32]) -> Header {
        let memory_bytes = self.0.limits.memory_bytes as u64;
        Header::new(self.core_id(), seed, memory_bytes)
    }

    /// Begins the kept log of a core with this seed.
    pub(crate) fn keeper(&self, sink: Sink, seed: &[u8; 32]) -> Result<Recorder, HostError> {
        let header = self.header(seed);
        Recorder::begin(sink, &header, self.0.transport.keys()).map_err(|error| {
            HostError::Setup(format!("cannot keep the session: {}", reason(&error)))
        })
    }

    /// Begins a log of a core with this seed.
    pub(crate) fn recorder(&self, file: &Path, seed: &[u8; 32]) -> Result<Recorder, HostError> {
        let header = self.header(seed);
        Recorder::create(file, &header, self.0.transport.keys()).map_err(|error| {
            let way_out = match error.kind() {
                std::io::ErrorKind::AlreadyExists => "; name another file, or remove it",
                _ => "",
            };
            HostError::Setup(format!(
                "cannot record to {}: {}{way_out}",
                file.display(),
                reason(&error)
            ))
        })
    }

    /// Which core it runs.
    pub fn core_id(&self) -> CoreId {
        CoreId {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            hash: match &self.0.core {
                Face::Component(_) => match &self.0.core_file {
                    Some(file) => cache::hash_of(file),
                    None => embedded::HASH.to_owned(),
                },
                Face::Native => "native".to_owned(),
            },
        }
    }

    /// Runs the log at `file` again, in a fresh core; nothing else is read, sent or
    /// started. [`Replay::run`] does it.
    ///
    /// # Errors
    /// The log cannot be used.
    pub fn replay(&self, file: &Path) -> Result<Replay, ReplayError> {
        Replay::begin(file, |seed, header| {
            let limits = self.limits_of(header).patient();
            Ok(Journaled::without(self.0.core.start(seed, limits)?))
        })
    }

    /// As [`Host::replay`], of the log `source`, which errors call `path`.
    ///
    /// # Errors
    /// The log cannot be used.
    pub fn replay_of(&self, path: &Path, source: Source) -> Result<Replay, ReplayError> {
        Replay::read(path, source, |seed, header| {
            let limits = self.limits_of(header).patient();
            Ok(Journaled::without(self.0.core.start(seed, limits)?))
        })
    }

    /// Its limits, with the memory that the core of a log could have.
    pub(crate) fn limits_of(&self, header: &Header) -> CoreLimits {
        CoreLimits {
            memory_bytes: usize::try_from(header.memory_bytes).unwrap_or(usize::MAX),
            ..self.0.limits
        }
    }

    fn journaled(&self, seed: [u8; 32]) -> Result<Journaled, HostError> {
        Ok(self.journaled_core(seed, self.0.limits)?)
    }

    /// A core that can be brought back, if it has a sandbox.
    pub(crate) fn journaled_core(
        &self,
        seed: [u8; 32],
        limits: CoreLimits,
    ) -> CallResult<Journaled> {
        let core = self.0.core.start(seed, limits)?;
        let journaled = match &self.0.core {
            Face::Component(loaded) if limits.journal_bytes > 0 => {
                let loaded = loaded.clone();
                let restart =
                    move || Ok(Box::new(loaded.start(seed, limits.patient())?) as Box<dyn Core>);
                Journaled::new(core, Box::new(restart), limits.journal_bytes)
            }
            Face::Component(_) | Face::Native => Journaled::without(core),
        };
        Ok(journaled.without_keys(self.0.transport.keys()))
    }

    /// Starts a core without a driver, for whoever steps it and performs its
    /// effects.
    ///
    /// # Errors
    /// No memory left.
    pub fn core(&self, seed: [u8; 32]) -> Result<Box<dyn Core>, HostError> {
        Ok(self.0.core.start(seed, self.0.limits)?)
    }
}

impl Face {
    fn start(&self, seed: [u8; 32], limits: CoreLimits) -> CallResult<Box<dyn Core>> {
        Ok(match self {
            Self::Component(loaded) => Box::new(loaded.start(seed, limits)?),
            Self::Native => Box::new(NativeCore::start(seed)?),
        })
    }
}

fn random_seed() -> Result<[u8; 32], HostError> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| {
        HostError::Setup(format!("the system gives no random numbers: {error}"))
    })?;
    Ok(seed)
}

impl Instance {
    /// Opens a session.
    ///
    /// # Errors
    /// Settings that the core refuses, or files that do not fit the sandbox.
    pub async fn open_session(&self, options: SessionOptions) -> Result<Session, HostError> {
        let environment = self.environment(options.environment.clone()).await?;
        Session::open(self.driver.clone(), environment, options).await
    }

    /// Opens a session that goes on where a [saved](crate::Controller::save) one was.
    ///
    /// # Errors
    /// The file is no saved session, or one of another version; settings that make no
    /// sense; its session worked outside of the core, and `options` names no environment.
    pub async fn restore(
        &self,
        saved: impl Into<Bytes>,
        mut options: TakeoverOptions,
    ) -> Result<Session, HostError> {
        let saved = saved.into();
        let place = match options.environment.take() {
            Some(choice) => self.environment(choice).await?,
            None => {
                let programs = std::mem::take(&mut options.programs);
                let add = InstanceCall::AddSavedEnvironment {
                    saved: saved.clone(),
                    settings: json!({ "programs": programs.keys().collect::<Vec<_>>() }),
                };
                self.sandbox(add, programs).await?
            }
        };
        let driver = self.driver.clone();
        Session::take_over(driver, place, options, |environment, settings| {
            InstanceCall::OpenSavedSession {
                environment,
                saved,
                settings,
            }
        })
        .await
    }
}
