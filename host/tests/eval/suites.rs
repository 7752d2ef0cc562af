//! The suites of `tests/suites`: every script that solves a task passes its checker,
//! and every one that does not fails it. Tasks that need Python run where
//! `HERMITCRAB_PYTHON` names it (`cargo xtask test programs`).

use super::*;

/// Runs the `tasks` of a suite that need no container; the outcomes of those that can
/// run here.
fn outcomes(suite: &str, tasks: usize, script: &str) -> Vec<(String, String)> {
    let place = Place::new();
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/suites")
        .join(suite);
    let path = path.to_str().expect("UTF-8");
    let mut arguments = vec![path, "--out", "out", "--script", script, "--no-log"];
    let python = std::env::var("HERMITCRAB_PYTHON").ok();
    if let Some(python) = &python {
        arguments.extend(["--python", python]);
    }
    let mut command = place.command(&arguments);
    if python.is_some() {
        // What is compiled of it is kept for this machine.
        command.env_remove("XDG_CACHE_HOME");
    }
    let ran = ran(command);
    let rows = place.rows("out");
    assert_eq!(rows.len(), tasks, "{ran:?}");
    let needs_python = |row: &&Value| {
        let reason = row["reason"].as_str().unwrap_or_default();
        python.is_none() && reason.starts_with("the task needs Python")
    };
    let graded = rows.iter().filter(|row| !needs_python(row));
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    graded
        .map(|row| (text(&row["task"]), text(&row["outcome"])))
        .collect()
}

const OWN: (&str, usize) = ("own", 30);
const HARBOR: (&str, usize) = ("harbor", 5);

#[track_caller]
fn check((suite, tasks): (&str, usize), script: &str, expected: &str) {
    let outcomes = outcomes(suite, tasks, script);
    let others: Vec<_> = outcomes
        .iter()
        .filter(|(_, outcome)| outcome != expected)
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn own_tasks_are_solved() {
    check(OWN, "solve.json", "passed");
}

#[test]
fn own_tasks_are_not_solved_by_plausible_attempts() {
    check(OWN, "fail.json", "failed");
}

#[test]
fn harbor_tasks_are_solved() {
    check(HARBOR, "solve.json", "passed");
}

#[test]
fn harbor_tasks_are_not_solved_by_plausible_attempts() {
    check(HARBOR, "fail.json", "failed");
}
