//! The binary from outside: what is wrong with a command line, in one sentence
//! on stderr, with the right exit code and nothing on stdout; and `serve-model`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn hermitcrab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hermitcrab"));
    command.args(arguments);
    for name in ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"] {
        command.env_remove(name);
    }
    command
}

/// Runs with a key and this stdin; compares exit code and stderr.
fn check(arguments: &[&str], stdin: &[u8], code: i32, stderr: &str) {
    let mut command = hermitcrab(arguments);
    command.env("ANTHROPIC_API_KEY", "k");
    check_command(command, stdin, code, stderr);
}

fn check_command(mut command: Command, stdin: &[u8], code: i32, stderr: &str) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary");
    // One that refuses its options does not read; that is its right.
    let _ = child.stdin.take().expect("stdin").write_all(stdin);
    let output = child.wait_with_output().expect("an end");
    let actual = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(
        (output.status.code(), actual.as_str()),
        (Some(code), stderr)
    );
    assert_eq!(output.stdout, b"");
}

/// A file or directory of this package's tests, removed at the end.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a file");
        path
    }
}

#[test]
fn missing_key() {
    check_command(
        hermitcrab(&["run", "x"]),
        b"",
        2,
        "hermitcrab: no provider has a key: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, CHAT_API_KEY, or try `hermitcrab demo`, which needs none\n",
    );
    check_command(
        hermitcrab(&["run", "--provider", "anthropic", "x"]),
        b"",
        2,
        "hermitcrab: there is no key for anthropic: set ANTHROPIC_API_KEY\n",
    );
}

#[test]
fn unknown_provider() {
    check(
        &["run", "--provider", "acme", "x"],
        b"",
        2,
        "hermitcrab: there is no provider \"acme\": choose one of anthropic, openai, gemini, chat\n",
    );
}

#[test]
fn a_server_of_ones_own_has_no_default_model() {
    check(
        &["run", "--provider", "chat", "x"],
        b"",
        2,
        "hermitcrab: provider chat has no default model: name one that its server has with --model\n",
    );
}

#[test]
fn an_empty_model_is_none() {
    for model in ["", " "] {
        check(
            &["run", "--provider", "chat", "--model", model, "x"],
            b"",
            2,
            "hermitcrab: --model is empty: name a model, or leave --model out for the provider's default\n",
        );
    }
}

#[test]
fn tool_declarations_that_are_none() {
    let scratch = Scratch::new();
    for (content, problem) in [
        (
            "{bad",
            "not valid JSON: key must be a string at line 1 column 2",
        ),
        (
            "{",
            "cut off, so not valid JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("{}", "must be a list of objects, `[{…}, {…}]`"),
    ] {
        let path = scratch.write("tools.json", content);
        check(
            &["run", "--tools-file", &path, "x"],
            b"",
            2,
            &format!(
                "hermitcrab: --tools-file {path}: tool declarations: {problem}: see \
                 docs/toolsets.md for the format\n"
            ),
        );
    }
}

#[test]
fn settings_that_are_none() {
    let scratch = Scratch::new();
    for (content, problem) in [
        (
            "[]",
            "it is not a JSON object: invalid type: sequence, expected a map at line 1 column 0",
        ),
        (
            r#"{"base_url": "http://x"}"#,
            "`base_url` comes from --base-url, not from a file",
        ),
        (
            r#"{"max_tool_rounds_per_input": 0}"#,
            "`max_tool_rounds_per_input` must be at least 1",
        ),
        (
            r#"{"max_tokens": 0}"#,
            "`max_tokens` must be at least 1; leave it out for the model's own limit",
        ),
    ] {
        let path = scratch.write("settings.json", content);
        check(
            &["run", "--config", &path, "x"],
            b"",
            2,
            &format!("hermitcrab: --config {path}: {problem}: see docs/settings.md\n"),
        );
    }
}

#[test]
fn an_effort_that_is_none() {
    check(
        &[
            "run",
            "--model",
            "claude-sonnet-4-5",
            "--reasoning-effort",
            "bogus",
            "x",
        ],
        b"",
        2,
        "hermitcrab: --reasoning-effort is \"bogus\"; claude-sonnet-4-5 takes one of none, minimal, low, medium, high, xhigh, max\n",
    );
}

#[test]
fn limits_that_are_none() {
    for option in ["--max-tool-rounds", "--max-turns", "--max-wall-ms"] {
        for value in ["0", "-1", "1.5", "99999999999999999999"] {
            let error = format!(
                "error: invalid value '{value}' for '{option} <N>': give a whole number from 1 on\n\nFor more information, try '--help'.\n"
            );
            check(&["run", option, value, "x"], b"", 2, &error);
        }
    }
}

#[test]
fn base_url_that_is_none() {
    check(
        &["run", "--base-url", "foo", "x"],
        b"",
        2,
        "hermitcrab: --base-url \"foo\" is not an absolute http or https URL: write it like https://host/path\n",
    );
}

#[cfg(unix)]
#[test]
fn variables_not_utf8() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let said = |name: &str, value: &[u8]| {
        let mut command = hermitcrab(&["run", "--base-url", "http://127.0.0.1:1", "x"]);
        command.env("ANTHROPIC_API_KEY", "k");
        if name == "ANTHROPIC_BASE_URL" {
            command = hermitcrab(&["run", "x"]);
            command.env("ANTHROPIC_API_KEY", "k");
        }
        let output = command.env(name, OsStr::from_bytes(value)).output();
        let output = output.expect("the binary");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code(), stderr)
    };
    let (code, stderr) = said("ANTHROPIC_API_KEY", b"k\xff");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("ANTHROPIC_API_KEY"), "{stderr}");
    let (code, stderr) = said("ANTHROPIC_BASE_URL", b"http://127.0.0.\xff:1");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("ANTHROPIC_BASE_URL"), "{stderr}");
}

