//! `DirectoryEnvironment`: an environment seen from another working directory,
//! for agents that are sent to a part of the tree (spec 7.2 `working_dir`).

use std::rc::Rc;

use async_trait::async_trait;

use super::search::display_path;
use super::{
    EnvironmentCall, EnvironmentError, EnvironmentInfo, EnvironmentReply, ExecRequest, ExecStatus,
    ExecutionEnvironment, OutputSink, Scope, absolute_path,
};

/// Resolves relative paths against another directory. It is a place to
/// stand, not a fence: absolute paths reach as far as they do outside.
pub(crate) struct DirectoryEnvironment {
    inner: Rc<dyn ExecutionEnvironment>,
    info: EnvironmentInfo,
}

impl DirectoryEnvironment {
    /// `inner` with the absolute `directory` as its working directory.
    pub(crate) fn new(inner: Rc<dyn ExecutionEnvironment>, directory: String) -> Self {
        let info = EnvironmentInfo {
            working_directory: directory,
            ..inner.info().clone()
        };
        Self { inner, info }
    }

    fn resolve(&self, path: &mut String) {
        *path = absolute_path(&self.info.working_directory, path);
    }

    /// A path as the inner environment shows it, as this one does.
    fn show(&self, path: &mut String) {
        let absolute = absolute_path(&self.inner.info().working_directory, path);
        *path = display_path(&self.info.working_directory, &absolute).to_owned();
    }
}

#[async_trait(?Send)]
impl ExecutionEnvironment for DirectoryEnvironment {
    fn info(&self) -> &EnvironmentInfo {
        &self.info
    }

    async fn call(
        &self,
        scope: &Scope,
        mut call: EnvironmentCall,
    ) -> Result<EnvironmentReply, EnvironmentError> {
        match &mut call {
            EnvironmentCall::Initialize | EnvironmentCall::Cleanup => {}
            EnvironmentCall::Read { path, .. }
            | EnvironmentCall::ReadPart { path, .. }
            | EnvironmentCall::Write { path, .. }
            | EnvironmentCall::Stat { path }
            | EnvironmentCall::RealPath { path }
            | EnvironmentCall::List { path, .. }
            | EnvironmentCall::Remove { path }
            | EnvironmentCall::MakeDir { path } => self.resolve(path),
            EnvironmentCall::Grep(request) => self.resolve(&mut request.path),
            EnvironmentCall::Glob(request) => self.resolve(&mut request.path),
            EnvironmentCall::Rename { from, to } => {
                self.resolve(from);
                self.resolve(to);
            }
        }
        let found_by_name = matches!(call, EnvironmentCall::Glob(_));
        let mut reply = self.inner.call(scope, call).await?;
        match &mut reply {
            EnvironmentReply::Entries(found) if found_by_name => {
                found
                    .entries
                    .iter_mut()
                    .for_each(|entry| self.show(&mut entry.path));
            }
            EnvironmentReply::Matches(found) => {
                found
                    .matches
                    .iter_mut()
                    .for_each(|found| self.show(&mut found.path));
            }
            _ => {}
        }
        Ok(reply)
    }

