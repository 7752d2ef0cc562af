//! A session on its own: one instance stepped by hand, a scripted model in
//! place of the network, time that passes only when someone sleeps.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use hermitcrab::effect::{Approval, Effect, EffectKind, HostToolResult, Outcome, OutcomeKind};
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentInfo, EnvironmentReply,
    ExecStatus, Metadata, OutputStream,
};
use hermitcrab::script::{Ending, ModelRequest, ScriptedModel};
use hermitcrab::session::{Instance, Session, SessionConfig, SessionRecord};
use serde_json::{Value, json};

/// An instance with one session, and a host that answers at once.
pub(crate) struct Bench {
    pub(crate) instance: Instance,
    pub(crate) session: Session,
    pub(crate) model: ScriptedModel,
    pub(crate) now_ms: u64,
    pub(crate) queue: VecDeque<Outcome>,
    pub(crate) events: Vec<Value>,
    /// Effects that nobody has answered.
    pub(crate) open: Vec<Effect>,
    /// Every effect so far.
    pub(crate) seen: Vec<Effect>,
    /// Files that can be read: absolute path and content.
    pub(crate) files: BTreeMap<&'static str, &'static [u8]>,
    /// Paths that lead elsewhere: absolute path and where to.
    pub(crate) links: BTreeMap<&'static str, &'static str>,
    /// Commands that succeed: what they contain and what they print.
    pub(crate) commands: Vec<(&'static str, &'static str)>,
    /// Paths whose reads stay open.
    pub(crate) slow: Vec<&'static str>,
    /// Names of host tools whose calls stay open.
    pub(crate) stuck: Vec<&'static str>,
    /// What is cancelled stays open, too.
    pub(crate) deaf: bool,
}

impl Bench {
    pub(crate) fn new(script: &Value, config: Value) -> Self {
        let mut bench = Self::still(script, config, "/work");
        bench.run();
        bench
    }

    /// Before its first step.
    pub(crate) fn still(script: &Value, config: Value, working_directory: &str) -> Self {
        Self::opened(script, config, working_directory, None)
    }

    /// Goes on from a record; before its first step.
    pub(crate) fn recorded(script: &Value, config: Value, record: SessionRecord) -> Self {
        Self::opened(script, config, "/work", Some(record))
    }

    fn opened(
        script: &Value,
        config: Value,
        working_directory: &str,
        record: Option<SessionRecord>,
    ) -> Self {
        let mut instance = Instance::new([7; 32]);
        let environment = instance.add_remote_environment(EnvironmentInfo {
            working_directory: working_directory.to_owned(),
            platform: "linux".to_owned(),
            os_version: "6.1".to_owned(),
            utc_offset_minutes: 0,
            bounds: String::new(),
            warning: String::new(),
        });
        let config = SessionConfig::from_json(&config.to_string()).expect("configuration");
        let session = match record {
            None => instance.open_session(environment, config),
            Some(record) => instance.open_recorded_session(environment, config, record),
        }
        .expect("session opens");
        Self {
            instance,
            session,
            model: ScriptedModel::from_json(&script.to_string()).expect("script"),
            now_ms: 1_000,
            queue: VecDeque::new(),
            events: Vec::new(),
            open: Vec::new(),
            seen: Vec::new(),
            files: BTreeMap::new(),
            links: BTreeMap::new(),
            commands: Vec::new(),
            slow: Vec::new(),
            stuck: Vec::new(),
            deaf: false,
        }
    }

    /// Steps until nothing happens any more. Sleeps end when nothing else is left.
    pub(crate) fn run(&mut self) {
        for _ in 0..100_000 {
            let outcomes: Vec<_> = self.queue.drain(..).collect();
            let step = self.instance.step(self.now_ms, outcomes);
            for event in step.events {
                let event = serde_json::from_slice(&event.json).expect("events are JSON");
                self.events.push(event);
            }
            for effect in step.effects {
                self.perform(effect);
            }
            if self.queue.is_empty() && !step.busy {
                return;
            }
        }
        panic!("the session does not come to rest");
    }

