//! bashkit's builtins behind a look at what they are given.
//!
//! | what is given | what happens |
//! |---|---|
//! | bytes that are not UTF-8, to a builtin that works on text | a text stands for them ([`bytes`]) |
//! | the same, where that is no help | refused |
//! | arguments that bashkit gets wrong | refused ([`super::arguments`]) |
//! | paths that end with a slash | refused where the real tools refuse ([`slashes`]) |
//! | loops of `sed` that are too long | refused ([`sed`]) |
//! | files that are not sorted, to `comm` and `join` | run, with a message ([`order`]) |
//! | a patch for a file that would not be changed | refused ([`patch`]) |
//!
//! A call that is all right goes on to bashkit's builtin by its stub in `/usr/bin`, so
//! `set -x` shows it twice, and a trap on `ERR` runs twice.

use std::path::Path;
use std::sync::Arc;

use bashkit::{
    Builtin, BuiltinContext, BuiltinRegistry, ExecResult, ExecutionPlan, FileSystem, StreamData,
    SubCommand, async_trait, normalize_path, vfs_join,
};

use super::{awk, bytes, costs, order, patch, sed, slashes};

/// Builtins that work on text.
const OF_TEXT: [&str; 24] = [
    "awk", "column", "comm", "cut", "envsubst", "expand", "fold", "gawk", "join", "mawk", "nawk",
    "nl", "paste", "patch", "pr", "rev", "rg", "sed", "sort", "split", "tac", "unexpand", "uniq",
    "xargs",
];
/// The others.
const OTHERS: [&str; 10] = [
    "chmod", "cp", "iconv", "ln", "mkdir", "mv", "rm", "rmdir", "touch", "xxd",
];

/// How the only argument begins that says why a call cannot be run.
const REFUSED: &str = "\u{10FFFE}";
/// The first argument of a call in which text stands for bytes.
const CARRYING: &str = "\u{10FFFF}";
/// The builtin behind such a call.
const BACK: &str = "hermitcrab-bytes";
/// Its argument where there is nothing to change: the output is text, or lost.
const WHOLE: &str = "whole";

/// Where programs are; bashkit has a stub for each of its builtins there.
const PLACES: [&str; 2] = ["/usr/bin/", "/bin/"];
/// The same for calls of bashkit's builtins themselves.
const INNER: &str = "/usr/bin/./";

/// Puts the builtins of `registry` in the place of bashkit's stubs, too.
pub(super) fn register_paths(registry: &BuiltinRegistry) {
    for name in registry.names() {
        let Some(builtin) = registry.lookup(&name) else {
            continue;
        };
        for place in PLACES {
            registry.insert_trusted(format!("{place}{name}"), builtin.clone());
        }
    }
}

/// The name of the builtin that is called by the path `called`.
pub(in crate::memory) fn name_of(called: &str) -> Option<&str> {
    PLACES.iter().find_map(|place| called.strip_prefix(place))
}

/// Puts the checks in `registry`.
pub(super) fn register(registry: &BuiltinRegistry) {
    for name in OF_TEXT.into_iter().chain(OTHERS) {
        registry.insert_trusted(name, Arc::new(Checked { name }));
    }
    registry.insert_trusted(BACK, Arc::new(Back));
}

/// The arguments with which the builtin `name` says `sentence` where its output goes;
/// `None`: it cannot.
pub(in crate::memory) fn refused(name: &str, sentence: &str) -> Option<Vec<String>> {
    let is_checked = OF_TEXT.contains(&name) || OTHERS.contains(&name);
    is_checked.then(|| vec![format!("{REFUSED}{sentence}")])
}

/// Takes the argument away by which text stands for bytes in a call.
pub(in crate::memory) fn take_carrying(args: &mut Vec<String>) -> bool {
    let carries = args.first().is_some_and(|argument| argument == CARRYING);
    if carries {
        args.remove(0);
    }
    carries
}

/// How bashkit's builtin `name` is called with the arguments and the input of `ctx`.
pub(super) fn inner(name: &str, ctx: &BuiltinContext<'_>) -> SubCommand {
    SubCommand {
        name: format!("{INNER}{name}"),
        args: ctx.args.to_vec(),
        stdin: ctx.stdin.cloned(),
        assignments: Vec::new(),
    }
}

/// The builtin `name`.
struct Checked {
    name: &'static str,
}

/// How a call goes on.
enum How {
    /// It does not: with a sentence and an exit code.
    Refused(String, i32),
    Plain,
    /// Text is to stand for bytes.
    Carried,
    /// What it prints may be lost.
    Doubtful,
}

