//! Golden transcripts: one normalised event per line.

use serde_json::Value;

use super::case::directory;

/// Compares `transcript` with `NAME.transcript.jsonl`, or rewrites that.
pub fn compare(name: &str, transcript: &[Value], rewrite: bool) -> Result<(), String> {
    let path = directory().join(format!("{name}.transcript.jsonl"));
    if rewrite {
        let lines: String = transcript.iter().map(|line| format!("{line}\n")).collect();
        return std::fs::write(&path, lines)
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    let text = std::fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}; UPDATE_EXPECT=1 writes it", path.display()))?;
    let golden: Vec<Value> = text
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if golden == transcript {
        return Ok(());
    }
    let golden: String = golden.iter().map(|line| format!("{line}\n")).collect();
    let found: String = transcript.iter().map(|line| format!("{line}\n")).collect();
    let diff = similar::TextDiff::from_lines(&golden, &found);
    Err(format!(
        "another transcript:\n{}",
        diff.unified_diff()
            .context_radius(3)
            .header("golden", "found")
    ))
}

/// Whether expected files are to be rewritten.
pub fn rewriting() -> bool {
    std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1")
}
