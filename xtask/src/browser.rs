//! The web face in Chromium: serves a page that plays one session against the
//! scripted model and checks what the page reports.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use xshell::{Shell, cmd};

use crate::workspace::root;

/// How long the page may take, the start of the browser included.
const HANG_GUARD: Duration = Duration::from_secs(120);

/// `eval` and inline scripts are forbidden; compiling WebAssembly is not.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
                      connect-src 'self' http://127.0.0.1:*";

pub(crate) fn smoke(shell: &Shell, binary: &Path) -> Result<()> {
    let Some(browser) = find_or_skip(shell)? else {
        return Ok(());
    };
    let script = root().join("tests/browser/script.json");
    let mut model = Command::new(binary)
        .args(["serve-model", "--port", "0"])
        .arg(script)
        .stdout(Stdio::piped())
        .spawn()
        .map(Guard)?;
    let mut line = String::new();
    let stdout = model.0.stdout.take().context("serve-model has no output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let model_url = line
        .trim()
        .strip_prefix("listening on ")
        .with_context(|| format!("serve-model said {line:?}"))?;

    let listener = TcpListener::bind("127.0.0.1:0")?;
    let page = format!(
        "http://{}/tests/browser/index.html?model={model_url}",
        listener.local_addr()?
    );
    let (sender, receiver) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let profile = tempfile::tempdir()?;
    let _browser = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
        ])
        .args(["--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(page)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(Guard)?;
    check(&result(&receiver)?)
}

fn result(receiver: &Receiver<Vec<u8>>) -> Result<Value> {
    let body = receiver
        .recv_timeout(HANG_GUARD)
        .context("the page reported nothing")?;
    Ok(serde_json::from_slice(&body)?)
}

fn check(result: &Value) -> Result<()> {
    ensure!(
        result["error"].is_null(),
        "in the page: {}",
        result["error"]
    );
    let expected = json!({
        "text": "It adds now.",
        "file": "echo $(($1 + $2))\n",
        "isolated": false,
    });
    for (name, value) in expected.as_object().into_iter().flatten() {
        ensure!(
            &result[name] == value,
            "{name}: expected {value}, the page has {}",
            result[name]
        );
    }
    let kinds = result["kinds"].as_array().context("no events")?;
    for kind in ["ASSISTANT_TEXT_DELTA", "TOOL_CALL_END", "PROCESSING_END"] {
        ensure!(kinds.iter().any(|k| k == kind), "no {kind} among {kinds:?}");
    }
    let outputs = result["outputs"].as_array().context("no outputs")?;
    ensure!(
        outputs.len() == 3 && outputs[2].as_str().is_some_and(|o| o.trim() == "5"),
        "outputs: {outputs:?}"
    );
    println!("browser: the page played its session; 1 passed");
    Ok(())
}

/// Ends its process when dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The browser to test with. On a machine where none can be had, the other
/// tests still count, unless it is CI's.
pub(crate) fn find_or_skip(shell: &Shell) -> Result<Option<PathBuf>> {
    match chromium(shell) {
        Ok(browser) => Ok(Some(browser)),
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped the browser test: {error:#}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Chromium or Chrome; installs Debian's package where that is possible.
pub(crate) fn chromium(shell: &Shell) -> Result<PathBuf> {
    const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
    let find = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .flat_map(|dir| NAMES.map(|name| dir.join(name)))
            .find(|file| file.is_file())
    };
    if let Some(browser) = find() {
        return Ok(browser);
    }
    let install = cmd!(shell, "apt-get update -qq")
        .quiet()
        .ignore_stdout()
        .run()
        .and_then(|()| {
            cmd!(shell, "apt-get install -y -qq chromium")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .quiet()
                .ignore_stdout()
                .run()
        });
    install.context("no Chromium found and none can be installed; put `chromium` on the PATH")?;
    find().context("Debian's chromium is installed but not on the PATH")
}

/// Serves `js/` and `tests/browser/`, and hands on what is posted to `/result`.
fn serve(listener: &TcpListener, results: &Sender<Vec<u8>>) {
    for stream in listener.incoming().flatten() {
        let results = results.clone();
        std::thread::spawn(move || {
            // A page that goes away in the middle is not our problem.
            let _ = answer(stream, &results);
        });
    }
}

fn answer(mut stream: TcpStream, results: &Sender<Vec<u8>>) -> Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = request.split(' ');
    let method = words.next().unwrap_or_default();
    let path = words.next().unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    if (method, path) == ("POST", "/result") {
        results.send(body)?;
        return respond(&mut stream, "204 No Content", "text/plain", &[]);
    }
    let allowed = path.starts_with("/js/") || path.starts_with("/tests/browser/");
    let file = (allowed && !path.contains(".."))
        .then(|| std::fs::read(root().join(path.trim_start_matches('/'))).ok())
        .flatten();
    match file {
        Some(content) => {
            let kind = match Path::new(path).extension().and_then(|e| e.to_str()) {
                Some("html") => "text/html",
                Some("js" | "mjs") => "text/javascript",
                Some("wasm") => "application/wasm",
                _ => "application/octet-stream",
            };
            respond(&mut stream, "200 OK", kind, &content)
        }
        None => respond(&mut stream, "404 Not Found", "text/plain", b"not found"),
    }
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, body: &[u8]) -> Result<()> {
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
         content-security-policy: {POLICY}\r\nconnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body)?;
    Ok(())
}
