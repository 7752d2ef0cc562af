//! `--env overlay`: a run in a copy of a directory, and what becomes of its changes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

use hermitcrab_host::serve_model::ServeModel;
use serde_json::json;

use super::{GUARD, Ran, command, finish, scratch, serve, shell};

/// What the run does: it changes, makes, removes, and builds something that is ignored.
const WORK: &str = "cd src && printf 'two\\n' > a.txt && mkdir new && echo x > new/run.sh && \
    chmod 755 new/run.sh && rm gone.txt && ln -s a.txt link && mkdir ../target && echo o > ../target/o";

fn project() -> tempfile::TempDir {
    let directory = scratch();
    let at = |path: &str| directory.path().join(path);
    fs::create_dir(at("src")).expect("a directory");
    for (path, text) in [
        (".gitignore", "target\n"),
        ("src/a.txt", "one\n"),
        ("src/gone.txt", "old\n"),
        ("src/kept.txt", "kept\n"),
    ] {
        fs::write(at(path), text).expect("a file");
    }
    directory
}

/// A run in an overlay of `directory` that does [`WORK`]; and the id of the overlay.
fn worked(directory: &Path, state: &Path) -> String {
    let model = serve(json!([shell(WORK), {"text": "Done."}]));
    let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
    run.env("HERMITCRAB_STATE_DIR", state);
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let (_, after) = ran.stderr.split_once("in overlay ").expect("an overlay");
    let id = after.split(',').next().expect("its name");
    id.to_owned()
}

fn overlay(directory: &Path, state: &Path, arguments: &[&str]) -> Ran {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command
        .arg("overlay")
        .args(arguments)
        .current_dir(directory)
        .env("HERMITCRAB_STATE_DIR", state)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    finish(command, b"")
}

/// A run in an overlay of `directory` that waits in a command until there is a file `go` in
/// the copy; and the copy.
fn waiting(model: &ServeModel, directory: &Path, state: &Path) -> (Child, PathBuf) {
    let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
    run.env("HERMITCRAB_STATE_DIR", state);
    let mut child = run.spawn().expect("the binary");
    drop(child.stdin.take());
    let name = directory.file_name().expect("a name");
    let copy = || {
        let overlays = fs::read_dir(state.join("overlays")).ok()?.flatten();
        let mut copies = overlays.map(|overlay| overlay.path().join("tree").join(name));
        copies.find(|copy| copy.join("begun").exists())
    };
    let begun = Instant::now();
    let mut found = copy();
    while found.is_none() {
        assert!(begun.elapsed() < GUARD, "no command began");
        std::thread::yield_now();
        found = copy();
    }
    (child, found.expect("a copy"))
}

const WAIT: &str = "touch begun; while [ ! -e go ]; do sleep 0.02; done; echo done > done.txt";

fn read(directory: &Path, path: &str) -> Option<String> {
    fs::read_to_string(directory.join(path)).ok()
}

