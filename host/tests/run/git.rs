//! A hostile repository: nothing that it configures runs, neither when a
//! session starts in it nor when a command that only reads goes unasked. A
//! canary file would show that something ran.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{command, finish, scratch, serve, shell};

/// A directory with a repository in `r`, two commits old, and a place beside
/// it where canaries would show.
struct Lab {
    directory: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        let lab = Self {
            directory: scratch(),
        };
        fs::create_dir(lab.repository()).expect("a directory");
        lab.write("r/f.txt", "one\n");
        lab.write("r/b.bin", "b\n");
        lab.write("r/same", "same\n");
        lab.git("r", &["init", "-q", "-b", "main"]);
        lab.commit("r", "First");
        lab.write("r/f.txt", "two\n");
        lab.write("r/b.bin", "c\n");
        lab.commit("r", "Second");
        // Of the same size as in the index, so that git must look into it.
        lab.write("r/f.txt", "six\n");
        lab.write("r/b.bin", "d\n");
        lab.write("r/new", "");
        // Unchanged, but git must look to know, and writes down that it has.
        lab.write("r/same", "same\n");
        lab
    }

    fn repository(&self) -> PathBuf {
        self.directory.path().join("r")
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(path, content).expect("a file");
    }

    fn git(&self, directory: &str, arguments: &[&str]) {
        let status = Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@example.org"])
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .current_dir(self.directory.path().join(directory))
            .stdout(Stdio::null())
            .status()
            .expect("git");
        assert!(status.success(), "git {arguments:?}");
    }

    /// Replaces the last commit by one that bears a signature.
    fn sign(&self) {
        let git = |arguments: &[&str], stdin: &str| {
            let mut child = Command::new("git")
                .args(arguments)
                .current_dir(self.repository())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("git");
            let mut pipe = child.stdin.take().expect("stdin");
            pipe.write_all(stdin.as_bytes()).expect("written");
            drop(pipe);
            let output = child.wait_with_output().expect("an end");
            String::from_utf8(output.stdout).expect("UTF-8")
        };
        let commit = git(&["cat-file", "commit", "HEAD"], "");
        let (head, message) = commit.split_once("\n\n").expect("a commit");
        let signature =
            "gpgsig -----BEGIN PGP SIGNATURE-----\n \n aaaa\n -----END PGP SIGNATURE-----";
        let signed = format!("{head}\n{signature}\n\n{message}");
        let id = git(&["hash-object", "-t", "commit", "-w", "--stdin"], &signed);
        self.git("r", &["update-ref", "refs/heads/main", id.trim()]);
    }

    fn commit(&self, directory: &str, subject: &str) {
        self.git(directory, &["add", "-A"]);
        self.git(directory, &["commit", "-q", "-m", subject]);
    }

    /// A program that leaves a canary and succeeds or fails.
    fn program(&self, name: &str, end: &str) -> String {
        let path = self.directory.path().join("programs").join(name);
        let canary = self.directory.path().join(format!("canary.{name}"));
        let text = format!("#!/bin/sh\ntouch {}\n{end}\n", canary.display());
        self.write(&format!("programs/{name}"), &text);
        executable(&path);
        path.to_str().expect("UTF-8").to_owned()
    }

    fn configure(&self, directory: &str, name: &str, value: &str) {
        self.git(directory, &["config", name, value]);
    }

    fn hook(&self, git: &str, name: &str) {
        let program = self.program(&format!("hook-{name}"), "");
        let hook = self.directory.path().join(git).join("hooks").join(name);
        fs::create_dir_all(hook.parent().expect("a parent")).expect("hooks");
        fs::copy(program, &hook).expect("a hook");
        executable(&hook);
    }

    #[track_caller]
    fn check_quiet(&self, what: &str) {
        let entries = fs::read_dir(self.directory.path()).expect("a directory");
        let names = entries.map(|entry| entry.expect("an entry").file_name());
        let canaries: Vec<_> = names
            .filter(|name| name.to_string_lossy().starts_with("canary"))
            .collect();
        assert!(canaries.is_empty(), "{what}: {canaries:?}");
    }

    /// Runs the binary on `steps` in `directory`; the bodies of its requests.
    fn run(&self, directory: &str, steps: Value, arguments: &[&str]) -> Vec<Value> {
        let variables = [("GIT_CONFIG_GLOBAL", "/dev/null".to_owned())];
        self.run_with(directory, steps, arguments, &variables)
    }

    fn run_with(
        &self,
        directory: &str,
        steps: Value,
        arguments: &[&str],
        variables: &[(&str, String)],
    ) -> Vec<Value> {
        let model = serve(steps);
        let directory = self.directory.path().join(directory);
        let mut command = command(&model.url(), &directory, arguments);
        // Without a terminal nobody answers a question.
        command.envs(variables.iter().cloned());
        leave_terminal(&mut command);
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let requests = model.requests().into_iter();
        requests
            .map(|request| serde_json::from_slice(&request.body).expect("JSON"))
            .collect()
    }
}

