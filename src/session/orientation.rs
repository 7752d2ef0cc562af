//! What a session finds out about its project before its first request: the
//! git repository around it (spec 6.4) and the project's documents (spec 6.5).
//!
//! One bounded attempt at start, never repeated: the system prompt is the
//! cached prefix of every request. Git and the documents have a limit each, so
//! that a slow one does not cost the other; the prompt says what is left out.
//! Outside of a repository nothing is run, and git runs nothing that the
//! repository configures. A document that is a symbolic link out of the
//! repository is not read into the prompt: whoever wrote a strange repository
//! chose what it leads to.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::pin::{Pin, pin};

use futures_util::future::{Either, FusedFuture, FutureExt as _, join, join_all, select};

use super::state::Shared;
use super::system_prompt::Orientation;
use crate::environment::{Environment, EnvironmentErrorKind, Scope, git, is_within};
use crate::event::EventKind;
use crate::profile::{Document, GitSnapshot, ProjectFacts, git_branch};
use crate::text::decode_text;

/// Longest `HEAD` or `.git` file looked at, in bytes.
const MAX_POINTER_BYTES: u64 = 4096;

/// Documents beyond this size are left out whole, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 4 << 20;

/// Commits named in the prompt (spec 6.4: the last 5 to 10).
const COMMITS: usize = 8;

/// Characters of a commit's subject that are shown.
const MAX_SUBJECT_CHARS: usize = 100;

/// `status` that runs no git in submodules.
const STATUS: &str = "git status --porcelain=v1 --ignore-submodules=dirty";

/// The last commits, one per line.
const LOG: &str = "git log -n 8 --format='%h %s'";

/// What has been found so far.
#[derive(Default)]
struct Found {
    git: Option<GitSnapshot>,
    documents: Vec<Candidate>,
    /// Where the directory leads that documents must lie in: the repository's
    /// root, else the working directory.
    root: String,
    /// Documents that are left out, and why.
    problems: Vec<String>,
}

/// Where to look, for which documents.
#[derive(Clone, Copy)]
struct Look<'a> {
    environment: &'a Environment,
    names: &'a [String],
    found: &'a RefCell<Found>,
}

/// A document, with where its path leads.
struct Candidate {
    document: Document,
    real: String,
}

/// Looks around from the session's working directory.
pub(super) async fn look_around(session: &Shared, scope: &Scope) -> Orientation {
    let (documents_ms, git_ms, known) = {
        let config = session.config.borrow();
        let known = config.project.clone().unwrap_or_default();
        (config.document_timeout_ms, config.git_timeout_ms, known)
    };
    let environment = session.environment_in(scope);
    let found = RefCell::new(Found::default());
    let look = Look {
        environment: &environment,
        names: &session.profile.documents,
        found: &found,
    };
    let mut alarm = pin!(session.port.sleep(scope, documents_ms).fuse());
    let mut in_time = None;
    let near = before(gather(look), alarm.as_mut(), &mut in_time).await;
    let root = near.flatten();
    let above = async {
        if let Some(root) = &root {
            before(look_above(look, root), alarm.as_mut(), &mut in_time).await;
        }
    };
    // The sandbox has no git to ask.
    let asks_git = root.is_some() && environment.info().platform != "wasm";
    let asked = async {
        if !asks_git {
            return false;
        }
        let alarm = pin!(session.port.sleep(scope, git_ms).fuse());
        let mut in_time = None;
        before(ask_git(look, git_ms), alarm, &mut in_time).await;
        in_time == Some(false)
    };
    let ((), git_is_late) = join(above, asked).await;
    let mut found = found.take();
    let own = within(&mut found);
    let warning = &environment.info().warning;
    if !warning.is_empty() && session.identity.agent.is_none() {
        session.emit(EventKind::Warning {
            code: "environment".to_owned(),
            message: warning.clone(),
        });
    }
    for problem in found.problems {
        session.emit(EventKind::Warning {
            code: "project_document".to_owned(),
            message: problem,
        });
    }
    let mut git = found.git.or(known.git);
    if let Some(git) = &mut git
        && git_is_late
    {
        let missing = format!("git did not answer within {git_ms} ms");
        warn(session, &missing, "git_timeout_ms");
        git.missing = Some(missing);
    }
    let documents_missing = (in_time == Some(false)).then(|| {
        let missing = format!("the project's documents were not all read within {documents_ms} ms");
        warn(session, &missing, "document_timeout_ms");
        missing
    });
    let mut documents = known.documents;
    documents.extend(own);
    Orientation {
        git,
        documents,
        documents_missing,
    }
}

/// What is around the working directory of `environment`: the documents called
/// `names` in directories above it, up to the repository's root, and what git
/// says. For a host that gives a session a part of the project only, as
/// `SessionConfig.project`. Paths are relative to the working directory:
/// `../AGENTS.md`. Also the documents that are left out, and why.
pub async fn project_around(
    environment: &Environment,
    names: &[String],
    git_timeout_ms: u64,
) -> (ProjectFacts, Vec<String>) {
    let found = RefCell::new(Found::default());
    let look = Look {
        environment,
        names: &[],
        found: &found,
    };
    let Some(root) = gather(look).await else {
        return (ProjectFacts::default(), Vec::new());
    };
    let look = Look { names, ..look };
    join(look_above(look, &root), ask_git(look, git_timeout_ms)).await;
    let mut found = found.take();
    let base = environment.info().working_directory.clone();
    let mut documents = within(&mut found);
    for document in &mut documents {
        document.path = path_up(&base, &document.path);
    }
    let facts = ProjectFacts {
        documents,
        git: found.git,
    };
    (facts, found.problems)
}

