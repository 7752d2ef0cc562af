//! A task, from its prompt to what it delivers.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use hermitcrab::llm::Content;
use hermitcrab_host::CoreFailure;
use hermitcrab_host::tree::{self, Tree};

use crate::approve::Questions;
use crate::archive;
use crate::chat;
use crate::cli::{EnvironmentKind, RunOptions};
use crate::connect::{Export, HostSession};
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::output::{self, Output};
use crate::prompt;
use crate::render::{Renderer, Style};
use crate::session::{EventPrinter, drive};
use crate::signal::Stops;

/// The prompt, with what is piped beside it.
pub(crate) fn read(options: &RunOptions) -> Result<String, Failure> {
    let stdin = io::stdin();
    let named = options.prompt.as_deref();
    if options.chat.is_some() {
        // Stdin is the person's.
        return match named {
            None => Ok(String::new()),
            Some(_) => prompt::read(named, &stdin),
        };
    }
    let prompt = prompt::read(named, &stdin)?;
    let is_beside = named.is_some_and(|named| named != "-") && prompt::is_piped(&stdin);
    match is_beside && prompt::something_comes() {
        true => prompt::with_piped(prompt, &stdin),
        false => Ok(prompt),
    }
}

/// A session that can begin.
pub(crate) struct Ready {
    /// The session.
    pub(crate) session: HostSession,
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
    let memory = options.environment_kind() == EnvironmentKind::Memory;
    let last_message = options.output_last_message.as_deref();
    let last_message = output::file(output::LAST_MESSAGE, last_message)?;
    let style = if options.json {
        Style::PLAIN
    } else {
        Style::of_stdout(options.quiet)
    };
    let stdout = BufWriter::new(io::stdout());
    let mut printer = match options.json {
        true => EventPrinter::Json(stdout),
        false => EventPrinter::human(stdout, style, options.elsewhere.name()),
    };
    let runtime = runtime()?;
    let (result, answer, before, after) = runtime.block_on(async {
        let mut stops = Stops::listen()?;
        let Ready {
            mut session,
            prompt,
            before,
        } = open().await?;
        let (stops, questions) = (&mut stops, &mut questions);
        let ended = match &options.chat {
            None => drive(&mut session, prompt, &mut printer, stops, questions).await,
            Some(chat) => {
                chat::converse(&mut session, prompt, options, chat, stops, questions).await
            }
        };
        if let Some(why) = session.end_record().await {
            eprintln!("hermitcrab: the log of the run is not whole: {why}");
        }
        let resume = match &options.chat {
            Some(chat) => chat.is_worth_keeping().then_some("hermitcrab --resume"),
            None if ended.result.is_err() && !options.quiet => Some("hermitcrab run --resume"),
            None => None,
        };
        session.end_journal(resume).await;
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

/// The threads that sessions run on.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::failed(format!("cannot start threads: {}", reason(&error))))
}
