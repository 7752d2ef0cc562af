//! A task folder; docs/eval.md says what one holds.

use std::path::{Path, PathBuf};

use super::checker::{Checker, TESTS, command};
use super::declared::{Declared, Step, read_toml};
use super::error::SuiteError;
use super::files::{read_archive, read_folder, read_text, unreadable};
use super::task::{Entry, Input, LoadOptions, Task, model};
use crate::tree::Tree;

/// Loads the task in `folder`, whose `task.toml` has this text.
///
/// # Errors
/// It is not a task; the sentence names it.
pub(super) fn load(
    name: &str,
    folder: &Path,
    text: &str,
    options: &LoadOptions,
) -> Result<Entry, SuiteError> {
    let place = format!("task {name}: task.toml");
    let declared: Declared = read_toml(&place, text)?;
    let instruction = match declared.instruction {
        Some(instruction) => instruction,
        None => {
            let file = folder.join("instruction.md");
            if !file.is_file() {
                return Err(SuiteError::new(format!(
                    "task {name} has no instruction: add `instruction` to task.toml, or the file \
                     instruction.md"
                )));
            }
            read_text(&file)?
        }
    };
    if instruction.trim().is_empty() {
        return Err(SuiteError::new(format!(
            "task {name}: the instruction is empty"
        )));
    }
    let (files, archive) = (folder.join("files"), folder.join("files.tar"));
    let tree = if files.is_dir() {
        read_folder(&files)?
    } else if archive.is_file() {
        read_archive(&archive)?
    } else {
        Tree::new()
    };
    let beside = hidden(&folder.join("check"))?;
    let mut inputs = vec![Input {
        name: String::new(),
        instruction,
        checker: None,
    }];
    let mut scripts: Vec<&str> = declared.script.as_deref().into_iter().collect();
    for step in &declared.steps {
        inputs.push(input(name, folder, step, &beside)?);
        scripts.extend(step.script.as_deref());
    }
    let script = script(name, folder, &scripts, options)?;
    Ok(Entry::Task(
        Task {
            name: name.to_owned(),
            provider: declared.provider,
            model: declared.model,
            place: declared.env,
            limits: declared.limits.checked(&place)?,
            programs: needed(declared.programs),
            inputs,
            checker: checker(name, folder, beside)?,
            check_env: Default::default(),
            check_timeout_ms: declared.check.timeout_ms.max(1),
            takes_all_programs: false,
            needs_reward: false,
            script,
            tree,
            archive: Default::default(),
        }
        .into(),
    ))
}

/// The names that are true.
pub(super) fn needed(
    programs: std::collections::BTreeMap<String, bool>,
) -> std::collections::BTreeSet<String> {
    let needed = programs.into_iter().filter(|(_, needed)| *needed);
    needed.map(|(name, _)| name).collect()
}

fn input(name: &str, folder: &Path, step: &Step, beside: &Tree) -> Result<Input, SuiteError> {
    let checker = match &step.check {
        None => None,
        Some(file) => {
            let path = folder.join(file);
            if super::files::relative(file).is_none() || !path.is_file() {
                return Err(SuiteError::new(format!(
                    "task {name}: step {}: there is no checker {file}",
                    step.name
                )));
            }
            let content = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            Some(command(file, beside.clone(), content.into()))
        }
    };
    Ok(Input {
        name: step.name.clone(),
        instruction: step.instruction.clone(),
        checker,
    })
}

/// The script that plays the model: that of the run, else those of the task and its
/// steps, one after the other.
pub(super) fn script(
    name: &str,
    folder: &Path,
    scripts: &[&str],
    options: &LoadOptions,
) -> Result<Option<(hermitcrab::script::ScriptedModel, String)>, SuiteError> {
    if options.provider_answers {
        return Ok(None);
    }
    if let Some(file) = &options.script {
        let own = folder.join(file);
        let path = if own.is_file() {
            own
        } else {
            PathBuf::from(file)
        };
        if !path.is_file() {
            return Err(SuiteError::new(format!("task {name} has no script {file}")));
        }
        return model(name, file, read_text(&path)?).map(Some);
    }
    let mut joined: Option<serde_json::Value> = None;
    let mut alone = None;
    for file in scripts {
        let path = folder.join(file);
        if super::files::relative(file).is_none() || !path.is_file() {
            return Err(SuiteError::new(format!("task {name} has no script {file}")));
        }
        let text = read_text(&path)?;
        // Each must be a script by itself, so that errors name its own lines.
        model(name, file, text.clone())?;
        if scripts.len() == 1 {
            alone = Some(text);
            break;
        }
        let mut value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        match &mut joined {
            None => joined = Some(value),
            Some(first) => {
                if let (Some(steps), Some(more)) =
                    (first["steps"].as_array_mut(), value["steps"].as_array_mut())
                {
                    steps.append(more);
                }
            }
        }
    }
    let text = alone.or_else(|| joined.map(|value| value.to_string()));
    text.map(|text| model(name, "script", text)).transpose()
}

fn checker(name: &str, folder: &Path, beside: Tree) -> Result<Checker, SuiteError> {
    for entry in ["check.sh", "check.py"] {
        let path = folder.join(entry);
        if path.is_file() {
            let content = std::fs::read(&path).map_err(|error| unreadable(&path, &error))?;
            return Ok(command(entry, beside, content.into()));
        }
    }
    let expected = folder.join("expected");
    if expected.is_dir() {
        return Ok(Checker::Expected(read_folder(&expected)?));
    }
    Err(SuiteError::new(format!(
        "task {name} has no checker: add check.sh, check.py or the folder expected/"
    )))
}

/// The files in `folder`, by the path that a checker finds them at.
pub(super) fn hidden(folder: &Path) -> Result<Tree, SuiteError> {
    if !folder.is_dir() {
        return Ok(Tree::new());
    }
    let files = read_folder(folder)?.into_iter();
    Ok(files
        .map(|(path, node)| (format!("{}/{path}", &TESTS[1..]), node))
        .collect())
}
