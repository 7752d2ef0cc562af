//! Search on top of `List` and `Read`, for environments without their own,
//! with the semantics of ripgrep: ignore files from the search root down are
//! respected; hidden files, `.git` and binary files are skipped.
//!
//! The pure parts ([`IgnoreRules`], [`LineMatcher`], [`PathGlob`]) also serve
//! environments that hold their files themselves.

mod glob;
mod ignore;
mod line;

pub use glob::PathGlob;
pub(crate) use glob::{display_path, newest_first};
pub(crate) use ignore::{IgnoreRules, is_ignore_file};
pub(crate) use line::LineMatcher;

use futures_util::{FutureExt as _, StreamExt as _, stream};

use super::{
    DirEntry, Entries, Environment, EnvironmentError, EnvironmentErrorKind, GlobRequest,
    GrepRequest, Match, Matches, Metadata, absolute_path,
};

/// Larger files are not searched.
const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;

/// Ignore files larger than this are not read.
const MAX_IGNORE_BYTES: u64 = 1024 * 1024;

/// Calls under way at the same time: an outside environment answers each in
/// a round trip.
const PARALLEL_CALLS: usize = 16;

/// Directories nested deeper than this are left out.
const MAX_DEPTH: usize = 256;

/// Answers a [`GrepRequest`] with `List` and `Read` calls.
pub(crate) async fn grep_files(
    environment: &Environment,
    request: &GrepRequest,
) -> Result<Matches, EnvironmentError> {
    let matcher = LineMatcher::new(&request.pattern, request.case_insensitive)?;
    let filter = request.glob_filter.as_deref().map(PathGlob::new);
    let filter = filter.transpose()?;
    let root = environment.absolute(&request.path);
    let working_directory = environment.absolute("");
    let mut found = Matches::default();
    let mut paths = Vec::new();
    if start(environment, &root).await?.is_dir {
        let files = walk(environment, &root, Hidden::Skip).await?;
        found.truncated = files.truncated;
        for file in files.entries {
            let absolute = absolute_path(&root, &file.path);
            let path = display_path(&working_directory, &absolute);
            let wanted = filter
                .as_ref()
                .is_none_or(|filter| filter.matches_any([file.path.as_str(), path], &absolute));
            if wanted && file.size.is_none_or(|size| size <= MAX_FILE_BYTES) {
                paths.push(absolute);
            }
        }
        // The order that the reader sees, not that of the walk.
        paths.sort_unstable();
    } else {
        paths.push(root);
    }
    let reads = paths.into_iter().map(|path| async move {
        let content = environment.read(&path, MAX_FILE_BYTES).await;
        (path, content)
    });
    let mut contents = stream::iter(reads.map(|work| work.boxed_local())).buffered(PARALLEL_CALLS);
    while let Some((path, content)) = contents.next().await {
        // A file that vanished or may not be read does not end the search.
        let Some(content) = unless_cancelled(content)? else {
            continue;
        };
        let path = display_path(&working_directory, &path);
        let full = matcher.search_file(&content, |line, text| {
            if request.max_results > 0 && found.matches.len() as u64 >= request.max_results {
                return false;
            }
            found.matches.push(Match {
                path: path.to_owned(),
                line,
                text,
            });
            true
        });
        if !full {
            found.truncated = true;
            break;
        }
    }
    Ok(found)
}

/// Facts of the path where a search starts; its absence has the wording of
/// every environment that can search.
async fn start(environment: &Environment, root: &str) -> Result<Metadata, EnvironmentError> {
    environment
        .stat(root)
        .await
        .map_err(|error| match error.kind {
            EnvironmentErrorKind::NotFound => {
                let working_directory = environment.absolute("");
                let shown = display_path(&working_directory, root);
                EnvironmentError::new(
                    error.kind,
                    format!("cannot search `{shown}`: no such file or directory"),
                )
            }
            _ => error,
        })
}

/// Answers a [`GlobRequest`] with `List` calls.
pub(crate) async fn glob_files(
    environment: &Environment,
    request: &GlobRequest,
) -> Result<Entries, EnvironmentError> {
    let glob = PathGlob::new(&request.pattern)?;
    let root = environment.absolute(&request.path);
    let working_directory = environment.absolute("");
    if !start(environment, &root).await?.is_dir {
        return Err(EnvironmentError::new(
            EnvironmentErrorKind::NotDirectory,
            format!("not a directory: {}", request.path),
        ));
    }
    let hidden = if glob.names_hidden() {
        Hidden::Show
    } else {
        Hidden::Skip
    };
    let mut files = walk(environment, &root, hidden).await?;
    files.entries.retain_mut(|entry| {
        let absolute = absolute_path(&root, &entry.path);
        let wanted = glob.matches_any([&entry.path], &absolute);
        entry.path = display_path(&working_directory, &absolute).to_owned();
        wanted
    });
    let entries = std::mem::take(&mut files.entries).into_iter();
    let checks = entries.map(|entry| unless_no_file(environment, entry));
    let mut checked = stream::iter(checks.map(|work| work.boxed_local())).buffered(PARALLEL_CALLS);
    while let Some(entry) = checked.next().await {
        files.entries.extend(entry?);
    }
    newest_first(&mut files, request.max_results);
    Ok(files)
}