#[async_trait]
impl Builtin for Checked {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(match self.judge(&ctx).await {
            How::Refused(sentence, code) => ExecResult::err(sentence, code),
            _ => ExecResult::err(format!("{}: cannot be called from here\n", self.name), 1),
        })
    }

    async fn execution_plan(
        &self,
        ctx: &BuiltinContext<'_>,
    ) -> bashkit::Result<Option<ExecutionPlan>> {
        let command = match self.judge(ctx).await {
            How::Refused(..) => return Ok(None),
            How::Plain => inner(self.name, ctx),
            How::Carried => {
                let text = |bytes| StreamData::from(bytes::to_text(bytes).into_owned());
                self.piped(ctx, Some(CARRYING), ctx.stdin_bytes().map(text), "")
            }
            How::Doubtful => self.piped(ctx, None, ctx.stdin.cloned(), WHOLE),
        };
        let commands = vec![command];
        Ok(Some(match self.warning(ctx).await {
            None => ExecutionPlan::Batch { commands },
            Some(warning) => ExecutionPlan::BatchWithStatus {
                commands,
                stderr_prefix: warning,
                force_error_exit: true,
            },
        }))
    }
}

impl Checked {
    /// A call with `first` as its first argument, whose output goes through [`Back`].
    fn piped(
        &self,
        ctx: &BuiltinContext<'_>,
        first: Option<&str>,
        stdin: Option<StreamData>,
        last: &str,
    ) -> SubCommand {
        let name = self.name;
        let script = format!("set -o pipefail; {INNER}{name} \"$@\" | {BACK} {last}");
        let args = ["-c", &script, name].into_iter().chain(first);
        let args = args.map(str::to_owned);
        SubCommand {
            name: "/bin/bash".to_owned(),
            args: args.chain(ctx.args.iter().cloned()).collect(),
            stdin,
            assignments: Vec::new(),
        }
    }

    async fn judge(&self, ctx: &BuiltinContext<'_>) -> How {
        let name = self.name;
        let first = ctx.args.first();
        if let Some(sentence) = first.and_then(|argument| argument.strip_prefix(REFUSED)) {
            return How::Refused(sentence.to_owned(), 1);
        }
        match name {
            "cp" | "mv" | "rm" | "touch" => match slashes::problem(name, ctx).await {
                Some(problem) => How::Refused(format!("{name}: {problem}\n"), 1),
                None => How::Plain,
            },
            "xxd" if ctx.args.iter().any(|it| it.starts_with("-r")) => How::Doubtful,
            "chmod" | "iconv" | "ln" | "mkdir" | "rmdir" | "xxd" => How::Plain,
            "sed" => match sed::refusal_of_loops(ctx).await {
                Some(sentence) => How::Refused(sentence, sed::TROUBLE),
                None => self.judge_text(ctx).await,
            },
            _ => self.judge_text(ctx).await,
        }
    }

    async fn judge_text(&self, ctx: &BuiltinContext<'_>) -> How {
        let name = self.name;
        let given = Given::of(name, ctx).await;
        if order::matters(name)
            && let Some(file) = absent(ctx, &order::files(name, ctx.args)).await
        {
            return How::Refused(format!("{name}: {file}: No such file or directory\n"), 1);
        }
        let writes_elsewhere = given.writes_elsewhere
            || name == "sed" && ctx.args.iter().any(|it| awk::writes_elsewhere(it));
        let problem = match name {
            "patch" if let Some(file) = patch::other_file(ctx).await => {
                return How::Refused(
                    format!(
                        "hermitcrab: patch: the patch is for {file}, but another file would be changed; name the file: patch {file} < PATCH\n"
                    ),
                    1,
                );
            }
            _ if given.is_other && (given.runs_commands || writes_elsewhere) => {
                "bytes that are not UTF-8 go to no commands and no /dev/stderr in the sandbox"
            }
            "sed" if given.is_other && sed::lists(ctx.args) => {
                "`l` of bytes that are not UTF-8 is not supported in the sandbox; use od -c"
            }
            _ if given.runs_commands => return How::Doubtful,
            "xargs" if given.is_other => {
                "arguments that are not UTF-8 are not supported in the sandbox"
            }
            _ if given.is_other_substitution => {
                "what `<(…)` prints must be UTF-8 in the sandbox; put it into a file first"
            }
            "cut" | "fold" | "split" if given.is_not_ascii && counts_bytes(name, ctx.args) => {
                "bytes of what is not ASCII cannot be counted in the sandbox; use head -c and tail -c"
            }
            _ if given.is_other || given.is_not_all => return How::Carried,
            _ => return How::Plain,
        };
        How::Refused(format!("hermitcrab: {name}: {problem}\n"), 1)
    }