#[test]
fn directory_that_does_not_exist() {
    let missing = Scratch::new().path("missing");
    check(
        &["run", "--dir", &missing, "x"],
        b"",
        2,
        &format!(
            "hermitcrab: the directory {missing} does not exist: create it or choose another --dir\n"
        ),
    );
}

#[test]
fn directory_that_is_a_file() {
    let scratch = Scratch::new();
    let file = scratch.write("file", "");
    check(
        &["run", "--dir", &file, "x"],
        b"",
        2,
        &format!("hermitcrab: --dir {file} is not a directory: name the directory to work in\n"),
    );
}

#[test]
fn out_that_cannot_be_written() {
    let out = Scratch::new().path("missing/out.tar");
    check(
        &["run", "--env", "memory", "--out", &out, "x"],
        b"",
        2,
        &format!(
            "hermitcrab: cannot write --out {out}: no such file or directory; choose a file in a directory that you may write to\n"
        ),
    );
}

#[test]
fn out_without_sandbox() {
    check(
        &["run", "--out", "out.tar", "x"],
        b"",
        2,
        "hermitcrab: --out needs --env memory: a local run has changed the directory itself\n",
    );
}

#[test]
fn python_that_is_none() {
    check(
        &["run", "--python", "python.tar.gz", "x"],
        b"",
        2,
        "hermitcrab: --python needs --env memory: commands of a local run have the Python of this machine\n",
    );
    let scratch = Scratch::new();
    let missing = scratch.path("missing.tar.gz");
    let other = scratch.write("notes.txt", "not Python");
    let directory = scratch.path("");
    for (path, problem) in [
        (&missing, "there is no"),
        (&other, "is not a tar archive"),
        (&directory, "is a directory and not an archive"),
    ] {
        let said = match problem.starts_with("there") {
            true => format!("{problem} {path}"),
            false => format!("{path} {problem}"),
        };
        check(
            &["run", "--env", "memory", "--python", path, "x"],
            b"",
            2,
            &format!(
                "hermitcrab: --python: {said}: name the file python.tar.gz that `cargo xtask python` makes\n"
            ),
        );
    }
}

#[test]
fn instructions_that_cannot_be_read() {
    let missing = Scratch::new().path("missing");
    check(
        &["run", "--instructions", &missing, "x"],
        b"",
        2,
        &format!(
            "hermitcrab: cannot read --instructions {missing}: no such file or directory: check the path\n"
        ),
    );
}

#[test]
fn prompts_that_are_none() {
    check(
        &["run"],
        b"ignored",
        2,
        "hermitcrab: there is no prompt: give the task as an argument, or - to read it from stdin\n",
    );
    check(
        &["run", "-"],
        b"ab\xff",
        2,
        "hermitcrab: the prompt on stdin is not valid UTF-8 (byte 2): convert it to UTF-8 text\n",
    );
    check(
        &["run", "-"],
        b"\n",
        2,
        "hermitcrab: the prompt is empty: put the task into stdin\n",
    );
}

#[test]
fn prompt_that_is_too_long() {
    check(
        &["run", "-"],
        &vec![b'x'; 100_000_000],
        2,
        "hermitcrab: the prompt on stdin has more than 32 MiB: put what is long into a file that the model can read\n",
    );
}

#[cfg(unix)]
#[test]
fn prompt_argument_not_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let mut command = hermitcrab(&["run"]);
    command
        .arg(std::ffi::OsStr::from_bytes(b"a\xff"))
        .env("ANTHROPIC_API_KEY", "k");
    let message = "hermitcrab: the prompt is not valid UTF-8: give it as UTF-8 text\n";
    check_command(command, b"", 2, message);
}

#[test]
fn malformed_script() {
    let scratch = Scratch::new();
    let script = scratch.write("script.json", "{\"steps\": [\n  {\"text\": \"a\",}]}");
    check(
        &["serve-model", &script],
        b"",
        2,
        &format!(
            "hermitcrab: {script} is not a script: step 1, line 2, column 16: trailing comma\n"
        ),
    );
}

#[test]
fn script_that_is_a_list() {
    let scratch = Scratch::new();
    let script = scratch.write("script.json", "[]");
    check(
        &["serve-model", &script],
        b"",
        2,
        &format!(
            "hermitcrab: {script} is not a script: line 1, column 1: a script is an object such as {{\"steps\": [{{\"text\": \"hello\"}}]}}, not a list\n"
        ),
    );
}

#[test]
fn serve_model_plays_the_script() {
    let scratch = Scratch::new();
    let script = scratch.write("script.json", r#"{"steps":[{"text":"one"}]}"#);
    let mut server = hermitcrab(&["serve-model", &script, "--port", "0", "--loop"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary");
    let mut line = String::new();
    BufReader::new(server.stdout.take().expect("stdout"))
        .read_line(&mut line)
        .expect("a line");
    let address = line
        .trim_end()
        .strip_prefix("listening on http://")
        .expect("the address")
        .to_owned();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        let body = r#"{"stream":true}"#;
        write!(
            stream,
            "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains(r#""text":"one""#), "{answer}");
    }
    server.kill().expect("a running server");
    server.wait().expect("an end");
}
