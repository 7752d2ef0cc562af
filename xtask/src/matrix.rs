//! `cargo xtask test matrix`: the parity matrix of the specification (9.12):
//! what its rows ask for, of every provider, on every face. The rows are the
//! session cases `tests/cases/matrix_*.json`; this runs them and makes the table.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xshell::{Shell, cmd};

use crate::native;
use crate::workspace::{NATIVE, cargo, root};

const PROVIDERS: [&str; 3] = ["openai", "anthropic", "gemini"];
const FACES: [&str; 3] = ["native", "component", "node"];

/// Outcome of a cell, by face and case name.
type Outcomes = BTreeMap<(String, String), bool>;

/// Runs the matrix, prints it and writes `docs/parity.md`.
pub(crate) fn run(shell: &Shell, binary: &Path, web: &Path) -> Result<()> {
    let mut outcomes = Outcomes::new();
    let rust = cargo(shell)
        .arg("test")
        .args(NATIVE)
        .args(["--test", "cases", "--", "matrix_"])
        .env(native::EMBED, native::core_path())
        .env("HERMITCRAB_BIN", binary)
        .ignore_status()
        .read()
        .context("cannot run the session cases")?;
    for line in rust.lines() {
        let parts = line
            .strip_prefix("test ")
            .and_then(|line| line.split_once(" ... "));
        if let Some((name, outcome)) = parts
            && let Some((face, case)) = name.split_once("::")
        {
            outcomes.insert((face.to_owned(), case.to_owned()), outcome == "ok");
        }
    }
    let cases = root().join("tests/node/cases.test.mjs");
    let node = cmd!(
        shell,
        "node --test --test-reporter=tap --test-name-pattern=matrix_ {cases}"
    )
    .env("HERMITCRAB_BIN", binary)
    .env("HERMITCRAB_WEB", web)
    .ignore_status()
    .read()
    .context("cannot run the session cases in Node")?;
    for line in node.lines().map(str::trim) {
        let (line, passed) = match line.strip_prefix("not ") {
            Some(rest) => (rest, false),
            None => (line, true),
        };
        if let Some((_, name)) = line.split_once(" - case ")
            && !name.contains("# SKIP")
        {
            outcomes.insert(("node".to_owned(), name.trim().to_owned()), passed);
        }
    }
    let (table, passed, cells) = table(&outcomes)?;
    print!("{table}");
    println!("parity matrix: {passed} of {cells} cells pass");
    shell.write_file(root().join("docs/parity.md"), table)?;
    ensure!(
        passed == cells,
        "{} cells of the parity matrix fail",
        cells - passed
    );
    Ok(())
}

/// The document, and how many of its cells pass.
fn table(outcomes: &Outcomes) -> Result<(String, usize, usize)> {
    let mut text = String::from(
        "# Parity matrix\n\nSection 9.12 of the coding-agent-loop specification: each row is a session case, played with \
         each provider's tools over its wire format, on the native core, on the component and in Node. Written by \
         `cargo xtask test matrix`.\n\n",
    );
    let columns = PROVIDERS
        .iter()
        .flat_map(|provider| FACES.map(|face| format!("{provider} {face}")));
    let columns: Vec<String> = columns.collect();
    writeln!(text, "| case | {} |", columns.join(" | "))?;
    writeln!(text, "|---|{}", "---|".repeat(columns.len()))?;
    let (mut passed, mut cells) = (0, 0);
    let mut names: Vec<_> = std::fs::read_dir(root().join("tests/cases"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .filter(|name| name.starts_with("matrix_"))
        .collect();
    names.sort();
    for name in names {
        let path = root().join(format!("tests/cases/{name}.json"));
        let case: Value = serde_json::from_str(&std::fs::read_to_string(&path)?)
            .with_context(|| format!("cannot read {}", path.display()))?;
        write!(text, "| {} |", case["about"].as_str().unwrap_or(&name))?;
        for provider in PROVIDERS {
            for face in FACES {
                let key = (face.to_owned(), format!("{name}@{provider}"));
                let ok = outcomes.get(&key) == Some(&true);
                cells += 1;
                passed += usize::from(ok);
                text.push_str(if ok { " pass |" } else { " **fail** |" });
            }
        }
        text.push('\n');
    }
    Ok((text, passed, cells))
}
