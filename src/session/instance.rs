//! `Instance`: owns environments, sessions and jobs, and turns their waiting
//! into steps. This is the whole of the core's outer face.

use std::cell::RefCell;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::config::SessionConfig;
use super::emitter::{Emitter, Outbox, SessionEvent};
use super::error::{SessionError, SessionErrorKind};
use super::job::{Action, JobReport, JobReportKind};
use super::meter::Meter;
use super::open;
use super::record::SessionRecord;
use super::state::{Identity, Parts, Session};
use super::workspace::{SharedEnvironment, Workspace};
use crate::effect::{Effect, EffectPort, Executor, Outcome, Random};
use crate::environment::{
    Cancel, Environment, EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo,
    ExecRequest, ExecutionEnvironment, LoggingEnvironment, ReadOnlyEnvironment, RemoteEnvironment,
    Scope,
};
use crate::llm::ToolDefinition;
#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
use crate::memory::Terminal;
use crate::memory::{MemoryEnvironment, MemorySettings, Snapshot, clock};
use crate::text::SortedMap;
use crate::tool::{HostTool, RegisterError, Tool};

/// What one step produced.
#[derive(Debug, Default)]
pub struct Step {
    /// What happened, in order.
    pub events: Vec<SessionEvent>,
    /// News of jobs, in order.
    pub reports: Vec<JobReport>,
    /// What the core wants done, in order.
    pub effects: Vec<Effect>,
    /// What logs of environments say, in order.
    pub log: Vec<LogLine>,
    /// Work remains: step again at once, after other messages had their turn.
    pub busy: bool,
}

/// A line of a log that [`Instance::log_calls`] began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Number of the log.
    pub log: u32,
    /// A call that begins, or how it ended.
    pub line: String,
}

/// A sandbox, with what it was made of.
struct Sandbox {
    environment: Rc<MemoryEnvironment>,
    settings: MemorySettings,
    read_only: Option<ReadOnly>,
}

/// That an environment rejects writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReadOnly {
    /// Whether commands run nevertheless.
    commands: bool,
}

/// One core: sessions, environments and jobs on one executor.
pub struct Instance {
    executor: Executor,
    port: EffectPort,
    random: Random,
    outbox: Outbox,
    reports: Rc<RefCell<Vec<JobReport>>>,
    environments: SortedMap<u32, Rc<SharedEnvironment>>,
    sandboxes: SortedMap<u32, Sandbox>,
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    terminals: SortedMap<u32, Rc<Terminal>>,
    next_environment: u32,
    snapshots: SortedMap<u64, Snapshot>,
    next_snapshot: u64,
    /// Those that calls name by their ids.
    sessions: SortedMap<Rc<str>, Session>,
    log: Rc<RefCell<Vec<LogLine>>>,
    next_log: u32,
    jobs: SortedMap<Rc<str>, Cancel>,
    next_job: u64,
}

