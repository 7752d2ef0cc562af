//! `NativeCore`: the core as a Rust library, on a thread of its own.
//!
//! The same code as the component without the seal: no memory limit, no epoch,
//! no sandbox. An instance cannot change threads, so it lives on one, and each
//! call travels there and back. Tests run the same cases over both.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use hermitcrab::effect::Outcome;
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, ExecRequest,
};
use hermitcrab::event::SessionState;
use hermitcrab::llm::Content;
use hermitcrab::memory::Change;
use hermitcrab::session::{
    self, Action, AgentCall, Instance, Session, SessionConfig, SessionError, SessionErrorKind,
    SessionRecord,
};

use crate::core::{
    AgentInfo, CallResult, CommandPolicy, Core, CoreEffect, CoreError, CoreEvent, CoreFailure,
    CoreReport, CoreStep, EndReason,
};

type Call = Box<dyn FnOnce(&mut Native) + Send>;

/// One instance of the core as a library.
#[derive(Debug)]
pub struct NativeCore {
    calls: mpsc::Sender<Call>,
}

/// What lives on the thread.
struct Native {
    instance: Instance,
    sessions: BTreeMap<Arc<str>, Session>,
}

impl NativeCore {
    /// Starts an instance whose every random number follows from `seed`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(seed: [u8; 32]) -> CallResult<Self> {
        let (calls, inbox) = mpsc::channel::<Call>();
        std::thread::Builder::new()
            .name("hermitcrab-core".to_owned())
            .spawn(move || {
                let mut native = Native {
                    instance: Instance::new(seed),
                    sessions: BTreeMap::new(),
                };
                for call in inbox {
                    call(&mut native);
                }
            })
            .map_err(|error| failed(&format!("its thread cannot be started: {error}")))?;
        Ok(Self { calls })
    }

    /// Makes a call on the thread and waits for its result; a panic there ends
    /// the thread, and with it the instance.
    fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut Native) -> CallResult<T> + Send + 'static,
    ) -> CallResult<T> {
        let (reply, result) = mpsc::sync_channel(1);
        let call: Call = Box::new(move |native| {
            let _ = reply.send(call(native));
        });
        self.calls
            .send(call)
            .map_err(|_| failed("it has panicked"))?;
        result.recv().map_err(|_| failed("it has panicked"))?
    }

    fn session<T: Send + 'static>(
        &self,
        id: &str,
        call: impl FnOnce(&Session) -> Result<T, SessionError> + Send + 'static,
    ) -> CallResult<T> {
        let id = id.to_owned();
        self.run(move |native| match native.sessions.get(id.as_str()) {
            Some(session) => Ok(call(session)?),
            None => Err(SessionError::new(
                SessionErrorKind::NotFound,
                format!("session {id} does not exist"),
            )
            .into()),
        })
    }
}

fn failed(why: &str) -> CoreError {
    CoreError::Failed(CoreFailure {
        code: "core_trapped",
        message: format!("the native core failed: {why}"),
        ends: EndReason::Failed,
    })
}

fn no_sandbox<T>() -> CallResult<T> {
    Err(CoreError::Environment(EnvironmentError::new(
        EnvironmentErrorKind::Unsupported,
        "the native core has no sandbox; use the component",
    )))
}

impl Core for NativeCore {
    fn end_commands(&mut self, _: EndReason) -> CallResult<()> {
        no_sandbox()
    }

    fn step(&mut self, now_ms: u64, outcomes: Vec<Outcome>) -> CallResult<CoreStep> {
        self.run(move |native| {
            let step = native.instance.step(now_ms, outcomes);
            Ok(CoreStep {
                events: step
                    .events
                    .into_iter()
                    .map(|event| CoreEvent {
                        session: (&*event.session_id).into(),
                        json: event.json,
                    })
                    .collect(),
                reports: step
                    .reports
                    .into_iter()
                    .map(|report| CoreReport {
                        job: (&*report.job).into(),
                        kind: report.kind,
                    })
                    .collect(),
                effects: step
                    .effects
                    .into_iter()
                    .map(|effect| CoreEffect {
                        id: effect.id,
                        owner: (&*effect.owner).into(),
                        kind: effect.kind,
                    })
                    .collect(),
                log: step.log,
                busy: step.busy,
            })
        })
    }

