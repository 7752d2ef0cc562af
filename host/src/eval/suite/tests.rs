//! What suites refuse, and in which words.

use std::path::Path;

use super::*;

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }
}

fn load(folder: &Path) -> Result<Entry, String> {
    let suite = Suite::open(folder).map_err(|error| error.to_string())?;
    let loaded = suite.load(0, &LoadOptions::default());
    loaded.map_err(|error| error.to_string())
}

/// A folder with one task `t` of these files; what is wrong with it, if something is.
#[track_caller]
fn check(files: &[(&str, &str)], expected: Result<(), &str>) {
    let place = tempfile::tempdir().expect("a folder");
    write(&place.path().join("t"), files);
    let told = load(place.path());
    let folder = place.path().canonicalize().expect("a path");
    let expected = expected.map_err(|text| text.replace("FOLDER", &folder.display().to_string()));
    assert_eq!(told.map(drop), expected);
}

const GOOD: [(&str, &str); 2] = [
    ("task.toml", "instruction = \"x\"\n"),
    ("check.sh", "true\n"),
];

#[test]
fn tasks_in_folders() {
    check(&GOOD, Ok(()));
    check(
        &[
            ("task.toml", ""),
            ("instruction.md", "x"),
            ("expected/a", "1"),
        ],
        Ok(()),
    );
    check(
        &GOOD[..1],
        Err("task t has no checker: add check.sh, check.py or the folder expected/"),
    );
    check(
        &[("task.toml", ""), GOOD[1]],
        Err(
            "task t has no instruction: add `instruction` to task.toml, or the file instruction.md",
        ),
    );
    check(
        &[
            ("task.toml", "instruction = \"x\"\n[limits]\nround = 3\n"),
            GOOD[1],
        ],
        Err(
            "task t: task.toml line 3: unknown field `round`, expected one of `rounds`, `wall_ms`, `tokens`, `cost_usd`",
        ),
    );
    check(
        &[
            ("task.toml", "instruction = \"x\"\n[limits]\nrounds = 0\n"),
            GOOD[1],
        ],
        Err("task t: task.toml: limits.rounds must be above 0"),
    );
    check(
        &[
            ("task.toml", "instruction = \"x\"\nscript = \"gone.json\"\n"),
            GOOD[1],
        ],
        Err("task t has no script gone.json"),
    );
    check(
        &[
            ("task.toml", "instruction = \"x\"\nscript = \"s.json\"\n"),
            ("s.json", "{}"),
            GOOD[1],
        ],
        Err("task t: s.json is no script: line 1, column 2: missing field `steps`"),
    );
}

#[test]
fn archives_stay_inside() {
    let archive = |name: &str, size: u64| {
        let mut header = tar::Header::new_gnu();
        header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(size);
        header.set_mode(0o644);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(&[0; 1024]);
        bytes
    };
    let check = |bytes: &[u8], expected: &str| {
        let place = tempfile::tempdir().expect("a folder");
        let task = place.path().join("t");
        write(&task, &GOOD);
        std::fs::write(task.join("files.tar"), bytes).expect("an archive");
        let told = load(place.path()).map(drop);
        let file = task.canonicalize().expect("a path").join("files.tar");
        assert_eq!(told, Err(format!("{}{expected}", file.display())));
    };
    check(
        &archive("../a", 0),
        " holds ../a, which is absolute or leads out of the archive",
    );
    check(
        &archive("/a", 0),
        " holds /a, which is absolute or leads out of the archive",
    );
    check(
        &archive("zeros", 8 << 30 >> 1),
        ": zeros has 4096 MiB, and a file of a task has at most 256",
    );
}

#[test]
fn lines() {
    let check = |text: &str, expected: Result<(), &str>| {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().canonicalize().expect("a path").join("s.jsonl");
        std::fs::write(&file, text).expect("a file");
        let expected = expected.map_err(|text| text.replace("FILE", &file.display().to_string()));
        assert_eq!(load(&file).map(drop), expected);
    };
    check(r#"{"name":"a","instruction":"x","check":"true"}"#, Ok(()));
    check(
        r#"{"name":"a","instruction":"x","expected":{"f":{"base64":"aGk="}}}"#,
        Ok(()),
    );
    check(
        r#"{"name":"a","instruction":"x"}"#,
        Err("FILE line 1 (task a) has no checker: add `check` or `expected`"),
    );
    check(
        "\n{\"name\":\"a\"",
        Err("FILE line 2 is no task: EOF while parsing an object at line 1 column 11"),
    );
    check(
        "{\"name\":\"a\"}\n{\"name\":\"a\"}\n",
        Err("FILE line 2: there is another task a"),
    );
    check(
        r#"{"name":"a","instruction":"x","check":"true","files":{"../b":""}}"#,
        Err("FILE line 1 (task a): the path ../b is absolute or leads out of the task"),
    );
    check("\n", Err("FILE holds no task"));
}

#[test]
fn tasks_of_harbor() {
    let check = |files: &[(&str, &str)], expected: Result<Option<&str>, &str>| {
        let place = tempfile::tempdir().expect("a folder");
        write(&place.path().join("t"), files);
        let told = load(place.path()).map(|entry| match entry {
            Entry::Task(task) => {
                assert!(task.needs_reward);
                None
            }
            Entry::Skipped(reason) => Some(reason),
        });
        let expected = expected
            .map(|it| it.map(str::to_owned))
            .map_err(str::to_owned);
        assert_eq!(told, expected);
    };
    let task = (
        "task.toml",
        "schema_version = \"1.4\"\n[agent]\ntimeout_sec = 60.0\n",
    );
    let rest = [
        ("instruction.md", "x"),
        ("environment/a", "1"),
        ("tests/test.sh", "true"),
    ];
    let with = |more: &[(&'static str, &'static str)]| [&[task], &rest[..], more].concat();
    check(&with(&[]), Ok(None));
    check(
        &with(&[("environment/Dockerfile", "FROM x")]),
        Ok(Some("it needs a container: environment/Dockerfile")),
    );
    check(
        &[task, rest[0], rest[1]],
        Err("task t has no checker: add tests/test.sh"),
    );
    check(
        &[
            ("task.toml", "schema_version = \"1.4\"\nagents = 1\n"),
            rest[0],
            rest[1],
            rest[2],
        ],
        Err(
            "task t: task.toml line 2: unknown field `agents`, expected one of `schema_version`, `version`, `task`, `metadata`, `agent`, `verifier`, `environment`, `solution`, `steps`, `multi_step_reward_strategy`, `artifacts`, `source`",
        ),
    );
}
