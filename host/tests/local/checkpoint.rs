//! Checkpoints: changes of tools and of commands, noted and undone.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use hermitcrab_host::checkpoint::{
    CheckpointStore, Checkpointed, Limits, Restored, UndoError, unsuited,
};
use hermitcrab_host::{CancellationToken, ExecIo, HostEnvironment, LocalEnvironment};
use tempfile::TempDir;

use crate::command;

/// A tree with its checkpoints elsewhere.
struct Place {
    root: TempDir,
    limits: Limits,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let work = root.path().join("work");
        fs::create_dir_all(work.join("src")).unwrap();
        fs::create_dir_all(work.join("target")).unwrap();
        fs::write(work.join(".gitignore"), "target/\n").unwrap();
        fs::write(work.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(work.join("src/b.rs"), "fn b() {}\r\n").unwrap();
        fs::write(work.join("run.sh"), "#!/bin/sh\n").unwrap();
        fs::set_permissions(work.join("run.sh"), Permissions::from_mode(0o755)).unwrap();
        symlink("src/a.rs", work.join("link")).unwrap();
        Self {
            root,
            limits: Limits::default(),
        }
    }

    fn work(&self) -> PathBuf {
        fs::canonicalize(self.root.path().join("work")).unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work().join(name)
    }

    fn store(&self) -> CheckpointStore {
        CheckpointStore::new(self.root.path().join("checkpoints"), self.limits)
    }

    fn open(&self, id: &str) -> Checkpointed {
        let local = LocalEnvironment::new(self.work()).unwrap();
        let checkpoints = self.store().begin(Some(id), &self.work()).unwrap();
        let environment = Checkpointed::new(local, checkpoints);
        environment.answered();
        environment
    }

    fn undo(&self, from: Option<u64>, partly: bool) -> Result<Restored, UndoError> {
        let found = self.store().newest(&self.work(), None).unwrap();
        found.ok_or(UndoError::Nothing)?.undo(from, partly)
    }

    /// Everything but what is ignored: modes, links and contents.
    fn tree(&self) -> BTreeMap<PathBuf, (u32, String)> {
        let walk = ignore::WalkBuilder::new(self.work()).hidden(false).build();
        let entries = walk.flatten().filter(|entry| entry.depth() > 0);
        entries
            .map(|entry| {
                let path = entry.into_path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let content = match () {
                    () if metadata.is_symlink() => {
                        format!("-> {}", fs::read_link(&path).unwrap().display())
                    }
                    () if metadata.is_dir() => "directory".to_owned(),
                    () => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
                };
                (path, (metadata.mode(), content))
            })
            .collect()
    }
}

async fn run(environment: &Checkpointed, line: &str) {
    let mut output = |_, _| ();
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let ran = tokio::time::timeout(Duration::from_secs(60), environment.exec(command(line), io));
    let status = ran.await.expect("no hang").unwrap();
    assert_eq!(status.exit_code, 0, "{line}");
}

/// Begins a command and lets go of it when it has made the file `cut`.
async fn cut_off(environment: &Checkpointed, place: &Place) {
    let mut output = |_, _| ();
    let io = ExecIo {
        output: &mut output,
        cancel: CancellationToken::new(),
    };
    let made = place.path("cut");
    let cut = environment.exec(command("echo cut > cut; sleep 100"), io);
    let until = async {
        while !made.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        _ = cut => panic!("it sleeps"),
        () = until => {}
    }
}

async fn write(environment: &Checkpointed, path: &str, content: &'static str) {
    let content = Bytes::from_static(content.as_bytes());
    environment.write(path, content).await.unwrap();
}

/// What `lines` do is undone exactly, round by round.
async fn check_commands(lines: &[&str]) {
    let place = Place::new();
    let mut trees = vec![place.tree()];
    let environment = place.open("s");
    for line in lines {
        run(&environment, line).await;
        trees.push(place.tree());
        environment.answered();
    }
    drop(environment);
    trees.pop();
    for (round, tree) in trees.iter().enumerate().rev() {
        let restored = place.undo(None, false).unwrap();
        assert_eq!(restored.not, [], "{lines:?}");
        assert_eq!(restored.uncovered, Vec::<String>::new());
        assert_eq!(place.tree(), *tree, "{lines:?} {round}");
    }
    assert_eq!(place.undo(None, false), Err(UndoError::Nothing));
}

