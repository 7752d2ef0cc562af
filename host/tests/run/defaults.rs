//! `hermitcrab.toml`, completions and the manual page, from outside.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::fork::bodies;
use super::{CANARY, Ran, command, finish, scratch, serve, shell};

/// One run with these two files; what came of it, and its first request.
fn run(user: &str, project: &str, trusts: bool, arguments: &[&str]) -> (Ran, Option<Value>) {
    let directory = scratch();
    let root = fs::canonicalize(directory.path()).expect("a directory");
    let work = root.join("project/deep");
    fs::create_dir_all(root.join("project/.git")).expect("a directory");
    fs::create_dir_all(&work).expect("a directory");
    fs::create_dir_all(root.join("config/hermitcrab")).expect("a directory");
    let trusted = match trusts {
        true => format!("trusted = [{:?}]\n{user}", root.join("project")),
        false => user.to_owned(),
    };
    fs::write(root.join("config/hermitcrab/hermitcrab.toml"), trusted).expect("a file");
    fs::write(root.join("project/hermitcrab.toml"), project).expect("a file");
    let model = serve(json!([shell("touch made"), {"text": "Done."}]));
    let mut all = vec!["--no-journal"];
    all.extend(arguments);
    all.push("Go");
    let mut command = command(&model.url(), &work, &all);
    command.env("XDG_CONFIG_HOME", root.join("config"));
    let mut ran = finish(command, b"");
    ran.stderr = ran.stderr.replace(root.to_str().expect("UTF-8"), "ROOT");
    let asked = bodies(&model);
    let asked = asked
        .first()
        .map(|body| serde_json::from_slice(body).expect("JSON"));
    (ran, asked)
}

#[test]
fn files_say_what_the_command_line_does_not() {
    let model = |user: &str, project: &str, arguments: &[&str]| {
        let (ran, asked) = run(user, project, false, arguments);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        asked.expect("a request")["model"].clone()
    };
    let of = |name: &str| format!("model = \"{name}\"\n");
    assert_eq!(model(&of("mine"), "", &[]), "mine");
    assert_eq!(model("", &of("theirs"), &[]), "theirs");
    assert_eq!(model(&of("mine"), &of("theirs"), &[]), "mine");
    assert_eq!(
        model(&of("mine"), &of("theirs"), &["--model", "this"]),
        "this"
    );
    let (ran, asked) = run(&of("mine"), &of("theirs"), true, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
    assert_eq!(asked.expect("a request")["model"], "theirs");
}

#[test]
fn a_project_gives_itself_no_rights() {
    let project = "approve = \"never\"\nmax_turns = 5\n[provider_options.anthropic]\nx = 1\n";
    let user = "approve = \"ask\"\n";
    let (ran, asked) = run(user, project, false, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        ran.stderr,
        "hermitcrab: approve, provider_options of ROOT/project/hermitcrab.toml is not used: only \
         you can say that the project is trusted, with `trusted = [\"ROOT/project\"]` in \
         ROOT/config/hermitcrab/hermitcrab.toml\n"
    );
    // Nobody was there to ask, so the command was refused.
    assert!(ran.stdout.contains("touch made"), "{ran:?}");
    assert_eq!(asked.expect("a request").get("x"), None);
    let (ran, asked) = run(user, project, true, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
    assert_eq!(asked.expect("a request")["x"], 1);
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    let cases = [
        (
            "modle = 1\n",
            "ROOT/config/hermitcrab/hermitcrab.toml: unknown field `modle`",
        ),
        ("model = 1\n", "ROOT/config/hermitcrab/hermitcrab.toml: "),
        ("model = \n", "line 1"),
        (
            "base_url = \"https://x\"\n",
            "`base_url` comes from --base-url",
        ),
        ("approve = \"maybe\"\n", "`approve` is never, ask or always"),
        ("quiet = 3\n", "`quiet` has a wrong value: 3"),
        ("trusted = \"x\"\n", "`trusted` is a list of directories"),
        (
            "trusted = [\"/tmp\", \"t\"]\n",
            "`trusted` has the relative path `t`: write the whole path",
        ),
        (
            "compaction = true\n",
            "`compaction`: invalid type: boolean `true`, expected an object with its fields\n",
        ),
        (
            "quiet = true\nmodel = \"x\n",
            "hermitcrab.toml: line 2, column ",
        ),
        (
            "[retry]\nfoo = 1\n",
            "unknown field `foo`, expected one of `max_retries`",
        ),
    ];
    // It comes with a repository, so nobody knows how large it is.
    let large = format!("# {}\n", "x".repeat(256 << 10));
    let cases = cases
        .into_iter()
        .map(|(user, expected)| (user, "", expected));
    let of_project = [(
        "",
        &*large,
        "has more than 256 KiB, which no settings need\n",
    )];
    for (user, project, expected) in cases.chain(of_project) {
        let (ran, asked) = run(user, project, false, &[]);
        assert_eq!(ran.code, Some(2), "{user}: {ran:?}");
        assert!(ran.stderr.contains(expected), "{user}: {ran:?}");
        assert_eq!(asked, None);
    }
}

#[test]
fn an_unknown_key_lists_those_that_there_are() {
    let (ran, _) = run("modle = 1\n", "", false, &[]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let own = [
        "allow_write",
        "approve",
        "checkpoints",
        "journal",
        "net",
        "quiet",
        "sandbox",
        "trusted",
        "model",
    ];
    for key in own {
        assert!(ran.stderr.contains(&format!("`{key}`")), "{key}: {ran:?}");
    }
    for key in ["base_url", "credential", "endpoints", "tools", "browser"] {
        assert!(!ran.stderr.contains(&format!("`{key}`")), "{key}: {ran:?}");
    }
}

#[test]
fn what_a_file_says_is_quoted_in_part_and_harmless() {
    let long = "x\u{1b}[31m".repeat(100_000);
    for user in [
        format!("model = \"{long}\n"),
        format!("model = 1 {long}\n"),
        format!("{long}\n"),
        format!("quiet = \"{}\"\n", "y".repeat(100_000)),
        format!("approve = \"{}\"\n", "y".repeat(100_000)),
        format!("trusted = \"{}\"\n", "y".repeat(100_000)),
    ] {
        let (ran, asked) = run(&user, "", false, &[]);
        let start: String = user.chars().take(20).collect();
        assert_eq!((ran.code, asked), (Some(2), None), "{start:?}");
        assert!(ran.stderr.chars().count() < 700, "{start:?}: {ran:?}");
        assert!(!ran.stderr.contains('\u{1b}'), "{start:?}: {ran:?}");
    }
}

#[test]
fn shells_complete_and_the_manual_has_every_command() {
    let print = |arguments: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
        command.args(arguments).env("ANTHROPIC_API_KEY", CANARY);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let ran = finish(command, b"");
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{arguments:?}");
        ran.stdout
    };
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = print(&["completions", shell]);
        assert!(text.contains("output-last-message"), "{shell}");
    }
    let page = print(&["man"]);
    for part in [
        "hermitcrab run",
        "hermitcrab sessions",
        "\\-\\-continue",
        "hermitcrab eval",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("compile\\-core"));
}
