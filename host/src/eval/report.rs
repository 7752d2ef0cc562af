//! `report.html`: the results of a run in one file that needs no network. It is
//! written trial by trial, so that a large run needs little memory.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::results::{self, Row};
use super::settings;
use super::statistics::{Estimate, Sums};
use super::timeline;

const TEMPLATE: &str = include_str!("report.html");
/// What the data replaces.
const PLACE: &str = "/*DATA*/null";
/// What the SHA-256 of the page's script replaces: the only script that its policy lets
/// run.
const HASH: &str = "/*HASH*/";
/// Trials whose timelines are in the page; beyond them it would not open.
const DETAILED: usize = 5_000;

/// The page without data, with the hash of its script.
fn template() -> String {
    let script = TEMPLATE.split_once("<script>");
    let script = script.and_then(|(_, rest)| rest.split_once("</script>"));
    let script = script.map_or("", |(script, _)| script);
    TEMPLATE.replacen(HASH, &STANDARD.encode(Sha256::digest(script)), 1)
}

/// Writes the report of the run in `directory`.
pub(super) fn write(directory: &Path) -> io::Result<()> {
    let rows = results::read(directory).map_err(io::Error::other)?;
    let settings = settings::read(directory).unwrap_or_default();
    let aside = directory.join(".report.html.new");
    let mut file = BufWriter::with_capacity(1 << 16, File::create(&aside)?);
    let template = template();
    let (before, after) = template.split_once(PLACE).unwrap_or((&template, ""));
    file.write_all(before.as_bytes())?;
    let mut sums = Sums::default();
    let mut wall_ms = 0;
    for row in &rows {
        sums.add(row);
        wall_ms += row.wall_ms;
    }
    let summary = sums.summary();
    let outcomes: Map<String, Value> = summary
        .outcomes
        .iter()
        .map(|(outcome, count)| (outcome.as_str().to_owned(), (*count).into()))
        .collect();
    let estimates = |all: &[Estimate]| -> Value {
        let all = all.iter();
        all.map(|it| json!([it.k, it.share, it.low, it.high]))
            .collect()
    };
    let head = json!({
        "title": settings.title,
        "created_at": settings.created_at,
        "settings": settings,
        "summary": {
            "tasks": summary.tasks,
            "trials": summary.trials,
            "outcomes": outcomes,
            "pass_at": estimates(&summary.pass_at),
            "pass_hat": estimates(&summary.pass_hat),
            "cost_usd": summary.cost_usd,
            "tokens": summary.tokens,
            "wall_ms": wall_ms,
        },
    });
    let head = head.to_string().replace('<', "\\u003c");
    // Without its last brace: the trials follow.
    file.write_all(head.strip_suffix('}').unwrap_or(&head).as_bytes())?;
    file.write_all(b",\"trials\":[")?;
    for (number, row) in rows.iter().enumerate() {
        if number > 0 {
            file.write_all(b",\n")?;
        }
        write_row(&mut file, directory, row, number < DETAILED)?;
    }
    file.write_all(b"]}")?;
    file.write_all(after.as_bytes())?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?;
    std::fs::rename(&aside, directory.join("report.html"))
}

fn write_row(
    file: &mut impl Write,
    directory: &Path,
    row: &Row,
    is_detailed: bool,
) -> io::Result<()> {
    let mut value = serde_json::to_value(row)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("parts");
        fields.insert("detail".to_owned(), Value::Null);
    }
    let text = value.to_string().replace('<', "\\u003c");
    let Some(open) = text.strip_suffix("null}").filter(|_| is_detailed) else {
        return file.write_all(text.as_bytes());
    };
    file.write_all(open.as_bytes())?;
    file.write_all(b"\"")?;
    {
        let encoder = EncoderWriter::new(&mut *file, &STANDARD);
        let mut packed = GzEncoder::new(encoder, Compression::new(6));
        let detail = timeline::of(&directory.join(&row.dir));
        serde_json::to_writer(&mut packed, &detail)?;
        packed.finish()?.finish()?;
    }
    file.write_all(b"\"}")
}
