//! The component face: WIT exports over one instance. Converts and delegates.
//!
//! The component imports nothing, so everything it knows came in through a
//! call. A component instance is single-threaded and holds one core instance.
//! The contract is `wit/hermitcrab.wit`.

mod convert;
mod sandbox;

use std::cell::RefCell;
use std::rc::Rc;

use crate::environment::{EnvironmentError, EnvironmentErrorKind};
use crate::memory::clock::Stop;
use crate::memory::{MemoryEnvironment, Snapshot};
use crate::session::{
    Instance, Session, SessionConfig, SessionError as CoreError, SessionErrorKind as CoreErrorKind,
    SessionRecord,
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
    sandbox: Option<Rc<MemoryEnvironment>>,
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
        crate::memory::clock::end_commands(match reason {
            wit::EndReason::Work => Stop::Work,
            wit::EndReason::Memory => Stop::Memory,
            wit::EndReason::Stack => Stop::Stack,
            wit::EndReason::Failed => Stop::Failed,
        });
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
    fn sandbox(&self, call: &str) -> Result<&MemoryEnvironment, EnvironmentError> {
        self.sandbox.as_deref().ok_or_else(|| {
            EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                format!("{call}: environment {} is not a sandbox", self.number),
            )
        })
    }
}

impl wit::GuestEnvironment for EnvironmentHandle {
    fn memory(options_json: String) -> Result<wit::Environment, wit::SessionError> {
        with_instance(|instance| {
            let (number, sandbox) = sandbox::open(instance, &options_json)?;
            Ok(wit::Environment::new(Self { number, sandbox }))
        })
    }

    fn remote(info: wit::EnvironmentInfo) -> Result<wit::Environment, wit::SessionError> {
        with_instance(|instance| {
            Ok(wit::Environment::new(Self {
                number: instance.add_remote_environment(info.into()),
                sandbox: None,
            }))
        })
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
            let config = SessionConfig::from_json(&config_json)?;
            let session = match record_json {
                None => instance.open_session(number, config)?,
                Some(json) => {
                    let record = SessionRecord::from_json(&json)?;
                    instance.open_recorded_session(number, config, record)?
                }
            };
            Ok(wit::Session::new(Self(session)))
        })
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }

    fn state(&self) -> wit::SessionState {
        self.0.state().into()
    }

    fn submit(&self, input: Vec<wit::Part>) -> Result<(), wit::SessionError> {
        Ok(self.0.submit(convert::content(input))?)
    }

    fn answer(&self, input: Vec<wit::Part>) -> Result<(), wit::SessionError> {
        Ok(self.0.answer(convert::content(input))?)
    }

    fn resume(&self) -> Result<(), wit::SessionError> {
        Ok(self.0.resume()?)
    }

    fn steer(&self, message: Vec<wit::Part>) -> Result<u64, wit::SessionError> {
        Ok(self.0.steer(convert::content(message))?)
    }

    fn follow_up(&self, message: Vec<wit::Part>) -> Result<(), wit::SessionError> {
        Ok(self.0.follow_up(convert::content(message))?)
    }

    fn add_system_turn(&self, content: String) -> Result<(), wit::SessionError> {
        Ok(self.0.add_system_turn(content)?)
    }

    fn interrupt(&self) -> Result<(), wit::SessionError> {
        Ok(self.0.interrupt()?)
    }

    fn abort(&self) {
        self.0.abort();
    }

    fn close(&self) -> Result<(), wit::SessionError> {
        Ok(self.0.close()?)
    }

    fn config(&self) -> String {
        // Settings are strings, numbers and JSON values: they always serialise.
        serde_json::to_string(&self.0.config()).unwrap_or_default()
    }

    fn configure(&self, patch_json: String) -> Result<(), wit::SessionError> {
        let patch = parse(&patch_json, CoreErrorKind::InvalidConfig, "the patch")?;
        Ok(self.0.configure(&patch)?)
    }

    fn register_tool(&self, definition_json: String) -> Result<(), wit::SessionError> {
        let kind = CoreErrorKind::InvalidTool;
        let definition = parse(&definition_json, kind, "the tool definition")?;
        Ok(self.0.register_tool(definition)?)
    }

    fn unregister_tool(&self, name: String) -> Result<bool, wit::SessionError> {
        Ok(self.0.unregister_tool(&name)?)
    }

    fn agents(&self) -> Vec<wit::Agent> {
        self.0.agents().into_iter().map(Into::into).collect()
    }

    fn agent_history(&self, agent: String) -> Result<Vec<u8>, wit::SessionError> {
        let turns = self.0.agent_history(&agent)?;
        Ok(serde_json::to_vec(&turns).unwrap_or_default())
    }

    fn tell_agent(&self, agent: String, call: wit::AgentCall) -> Result<(), wit::SessionError> {
        Ok(self.0.tell_agent(&agent, call.into())?)
    }

    fn tool_names(&self) -> Vec<String> {
        self.0.tool_names()
    }

    fn history(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0.history()).unwrap_or_default()
    }

    fn record(&self) -> Vec<u8> {
        serde_json::to_vec(&self.0.record()).unwrap_or_default()
    }
}

fn parse<T: serde::de::DeserializeOwned>(
    json: &str,
    kind: CoreErrorKind,
    what: &str,
) -> Result<T, CoreError> {
    serde_json::from_str(json)
        .map_err(|error| CoreError::new(kind, format!("{what} cannot be used: {error}")))
}