    async fn exec(
        &self,
        scope: &Scope,
        mut request: ExecRequest,
        output: &mut OutputSink<'_>,
    ) -> Result<ExecStatus, EnvironmentError> {
        self.resolve(request.working_dir.get_or_insert_default());
        self.inner.exec(scope, request, output).await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::environment::{
        DirEntry, Entries, GlobRequest, GrepRequest, LoggingEnvironment, Match, Matches,
    };

    /// Answers searches with one path each and everything else with `Done`.
    struct Fixed(EnvironmentInfo);

    #[async_trait(?Send)]
    impl ExecutionEnvironment for Fixed {
        fn info(&self) -> &EnvironmentInfo {
            &self.0
        }

        async fn call(
            &self,
            _: &Scope,
            call: EnvironmentCall,
        ) -> Result<EnvironmentReply, EnvironmentError> {
            Ok(match call {
                EnvironmentCall::Grep(_) => EnvironmentReply::Matches(Matches {
                    matches: vec![Match {
                        path: "src/a/x.rs".to_owned(),
                        line: 1,
                        text: String::new(),
                    }],
                    truncated: false,
                }),
                EnvironmentCall::Glob(_) => EnvironmentReply::Entries(Entries {
                    entries: ["src/a/x.rs", "README", "/etc/hosts"]
                        .map(|path| DirEntry {
                            path: path.to_owned(),
                            is_dir: false,
                            size: None,
                            modified_ms: None,
                        })
                        .into(),
                    truncated: false,
                }),
                _ => EnvironmentReply::Done,
            })
        }

        async fn exec(
            &self,
            _: &Scope,
            request: ExecRequest,
            output: &mut OutputSink<'_>,
        ) -> Result<ExecStatus, EnvironmentError> {
            let directory = request.working_dir.unwrap_or_default();
            output(super::super::OutputStream::Stdout, directory.as_bytes());
            Ok(ExecStatus::default())
        }
    }

    fn environment(log: &Rc<RefCell<Vec<String>>>) -> DirectoryEnvironment {
        let fixed = Fixed(EnvironmentInfo {
            working_directory: "/work".to_owned(),
            platform: "linux".to_owned(),
            os_version: String::new(),
            utc_offset_minutes: 0,
            bounds: String::new(),
            warning: String::new(),
        });
        let lines = log.clone();
        let log = Rc::new(move |line: &str| lines.borrow_mut().push(line.to_owned()));
        let logging = LoggingEnvironment::new(Rc::new(fixed), log);
        DirectoryEnvironment::new(Rc::new(logging), "/work/src".to_owned())
    }

    fn check(call: EnvironmentCall, line: &str) -> EnvironmentReply {
        let log = Rc::default();
        let environment = environment(&log);
        let scope = Scope::new("s");
        let reply = futures_util::FutureExt::now_or_never(environment.call(&scope, call));
        assert_eq!(log.borrow()[0], line);
        reply.expect("at once").expect("a reply")
    }

    #[test]
    fn relative_paths_start_at_the_directory() {
        let path = || "a/../b".to_owned();
        check(EnvironmentCall::Stat { path: path() }, "stat /work/src/b");
        check(
            EnvironmentCall::Rename {
                from: path(),
                to: "../c".to_owned(),
            },
            "rename /work/src/b to /work/c",
        );
        check(
            EnvironmentCall::Remove {
                path: "/etc/x".to_owned(),
            },
            "remove /etc/x",
        );
        check(EnvironmentCall::Initialize, "initialize");
    }

    #[test]
    fn found_paths_are_shown_from_the_directory() {
        let request = GrepRequest {
            pattern: "p".to_owned(),
            ..GrepRequest::default()
        };
        let EnvironmentReply::Matches(found) =
            check(EnvironmentCall::Grep(request), "grep p in /work/src")
        else {
            panic!("matches");
        };
        assert_eq!(found.matches[0].path, "a/x.rs");
        let request = GlobRequest {
            pattern: "p".to_owned(),
            path: "a".to_owned(),
            max_results: 0,
        };
        let EnvironmentReply::Entries(found) =
            check(EnvironmentCall::Glob(request), "glob p in /work/src/a")
        else {
            panic!("entries");
        };
        let paths: Vec<_> = found
            .entries
            .iter()
            .map(|entry| entry.path.as_str())
            .collect();
        assert_eq!(paths, ["a/x.rs", "/work/README", "/etc/hosts"]);
    }

    #[test]
    fn commands_run_in_the_directory() {
        let environment = environment(&Rc::default());
        for (directory, expected) in [(None, "/work/src"), (Some("t"), "/work/src/t")] {
            let mut written = Vec::new();
            let request = ExecRequest {
                working_dir: directory.map(str::to_owned),
                ..ExecRequest::default()
            };
            let scope = Scope::new("s");
            let mut output = |_, bytes: &[u8]| written.extend_from_slice(bytes);
            let exec = environment.exec(&scope, request, &mut output);
            let status = futures_util::FutureExt::now_or_never(exec);
            assert!(status.is_some_and(|status| status.is_ok()));
            assert_eq!(written, expected.as_bytes());
        }
    }
}
