//! Lent programs: commands of the in-memory shell that the host runs.
//!
//! A call hands over arguments, environment, working directory, standard input
//! and every file changed since that program's last call here; what the program
//! changed comes back and is applied in order, the last writer winning (DESIGN
//! §5); what something else made of the same path meanwhile is lost, and the
//! command says so. While it runs, real time counts.
//!
//! A program may keep the files between calls. Each state that it is told has a
//! number, and a call says which number its changes lead from; a program that
//! does not have that state any more asks for all files.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use super::tree::{ChangeKind, Content, LastLink, NodeKind, Tree, TreeError, TreeLimits};
use crate::environment::{FileChange, FileNode};

/// What each lent program knows of the tree, by its name.
#[derive(Default)]
pub(crate) struct Seen {
    known: RefCell<BTreeMap<String, Known>>,
    last_state: Cell<u64>,
}

struct Known {
    state: u64,
    tree: Tree,
}

/// What a call tells a program of the files; see [`crate::environment::ProgramRequest`].
pub(crate) struct Told {
    pub(crate) since: Option<u64>,
    pub(crate) state: u64,
    pub(crate) changes: Vec<FileChange>,
    /// The files that it then knows.
    pub(crate) tree: Tree,
}

impl Seen {
    /// What `program` must be told to know `tree`; it is taken to know it then.
    pub(crate) fn tell(&self, program: &str, tree: &Tree) -> Told {
        let state = self.last_state.get() + 1;
        self.last_state.set(state);
        let tree = tree.clone();
        let known = Known {
            state,
            tree: tree.clone(),
        };
        let before = self
            .known
            .borrow_mut()
            .insert(program.to_owned(), known)
            .map(|before| (before.state, before.tree));
        let since = before.as_ref().map(|(state, _)| *state);
        let before = before.map_or_else(|| Tree::new(TreeLimits::default()), |(_, tree)| tree);
        Told {
            since,
            state,
            changes: file_changes(&before, &tree),
            tree,
        }
    }

    /// `program` has made `changes` to the files that it was told as `state`.
    /// Where calls overlapped, nobody can say what it knows.
    pub(crate) fn changed(&self, program: &str, state: u64, changes: Vec<FileChange>, now_us: u64) {
        let mut known = self.known.borrow_mut();
        let knows = known.get_mut(program).is_some_and(|known| {
            known.state == state && apply(&mut known.tree, changes, now_us).is_empty()
        });
        if !knows {
            known.remove(program);
        }
    }

    /// `program` must be told everything again.
    pub(crate) fn forget(&self, program: &str) {
        self.known.borrow_mut().remove(program);
    }
}

/// The difference as a program sees it: links as what they lead to.
fn file_changes(before: &Tree, now: &Tree) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = Vec::new();
    for change in now.changes_since(before) {
        if change.path == "/" {
            continue;
        }
        let (node, mode) = match change.kind {
            ChangeKind::Removed => (FileNode::Removed, None),
            ChangeKind::Added | ChangeKind::Changed => match visible(now, &change.path) {
                Some(visible) => visible,
                None => continue,
            },
        };
        match changes.last_mut() {
            // A path that changed its kind is told once, as what it is now.
            Some(last) if last.path == change.path => {
                if node != FileNode::Removed {
                    (last.node, last.mode) = (node, mode);
                }
            }
            _ => changes.push(FileChange {
                path: change.path,
                node,
                mode,
            }),
        }
    }
    changes
}

/// Where a lent program is a file, so that `which`, `type` and whoever calls it by
/// its path find it. It is no news for programs.
const PATH: &str = "/usr/local/bin/";

/// Makes the lent program `name` a file on the `PATH`.
pub(crate) fn put_on_path(tree: &mut Tree, name: &str, now_us: u64) {
    let path = format!("{PATH}{name}");
    if name.contains('/') || tree.get(&path).is_ok() {
        return;
    }
    // A tree too small for it has no room for anything; the name still works.
    let _ = tree
        .write_with_parents(&path, Content::from(script(name).as_bytes()), now_us)
        .and_then(|()| tree.set_mode(&path, 0o755));
}

fn script(name: &str) -> String {
    format!("#!/bin/sh\nexec {name} \"$@\"\n")
}

fn is_on_path(path: &str, content: &Content) -> bool {
    path.strip_prefix(PATH)
        .is_some_and(|name| content.as_slice() == script(name).as_bytes())
}