#[tokio::test]
async fn what_commands_do_is_undone() {
    check_commands(&["echo more >> src/a.rs"]).await;
    check_commands(&["rm -r src", "mkdir src && echo new > src/a.rs"]).await;
    check_commands(&[
        "mv src lib",
        "sed -i s/fn/pub/ lib/a.rs lib/b.rs",
        "rm lib/a.rs",
    ])
    .await;
    check_commands(&[
        "chmod 600 run.sh; chmod 700 src",
        "rm link; ln -s nowhere link",
    ])
    .await;
    check_commands(&["rm run.sh && mkdir run.sh && echo x > run.sh/x"]).await;
    check_commands(&["mkdir -p a/b/c && touch a/b/c/d", "rm -r a && echo a > a"]).await;
    // A directory that is read-only comes back with what is in it.
    check_commands(&["chmod 555 src", "chmod 755 src; rm -r src"]).await;
    // The same size within the same tick of the clock.
    check_commands(&[
        "printf 'fn x() {}\\n' > src/a.rs",
        "printf 'fn y() {}\\n' > src/a.rs",
    ])
    .await;
    // Times that lie.
    check_commands(&[
        "touch -r src/a.rs t; printf 'fn z() {}\\n' > src/a.rs; touch -r t src/a.rs; rm t",
    ])
    .await;
}

#[tokio::test]
async fn what_tools_do_is_undone() {
    let place = Place::new();
    let before = place.tree();
    let environment = place.open("s");
    write(&environment, "src/a.rs", "changed\n").await;
    write(&environment, "link", "through the link\n").await;
    write(&environment, "new/deep/file", "new\n").await;
    environment.rename("src/b.rs", "moved/b.rs").await.unwrap();
    environment.remove("run.sh").await.unwrap();
    environment.make_dir("empty/dir").await.unwrap();
    environment.answered();
    let first = place.tree();
    environment.remove("src").await.unwrap();
    environment.rename("new", "newer").await.unwrap();
    // And a command between.
    run(&environment, "echo x > newer/x").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(place.tree(), first);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn rounds_are_undone_together_and_listed() {
    let place = Place::new();
    let before = place.tree();
    let environment = place.open("s");
    write(&environment, "one", "1").await;
    environment.answered();
    environment.answered();
    run(&environment, "echo 3 > three\n# more of it").await;
    drop(environment);
    let checkpoints = place.store().newest(&place.work(), None).unwrap().unwrap();
    let steps: Vec<_> = checkpoints
        .steps()
        .into_iter()
        .map(|step| (step.round, step.paths.len(), step.by.join(" ")))
        .collect();
    assert_eq!(
        steps,
        [
            (1, 1, "file tools".to_owned()),
            (3, 1, "`echo 3 > three…`".to_owned())
        ]
    );
    drop(checkpoints);
    assert_eq!(place.undo(Some(4), false), Err(UndoError::Nothing));
    assert_eq!(place.undo(Some(1), false).unwrap().paths.len(), 2);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn what_others_changed_stays() {
    let place = Place::new();
    let environment = place.open("s");
    run(
        &environment,
        "echo agent > src/a.rs; echo agent > src/b.rs; echo agent > c; rm run.sh",
    )
    .await;
    drop(environment);
    fs::write(place.path("src/a.rs"), "mine\n").unwrap();
    fs::write(place.path("run.sh"), "mine\n").unwrap();
    fs::remove_file(place.path("c")).unwrap();
    let now = place.tree();
    let Err(UndoError::Refused(left)) = place.undo(None, false) else {
        panic!("refused");
    };
    let left: Vec<_> = left
        .iter()
        .map(|left| (left.path.rsplit('/').next().unwrap(), left.why.as_str()))
        .collect();
    assert_eq!(
        left,
        [
            ("run.sh", "there is a file again"),
            ("a.rs", "it was changed since")
        ]
    );
    assert_eq!(place.tree(), now);
    let restored = place.undo(None, true).unwrap();
    assert_eq!(restored.not.len(), 2);
    assert_eq!(fs::read(place.path("src/b.rs")).unwrap(), b"fn b() {}\r\n");
    assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"mine\n");
    // It can be tried again once they are out of the way.
    fs::remove_file(place.path("run.sh")).unwrap();
    fs::write(place.path("src/a.rs"), "agent\n").unwrap();
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"fn a() {}\n");
    assert_eq!(fs::read(place.path("run.sh")).unwrap(), b"#!/bin/sh\n");
}