    fn add_memory_environment(&mut self, _: &str) -> CallResult<u32> {
        no_sandbox()
    }

    fn add_remote_environment(&mut self, info: EnvironmentInfo) -> CallResult<u32> {
        self.run(move |native| Ok(native.instance.add_remote_environment(info)))
    }

    fn make_read_only(&mut self, environment: u32, commands: CommandPolicy) -> CallResult<()> {
        self.run(move |native| {
            let allow = commands == CommandPolicy::Allow;
            Ok(native.instance.make_read_only(environment, allow)?)
        })
    }

    fn log_calls(&mut self, environment: u32) -> CallResult<u32> {
        self.run(move |native| Ok(native.instance.log_calls(environment)?))
    }

    fn import_tar(&mut self, _: u32, _: &Bytes) -> CallResult<()> {
        no_sandbox()
    }

    fn export_tar(&mut self, _: u32) -> CallResult<Bytes> {
        no_sandbox()
    }

    fn import_files(&mut self, _: u32, _: Vec<(String, Bytes)>) -> CallResult<()> {
        no_sandbox()
    }

    fn snapshot(&mut self, _: u32) -> CallResult<u64> {
        no_sandbox()
    }

    fn restore(&mut self, _: u32, _: u64) -> CallResult<()> {
        no_sandbox()
    }

    fn changes(&mut self, _: u32, _: u64) -> CallResult<Vec<Change>> {
        no_sandbox()
    }

    fn forget_snapshot(&mut self, _: u64) -> CallResult<()> {
        Ok(())
    }

    fn start_exec(&mut self, environment: u32, request: ExecRequest) -> CallResult<Arc<str>> {
        self.run(move |native| {
            let job = native.instance.start_exec(environment, request)?;
            Ok((&*job).into())
        })
    }

    fn start_call(&mut self, environment: u32, call: EnvironmentCall) -> CallResult<Arc<str>> {
        self.run(move |native| {
            let job = native.instance.start_call(environment, call)?;
            Ok((&*job).into())
        })
    }

    fn act(&mut self, effect: u64, action: Action) -> CallResult<Arc<str>> {
        self.run(move |native| {
            let job = native.instance.act(effect, action)?;
            Ok((&*job).into())
        })
    }

    fn cancel_job(&mut self, job: &str) -> CallResult<()> {
        let job = job.to_owned();
        self.run(move |native| {
            native.instance.cancel_job(&job);
            Ok(())
        })
    }

    fn open_session(
        &mut self,
        environment: u32,
        config_json: &str,
        record_json: Option<&str>,
    ) -> CallResult<Arc<str>> {
        let config = SessionConfig::from_json(config_json)?;
        let record = record_json.map(SessionRecord::from_json).transpose()?;
        self.run(move |native| {
            let instance = &mut native.instance;
            let session = match record {
                None => instance.open_session(environment, config)?,
                Some(record) => instance.open_recorded_session(environment, config, record)?,
            };
            let id: Arc<str> = (&**session.id()).into();
            native.sessions.insert(id.clone(), session);
            Ok(id)
        })
    }

    fn state(&mut self, session: &str) -> CallResult<SessionState> {
        self.session(session, |session| Ok(session.state()))
    }

    fn submit(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let input = input.clone();
        self.session(session, move |session| session.submit(input))
    }

    fn answer(&mut self, session: &str, input: &Content) -> CallResult<()> {
        let input = input.clone();
        self.session(session, move |session| session.answer(input))
    }

    fn resume(&mut self, session: &str) -> CallResult<()> {
        self.session(session, |session| session.resume())
    }