fn executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("a mode");
}

fn leave_terminal(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    // SAFETY: setsid is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            nix::libc::setsid();
            Ok(())
        });
    }
}

/// Sets one trap in a repository.
type Trap = fn(&Lab);

/// What a hostile repository has git run, by name, and how it is set up.
const TRAPS: [(&str, Trap); 16] = [
    ("plain", |_| {}),
    ("fsmonitor", |lab| {
        lab.configure("r", "core.fsmonitor", &lab.program("fsmonitor", "exit 1"));
    }),
    ("clean", |lab| {
        lab.configure("r", "filter.x.clean", &lab.program("clean", "cat"));
        lab.write("r/.gitattributes", "* filter=x\n");
    }),
    ("process, by info/attributes", |lab| {
        lab.configure("r", "filter.a.b.process", &lab.program("process", "cat"));
        lab.configure("r", "filter.a.b.required", "true");
        lab.write("r/.git/info/attributes", "* filter=a.b\n");
    }),
    ("an included filter", |lab| {
        let clean = lab.program("included", "cat");
        lab.write("r/settings", &format!("[filter \"x\"]\n clean = {clean}\n"));
        lab.configure("r", "include.path", "../settings");
        lab.write("r/.gitattributes", "* filter=x\n");
    }),
    ("a conditional include", |lab| {
        let clean = lab.program("included", "cat");
        lab.write("r/settings", &format!("[filter \"x\"]\n clean = {clean}\n"));
        lab.configure("r", "includeIf.onbranch:main.path", "../settings");
        lab.write("r/.gitattributes", "* filter=x\n");
    }),
    ("settings of the worktree", |lab| {
        lab.configure("r", "extensions.worktreeConfig", "true");
        let clean = lab.program("clean", "cat");
        lab.git("r", &["config", "--worktree", "filter.x.clean", &clean]);
        lab.write("r/.gitattributes", "* filter=x\n");
    }),
    ("textconv", |lab| {
        lab.configure("r", "diff.x.textconv", &lab.program("textconv", "cat $1"));
        lab.write("r/.gitattributes", "* diff=x\n");
    }),
    ("an external diff", |lab| {
        lab.configure("r", "diff.external", &lab.program("external", ""));
    }),
    ("a diff driver", |lab| {
        lab.configure("r", "diff.x.command", &lab.program("driver", ""));
        lab.write("r/.git/info/attributes", "* diff=x\n");
    }),
    ("hooks", |lab| {
        for name in [
            "post-index-change",
            "reference-transaction",
            "post-checkout",
        ] {
            lab.hook("r/.git", name);
        }
    }),
    ("signatures, pager, editor, helpers", |lab| {
        lab.sign();
        lab.configure("r", "log.showSignature", "true");
        for name in [
            "gpg.program",
            "gpg.ssh.program",
            "core.pager",
            "core.editor",
        ] {
            lab.configure("r", name, &lab.program(name, "exit 1"));
        }
        for name in [
            "core.sshCommand",
            "core.alternateRefsCommand",
            "credential.helper",
        ] {
            lab.configure("r", name, &lab.program(name, "exit 1"));
        }
    }),
    ("a submodule", |lab| {
        fs::create_dir(lab.directory.path().join("s")).expect("a directory");
        lab.git("s", &["init", "-q", "-b", "main"]);
        lab.write("s/a", "a\n");
        lab.commit("s", "Sub");
        lab.git("r", &["submodule", "--quiet", "add", "../s", "sub"]);
        lab.git("r", &["commit", "-q", "-m", "Third"]);
        lab.configure("r/sub", "filter.x.clean", &lab.program("sub-clean", "cat"));
        lab.configure(
            "r/sub",
            "core.fsmonitor",
            &lab.program("sub-monitor", "exit 1"),
        );
        lab.write("r/.git/modules/sub/info/attributes", "* filter=x\n");
        lab.hook("r/.git/modules/sub", "post-index-change");
        lab.git(
            "r",
            &[
                "config",
                "-f",
                ".gitmodules",
                "submodule.sub.ignore",
                "none",
            ],
        );
        lab.write("r/sub/a", "b\n");
    }),
    ("a file that names another place", |lab| {
        fs::rename(lab.repository().join(".git"), lab.repository().join("meta")).expect("moved");
        lab.write("r/.git", "gitdir: meta\n");
        lab.configure("r", "filter.x.clean", &lab.program("elsewhere", "cat"));
        lab.write("r/.gitattributes", "* filter=x\n");
    }),
    ("a linked worktree", |lab| {
        let moved = lab.directory.path().join("main");
        fs::rename(lab.repository(), &moved).expect("moved");
        lab.git("main", &["checkout", "-q", "-f", "--detach"]);
        lab.git("main", &["worktree", "add", "-q", "../r", "main"]);
        lab.configure("main", "filter.x.clean", &lab.program("linked", "cat"));
        lab.write("main/.git/info/attributes", "* filter=x\n");
        lab.hook("main/.git", "post-index-change");
        lab.write("r/f.txt", "six\n");
        lab.write("r/b.bin", "d\n");
    }),
    ("a partial clone", |lab| {
        lab.configure("r", "core.repositoryFormatVersion", "1");
        lab.configure("r", "extensions.partialClone", "o");
        lab.configure("r", "remote.o.url", "../r");
        lab.configure("r", "remote.o.promisor", "true");
        lab.configure(
            "r",
            "remote.o.uploadpack",
            &lab.program("uploadpack", "exit 1"),
        );
        // The blob "two\n", which `HEAD` needs.
        let blob = lab
            .repository()
            .join(".git/objects/f7/19efd430d52bcfc8566a43b2eb655688d38871");
        fs::remove_file(blob).expect("an object");
    }),
];

