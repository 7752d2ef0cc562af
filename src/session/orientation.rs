//! What a session finds out about its project before its first request: the
//! git repository around it (spec 6.4) and the project's documents (spec 6.5).
//!
//! One bounded attempt at start, never repeated: the system prompt is the
//! cached prefix of every request. Outside of a repository nothing is run. A
//! document that is a symbolic link out of the repository is not read into the
//! prompt: whoever wrote a strange repository chose what it leads to.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::future::{Either, join, select};

use super::state::Shared;
use crate::environment::{
    Environment, EnvironmentErrorKind, ExecRequest, OutputStream, Scope, all, is_within,
};
use crate::event::EventKind;
use crate::profile::{Document, GitSnapshot, git_branch};
use crate::text::decode_text;

/// Time for all of it, in ms; what has not arrived by then is left out.
const LIMIT_MS: u64 = 500;

/// Longest `HEAD` or `.git` file looked at, in bytes.
const MAX_POINTER_BYTES: u64 = 4096;

/// Documents beyond this size are left out whole, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// Output of a command that is looked at, in bytes.
const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// Commits named in the prompt (spec 6.4: the last 5 to 10).
const COMMITS: usize = 8;

/// Characters of a commit's subject that are shown.
const MAX_SUBJECT_CHARS: usize = 100;

/// `status` without touching the index, and without running what the
/// repository's configuration names as a file system monitor.
const STATUS: &str = "git --no-optional-locks -c core.fsmonitor=false status --porcelain=v1";

/// The last commits, one per line, without checking signatures.
const LOG: &str = "git --no-optional-locks -c log.showSignature=false log -n 8 --format='%h %s'";

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Orientation {
    /// The repository around the working directory, if there is one.
    pub(super) git: Option<GitSnapshot>,
    /// Project documents, from the repository's root down.
    pub(super) documents: Vec<Document>,
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    git: Option<GitSnapshot>,
    documents: Vec<Candidate>,
    /// Where the directory leads that documents must lie in: the repository's
    /// root, else the working directory.
    root: String,
}

/// A document, with where its path leads.
struct Candidate {
    document: Document,
    real: String,
}

/// Looks around from the session's working directory.
pub(super) async fn look_around(session: &Shared, scope: &Scope) -> Orientation {
    let environment = session.environment_in(scope);
    let found = RefCell::new(Found::default());
    let work = pin!(gather(session, &environment, &found));
    let alarm = pin!(session.port.sleep(scope, LIMIT_MS));
    // Dropping the rest of the work cancels its effects.
    if let Either::Right((true, _)) = select(work, alarm).await {
        session.emit(EventKind::Warning {
            code: "orientation".to_owned(),
            message: format!(
                "git and the project's documents were not all read within {LIMIT_MS} ms; the \
                 system prompt goes without the rest"
            ),
        });
    }
    let Found {
        git,
        documents,
        root,
    } = found.take();
    Orientation {
        git,
        documents: within(session, documents, &root),
    }
}

/// The documents that lie in `root`, each once: `CLAUDE.md` is often a link to
/// `AGENTS.md`. The host is told of those that lie elsewhere.
fn within(session: &Shared, documents: Vec<Candidate>, root: &str) -> Vec<Document> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for Candidate { document, real } in documents {
        if !is_within(&real, root) {
            let why =
                format!("it is a link out of {root} to {real}; copy it there to have it read");
            leave_out(session, &document.path, &why);
        } else if seen.insert(real) {
            kept.push(document);
        }
    }
    kept
}

async fn gather(session: &Shared, environment: &Environment, found: &RefCell<Found>) {
    let base = environment.info().working_directory.clone();
    let (git, (documents, real)) = join(
        find_repository(environment, &base),
        join(
            documents(session, environment, &base),
            environment.real_path(&base),
        ),
    )
    .await;
    found.borrow_mut().documents = documents;
    found.borrow_mut().root = real.unwrap_or_else(|_| base.clone());
    let Some((root, head)) = git else {
        return;
    };
    found.borrow_mut().git = Some(GitSnapshot {
        branch: head.as_deref().and_then(git_branch),
        ..GitSnapshot::default()
    });
    let above = async {
        if root == base {
            return;
        }
        let directories = directories_between(&root, &base);
        let found_there = directories
            .iter()
            .map(|directory| self::documents(session, environment, directory));
        let (above, real) = join(all(found_there), environment.real_path(&root)).await;
        let mut found = found.borrow_mut();
        found.documents.splice(0..0, above.into_iter().flatten());
        found.root = real.unwrap_or_else(|_| root.clone());
    };
    // The sandbox has no git to ask.
    if environment.info().platform == "wasm" {
        return above.await;
    }
    let status = async {
        if let Some(lines) = run(environment, STATUS).await
            && let Some(git) = &mut found.borrow_mut().git
        {
            let untracked = lines.iter().filter(|line| line.starts_with("??")).count();
            git.changes = Some((lines.len() - untracked, untracked));
        }
    };
    let log = async {
        if let Some(lines) = run(environment, LOG).await
            && let Some(git) = &mut found.borrow_mut().git
        {
            let subject = |line: &String| line.chars().take(MAX_SUBJECT_CHARS).collect();
            git.commits = lines.iter().take(COMMITS).map(subject).collect();
        }
    };
    join(above, join(status, log)).await;
}

