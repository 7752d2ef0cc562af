//! The component face: WIT exports over one instance. Converts and delegates.
//!
//! The component imports nothing, so everything it knows came in through a
//! call. A component instance is single-threaded and holds one core instance.
//! The contract is `wit/hermitcrab.wit`.

mod convert;

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

use crate::effect::Effect;
use crate::environment::{EnvironmentError, EnvironmentErrorKind};
use crate::memory::{Delta, EndReason, MemoryEnvironment, Snapshot, clock};
use crate::session::{
    Instance, JobReport, Session, SessionError as CoreError, SessionErrorKind as CoreErrorKind,
    SessionEvent, Step,
};
use bindings::exports::hermitcrab::core::instance as wit;

mod bindings {
    #![allow(missing_docs, unreachable_pub, unsafe_op_in_unsafe_fn, clippy::all)]

    wit_bindgen::generate!({ path: "wit", world: "agent" });

    export!(Component);

    use super::Component;
}

thread_local! {
    static INSTANCE: RefCell<Option<Instance>> = const { RefCell::new(None) };
}

/// Bytes that a session with its sandbox needs beyond the tables.
const HEADROOM: usize = 1 << 20;

/// The exported interface.
struct Component;

/// An environment as the host holds it.
struct EnvironmentHandle {
    number: u32,
}

/// A remembered sandbox as the host holds it.
struct SnapshotHandle(Snapshot);

/// A session as the host holds it.
struct SessionHandle(Session);

/// Calls `with` on the instance; an error before `open`.
fn with_instance<T>(
    with: impl FnOnce(&mut Instance) -> Result<T, CoreError>,
) -> Result<T, wit::SessionError> {
    INSTANCE
        .with_borrow_mut(|instance| match instance {
            Some(instance) => with(instance),
            None => Err(CoreError::new(
                CoreErrorKind::IllegalState,
                "the instance is not open; call open() with a seed first",
            )),
        })
        .map_err(Into::into)
}

impl wit::Guest for Component {
    type Environment = EnvironmentHandle;
    type Snapshot = SnapshotHandle;
    type Session = SessionHandle;

    fn prepare() {
        crate::memory::prepare();
        crate::session::prepare();
        // One growth of memory in place of a dozen; what is freed is kept.
        drop(std::hint::black_box(Vec::<u8>::with_capacity(HEADROOM)));
    }

    fn open(seed: Vec<u8>) -> Result<(), wit::SessionError> {
        let seed: [u8; 32] = seed.try_into().map_err(|seed: Vec<u8>| {
            CoreError::new(
                CoreErrorKind::InvalidInput,
                format!("the seed has {} bytes and must have 32", seed.len()),
            )
        })?;
        INSTANCE.with_borrow_mut(|instance| {
            if instance.is_some() {
                return Err(wit::SessionError::from(CoreError::new(
                    CoreErrorKind::IllegalState,
                    "the instance is open already; make another component instance",
                )));
            }
            *instance = Some(Instance::new(seed));
            Ok(())
        })
    }

    fn step(now_ms: u64, outcomes: Vec<wit::Outcome>) -> wit::StepResult {
        INSTANCE.with_borrow_mut(|instance| {
            instance
                .as_mut()
                .map(|instance| instance.step(now_ms, outcomes.into_iter().map(Into::into)))
                .unwrap_or_default()
                .into()
        })
    }

    fn act(effect: u64, action: wit::Action) -> Result<String, wit::SessionError> {
        with_instance(|instance| Ok(instance.act(effect, action.into())?.to_string()))
    }

    fn end_commands(reason: wit::EndReason) {
        clock::end_commands(EndReason::from(reason).into());
    }

    fn cancel_job(job: String) {
        INSTANCE.with_borrow_mut(|instance| {
            if let Some(instance) = instance {
                instance.cancel_job(&job);
            }
        });
    }
}

impl EnvironmentHandle {
    fn sandbox(&self, call: &str) -> Result<Rc<MemoryEnvironment>, EnvironmentError> {
        INSTANCE.with_borrow(|instance| match instance {
            Some(instance) => instance.sandbox_for(call, self.number),
            None => Err(not_open()),
        })
    }
}

