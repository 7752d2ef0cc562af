//! A suite that is a file of JSON lines, one task each. The index holds names and
//! places; a line is parsed when its task is needed.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use super::checker::{Checker, TESTS, command};
use super::declared::{Check, DeclaredLimits, EnvironmentKind};
use super::error::SuiteError;
use super::files::{read_text, relative, unreadable};
use super::folder::needed;
use super::task::{Entry, Input, LoadOptions, Task, model};
use crate::tree::{Node, Tree};

/// Where each task stands in the file.
#[derive(Debug)]
pub(super) struct Lines {
    path: PathBuf,
    lines: Vec<Line>,
}

#[derive(Debug)]
struct Line {
    name: String,
    /// Counted from 1.
    number: usize,
    start: u64,
    length: usize,
}

/// Bytes of the longest line that is read.
const MAX_LINE: usize = 1 << 30;

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, SuiteError> {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut reader = BufReader::with_capacity(1 << 16, file);
        let mut lines = Vec::new();
        let mut names = HashSet::new();
        let (mut start, mut number) = (0, 0);
        let mut text = Vec::new();
        loop {
            text.clear();
            let mut limited = reader.by_ref().take(MAX_LINE as u64);
            let length = limited
                .read_until(b'\n', &mut text)
                .map_err(|error| unreadable(path, &error))?;
            if length == 0 {
                break;
            }
            number += 1;
            if !text.trim_ascii().is_empty() {
                let named: Named = serde_json::from_slice(&text).map_err(|error| {
                    SuiteError::new(format!(
                        "{} line {number} is no task: {error}",
                        path.display()
                    ))
                })?;
                if !names.insert(named.name.clone()) {
                    return Err(SuiteError::new(format!(
                        "{} line {number}: there is another task {}",
                        path.display(),
                        named.name
                    )));
                }
                lines.push(Line {
                    name: named.name,
                    number,
                    start,
                    length,
                });
            }
            start += length as u64;
        }
        if lines.is_empty() {
            return Err(SuiteError::new(format!("{} holds no task", path.display())));
        }
        Ok(Self {
            path: path.to_owned(),
            lines,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.lines.get(index).map_or("", |line| &line.name)
    }

    pub(super) fn load(&self, index: usize, options: &LoadOptions) -> Result<Entry, SuiteError> {
        let Some(line) = self.lines.get(index) else {
            return Err(SuiteError::new(format!("there is no task {index}")));
        };
        let mut file = File::open(&self.path).map_err(|error| unreadable(&self.path, &error))?;
        let mut text = vec![0; line.length];
        file.seek(SeekFrom::Start(line.start))
            .and_then(|_| file.read_exact(&mut text))
            .map_err(|error| unreadable(&self.path, &error))?;
        let place = format!("{} line {}", self.path.display(), line.number);
        let task: Declared = serde_json::from_slice(&text)
            .map_err(|error| SuiteError::new(format!("{place} (task {}): {error}", line.name)))?;
        task.task(&place, self.path.parent(), options)
            .map(|task| Entry::Task(task.into()))
    }
}

/// The keys of task.toml, and those that are files in a folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Declared {
    name: String,
    instruction: String,
    provider: Option<String>,
    model: Option<String>,
    /// The script itself, or the path of its file from the suite's folder.
    script: Option<Value>,
    #[serde(default)]
    env: EnvironmentKind,
    #[serde(default)]
    limits: DeclaredLimits,
    #[serde(default)]
    programs: BTreeMap<String, bool>,
    #[serde(default)]
    files: BTreeMap<String, Content>,
    /// Text of check.sh, or settings of the checker.
    check: Option<CheckText>,
    #[serde(default)]
    expected: BTreeMap<String, Content>,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    name: String,
    instruction: String,
    check: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum CheckText {
    Text(String),
    Settings {
        script: String,
        #[serde(default)]
        timeout_ms: Option<u64>,
        #[serde(default)]
        files: BTreeMap<String, Content>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Base64 { base64: String },
}

impl Content {
    fn bytes(self, place: &str, path: &str) -> Result<Bytes, SuiteError> {
        match self {
            Self::Text(text) => Ok(text.into()),
            Self::Base64 { base64 } => STANDARD.decode(base64).map(Into::into).map_err(|error| {
                SuiteError::new(format!("{place}: the base64 of {path} is damaged: {error}"))
            }),
        }
    }
}

fn tree(place: &str, files: BTreeMap<String, Content>) -> Result<Tree, SuiteError> {
    let mut tree = Tree::new();
    for (path, content) in files {
        let Some(inside) = relative(&path).filter(|path| !path.is_empty()) else {
            return Err(SuiteError::new(format!(
                "{place}: the path {path} is absolute or leads out of the task"
            )));
        };
        let content = content.bytes(place, &path)?;
        tree.insert(inside, Node::file(content));
    }
    Ok(tree)
}

impl Declared {
    fn task(
        self,
        place: &str,
        folder: Option<&Path>,
        options: &LoadOptions,
    ) -> Result<Task, SuiteError> {
        let name = self.name;
        let place = format!("{place} (task {name})");
        let mut check_timeout_ms = Check::default().timeout_ms;
        let checker = match self.check {
            Some(CheckText::Text(text)) => command("check.sh", Tree::new(), text.into()),
            Some(CheckText::Settings {
                script,
                timeout_ms,
                files,
            }) => {
                check_timeout_ms = timeout_ms.unwrap_or(check_timeout_ms).max(1);
                let files = tree(&place, files)?;
                let files = files
                    .into_iter()
                    .map(|(path, node)| (format!("{}/{path}", &TESTS[1..]), node));
                command("check.sh", files.collect(), script.into())
            }
            None if self.expected.is_empty() => {
                return Err(SuiteError::new(format!(
                    "{place} has no checker: add `check` or `expected`"
                )));
            }
            None => Checker::Expected(tree(&place, self.expected)?),
        };
        let mut inputs = vec![Input {
            name: String::new(),
            instruction: self.instruction,
            checker: None,
        }];
        inputs.extend(self.steps.into_iter().map(|step| {
            Input {
                name: step.name,
                instruction: step.instruction,
                checker: step
                    .check
                    .map(|text| command("check.sh", Tree::new(), text.into())),
            }
        }));
        if inputs[0].instruction.trim().is_empty() {
            return Err(SuiteError::new(format!(
                "{place}: the instruction is empty"
            )));
        }
        let file = |file: &str| {
            let beside = folder.map(|folder| folder.join(file));
            let path = beside.unwrap_or_else(|| PathBuf::from(file));
            read_text(&path).and_then(|text| model(&name, file, text))
        };
        let script = match (options.provider_answers, &options.script, self.script) {
            (true, _, _) | (_, None, None) => None,
            (_, Some(path), _) => {
                Some(read_text(Path::new(path)).and_then(|t| model(&name, path, t))?)
            }
            (_, None, Some(Value::String(path))) => Some(file(&path)?),
            (_, None, Some(script)) => Some(model(&name, "script", script.to_string())?),
        };
        Ok(Task {
            limits: self.limits.checked(&place)?,
            tree: tree(&place, self.files)?,
            name,
            provider: self.provider,
            model: self.model,
            place: self.env,
            programs: needed(self.programs),
            inputs,
            checker,
            check_env: BTreeMap::new(),
            check_timeout_ms,
            takes_all_programs: false,
            needs_reward: false,
            script,
            archive: Default::default(),
        })
    }
}
