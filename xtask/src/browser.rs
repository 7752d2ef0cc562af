//! The web face in Chromium: finds or installs a browser and runs the tests that
//! need one.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use xshell::{Shell, cmd};

use crate::npm;
use crate::workspace::root;

/// The session cases in a page, and the package in the pages of each bundler.
pub(crate) fn cases(shell: &Shell, binary: &Path) -> Result<()> {
    run(shell, binary, "tests/browser/cases.test.mjs", &[])
}

/// The packed package in fresh projects.
pub(crate) fn package(shell: &Shell, binary: &Path) -> Result<()> {
    let tarball = npm::pack(&root().join("target/npm"))?;
    let environment = [("TARBALL", tarball.as_path())];
    run(
        shell,
        binary,
        "tests/package/package.test.mjs",
        &environment,
    )
}

<<<<<<< HEAD
fn run(shell: &Shell, binary: &Path, file: &str, environment: &[(&str, &Path)]) -> Result<()> {
    let Some(browser) = find_or_skip(shell)? else {
        return Ok(());
    };
    npm::tools(shell)?;
    cmd!(shell, "node --test {file}")
        .env("CHROMIUM", browser)
        .env("HERMITCRAB_BIN", binary)
        .envs(environment.iter().copied())
        .run()
        .with_context(|| format!("{file} failed"))
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
=======
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
>>>>>>> main
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
