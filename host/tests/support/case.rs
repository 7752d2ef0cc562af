//! A session case as data: the grammar of `tests/cases/README.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hermitcrab::environment::{FileChange, FileNode, ProgramRequest, ProgramResult};
use hermitcrab::llm::{self, Part};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Files by path relative to the working directory.
pub type Tree = BTreeMap<String, Bytes>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    #[allow(dead_code, reason = "for people")]
    about: String,
    #[serde(default)]
    #[allow(dead_code, reason = "for `names`")]
    providers: Vec<String>,
    #[serde(default)]
    pub needs: Vec<Need>,
    #[serde(default)]
    pub breaks: bool,
    #[serde(default)]
    pub files: BTreeMap<String, Content>,
    #[serde(default)]
    pub config: Map<String, Value>,
    #[serde(default)]
    pub tools: Vec<Tool>,
    #[serde(default)]
    pub programs: BTreeMap<String, Program>,
    #[serde(default)]
    pub approvals: BTreeMap<String, Vec<Decision>>,
    #[serde(default = "yes")]
    pub approver: bool,
    pub script: Value,
    pub actions: Vec<Action>,
    #[serde(default)]
    pub when: Vec<Rule>,
    #[serde(default)]
    pub expect: Expect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    Sandbox,
    Local,
    Redirects,
    Host,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Content {
    Text(String),
    Binary { base64: String },
}

