//! `--env overlay` and `hermitcrab overlay`: runs in a copy of a directory, and what
//! becomes of their changes.

use std::env;
use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use hermitcrab_host::overlay::{Overlay, OverlayError, OverlayLimits, Overlays};
use hermitcrab_host::state_dir;

use crate::cli::{FenceOptions, OverlayCommand, OverlayOptions, SandboxMode};
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::render::{Renderer, Style};
use crate::workspace::{self, Variables};

/// What a fence leaves open for the memory that processes share.
const SHARED_MEMORY: &str = "/dev/shm";

/// The overlay that a run works in.
pub(crate) struct Working {
    overlay: Overlay,
    has_ended: bool,
}

/// Copies `directory`, for a run.
///
/// # Errors
/// It cannot be copied.
pub(crate) fn begin(directory: &Path) -> Result<Working, Failure> {
    let made = overlays()?.create(directory);
    let overlay = made.map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Working {
        overlay,
        has_ended: false,
    })
}

impl Working {
    /// Where it works.
    pub(crate) fn directory(&self) -> PathBuf {
        self.overlay.directory()
    }

    /// `options` with the fence of an overlay where none is asked for: commands could reach
    /// the directory itself by its absolute path. And `variables`, of which one may name
    /// another temporary directory.
    ///
    /// # Errors
    /// No fence keeps commands from the directory.
    pub(crate) fn fence(
        &self,
        options: &FenceOptions,
        mut variables: Variables,
    ) -> Result<(FenceOptions, Variables), Failure> {
        let mut fence = options.clone();
        if fence.sandbox.is_none() {
            fence.sandbox = Some(SandboxMode::WorkspaceWrite);
            fence.net = true;
        }
        if fence.sandbox != Some(SandboxMode::WorkspaceWrite) {
            return Ok((fence, variables));
        }
        let directory = &self.overlay.info().directory;
        // Without links, as the directory is.
        let reaches = |path: &Path| {
            fs::canonicalize(path)
                .is_ok_and(|path| directory.starts_with(&path) || path.starts_with(directory))
        };
        if reaches(Path::new(SHARED_MEMORY)) {
            return Err(Failure::usage(format!(
                "an overlay of {} would not keep it as it is, since commands may change what is \
                 in {SHARED_MEMORY}: move it to another place, or add --sandbox off",
                directory.display()
            )));
        }
        let first = env::temp_dir();
        let mut temporary = vec![first.clone(), "/tmp".into(), "/var/tmp".into()];
        let all = temporary.len();
        temporary.retain(|path| !reaches(path));
        if temporary.len() < all {
            if !temporary.contains(&first) {
                let own = self.overlay.temporary().map_err(failed)?;
                variables.push(("TMPDIR".to_owned(), own.clone().into()));
                temporary.push(own);
            }
            fence.temporary = Some(temporary);
        }
        Ok((fence, variables))
    }

    /// How a run ends that came to `result` in it.
    ///
    /// # Errors
    /// That of the run; else the overlay was removed meanwhile, or cannot be read.
    pub(crate) fn end(mut self, result: Result<Code, Failure>) -> Result<Code, Failure> {
        self.has_ended = true;
        match (self.tell(), result) {
            (Err(failure), Ok(_)) => Err(failure),
            (Err(failure), Err(first)) => {
                eprintln!("hermitcrab: {}", harmless(&failure.message));
                Err(first)
            }
            (Ok(()), result) => result,
        }
    }

    /// Says on stderr what has changed and what can be done with it; without changes it is
    /// gone.
    fn tell(&self) -> Result<(), Failure> {
        let id = &self.overlay.info().id;
        let changes = self.overlay.changes().map_err(|error| match error {
            OverlayError::Gone(_) => Failure::failed(format!(
                "overlay {id} was removed while the run worked in it, and what it changed is lost: \
                 run the task again"
            )),
            error => Failure::failed(format!("overlay {id}: {error}")),
        })?;
        if changes.is_empty() {
            self.overlay.discard().map_err(failed)?;
            eprintln!("hermitcrab: nothing has changed in the overlay; it is gone");
            return Ok(());
        }
        eprintln!(
            "hermitcrab: {} changed in overlay {id}, {} is as it was: `hermitcrab overlay \
             diff {id}` shows it, `commit {id}` brings it there, `discard {id}` drops it",
            changes.len(),
            harmless(&self.overlay.info().directory.to_string_lossy())
        );
        Ok(())
    }
}