/// `entry`, unless it is a link that leads to no file. Only an entry without a
/// size can be one.
async fn unless_no_file(
    environment: &Environment,
    entry: DirEntry,
) -> Result<Option<DirEntry>, EnvironmentError> {
    if entry.size.is_some() {
        return Ok(Some(entry));
    }
    let found = unless_cancelled(environment.stat(&entry.path).await)?;
    Ok(found.is_some_and(|found| !found.is_dir).then_some(entry))
}

/// What a walk does with names that begin with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// Leaves them out unless an ignore file lists them as wanted.
    Skip,
    /// Treats them like any other.
    Show,
}

impl Hidden {
    /// Whether a walk goes past `path` (relative to the search root).
    pub(crate) fn skips(self, rules: &IgnoreRules, path: &str, is_dir: bool) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name == ".git" {
            return true;
        }
        match rules.verdict(path, is_dir) {
            Some(ignored) => ignored,
            None => self == Self::Skip && name.starts_with('.'),
        }
    }
}

/// The files below `root` that a search looks at, with paths relative to it.
async fn walk(
    environment: &Environment,
    root: &str,
    hidden: Hidden,
) -> Result<Entries, EnvironmentError> {
    let mut found = Entries::default();
    let mut level = vec![(String::new(), IgnoreRules::default())];
    for depth in 0.. {
        if level.is_empty() {
            break;
        }
        if depth == MAX_DEPTH {
            found.truncated = true;
            break;
        }
        let directories = std::mem::take(&mut level).into_iter();
        let lists = directories.map(|(directory, rules)| list(environment, root, directory, rules));
        let mut listings =
            stream::iter(lists.map(|work| work.boxed_local())).buffered(PARALLEL_CALLS);
        while let Some((directory, listing)) = listings.next().await {
            let listing = match listing {
                // The root itself must be readable; a directory below need not.
                Err(error) if directory.is_empty() => return Err(error),
                listing => unless_cancelled(listing)?,
            };
            let Some((entries, rules)) = listing else {
                continue;
            };
            found.truncated |= entries.truncated;
            for mut entry in entries.entries {
                entry.path = if directory.is_empty() {
                    entry.path
                } else {
                    format!("{directory}/{}", entry.path)
                };
                if hidden.skips(&rules, &entry.path, entry.is_dir) {
                    continue;
                }
                if entry.is_dir {
                    level.push((entry.path, rules.clone()));
                } else {
                    found.entries.push(entry);
                }
            }
        }
    }
    Ok(found)
}

type Listing = Result<(Entries, IgnoreRules), EnvironmentError>;

/// Lists one directory and reads the ignore files in it.
async fn list(
    environment: &Environment,
    root: &str,
    directory: String,
    rules: IgnoreRules,
) -> (String, Listing) {
    let absolute = absolute_path(root, &directory);
    let entries = match environment.list(&absolute, 1).await {
        Ok(entries) => entries,
        Err(error) => return (directory, Err(error)),
    };
    let mut files = Vec::new();
    for DirEntry { path, is_dir, .. } in &entries.entries {
        if *is_dir || !is_ignore_file(path) {
            continue;
        }
        let content = environment
            .read(&absolute_path(&absolute, path), MAX_IGNORE_BYTES)
            .await;
        match unless_cancelled(content) {
            Ok(Some(content)) => files.push((path.as_str(), content)),
            Ok(None) => {}
            Err(error) => return (directory, Err(error)),
        }
    }
    let files = files.iter().map(|(name, content)| (*name, &content[..]));
    let rules = rules.enter(&directory, files);
    (directory, Ok((entries, rules)))
}

