//! Runs calls through the whole pipeline, for the tests of the tools.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::Value;

use super::core::CORE_TOOLS;
use super::{
    BackgroundCommands, Executed, FileLocks, KnownFiles, OutputLimits, Pipeline, PipelineEvents,
    Registry, Timeouts,
};
use crate::effect::{EffectKind, EffectPort, Executor, Outcome, OutcomeKind};
use crate::environment::testing::TreeEnvironment;
use crate::environment::{
    EnvironmentInfo, ExecutionEnvironment, OutputStream, RemoteEnvironment, Scope,
};
use crate::llm::ToolCall;

/// Writes down what the pipeline tells.
#[derive(Default)]
pub(crate) struct Log(pub(crate) RefCell<Vec<String>>);

impl PipelineEvents for Log {
    fn started(&self, call: &ToolCall) {
        self.0.borrow_mut().push(format!("start {}", call.name));
    }

    fn approval_requested(&self, call: &ToolCall, arguments: &Value, reason: &str) {
        let line = format!("approve {} {arguments} {reason}", call.name);
        self.0.borrow_mut().push(line);
    }

    fn output_delta(&self, _call: &ToolCall, stream: Option<OutputStream>, text: &str) {
        self.0.borrow_mut().push(format!("delta {stream:?} {text}"));
    }

    fn ended(&self, call: &ToolCall, executed: &Executed) {
        let line = format!("end {} {}", call.name, executed.full.len());
        self.0.borrow_mut().push(line);
    }
}

/// A pipeline of the core tools over `environment`.
pub(super) fn pipeline(environment: Rc<dyn ExecutionEnvironment>) -> (Pipeline, Rc<Log>) {
    let registry = Registry::declared(CORE_TOOLS);
    pipeline_of(registry.expect("valid declarations"), environment)
}

/// A pipeline of `registry` over `environment`.
pub(crate) fn pipeline_of(
    registry: Registry,
    environment: Rc<dyn ExecutionEnvironment>,
) -> (Pipeline, Rc<Log>) {
    let log = Rc::new(Log::default());
    let pipeline = Pipeline {
        registry,
        environment,
        port: EffectPort::new(),
        limits: OutputLimits::default(),
        timeouts: Timeouts::default(),
        approvals: Rc::default(),
        max_captured_bytes: 8 << 20,
        files: FileLocks::default(),
        known: KnownFiles::default(),
        background: BackgroundCommands::default(),
        events: log.clone(),
    };
    (pipeline, log)
}

/// An environment that the test plays by effects, and the effects.
pub(super) fn remote_environment() -> (RemoteEnvironment, EffectPort) {
    let port = EffectPort::new();
    let info = EnvironmentInfo {
        working_directory: "/work".to_owned(),
        platform: "linux".to_owned(),
        os_version: String::new(),
        utc_offset_minutes: 0,
        bounds: String::new(),
        warning: String::new(),
    };
    let environment = RemoteEnvironment::new(0, info, Rc::new(port.clone()));
    (environment, port)
}

/// A pipeline whose environment is the one that the test plays by effects.
pub(super) fn remote() -> (Pipeline, Rc<Log>) {
    let registry = Registry::declared(CORE_TOOLS);
    remote_of(registry.expect("valid declarations"))
}

/// The same for the tools of `registry`.
pub(crate) fn remote_of(registry: Registry) -> (Pipeline, Rc<Log>) {
    let (environment, port) = remote_environment();
    let (mut pipeline, log) = pipeline_of(registry, Rc::new(environment));
    pipeline.port = port;
    (pipeline, log)
}

pub(crate) fn call(name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: "c1".to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        custom: false,
    }
}

/// Runs one call; each effect it asks for is answered by the next of
/// `answers`. Returns the result and the effects.
pub(crate) fn play(
    pipeline: &Pipeline,
    scope: &Scope,
    call: ToolCall,
    answers: Vec<Vec<OutcomeKind>>,
) -> (Executed, Vec<EffectKind>) {
    let result = Rc::new(RefCell::new(None));
    let mut executor = Executor::new();
    let (running, slot, scope) = (pipeline.clone(), result.clone(), scope.clone());
    executor.spawner().spawn(async move {
        running.start(&call);
        let executed = running.run(&scope, &call).await;
        slot.replace(Some(executed));
    });
    let mut answers: VecDeque<_> = answers.into();
    let mut effects = Vec::new();
    loop {
        executor.run(|| false);
        let new = pipeline.port.take_effects();
        if new.is_empty() {
            break;
        }
        for effect in new {
            for kind in answers.pop_front().into_iter().flatten() {
                pipeline.port.deliver(Outcome {
                    id: effect.id,
                    kind,
                });
            }
            effects.push(effect.kind);
        }
    }
    let executed = result.take().expect("the call ends");
    (executed, effects)
}

/// Runs one call over `files`; returns the result and the tree after it.
pub(super) fn run(
    files: &[(&str, &[u8])],
    name: &str,
    arguments: Value,
) -> (Executed, Rc<TreeEnvironment>) {
    let tree = Rc::new(TreeEnvironment::new(files));
    let (pipeline, _) = pipeline(tree.clone());
    let call = call(name, &arguments.to_string());
    let (executed, effects) = play(&pipeline, &Scope::new("s"), call, Vec::new());
    assert_eq!(effects, []);
    (executed, tree)
}

/// The same with the tools that `json` declares.
pub(super) fn run_declared(
    json: &str,
    files: &[(&str, &[u8])],
    name: &str,
    arguments: Value,
) -> Executed {
    let registry = Registry::declared(json).expect("valid declarations");
    let (pipeline, _) = pipeline_of(registry, Rc::new(TreeEnvironment::new(files)));
    let call = call(name, &arguments.to_string());
    let (executed, effects) = play(&pipeline, &Scope::new("s"), call, Vec::new());
    assert_eq!(effects, []);
    executed
}