#[tokio::test]
async fn an_owner_that_a_command_gives_comes_back() {
    if !nix::unistd::geteuid().is_root() {
        println!("an_owner_that_a_command_gives_comes_back: only root gives files away");
        return;
    }
    let place = Place::new();
    let owner = |name: &str| {
        let metadata = fs::symlink_metadata(place.path(name)).unwrap();
        (metadata.uid(), metadata.gid())
    };
    let names = ["src/a.rs", "src", "run.sh"];
    let before = names.map(owner);
    let environment = place.open("s");
    run(
        &environment,
        "chown 1234:1234 src/a.rs src; echo 2 >> run.sh; chown 1234 run.sh",
    )
    .await;
    drop(environment);
    assert_ne!(names.map(owner), before);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(names.map(owner), before);
}

#[tokio::test]
async fn commands_side_by_side_are_noted_and_undone() {
    let place = Place::new();
    let before = place.tree();
    let environment = place.open("s");
    // Each waits for what the other one does.
    let wait = "for i in $(seq 600); do [ -e $f ] && break; sleep 0.1; done; [ -e $f ]";
    let one = format!("echo 1 > one; f=two; {wait}; echo 1 >> src/a.rs");
    let two = format!("f=one; {wait}; echo 2 > two; rm src/b.rs");
    futures_util::future::join(run(&environment, &one), run(&environment, &two)).await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn what_a_command_did_that_was_cut_off_is_noted_with_the_next() {
    let place = Place::new();
    let before = place.tree();
    let environment = place.open("s");
    cut_off(&environment, &place).await;
    run(&environment, "true").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn what_changes_while_a_command_is_in_the_background_is_not_the_agents() {
    let place = Place::new();
    let environment = place.open("s");
    let served = run(
        &environment,
        "echo 1 > made; while [ ! -e stop ]; do sleep 0.02; done; echo 2 > made",
    );
    let meanwhile = async {
        // Not only until it is there: its text would come while the next command works.
        while fs::read(place.path("made")).ok().as_deref() != Some(b"1\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        environment.answered();
        fs::write(place.path("src/a.rs"), "mine\n").unwrap();
        run(&environment, "echo agent > src/b.rs").await;
        environment.answered();
        fs::write(place.path("src/a.rs"), "mine, too\n").unwrap();
        fs::write(place.path("stop"), "").unwrap();
    };
    futures_util::future::join(served, meanwhile).await;
    drop(environment);
    let undone = place.undo(None, false).unwrap();
    assert_eq!(undone.paths.len(), 1);
    assert_eq!(undone.uncovered.len(), 1, "{:?}", undone.uncovered);
    assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"mine, too\n");
    assert_eq!(fs::read(place.path("src/b.rs")).unwrap(), b"fn b() {}\r\n");
    assert_eq!(fs::read(place.path("made")).unwrap(), b"2\n");
}

#[tokio::test]
async fn changes_of_others_between_commands_are_theirs() {
    let place = Place::new();
    let environment = place.open("s");
    run(&environment, "true").await;
    fs::write(place.path("src/a.rs"), "mine\n").unwrap();
    run(&environment, "echo agent > src/b.rs").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().paths.len(), 1);
    assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"mine\n");
    assert_eq!(fs::read(place.path("src/b.rs")).unwrap(), b"fn b() {}\r\n");
}

