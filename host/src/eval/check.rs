//! Checkers: they decide about a tree, in an instance that no agent has seen. What
//! an agent wrote outside of its working directory is not there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::try_join_all;
use hermitcrab::environment::{EnvironmentCall, EnvironmentReply, ExecRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::suite::Checker;
use super::verdict::Verdict;
use super::write_tree::write_tree;
use crate::error::HostError;
use crate::host::{Host, InstanceOptions};
use crate::local::LocalEnvironment;
use crate::memory::{EnvironmentHandle, MemoryOptions};
use crate::program::ProgramFn;
use crate::tree::{Kind, Tree};

/// What a checker found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Checked {
    /// Exit code; none of expected files.
    pub(super) exit_code: Option<i32>,
    /// What it printed, cut.
    pub(super) output: String,
    /// Time that it took, in ms.
    pub(super) ms: u64,
    /// Numbers that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rewards: Option<BTreeMap<String, f64>>,
    #[serde(skip)]
    pub(super) verdict: Verdict,
}

/// How a checker runs.
pub(super) struct Checking<'a> {
    pub(super) host: &'a Host,
    pub(super) checker: &'a Checker,
    pub(super) seed: [u8; 32],
    pub(super) programs: BTreeMap<String, ProgramFn>,
    pub(super) env: &'a BTreeMap<String, String>,
    pub(super) timeout_ms: u64,
    pub(super) needs_reward: bool,
    /// On this machine instead of in a sandbox.
    pub(super) local: bool,
}

/// Bytes of output that are kept, and with which a checker is stopped.
const KEPT: usize = 64 << 10;
const TOO_MUCH: usize = 64 << 20;
/// Bytes of a file with rewards.
const REWARD_BYTES: usize = 1 << 20;
/// Where a checker leaves its rewards.
const VERIFIER: &str = "/logs/verifier";

