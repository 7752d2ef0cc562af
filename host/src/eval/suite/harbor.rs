//! Tasks in Harbor's layout, as its loader reads them (PyPI `harbor` 0.26,
//! `task.toml` of schema 1.4). What needs a container is skipped with the reason.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::checker::{Checker, TESTS};
use super::declared::{EnvironmentKind, read_toml};
use super::error::SuiteError;
use super::files::{read_folder, read_text};
use super::folder::{hidden, script};
use super::limits::Limits;
use super::task::{Entry, Input, LoadOptions, Task};
use crate::tree::Tree;

/// Whether a task folder is Harbor's: its schema says so, or its parts do.
pub(super) fn is_harbor(folder: &Path, text: &str) -> bool {
    #[derive(Deserialize)]
    struct Versioned {
        schema_version: Option<String>,
        version: Option<String>,
    }
    let versioned = toml::from_str::<Versioned>(text);
    let said = versioned.is_ok_and(|it| it.schema_version.is_some() || it.version.is_some());
    said || folder.join("environment").is_dir() && folder.join("tests").is_dir()
}

/// Tables and keys that Harbor knows; what is not used here is still checked for
/// being one of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Declared {
    schema_version: Option<String>,
    version: Option<String>,
    task: Value,
    metadata: Value,
    agent: Agent,
    verifier: Verifier,
    environment: Environment,
    solution: Value,
    steps: Vec<Step>,
    multi_step_reward_strategy: Option<String>,
    artifacts: Value,
    source: Option<String>,
}

/// What is not used is accepted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Agent {
    timeout_sec: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Verifier {
    timeout_sec: Option<f64>,
    env: BTreeMap<String, String>,
    environment_mode: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Environment {
    docker_image: Option<String>,
    os: Option<String>,
    gpus: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Step {
    name: String,
    min_reward: Value,
}

/// Loads a task of this layout.
pub(super) fn load(
    name: &str,
    folder: &Path,
    text: &str,
    options: &LoadOptions,
) -> Result<Entry, SuiteError> {
    let place = format!("task {name}: task.toml");
    let declared: Declared = read_toml(&place, text)?;
    if let Some(version) = declared
        .schema_version
        .as_ref()
        .or(declared.version.as_ref())
    {
        let known = version.split('.').next().is_some_and(|major| major == "1");
        if !known {
            return Err(SuiteError::new(format!(
                "{place}: schema_version {version} is not one that this version reads: 1.x"
            )));
        }
    }
    let environment = folder.join("environment");
    if let Some(reason) = container(&declared.environment, &environment) {
        return Ok(Entry::Skipped(reason));
    }
    if let Some(reason) = strategy(&declared) {
        return Ok(Entry::Skipped(reason));
    }
    let tree = match environment.is_dir() {
        true => read_folder(&environment)?,
        false => Tree::new(),
    };
    let mut inputs = Vec::new();
    let mut last = None;
    if declared.steps.is_empty() {
        inputs.push(Input {
            name: String::new(),
            instruction: instruction(name, folder)?,
            checker: None,
        });
    }
    for step in &declared.steps {
        let part = folder.join("steps").join(&step.name);
        let own = hidden(&part.join("tests"))?;
        inputs.push(Input {
            name: step.name.clone(),
            instruction: instruction(name, &part)?,
            checker: (!own.is_empty()).then(|| Checker::Command {
                command: format!("bash {TESTS}/test.sh"),
                files: own,
            }),
        });
    }
    // The checker of the last step decides about the task.
    if let Some(step) = inputs.last_mut()
        && !folder.join("tests").is_dir()
    {
        last = step.checker.take();
    }
    let checker = match last {
        Some(checker) => checker,
        None => {
            let files = hidden(&folder.join("tests"))?;
            let entry = format!("{TESTS}/test.sh");
            if !files.contains_key(&entry[1..]) {
                return Err(SuiteError::new(format!(
                    "task {name} has no checker: add tests/test.sh"
                )));
            }
            Checker::Command {
                command: format!("bash {entry}"),
                files,
            }
        }
    };
    let ms = |seconds: f64| (seconds.max(0.001) * 1_000.0) as u64;
    let own = ["solve.json", "script.json"];
    let own: Vec<&str> = own
        .into_iter()
        .filter(|file| folder.join(file).is_file())
        .take(1)
        .collect();
    Ok(Entry::Task(
        Task {
            name: name.to_owned(),
            provider: None,
            model: None,
            place: EnvironmentKind::Memory,
            limits: Limits {
                wall_ms: declared.agent.timeout_sec.map(ms),
                ..Limits::default()
            },
            programs: Default::default(),
            inputs,
            checker,
            check_env: declared.verifier.env,
            check_timeout_ms: declared.verifier.timeout_sec.map_or(600_000, ms),
            takes_all_programs: true,
            needs_reward: true,
            script: script(name, folder, &own, options)?,
            tree,
            archive: Default::default(),
        }
        .into(),
    ))
}

/// Why the rewards of several steps do not make the verdict that they make here, where
/// every step has to pass: by their mean they do, by the last one only if those before
/// it have to pass, too.
fn strategy(declared: &Declared) -> Option<String> {
    let strategy = declared.multi_step_reward_strategy.as_deref()?;
    let before = declared
        .steps
        .split_last()
        .map_or(&[][..], |(_, rest)| rest);
    let open = before.iter().find(|step| !has_to_pass(&step.min_reward))?;
    match strategy {
        "mean" => None,
        "final" => Some(format!(
            "its multi_step_reward_strategy is final, and step {} need not pass: give it a \
             min_reward of 1",
            open.name
        )),
        other => Some(format!(
            "its multi_step_reward_strategy is {other}: only mean and final are known"
        )),
    }
}

/// Whether a step's `min_reward`, a number or one for each reward, asks for all of it.
fn has_to_pass(min_reward: &Value) -> bool {
    let is_all = |least: &Value| least.as_f64().is_some_and(|least| least >= 1.0);
    match min_reward {
        Value::Object(rewards) => !rewards.is_empty() && rewards.values().all(is_all),
        least => is_all(least),
    }
}

fn instruction(name: &str, folder: &Path) -> Result<String, SuiteError> {
    let file = folder.join("instruction.md");
    if !file.is_file() {
        return Err(SuiteError::new(format!(
            "task {name} has no {}",
            file.display()
        )));
    }
    read_text(&file)
}

/// Why a task needs a container, if it does.
fn container(declared: &Environment, folder: &Path) -> Option<String> {
    if let Some(image) = &declared.docker_image {
        return Some(format!("it needs a container of the image {image}"));
    }
    for file in ["Dockerfile", "docker-compose.yaml", "docker-compose.yml"] {
        if folder.join(file).is_file() {
            return Some(format!("it needs a container: environment/{file}"));
        }
    }
    if declared.os.as_deref().is_some_and(|os| os != "linux") {
        return Some(format!(
            "it needs the system {}",
            declared.os.as_deref().unwrap_or_default()
        ));
    }
    declared
        .gpus
        .filter(|gpus| *gpus > 0)
        .map(|gpus| format!("it needs {gpus} GPUs"))
}