/// Commands that go unasked where a repository is as git makes it.
const READERS: [&str; 12] = [
    "git status",
    "git status -v",
    "git diff",
    "git diff HEAD~1 HEAD",
    "git log -p --format='%h %G? %s'",
    "git show",
    "git blame b.bin",
    "git ls-files -m",
    "git grep six",
    "git range-diff HEAD~1...HEAD",
    "git for-each-ref --format='%(refname) %(signature)'",
    "git rev-list --alternate-refs HEAD",
];

#[test]
fn a_session_that_starts_runs_nothing_of_the_repository() {
    for (name, set_up) in TRAPS {
        let lab = Lab::new();
        set_up(&lab);
        let bodies = lab.run("r", json!([{"text": "ok"}]), &["--approve", "always", "x"]);
        lab.check_quiet(name);
        let prompt = bodies[0]["system"][0]["text"].as_str().expect("a prompt");
        assert!(prompt.contains("Git branch: main"), "{name}: {prompt}");
        // The partial clone lacks what git would compare.
        assert!(prompt.contains(" Second\n"), "{name}: {prompt}");
        assert!(
            prompt.contains("Status: 2 changed") || name != "plain",
            "{prompt}"
        );
        assert!(prompt.contains("Status: "), "{name}: {prompt}");
    }
}

#[test]
fn commands_that_read_run_nothing_of_the_repository() {
    for (name, set_up) in TRAPS {
        let lab = Lab::new();
        set_up(&lab);
        let mut steps: Vec<_> = READERS.map(shell).into();
        steps.push(json!({"text": "ok"}));
        let bodies = lab.run("r", json!(steps), &["--approve", "ask", "x"]);
        lab.check_quiet(name);
        let last = bodies.last().expect("a request").to_string();
        if name == "plain" {
            assert!(!last.contains("not approved"), "{last}");
            assert!(
                last.contains("new file") || last.contains("Untracked"),
                "{last}"
            );
        }
    }
}

/// The traps are real: git alone steps into them.
#[test]
fn git_alone_takes_files_for_a_repository() {
    let lab = Lab::new();
    for (path, content) in bare("r/vendor/", &lab.program("vendored", "exit 1")) {
        lab.write(&path, &content);
    }
    let _ = Command::new("sh")
        .args(["-c", "cd vendor && git status"])
        .current_dir(lab.repository())
        .output()
        .expect("a shell");
    assert!(lab.directory.path().join("canary.vendored").exists());
}

#[test]
fn git_alone_runs_what_the_repository_says() {
    for (name, set_up) in TRAPS {
        let lab = Lab::new();
        set_up(&lab);
        for reader in READERS {
            let _ = Command::new("sh")
                .args(["-c", reader])
                .current_dir(lab.repository())
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .output()
                .expect("a shell");
        }
        let ran = fs::read_dir(lab.directory.path())
            .expect("a directory")
            .any(|entry| {
                let name = entry.expect("an entry").file_name();
                name.to_string_lossy().starts_with("canary")
            });
        assert_eq!(ran, name != "plain", "{name}");
    }
}