impl Checking<'_> {
    /// Checks `tree`, whose archive is `archive`.
    pub(super) async fn check(self, tree: &Tree, archive: Bytes) -> Checked {
        let began = Instant::now();
        let mut checked = match self.checker {
            Checker::Expected(expected) => Checked {
                verdict: expected_files(expected, tree),
                ..Checked::default()
            },
            Checker::Command { command, files } => {
                let ran = match self.local {
                    true => self.locally(command, files, tree).await,
                    false => self.sandboxed(command, files, archive).await,
                };
                ran.unwrap_or_else(|verdict| Checked {
                    verdict,
                    ..Checked::default()
                })
            }
        };
        checked.ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        checked
    }

    async fn sandboxed(
        &self,
        command: &str,
        files: &Tree,
        archive: Bytes,
    ) -> Result<Checked, Verdict> {
        let machine =
            |error: HostError| Verdict::None(format!("the checker cannot start: {error}"));
        let options = InstanceOptions {
            seed: Some(self.seed),
            ..InstanceOptions::default()
        };
        let instance = self.host.start_instance(options).await.map_err(machine)?;
        let options = MemoryOptions {
            archive: Some(archive),
            programs: self.programs.clone(),
            ..MemoryOptions::default()
        };
        let sandbox = instance.add_memory(options).await.map_err(machine)?;
        let plain = files
            .iter()
            .filter(|(_, node)| matches!(node.kind, Kind::Plain | Kind::Executable));
        let writes = plain.map(|(path, node)| {
            let (path, content) = (format!("/{path}"), node.content.clone());
            let sandbox = &sandbox;
            async move { sandbox.write(&path, content).await }
        });
        try_join_all(writes).await.map_err(machine)?;
        let command = format!("{}mkdir -p {VERIFIER}; {command}", set_up(files));
        let mut checked = self.run(&sandbox, &command, self.env.clone()).await?;
        if checked.exit_code.is_some() {
            let rewards = rewards(&sandbox).await;
            self.judge(&mut checked, rewards);
        }
        Ok(checked)
    }

    /// On this machine: the tree, the checker's files and its verdict have temporary
    /// directories, which `TESTS` and `VERIFIER` name.
    async fn locally(&self, command: &str, files: &Tree, tree: &Tree) -> Result<Checked, Verdict> {
        let machine = |error: std::io::Error| {
            let reason = super::reason(&error);
            Verdict::None(format!("the checker cannot start: {reason}"))
        };
        let place = tempfile::tempdir().map_err(machine)?;
        let at = |name: &str| place.path().join(name);
        write_tree(tree, &at("work")).map_err(machine)?;
        write_tree(files, place.path()).map_err(machine)?;
        std::fs::create_dir_all(at("logs/verifier")).map_err(machine)?;
        let local = LocalEnvironment::builder(at("work")).build();
        let local = local.map_err(|error| Verdict::None(error.message))?;
        let told = |error: HostError| Verdict::None(format!("the checker cannot start: {error}"));
        let options = InstanceOptions {
            seed: Some(self.seed),
            ..InstanceOptions::default()
        };
        let instance = self.host.start_instance(options).await.map_err(told)?;
        let environment = instance.add_environment(std::sync::Arc::new(local)).await;
        let environment = environment.map_err(told)?;
        let mut env = self.env.clone();
        let path = |name: &str| at(name).to_string_lossy().into_owned();
        env.insert("TESTS".to_owned(), path("tests"));
        env.insert("VERIFIER".to_owned(), path("logs/verifier"));
        let command = command.replace(" /tests/", &format!(" {}/", path("tests")));
        let mut checked = self.run(&environment, &command, env).await?;
        let read = |name: &str| std::fs::read(Path::new(&path("logs/verifier")).join(name)).ok();
        let rewards = match (read("reward.json"), read("reward.txt")) {
            (Some(json), _) => Some((json.into(), "reward.json")),
            (None, Some(text)) => Some((text.into(), "reward.txt")),
            (None, None) => None,
        };
        self.judge(&mut checked, rewards);
        Ok(checked)
    }

    async fn run(
        &self,
        environment: &EnvironmentHandle,
        command: &str,
        env: BTreeMap<String, String>,
    ) -> Result<Checked, Verdict> {
        let request = ExecRequest {
            command: command.to_owned(),
            timeout_ms: self.timeout_ms,
            env,
            ..ExecRequest::default()
        };
        let mut kept = Vec::new();
        let mut printed = 0;
        let full = AtomicBool::new(false);
        let too_much = tokio::sync::Notify::new();
        let take = |_, data: Bytes| {
            printed += data.len();
            let room = KEPT.saturating_sub(kept.len()).min(data.len());
            kept.extend_from_slice(&data[..room]);
            if printed > TOO_MUCH && !full.swap(true, Ordering::Relaxed) {
                too_much.notify_one();
            }
        };
        // A sandbox counts its own time; this one is for what never returns.
        let guard = Duration::from_millis(self.timeout_ms.saturating_mul(2)) + GRACE;
        let stop = async {
            tokio::select! {
                () = too_much.notified() => {}
                () = tokio::time::sleep(guard) => {}
            }
        };
        let ran = environment.exec_until(request, take, stop).await;
        let mut output = String::from_utf8_lossy(&kept).into_owned();
        if printed > kept.len() {
            output.push_str(&format!("\n[… {} bytes left out …]", printed - kept.len()));
        }
        let status = match ran {
            Ok(status) => status,
            // What it was given is what the agent made of the tree.
            Err(HostError::Core(failure)) => {
                return Ok(Checked {
                    output,
                    verdict: Verdict::Failed(format!(
                        "the checker ended its sandbox: {}",
                        failure.message
                    )),
                    ..Checked::default()
                });
            }
            Err(error) => return Err(Verdict::None(format!("the checker did not run: {error}"))),
        };
        let verdict = if full.load(Ordering::Relaxed) {
            Verdict::Failed(format!(
                "the checker printed more than {} MiB and was stopped",
                TOO_MUCH >> 20
            ))
        } else if status.timed_out || status.cancelled {
            Verdict::Failed(format!(
                "the checker did not end within {} ms",
                self.timeout_ms
            ))
        } else if status.exit_code != 0 {
            Verdict::Failed(format!(
                "the checker ended with exit code {}",
                status.exit_code
            ))
        } else {
            Verdict::Passed
        };
        let ended = !(full.load(Ordering::Relaxed) || status.timed_out || status.cancelled);
        Ok(Checked {
            exit_code: ended.then_some(status.exit_code),
            output,
            verdict,
            ..Checked::default()
        })
    }

    /// Rewards decide where there are some.
    fn judge(&self, checked: &mut Checked, rewards: Option<(Bytes, &str)>) {
        // One that was stopped has not said its last word.
        if checked.exit_code.is_none() {
            return;
        }
        let Some((bytes, file)) = rewards else {
            if self.needs_reward {
                let why = "the checker wrote neither /logs/verifier/reward.json nor reward.txt";
                checked.verdict = Verdict::None(why.to_owned());
            }
            return;
        };
        match read_rewards(&bytes, file) {
            Ok(rewards) => {
                let low = rewards.iter().find(|(_, value)| **value < 1.0);
                checked.verdict = match low {
                    None => Verdict::Passed,
                    Some((name, value)) if name == "reward" => {
                        Verdict::Failed(format!("the reward is {value}"))
                    }
                    Some((name, value)) => Verdict::Failed(format!("the reward {name} is {value}")),
                };
                checked.rewards = Some(rewards);
            }
            Err(why) => checked.verdict = Verdict::None(why),
        }
    }
}

/// What a checker may take beyond twice its time: a loaded machine, for one.
const GRACE: Duration = Duration::from_secs(30);

