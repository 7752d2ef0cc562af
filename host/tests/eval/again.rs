//! Runs that go on, are checked again, or are in the way of each other.

use std::fs;
use std::io::Write as _;

use super::*;

fn three(place: &Place) {
    for name in ["a", "b", "c"] {
        place.task(name, "", &[shell("echo hi > x")], "test -f x");
    }
}

#[test]
fn a_run_goes_on_with_what_is_missing_or_changed() {
    let place = Place::new();
    three(&place);
    place.run(&[]);
    let refused = place.run(&[]);
    assert_eq!(refused.code, Some(2));
    assert_eq!(
        refused.stderr,
        "hermitcrab: out holds the results of a run: add --resume to go on with it, or choose another --out\n"
    );
    let before = place.rows("out");
    let same = place.run(&["--resume"]);
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), ""));
    assert_eq!(place.rows("out"), before);

    // One is missing, one is torn, one has another checker.
    let results = place.path("out/results.jsonl");
    let text = place.read("out/results.jsonl");
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("\"task\":\"a\""))
        .collect();
    let mut file = fs::File::create(&results).expect("results");
    writeln!(file, "{}", kept.join("\n")).expect("written");
    write!(file, "{{\"task\":\"a\",\"tri").expect("written");
    drop(file);
    place.write("suite/b/check.sh", "test -f y");
    let again = place.run(&["--resume"]);
    assert_eq!(again.stderr, "again b.1: changed since: checker\n");
    let after = place.rows("out");
    let reason = Some("the checker ended with exit code 1");
    assert_eq!(
        ends(&after),
        [
            ("a", "passed", None),
            ("b", "failed", reason),
            ("c", "passed", None)
        ]
    );
    assert_eq!(after[2], before[2]);
    assert_eq!(after[0]["seed"], before[0]["seed"]);
}

