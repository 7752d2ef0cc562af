//! The settings of a session, from `--config` and the options over it.

use std::path::{Path, PathBuf};

use hermitcrab::llm::{Prices, model_info};
use hermitcrab::profile::{Profile, Toolset};
use hermitcrab::session::{Compaction, SessionConfig, SessionError};
use serde_json::{Map, Value};

use crate::approve;
use crate::cli::{Approve, SettingsOptions, ToolNames};
use crate::failure::Failure;
use crate::prompt;
use crate::provider::{self, Chosen};
use crate::secrets::Secrets;

/// The contents of the files that options name.
#[derive(Clone)]
pub(crate) struct Texts {
    instructions: Option<String>,
    tools: Option<String>,
    system: Option<String>,
    output_schema: Option<Value>,
}

impl Texts {
    pub(crate) fn read(options: &SettingsOptions) -> Result<Self, Failure> {
        let read = |path: &Option<PathBuf>, option: &str| {
            path.as_deref()
                .map(|path| prompt::read_file(path, option))
                .transpose()
        };
        let option = "--output-schema";
        let schema = read(&options.output_schema, option)?.map(|text| {
            serde_json::from_str(&text)
                .map_err(|error| Failure::usage(format!("{option}: not valid JSON: {error}")))
        });
        Ok(Self {
            output_schema: schema.transpose()?,
            instructions: read(&options.instructions, "--instructions")?,
            tools: read(&options.tools_file, "--tools-file")?,
            system: read(&options.system_file, "--system-file")?,
        })
    }
}

/// Settings that follow from other options, with those options.
const NOT_FROM_A_FILE: [(&str, &str); 5] = [
    ("base_url", "--base-url"),
    ("credential", "the provider's API key variable"),
    ("endpoints", "the providers' variables"),
    ("tools", "a Rust or JavaScript host, which can run them"),
    ("browser", "a browser"),
];

/// What `--config` says over the built-in settings.
///
/// # Errors
/// It cannot be read, or says what cannot be.
pub(crate) fn read(file: Option<&Path>) -> Result<SessionConfig, Failure> {
    let without = SessionConfig {
        provider: String::new(),
        ..SessionConfig::default()
    };
    over(file, &without)
}

/// `config` with what `--config` says over it.
///
/// # Errors
/// As [`read`].
pub(crate) fn over(file: Option<&Path>, config: &SessionConfig) -> Result<SessionConfig, Failure> {
    let Some(path) = file else {
        return Ok(config.clone());
    };
    let text = prompt::read_file(path, "--config")?;
    let wrong = |problem: String| {
        let shown = path.display();
        Failure::usage(format!("--config {shown}: {problem}: see docs/settings.md"))
    };
    let fields: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("it is not a JSON object: {error}")))?;
    // Alone first: errors name lines and columns of the file.
    if misplaced(&fields).is_none() {
        SessionConfig::from_json(&text).map_err(|error| wrong(with_keys(&problem(&error), &[])))?;
    }
    merged(config, fields).map_err(wrong)
}

/// `config` with `fields` of a file over it; else what is wrong with them.
pub(crate) fn merged(
    config: &SessionConfig,
    fields: Map<String, Value>,
) -> Result<SessionConfig, String> {
    if let Some(problem) = misplaced(&fields) {
        return Err(problem);
    }
    let mut merged = serde_json::to_value(config)
        .map_err(|error| format!("the settings cannot be read: {error}"))?;
    if let Value::Object(merged) = &mut merged {
        merged.extend(fields);
    }
    SessionConfig::from_json(&merged.to_string()).map_err(|error| problem(&error))
}

/// A field that comes from elsewhere.
fn misplaced(fields: &Map<String, Value>) -> Option<String> {
    let is_there = |(name, _): &&(&str, &str)| fields.contains_key(*name);
    let (name, from) = NOT_FROM_A_FILE.iter().find(is_there)?;
    Some(format!("`{name}` comes from {from}, not from a file"))
}

/// What is wrong with a configuration, for a sentence that says which it is.
pub(crate) fn problem(error: &SessionError) -> String {
    let message = error.message.as_str();
    let head = "invalid session configuration: ";
    let message = message.strip_prefix(head).unwrap_or(message);
    // The name of a type says nothing to a person.
    match message.split_once("expected struct ") {
        Some((before, name)) => {
            let rest = name.trim_start_matches(|c: char| c.is_alphanumeric());
            format!("{before}expected an object with its fields{rest}")
        }
        None => message.to_owned(),
    }
}