/// The file that a checker wrote its rewards to, if it did.
async fn rewards(sandbox: &EnvironmentHandle) -> Option<(Bytes, &'static str)> {
    let list = EnvironmentCall::List {
        path: VERIFIER.to_owned(),
        depth: 1,
    };
    // It may have removed the directory.
    let EnvironmentReply::Entries(there) = sandbox.call(list).await.ok()? else {
        return None;
    };
    let has = |name: &&str| there.entries.iter().any(|entry| entry.path == **name);
    let file = ["reward.json", "reward.txt"].into_iter().find(has)?;
    let content = sandbox.read(&format!("{VERIFIER}/{file}")).await.ok()?;
    Some((content, file))
}

fn read_rewards(bytes: &[u8], file: &str) -> Result<BTreeMap<String, f64>, String> {
    let wrong = |why: &str| Err(format!("the checker's {VERIFIER}/{file} {why}"));
    if bytes.len() > REWARD_BYTES {
        return wrong("has more than 1 MiB");
    }
    let text = String::from_utf8_lossy(bytes);
    if file == "reward.txt" {
        return match text.trim().parse::<f64>() {
            Ok(reward) if reward.is_finite() => Ok([("reward".to_owned(), reward)].into()),
            _ => wrong("is not a number"),
        };
    }
    let number = |value: &Value| match value {
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        value => value.as_f64(),
    };
    match serde_json::from_str::<BTreeMap<String, Value>>(&text) {
        Ok(map) if map.is_empty() => wrong("holds no number"),
        Ok(map) => map
            .iter()
            .map(|(name, value)| Some((name.clone(), number(value)?)))
            .collect::<Option<_>>()
            .map_or_else(|| wrong("is not a map of numbers"), Ok),
        Err(_) => wrong("is not a map of numbers"),
    }
}

/// Commands that make what of the files of a checker is more than content.
fn set_up(files: &Tree) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let made = files.iter().map(|(path, node)| {
        let path = quoted(&format!("/{path}"));
        match node.kind {
            Kind::Plain => String::new(),
            Kind::Executable => format!("chmod +x {path}; "),
            Kind::Directory => format!("mkdir -p {path}; "),
            Kind::Link => {
                let target = quoted(&String::from_utf8_lossy(&node.content));
                format!("mkdir -p \"$(dirname {path})\"; ln -s {target} {path}; ")
            }
        }
    });
    made.collect()
}

fn expected_files(expected: &Tree, tree: &Tree) -> Verdict {
    for (path, node) in expected {
        let found = tree.get(path);
        let same = |found: &crate::tree::Node| match node.kind {
            Kind::Directory => found.kind == Kind::Directory,
            Kind::Link => found.kind == Kind::Link && found.content == node.content,
            Kind::Plain | Kind::Executable => {
                matches!(found.kind, Kind::Plain | Kind::Executable)
                    && found.content == node.content
            }
        };
        match found {
            None => return Verdict::Failed(format!("{path} is missing")),
            Some(found) if !same(found) => {
                return Verdict::Failed(format!("{path} is not as expected"));
            }
            Some(_) => {}
        }
    }
    Verdict::Passed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Node;

    #[test]
    fn rewards() {
        let check = |file: &str, text: &str, expected: Result<&[(&str, f64)], &str>| {
            let read = read_rewards(text.as_bytes(), file);
            let expected = expected
                .map(|all| all.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect())
                .map_err(|why| format!("the checker's /logs/verifier/{file} {why}"));
            assert_eq!(read, expected, "{text}");
        };
        check("reward.txt", " 0.5\n", Ok(&[("reward", 0.5)]));
        check("reward.txt", "", Err("is not a number"));
        check("reward.txt", "inf", Err("is not a number"));
        check(
            "reward.json",
            r#"{"a":1,"b":true}"#,
            Ok(&[("a", 1.0), ("b", 1.0)]),
        );
        check("reward.json", "{}", Err("holds no number"));
        check(
            "reward.json",
            r#"{"a":"1"}"#,
            Err("is not a map of numbers"),
        );
        check("reward.json", "1", Err("is not a map of numbers"));
    }

    #[test]
    fn expected_trees() {
        let tree = |files: &[(&str, &str)]| -> Tree {
            let files = files.iter();
            files
                .map(|(path, text)| ((*path).to_owned(), Node::file((*text).to_owned())))
                .collect()
        };
        let wanted = tree(&[("a", "1"), ("b/c", "2")]);
        let check = |files: &[(&str, &str)], expected: Verdict| {
            assert_eq!(expected_files(&wanted, &tree(files)), expected);
        };
        check(&[("a", "1"), ("b/c", "2"), ("d", "")], Verdict::Passed);
        check(&[("a", "1")], Verdict::Failed("b/c is missing".to_owned()));
        check(
            &[("a", "2"), ("b/c", "2")],
            Verdict::Failed("a is not as expected".to_owned()),
        );
    }
}
