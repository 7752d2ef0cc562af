//! An environment on a test bench, and the contract that it is held to: the
//! grammar of `tests/contract/README.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::join_all;
use hermitcrab::environment::{
    EnvironmentCall, EnvironmentError, EnvironmentErrorKind, EnvironmentReply, ExecRequest,
    ExecStatus, GlobRequest, GrepRequest, OutputStream,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::case::{Content, Tree};

/// An environment that answers through a core.
#[async_trait]
pub trait Bench: Send + Sync {
    /// Absolute path of the working directory.
    fn directory(&self) -> &str;

    /// Makes one call as a job.
    async fn call(&self, call: EnvironmentCall) -> Result<EnvironmentReply, EnvironmentError>;

    /// Runs one command as a job; perhaps cancels it at its first output.
    async fn exec(&self, request: ExecRequest, cancel_on_output: bool) -> Ran;

    /// All files of the working directory, now.
    async fn tree(&self) -> Result<Tree, String>;
}

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub output: Vec<(OutputStream, Bytes)>,
    pub result: Result<ExecStatus, EnvironmentError>,
}

/// Lines that a logging wrapper wrote.
pub type Log = Arc<Mutex<Vec<String>>>;

/// What is around the environment.
#[derive(Clone, Debug, Default)]
pub enum Wrap {
    #[default]
    None,
    ReadOnly,
    ReadOnlyWithCommands,
    Logging(Log),
}

/// One clause of the contract.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clause {
    #[allow(dead_code, reason = "for people")]
    about: String,
    #[serde(default)]
    pub needs: Vec<Need>,
    #[serde(default)]
    pub wrap: WrapName,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    steps: Vec<Step>,
    #[serde(default)]
    after: BTreeMap<String, Option<Content>>,
    #[serde(default)]
    log: Vec<String>,
}

/// What a clause asks of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Need {
    /// Commands run.
    Commands,
    /// A real machine below.
    Local,
    /// Its own `real_path`.
    RealPath,
    /// Its own `read_part`.
    ReadPart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WrapName {
    #[default]
    None,
    ReadOnly,
    ReadOnlyWithCommands,
    Logging,
}

/// Something asked of the environment, and its answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    // One of these.
    read: Option<String>,
    read_part: Option<String>,
    write: Option<String>,
    stat: Option<String>,
    real_path: Option<String>,
    list: Option<String>,
    remove: Option<String>,
    rename: Option<String>,
    make_dir: Option<String>,
    grep: Option<String>,
    glob: Option<String>,
    exec: Option<String>,
    parallel: Option<Vec<Step>>,
    // Its arguments.
    max_bytes: Option<u64>,
    #[serde(default)]
    offset: u64,
    content: Option<Content>,
    to: Option<String>,
    depth: Option<u32>,
    #[serde(default)]
    path: String,
    glob_filter: Option<String>,
    #[serde(default)]
    case_insensitive: bool,
    #[serde(default)]
    max_results: u64,
    timeout_ms: Option<u64>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    cancel_on_output: bool,
    // What must come of it.
    reply: Option<Value>,
    error: Option<Failure>,
    stdout: Option<String>,
    stderr: Option<String>,
    status: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    kind: EnvironmentErrorKind,
    /// What the message must name.
    names: Option<String>,
}