    fn steer(&mut self, session: &str, message: &Content) -> CallResult<u64> {
        let message = message.clone();
        self.session(session, move |session| session.steer(message))
    }

    fn follow_up(&mut self, session: &str, message: &Content) -> CallResult<()> {
        let message = message.clone();
        self.session(session, move |session| session.follow_up(message))
    }

    fn add_system_turn(&mut self, session: &str, content: &str) -> CallResult<()> {
        let content = content.to_owned();
        self.session(session, move |session| session.add_system_turn(content))
    }

    fn interrupt(&mut self, session: &str) -> CallResult<()> {
        self.session(session, Session::interrupt)
    }

    fn abort(&mut self, session: &str) -> CallResult<()> {
        self.session(session, |session| {
            session.abort();
            Ok(())
        })
    }

    fn close(&mut self, session: &str) -> CallResult<()> {
        self.session(session, Session::close)
    }

    fn config(&mut self, session: &str) -> CallResult<String> {
        self.session(session, |session| {
            Ok(serde_json::to_string(&session.config()).unwrap_or_default())
        })
    }

    fn configure(&mut self, session: &str, patch_json: &str) -> CallResult<()> {
        let patch = parse(patch_json, SessionErrorKind::InvalidConfig, "the patch")?;
        self.session(session, move |session| session.configure(&patch))
    }

    fn register_tool(&mut self, session: &str, definition_json: &str) -> CallResult<()> {
        let kind = SessionErrorKind::InvalidTool;
        let definition = parse(definition_json, kind, "the tool definition")?;
        self.session(session, move |session| session.register_tool(definition))
    }

    fn unregister_tool(&mut self, session: &str, name: &str) -> CallResult<bool> {
        let name = name.to_owned();
        self.session(session, move |session| session.unregister_tool(&name))
    }

    fn agents(&mut self, session: &str) -> CallResult<Vec<AgentInfo>> {
        self.session(session, |session| {
            let agents = session.agents().into_iter();
            let info = |agent: session::AgentInfo| AgentInfo {
                id: (&*agent.id).into(),
                parent_id: (&*agent.parent_id).into(),
                task: agent.task.to_string(),
                state: agent.state,
                status: agent.status,
                depth: agent.depth,
                turns: agent.turns,
            };
            Ok(agents.map(info).collect())
        })
    }

    fn agent_history(&mut self, session: &str, agent: &str) -> CallResult<Bytes> {
        let agent = agent.to_owned();
        self.session(session, move |session| {
            let turns = session.agent_history(&agent)?;
            Ok(serde_json::to_vec(&turns).unwrap_or_default().into())
        })
    }

    fn tell_agent(&mut self, session: &str, agent: &str, call: AgentCall) -> CallResult<()> {
        let agent = agent.to_owned();
        self.session(session, move |session| session.tell_agent(&agent, call))
    }

    fn tool_names(&mut self, session: &str) -> CallResult<Vec<String>> {
        self.session(session, |session| Ok(session.tool_names()))
    }

    fn history(&mut self, session: &str) -> CallResult<Bytes> {
        self.session(session, |session| {
            let json = serde_json::to_vec(&session.history()).unwrap_or_default();
            Ok(json.into())
        })
    }

    fn record(&mut self, session: &str) -> CallResult<Bytes> {
        self.session(session, |session| {
            let json = serde_json::to_vec(&session.record()).unwrap_or_default();
            Ok(json.into())
        })
    }

    fn forget_session(&mut self, session: &str) -> CallResult<()> {
        let session = session.to_owned();
        self.run(move |native| {
            native.sessions.remove(session.as_str());
            Ok(())
        })
    }
}

fn parse<T: serde::de::DeserializeOwned>(
    json: &str,
    kind: SessionErrorKind,
    what: &str,
) -> CallResult<T> {
    serde_json::from_str(json)
        .map_err(|error| SessionError::new(kind, format!("{what} cannot be used: {error}")).into())
}