/// Makes a call that fails as those on environments do.
fn in_instance<T>(
    call: impl FnOnce(&mut Instance) -> Result<T, EnvironmentError>,
) -> Result<T, EnvironmentError> {
    INSTANCE.with_borrow_mut(|instance| call(instance.as_mut().ok_or_else(not_open)?))
}

/// An environment was made by an instance.
fn not_open() -> EnvironmentError {
    EnvironmentError::new(EnvironmentErrorKind::Io, "the instance is not open")
}

impl wit::GuestEnvironment for EnvironmentHandle {
    fn memory(options_json: String) -> Result<wit::Environment, wit::SessionError> {
        with_instance(|instance| {
            let settings = serde_json::from_str(&options_json).map_err(|error| {
                CoreError::new(
                    CoreErrorKind::InvalidConfig,
                    format!("invalid sandbox settings: {error}"),
                )
            })?;
            let number = instance.add_memory_environment(settings);
            Ok(wit::Environment::new(Self { number }))
        })
    }

    fn remote(info: wit::EnvironmentInfo) -> Result<wit::Environment, wit::SessionError> {
        with_instance(|instance| {
            Ok(wit::Environment::new(Self {
                number: instance.add_remote_environment(info.into()),
            }))
        })
    }

    fn saved(
        saved: Vec<u8>,
        options_json: String,
    ) -> Result<wit::Environment, wit::EnvironmentError> {
        let settings = serde_json::from_str(&options_json).map_err(|error| {
            EnvironmentError::new(
                EnvironmentErrorKind::InvalidInput,
                format!("invalid sandbox settings: {error}"),
            )
        })?;
        let number = in_instance(|instance| instance.add_saved_environment(&saved, settings))?;
        Ok(wit::Environment::new(Self { number }))
    }

    fn copy(&self) -> Result<wit::Environment, wit::EnvironmentError> {
        let number = in_instance(|instance| instance.copy_environment(self.number))?;
        Ok(wit::Environment::new(Self { number }))
    }

    fn number(&self) -> u32 {
        self.number
    }

    fn make_read_only(&self, allow_commands: bool) -> Result<(), wit::SessionError> {
        with_instance(|instance| instance.make_read_only(self.number, allow_commands))
    }

    fn log_calls(&self) -> Result<u32, wit::SessionError> {
        with_instance(|instance| instance.log_calls(self.number))
    }

    fn import_tar(&self, archive: Vec<u8>) -> Result<(), wit::EnvironmentError> {
        Ok(self.sandbox("import_tar")?.import_tar(&archive)?)
    }

    fn export_tar(&self) -> Result<Vec<u8>, wit::EnvironmentError> {
        Ok(self.sandbox("export_tar")?.export_tar()?)
    }

    fn import_files(&self, files: Vec<wit::File>) -> Result<(), wit::EnvironmentError> {
        let files = files
            .into_iter()
            .map(|file| (file.path, file.content.into()))
            .collect();
        Ok(self.sandbox("import_files")?.import_files(files)?)
    }

    fn replace_tree(&self, archive: Vec<u8>) -> Result<(), wit::EnvironmentError> {
        Ok(self.sandbox("replace_tree")?.replace_tree(&archive)?)
    }

    fn apply_delta(
        &self,
        archive: Vec<u8>,
        removed: Vec<String>,
    ) -> Result<(), wit::EnvironmentError> {
        let delta = Delta { archive, removed };
        Ok(self.sandbox("apply_delta")?.apply(&delta)?)
    }

    fn lend_program(&self, name: String) -> Result<(), wit::EnvironmentError> {
        self.sandbox("lend_program")?.lend(&name);
        Ok(())
    }

    fn open_terminal(&self) -> Result<wit::Environment, wit::EnvironmentError> {
        let number = in_instance(|instance| instance.open_terminal(self.number))?;
        Ok(wit::Environment::new(Self { number }))
    }

    fn close_terminal(&self) {
        INSTANCE.with_borrow_mut(|instance| {
            if let Some(instance) = instance {
                instance.close_terminal(self.number);
            }
        });
    }