#[tokio::test]
async fn ignored_files_and_the_repository_are_left_alone() {
    let place = Place::new();
    fs::create_dir(place.path(".git")).unwrap();
    let environment = place.open("s");
    run(
        &environment,
        "echo x > target/x; echo x > .git/x; mkdir out; echo x > out/y",
    )
    .await;
    fs::write(place.path(".gitignore"), "target/\nout/\n").unwrap();
    drop(environment);
    fs::write(place.path("out/ignored"), "mine\n").unwrap();
    let restored = place.undo(None, true).unwrap();
    assert!(place.path("target/x").exists());
    assert!(place.path(".git/x").exists());
    // A directory with something of others in it stays, and is named.
    assert!(!place.path("out/y").exists());
    assert!(place.path("out/ignored").exists());
    assert_eq!(restored.not.len(), 1, "{restored:?}");
}

#[tokio::test]
async fn limits_are_said() {
    let check = async |limits: Limits, line: &str, expected: &str| {
        let mut place = Place::new();
        fs::write(place.path("large"), vec![b'x'; 50_000]).unwrap();
        place.limits = limits;
        let environment = place.open("s");
        run(&environment, line).await;
        write(&environment, "src/a.rs", "by a tool\n").await;
        drop(environment);
        let restored = place.undo(None, true).unwrap();
        let said = format!("{restored:?}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"fn a() {}\n");
    };
    let usual = Limits::default();
    let few = Limits { files: 3, ..usual };
    check(few, "echo x > y", "more than 3 files").await;
    let no_time = Limits {
        scan: Duration::ZERO,
        ..usual
    };
    check(no_time, "echo x > y", "more than 0 ms").await;
    let small = Limits {
        file_bytes: 40_000,
        ..usual
    };
    check(small, "echo x > large", "which are not kept").await;
    let tight = Limits {
        session_bytes: 40_000,
        ..usual
    };
    check(tight, "echo x > large", "its content was not kept").await;
}

#[tokio::test]
async fn old_checkpoints_go_and_empty_ones_too() {
    let mut place = Place::new();
    place.limits = Limits {
        session_bytes: 20_000,
        total_bytes: 50_000,
        ..Limits::default()
    };
    let sessions = || {
        fs::read_dir(place.root.path().join("checkpoints"))
            .unwrap()
            .count()
    };
    let environment = place.open("nothing");
    run(&environment, "true").await;
    drop(environment);
    assert_eq!(sessions(), 0);
    let text: &'static str = "x".repeat(15_000).leak();
    for id in ["a", "b", "c", "d", "e"] {
        let environment = place.open(id);
        // Each keeps what the one before has written.
        write(
            &environment,
            "big",
            &text[..15_000 - id.as_bytes()[0] as usize],
        )
        .await;
        drop(environment);
    }
    // One whose lock somebody still holds for a moment is left for the next time.
    assert!((2..=4).contains(&sessions()), "{}", sessions());
}

#[tokio::test]
async fn a_session_that_goes_on_counts_on_and_one_that_works_is_left() {
    let place = Place::new();
    let environment = place.open("s");
    write(&environment, "one", "1").await;
    let error = place.store().newest(&place.work(), None).err().unwrap();
    assert!(
        error.to_string().contains("a session is working there"),
        "{error}"
    );
    drop(environment);
    // Half a line, as a kill leaves it.
    let log = place.root.path().join("checkpoints/s/changes.jsonl");
    let mut text = fs::read(&log).unwrap();
    text.extend_from_slice(b"{\"change\":{\"rou");
    fs::write(&log, text).unwrap();
    let environment = place.open("s");
    write(&environment, "two", "2").await;
    drop(environment);
    let checkpoints = place.store().newest(&place.work(), None).unwrap().unwrap();
    let rounds: Vec<u64> = checkpoints.steps().iter().map(|step| step.round).collect();
    assert_eq!(rounds, [1, 2]);
    let mode = fs::metadata(&log).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0);
}