    fn perform(&mut self, effect: Effect) {
        let id = effect.id;
        self.seen.push(effect.clone());
        let mut answer = |kind| self.queue.push_back(Outcome { id, kind });
        match &effect.kind {
            EffectKind::Http(request) => {
                let path = request.url.split_once("//").map_or("", |(_, rest)| rest);
                let path = path.find('/').map_or("/", |slash| &path[slash..]);
                let response = self.model.respond(&ModelRequest {
                    path: path.to_owned(),
                    headers: request.headers.clone(),
                    body: request.body.clone(),
                });
                answer(OutcomeKind::HttpHead {
                    status: response.status,
                    headers: response.headers,
                });
                for chunk in response.chunks {
                    answer(OutcomeKind::HttpChunk(chunk.bytes));
                }
                match response.ending {
                    Ending::Complete => answer(OutcomeKind::HttpEnd),
                    Ending::Disconnect => {
                        answer(OutcomeKind::HttpFailed(hermitcrab::llm::TransportError {
                            kind: hermitcrab::llm::TransportErrorKind::Broken,
                            message: "the connection broke".to_owned(),
                        }));
                    }
                }
            }
            EffectKind::Environment {
                call: EnvironmentCall::Read { path, .. },
                ..
            } if self.slow.contains(&path.as_str()) => self.open.push(effect),
            EffectKind::Exec { request, .. }
                if self.slow.iter().any(|part| request.command.contains(part)) =>
            {
                self.open.push(effect);
            }
            EffectKind::Exec { request, .. } => {
                let known = self
                    .commands
                    .iter()
                    .find(|(part, _)| request.command.contains(part));
                if let Some((_, output)) = known {
                    answer(OutcomeKind::ExecOutput {
                        stream: OutputStream::Stdout,
                        data: Bytes::from_static(output.as_bytes()),
                    });
                }
                answer(OutcomeKind::ExecEnd(ExecStatus {
                    exit_code: i32::from(known.is_none()),
                    ..ExecStatus::default()
                }));
            }
            EffectKind::Environment { call, .. } => {
                answer(OutcomeKind::Environment(match call {
                    EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {
                        Ok(EnvironmentReply::Done)
                    }
                    EnvironmentCall::Read { path, .. }
                        if self.files.contains_key(path.as_str()) =>
                    {
                        Ok(EnvironmentReply::Bytes(Bytes::from_static(
                            self.files[path.as_str()],
                        )))
                    }
                    EnvironmentCall::RealPath { path } => match self.links.get(path.as_str()) {
                        Some(real) => Ok(EnvironmentReply::Path((*real).to_owned())),
                        None => Err(EnvironmentError::new(
                            EnvironmentErrorKind::Unsupported,
                            "no links are here",
                        )),
                    },
                    EnvironmentCall::Stat { path } if path == "/work/src" => {
                        Ok(EnvironmentReply::Stat(Metadata {
                            is_dir: true,
                            size: 0,
                            modified_ms: None,
                        }))
                    }
                    _ => Err(EnvironmentError::new(
                        EnvironmentErrorKind::NotFound,
                        "nothing is here",
                    )),
                }));
            }
            EffectKind::CallTool { name, .. } if !self.stuck.contains(&name.as_str()) => {
                answer(OutcomeKind::ToolEnd(HostToolResult::ok(format!(
                    "{name} done"
                ))));
            }
            EffectKind::AskApproval { .. } => answer(OutcomeKind::Approval(Approval::Allow)),
            EffectKind::Cancel { .. } if self.deaf => {}
            EffectKind::Cancel { target } => {
                let open = self.open.iter().position(|effect| effect.id == *target);
                if let Some(open) = open {
                    let id = self.open.remove(open).id;
                    self.queue.push_back(Outcome {
                        id,
                        kind: OutcomeKind::Cancelled,
                    });
                }
            }
            // Idle watches never expire here; what a test needs to expire it
            // ends itself.
            _ => self.open.push(effect),
        }
    }

    /// Ends the open sleep of `ms` milliseconds, time having passed.
    pub(crate) fn end_sleep(&mut self, ms: u64) {
        let index = self
            .open
            .iter()
            .position(|effect| effect.kind == EffectKind::Sleep { ms })
            .unwrap_or_else(|| panic!("no sleep of {ms} ms among {:?}", self.open));
        let id = self.open.remove(index).id;
        self.now_ms += ms;
        self.queue.push_back(Outcome {
            id,
            kind: OutcomeKind::Slept,
        });
        self.run();
    }

    pub(crate) fn submit(&mut self, input: &str) {
        self.session.submit(input).expect("submit is legal");
        self.run();
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["kind"].as_str().unwrap_or_default())
            .collect()
    }

    pub(crate) fn data(&self, kind: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["kind"] == kind)
            .map(|event| &event["data"])
            .collect()
    }
}

/// A host tool without parameters.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": "", "parameters": {"type": "object"}})
}
