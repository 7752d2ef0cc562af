//! The project around a directory that is loaded into the sandbox: documents of
//! the directories above it and git's facts. The repository itself stays where
//! it is.

use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use hermitcrab::environment::{
    Environment, EnvironmentCall, EnvironmentError, EnvironmentInfo, EnvironmentReply, ExecRequest,
    ExecStatus, ExecutionEnvironment, OutputSink, OutputStream, Scope,
};
use hermitcrab::profile::ProjectFacts;
use hermitcrab::session::{SessionConfig, project_around};
use hermitcrab_host::{CancellationToken, ExecIo, HostEnvironment, LocalEnvironment};

use crate::harmless::harmless;

/// What is around `directory`, for a profile that reads documents called
/// `names`. What cannot be found out in time is left out and told on stderr.
pub(crate) async fn project(
    directory: &Path,
    names: &[String],
    config: &SessionConfig,
) -> ProjectFacts {
    // Where this machine runs no commands, there is only what is loaded.
    let Ok(local) = LocalEnvironment::new(directory) else {
        return ProjectFacts::default();
    };
    let environment = Environment::new(Rc::new(Disk::new(local)), Scope::new("project"));
    let limit = Duration::from_millis(config.document_timeout_ms + config.git_timeout_ms);
    let work = project_around(&environment, names, config.git_timeout_ms);
    let Ok((facts, problems)) = tokio::time::timeout(limit, work).await else {
        eprintln!(
            "! the project around {} was not read within {} ms; the session goes without it",
            harmless(&directory.to_string_lossy()),
            limit.as_millis()
        );
        return ProjectFacts::default();
    };
    for problem in problems {
        eprintln!("! {}", harmless(&problem));
    }
    facts
}

/// The disk of this machine as the core sees environments.
struct Disk {
    info: EnvironmentInfo,
    local: LocalEnvironment,
}

impl Disk {
    fn new(local: LocalEnvironment) -> Self {
        Self {
            info: local.info(),
            local,
        }
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for Disk {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        _scope: &Scope,
        call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        self.local.call(call).await
    }

    async fn exec(
        &self,
        _scope: &Scope,
        request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        let mut said: Vec<(OutputStream, Bytes)> = Vec::new();
        let mut keep = |stream, data: Bytes| said.push((stream, data));
        let io = ExecIo {
            output: &mut keep,
            cancel: CancellationToken::new(),
        };
        let status = self.local.exec(request, io).await?;
        for (stream, data) in said {
            output(stream, &data);
        }
        Ok(status)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::process::Command;

    use hermitcrab::profile::{Document, GitSnapshot};

    use super::*;

    #[tokio::test]
    async fn what_is_above_a_directory_of_a_repository() {
        let root = tempfile::tempdir().expect("a directory");
        let inner = root.path().join("a/b");
        fs::create_dir_all(&inner).expect("directories");
        let outside = tempfile::NamedTempFile::new().expect("a file");
        for (path, text) in [
            ("AGENTS.md", "root"),
            ("a/AGENTS.md", "middle"),
            ("a/b/AGENTS.md", "loaded with the directory"),
        ] {
            fs::write(root.path().join(path), text).expect("a file");
        }
        std::os::unix::fs::symlink(outside.path(), root.path().join("a/CLAUDE.md"))
            .expect("a link");
        let git = |arguments: &[&str]| {
            let status = Command::new("git")
                .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
                .args(arguments)
                .current_dir(root.path())
                .status();
            assert!(status.expect("git").success(), "{arguments:?}");
        };
        git(&["init", "-q", "-b", "main"]);
        git(&["add", "AGENTS.md"]);
        git(&["commit", "-q", "-m", "First"]);
        fs::write(root.path().join("AGENTS.md"), "root, changed").expect("a file");
        let names = ["AGENTS.md".to_owned(), "CLAUDE.md".to_owned()];
        let mut facts = project(&inner, &names, &SessionConfig::default()).await;
        let commits = facts
            .git
            .as_mut()
            .map(|git| std::mem::take(&mut git.commits));
        let commits = commits.unwrap_or_default();
        assert!(
            matches!(commits.as_slice(), [only] if only.ends_with(" First")),
            "{commits:?}"
        );
        let document = |path: &str, text: &str| Document {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let expected = ProjectFacts {
            documents: vec![
                document("../../AGENTS.md", "root, changed"),
                document("../AGENTS.md", "middle"),
            ],
            git: Some(GitSnapshot {
                branch: Some("main".to_owned()),
                changes: Some((1, 1)),
                ..GitSnapshot::default()
            }),
        };
        assert_eq!(facts, expected);
    }

    #[tokio::test]
    async fn outside_of_a_repository_there_is_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        fs::create_dir(root.path().join("a")).expect("a directory");
        fs::write(root.path().join("AGENTS.md"), "not ours").expect("a file");
        let names = ["AGENTS.md".to_owned()];
        let facts = project(&root.path().join("a"), &names, &SessionConfig::default()).await;
        assert_eq!(facts, ProjectFacts::default());
    }
}