impl Instance {
    /// An instance whose every random number follows from `seed`.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            executor: Executor::new(),
            port: EffectPort::new(),
            random: Random::new(seed),
            outbox: Outbox::default(),
            reports: Rc::default(),
            environments: SortedMap::new(),
            sandboxes: SortedMap::new(),
            #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
            terminals: SortedMap::new(),
            next_environment: 1,
            snapshots: SortedMap::new(),
            next_snapshot: 1,
            sessions: SortedMap::new(),
            log: Rc::default(),
            next_log: 1,
            jobs: SortedMap::new(),
            next_job: 1,
        }
    }

    /// Adds an environment that the host answers for through effects.
    pub fn add_remote_environment(&mut self, info: EnvironmentInfo) -> u32 {
        let port = Rc::new(self.port.clone());
        self.add_environment(|id| Rc::new(RemoteEnvironment::new(id, info, port)))
    }

    /// Adds a sandbox; returns its number.
    pub fn add_memory_environment(&mut self, settings: MemorySettings) -> u32 {
        let port = self.port.clone();
        let programs = Rc::new(port.clone());
        let mut options = settings.clone().into_options(self.random.bytes());
        let mut made = None;
        let number = self.add_environment(|id| {
            options.id = id;
            let now = Rc::new(move || port.now_ms());
            let sandbox = Rc::new(MemoryEnvironment::new(options, now, programs));
            made = Some(sandbox.clone());
            sandbox
        });
        if let Some(environment) = made {
            let sandbox = Sandbox {
                environment,
                settings,
                read_only: None,
            };
            self.sandboxes.insert(number, sandbox);
        }
        number
    }

    /// Adds a sandbox that is as another one is now: its files, its clock, its random
    /// numbers. Takes constant time. What is read-only stays so; logs stay behind.
    /// Returns its number.
    ///
    /// # Errors
    /// That one is no sandbox.
    pub fn copy_environment(&mut self, number: u32) -> Result<u32, EnvironmentError> {
        let original = self.sandbox_for("copy_environment", number)?;
        let (settings, read_only) = match self.sandboxes.get(&number) {
            Some(sandbox) => (sandbox.settings.clone(), sandbox.read_only),
            None => Default::default(),
        };
        let copy = self.add_memory_environment(settings);
        self.sandbox_for("copy_environment", copy)?
            .restore(&original.snapshot());
        self.keep_read_only(copy, read_only);
        Ok(copy)
    }

    /// Makes a new sandbox as read-only as the one that it goes on from.
    pub(super) fn keep_read_only(&mut self, number: u32, read_only: Option<ReadOnly>) {
        if let Some(ReadOnly { commands }) = read_only {
            // It was added a moment ago.
            let _ = self.make_read_only(number, commands);
        }
    }

    /// Forgets an environment that nobody works in.
    pub(super) fn forget_environment(&mut self, number: u32) {
        self.sandboxes.remove(&number);
        self.environments.remove(&number);
    }

    /// The sandbox that a session works in, with what it was made of.
    pub(super) fn sandbox_of(
        &self,
        session: &Session,
    ) -> Option<(&MemoryEnvironment, &MemorySettings, Option<ReadOnly>)> {
        let own = &session.0.workspace.environment;
        let (number, _) = self
            .environments
            .iter()
            .find(|(_, environment)| Rc::ptr_eq(environment, own))?;
        let sandbox = self.sandboxes.get(number)?;
        Some((&sandbox.environment, &sandbox.settings, sandbox.read_only))
    }

    /// The sandbox of this number, if it is one.
    pub fn sandbox(&self, number: u32) -> Option<Rc<MemoryEnvironment>> {
        let sandbox = self.sandboxes.get(&number)?;
        Some(sandbox.environment.clone())
    }

    /// The same for `call`.
    pub(crate) fn sandbox_for(
        &self,
        call: &str,
        number: u32,
    ) -> Result<Rc<MemoryEnvironment>, EnvironmentError> {
        self.sandbox(number).ok_or_else(|| {
            EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                format!("{call}: environment {number} is not a sandbox"),
            )
        })
    }

    /// Opens a shell that keeps its state, over the files of a sandbox; returns its
    /// number.
    pub(crate) fn open_terminal(&mut self, sandbox: u32) -> Result<u32, EnvironmentError> {
        let sandbox = self.sandbox_for("open_terminal", sandbox)?;
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        {
            let terminal = Rc::new(Terminal::new(sandbox));
            let made = terminal.clone();
            let number = self.add_environment(|_| made);
            self.terminals.insert(number, terminal);
            Ok(number)
        }
        #[cfg(not(all(target_arch = "wasm32", feature = "sandbox")))]
        {
            let _ = sandbox;
            Err(EnvironmentError::new(
                EnvironmentErrorKind::Unsupported,
                "open_terminal: this core has no shell",
            ))
        }
    }

    pub(crate) fn close_terminal(&mut self, number: u32) {
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        if self.terminals.remove(&number).is_some() {
            self.environments.remove(&number);
        }
        #[cfg(not(all(target_arch = "wasm32", feature = "sandbox")))]
        let _ = number;
    }

    /// The shell of this number, if it is one.
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    pub fn terminal(&self, number: u32) -> Option<Rc<Terminal>> {
        self.terminals.get(&number).cloned()
    }

    /// Keeps a snapshot for later calls; returns its number.
    pub(super) fn keep_snapshot(&mut self, snapshot: Snapshot) -> u64 {
        let number = self.next_snapshot;
        self.next_snapshot += 1;
        self.snapshots.insert(number, snapshot);
        number
    }

    pub(super) fn snapshot(&self, number: u64) -> Result<&Snapshot, SessionError> {
        let missing = || format!("snapshot {number} does not exist");
        self.snapshots
            .get(&number)
            .ok_or_else(|| SessionError::new(SessionErrorKind::NotFound, missing()))
    }

    pub(super) fn forget_snapshot(&mut self, number: u64) {
        self.snapshots.remove(&number);
    }

    /// Keeps a session for later calls; returns its id.
    pub(super) fn keep_session(&mut self, session: Session) -> String {
        let id = session.id().clone();
        self.sessions.insert(id.clone(), session);
        id.to_string()
    }

    pub(super) fn session(&self, id: &str) -> Result<&Session, SessionError> {
        let missing = || format!("session {id} does not exist");
        self.sessions
            .get(id)
            .ok_or_else(|| SessionError::new(SessionErrorKind::NotFound, missing()))
    }

    /// A session that calls name by its id, if it is still kept.
    pub fn session_of(&self, id: &str) -> Option<Session> {
        self.sessions.get(id).cloned()
    }

    pub(super) fn forget_session(&mut self, id: &str) {
        self.sessions.remove(id);
    }

    /// Adds an environment that lives inside the core.
    pub fn add_environment(
        &mut self,
        make: impl FnOnce(u32) -> Rc<dyn ExecutionEnvironment>,
    ) -> u32 {
        let id = self.next_environment;
        self.next_environment += 1;
        let shared = SharedEnvironment::new(make(id));
        self.environments.insert(id, Rc::new(shared));
        id
    }

    /// Puts a wrapper around an environment (spec 4.4), for all later calls.
    pub fn wrap_environment(
        &mut self,
        id: u32,
        wrap: impl FnOnce(Rc<dyn ExecutionEnvironment>) -> Rc<dyn ExecutionEnvironment>,
    ) -> Result<(), SessionError> {
        self.environment(id)?.wrap(wrap);
        Ok(())
    }

    /// Rejects writes in an environment from now on, and commands unless
    /// `commands`: that is a guard, not a boundary.
    pub fn make_read_only(&mut self, id: u32, commands: bool) -> Result<(), SessionError> {
        self.wrap_environment(id, |inner| {
            Rc::new(match commands {
                true => ReadOnlyEnvironment::allowing_commands(inner),
                false => ReadOnlyEnvironment::new(inner),
            })
        })?;
        if let Some(sandbox) = self.sandboxes.get_mut(&id) {
            let allowed = sandbox.read_only.is_none_or(|before| before.commands);
            sandbox.read_only = Some(ReadOnly {
                commands: commands && allowed,
            });
        }
        Ok(())
    }

    /// Logs the calls to an environment from now on: steps give a line before
    /// and after each. Returns the number of the log. Of what is written only
    /// the size stands there; commands stand as they are.
    pub fn log_calls(&mut self, id: u32) -> Result<u32, SessionError> {
        let (log, lines) = (self.next_log, self.log.clone());
        self.wrap_environment(id, |inner| {
            let put = move |line: &str| {
                let line = line.to_owned();
                lines.borrow_mut().push(LogLine { log, line });
            };
            Rc::new(LoggingEnvironment::new(inner, Rc::new(put)))
        })?;
        self.next_log += 1;
        Ok(log)
    }

    /// Opens a session in an environment.
    pub fn open_session(
        &mut self,
        environment: u32,
        config: SessionConfig,
    ) -> Result<Session, SessionError> {
        self.open(environment, config, None)
    }

    /// Opens a session that goes on with the conversation of `record`: its
    /// turns, its queues and, where the provider caches prefixes, its cache.
    /// Provider, model and tools may be others. It is idle, or awaits input if
    /// the last answer was a question; [`Session::resume`] goes on with what
    /// was cut off.
    pub fn open_recorded_session(
        &mut self,
        environment: u32,
        config: SessionConfig,
        record: SessionRecord,
    ) -> Result<Session, SessionError> {
        let mut record = record.completed()?;
        let cache_key = record.cache_key.take();
        let session = self.open(environment, config, cache_key)?;
        session.restore(record)?;
        Ok(session)
    }

    fn open(
        &mut self,
        environment: u32,
        config: SessionConfig,
        cache_key: Option<String>,
    ) -> Result<Session, SessionError> {
        let environment = self.environment(environment)?.clone();
        let profile = config.profile_of(&config.provider)?;
        let invalid = |error: RegisterError| {
            SessionError::new(SessionErrorKind::InvalidTool, error.to_string())
        };
        if config.model.is_empty() && profile.default_model.is_empty() {
            return Err(SessionError::invalid_config(format!(
                "`model` is missing; provider `{}` has no default model",
                profile.id
            )));
        }
        let registry = config.registry(&profile).map_err(invalid)?;
        let host_tool =
            |tool: &ToolDefinition| Rc::new(HostTool::new(tool.clone())) as Rc<dyn Tool>;
        let host_tools = registry
            .unpresented(&config.tools)
            .into_iter()
            .map(host_tool)
            .collect();
        let id: Rc<str> = self.random.uuid().into();
        open::start(Parts {
            emitter: Emitter::new(self.outbox.clone(), id.clone()),
            meter: Meter::default(),
            identity: Identity {
                cache_key: cache_key.map_or_else(|| id.clone(), Into::into),
                id,
                agent: None,
                depth: 0,
            },
            profile,
            workspace: Workspace::of(environment),
            port: self.port.clone(),
            random: self.random.clone(),
            spawner: self.executor.spawner(),
            config,
            registry,
            host_tools,
        })
    }

    /// Starts a command outside of any session; its reports bear the id.
    pub fn start_exec(
        &mut self,
        environment: u32,
        request: ExecRequest,
    ) -> Result<Rc<str>, SessionError> {
        let inner = self.environment(environment)?.inner();
        Ok(self.start_job(inner, Cancel::new(), Action::Exec(request)))
    }

    /// Makes a call outside of any session; its report bears the id.
    pub fn start_call(
        &mut self,
        environment: u32,
        call: EnvironmentCall,
    ) -> Result<Rc<str>, SessionError> {
        let inner = self.environment(environment)?.inner();
        Ok(self.start_job(inner, Cancel::new(), Action::Call(call)))
    }

    /// Does something in the environment of the session whose tool the host runs
    /// as `effect`, under the same policy as the session's own tools. Its reports
    /// bear the id; it ends with the tool's call at the latest.
    pub fn act(&mut self, effect: u64, action: Action) -> Result<Rc<str>, SessionError> {
        let loan = self.port.loan(effect).ok_or_else(|| {
            let message = "the tool's call is over; use the environment while it runs";
            SessionError::new(SessionErrorKind::NotFound, message)
        })?;
        Ok(self.start_job(loan.environment, loan.cancel, action))
    }

    /// Ends a job early; its last report still comes. Unknown ids are ignored.
    pub fn cancel_job(&mut self, job: &str) {
        if let Some(cancel) = self.jobs.get(job) {
            cancel.cancel();
        }
    }

    /// Delivers outcomes, does what can be done without waiting, and returns
    /// what came of it. `now_ms` is ms since 1970-01-01 UTC; a value before an
    /// earlier one counts as that one.
    pub fn step(&mut self, now_ms: u64, outcomes: impl IntoIterator<Item = Outcome>) -> Step {
        self.port.set_now_ms(now_ms);
        for outcome in outcomes {
            self.port.deliver(outcome);
        }
        let mut budget = WorkBudget::start();
        let busy = self.executor.run(|| budget.exhausted());
        clock::commands_ended();
        let reports = self.reports.take();
        for report in &reports {
            if !matches!(report.kind, JobReportKind::Output { .. }) {
                self.jobs.remove(&report.job);
            }
        }
        Step {
            events: self.outbox.take(self.port.now_ms()),
            reports,
            effects: self.port.take_effects(),
            log: self.log.take(),
            busy,
        }
    }

    /// The step boundary, for environments made outside of this type.
    pub fn port(&self) -> &EffectPort {
        &self.port
    }

    /// The random stream of the instance.
    pub fn random(&self) -> &Random {
        &self.random
    }

    fn environment(&self, id: u32) -> Result<&Rc<SharedEnvironment>, SessionError> {
        self.environments.get(&id).ok_or_else(|| {
            SessionError::new(
                SessionErrorKind::NotFound,
                format!("environment {id} does not exist"),
            )
        })
    }

    /// Starts a job that ends with `parent` at the latest.
    fn start_job(
        &mut self,
        inner: Rc<dyn ExecutionEnvironment>,
        parent: Cancel,
        action: Action,
    ) -> Rc<str> {
        let job: Rc<str> = format!("job-{}", self.next_job).into();
        self.next_job += 1;
        let (cancel, link) = parent.child();
        let scope = Scope {
            cancel: cancel.clone(),
            ..Scope::new(job.clone())
        };
        self.jobs.insert(job.clone(), cancel);
        let environment = Environment::new(inner, scope);
        let reports = self.reports.clone();
        let name = job.clone();
        self.executor.spawner().spawn(async move {
            let _link = link;
            let report = |kind| {
                let job = name.clone();
                reports.borrow_mut().push(JobReport { job, kind });
            };
            match action {
                Action::Exec(request) => {
                    let mut output = |stream, data: &[u8]| {
                        let data = bytes::Bytes::copy_from_slice(data);
                        report(JobReportKind::Output { stream, data });
                    };
                    let result = environment.exec(request, &mut output).await;
                    report(JobReportKind::Exec(result));
                }
                Action::Call(call) => report(JobReportKind::Call(environment.call(call).await)),
            }
        });
        job
    }
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("executor", &self.executor)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// When a step has done enough, so that a cancellation and other sessions get
/// their turn. Work is counted (`memory::work`), never timed: a replay must stop
/// at the same place.
struct WorkBudget {
    #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
    end: u64,
}