/// What a program sees at `path`, and the permission bits of a file.
fn visible(tree: &Tree, path: &str) -> Option<(FileNode, Option<u32>)> {
    let node = tree.get(path).ok()?;
    let is_link = matches!(node.kind, NodeKind::Link(_));
    let node = if is_link {
        tree.get_followed(path).ok()?
    } else {
        node
    };
    match &node.kind {
        NodeKind::File(content) if !is_link && is_on_path(path, content) => None,
        NodeKind::File(content) => Some((FileNode::File(content.to_bytes()), Some(node.mode))),
        NodeKind::Directory(_) if !is_link => Some((FileNode::Directory, None)),
        NodeKind::Directory(_) | NodeKind::Link(_) => None,
    }
}

/// Paths among `changes`, of a program that was told `told`, at which something
/// else has made another version in `now`: the program's takes its place.
fn overtaken<'a>(told: &Tree, now: &Tree, changes: &'a [FileChange]) -> Vec<&'a str> {
    if told.is_same(now) {
        return Vec::new();
    }
    let others = now.changes_since(told);
    let others: BTreeSet<&str> = others.iter().map(|other| other.path.as_str()).collect();
    let content = |tree: &Tree, path: &str| match &tree.get(path).ok()?.kind {
        NodeKind::File(content) => Some(content.clone()),
        NodeKind::Directory(_) | NodeKind::Link(_) => None,
    };
    let is_overtaken = |change: &&FileChange| {
        // Files are written through links, what else there is takes their place.
        let last = match change.node {
            FileNode::File(_) => LastLink::Follow,
            FileNode::Directory | FileNode::Removed => LastLink::Keep,
        };
        let Ok(path) = now.resolve(&change.path, last) else {
            return false;
        };
        let inside = format!("{path}/");
        let below = others.range(inside.as_str()..).next();
        let is_below = below.is_some_and(|other| other.starts_with(&inside));
        let is_there = now.get(&path).is_ok();
        match &change.node {
            FileNode::Directory => {
                others.contains(&*path) && now.get(&path).is_ok_and(|node| !node.is_directory())
            }
            FileNode::Removed => is_there && (is_below || others.contains(&*path)),
            FileNode::File(_) if is_below => true,
            FileNode::File(made) => {
                let theirs = content(now, &path);
                others.contains(&*path)
                    && theirs != content(told, &path)
                    && theirs.is_none_or(|theirs| theirs.as_slice() != made)
            }
        }
    };
    let overtaken = changes.iter().filter(is_overtaken);
    overtaken.map(|change| change.path.as_str()).collect()
}

/// `changes` without the permission bits that the program was told of the same
/// path: it has not set them, and the shell may have, meanwhile.
fn without_told_modes(told: &Tree, mut changes: Vec<FileChange>) -> Vec<FileChange> {
    for change in &mut changes {
        let told = told.get_followed(&change.path).ok();
        if told.is_some_and(|node| Some(node.mode) == change.mode) {
            change.mode = None;
        }
    }
    changes
}

/// Paths that a sentence about them names.
const NAMED: usize = 3;

/// Says which versions are lost to those of `program`.
fn overtaking(program: &str, paths: &[&str]) -> Option<String> {
    let more = paths.len().saturating_sub(NAMED);
    let mut named = paths[..paths.len() - more].join(", ");
    if more > 0 {
        named.push_str(&format!(" and {more} more"));
    }
    (!paths.is_empty()).then(|| {
        format!(
            "{program}: something else changed {named} while it ran; what {program} made of it has taken the place of that\n"
        )
    })
}

/// Applies what a program changed; one sentence for each change that failed.
pub(crate) fn apply(tree: &mut Tree, changes: Vec<FileChange>, now_us: u64) -> Vec<String> {
    let mut failures = Vec::new();
    for change in changes {
        let path = change.path;
        if !path.starts_with('/') || path.split('/').any(|name| name == "..") {
            failures.push(format!("{path}: not an absolute path without .."));
            continue;
        }
        let applied =
            apply_one(tree, &path, change.node, now_us).and_then(|()| match change.mode {
                Some(mode) => set_mode(tree, &path, mode),
                None => Ok(()),
            });
        if let Err(error) = applied {
            failures.push(format!("{path}: {error}"));
        }
    }
    failures
}

/// Sets the permission bits of a file that has others.
fn set_mode(tree: &mut Tree, path: &str, mode: u32) -> Result<(), TreeError> {
    let path = tree.resolve(path, LastLink::Follow)?.into_owned();
    let node = tree.get(&path)?;
    if !matches!(node.kind, NodeKind::File(_)) || node.mode == mode {
        return Ok(());
    }
    tree.set_mode(&path, mode)
}