/// `None` for a failure that a search goes past.
fn unless_cancelled<T>(result: Result<T, EnvironmentError>) -> Result<Option<T>, EnvironmentError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind == EnvironmentErrorKind::Cancelled => Err(error),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use async_trait::async_trait;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::environment::testing::TreeEnvironment;
    use crate::environment::{
        EnvironmentCall, EnvironmentInfo, EnvironmentReply, ExecRequest, ExecStatus,
        ExecutionEnvironment, OutputSink, Scope,
    };

    const FILES: &[(&str, &[u8])] = &[
        ("b/two", b"x\n"),
        ("b.txt", b"x\nx\n"),
        ("a/one", b"x\n"),
        ("a/.env", b"x\n"),
        (".github/ci", b"x\n"),
        (".ignore", b"!.github\n"),
    ];

    fn environment(inner: impl ExecutionEnvironment + 'static) -> Environment {
        Environment::new(Rc::new(inner), Scope::new("s"))
    }

    fn grep(environment: &Environment, path: &str, max_results: u64) -> Result<String, String> {
        let request = GrepRequest {
            pattern: "x".to_owned(),
            path: path.to_owned(),
            max_results,
            ..GrepRequest::default()
        };
        let found = grep_files(environment, &request).now_or_never();
        let found = found.expect("nothing to wait for");
        found.map_err(|error| error.message).map(|found| {
            let lines = found
                .matches
                .iter()
                .map(|m| format!("{}:{}", m.path, m.line));
            let mut lines: Vec<_> = lines.collect();
            lines.extend(found.truncated.then(|| "cut".to_owned()));
            lines.join(" ")
        })
    }

    fn check(path: &str, max_results: u64, expected: &str) {
        let environment = environment(TreeEnvironment::new(FILES));
        let found = grep(&environment, path, max_results);
        assert_eq!(found.as_deref(), Ok(expected));
    }

    #[test]
    fn ordered_by_path() {
        check("", 0, ".github/ci:1 a/one:1 b.txt:1 b.txt:2 b/two:1");
        // The ignore file of a directory on the way counts like one at the root.
        check("/", 0, ".github/ci:1 a/one:1 b.txt:1 b.txt:2 b/two:1");
    }

    #[test]
    fn limits() {
        check("", 3, ".github/ci:1 a/one:1 b.txt:1 cut");
        check("", 5, ".github/ci:1 a/one:1 b.txt:1 b.txt:2 b/two:1");
        check("b.txt", 1, "b.txt:1 cut");
    }

    /// Refuses whatever is below one directory.
    struct Refusing {
        inner: TreeEnvironment,
        directory: &'static str,
        kind: EnvironmentErrorKind,
    }

    #[async_trait(?Send)]
    impl ExecutionEnvironment for Refusing {
        fn info(&self) -> &EnvironmentInfo {
            self.inner.info()
        }

        async fn call(
            &self,
            scope: &Scope,
            call: EnvironmentCall,
        ) -> Result<EnvironmentReply, EnvironmentError> {
            match &call {
                EnvironmentCall::List { path, .. } | EnvironmentCall::Read { path, .. }
                    if path.starts_with(self.directory) =>
                {
                    Err(EnvironmentError::new(self.kind, "refused"))
                }
                _ => self.inner.call(scope, call).await,
            }
        }

        async fn exec(
            &self,
            scope: &Scope,
            request: ExecRequest,
            output: &mut OutputSink<'_>,
        ) -> Result<ExecStatus, EnvironmentError> {
            self.inner.exec(scope, request, output).await
        }
    }

    fn check_refusing(
        directory: &'static str,
        kind: EnvironmentErrorKind,
        expected: Result<&str, &str>,
    ) {
        let environment = environment(Refusing {
            inner: TreeEnvironment::new(FILES),
            directory,
            kind,
        });
        let found = grep(&environment, "", 0);
        let found = found.as_deref().map_err(String::as_str);
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over() {
        let denied = EnvironmentErrorKind::PermissionDenied;
        check_refusing(
            "/work/a",
            denied,
            Ok(".github/ci:1 b.txt:1 b.txt:2 b/two:1"),
        );
        check_refusing("/work/b.txt", denied, Ok(".github/ci:1 a/one:1 b/two:1"));
        check_refusing("/work", denied, Err("refused"));
    }

    #[test]
    fn a_cancelled_call_ends_the_search() {
        let cancelled = EnvironmentErrorKind::Cancelled;
        check_refusing("/work/b.txt", cancelled, Err("refused"));
        check_refusing("/work/b", cancelled, Err("refused"));
        check_refusing("/work/.ignore", cancelled, Err("refused"));
    }

    #[test]
    fn globs_find_the_newest_first_within_the_limit() {
        let environment = environment(TreeEnvironment::new(FILES));
        let request = GlobRequest {
            pattern: "**".to_owned(),
            path: String::new(),
            max_results: 3,
        };
        let found = glob_files(&environment, &request).now_or_never();
        let found = found.expect("nothing to wait for").expect("files");
        let paths: Vec<_> = found.entries.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(paths, [".github/ci", "a/one", "b.txt"]);
        assert!(found.truncated);
    }
}
