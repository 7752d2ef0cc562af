//! `hermitcrab.toml`: what the user and the project want where the command line says
//! nothing.
//!
//! The user's file counts whole. The project's is written by whoever wrote the project, so
//! of it only what gives no rights counts, and nothing that the user's file says, until
//! the user's file names the project under `trusted`.

use std::env;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use clap::ValueEnum as _;
use hermitcrab::session::SessionConfig;
use serde_json::{Map, Value};

use crate::cli::{Approve, EnvironmentKind, FenceOptions, RunOptions, SandboxMode};
use crate::failure::{Failure, reason};
use crate::harmless::harmless;
use crate::settings;

/// The name of both files.
pub(crate) const NAME: &str = "hermitcrab.toml";

/// Keys of the project's file that count whoever wrote it: they choose among what the user
/// has anyway.
const HARMLESS: [&str; 10] = [
    "context_window",
    "max_tokens",
    "max_tool_rounds_per_input",
    "max_turns",
    "max_wall_ms",
    "model",
    "quiet",
    "reasoning_effort",
    "tool_line_limits",
    "tool_output_limits",
];

/// Keys that are options of the program, not settings of a session.
const OPTIONS: [&str; 5] = ["approve", "checkpoints", "journal", "quiet", "trusted"];
/// Those of them that make a sandbox.
const FENCE: [&str; 3] = ["allow_write", "net", "sandbox"];

/// A file beyond this size is not read, in bytes: it comes with a repository.
const MAX_BYTES: u64 = 256 << 10;
/// Characters of a file that an error quotes at most.
const QUOTED: usize = 200;

/// Applies what the files say of a sandbox to a session that goes on, whose other settings
/// go on with it.
///
/// # Errors
/// As [`apply`].
pub(crate) fn fence(options: &mut RunOptions) -> Result<(), Failure> {
    let Ok(directory) = fs::canonicalize(&options.dir) else {
        // Whoever needs it says so.
        return Ok(());
    };
    fence_of(&mut merged(Some(&directory))?, options)
}

/// Applies the user's file and that of the project around `directory` to `options`, and
/// returns the settings of a session that they name.
///
/// # Errors
/// A file cannot be read, or says what cannot be.
pub(crate) fn apply(
    options: &mut RunOptions,
    directory: Option<&Path>,
) -> Result<Map<String, Value>, Failure> {
    let mut fields = merged(directory)?;
    fence_of(&mut fields, options)?;
    for name in OPTIONS {
        let Some(value) = fields.remove(name) else {
            continue;
        };
        match (name, &value) {
            ("quiet", Value::Bool(quiet)) => options.quiet |= quiet,
            ("journal", Value::Bool(journal)) => {
                options.journal.no_journal |= !journal && !options.journal.r#continue;
            }
            ("checkpoints", Value::Bool(checkpoints)) => {
                options.journal.no_checkpoints |= !checkpoints;
            }
            ("approve", Value::String(approve)) => {
                let approve = Approve::from_str(approve, false).map_err(|_| {
                    Failure::usage(format!(
                        "{NAME}: `approve` is never, ask or always, not {}",
                        quoted(&value)
                    ))
                })?;
                options.approve.get_or_insert(approve);
            }
            ("trusted", _) => {}
            _ => return Err(wrong_value(name, &value)),
        }
    }
    Ok(fields)
}

fn wrong_value(name: &str, value: &Value) -> Failure {
    Failure::usage(format!(
        "{NAME}: `{name}` has a wrong value: {}",
        quoted(value)
    ))
}