/// A person whose settings of git a model may write.
struct Person {
    about: &'static str,
    /// Their variables: paths in the directory of the lab, or behind `=` as they are.
    variables: &'static [(&'static str, &'static str)],
    set_up: Trap,
    /// What the model writes, from the working directory.
    writes: &'static str,
    /// Whether the write itself asks, and not git.
    write_asks: bool,
}

const PEOPLE: [Person; 10] = [
    Person {
        about: "at home",
        variables: &[("HOME", "r")],
        set_up: |_| {},
        writes: ".gitconfig",
        write_asks: true,
    },
    Person {
        about: "at home, the other file",
        variables: &[("HOME", "r")],
        set_up: |_| {},
        writes: ".config/git/config",
        write_asks: true,
    },
    Person {
        about: "the settings are a link",
        variables: &[("HOME", "home")],
        set_up: |lab| {
            lab.write("r/dots/gitconfig", "[user]\nname = x\n");
            lab.write("home/x", "");
            let link = lab.directory.path().join("home/.gitconfig");
            std::os::unix::fs::symlink("../r/dots/gitconfig", link).expect("a link");
        },
        writes: "dots/gitconfig",
        write_asks: false,
    },
    Person {
        about: "included, not written yet",
        variables: &[("HOME", "home")],
        set_up: |lab| lab.write("home/.gitconfig", "[include]\npath = ../r/more\n"),
        writes: "more",
        write_asks: false,
    },
    Person {
        about: "another directory of settings",
        variables: &[("HOME", "home"), ("XDG_CONFIG_HOME", "r/settings")],
        set_up: |_| {},
        writes: "settings/git/config",
        write_asks: false,
    },
    Person {
        about: "another file of settings",
        variables: &[("GIT_CONFIG_GLOBAL", "r/mine")],
        set_up: |_| {},
        writes: "mine",
        write_asks: false,
    },
    Person {
        about: "a relative file of settings",
        variables: &[("GIT_CONFIG_GLOBAL", "=../r/mine")],
        set_up: |_| {},
        writes: "mine",
        write_asks: false,
    },
    Person {
        about: "settings of the machine",
        variables: &[("HOME", "home"), ("GIT_CONFIG_SYSTEM", "r/mine")],
        set_up: |_| {},
        writes: "mine",
        write_asks: false,
    },
    Person {
        about: "settings by variables",
        variables: &[
            ("HOME", "home"),
            ("GIT_CONFIG_COUNT", "=1"),
            ("GIT_CONFIG_KEY_0", "=include.path"),
            ("GIT_CONFIG_VALUE_0", "r/mine"),
        ],
        set_up: |_| {},
        writes: "mine",
        write_asks: false,
    },
    Person {
        about: "`git config` reads another file",
        variables: &[("HOME", "home"), ("GIT_CONFIG", "=/dev/null")],
        set_up: |lab| lab.write("home/.gitconfig", "[include]\npath = ../r/more\n"),
        writes: "more",
        write_asks: false,
    },
];

impl Person {
    fn lab(&self) -> (Lab, Vec<(&'static str, String)>) {
        let lab = Lab::new();
        (self.set_up)(&lab);
        let place = |(name, path): &(&'static str, &str)| match path.strip_prefix('=') {
            Some(value) => (*name, value.to_owned()),
            None => {
                let path = lab.directory.path().join(path);
                (*name, path.to_str().expect("UTF-8").to_owned())
            }
        };
        let variables = self.variables.iter().map(place).collect();
        (lab, variables)
    }
}

#[test]
fn settings_of_a_person_are_not_written_unasked() {
    for person in PEOPLE {
        let (lab, variables) = person.lab();
        let content = format!("[diff]\nexternal = {}\n", lab.program("mine", ""));
        let path = person.writes;
        let write = json!({"tool_calls": [{"name": "write_file",
            "arguments": {"file_path": path, "content": content}}]});
        let together = format!("printf '%s' '{content}' > {path}; git diff");
        let steps = json!([write, shell("git diff"), shell(&together), {"text": "ok"}]);
        let bodies = lab.run_with("r", steps, &["--approve", "ask", "x"], &variables);
        lab.check_quiet(person.about);
        let asked = |index: usize| {
            let body = bodies[index].to_string();
            body.matches("not approved").count()
        };
        let expected = match person.write_asks {
            true => [1, 1, 2],
            false => [0, 1, 2],
        };
        assert_eq!([asked(1), asked(2), asked(3)], expected, "{}", person.about);

        // Git alone does what stands there.
        lab.write(&format!("r/{path}"), &content);
        let status = Command::new("git")
            .arg("diff")
            .current_dir(lab.repository())
            .env_remove("GIT_CONFIG_GLOBAL")
            .envs(variables)
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("git").success());
        let canary = lab.directory.path().join("canary.mine");
        assert!(canary.exists(), "{}", person.about);
    }
}