impl Clause {
    /// The clause in `NAME.json`.
    pub fn load(name: &str) -> Result<Self, String> {
        let path = directory().join(format!("{name}.json"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let value: Value =
            serde_json::from_str(&text).map_err(|error| format!("{name}.json: {error}"))?;
        serde_json::from_value(super::case::expand(value))
            .map_err(|error| format!("{name}.json: {error}"))
    }

    pub fn files(&self) -> Tree {
        let files = self.files.iter();
        files
            .map(|(path, content)| (path.clone(), content.bytes()))
            .collect()
    }

    /// Holds `bench`, which holds the clause's files, to the clause.
    pub async fn check(&self, bench: &dyn Bench, log: &Log) -> Result<(), String> {
        for (index, step) in self.steps.iter().enumerate() {
            let result = step.check(bench).await;
            result.map_err(|why| format!("step {}: {why}", index + 1))?;
        }
        let mut expected = self.files();
        for (path, content) in &self.after {
            match content {
                Some(content) => expected.insert(path.clone(), content.bytes()),
                None => expected.remove(path),
            };
        }
        let found = bench.tree().await?;
        if found != expected {
            return Err(format!(
                "the tree should be\n  {expected:?}\nis\n  {found:?}"
            ));
        }
        let log = log.lock().map_err(|error| error.to_string())?;
        let log: Vec<_> = log
            .iter()
            .map(|line| line.replace(bench.directory(), "<dir>"))
            .collect();
        // A duration differs from run to run.
        let fits = |(line, found): (&String, &String)| match line.strip_suffix('…') {
            Some(start) => found.starts_with(start),
            None => found == line,
        };
        if log.len() != self.log.len() || !self.log.iter().zip(&log).all(fits) {
            return Err(format!(
                "the log should be\n  {:?}\nis\n  {log:?}",
                self.log
            ));
        }
        Ok(())
    }
}

impl Step {
    async fn check(&self, bench: &dyn Bench) -> Result<(), String> {
        if let Some(steps) = &self.parallel {
            let checks = steps.iter().map(|step| Box::pin(step.check(bench)));
            return join_all(checks).await.into_iter().collect();
        }
        if let Some(command) = &self.exec {
            return self.check_exec(bench, command).await;
        }
        let place = |text: &String| text.replace("<dir>", bench.directory());
        let call = self.call(&place)?;
        let shown = format!("{call:.300?}");
        let result = bench.call(call).await;
        match (result, &self.error, &self.reply) {
            (Err(error), Some(expected), None) => expected.check(&error, bench, &shown),
            (Err(error), ..) => Err(format!("{shown} failed: {error:?}")),
            (Ok(reply), None, Some(expected)) => {
                let found = simple(&reply);
                let found =
                    serde_json::from_str(&found.to_string().replace(bench.directory(), "<dir>"));
                let found: Value = found.map_err(|error| error.to_string())?;
                match found == *expected {
                    true => Ok(()),
                    false => Err(format!("{shown}: should be\n  {expected}\nis\n  {found}")),
                }
            }
            (Ok(reply), ..) => Err(format!("{shown}: should fail, answered {reply:.300?}")),
        }
    }

    fn call(&self, place: &impl Fn(&String) -> String) -> Result<EnvironmentCall, String> {
        let path = place(&self.path);
        let max_results = self.max_results;
        Ok(if let Some(path) = &self.read {
            let max_bytes = self.max_bytes.unwrap_or(u64::MAX);
            EnvironmentCall::Read {
                path: place(path),
                max_bytes,
            }
        } else if let Some(path) = &self.read_part {
            EnvironmentCall::ReadPart {
                path: place(path),
                offset: self.offset,
                max_bytes: self.max_bytes.ok_or("read_part needs max_bytes")?,
            }
        } else if let Some(path) = &self.write {
            let content = self.content.as_ref().ok_or("write needs content")?.bytes();
            EnvironmentCall::Write {
                path: place(path),
                content,
            }
        } else if let Some(path) = &self.stat {
            EnvironmentCall::Stat { path: place(path) }
        } else if let Some(path) = &self.real_path {
            EnvironmentCall::RealPath { path: place(path) }
        } else if let Some(path) = &self.list {
            EnvironmentCall::List {
                path: place(path),
                depth: self.depth.unwrap_or(1),
            }
        } else if let Some(path) = &self.remove {
            EnvironmentCall::Remove { path: place(path) }
        } else if let Some(from) = &self.rename {
            let to = self.to.as_ref().ok_or("rename needs to")?;
            EnvironmentCall::Rename {
                from: place(from),
                to: place(to),
            }
        } else if let Some(path) = &self.make_dir {
            EnvironmentCall::MakeDir { path: place(path) }
        } else if let Some(pattern) = &self.grep {
            EnvironmentCall::Grep(GrepRequest {
                pattern: pattern.clone(),
                path,
                glob_filter: self.glob_filter.clone(),
                case_insensitive: self.case_insensitive,
                max_results,
            })
        } else if let Some(pattern) = &self.glob {
            EnvironmentCall::Glob(GlobRequest {
                pattern: pattern.clone(),
                path,
                max_results,
            })
        } else {
            return Err("the step asks for nothing".to_owned());
        })
    }

    async fn check_exec(&self, bench: &dyn Bench, command: &str) -> Result<(), String> {
        let place = |text: &str| text.replace("<dir>", bench.directory());
        let request = ExecRequest {
            command: place(command),
            timeout_ms: self.timeout_ms.unwrap_or(20_000),
            working_dir: self.cwd.as_deref().map(place),
            env: self.env.clone(),
        };
        let ran = bench.exec(request, self.cancel_on_output).await;
        let text = |wanted| {
            let chunks = ran.output.iter().filter(|(stream, _)| *stream == wanted);
            let bytes: Vec<u8> = chunks.flat_map(|(_, data)| data.to_vec()).collect();
            String::from_utf8_lossy(&bytes).replace(bench.directory(), "<dir>")
        };
        let (stdout, stderr) = (text(OutputStream::Stdout), text(OutputStream::Stderr));
        let status = match (&ran.result, &self.error) {
            (Err(error), Some(expected)) => return expected.check(error, bench, command),
            (Err(error), None) => return Err(format!("`{command}` did not start: {error:?}")),
            (Ok(_), Some(_)) => return Err(format!("`{command}` should not start: {ran:?}")),
            (Ok(status), None) => status,
        };
        let expected = |field: &Option<String>| field.clone().unwrap_or_default();
        let found = json!({
            "stdout": stdout, "stderr": stderr,
            "exit_code": status.exit_code, "timed_out": status.timed_out, "cancelled": status.cancelled,
        });
        let mut wanted = json!({
            "stdout": expected(&self.stdout), "stderr": expected(&self.stderr),
            "exit_code": 0, "timed_out": false, "cancelled": false,
        });
        for (name, value) in self.status.iter().filter_map(Value::as_object).flatten() {
            wanted[name] = value.clone();
        }
        // How a cancelled command's exit code comes about is the environment's affair.
        if wanted["cancelled"] == true {
            wanted["exit_code"] = found["exit_code"].clone();
        }
        match found == wanted {
            true => Ok(()),
            false => Err(format!("`{command}`: should be\n  {wanted}\nis\n  {found}")),
        }
    }
}

impl Failure {
    fn check(&self, error: &EnvironmentError, bench: &dyn Bench, what: &str) -> Result<(), String> {
        let message = error.message.replace(bench.directory(), "<dir>");
        let named = self
            .names
            .as_ref()
            .is_none_or(|name| message.contains(name));
        let begins_with_name = self
            .names
            .as_ref()
            .is_some_and(|name| message.starts_with(name.as_str()));
        let sentence = !message.is_empty()
            && !message.contains('\n')
            && !message.ends_with('.')
            && (begins_with_name || !message.starts_with(char::is_uppercase));
        match error.kind == self.kind && named && sentence {
            true => Ok(()),
            false => Err(format!(
                "{what}: should fail as {self:?}, failed as {error:?}"
            )),
        }
    }
}

/// A reply as the contract writes it: times left out, bytes as text.
fn simple(reply: &EnvironmentReply) -> Value {
    match reply {
        EnvironmentReply::Done => json!("done"),
        EnvironmentReply::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => json!({"text": text}),
            Err(_) => json!({"bytes": bytes.to_vec()}),
        },
        EnvironmentReply::Stat(metadata) => match metadata.is_dir {
            true => json!({"dir": metadata.modified_ms.is_some()}),
            false => json!({"size": metadata.size, "dated": metadata.modified_ms.is_some()}),
        },
        EnvironmentReply::Path(path) => json!({"path": path}),
        EnvironmentReply::Entries(entries) => {
            let paths = entries.entries.iter().map(|entry| match entry.is_dir {
                true => format!("{}/", entry.path),
                false => entry.path.clone(),
            });
            json!({"entries": paths.collect::<Vec<_>>(), "truncated": entries.truncated})
        }
        EnvironmentReply::Matches(matches) => {
            let lines = matches.matches.iter();
            let lines = lines.map(|found| format!("{}:{}:{}", found.path, found.line, found.text));
            json!({"matches": lines.collect::<Vec<_>>(), "truncated": matches.truncated})
        }
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/contract")
}

/// Names of all clauses, in order.
pub fn names() -> Vec<String> {
    super::case::names_in(&directory())
}