/// What the files say together.
fn merged(directory: Option<&Path>) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    let mut trusted = Vec::new();
    let user = user_file();
    if let Some(path) = &user
        && let Some(user) = read(path)?
    {
        trusted = trusted_in(path, &user)?;
        fields = user;
    }
    if let Some(path) = directory.and_then(project_file)
        && let Some(project) = read(&path)?
    {
        let home = path.parent().unwrap_or(&path);
        let is_trusted = trusted.iter().any(|one| one == home);
        let mut ignored = Vec::new();
        for (name, value) in project {
            let counts = HARMLESS.contains(&&*name) && !fields.contains_key(&name);
            match (is_trusted, counts) {
                (true, _) if name != "trusted" => drop(fields.insert(name, value)),
                (false, true) => drop(fields.insert(name, value)),
                // What the user says wins in silence.
                (false, false) if HARMLESS.contains(&&*name) => {}
                _ => ignored.push(name),
            }
        }
        if !ignored.is_empty() {
            let user = user.map_or_else(|| NAME.to_owned(), |path| path.display().to_string());
            eprintln!(
                "hermitcrab: {} of {} is not used: only you can say that the project is trusted, \
                 with `trusted = [{:?}]` in {user}",
                harmless(&ignored.join(", ")),
                harmless(&path.display().to_string()),
                harmless(&home.display().to_string()),
            );
        }
    }
    Ok(fields)
}

/// Takes what is said of a sandbox into `options`.
fn fence_of(fields: &mut Map<String, Value>, options: &mut RunOptions) -> Result<(), Failure> {
    let mut widened = FenceOptions::default();
    for name in FENCE {
        let Some(value) = fields.remove(name) else {
            continue;
        };
        match (name, &value) {
            // A fence is of this machine.
            _ if !options.environment_kind().is_here() => {}
            ("sandbox", Value::String(mode)) => {
                let mode = SandboxMode::from_str(mode, false).map_err(|_| {
                    Failure::usage(format!(
                        "{NAME}: `sandbox` is off, read-only or workspace-write, not {}",
                        quoted(&value)
                    ))
                })?;
                options.fence.sandbox.get_or_insert(mode);
            }
            ("net", Value::Bool(net)) => widened.net |= net,
            ("allow_write", Value::Array(paths)) if paths.iter().all(Value::is_string) => {
                let home = env::var_os("HOME").map(PathBuf::from);
                let texts = paths.iter().filter_map(Value::as_str);
                let paths = texts.map(|text| below(home.as_deref(), text));
                // A cache that is not there yet is left out, as the option says.
                widened
                    .allow_write
                    .extend(paths.filter(|path| path.exists()));
            }
            _ => return Err(wrong_value(name, &value)),
        }
    }
    // What widens a sandbox counts where there is one.
    if options.fence.is_on() {
        options.fence.net |= widened.net;
        if options.fence.sandbox == Some(SandboxMode::WorkspaceWrite) {
            options.fence.allow_write.extend(widened.allow_write);
        }
    }
    Ok(())
}

/// `text` as a path, where `~/` is `home`.
fn below(home: Option<&Path>, text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// The settings of a session in `place` that the files name, over the built-in ones.
///
/// # Errors
/// A name or a value is wrong.
pub(crate) fn over(
    fields: Map<String, Value>,
    place: EnvironmentKind,
) -> Result<SessionConfig, Failure> {
    let config = SessionConfig {
        provider: String::new(),
        // People start servers on their machines.
        background_commands: place != EnvironmentKind::Memory,
        ..SessionConfig::default()
    };
    if fields.is_empty() {
        return Ok(config);
    }
    settings::merged(&config, fields)
        .map_err(|problem| Failure::usage(format!("{NAME}: {problem}")))
}

/// The file of the user.
fn user_file() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let named = set("XDG_CONFIG_HOME").map(PathBuf::from);
    let base = match named.filter(|path| path.is_absolute()) {
        Some(path) => path,
        None if cfg!(windows) => PathBuf::from(set("APPDATA")?),
        None => PathBuf::from(set("HOME")?).join(".config"),
    };
    Some(base.join("hermitcrab").join(NAME))
}

/// The file of the project: the first one upwards from `directory`, up to the root of
/// its repository.
fn project_file(directory: &Path) -> Option<PathBuf> {
    for each in directory.ancestors() {
        let file = each.join(NAME);
        if file.is_file() {
            return Some(file);
        }
        if each.join(".git").exists() {
            return None;
        }
    }
    None
}