#[test]
fn what_has_no_verdict_is_run_again() {
    let place = Place::new();
    three(&place);
    place.write("suite/b/task.toml", "instruction = 1\n");
    let ran = place.run(&[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr
            .ends_with("hermitcrab: 1 trial has no verdict: run again with --resume\n")
    );
    three(&place);
    let ran = place.run(&["--resume"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stderr
            .starts_with("again b.1: it has no verdict: task b: task.toml line 1: "),
        "{ran:?}"
    );
    assert_eq!(place.rows("out").len(), 3);
}

#[test]
fn checkers_alone_are_run_again() {
    let place = Place::new();
    three(&place);
    place.run(&[]);
    let log = fs::metadata(place.path("out/trials/a.1/log.gz")).expect("a log");
    place.write("suite/a/check.sh", "test -f y");
    place.write("suite/b/files/new", "");
    let ran = place.eval(&["regrade", "out"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout.starts_with(
            "a.1: passed → failed (the checker ended with exit code 1)\n\
             b.1: not checked: the files of its task have changed: run it again\n\
             2 trials checked again, 1 ended otherwise, 1 not checked\n"
        ),
        "{ran:?}"
    );
    let reason = Some("the checker ended with exit code 1");
    assert_eq!(
        ends(&place.rows("out")),
        [
            ("a", "failed", reason),
            ("b", "passed", None),
            ("c", "passed", None)
        ]
    );
    let same = fs::metadata(place.path("out/trials/a.1/log.gz")).expect("a log");
    assert_eq!(
        same.modified().expect("a time"),
        log.modified().expect("a time")
    );
}

#[test]
fn checkers_of_steps_see_the_trees_of_their_steps() {
    let place = Place::new();
    let step = |name: &str| {
        format!("[[steps]]\nname = \"{name}\"\ninstruction = \"more\"\ncheck = \"{name}.sh\"\n")
    };
    let words = || json!({"text": "done"});
    let commands = ["echo 1 > a", "echo 2 >> a", "echo 3 > a"];
    let steps: Vec<Value> = commands
        .iter()
        .flat_map(|command| [shell(command), words()])
        .collect();
    let settings = step("second") + &step("third");
    place.task("t", &settings, &steps[..5], "test -f a");
    place.write("suite/t/second.sh", "grep -q 2 a");
    place.write("suite/t/third.sh", "grep -q 3 a");
    let ran = place.run(&[]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)], "{ran:?}");
    let regraded = |check: &str, expected: &str| {
        place.write("suite/t/second.sh", check);
        let ran = place.eval(&["regrade", "out"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.starts_with(expected), "{ran:?}");
    };
    regraded(
        "grep -q 3 a",
        "t.1: passed → failed (step second: the checker ended with exit code 1)\n",
    );
    regraded("test \"$(tail -1 a)\" = 2", "t.1: failed → passed\n");

    // An agent that ended at a step did not do what comes behind it.
    place.write("suite/t/third.sh", "exit 1");
    let fourth = step("fourth").replace("check = \"fourth.sh\"\n", "");
    place.task("t", &(settings.clone() + &fourth), &steps[..5], "true");
    place.eval(&["suite", "--out", "out", "--resume"]);
    let why = "step third: the checker ended with exit code 1";
    assert_eq!(ends(&place.rows("out")), [("t", "failed", Some(why))]);
    place.write("suite/t/third.sh", "true");
    regraded(
        "true",
        "t.1: not checked: step third: it passes now, but the agent ended there: run it again\n",
    );
    // What never came to a step cannot be checked there.
    place.write("suite/t/second.sh", "exit 1");
    place.eval(&["suite", "--out", "out", "--resume"]);
    let why = "step second: the checker ended with exit code 1";
    assert_eq!(ends(&place.rows("out")), [("t", "failed", Some(why))]);
    regraded(
        "true",
        "t.1: not checked: step second: it passes now, but the agent ended there: run it again\n",
    );
    // Files that are lost are no tree that did not change, and no result.
    place.task("t", &settings, &steps[..5], "true");
    place.write("suite/t/third.sh", "grep -q 3 a");
    place.eval(&["suite", "--out", "out", "--resume"]);
    assert_eq!(ends(&place.rows("out")), [("t", "passed", None)]);
    fs::remove_file(place.path("out/trials/t.1/changes.tar.gz")).expect("changes");
    regraded(
        "true",
        "t.1: not checked: its tree is lost: no such file or directory\n",
    );
    fs::remove_dir_all(place.path("out/trials/t.1")).expect("a folder");
    let ran = place.eval(&["suite", "--out", "out", "--resume"]);
    assert!(
        ran.stderr.starts_with("again t.1: its files are lost\n"),
        "{ran:?}"
    );
}

#[test]
fn a_directory_in_use_is_refused_by_name() {
    let place = Place::new();
    place.task("t", "", &[json!({"text": "", "delay_ms": 600_000})], "true");
    let mut first = place.command(&["suite", "--out", "out"]);
    let mut first = first.spawn().expect("the binary");
    while !place.path("out/run.json").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = place.run(&["--resume"]);
    let expected = format!(
        "hermitcrab: out is in use by another run (process {}): wait for it, or choose another --out\n",
        first.id()
    );
    assert_eq!((second.code, second.stderr), (Some(2), expected));
    let pid = nix::unistd::Pid::from_raw(first.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("a signal");
    assert_eq!(first.wait().expect("an end").code(), Some(130));
}

#[test]
fn a_disk_that_fails_ends_the_run_and_leaves_whole_records() {
    let place = Place::new();
    place.task("a", "", &[], "true");
    place.task(
        "b",
        "",
        &[shell("head -c 90000 /dev/zero | tr '\\0' x > big")],
        "test -f big",
    );
    let ran = place.run(&["--jobs", "1", "--filter", "a"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // A file stands where the files of the trial go: that fails as a full disk does.
    fs::write(place.path("out/trials/b.1"), "in the way").expect("a file");
    let ran = place.run(&["--resume", "--jobs", "1"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "hermitcrab: cannot write to out: not a directory; the trials recorded so far are whole: make room and go on with --resume\n"
    );
    fs::remove_file(place.path("out/trials/b.1")).expect("removed");
    let ran = place.run(&["--resume", "--jobs", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ends(&place.rows("out")),
        [("a", "passed", None), ("b", "passed", None)]
    );
}

#[test]
fn a_log_that_the_disk_does_not_take_ends_the_run() {
    let place = Place::new();
    place.task("a", "", &[], "true");
    // Files of 16 MiB at most: only this log is larger, since it cannot be packed.
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    });
    fs::create_dir(place.path("suite/a/files")).expect("a folder");
    let noise: Vec<u8> = noise.take(20 << 20).collect();
    fs::write(place.path("suite/a/files/noise"), noise).expect("a file");
    let limited = |limit: &str| {
        let mut command = Command::new("bash");
        command
            .args(["-c", &format!("ulimit -f {limit}; exec \"$@\""), "bash"])
            .arg(env!("CARGO_BIN_EXE_hermitcrab"))
            .args(["eval", "suite", "--out", "out", "--resume"])
            .current_dir(place.folder.path());
        ran(command)
    };
    let ended = limited("16384");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(
        ended.stderr,
        "hermitcrab: cannot write to out: the file would be larger than the system allows (see `ulimit -f`); the trials recorded so far are whole: make room and go on with --resume\n"
    );
    assert_eq!(place.read("out/results.jsonl"), "");
    let ended = limited("unlimited");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ends(&place.rows("out")), [("a", "passed", None)]);
}

#[test]
fn a_run_that_is_killed_goes_on_and_counts_no_trial_twice() {
    let place = Place::new();
    let task = |number: usize| {
        json!({"name": format!("t{number}"), "instruction": "x", "check": "test -f a",
            "script": {"steps": [shell("touch a"), {"text": "done"}]}})
        .to_string()
    };
    let lines: Vec<String> = (0..300).map(task).collect();
    place.write("tasks.jsonl", &lines.join("\n"));
    let arguments = ["tasks.jsonl", "--out", "out", "--jobs", "4"];
    let mut first = place.command(&arguments).spawn().expect("the binary");
    let results = place.path("out/results.jsonl");
    let recorded = || fs::read_to_string(&results).map_or(0, |text| text.lines().count());
    while recorded() < 20 && first.try_wait().expect("a state").is_none() {
        std::thread::yield_now();
    }
    first.kill().expect("killed");
    first.wait().expect("an end");
    let before = recorded();
    let ran = place.eval(&[&arguments[..], &["--resume"]].concat());
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), ""),
        "{before} {ran:?}"
    );
    let rows = place.rows("out");
    let mut names: Vec<&str> = rows.iter().filter_map(|row| row["task"].as_str()).collect();
    names.dedup();
    assert_eq!((rows.len(), names.len()), (300, 300));
    assert!(rows.iter().all(|row| row["passed"] == true));
}