impl Drop for Working {
    /// A run that did not begin.
    fn drop(&mut self) {
        if !self.has_ended
            && let Err(failure) = self.tell()
        {
            eprintln!("hermitcrab: {}", harmless(&failure.message));
        }
    }
}

/// Lists overlays, or does with one what the options say.
///
/// # Errors
/// There is no such overlay, or it cannot be read or committed.
pub(crate) fn overlay(options: &OverlayOptions) -> Result<Code, Failure> {
    match &options.command {
        OverlayCommand::List => list()?,
        OverlayCommand::Diff(one) => {
            let overlay = wanted(one.id.as_deref())?;
            let diff = overlay.diff().map_err(failed)?;
            if !diff.left_out.is_empty() {
                eprintln!(
                    "hermitcrab: binary files, empty directories and names that are not UTF-8 are \
                     in no diff: {}",
                    harmless(&diff.left_out.join(", "))
                );
            }
            let mut out = io::BufWriter::new(io::stdout());
            let shown = match io::stdout().is_terminal() {
                true => {
                    let mut renderer = Renderer::new(&mut out, Style::of_stdout(false));
                    renderer.diff(&diff.patch).and_then(|()| renderer.flush())
                }
                // Whole, for git apply.
                false => out
                    .write_all(diff.patch.as_bytes())
                    .and_then(|()| out.flush()),
            };
            shown.map_err(|error| {
                Failure::failed(format!("cannot write the diff: {}", reason(&error)))
            })?;
        }
        OverlayCommand::Commit(one) => {
            let overlay = wanted(one.id.as_deref())?;
            let directory = overlay.info().directory.clone();
            let paths = overlay.commit().map_err(failed)?;
            for path in &paths {
                eprintln!("  {}", harmless(&path.to_string_lossy()));
            }
            eprintln!(
                "hermitcrab: {} paths of {} are as they were in the overlay; it is gone",
                paths.len(),
                harmless(&directory.to_string_lossy())
            );
        }
        OverlayCommand::Discard(one) => {
            wanted(one.id.as_deref())?.discard().map_err(failed)?;
        }
    }
    Ok(Code::DONE)
}

fn list() -> Result<(), Failure> {
    let all = overlays()?.list().map_err(failed)?;
    if all.is_empty() {
        eprintln!("hermitcrab: there are no overlays");
    }
    for overlay in all {
        let info = overlay.info();
        let line = format!("{}  {}", info.id, info.directory.display());
        println!("{}", harmless(&line));
    }
    Ok(())
}

/// The overlay of this name, else the newest of this directory.
fn wanted(id: Option<&str>) -> Result<Overlay, Failure> {
    let overlays = overlays()?;
    if let Some(id) = id {
        return overlays.open(id).map_err(failed);
    }
    let here = workspace::directory(Path::new("."))?;
    let all = overlays.list().map_err(failed)?;
    let mut of_here = all.into_iter().filter(|one| one.info().directory == here);
    of_here.next().ok_or_else(|| {
        Failure::usage("there is no overlay of this directory: `hermitcrab overlay list` has all")
    })
}

fn overlays() -> Result<Overlays, Failure> {
    let state = state_dir().ok_or_else(|| {
        Failure::usage("you have no home directory: set HERMITCRAB_STATE_DIR to one for overlays")
    })?;
    Ok(Overlays::new(
        state.join("overlays"),
        OverlayLimits::default(),
    ))
}

fn failed(error: OverlayError) -> Failure {
    match error {
        OverlayError::Unknown(_) | OverlayError::Busy(_) => Failure::usage(error.to_string()),
        error => Failure::failed(error.to_string()),
    }
}