/// What a file says; none: it is not there, or in a directory that is closed to this
/// user (`HOME` of another one).
fn read(path: &Path) -> Result<Option<Map<String, Value>>, Failure> {
    let shown = path.display();
    let mut text = String::new();
    let opened = File::open(path);
    let read = opened.and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 > MAX_BYTES => {
            return Err(Failure::usage(format!(
                "{shown} has more than {} KiB, which no settings need",
                MAX_BYTES >> 10
            )));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(_) if fs::symlink_metadata(path).is_err() => return Ok(None),
        Err(error) => {
            return Err(Failure::usage(format!(
                "cannot read {shown}: {}",
                reason(&error)
            )));
        }
    }
    let wrong = |problem: String| Failure::usage(format!("{shown}: {problem}"));
    let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(syntax(&text, &error)))?;
    let Ok(Value::Object(fields)) = serde_json::to_value(table) else {
        return Err(wrong("it is not a table".to_owned()));
    };
    let options = [&OPTIONS[..], &FENCE].concat();
    let own: Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| !options.contains(&&***name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    // By itself first, so that the error names the file.
    settings::merged(&SessionConfig::default(), own)
        .map_err(|problem| wrong(settings::with_keys(&problem, &options)))?;
    Ok(Some(fields))
}

/// Where `text` is not TOML and why, with what stands there.
fn syntax(text: &str, error: &toml::de::Error) -> String {
    let message = cut(error.message(), 0);
    let Some(span) = error.span() else {
        return message;
    };
    let before = text.get(..span.start).unwrap_or(text);
    let (line, column) = match before.rsplit_once('\n') {
        Some((lines, start)) => (lines.matches('\n').count() + 1, start.chars().count()),
        None => (0, before.chars().count()),
    };
    let found = cut(text.split('\n').nth(line).unwrap_or_default(), column);
    format!(
        "line {}, column {}: {message}: `{}`",
        line + 1,
        column + 1,
        found.trim()
    )
}

/// At most [`QUOTED`] characters of `text`, around the one at `middle`.
fn cut(text: &str, middle: usize) -> String {
    let text = harmless(text).replace('\n', " ");
    let most = text.chars().count().saturating_sub(QUOTED);
    let first = middle.saturating_sub(QUOTED / 2).min(most);
    let mut rest = text.chars().skip(first);
    let mut cut: String = rest.by_ref().take(QUOTED).collect();
    if first > 0 {
        cut.insert(0, '…');
    }
    if rest.next().is_some() {
        cut.push('…');
    }
    cut
}

/// A value as an error shows it.
fn quoted(value: &Value) -> String {
    cut(&value.to_string(), 0)
}

/// The directories that the user trusts.
fn trusted_in(path: &Path, fields: &Map<String, Value>) -> Result<Vec<PathBuf>, Failure> {
    let Some(value) = fields.get("trusted") else {
        return Ok(Vec::new());
    };
    let wrong = || {
        let shown = path.display();
        Failure::usage(format!(
            "{shown}: `trusted` is a list of directories, not {}",
            quoted(value)
        ))
    };
    let list = value.as_array().ok_or_else(wrong)?;
    let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
    let home = env::var_os("HOME").map(PathBuf::from);
    let of = |text: &str| below(home.as_deref(), text);
    let texts = texts.ok_or_else(wrong)?;
    if let Some(relative) = texts.iter().find(|text| !of(text).is_absolute()) {
        return Err(Failure::usage(format!(
            "{}: `trusted` has the relative path `{}`: write the whole path, or begin it with ~/ \
             for your home directory",
            path.display(),
            cut(relative, 0)
        )));
    }
    let paths = texts.into_iter().map(of);
    // As the working directory is: without links.
    Ok(paths
        .map(|path| fs::canonicalize(&path).unwrap_or(path))
        .collect())
}
