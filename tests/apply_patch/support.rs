//! Calls of the tool over a tree.

use std::rc::Rc;

use futures_util::FutureExt as _;
use hermitcrab::effect::EffectPort;
use hermitcrab::environment::{ExecutionEnvironment, OutputStream, Scope};
use hermitcrab::llm::{ToolCall, ToolDefinition};
use hermitcrab::tool::{
    ApplyPatch, BackgroundCommands, Executed, FileLocks, KnownFiles, OutputLimits, Pipeline,
    PipelineEvents, Registry, Timeouts, Tool,
};
use serde_json::Value;

/// The declaration that a profile is to make.
pub(crate) const DECLARATION: &str = include_str!("tool.json");

struct Silent;

impl PipelineEvents for Silent {
    fn started(&self, _call: &ToolCall) {}
    fn approval_requested(&self, _call: &ToolCall, _arguments: &Value, _reason: &str) {}
    fn output_delta(&self, _call: &ToolCall, _stream: Option<OutputStream>, _text: &str) {}
    fn ended(&self, _call: &ToolCall, _executed: &Executed) {}
}

/// A pipeline with the tool as JSON function.
pub(crate) fn pipeline(environment: Rc<dyn ExecutionEnvironment>) -> Pipeline {
    Pipeline {
        registry: Registry::declared(DECLARATION).expect("a declaration"),
        environment,
        port: EffectPort::new(),
        limits: OutputLimits::default(),
        timeouts: Timeouts::default(),
        approvals: Rc::default(),
        max_captured_bytes: 1 << 20,
        files: FileLocks::default(),
        known: KnownFiles::default(),
        background: BackgroundCommands::default(),
        events: Rc::new(Silent),
    }
}

/// The tool as it presents itself for freeform input.
pub(crate) fn freeform() -> Rc<dyn Tool> {
    let registry = Registry::declared(DECLARATION).expect("a declaration");
    let declared = ToolDefinition::clone(&registry.definitions()[0]);
    ApplyPatch::tool(ToolDefinition {
        custom: Some(ApplyPatch::freeform()),
        ..declared
    })
}

/// Runs one call to its end.
pub(crate) fn run(pipeline: &Pipeline, custom: bool, arguments: String) -> Executed {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "apply_patch".to_owned(),
        arguments,
        custom,
    };
    let scope = Scope::new("s");
    let executed = pipeline.run(&scope, &call).now_or_never();
    executed.expect("the tree answers at once")
}