impl WorkBudget {
    fn start() -> Self {
        Self {
            #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
            end: crate::memory::work().saturating_add(crate::memory::STEP_WORK),
        }
    }

    fn exhausted(&mut self) -> bool {
        #[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
        {
            crate::memory::work() >= self.end
        }
        #[cfg(not(all(target_arch = "wasm32", feature = "sandbox")))]
        {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn with_environment() -> (Instance, u32) {
        let mut instance = Instance::new([1; 32]);
        let environment = instance.add_remote_environment(EnvironmentInfo {
            working_directory: "/work".to_owned(),
            platform: "linux".to_owned(),
            os_version: String::new(),
            utc_offset_minutes: 0,
            bounds: String::new(),
            warning: String::new(),
        });
        (instance, environment)
    }

    /// Names of the tools of a session that opens, or why it does not.
    fn check(config: Value, expected: Result<&str, &str>) {
        let (mut instance, environment) = with_environment();
        let opened = SessionConfig::from_json(&config.to_string())
            .and_then(|config| instance.open_session(environment, config));
        let actual = opened
            .map(|session| {
                let registry = session.0.registry.borrow().inherited();
                registry.names().collect::<Vec<_>>().join(" ")
            })
            .map_err(|error| error.message);
        assert_eq!(actual.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn tools_of_a_session() {
        let search = json!({"name": "web_search", "description": "",
                            "parameters": {"type": "object"}});
        check(
            json!({"toolset": "native", "tools": [search]}),
            Ok("Bash Read Edit Write WebSearch"),
        );
        check(
            json!({"tools": [search]}),
            Ok("read_file write_file edit_file shell grep glob web_search"),
        );
        check(
            json!({"tool_declarations": [{"name": "run"}]}),
            Err("tool declarations: run: `description` is missing"),
        );
    }

    #[test]
    fn rules_for_tools_that_do_not_exist() {
        let rules = |tool: &str| json!({"approval": {"tools": {tool: "ask"}}});
        let core = "read_file write_file edit_file shell grep glob";
        for tool in ["shell", "*", "apply_patch", "spawn_agent"] {
            check(rules(tool), Ok(core));
        }
        check(
            rules("shel"),
            Err(
                "invalid session configuration: `approval.tools` has \"shel\", which is no tool; \
                 there are read_file, write_file, edit_file, shell, grep, glob, spawn_agent, \
                 send_input, wait, close_agent and `*`; set the rule of a tool that comes later \
                 with `configure`, once it is registered",
            ),
        );
        let (mut instance, environment) = with_environment();
        let session = instance.open_session(environment, SessionConfig::default());
        let session = session.expect("a session");
        let late = json!({"approval": {"tools": {"late": "ask"}}});
        let error = session.configure(&late).expect_err("no such tool yet");
        assert_eq!(error.kind, SessionErrorKind::InvalidConfig);
        let definition =
            json!({"name": "late", "description": "", "parameters": {"type": "object"}});
        let definition = serde_json::from_value(definition).expect("a definition");
        session.register_tool(definition).expect("a good tool");
        session.configure(&late).expect("it is there now");
        // A rule stays when its tool goes, and other settings can change.
        session.unregister_tool("late").expect("open");
        session
            .configure(&json!({"max_turns": 3}))
            .expect("a patch");
    }

    #[test]
    fn profiles_of_a_host() {
        let run = json!([{"name": "run", "executor": "shell", "description": "",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}]);
        let profiles =
            |own: Value| json!({"provider": "acme", "model": "m", "profiles": {"acme": own}});
        let core = "read_file write_file edit_file shell grep glob list_dir";
        check(profiles(json!({"wire": "chat"})), Ok(core));
        check(
            profiles(json!({"wire": "chat", "tool_declarations": run})),
            Ok("run"),
        );
        let wrong = |own: Value, problem: &str| {
            let problem = format!("invalid session configuration: `profiles.acme`: {problem}");
            check(profiles(own), Err(&problem));
        };
        wrong(
            json!({}),
            "`wire` is missing; acme is no built-in profile, so name the adapter that it speaks: \
             anthropic, openai, gemini, chat",
        );
        wrong(
            json!({"wire": "caht"}),
            "`wire` is \"caht\", which is no adapter; there are anthropic, openai, gemini, chat",
        );
        wrong(
            json!({"wire": "chat", "context_window": 0}),
            "`context_window` must be at least 1",
        );
        wrong(
            json!({"wire": "chat", "documents": ["../NOTES.md"]}),
            "`documents` has \"../NOTES.md\"; give names such as NOTES.md or .agent/notes.md",
        );
        wrong(
            json!({"wire": "chat", "prompt": {"git": "{{branch}}"}}),
            "`prompt.git`: `{{branch}}` means nothing; there are default, tool:KEY, \
             parameter:KEY.NAME and without:KEY",
        );
        wrong(
            json!({"wire": "chat", "tool_declarations": [{"name": "run"}]}),
            "`tool_declarations`: tool declarations: run: `description` is missing",
        );
        wrong(
            json!({"wire": "chat", "provider_options": {"acme": {}}}),
            "`provider_options` has \"acme\", which is no provider; there are anthropic, openai, \
             gemini, chat",
        );
        check(
            json!({"profiles": {"acme": {"documents": 5}}}),
            Err(
                "invalid session configuration: `profiles.acme.documents`: invalid type: integer \
                 `5`, expected a sequence",
            ),
        );
        check(
            json!({"provider": "acme", "profiles": {"acme": {"wire": "chat"}}}),
            Err(
                "invalid session configuration: `model` is missing; provider `acme` has no default \
                 model",
            ),
        );
        check(
            json!({"provider": "amce", "profiles": {"acme": {"wire": "chat"}}}),
            Err("unknown provider `amce`; known providers: anthropic, openai, gemini, chat, acme"),
        );
    }

    #[test]
    fn wrappers_lie_in_the_order_of_the_calls() {
        let (mut instance, environment) = with_environment();
        instance.log_calls(environment).expect("it exists");
        instance
            .make_read_only(environment, false)
            .expect("it exists");
        instance.log_calls(environment).expect("it exists");
        let calls = [
            EnvironmentCall::Write {
                path: "a".to_owned(),
                content: "secret".into(),
            },
            EnvironmentCall::Stat {
                path: "b".to_owned(),
            },
        ];
        for call in calls {
            instance.start_call(environment, call).expect("it exists");
        }
        let lines = |step: Step| step.log.into_iter().map(|line| (line.log, line.line));
        let said: Vec<_> = lines(instance.step(0, [])).collect();
        let expected = [
            (2, "write a (6 bytes)"),
            (
                2,
                "write a (6 bytes): write operations are disabled in read-only mode",
            ),
            (2, "stat b"),
            (1, "stat b"),
        ];
        assert_eq!(said, expected.map(|(log, line)| (log, line.to_owned())));
        assert_eq!(
            lines(instance.step(0, [])).count(),
            0,
            "each is reported once"
        );
        assert!(instance.log_calls(9).is_err());
    }

    #[test]
    fn models_without_a_default_must_be_named() {
        check(
            json!({"provider": "chat"}),
            Err(
                "invalid session configuration: `model` is missing; provider `chat` has no \
                 default model",
            ),
        );
        check(
            json!({"provider": "chat", "model": "m", "tool_declarations": []}),
            Ok(""),
        );
    }
}