#[test]
fn changes_wait_until_they_are_committed() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let id = worked(directory, state);
    assert_eq!(read(directory, "src/a.txt").as_deref(), Some("one\n"));
    assert!(read(directory, "src/gone.txt").is_some());
    let shown = overlay(directory, state, &["diff", &id]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in [
        "-one\n+two\n",
        "new file mode 100755",
        "deleted file",
        "new file mode 120000",
    ] {
        assert!(shown.stdout.contains(part), "{part} in {}", shown.stdout);
    }
    assert!(!shown.stdout.contains("target"), "{}", shown.stdout);
    // Without a name: the newest of this directory.
    let committed = overlay(directory, state, &["commit"]);
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert_eq!(read(directory, "src/a.txt").as_deref(), Some("two\n"));
    assert_eq!(read(directory, "src/gone.txt"), None);
    assert_eq!(read(directory, "src/kept.txt").as_deref(), Some("kept\n"));
    assert_eq!(
        read(directory, "target/o"),
        None,
        "ignored files stay behind"
    );
    let link = fs::read_link(directory.join("src/link")).expect("a link");
    assert_eq!(link, Path::new("a.txt"));
    let mode = fs::metadata(directory.join("src/new/run.sh")).expect("it");
    assert_eq!(mode.permissions().mode() & 0o777, 0o755);
    let gone = overlay(directory, state, &["commit", &id]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
}

#[test]
fn what_changed_in_both_is_refused() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let id = worked(directory, state);
    fs::write(directory.join("src/a.txt"), "mine\n").expect("a file");
    fs::write(directory.join("src/kept.txt"), "mine, too\n").expect("a file");
    let refused = overlay(directory, state, &["commit", &id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("nothing was committed"),
        "{refused:?}"
    );
    assert!(refused.stderr.contains("src/a.txt"), "{refused:?}");
    assert!(!refused.stderr.contains("kept"), "{refused:?}");
    assert!(
        read(directory, "src/gone.txt").is_some(),
        "nothing was committed"
    );
    // The one change that both made alike is none.
    fs::write(directory.join("src/a.txt"), "two\n").expect("a file");
    let committed = overlay(directory, state, &["commit", &id]);
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert_eq!(
        read(directory, "src/kept.txt").as_deref(),
        Some("mine, too\n")
    );
}

#[test]
fn an_overlay_can_be_dropped_and_goes_by_itself_without_changes() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let id = worked(directory, state);
    let listed = overlay(directory, state, &["list"]);
    assert!(listed.stdout.contains(&id), "{listed:?}");
    let dropped = overlay(directory, state, &["discard", &id]);
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    assert_eq!(read(directory, "src/a.txt").as_deref(), Some("one\n"));
    let model = serve(json!([{"text": "Nothing to do."}]));
    let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
    run.env("HERMITCRAB_STATE_DIR", state);
    let ran = finish(run, b"");
    assert!(
        ran.stderr.contains("nothing has changed in the overlay"),
        "{ran:?}"
    );
    let listed = overlay(directory, state, &["list"]);
    assert_eq!(listed.stdout, "");
    let unknown = overlay(directory, state, &["diff", "../../etc"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
}

#[test]
fn permission_bits_alone_are_a_change_and_ignored_files_stay() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    fs::create_dir(directory.join("lib")).expect("a directory");
    fs::write(directory.join("lib/x.txt"), "x\n").expect("a file");
    fs::write(directory.join(".gitignore"), "*.o\n").expect("a file");
    fs::write(directory.join("lib/x.o"), "object").expect("a file");
    let mode = |path: &str| {
        let metadata = fs::metadata(directory.join(path)).expect("it");
        metadata.permissions().mode() & 0o777
    };
    for (work, check) in [
        ("chmod 640 src/a.txt", "src/a.txt"),
        ("rm -r lib", "lib/x.txt"),
    ] {
        let model = serve(json!([shell(work), {"text": "Done."}]));
        let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
        run.env("HERMITCRAB_STATE_DIR", state);
        let ran = finish(run, b"");
        assert!(ran.stderr.contains(" changed in overlay "), "{ran:?}");
        let committed = overlay(directory, state, &["commit"]);
        assert_eq!(committed.code, Some(0), "{committed:?}");
        match check {
            "src/a.txt" => assert_eq!(mode(check), 0o640),
            gone => assert_eq!(read(directory, gone), None),
        }
    }
    assert_eq!(read(directory, "lib/x.o").as_deref(), Some("object"));
}

/// A run of `work` in an overlay of `directory`, and what becomes of it.
fn committed(directory: &Path, state: &Path, work: &str) -> (Ran, Ran) {
    let model = serve(json!([shell(work), {"text": "Done."}]));
    let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
    run.env("HERMITCRAB_STATE_DIR", state);
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(" changed in overlay "), "{ran:?}");
    let shown = overlay(directory, state, &["diff"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    (shown, overlay(directory, state, &["commit"]))
}

#[test]
fn rules_of_the_repository_hold_in_its_subdirectories() {
    let (repository, state) = (scratch(), scratch());
    // Those above the copies are not those of the directory.
    fs::write(state.path().join(".gitignore"), "*\n").expect("a file");
    fs::create_dir(repository.path().join(".git")).expect("a directory");
    fs::write(repository.path().join(".gitignore"), "build\n*.log\n").expect("a file");
    let sub = repository.path().join("sub");
    fs::create_dir_all(sub.join("build")).expect("a directory");
    for path in ["a.txt", "x.log", "build/o"] {
        fs::write(sub.join(path), "one\n").expect("a file");
    }
    let work = "for f in a.txt x.log build/o build/new; do echo two > $f; done";
    let (shown, committed) = committed(&sub, state.path(), work);
    for path in ["build", "x.log"] {
        assert!(!shown.stdout.contains(path), "{shown:?}");
    }
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert_eq!(read(&sub, "a.txt").as_deref(), Some("two\n"));
    assert_eq!(read(&sub, "x.log").as_deref(), Some("one\n"));
    assert_eq!(read(&sub, "build/new"), None);
}

#[test]
fn a_file_that_is_ignored_no_more_is_no_conflict() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    fs::create_dir(directory.join("target")).expect("a directory");
    for path in ["target/o", "target/theirs"] {
        fs::write(directory.join(path), "one\n").expect("a file");
    }
    let work = "rm .gitignore; echo two > target/o";
    let (_, committed_) = committed(directory, state, work);
    assert_eq!(committed_.code, Some(0), "{committed_:?}");
    assert_eq!(read(directory, "target/o").as_deref(), Some("two\n"));
    assert_eq!(read(directory, "target/theirs").as_deref(), Some("one\n"));
    assert_eq!(read(directory, ".gitignore"), None);
    // One that somebody changed meanwhile is one.
    fs::write(directory.join(".gitignore"), "target\n").expect("a file");
    let theirs = directory.join("target/theirs");
    let work = format!(
        "rm .gitignore; echo three > target/theirs; echo mine > '{}'",
        theirs.display()
    );
    let model = serve(json!([shell(&work), {"text": "Done."}]));
    let arguments = ["--env", "overlay", "--sandbox", "off", "go"];
    let mut run = command(&model.url(), directory, &arguments);
    run.env("HERMITCRAB_STATE_DIR", state);
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let refused = overlay(directory, state, &["commit"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("too: target/theirs\n"),
        "{refused:?}"
    );
    assert_eq!(read(directory, "target/theirs").as_deref(), Some("mine\n"));
}

// The file systems of macOS take no such names.
#[cfg(target_os = "linux")]
#[test]
fn names_that_are_not_utf_8_are_names() {
    use std::os::unix::ffi::OsStrExt as _;

    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let odd = |name: &[u8]| directory.join(std::ffi::OsStr::from_bytes(name));
    fs::write(odd(b"kept-\xff"), "kept\n").expect("a file");
    fs::write(odd(b"old-\xff"), "old\n").expect("a file");
    let work = "rm old-*; echo two > src/a.txt; echo new > \"$(printf 'new-\\377')\"";
    let (shown, committed) = committed(directory, state, work);
    assert!(
        shown.stderr.contains("names that are not UTF-8"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("new-"), "{shown:?}");
    assert!(!shown.stderr.contains("kept-"), "{shown:?}");
    assert!(shown.stdout.contains("+two\n"), "{shown:?}");
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert_eq!(fs::read(odd(b"new-\xff")).expect("it"), b"new\n");
    assert_eq!(fs::read(odd(b"kept-\xff")).expect("it"), b"kept\n");
    assert!(!odd(b"old-\xff").exists());
}

#[test]
fn nobody_takes_the_overlay_of_a_run_away() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let model = serve(json!([shell(WAIT), {"text": "Done."}]));
    let (run, copy) = waiting(&model, directory, state);
    for what in ["commit", "discard"] {
        let refused = overlay(directory, state, &[what]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(
            refused
                .stderr
                .starts_with("hermitcrab: a run works in overlay "),
            "{refused:?}"
        );
        assert!(
            refused.stderr.ends_with(": wait for its end, or end it\n"),
            "{refused:?}"
        );
    }
    let shown = overlay(directory, state, &["diff"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    fs::write(copy.join("go"), "").expect("a file");
    let ended = run.wait_with_output().expect("an end");
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    let committed = overlay(directory, state, &["commit"]);
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert_eq!(read(directory, "done.txt").as_deref(), Some("done\n"));
}

#[test]
fn a_run_that_was_killed_leaves_its_overlay() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    let model = serve(json!([shell(WAIT), {"text": "Never."}]));
    let (mut run, _) = waiting(&model, directory, state);
    run.kill().expect("a kill");
    run.wait().expect("an end");
    let committed = overlay(directory, state, &["commit"]);
    assert_eq!(committed.code, Some(0), "{committed:?}");
    assert!(read(directory, "begun").is_some());
}

#[test]
fn a_run_whose_overlay_was_removed_has_failed() {
    let (directory, state) = (project(), scratch());
    let (directory, state) = (directory.path(), state.path());
    for removed in ["\"$PWD\"", "\"${PWD%/tree/*}\""] {
        let work = format!("echo x > x.txt; rm -rf {removed}");
        let model = serve(json!([shell(&work), {"text": "Done."}]));
        let arguments = ["--env", "overlay", "--sandbox", "off", "go"];
        let mut run = command(&model.url(), directory, &arguments);
        run.env("HERMITCRAB_STATE_DIR", state);
        let ran = finish(run, b"");
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            ran.stderr
                .contains("was removed while the run worked in it"),
            "{ran:?}"
        );
    }
    // What is left of the first one is no reason to empty the directory.
    let listed = overlay(directory, state, &["list"]);
    let id = listed.stdout.split(' ').next().expect("a name");
    let refused = overlay(directory, state, &["commit", id]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("overlay discard"), "{refused:?}");
    assert!(read(directory, "src/a.txt").is_some());
    let dropped = overlay(directory, state, &["discard", id]);
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn commands_cannot_reach_the_directory_itself() {
    // Outside of the temporary directories, which commands may change.
    let place = super::fence::Place::new();
    let file = place.path("work").join("a.txt");
    fs::write(&file, "one\n").expect("a file");
    let model = serve(json!([
        shell(&format!("echo two > a.txt; echo reached > '{}'", file.display())),
        {"text": "Done."},
    ]));
    let url = model.url();
    let ran = finish(
        place.command(&["run", "--base-url", &url, "--env", "overlay", "go"]),
        b"",
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("1 changed"), "{ran:?}");
    assert_eq!(fs::read_to_string(&file).expect("it"), "one\n");
}

#[cfg(target_os = "linux")]
#[test]
fn nor_below_a_temporary_directory() {
    let (directory, temporary, state) = (project(), scratch(), scratch());
    let (directory, state) = (directory.path(), state.path());
    // In one that TMPDIR names, and beside it.
    for named in [directory.parent().expect("a parent"), temporary.path()] {
        let file = directory.join("src/a.txt");
        let work = format!(
            "echo two > src/a.txt; echo reached > '{}'; f=$(mktemp) && echo temporary > $f && \
             cp $f src/b.txt",
            file.display()
        );
        let model = serve(json!([shell(&work), {"text": "Done."}]));
        let mut run = command(&model.url(), directory, &["--env", "overlay", "go"]);
        run.env("HERMITCRAB_STATE_DIR", state).env("TMPDIR", named);
        let ran = finish(run, b"");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("2 changed"), "{ran:?}");
        assert_eq!(read(directory, "src/a.txt").as_deref(), Some("one\n"));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn shared_memory_has_no_overlays() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let state = scratch();
    let model = serve(json!([{"text": "Done."}]));
    let mut run = command(&model.url(), directory.path(), &["--env", "overlay", "go"]);
    run.env("HERMITCRAB_STATE_DIR", state.path());
    let ran = finish(run, b"");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("add --sandbox off"), "{ran:?}");
    assert!(model.requests().is_empty());
}
