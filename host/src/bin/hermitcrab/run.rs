//! `hermitcrab run`: checks everything that can be wrong before the first
//! request, runs the task, and delivers what `--env memory` has changed.

use std::ffi::OsString;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::llm::Content;
use hermitcrab::profile::Toolset;
use hermitcrab::session::{SessionConfig, SessionError, SessionRecord};
use hermitcrab_host::tree::{self, Tree};
use hermitcrab_host::{ApprovalFn, CoreFailure, Guardian};
use serde_json::Value;

use crate::approve::{self, Questions};
use crate::archive;
use crate::attach;
use crate::cli::{Approve, Place, RunOptions, SettingsOptions, ToolNames};
use crate::connect::{self, Export};
use crate::failure::{Code, Failure, reason};
use crate::output::{self, Output};
use crate::programs::{self, Programs};
use crate::prompt;
use crate::provider::{self, Chosen};
use crate::render::{Renderer, Style, harmless};
use crate::restore;
use crate::save;
use crate::secrets::{self, Secrets};
use crate::session::{Face, drive};
use crate::signal::Stops;
use crate::surroundings;

/// Everything that a session is opened with.
pub(crate) struct Plan {
    /// Keys and where they may go: of the session's provider, and of others for
    /// subagents.
    pub(crate) providers: Vec<Chosen>,
    /// The session's settings.
    pub(crate) config: SessionConfig,
    /// Where tools act.
    pub(crate) ground: Ground,
    /// Who is asked for approval.
    pub(crate) approver: Option<ApprovalFn>,
    /// The conversation that it goes on with.
    pub(crate) history: Option<SessionRecord>,
    /// Where the log of the run goes.
    pub(crate) record: Option<PathBuf>,
    /// Where the session goes when its task is done.
    pub(crate) save: Option<save::File>,
}

/// Variables for commands, with their values.
pub(crate) type Variables = Vec<(String, OsString)>;

/// Where tools act.
pub(crate) enum Ground {
    /// This directory, absolute, with who ends commands if this process cannot,
    /// and what commands get of the variables that look like secrets.
    Local(PathBuf, Guardian, Variables),
    /// The sandbox, with this tar loaded and these programs lent.
    Memory(Bytes, Programs),
}

/// Runs one task.
///
/// # Errors
/// Everything but a natural end, with its exit code and a sentence.
pub(crate) fn run(mut options: RunOptions, secrets: &Secrets) -> Result<Code, Failure> {
    match options.restore.take() {
        Some(saved) => restore::run(&saved, options, secrets),
        None => run_from(&options, secrets, Past::default()),
    }
}

/// What a run goes on from.
#[derive(Default)]
pub(crate) struct Past {
    /// The conversation, if there was one.
    pub(crate) history: Option<SessionRecord>,
    /// Files of the sandbox to replace.
    pub(crate) edits: Vec<(String, Bytes)>,
}