/// `problem`, where it lists the settings that there are: those that may stand in a file,
/// and `others`.
pub(crate) fn with_keys(problem: &str, others: &[&str]) -> String {
    let list = problem.split_once(", expected one of ");
    let Some((head, list)) = list.filter(|(_, list)| list.starts_with("`provider`, ")) else {
        return problem.to_owned();
    };
    let names = list.split(", ").map(|name| name.trim_matches('`'));
    let elsewhere = |name: &&str| NOT_FROM_A_FILE.iter().any(|(other, _)| other == name);
    let mut names: Vec<&str> = names.filter(|name| !elsewhere(name)).collect();
    names.extend(others);
    names.sort_unstable();
    format!("{head}, expected one of `{}`", names.join("`, `"))
}

/// `file`'s settings with what options say over them.
pub(crate) fn config(
    options: &SettingsOptions,
    provider: String,
    model: Option<&str>,
    texts: Texts,
    file: SessionConfig,
) -> SessionConfig {
    SessionConfig {
        provider,
        model: model.map_or(file.model, str::to_owned),
        max_turns: options.max_turns.unwrap_or(file.max_turns),
        max_tool_rounds_per_input: options
            .max_tool_rounds
            .unwrap_or(file.max_tool_rounds_per_input),
        max_wall_ms: options.max_wall_ms.unwrap_or(file.max_wall_ms),
        max_cost_usd: options.max_cost.or(file.max_cost_usd),
        compaction: match options.compact {
            true => file.compaction.or_else(|| Some(Compaction::default())),
            false => file.compaction,
        },
        reasoning_effort: options.reasoning_effort.clone().or(file.reasoning_effort),
        instructions: texts.instructions.or(file.instructions),
        output_schema: texts.output_schema.or(file.output_schema),
        tool_declarations: texts.tools.map(Value::String).or(file.tool_declarations),
        base_instructions: texts.system.or(file.base_instructions),
        toolset: match options.toolset {
            None => file.toolset,
            Some(ToolNames::Spec) => Toolset::Spec,
            Some(ToolNames::Native) => Toolset::Native,
        },
        ..file
    }
}

/// What `--approve` asks for.
pub(crate) fn set_approval(config: &mut SessionConfig, approve: Option<Approve>) {
    if let Some(approve) = approve {
        config.approval = approve::settings(approve);
    }
}

/// Finds what is wrong with the options together before anything starts.
pub(crate) fn check(
    config: &SessionConfig,
    options: &SettingsOptions,
    model: Option<&str>,
) -> Result<(), Failure> {
    let Ok(profile) = config.profile_of(&config.provider) else {
        return Ok(());
    };
    if model.map(str::trim) == Some("") {
        return Err(Failure::usage(
            "--model is empty: name a model, or leave --model out for the provider's default"
                .to_owned(),
        ));
    }
    if config.model.is_empty() && profile.default_model.is_empty() {
        return Err(Failure::usage(format!(
            "provider {} has no default model: name one that its server has with --model",
            profile.id
        )));
    }
    config.check().map_err(|error| {
        Failure::usage(problem(&error).replace("`reasoning_effort`", "--reasoning-effort"))
    })?;
    let model: &str = match config.model.is_empty() {
        true => &profile.default_model,
        false => &config.model,
    };
    if config.max_cost_usd.is_some() && !has_price(config, &profile, model) {
        return Err(Failure::usage(format!(
            "the price of the model {model} is not known, so no limit of the cost can be kept: \
             give the price as `prices` in --config FILE.json or hermitcrab.toml \
             (docs/settings.md), or leave --max-cost (`max_cost_usd`) out"
        )));
    }
    // The profile's own declarations are right, and reading them takes time.
    let Some(path) = &options.tools_file else {
        return Ok(());
    };
    config.registry(&profile).map(drop).map_err(|error| {
        Failure::usage(format!(
            "--tools-file {}: {error}: see docs/toolsets.md for the format",
            path.display()
        ))
    })
}

/// Whether the price of `model` is known, as the core sees it.
fn has_price(config: &SessionConfig, profile: &Profile, model: &str) -> bool {
    let known = model_info(model);
    config.prices.contains_key(model)
        || known.is_some_and(|known| {
            config.prices.contains_key(&known.id)
                || known.provider == profile.id && Prices::of(known).is_some()
        })
}

/// `chosen` and the providers that the environment variables set up beside it, with
/// their addresses in `config`.
pub(crate) fn with_others(
    chosen: Chosen,
    config: &mut SessionConfig,
    secrets: &Secrets,
) -> Vec<Chosen> {
    let mut providers = provider::others(&chosen, |name| secrets.variable(name));
    providers.insert(0, chosen);
    config.endpoints = providers
        .iter()
        .map(|provider| (provider.provider.to_owned(), provider.endpoint()))
        .collect();
    providers
}