#[tokio::test]
async fn hard_links_stay_together() {
    let place = Place::new();
    fs::hard_link(place.path("src/a.rs"), place.path("src/same.rs")).unwrap();
    let environment = place.open("s");
    run(&environment, "echo changed > src/a.rs").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(fs::read(place.path("src/same.rs")).unwrap(), b"fn a() {}\n");
    assert_eq!(fs::metadata(place.path("src/a.rs")).unwrap().nlink(), 2);
}

#[test]
fn homes_and_the_root_are_not_suited() {
    let home = fs::canonicalize(std::env::home_dir().unwrap()).unwrap();
    assert!(unsuited(Path::new("/")).is_some());
    assert!(unsuited(&home).is_some());
    assert!(unsuited(home.parent().unwrap()).is_some());
    assert!(unsuited(&home.join("project")).is_none());
}

/// After `line` and an undo of what can be, a file with `content` is still at one of
/// `places`, and the undo did not pass it over in silence.
async fn check_only_copy(line: &str, places: &[&str], content: &str) {
    let mut place = Place::new();
    place.limits.file_bytes = 1_000;
    fs::write(place.path("target/only"), "only\n").unwrap();
    fs::write(place.path("large"), "l".repeat(2_000)).unwrap();
    fs::write(place.root.path().join("outside"), "outside\n").unwrap();
    // What is younger than a tick of a file system's clock cannot be told from new.
    std::thread::sleep(Duration::from_millis(40));
    let environment = place.open("s");
    run(&environment, line).await;
    drop(environment);
    let said = match place.undo(None, false) {
        Err(error) => {
            assert!(matches!(error, UndoError::Refused(_)), "{line}: {error:?}");
            true
        }
        Ok(restored) => !restored.uncovered.is_empty(),
    };
    assert!(said, "{line}");
    let _ = place.undo(None, true);
    let found = places
        .iter()
        .filter_map(|name| fs::read_to_string(place.path(name)).ok());
    assert!(found.into_iter().any(|text| text == content), "{line}");
}

#[tokio::test]
async fn what_was_not_looked_at_before_is_never_removed() {
    check_only_copy("mv target/only found", &["found"], "only\n").await;
    check_only_copy("mv target built", &["built/only"], "only\n").await;
    check_only_copy("> .gitignore", &["target/only"], "only\n").await;
    check_only_copy("mv ../outside inside", &["inside"], "outside\n").await;
    let large = "l".repeat(2_000);
    check_only_copy("mv large larger", &["large", "larger"], &large).await;
    check_only_copy("mv large larger; echo small > large", &["larger"], &large).await;
    check_only_copy(
        "echo 1 > $'\\xff'; mv target/only $'\\xfe'; mv $'\\xfe' found",
        &["found"],
        "only\n",
    )
    .await;
}

#[tokio::test]
async fn what_undoing_takes_away_is_kept() {
    let place = Place::new();
    let environment = place.open("s");
    run(&environment, "echo new > new; echo changed > src/a.rs").await;
    drop(environment);
    let restored = place.undo(None, false).unwrap();
    let kept = restored.kept.expect("a place");
    let below = |name: &str| {
        let path = place.path(name);
        kept.join(path.strip_prefix("/").unwrap())
    };
    assert_eq!(fs::read(below("new")).unwrap(), b"new\n");
    assert_eq!(fs::read(below("src/a.rs")).unwrap(), b"changed\n");
    assert_eq!(fs::read(place.path("src/a.rs")).unwrap(), b"fn a() {}\n");
    // Until the session is deleted.
    place.store().delete("s").unwrap();
    assert!(!kept.exists());
}