fn apply_one(tree: &mut Tree, path: &str, node: FileNode, now_us: u64) -> Result<(), TreeError> {
    match node {
        FileNode::Removed => match tree.remove_all(path, now_us) {
            Err(TreeError::NotFound) => Ok(()),
            other => other,
        },
        FileNode::Directory => match tree.get(path) {
            Ok(node) if node.is_directory() => Ok(()),
            Ok(_) => {
                tree.remove(path, now_us)?;
                tree.make_directories(path, now_us)
            }
            Err(_) => tree.make_directories(path, now_us),
        },
        FileNode::File(content) => {
            let target = tree.resolve(path, LastLink::Follow)?.into_owned();
            if tree.get(&target).is_ok_and(|node| node.is_directory()) {
                tree.remove_all(&target, now_us)?;
            }
            tree.write_with_parents(&target, Content::from(content), now_us)
        }
    }
}

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod builtin {
    //! The builtin that bashkit calls for a lent program.

    use std::future::poll_fn;
    use std::pin::{Pin, pin};
    use std::rc::Rc;

    use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
    use bytes::Bytes;

    use super::{BTreeMap, RefCell, Seen, Tree, apply, overtaken, overtaking, without_told_modes};
    use crate::environment::{ProgramFiles, ProgramPort, ProgramRequest, ProgramResult, Scope};
    use crate::memory::clock::{self, Timeline};
    use crate::memory::local::Local;

    /// What all lent programs of one environment share.
    pub(crate) struct Lender {
        pub(crate) environment: u32,
        pub(crate) tree: Rc<RefCell<Tree>>,
        pub(crate) port: Rc<dyn ProgramPort>,
        pub(crate) seen: Seen,
    }

    /// One lent program.
    pub(crate) struct LentProgram {
        name: String,
        lender: Local<Rc<Lender>>,
    }

    impl LentProgram {
        pub(crate) fn new(name: String, lender: Rc<Lender>) -> Self {
            Self {
                name,
                lender: Local::new(lender),
            }
        }
    }

    /// Counts real time while it lives.
    struct Outside(Rc<Timeline>);

    impl Drop for Outside {
        fn drop(&mut self) {
            self.0.leave_outside();
        }
    }

    async fn run(
        lender: &Lender,
        timeline: &Rc<Timeline>,
        scope: &Scope,
        request: ProgramRequest,
    ) -> ProgramResult {
        timeline.enter_outside();
        let _outside = Outside(timeline.clone());
        // The program is cancelled by its own signal at the time limit, the
        // timer by its own once the program has ended; both are waited for. A
        // `timeout` around the program looks at the clock when it is polled.
        let (program_cancel, _program_guard) = scope.cancel.child();
        let (timer_cancel, _timer_guard) = scope.cancel.child();
        let owned = |cancel| Scope {
            agent: scope.agent.clone(),
            cancel,
            ..scope.clone()
        };
        let (program_scope, timer_scope) =
            (owned(program_cancel.clone()), owned(timer_cancel.clone()));
        let mut program = pin!(lender.port.run(&program_scope, request));
        let start_timer = || {
            let limit_ms = timeline.until_deadline_us().div_ceil(1_000);
            Box::pin(lender.port.sleep(&timer_scope, limit_ms))
        };
        let mut timer = Some(start_timer());
        poll_fn(|cx| {
            while let Some(running) = &mut timer
                && running.as_mut().poll(cx).is_ready()
            {
                timeline.count_outside();
                let is_over = timeline.remaining_us() == 0 || timer_cancel.is_cancelled();
                if timeline.remaining_us() == 0 {
                    program_cancel.cancel();
                }
                timer = (!is_over).then(&start_timer);
            }
            let polled = program.as_mut().poll(cx);
            if polled.is_ready() {
                timer_cancel.cancel();
            }
            polled
        })
        .await
    }

    /// Has a program told everything at its next call, unless it ended.
    struct Unfinished {
        lender: Rc<Lender>,
        name: String,
        ended: bool,
    }

    impl Drop for Unfinished {
        fn drop(&mut self) {
            if !self.ended {
                self.lender.seen.forget(&self.name);
            }
        }
    }

    /// Calls the program, a second time if it lacks the files that the first
    /// call built on, and puts what it changed into the tree.
    async fn call(
        lender: Rc<Lender>,
        timeline: Rc<Timeline>,
        scope: Scope,
        mut request: ProgramRequest,
    ) -> ExecResult {
        let name = request.name.clone();
        let mut unfinished = Unfinished {
            lender: lender.clone(),
            name: name.clone(),
            ended: false,
        };
        let (result, told) = loop {
            let told = lender.seen.tell(&name, &lender.tree.borrow());
            let may_miss = told.since.is_some();
            request.since = told.since;
            request.state = told.state;
            request.changes = told.changes;
            let tree = told.tree;
            let asked = request.clone();
            let result = run(&lender, &timeline, &scope, asked).await;
            if result.files != ProgramFiles::Missing || !may_miss {
                break (result, tree);
            }
            lender.seen.forget(&name);
        };
        if result.stdout.is_empty() && result.stderr.is_empty() {
            timeline.end_last_words();
        }
        let mut stderr = result.stderr.to_vec();
        let now_us = timeline.peek_us();
        let changes = without_told_modes(&told, result.changes);
        let lost = overtaking(&name, &overtaken(&told, &lender.tree.borrow(), &changes));
        let failures = apply(&mut lender.tree.borrow_mut(), changes.clone(), now_us);
        if failures.is_empty() && result.files == ProgramFiles::Kept {
            unfinished.ended = true;
            lender.seen.changed(&name, request.state, changes, now_us);
        }
        stderr.extend_from_slice(lost.unwrap_or_default().as_bytes());
        for failure in &failures {
            stderr.extend_from_slice(format!("{name}: cannot keep {failure}\n").as_bytes());
        }
        let mut output = ExecResult::ok_bytes(result.stdout.to_vec());
        output.stderr = stderr.into();
        output.exit_code = match result.exit_code {
            0 if !failures.is_empty() => 1,
            code => code,
        };
        output
    }

    #[async_trait]
    impl Builtin for LentProgram {
        async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
            let future = {
                let Some((timeline, scope)) = clock::current()
                    .and_then(|timeline| timeline.scope().map(|scope| (timeline, scope)))
                else {
                    return Ok(ExecResult::err(
                        format!("{}: no command is running\n", self.name),
                        126,
                    ));
                };
                let lender = Rc::clone(&self.lender);
                let request = ProgramRequest {
                    environment: lender.environment,
                    name: self.name.clone(),
                    args: ctx.args.to_vec(),
                    env: ctx
                        .env
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone()))
                        .collect::<BTreeMap<_, _>>(),
                    working_dir: ctx.cwd.to_string_lossy().into_owned(),
                    stdin: Bytes::copy_from_slice(ctx.stdin_bytes().unwrap_or_default()),
                    ..ProgramRequest::default()
                };
                let future: Pin<Box<dyn Future<Output = ExecResult>>> =
                    Box::pin(call(lender, timeline, scope, request));
                Local::new(future)
            };
            Ok(future.await)
        }
    }
}

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(crate) use builtin::{Lender, LentProgram};

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::memory::tree::FILE_MODE;

    fn tree_with(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::new(TreeLimits::default());
        for (path, content) in files {
            tree.write_with_parents(path, Content::from(content.as_bytes()), 1)
                .unwrap();
        }
        tree
    }

    fn file(path: &str, content: &'static [u8]) -> FileChange {
        FileChange::new(path, FileNode::File(Bytes::from_static(content)))
    }

    fn removed(path: &str) -> FileChange {
        FileChange::new(path, FileNode::Removed)
    }

    fn told(seen: &Seen, tree: &Tree) -> (Option<u64>, u64, Vec<String>) {
        let told = seen.tell("p", tree);
        let changes = told.changes.into_iter().map(|change| match change.node {
            FileNode::File(content) => {
                format!("{} = {}", change.path, String::from_utf8_lossy(&content))
            }
            FileNode::Directory => format!("{}/", change.path),
            FileNode::Removed => format!("{} removed", change.path),
        });
        (told.since, told.state, changes.collect())
    }

    fn known<const N: usize>(
        since: Option<u64>,
        state: u64,
        changes: [&str; N],
    ) -> (Option<u64>, u64, Vec<String>) {
        (since, state, changes.map(str::to_owned).to_vec())
    }

    #[test]
    fn a_program_is_told_everything_once_and_then_changes() {
        let seen = Seen::default();
        let mut tree = tree_with(&[("/w/a", "1"), ("/w/b", "2")]);
        tree.link("/w/l", "a", 1).unwrap();
        assert_eq!(
            told(&seen, &tree),
            known(None, 1, ["/w/", "/w/a = 1", "/w/b = 2", "/w/l = 1"])
        );
        assert_eq!(told(&seen, &tree), known(Some(1), 2, []));
        tree.remove("/w/b", 1).unwrap();
        tree.make_directory("/w/b", 1).unwrap();
        tree.write("/w/a", Content::from(&b"3"[..]), 1).unwrap();
        assert_eq!(told(&seen, &tree), known(Some(2), 3, ["/w/a = 3", "/w/b/"]));
        seen.forget("p");
        let (since, _, changes) = told(&seen, &tree);
        assert_eq!((since, changes.len()), (None, 4));
    }

    #[test]
    fn a_program_knows_its_own_changes_whatever_becomes_of_them() {
        let seen = Seen::default();
        let mut tree = tree_with(&[("/w/a", "1")]);
        let (_, state, _) = told(&seen, &tree);
        // Somebody else works on the tree while the program runs.
        tree.write("/w/a", Content::from(&b"2"[..]), 1).unwrap();
        let changes = vec![file("/w/kept", b"k"), file("/w/undone", b"u")];
        assert!(apply(&mut tree, changes.clone(), 2).is_empty());
        seen.changed("p", state, changes, 2);
        tree.remove("/w/undone", 3).unwrap();
        assert_eq!(
            told(&seen, &tree),
            known(Some(1), 2, ["/w/a = 2", "/w/undone removed"])
        );
    }

    #[test]
    fn a_program_on_the_path_is_no_news() {
        let seen = Seen::default();
        let mut tree = tree_with(&[("/usr/local/bin/own", "1")]);
        put_on_path(&mut tree, "p", 1);
        put_on_path(&mut tree, "own", 1);
        put_on_path(&mut tree, "a/b", 1);
        assert_eq!(
            tree.read("/usr/local/bin/p").unwrap().as_slice(),
            b"#!/bin/sh\nexec p \"$@\"\n"
        );
        let told = told(&seen, &tree).2;
        assert_eq!(
            told,
            [
                "/usr/",
                "/usr/local/",
                "/usr/local/bin/",
                "/usr/local/bin/own = 1"
            ]
        );
    }

    #[test]
    fn after_overlapping_calls_everything_is_told() {
        let seen = Seen::default();
        let tree = tree_with(&[("/w/a", "1")]);
        let (_, first, _) = told(&seen, &tree);
        let (_, second, _) = told(&seen, &tree);
        seen.changed("p", second, Vec::new(), 1);
        assert_eq!(told(&seen, &tree), known(Some(second), 3, []));
        seen.changed("p", first, vec![file("/w/b", b"2")], 1);
        assert_eq!(told(&seen, &tree), known(None, 4, ["/w/", "/w/a = 1"]));
    }

    #[test]
    fn permission_bits_are_told_and_kept() {
        let seen = Seen::default();
        let mut tree = tree_with(&[("/w/run", "1"), ("/w/text", "2"), ("/w/kept", "3")]);
        tree.set_mode("/w/run", 0o755).unwrap();
        tree.set_mode("/w/kept", 0o700).unwrap();
        tree.link("/w/link", "run", 1).unwrap();
        let told = seen.tell("p", &tree);
        let modes = told.changes.iter().filter_map(|change| change.mode);
        // By path: kept, link, run, text.
        assert_eq!(modes.collect::<Vec<_>>(), [0o700, 0o755, 0o755, FILE_MODE]);
        let with = |change: FileChange, mode| FileChange {
            mode: Some(mode),
            ..change
        };
        let changes = vec![
            removed("/w/run"),
            with(file("/w/moved", b"1"), 0o755),
            file("/w/kept", b"4"),
            with(file("/w/text", b"2"), 0o17_7600),
            file("/w/new", b"5"),
        ];
        assert!(apply(&mut tree, changes.clone(), 2).is_empty());
        let modes = ["moved", "kept", "text", "new"].map(|name| {
            let node = tree.get(&format!("/w/{name}")).unwrap();
            (name, node.mode)
        });
        assert_eq!(
            modes,
            [
                ("moved", 0o755),
                ("kept", 0o700),
                ("text", 0o7600),
                ("new", FILE_MODE)
            ]
        );
        // The program knows them; what the shell changes is news.
        seen.changed("p", told.state, changes, 2);
        tree.remove("/w/link", 3).unwrap();
        tree.set_mode("/w/new", 0o755).unwrap();
        let told = seen.tell("p", &tree);
        let news = told
            .changes
            .iter()
            .map(|change| (&*change.path, change.mode));
        assert_eq!(
            news.collect::<Vec<_>>(),
            [("/w/link", None), ("/w/new", Some(0o755))]
        );
    }

    #[test]
    fn permission_bits_that_a_program_was_told_are_not_set_again() {
        let mut told = tree_with(&[("/w/a", "1"), ("/w/b", "1")]);
        told.set_mode("/w/b", 0o755).unwrap();
        let with = |path, mode| FileChange {
            mode: Some(mode),
            ..file(path, b"2")
        };
        let changes = vec![
            with("/w/a", FILE_MODE),
            with("/w/b", FILE_MODE),
            with("/w/new", 0o755),
        ];
        let modes = without_told_modes(&told, changes).into_iter();
        assert_eq!(
            modes.map(|change| change.mode).collect::<Vec<_>>(),
            [None, Some(FILE_MODE), Some(0o755)]
        );
    }

    #[test]
    fn who_is_overtaken() {
        let told = tree_with(&[
            ("/w/both", "1"),
            ("/w/same", "1"),
            ("/w/mode", "1"),
            ("/w/gone", "1"),
            ("/w/mine", "1"),
            ("/w/d/x", "1"),
            ("/w/e/x", "1"),
            ("/w/linked", "1"),
        ]);
        let mut now = told.clone();
        now.link("/w/link", "linked", 2).unwrap();
        let put = |tree: &mut Tree, path: &str, text: &str| {
            tree.write_with_parents(path, Content::from(text.as_bytes()), 2)
                .unwrap();
        };
        put(&mut now, "/w/both", "theirs");
        put(&mut now, "/w/same", "alike");
        put(&mut now, "/w/new", "theirs");
        put(&mut now, "/w/d/theirs", "1");
        put(&mut now, "/w/linked", "theirs");
        put(&mut now, "/w/alone", "theirs");
        put(&mut now, "/w/dir", "a file");
        now.set_mode("/w/mode", 0o755).unwrap();
        now.remove("/w/gone", 2).unwrap();
        let changes = [
            removed("/w/e"),
            removed("/w/d"),
            removed("/w/gone"),
            FileChange::new("/w/dir", FileNode::Directory),
            FileChange::new("/w", FileNode::Directory),
            file("/w/both", b"mine"),
            file("/w/same", b"alike"),
            file("/w/mode", b"mine"),
            file("/w/mine", b"mine"),
            file("/w/new", b"mine"),
            file("/w/link", b"mine"),
        ];
        assert_eq!(
            overtaken(&told, &now, &changes),
            ["/w/d", "/w/dir", "/w/both", "/w/new", "/w/link"]
        );
        assert_eq!(
            overtaken(&told, &now, &[file("/w/gone", b"mine"), removed("/w/both")]),
            ["/w/gone", "/w/both"]
        );
        assert_eq!(overtaken(&now, &now, &changes), Vec::<&str>::new());
        // A link that is removed takes nothing from what it led to.
        let mut linked = told.clone();
        linked.link("/w/link", "linked", 1).unwrap();
        assert_eq!(
            overtaken(&linked, &now, &[removed("/w/link")]),
            Vec::<&str>::new()
        );
    }

    #[test]
    fn what_is_said_of_the_overtaken() {
        assert_eq!(overtaking("p", &[]), None);
        assert_eq!(
            overtaking("p", &["/a", "/b", "/c", "/d", "/e"]).as_deref(),
            Some(
                "p: something else changed /a, /b, /c and 2 more while it ran; what p made of it has taken the place of that\n"
            )
        );
    }

    #[test]
    fn changes_apply_in_order_and_bad_paths_are_named() {
        let mut tree = tree_with(&[("/w/a", "1"), ("/w/d/x", "2")]);
        let failures = apply(
            &mut tree,
            vec![
                file("/w/a", b"first"),
                file("/w/a", b"last"),
                file("/w/new/deep", b"n"),
                file("/w/d", b"now a file"),
                removed("/w/none"),
                file("relative", b"x"),
                file("/w/../etc/x", b"x"),
                removed("/"),
            ],
            2,
        );
        assert_eq!(
            failures,
            [
                "relative: not an absolute path without ..",
                "/w/../etc/x: not an absolute path without ..",
                "/: the root cannot be removed",
            ]
        );
        assert_eq!(tree.read("/w/a").unwrap().as_slice(), b"last");
        assert_eq!(tree.read("/w/new/deep").unwrap().as_slice(), b"n");
        assert_eq!(tree.read("/w/d").unwrap().as_slice(), b"now a file");
    }
}