/// Runs one task, or goes on with the one of `past`.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_from(
    options: &RunOptions,
    secrets: &Secrets,
    past: Past,
) -> Result<Code, Failure> {
    let Past { history, edits } = past;
    let memory = options.place() == Place::Memory;
    check_place(options)?;
    let settings = settings(options.settings.config.as_deref())?;
    let named = Some(settings.provider.as_str()).filter(|name| !name.is_empty());
    let named = options.provider.as_deref().or(named);
    // A profile of the file's is reached as its adapter is.
    let own = named.filter(|name| settings.profiles.contains_key(*name));
    let own = own.map(|name| settings.profile_of(name)).transpose();
    let own = own.map_err(|error| Failure::usage(format!("--config: {}", problem(&error))))?;
    let provider = provider::choose(
        own.as_ref().map(|profile| profile.wire).or(named),
        options.base_url.as_deref(),
        |name| secrets.variable(name),
    )?;
    let directory = directory(&options.dir)?;
    let texts = Texts::read(&options.settings)?;
    let prompt = match (&history, &options.prompt) {
        (Some(_), None) => String::new(),
        _ => task(options)?,
    };
    let prompt = attach::attached(prompt, &options.attach)?;
    let passed = passed(options, secrets)?;
    let output = output::file("--out", options.out.as_deref())?;
    let programs = options
        .python
        .as_deref()
        .map(programs::python)
        .transpose()?;

    let mut before = Tree::new();
    let ground = match options.place() {
        // SAFETY: nothing so far has started a thread.
        Place::Local => Ground::Local(directory.clone(), unsafe { guardian() }?, passed),
        Place::Memory => {
            let without = output.as_ref().map(Output::paths).unwrap_or_default();
            before = archive::read_directory(&directory, &without)?;
            let archive = Bytes::from(archive::to_tar(&before)?);
            // Shares its bytes with the archive.
            before = archive::from_tar(&archive)?;
            Ground::Memory(archive, programs.unwrap_or_default())
        }
    };
    let name = own.map_or_else(
        || provider.provider.to_owned(),
        |profile| profile.id.clone(),
    );
    let model = options.model.as_deref();
    let mut config = config(&options.settings, name, model, texts, settings);
    set_approval(&mut config, options.approve);
    check(&config, &options.settings, model)?;
    if memory && config.project.is_none() {
        let profile = config.profile_of(&config.provider);
        let names = profile.map_or_else(|_| Vec::new(), |profile| profile.documents.clone());
        let project = surroundings::project(&directory, &names, &config);
        config.project = Some(runtime()?.block_on(project));
    }
    let providers = with_others(provider, &mut config, secrets);
    let (approver, questions) = approver(options, &ground);
    let plan = Plan {
        config,
        providers,
        ground,
        approver,
        history,
        record: options.record.clone(),
        save: options
            .save
            .as_deref()
            .map(save::File::create)
            .transpose()?,
    };
    carry_out(options, output, questions, async || {
        let session = connect::open(plan).await?;
        edit(&session.session, edits).await?;
        Ok(Ready {
            session,
            prompt,
            before,
        })
    })
}