    fn snapshot(&self) -> Result<wit::Snapshot, wit::EnvironmentError> {
        let snapshot = self.sandbox("snapshot")?.snapshot();
        Ok(wit::Snapshot::new(SnapshotHandle(snapshot)))
    }

    fn restore(&self, snapshot: wit::SnapshotBorrow<'_>) -> Result<(), wit::EnvironmentError> {
        let snapshot = &snapshot.get::<SnapshotHandle>().0;
        self.sandbox("restore")?.restore(snapshot);
        Ok(())
    }

    fn changes(
        &self,
        snapshot: wit::SnapshotBorrow<'_>,
    ) -> Result<Vec<wit::Change>, wit::EnvironmentError> {
        let snapshot = &snapshot.get::<SnapshotHandle>().0;
        let changes = self.sandbox("changes")?.changes_since(snapshot);
        Ok(changes.into_iter().map(Into::into).collect())
    }

    fn exec(&self, request: wit::ExecRequest) -> Result<String, wit::SessionError> {
        with_instance(|instance| {
            let job = instance.start_exec(self.number, request.into())?;
            Ok(job.to_string())
        })
    }

    fn call(&self, call: wit::EnvironmentCall) -> Result<String, wit::SessionError> {
        with_instance(|instance| {
            let job = instance.start_call(self.number, call.into())?;
            Ok(job.to_string())
        })
    }
}

impl wit::GuestSnapshot for SnapshotHandle {}

impl wit::GuestSession for SessionHandle {
    fn open(
        environment: wit::EnvironmentBorrow<'_>,
        config_json: String,
        record_json: Option<String>,
    ) -> Result<wit::Session, wit::SessionError> {
        let number = environment.get::<EnvironmentHandle>().number;
        with_instance(|instance| {
            let session = instance.open_from_json(number, &config_json, record_json.as_deref())?;
            Ok(wit::Session::new(Self(session)))
        })
    }

    fn open_saved(
        environment: wit::EnvironmentBorrow<'_>,
        saved: Vec<u8>,
        settings_json: String,
    ) -> Result<wit::Session, wit::SessionError> {
        let number = environment.get::<EnvironmentHandle>().number;
        with_instance(|instance| {
            let settings = settings(&settings_json)?;
            let session = instance.open_saved_session(number, &saved, &settings)?;
            Ok(wit::Session::new(Self(session)))
        })
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn save(&self) -> Result<Vec<u8>, wit::SessionError> {
        with_instance(|instance| Ok(instance.save_session(&self.0)?.into()))
    }

    fn copy(
        &self,
        environment: wit::EnvironmentBorrow<'_>,
        settings_json: String,
    ) -> Result<wit::Session, wit::SessionError> {
        let number = environment.get::<EnvironmentHandle>().number;
        with_instance(|instance| {
            let settings = settings(&settings_json)?;
            let session = instance.copy_session(&self.0, number, &settings)?;
            Ok(wit::Session::new(Self(session)))
        })
    }

    fn call(&self, call: wit::SessionCall) -> Result<wit::SessionReply, wit::SessionError> {
        Ok(self.0.call(call.try_into()?)?.into())
    }
}

/// Settings that a call names.
fn settings(json: &str) -> Result<Value, CoreError> {
    serde_json::from_str(json)
        .map_err(|error| CoreError::new(CoreErrorKind::InvalidConfig, error.to_string()))
}

impl From<Step> for wit::StepResult {
    fn from(step: Step) -> Self {
        let event = |event: SessionEvent| wit::Event {
            session_id: event.session_id.to_string(),
            json: event.json.into(),
        };
        let report = |report: JobReport| wit::Report {
            job: report.job.to_string(),
            news: report.kind.into(),
        };
        let effect = |effect: Effect| wit::Effect {
            id: effect.id,
            owner: effect.owner.to_string(),
            request: effect.kind.into(),
        };
        Self {
            events: step.events.into_iter().map(event).collect(),
            reports: step.reports.into_iter().map(report).collect(),
            effects: step.effects.into_iter().map(effect).collect(),
            log: step.log.into_iter().map(Into::into).collect(),
            busy: step.busy,
        }
    }
}