/// Root of the repository that holds `directory`, with what its `HEAD` says.
/// All candidates are asked for at once: one step to the host and back.
async fn find_repository(
    environment: &Environment,
    directory: &str,
) -> Option<(String, Option<String>)> {
    let candidates: Vec<&str> = ancestors(directory).collect();
    let looks = candidates.iter().map(|candidate| async move {
        let dot_git = join_path(candidate, ".git");
        let head = join_path(&dot_git, "HEAD");
        join(pointer(environment, &head), pointer(environment, &dot_git)).await
    });
    let looks = all(looks).await;
    let (root, (head, file)) = candidates
        .into_iter()
        .zip(looks)
        .find(|(_, (head, file))| head.is_some() || file.is_some())?;
    let head = match (head, file) {
        (Some(head), _) => Some(head),
        // A worktree: its `.git` is a file that names the real place.
        (None, Some(file)) => {
            let place = file.strip_prefix("gitdir:")?.trim();
            let place = if place.starts_with('/') {
                place.to_owned()
            } else {
                join_path(root, place)
            };
            pointer(environment, &join_path(&place, "HEAD")).await
        }
        (None, None) => None,
    };
    Some((root.to_owned(), head))
}

/// Content of a small file.
async fn pointer(environment: &Environment, path: &str) -> Option<String> {
    let content = environment.read(path, MAX_POINTER_BYTES).await.ok()?;
    Some(String::from_utf8_lossy(&content).into_owned())
}

/// The documents of one directory that this profile reads.
async fn documents(session: &Shared, environment: &Environment, directory: &str) -> Vec<Candidate> {
    let names = session.profile.documents.iter();
    let reads = names.map(|name| document(session, environment, join_path(directory, name)));
    all(reads).await.into_iter().flatten().collect()
}

/// One document. A file that is there and cannot be used is told to the host:
/// whoever wrote it believes that it is read.
async fn document(session: &Shared, environment: &Environment, path: String) -> Option<Candidate> {
    let content = environment.read(&path, MAX_DOCUMENT_BYTES);
    let (content, real) = join(content, environment.real_path(&path)).await;
    let problem = match content.and_then(|content| Ok((content, real?))) {
        Ok((content, real)) => match decode_text(&content) {
            Ok(text) if text.trim().is_empty() => return None,
            Ok(text) => {
                let text = text.trim().to_owned();
                let document = Document { path, text };
                return Some(Candidate { document, real });
            }
            Err(reason) => reason.to_string(),
        },
        Err(error) => match error.kind {
            EnvironmentErrorKind::NotFound
            | EnvironmentErrorKind::IsDirectory
            | EnvironmentErrorKind::NotDirectory
            | EnvironmentErrorKind::Cancelled => return None,
            _ => error.to_string(),
        },
    };
    leave_out(session, &path, &problem);
    None
}

fn leave_out(session: &Shared, path: &str, problem: &str) {
    session.emit(EventKind::Warning {
        code: "project_document".to_owned(),
        message: format!("{path} is left out of the system prompt: {problem}"),
    });
}

/// Lines that a command prints, if it succeeds.
async fn run(environment: &Environment, command: &str) -> Option<Vec<String>> {
    let request = ExecRequest {
        command: command.to_owned(),
        timeout_ms: LIMIT_MS,
        ..ExecRequest::default()
    };
    let mut output = Vec::new();
    let mut collect = |stream, bytes: &[u8]| {
        if stream == OutputStream::Stdout && output.len() < MAX_OUTPUT_BYTES {
            output.extend_from_slice(bytes);
        }
    };
    let status = environment.exec(request, &mut collect).await.ok()?;
    let text = String::from_utf8_lossy(&output);
    (status.exit_code == 0).then(|| text.lines().map(str::to_owned).collect())
}

/// `directory` and all above it, nearest first.
fn ancestors(directory: &str) -> impl Iterator<Item = &str> {
    std::path::Path::new(directory)
        .ancestors()
        .filter_map(std::path::Path::to_str)
}

/// Directories from `root` down to the one above `directory`.
fn directories_between(root: &str, directory: &str) -> Vec<String> {
    let mut between: Vec<String> = ancestors(directory)
        .skip(1)
        .take_while(|ancestor| ancestor.len() >= root.len())
        .map(str::to_owned)
        .collect();
    if directory == root {
        between.clear();
    }
    between.reverse();
    between
}

fn join_path(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_on_the_way_down() {
        for (root, directory, expected) in [
            ("/a", "/a/b/c", vec!["/a", "/a/b"]),
            ("/a", "/a", vec![]),
            ("/", "/a/b", vec!["/", "/a"]),
            ("/", "/", vec![]),
        ] {
            assert_eq!(directories_between(root, directory), expected);
        }
    }
}