/// Options that fit one place only.
///
/// # Errors
/// One does not fit.
pub(crate) fn check_place(options: &RunOptions) -> Result<(), Failure> {
    output::distinct(&[
        ("--record", options.record.as_deref()),
        ("--save", options.save.as_deref()),
        ("--out", options.out.as_deref()),
        (LAST_MESSAGE, options.output_last_message.as_deref()),
    ])?;
    if options.place() == Place::Memory {
        return Ok(());
    }
    if options.out.is_some() {
        return Err(Failure::usage(
            "--out needs --env memory: a local run has changed the directory itself",
        ));
    }
    if options.python.is_some() {
        return Err(Failure::usage(
            "--python needs --env memory: commands of a local run have the Python of this machine",
        ));
    }
    Ok(())
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

/// Who is asked for approval.
pub(crate) fn approver(options: &RunOptions, ground: &Ground) -> (Option<ApprovalFn>, Questions) {
    if options.json || options.approve == Approve::Never {
        return (None, Questions::none());
    }
    let asked = approve::on_terminal(match ground {
        Ground::Local(directory, ..) => Some(directory.clone()),
        Ground::Memory(..) => None,
    });
    match asked {
        Some((approver, questions)) => (Some(approver), questions),
        None => (None, Questions::none()),
    }
}

/// A session that can begin.
pub(crate) struct Ready {
    /// The session.
    pub(crate) session: connect::HostSession,
    /// What it begins with.
    pub(crate) prompt: Content,
    /// The tree of its sandbox before that.
    pub(crate) before: Tree,
}

/// Opens a session, has it do its task and delivers what `--env memory` has changed.
///
/// # Errors
/// Everything but a natural end, with its exit code and a sentence.
pub(crate) fn carry_out(
    options: &RunOptions,
    output: Option<Output>,
    mut questions: Questions,
    open: impl AsyncFnOnce() -> Result<Ready, Failure>,
) -> Result<Code, Failure> {
    let memory = options.place() == Place::Memory;
    let last_message = output::file(LAST_MESSAGE, options.output_last_message.as_deref())?;
    let style = if options.json {
        Style::PLAIN
    } else {
        Style::of_stdout(options.quiet)
    };
    let stdout = BufWriter::new(io::stdout());
    let mut face = match options.json {
        true => Face::Json(stdout),
        false => Face::human(stdout, style),
    };
    let runtime = runtime()?;
    let (result, answer, before, after) = runtime.block_on(async {
        let mut stops = Stops::listen()?;
        let Ready {
            mut session,
            prompt,
            before,
        } = open().await?;
        let ended = drive(&mut session, prompt, &mut face, &mut stops, &mut questions).await;
        if let Some(why) = session.end_record().await {
            eprintln!("hermitcrab: the log of the run is not whole: {why}");
        }
        let mut ended = session.saved(ended);
        let answer = ended.answer.take();
        // Also a run that was cut short has changed something; only one that was
        // killed may not answer any more.
        let (after, result) = match memory && !ended.killed {
            false => (None, ended.result),
            true => match session.export().await {
                Export::Now(tar) => (Some(tar), ended.result),
                Export::Before(tar) => (Some(tar), Err(cut_off(ended.result))),
                // A core that has died has told so already.
                Export::Lost(failure) => return Err(lost(ended.result.err().unwrap_or(failure))),
            },
        };
        Ok::<_, Failure>((result, answer, before, after))
    })?;
    // A killed session's commands are killed as its tasks are dropped; nothing
    // else is left to wait for.
    runtime.shutdown_timeout(Duration::from_millis(500));
    // Without an answer an older file stays.
    if let (Some(file), Some(answer)) = (last_message, answer) {
        file.finish(answer.as_bytes())?;
    }
    if let Some(tar) = after {
        let after = archive::from_tar(&tar)?;
        // An older result is worth more than the tree that was loaded.
        let failed = matches!(&result, Err(failure) if failure.code == Code::FAILED);
        match output {
            Some(_) if failed && before == after => {}
            Some(output) => output.finish(&tar)?,
            None => print_diff(&before, &after, options.json, style)?,
        }
    }
    result
}

/// The prompt, with what is piped beside it.
pub(crate) fn task(options: &RunOptions) -> Result<String, Failure> {
    let stdin = io::stdin();
    let named = options.prompt.as_deref();
    let prompt = prompt::read(named, &stdin)?;
    let is_beside = named.is_some_and(|named| named != "-") && prompt::is_piped(&stdin);
    match is_beside && prompt::something_comes() {
        true => prompt::with_piped(prompt, &stdin),
        false => Ok(prompt),
    }
}

/// Replaces files of a sandbox.
///
/// # Errors
/// One cannot be written.
pub(crate) async fn edit(
    session: &hermitcrab_host::Session,
    edits: Vec<(String, Bytes)>,
) -> Result<(), Failure> {
    for (path, content) in edits {
        let written = session.environment().write(&path, content).await;
        written.map_err(|error| Failure::usage(format!("--edit {path}: {error}")))?;
    }
    Ok(())
}

/// What `--pass-env` names.
pub(crate) fn passed(options: &RunOptions, held: &Secrets) -> Result<Variables, Failure> {
    if options.place() == Place::Memory && !options.pass_env.is_empty() {
        return Err(Failure::usage(
            "--pass-env needs --env local: commands in the sandbox have no variables of yours",
        ));
    }
    let keys = provider::keys();
    let theirs: Vec<OsString> = keys.iter().filter_map(|key| held.value(key)).collect();
    let value = |name: &String| match held.value(name) {
        None => Err(Failure::usage(format!(
            "--pass-env {name}: there is no such variable: set it or leave the option out"
        ))),
        Some(value) if theirs.iter().any(|key| secrets::holds(&value, key)) => {
            Err(Failure::usage(format!(
                "--pass-env {name}: it holds the key of a provider, which no command gets: make one of its own for commands"
            )))
        }
        Some(value) => Ok((name.clone(), value)),
    };
    options.pass_env.iter().map(value).collect()
}

/// The end of a run whose files are those from before what ended it.
fn cut_off(result: Result<Code, Failure>) -> Failure {
    let failure = result
        .err()
        .unwrap_or_else(|| Failure::failed("the core has died"));
    let told = failure.message;
    let told = told.strip_suffix(CoreFailure::WAY_OUT).unwrap_or(&told);
    Failure {
        message: format!(
            "{told}; the result is the files as they were before that: go on from there in \
             another run"
        ),
        ..failure
    }
}

/// The end of a run whose files are gone.
fn lost(failure: Failure) -> Failure {
    let told = failure.message;
    let told = told.strip_suffix(CoreFailure::WAY_OUT).unwrap_or(&told);
    Failure {
        message: format!("{told}; what it had changed in the sandbox is lost: run the task again"),
        ..failure
    }
}

/// Who ends the commands of a run that is killed.
///
/// # Safety
/// No other thread runs in this process yet.
pub(crate) unsafe fn guardian() -> Result<Guardian, Failure> {
    // SAFETY: the caller's promise.
    unsafe { Guardian::start() }
        .map_err(|error| Failure::failed(format!("cannot start a process: {}", reason(&error))))
}

/// The threads that sessions run on.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {}", reason(&error))))
}