/// `GIT_CONFIG` has `git config` read another file, and git alone the usual ones.
#[test]
fn settings_that_git_config_does_not_show() {
    for (name, set_up) in TRAPS.into_iter().filter(|(name, _)| *name != "plain") {
        let lab = Lab::new();
        set_up(&lab);
        let variables = [
            ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
            ("GIT_CONFIG", "/dev/null".to_owned()),
        ];
        let steps = json!([shell("git diff"), shell("git status"), {"text": "ok"}]);
        lab.run_with("r", steps, &["--approve", "ask", "x"], &variables);
        lab.check_quiet(name);
    }
}

/// What git takes for a bare repository, made of plain files.
fn bare(directory: &str, program: &str) -> Vec<(String, String)> {
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"{program}\"\n"
    );
    [
        ("HEAD", "ref: refs/heads/main\n"),
        ("config", &config),
        ("objects/x", ""),
        ("refs/x", ""),
    ]
    .map(|(name, content)| (format!("{directory}{name}"), content.to_owned()))
    .into()
}

fn check_bare(inside: &str, directory: &str, line: &str, asked: bool) {
    let lab = Lab::new();
    lab.write("plain/x", "");
    let program = lab.program("bare", "exit 1");
    let write = |(path, content): (String, String)| {
        json!({"tool_calls": [{"name": "write_file",
            "arguments": {"file_path": path, "content": content}}]})
    };
    let mut steps: Vec<_> = bare(directory, &program).into_iter().map(write).collect();
    steps.extend([shell(line), json!({"text": "ok"})]);
    let bodies = lab.run(inside, json!(steps), &["--approve", "ask", "x"]);
    let last = bodies.last().expect("a request").to_string();
    lab.check_quiet(line);
    assert_eq!(last.contains("not approved"), asked, "{line}: {last}");
}

#[test]
fn files_that_look_like_a_repository_are_none() {
    for line in [
        "cd e && git status",
        "cd e; git log",
        "pushd e && git diff",
        "(cd ./e && git show)",
        "cd \"$PWD/e\" && git status",
    ] {
        check_bare("plain", "e/", line, true);
        check_bare("r", "e/", line, true);
    }
    check_bare("plain", "e/", "git -C e status", true);
    check_bare("plain", "e/", "GIT_DIR=e git status", true);
    check_bare("plain", "e/", "export GIT_DIR=e; git status", true);
    check_bare("plain", "e/", "unset GIT_CONFIG_COUNT; git status", true);
    // The working directory itself becomes one: git alone says no.
    check_bare("plain", "", "git status", false);
    check_bare("plain", "", "cd . && git status", false);
}

/// Also who says yes to it is spared.
#[test]
fn an_embedded_repository_is_not_entered_by_a_yes() {
    let lab = Lab::new();
    for (path, content) in bare("r/vendor/", &lab.program("vendored", "exit 1")) {
        lab.write(&path, &content);
    }
    let model = serve(json!([shell("cd vendor && git status"), {"text": "ok"}]));
    let mut terminal = super::terminal::Terminal::run(
        &model.url(),
        &lab.repository(),
        b"",
        &["--approve", "ask", "x"],
    );
    terminal.answer(1, b"y\n");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    lab.check_quiet("vendor");
    let last = String::from_utf8_lossy(&model.requests()[1].body).into_owned();
    assert!(last.contains("bareRepository"), "{last}");
}

/// Hooks are part of what somebody has said yes to.
#[test]
fn approved_commits_still_run_hooks() {
    let lab = Lab::new();
    lab.hook("r/.git", "pre-commit");
    let line = "git -c user.name=x -c user.email=x@example.org commit -qam wip";
    let model = serve(json!([shell(line), {"text": "ok"}]));
    let mut terminal = super::terminal::Terminal::run(
        &model.url(),
        &lab.repository(),
        b"",
        &["--approve", "ask", "x"],
    );
    terminal.answer(1, b"y\n");
    let (screen, code) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(lab.directory.path().join("canary.hook-pre-commit").exists());
}