#[tokio::test]
async fn a_directory_that_became_a_link_leads_nowhere() {
    let place = Place::new();
    let outside = place.root.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.rs"), "outside\n").unwrap();
    let environment = place.open("s");
    // What is there behind the link is what the session left here.
    run(&environment, "echo outside > src/a.rs; rm src/b.rs").await;
    drop(environment);
    fs::rename(place.path("src"), place.root.path().join("moved")).unwrap();
    symlink(&outside, place.path("src")).unwrap();
    let Err(UndoError::Refused(left)) = place.undo(None, false) else {
        panic!("refused");
    };
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(left[0].why, "a directory above it is a link now");
    let restored = place.undo(None, true).unwrap();
    assert_eq!(restored.not.len(), 2);
    assert_eq!(fs::read(outside.join("a.rs")).unwrap(), b"outside\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[tokio::test]
async fn a_command_that_was_killed_with_its_session_is_said() {
    let place = Place::new();
    let environment = place.open("s");
    write(&environment, "one", "1").await;
    environment.answered();
    cut_off(&environment, &place).await;
    // Nothing is cleaned up, as after a kill.
    drop(environment);
    let restored = place.undo(Some(1), false).unwrap();
    let [why] = &*restored.uncovered else {
        panic!("{restored:?}");
    };
    assert!(why.contains("the session was killed while it ran"), "{why}");
}

#[tokio::test]
async fn a_file_behind_a_link_to_nowhere_is_noted() {
    let place = Place::new();
    symlink("made", place.path("dangling")).unwrap();
    let before = place.tree();
    let environment = place.open("s");
    write(&environment, "dangling", "new\n").await;
    assert!(place.path("made").exists());
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().not, []);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn only_rules_of_git_in_the_repository_leave_files_out() {
    let place = Place::new();
    fs::create_dir(place.path(".git")).unwrap();
    fs::write(place.root.path().join(".gitignore"), "*\n").unwrap();
    fs::write(place.path(".ignore"), "src/\n").unwrap();
    let before = place.tree();
    let environment = place.open("s");
    run(&environment, "echo changed > src/a.rs; echo x > run.sh").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().paths.len(), 2);
    assert_eq!(place.tree(), before);
}

#[tokio::test]
async fn owners_come_back() {
    if !nix::unistd::geteuid().is_root() {
        println!("owners_come_back: not root, so nothing has another owner");
        return;
    }
    let place = Place::new();
    for name in ["src/a.rs", "src/b.rs", "src"] {
        std::os::unix::fs::chown(place.path(name), Some(12_345), Some(23_456)).unwrap();
    }
    let environment = place.open("s");
    run(&environment, "echo more >> src/a.rs; rm src/b.rs").await;
    environment.answered();
    run(&environment, "rm -r src").await;
    drop(environment);
    assert_eq!(place.undo(Some(1), false).unwrap().not, []);
    for name in ["src/a.rs", "src/b.rs", "src"] {
        let metadata = fs::metadata(place.path(name)).unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), (12_345, 23_456), "{name}");
    }
}

#[tokio::test]
async fn damaged_notes_are_said_and_kept() {
    let place = Place::new();
    let environment = place.open("s");
    write(&environment, "one", "1").await;
    drop(environment);
    let log = place.root.path().join("checkpoints/s/changes.jsonl");
    let damaged = fs::read_to_string(&log).unwrap().replacen('{', "[", 1);
    fs::write(&log, &damaged).unwrap();
    let error = place.store().newest(&place.work(), None).err().unwrap();
    assert!(error.to_string().contains("line 1 of"), "{error}");
    assert_eq!(fs::read_to_string(&log).unwrap(), damaged);
}

#[tokio::test]
async fn before_the_first_answer_nothing_is_looked_through() {
    let place = Place::new();
    let local = LocalEnvironment::new(place.work()).unwrap();
    let checkpoints = place.store().begin(Some("s"), &place.work()).unwrap();
    let environment = Checkpointed::new(local, checkpoints);
    run(&environment, "echo x > y").await;
    drop(environment);
    assert!(!place.root.path().join("checkpoints/s").exists());
    // What is there is what the first answer finds.
    let environment = place.open("s");
    run(&environment, "rm y").await;
    drop(environment);
    assert_eq!(place.undo(None, false).unwrap().paths.len(), 1);
    assert_eq!(fs::read(place.path("y")).unwrap(), b"x\n");
}