    /// What is said although the call goes on, with exit code 1.
    async fn warning(&self, ctx: &BuiltinContext<'_>) -> Option<String> {
        if !order::matters(self.name) {
            return None;
        }
        let mut contents = Vec::new();
        for file in order::compared(self.name, ctx.args)? {
            contents.push(match file {
                "-" => ctx.stdin_bytes().unwrap_or_default().to_vec(),
                file => content(&*ctx.fs, &normalize_path(&vfs_join(ctx.cwd, file))).await,
            });
        }
        let [one, other] = &contents[..] else {
            return None;
        };
        order::problem(self.name, ctx.args, [one, other])
    }
}

/// What a call is given to read.
#[derive(Default)]
struct Given {
    /// Some of it is not UTF-8, and the same for ASCII.
    is_other: bool,
    is_not_ascii: bool,
    /// Some of what a `<(…)` printed is not UTF-8; it cannot be changed.
    is_other_substitution: bool,
    /// A program that may run commands, or print past standard output.
    runs_commands: bool,
    writes_elsewhere: bool,
    /// There may be more than was looked at.
    is_not_all: bool,
}

impl Given {
    /// Looks at standard input, at all files that the arguments may name, and at
    /// programs of `awk`.
    async fn of(name: &str, ctx: &BuiltinContext<'_>) -> Self {
        let mut given = Self {
            is_not_all: matches!(name, "patch" | "rg"),
            ..Self::default()
        };
        given.add(ctx.stdin_bytes().unwrap_or_default());
        if costs::is_awk(name) {
            for program in awk::programs(ctx.args) {
                given.add_program(program);
            }
            for file in awk::program_files(ctx.args) {
                let path = normalize_path(&vfs_join(ctx.cwd, file));
                let content = content(&*ctx.fs, &path).await;
                given.add(&content);
                given.add_program(&String::from_utf8_lossy(&content));
            }
        }
        for argument in ctx.args {
            given.is_not_all |= argument.starts_with("--files0-from");
            let value = argument.split_once('=').map(|it| it.1);
            let read = (name == "sed").then(|| sed::read_files(argument));
            let paths = [Some(argument.as_str()), value].into_iter().flatten();
            for path in paths.chain(read.into_iter().flatten()) {
                let path = normalize_path(&vfs_join(ctx.cwd, path));
                let content = content(&*ctx.fs, &path).await;
                given.add(&content);
                given.is_other_substitution |=
                    path.starts_with("/dev/fd") && bytes::are_other(&content);
            }
        }
        given
    }

    fn add_program(&mut self, program: &str) {
        self.runs_commands |= awk::runs_commands(program);
        self.writes_elsewhere |= awk::writes_elsewhere(program);
        self.is_not_all |= awk::reads_others(program);
    }

    fn add(&mut self, content: &[u8]) {
        let is_not_ascii = !content.is_ascii();
        self.is_not_ascii |= is_not_ascii;
        self.is_other |= is_not_ascii && bytes::are_other(content);
    }
}

/// What the file `path` holds; nothing if there is none.
pub(super) async fn content(files: &dyn FileSystem, path: &Path) -> Vec<u8> {
    let is_endless = ["/dev/zero", "/dev/urandom", "/dev/random"]
        .iter()
        .any(|device| path == Path::new(device));
    match files.stat(path).await {
        Ok(found) if !found.file_type.is_dir() && !is_endless => {
            files.read_file(path).await.unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The first of `files` that does not exist.
async fn absent<'a>(ctx: &BuiltinContext<'_>, files: &[&'a str]) -> Option<&'a str> {
    for file in files.iter().filter(|file| **file != "-") {
        let path = normalize_path(&vfs_join(ctx.cwd, file));
        if ctx.fs.stat(&path).await.is_err() {
            return Some(file);
        }
    }
    None
}

/// Whether the builtin `name` is to count bytes.
fn counts_bytes(name: &str, args: &[String]) -> bool {
    args.iter().any(|argument| match name {
        "split" => ["-b", "-C", "-n", "--bytes", "--line-bytes", "--number"]
            .iter()
            .any(|option| argument.starts_with(option)),
        _ => argument.starts_with("-b") || argument.starts_with("--bytes"),
    })
}

/// Prints its input, bytes where text stands for them.
struct Back;

#[async_trait]
impl Builtin for Back {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let text = ctx.stdin_bytes().unwrap_or_default();
        if ctx.args.is_empty() {
            return Ok(ExecResult::ok_bytes(bytes::to_bytes(text).into_owned()));
        }
        let is_lost = String::from_utf8_lossy(text).contains(char::REPLACEMENT_CHARACTER);
        Ok(match is_lost {
            false => ExecResult::ok_bytes(text.to_vec()),
            true => ExecResult::err(
                "hermitcrab: output that is not UTF-8 is not supported here in the sandbox; unpack into a file, or use base64 -d\n",
                1,
            ),
        })
    }
}