/// `path` from the directory `base`; both are absolute.
fn path_up(base: &str, path: &str) -> String {
    let parts = |path: &'_ str| -> Vec<String> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.map(str::to_owned).collect()
    };
    let (base, path) = (parts(base), parts(path));
    let equal = base.iter().zip(&path).take_while(|(a, b)| a == b).count();
    let up = "../".repeat(base.len() - equal);
    format!("{up}{}", path[equal..].join("/"))
}

/// The result of `work`, if it comes before `alarm`. `in_time` becomes false
/// when the alarm goes off; dropping the rest of the work cancels its effects.
async fn before<T>(
    work: impl Future<Output = T>,
    alarm: Pin<&mut impl FusedFuture<Output = bool>>,
    in_time: &mut Option<bool>,
) -> Option<T> {
    if alarm.is_terminated() {
        return None;
    }
    match select(pin!(work), alarm).await {
        Either::Left((result, _)) => {
            in_time.get_or_insert(true);
            Some(result)
        }
        Either::Right((went_off, _)) => {
            *in_time = Some(!went_off);
            None
        }
    }
}

fn warn(session: &Shared, missing: &str, setting: &str) {
    session.emit(EventKind::Warning {
        code: "orientation".to_owned(),
        message: format!(
            "{missing}; the system prompt goes without the rest (`{setting}` gives more time)"
        ),
    });
}

/// The documents that lie in the root, each once: `CLAUDE.md` is often a link to
/// `AGENTS.md`. Those that lie elsewhere are problems.
fn within(found: &mut Found) -> Vec<Document> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for Candidate { document, real } in std::mem::take(&mut found.documents) {
        let root = &found.root;
        if !is_within(&real, root) {
            let why =
                format!("it is a link out of {root} to {real}; copy it there to have it read");
            found.problems.push(left_out(&document.path, &why));
        } else if seen.insert(real) {
            kept.push(document);
        }
    }
    kept
}

/// Finds the repository around the working directory, whose root it returns,
/// and the documents of the working directory.
async fn gather(look: Look<'_>) -> Option<String> {
    let environment = look.environment;
    let base = environment.info().working_directory.clone();
    let (git, (documents, real)) = join(
        find_repository(environment, &base),
        join(documents(look, &base), environment.real_path(&base)),
    )
    .await;
    let mut found = look.found.borrow_mut();
    found.documents = documents;
    found.root = real.unwrap_or(base);
    let (root, head) = git?;
    found.git = Some(GitSnapshot {
        branch: head.as_deref().and_then(git_branch),
        ..GitSnapshot::default()
    });
    Some(root)
}

/// The documents from the repository's root down to the working directory.
async fn look_above(look: Look<'_>, root: &str) {
    let base = look.environment.info().working_directory.clone();
    if root == base {
        return;
    }
    let directories = directories_between(root, &base);
    let found_there = directories
        .iter()
        .map(|directory| documents(look, directory));
    let (above, real) = join(join_all(found_there), look.environment.real_path(root)).await;
    let mut found = look.found.borrow_mut();
    found.documents.splice(0..0, above.into_iter().flatten());
    found.root = real.unwrap_or_else(|_| root.to_owned());
}

/// What git says of the state and the last commits.
async fn ask_git(look: Look<'_>, limit_ms: u64) {
    let Look {
        environment, found, ..
    } = look;
    let status = async {
        if let Ok(settings) = git::filters_off(environment, limit_ms).await
            && let Some(lines) = lines_of(environment, STATUS, limit_ms, &settings).await
            && let Some(git) = &mut found.borrow_mut().git
        {
            let untracked = lines.iter().filter(|line| line.starts_with("??")).count();
            git.changes = Some((lines.len() - untracked, untracked));
        }
    };
    let log = async {
        if let Some(lines) = lines_of(environment, LOG, limit_ms, &[]).await
            && let Some(git) = &mut found.borrow_mut().git
        {
            let subject = |line: &String| line.chars().take(MAX_SUBJECT_CHARS).collect();
            git.commits = lines.iter().take(COMMITS).map(subject).collect();
        }
    };
    join(status, log).await;
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
    let looks = join_all(looks).await;
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

/// The documents of one directory.
async fn documents(look: Look<'_>, directory: &str) -> Vec<Candidate> {
    let names = look.names.iter();
    let reads = names.map(|name| document(look, join_path(directory, name)));
    join_all(reads).await.into_iter().flatten().collect()
}

/// One document. The host hears of a file that is there and cannot be used:
/// whoever wrote it believes that it is read.
async fn document(look: Look<'_>, path: String) -> Option<Candidate> {
    let content = look.environment.read(&path, MAX_DOCUMENT_BYTES);
    let (content, real) = join(content, look.environment.real_path(&path)).await;
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
    look.found
        .borrow_mut()
        .problems
        .push(left_out(&path, &problem));
    None
}

fn left_out(path: &str, problem: &str) -> String {
    format!("{path} is left out of the system prompt: {problem}")
}

/// Lines that git prints, if it succeeds.
async fn lines_of(
    environment: &Environment,
    command: &str,
    limit_ms: u64,
    settings: &[(String, String)],
) -> Option<Vec<String>> {
    let (exit_code, output) = git::run(environment, command, limit_ms, settings)
        .await
        .ok()?;
    let text = String::from_utf8_lossy(&output);
    (exit_code == 0).then(|| text.lines().map(str::to_owned).collect())
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
    fn paths_above_a_directory() {
        for (base, path, expected) in [
            ("/a/b/c", "/a/AGENTS.md", "../../AGENTS.md"),
            (
                "/a/b",
                "/a/.codex/instructions.md",
                "../.codex/instructions.md",
            ),
            ("/a", "/AGENTS.md", "../AGENTS.md"),
        ] {
            assert_eq!(path_up(base, path), expected);
        }
    }

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
