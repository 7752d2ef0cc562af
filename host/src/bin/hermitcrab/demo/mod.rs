//! `hermitcrab demo`: a small broken repository, the scripted model over
//! loopback HTTP, real commands, a fix, tests green. Only the model's words are
//! scripted; requests, tools and files are those of any run.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hermitcrab::script::ScriptedModel;
use hermitcrab::session::SessionConfig;
use hermitcrab_host::serve_model::ServeModel;
use hermitcrab_host::tree;

use crate::approve::Questions;
use crate::archive;
use crate::cli::FenceOptions;
use crate::connect;
use crate::failure::{Code, Failure, reason};
use crate::plan::Plan;
use crate::provider;
use crate::render::{Color, Renderer, Style};
use crate::session::{EventPrinter, drive};
use crate::signal::Stops;
use crate::task::runtime;
use crate::workspace::Machine;
use crate::workspace::{Workspace, guardian};

/// The repository: needs nothing but a POSIX shell.
const FILES: [(&str, &str); 3] = [
    ("README.md", include_str!("repo/README.md")),
    ("slug.sh", include_str!("repo/slug.sh")),
    ("test.sh", include_str!("repo/test.sh")),
];

const SCRIPT: &str = include_str!("script.json");

const PROMPT: &str = "The tests of this repository fail. Find out why and fix it.";

/// Plays the demo.
///
/// # Errors
/// The tests do not pass afterwards, or something on the way failed.
pub(crate) fn demo() -> Result<Code, Failure> {
    let style = Style::of_stdout(false);
    // SAFETY: nothing so far has started a thread.
    let guardian = unsafe { guardian() }?;
    let repository = Repository::create()?;
    let directory = &repository.0;
    let before = archive::read_directory(directory, &[])?;
    let tests = run_tests(directory)?;
    if tests.status.success() {
        return Err(Failure::failed(format!(
            "the tests in {} pass before anything is fixed: this shell hides the error of the demo",
            directory.display()
        )));
    }
    let model = ScriptedModel::from_json(SCRIPT)
        .map_err(|error| Failure::failed(format!("the script of the demo: {error}")))?;
    let server = ServeModel::start(model, 0).map_err(|error| {
        Failure::failed(format!("cannot listen on 127.0.0.1: {}", reason(&error)))
    })?;

    say(
        style,
        &format!("A broken repository: {}", directory.display()),
    )?;
    say(style, &format!("A scripted model: {}", server.url()))?;
    say(style, &format!("The task: {PROMPT}\n"))?;
    let url = server.url();
    let chosen = provider::choose(Some("anthropic"), Some(&url), |_| None)?;
    let plan = Plan {
        config: SessionConfig {
            provider: chosen.provider.to_owned(),
            base_url: Some(url),
            ..SessionConfig::default()
        },
        providers: vec![chosen],
        workspace: Workspace::Local(Machine {
            directory: directory.clone(),
            guardian,
            variables: Vec::new(),
            fence: FenceOptions::default(),
            terminal: false,
            checkpoints: false,
        }),
        approver: None,
        history: None,
        record: None,
        keep: None,
        save: None,
    };
    let runtime = runtime()?;
    let mut printer = EventPrinter::human(BufWriter::new(io::stdout()), style, None);
    runtime.block_on(async {
        let mut stops = Stops::listen()?;
        let mut session = connect::open(plan).await?;
        drive(
            &mut session,
            PROMPT,
            &mut printer,
            &mut stops,
            &mut Questions::none(),
        )
        .await
        .result
    })?;

    let after = archive::read_directory(directory, &[])?;
    let diff = tree::diff(&before, &after);
    let mut renderer = Renderer::new(BufWriter::new(io::stdout()), style);
    say(style, "\nWhat has changed on disk:")?;
    renderer
        .diff(&diff.patch)
        .and_then(|()| renderer.flush())
        .map_err(|error| cannot_write(&error))?;
    let tests = run_tests(directory)?;
    say(style, "\nsh test.sh, run by the demo itself:")?;
    io::stdout()
        .write_all(&tests.stdout)
        .map_err(|error| cannot_write(&error))?;
    if !tests.status.success() || diff.patch.is_empty() {
        return Err(Failure::failed(
            "the tests still fail: the demo did not work",
        ));
    }
    say(
        style,
        "The tests are green. `hermitcrab run` does this on your repository.",
    )?;
    Ok(Code::DONE)
}

fn say(style: Style, text: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{}", style.paint(Color::Cyan, text))
        .map_err(|error| cannot_write(&error))
}

fn cannot_write(error: &io::Error) -> Failure {
    Failure::failed(format!("cannot write to stdout: {}", reason(error)))
}

fn run_tests(directory: &Path) -> Result<Output, Failure> {
    Command::new("sh")
        .arg("test.sh")
        .current_dir(directory)
        .output()
        .map_err(|error| {
            Failure::failed(format!(
                "cannot run sh: {}; the demo needs a POSIX shell on the PATH",
                reason(&error)
            ))
        })
}

/// The repository in a temporary directory, removed at the end.
struct Repository(PathBuf);

impl Repository {
    fn create() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        let cannot = |path: &Path, error: &io::Error| {
            Failure::failed(format!(
                "cannot write {}: {}; set TMPDIR to a directory that you may write to",
                path.display(),
                reason(error)
            ))
        };
        // A directory that is there already is not ours: take the next name.
        let mut number = 0;
        let repository = loop {
            let path = parent.join(format!("hermitcrab-demo-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => break Self(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                    number += 1;
                }
                Err(error) => return Err(cannot(&path, &error)),
            }
        };
        for (name, content) in FILES {
            let path = repository.0.join(name);
            std::fs::write(&path, content).map_err(|error| cannot(&path, &error))?;
        }
        Ok(repository)
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        // Left behind in the temporary directory, it harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_one() {
        ScriptedModel::from_json(SCRIPT).expect("a script");
    }

    #[cfg(unix)]
    #[test]
    fn repository_is_broken_until_the_edit_of_the_script() {
        let repository = Repository::create().expect("a repository");
        let tests = run_tests(&repository.0).expect("sh");
        assert!(String::from_utf8_lossy(&tests.stdout).ends_with("2 passed, 2 failed\n"));
        let script: serde_json::Value = serde_json::from_str(SCRIPT).expect("JSON");
        let edit = &script["steps"][1]["tool_calls"][0]["arguments"];
        let text = |name: &str| edit[name].as_str().expect("a string");
        let path = repository.0.join(text("file_path"));
        let code = std::fs::read_to_string(&path).expect("the file");
        assert_eq!(code.matches(text("old_string")).count(), 1);
        std::fs::write(&path, code.replace(text("old_string"), text("new_string")))
            .expect("written");
        let tests = run_tests(&repository.0).expect("sh");
        assert!(tests.status.success());
        assert!(String::from_utf8_lossy(&tests.stdout).ends_with("4 passed, 0 failed\n"));
    }
}