impl Content {
    pub fn bytes(&self) -> Bytes {
        match self {
            Self::Text(text) => text.clone().into(),
            Self::Binary { base64 } => STANDARD.decode(base64).expect("base64 in a case").into(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Wait,
    #[serde(untagged)]
    Deny {
        deny: String,
    },
}

/// A program that the host lends to the sandbox. In its texts `{args}`,
/// `{stdin}` and `{changes}` stand for what it was given.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    #[serde(default)]
    exit_code: i32,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    writes: BTreeMap<String, String>,
}

impl Program {
    pub fn run(&self, request: &ProgramRequest) -> ProgramResult {
        let below = format!("{}/", request.working_dir);
        let files = request
            .changes
            .iter()
            .filter(|change| matches!(change.node, FileNode::File(_)))
            .map(|change| change.path.replace(&below, ""));
        let changes = files.collect::<Vec<_>>().join(" ");
        let fill = |text: &String| {
            text.replace("{args}", &request.args.join(" "))
                .replace("{stdin}", &String::from_utf8_lossy(&request.stdin))
                .replace("{changes}", &changes)
        };
        ProgramResult {
            exit_code: self.exit_code,
            stdout: fill(&self.stdout).into(),
            stderr: Bytes::new(),
            changes: self
                .writes
                .iter()
                .map(|(path, content)| {
                    let path = format!("{below}{path}");
                    FileChange::new(path, FileNode::File(fill(content).into()))
                })
                .collect(),
            ..ProgramResult::default()
        }
    }
}

/// A tool that the host runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: String,
    pub description: String,
    pub parameters: Value,
    pub behaviour: Behaviours,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Behaviours {
    Each(Vec<Behaviour>),
    All(Box<Behaviour>),
}

impl Behaviours {
    /// What the call with this number, from 0, does.
    pub fn nth(&self, number: usize) -> &Behaviour {
        match self {
            Self::All(behaviour) => behaviour,
            Self::Each(list) => list.get(number).or(list.last()).expect("a behaviour"),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behaviour {
    #[serde(default)]
    pub progress: Vec<String>,
    #[serde(default)]
    pub r#do: Vec<Action>,
    pub uses: Option<Vec<Use>>,
    pub wait_for: Option<Matcher>,
    pub returns: Option<Returned>,
    pub fails: Option<String>,
    #[serde(default)]
    pub echo: bool,
}

/// What a host tool does in its environment.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Use {
    Exec(String),
    Read(String),
    Write(String, String),
    List(String),
    Place(bool),
}

/// What a tool gives: a text, or content as an MCP server's tool gives it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Returned {
    Text(String),
    Content(Vec<Value>),
}

/// What the user says: a text, or parts.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Said {
    Text(String),
    Parts(Vec<SaidPart>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SaidPart {
    Text { text: String },
    Image { data: String, name: Option<String> },
    Document { data: String, name: Option<String> },
}

impl From<Said> for llm::Content {
    fn from(said: Said) -> Self {
        match said {
            Said::Text(text) => text.into(),
            Said::Parts(parts) => parts.into_iter().map(part).collect::<Vec<_>>().into(),
        }
    }
}

fn part(part: SaidPart) -> Part {
    let bytes = |data: String| STANDARD.decode(data).expect("base64 in a case");
    let named = |part: Part, name: Option<String>| match name {
        Some(name) => part.named(name),
        None => part,
    };
    match part {
        SaidPart::Text { text } => Part::text(text),
        SaidPart::Image { data, name } => named(Part::image(bytes(data)), name),
        SaidPart::Document { data, name } => named(Part::document(bytes(data)), name),
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub event: Matcher,
    #[serde(default = "one")]
    pub nth: usize,
    pub r#do: Vec<Action>,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Something that the host does.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub struct Action {
    pub call: Call,
    pub wait: bool,
}

#[derive(Clone, Debug)]
pub enum Call {
    Submit(Said),
    Answer(Said),
    Steer(Said),
    FollowUp(Said),
    System(String),
    Interrupt,
    Compact,
    Abort,
    Close,
    Configure(Value),
    Register(Box<Tool>),
    Unregister(String),
    Agents,
    AgentHistory(String),
    SteerAgent(String, Said),
    InterruptAgent(String),
    CloseAgent(String),
    Release(String),
    Held(String),
    Until(Matcher, usize),
}

impl Call {
    /// Its name in the file and in `call_error` lines.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Submit(_) => "submit",
            Self::Answer(_) => "answer",
            Self::Steer(_) => "steer",
            Self::FollowUp(_) => "follow_up",
            Self::System(_) => "system",
            Self::Interrupt => "interrupt",
            Self::Compact => "compact",
            Self::Abort => "abort",
            Self::Close => "close",
            Self::Configure(_) => "configure",
            Self::Register(_) => "register",
            Self::Unregister(_) => "unregister",
            Self::Agents => "agents",
            Self::AgentHistory(_) => "agent_history",
            Self::SteerAgent(..) => "steer_agent",
            Self::InterruptAgent(_) => "interrupt_agent",
            Self::CloseAgent(_) => "close_agent",
            Self::Release(_) => "release",
            Self::Held(_) => "held",
            Self::Until(..) => "until",
        }
    }
}

impl TryFrom<Map<String, Value>> for Action {
    type Error = String;

    fn try_from(mut map: Map<String, Value>) -> Result<Self, String> {
        let wait = map.remove("wait").map(|wait| wait == Value::Bool(true));
        let nth = map.remove("nth");
        let shown = Value::Object(map.clone()).to_string();
        let mut entries = map.into_iter();
        let (Some((name, value)), None) = (entries.next(), entries.next()) else {
            return Err(format!("{shown}: an action has one key"));
        };
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or(shown.clone());
        let parsed = |error: serde_json::Error| format!("{shown}: {error}");
        let said = |value: &Value| serde_json::from_value::<Said>(value.clone()).map_err(parsed);
        let yes = |call: Call| match value {
            Value::Bool(true) => Ok(call),
            _ => Err(format!("{shown}: the value is always true")),
        };
        let call = match name.as_str() {
            "submit" => Call::Submit(said(&value)?),
            "answer" => Call::Answer(said(&value)?),
            "steer" => Call::Steer(said(&value)?),
            "follow_up" => Call::FollowUp(said(&value)?),
            "system" => Call::System(text(&value)?),
            "interrupt" => yes(Call::Interrupt)?,
            "compact" => yes(Call::Compact)?,
            "abort" => yes(Call::Abort)?,
            "close" => yes(Call::Close)?,
            "configure" => Call::Configure(value),
            "register" => Call::Register(serde_json::from_value(value).map_err(parsed)?),
            "unregister" => Call::Unregister(text(&value)?),
            "agents" => yes(Call::Agents)?,
            "agent_history" => Call::AgentHistory(text(&value)?),
            "steer_agent" => Call::SteerAgent(text(&value[0])?, said(&value[1])?),
            "interrupt_agent" => Call::InterruptAgent(text(&value)?),
            "close_agent" => Call::CloseAgent(text(&value)?),
            "release" => Call::Release(text(&value)?),
            "held" => Call::Held(text(&value)?),
            "until" => {
                let nth = nth.as_ref().map_or(Some(1), Value::as_u64);
                let nth = nth.and_then(|nth| usize::try_from(nth).ok());
                let matcher = serde_json::from_value(value).map_err(parsed)?;
                Call::Until(matcher, nth.ok_or(shown)?)
            }
            _ => return Err(format!("unknown action {shown}")),
        };
        let wait = wait.unwrap_or(matches!(call, Call::Submit(_) | Call::Answer(_)));
        Ok(Self { call, wait })
    }
}

/// Which event is meant.
#[derive(Clone, Debug, Deserialize)]
pub struct Matcher {
    kind: String,
    #[serde(flatten)]
    data: Map<String, Value>,
}

impl Matcher {
    /// Whether `event`, as the session emitted it, is meant: one of the session
    /// itself unless `agent_id` names a subagent.
    pub fn matches(&self, event: &Value) -> bool {
        event["kind"] == self.kind.as_str()
            && event.get("agent_id") == self.data.get("agent_id")
            && self
                .data
                .iter()
                .filter(|(name, _)| *name != "agent_id")
                .all(|(name, value)| event["data"].get(name) == Some(value))
    }

    /// Whether the `nth` such event is among `events`.
    pub fn nth_in(&self, nth: usize, events: &[Value]) -> bool {
        events.iter().filter(|event| self.matches(event)).count() >= nth
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    pub files: BTreeMap<String, Option<Content>>,
    pub requests: Vec<super::request::Assertion>,
    pub request_count: Option<usize>,
}

impl Case {
    /// The case in `NAME.json`, or one provider's version of it: `NAME@PROVIDER`.
    pub fn load(name: &str) -> Result<Self, String> {
        let (file, provider) = match name.split_once('@') {
            Some((file, provider)) => (file, Some(provider)),
            None => (name, None),
        };
        let mut value = read(file)?;
        if let Some(provider) = provider {
            value["config"]["provider"] = provider.into();
            value = version(value, provider);
        }
        serde_json::from_value(expand(value)).map_err(|error| format!("{file}.json: {error}"))
    }

    /// The files before.
    pub fn tree(&self) -> Tree {
        let files = self.files.iter();
        files
            .map(|(path, content)| (path.clone(), content.bytes()))
            .collect()
    }

    /// The files that must be there afterwards, and no others.
    pub fn tree_after(&self) -> Tree {
        let mut tree = self.tree();
        for (path, content) in &self.expect.files {
            match content {
                Some(content) => tree.insert(path.clone(), content.bytes()),
                None => tree.remove(path),
            };
        }
        tree
    }

    /// The script with the working directory in it.
    pub fn script_in(&self, directory: &str) -> String {
        let mut script = self.script.clone();
        strings(&mut script, &|text| text.replace("<dir>", directory));
        script.to_string()
    }
}

/// Where the cases are.
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/cases")
}

/// Names of all cases, in order; of one with `providers` a name for each.
pub fn names() -> Vec<String> {
    let files = names_in(&directory()).into_iter();
    let versions = files.flat_map(|name| {
        let providers = read(&name).map(|value| value["providers"].clone());
        match providers {
            Ok(Value::Array(providers)) => providers
                .iter()
                .map(|provider| format!("{name}@{}", provider.as_str().unwrap_or_default()))
                .collect(),
            _ => vec![name],
        }
    });
    versions.collect()
}

fn read(file: &str) -> Result<Value, String> {
    let path = directory().join(format!("{file}.json"));
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{file}.json: {error}"))
}

/// What `value` is for one provider: `$provider` objects replaced by the entry
/// of that name, else by that of `*`.
fn version(value: Value, provider: &str) -> Value {
    match value {
        Value::Array(items) => items
            .into_iter()
            .map(|item| version(item, provider))
            .collect(),
        Value::Object(map) => match map.get("$provider") {
            Some(choices) => {
                let choice = choices.get(provider).or(choices.get("*"));
                version(choice.cloned().unwrap_or_default(), provider)
            }
            None => map
                .into_iter()
                .map(|(name, item)| (name, version(item, provider)))
                .collect(),
        },
        other => other,
    }
}

/// Names of the JSON files in `directory`, in order.
pub fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(directory)
        .expect("the directory of the data exists")
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            name.strip_suffix(".json").map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// Replaces `$repeat`, `$lines` and `$concat`.
pub fn expand(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(expand).collect(),
        Value::Object(map) => {
            let map: Map<_, _> = map.into_iter().map(|(k, v)| (k, expand(v))).collect();
            match map.iter().next() {
                Some((key, value)) if map.len() == 1 && key.starts_with('$') => {
                    Value::String(generated(key, value))
                }
                _ => Value::Object(map),
            }
        }
        other => other,
    }
}

fn generated(key: &str, value: &Value) -> String {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let count = || value[1].as_u64().expect("a count");
    match key {
        "$repeat" => (0..count()).map(|_| text(&value[0])).collect(),
        "$lines" => {
            let prefix = text(&value[0]);
            (1..=count()).map(|n| format!("{prefix}{n}\n")).collect()
        }
        "$concat" => value.as_array().expect("a list").iter().map(text).collect(),
        _ => panic!("unknown generator {key}"),
    }
}

/// Applies `change` to every string of `value`, keys excepted.
pub fn strings(value: &mut Value, change: &impl Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| strings(item, change)),
        Value::Object(map) => map.values_mut().for_each(|item| strings(item, change)),
        _ => {}
    }
}