/// An absolute path to a directory that exists.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, Failure> {
    let shown = path.display();
    let absolute = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "the directory {shown} does not exist: create it or choose another --dir"
        )),
        _ => Failure::usage(format!("cannot open --dir {shown}: {}", reason(&error))),
    })?;
    if !absolute.is_dir() {
        return Err(Failure::usage(format!(
            "--dir {shown} is not a directory: name the directory to work in"
        )));
    }
    Ok(absolute)
}

/// The option for the model's last answer.
const LAST_MESSAGE: &str = "--output-last-message";

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

/// What `--config` says.
///
/// # Errors
/// It cannot be read, or says what cannot be.
pub(crate) fn settings(file: Option<&Path>) -> Result<SessionConfig, Failure> {
    let without = SessionConfig {
        provider: String::new(),
        ..SessionConfig::default()
    };
    over(file, &without)
}

/// `config` with what `--config` says over it.
///
/// # Errors
/// As [`settings`].
pub(crate) fn over(file: Option<&Path>, config: &SessionConfig) -> Result<SessionConfig, Failure> {
    let Some(path) = file else {
        return Ok(config.clone());
    };
    let text = prompt::read_file(path, "--config")?;
    let wrong = |problem: String| {
        let shown = path.display();
        Failure::usage(format!("--config {shown}: {problem}: see docs/settings.md"))
    };
    let fields: serde_json::Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| wrong(format!("it is not a JSON object: {error}")))?;
    let misplaced = |(name, _): &&(&str, &str)| fields.contains_key(*name);
    if let Some((name, from)) = NOT_FROM_A_FILE.iter().find(misplaced) {
        return Err(wrong(format!(
            "`{name}` comes from {from}, not from a file"
        )));
    }
    // Alone first: errors name lines and columns of the file.
    SessionConfig::from_json(&text).map_err(|error| wrong(problem(&error)))?;
    let mut merged = serde_json::to_value(config)
        .map_err(|error| Failure::failed(format!("the settings cannot be read: {error}")))?;
    if let Value::Object(merged) = &mut merged {
        merged.extend(fields);
    }
    SessionConfig::from_json(&merged.to_string()).map_err(|error| wrong(problem(&error)))
}

/// What is wrong with a configuration, for a sentence that says which it is.
fn problem(error: &SessionError) -> String {
    let message = error.message.as_str();
    let head = "invalid session configuration: ";
    message.strip_prefix(head).unwrap_or(message).to_owned()
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
pub(crate) fn set_approval(config: &mut SessionConfig, approve: Approve) {
    if approve != Approve::Never {
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

/// To stdout, but where that is for events, to stderr.
fn print_diff(before: &Tree, after: &Tree, json: bool, style: Style) -> Result<(), Failure> {
    let diff = tree::diff(before, after);
    if !diff.left_out.is_empty() {
        eprintln!(
            "hermitcrab: the diff cannot hold binary files and empty directories ({}): use --out FILE.tar to get them",
            harmless(&diff.left_out.join(", "))
        );
    }
    if diff.patch.is_empty() {
        return Ok(());
    }
    let mut out: Box<dyn Write> = match json {
        true => Box::new(io::stderr()),
        false => Box::new(BufWriter::new(io::stdout())),
    };
    let mut renderer = Renderer::new(&mut out, style);
    renderer
        .diff(&diff.patch)
        .and_then(|()| renderer.flush())
        .map_err(|error| Failure::failed(format!("cannot write the diff: {}", reason(&error))))
}
