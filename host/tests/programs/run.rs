//! `hermitcrab run --python` from outside, on a scripted model.

use std::path::Path;
use std::process::{Command, Stdio};

use hermitcrab::script::ScriptedModel;
use hermitcrab_host::serve_model::ServeModel;
use serde_json::{Value, json};

use super::{Trial, archive, equal};

/// In no other place than this file and the environment of the binary.
const CANARY: &str = "sk-canary-python-7d2c91f4b8a0e653";

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::new("run::a_bug_is_fixed", a_bug_is_fixed),
        Trial::new("run::nothing_of_this_machine", nothing_of_this_machine),
        Trial::new("run::no_archive", no_archive),
    ]
}

fn shell(command: &str) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": {"command": command}}]})
}

/// Runs the steps; exit code, stdout and stderr, and whether the model was asked.
fn run(
    dir: &Path,
    steps: Value,
    arguments: &[&str],
) -> Result<(i32, String, String, bool), String> {
    let script = json!({ "steps": steps }).to_string();
    let model = ScriptedModel::from_json(&script).map_err(|error| error.to_string())?;
    let model = ServeModel::start(model, 0).map_err(|error| error.to_string())?;
    let output = Command::new(env!("CARGO_BIN_EXE_hermitcrab"))
        .args([
            "run",
            "--base-url",
            &model.url(),
            "--env",
            "memory",
            "--dir",
        ])
        .arg(dir)
        .args(arguments)
        .arg("do it")
        .env("ANTHROPIC_API_KEY", CANARY)
        .env(
            "XDG_CACHE_HOME",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
        )
        .env_remove("ANTHROPIC_BASE_URL")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let code = output.status.code().unwrap_or(-1);
    let asked = model.finished();
    Ok((code, text(output.stdout), text(output.stderr), asked))
}

fn python() -> Result<[&'static str; 2], String> {
    let path = archive()
        .to_str()
        .ok_or("the archive's path is not UTF-8")?;
    Ok(["--python", path])
}

fn a_bug_is_fixed() -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    for (path, content) in [
        ("calc.py", "def add(a, b):\n    return a - b\n"),
        (
            "test_calc.py",
            "import unittest, calc\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(calc.add(2, 3), 5)\n",
        ),
    ] {
        std::fs::write(directory.path().join(path), content).map_err(|error| error.to_string())?;
    }
    let steps = json!([
        shell("python -m unittest 2>&1 | tail -1"),
        shell("sed -i s/-/+/ calc.py && python3 -m unittest 2>&1 | tail -1"),
        {"text": "fixed"},
    ]);
    let arguments = [&["--json"][..], &python()?].concat();
    let (code, stdout, _, _) = run(directory.path(), steps, &arguments)?;
    equal(&code, &0, &stdout)?;
    let outputs: Vec<String> = stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["kind"] == "TOOL_CALL_END")
        .map(|event| {
            event["data"]["output"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect();
    let said =
        |index: usize, word: &str| outputs.get(index).is_some_and(|said| said.contains(word));
    let both = said(0, "FAILED (failures=1)") && said(1, "OK");
    equal(&(outputs.len(), both), &(2, true), &format!("{outputs:?}"))
}

fn nothing_of_this_machine() -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let look = "python3 -c '
import os
print(sorted(os.environ), sorted(os.listdir(\"/\")))
for path, _, names in os.walk(\"/\"):
    for name in names:
        if not path.startswith((\"/dev\", \"/usr/local\")): print(os.path.join(path, name), open(os.path.join(path, name)).read())
' > seen";
    let steps = json!([shell(look), {"text": "looked"}]);
    let (code, stdout, stderr, _) = run(directory.path(), steps, &python()?)?;
    equal(&code, &0, &stderr)?;
    let all = format!("{stdout}{stderr}");
    equal(&all.contains(CANARY), &false, "the key is seen")?;
    let here = directory.path().display().to_string();
    equal(&all.contains(&here), &false, "the directory is seen")?;
    // What it saw is in the diff that the run printed.
    let looked = stdout.contains("'PWD'") && stdout.contains("'workspace'");
    equal(&looked, &true, &stdout)
}

fn no_archive() -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let shown = directory.path().display().to_string();
    let (code, stdout, stderr, asked) = run(
        directory.path(),
        json!([{"text": "x"}]),
        &["--python", &shown],
    )?;
    let expected = format!(
        "hermitcrab: --python: {shown} is a directory and not an archive: name the file python.tar.gz that `cargo xtask python` makes\n"
    );
    equal(
        &(code, stdout, stderr, asked),
        &(2, String::new(), expected, false),
        "a directory",
    )
}
