//! `eval merge`: the shards of a run as one directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::results::{self, Directory, Row};
use super::settings;
use super::statistics::{Summary, Sums};

/// Runs that were joined.
#[derive(Clone, Debug)]
pub struct Merged {
    /// What came of all trials.
    pub summary: Summary,
    /// What is not there, in sentences: shards that are missing or have not ended, results
    /// and files that were lost.
    pub missing: Vec<String>,
}

/// Joins the results in `shards` to a new run in `out`.
///
/// # Errors
/// A directory that is no run, a trial that two of them have, or a disk that fails.
pub fn merge(shards: &[PathBuf], out: &Path) -> Result<Merged, String> {
    let none = "none".to_owned();
    let mut all: BTreeMap<(String, u32), (usize, Row)> = BTreeMap::new();
    let mut settings = None;
    let mut missing = Vec::new();
    let mut numbers: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for (number, shard) in shards.iter().enumerate() {
        let own = settings::read(shard)?;
        let first = settings.get_or_insert_with(|| own.clone());
        for (what, one, other) in [
            ("seeds", &first.seed, &own.seed),
            ("cores", &first.core, &own.core),
            ("models", &first.model, &own.model),
            ("providers", &first.provider, &own.provider),
            ("environments", &first.env, &own.env),
            (
                "numbers of trials",
                &first.trials.to_string(),
                &own.trials.to_string(),
            ),
            (
                "filters",
                first.filter.as_ref().unwrap_or(&none),
                own.filter.as_ref().unwrap_or(&none),
            ),
        ] {
            if one != other {
                return Err(format!(
                    "{} and {} are no shards of one run: their {what} differ ({one} and {other})",
                    shards[0].display(),
                    shard.display()
                ));
            }
        }
        if own.ended == Some(false) {
            missing.push(format!(
                "{} has not ended: run it again with --resume",
                shard.display()
            ));
        }
        if let Some((number, of)) = own.shard.as_deref().and_then(shard_of) {
            numbers.entry(of).or_default().insert(number);
        }
        let rows = results::read(shard)?;
        if let Some(results) = own.results.filter(|results| rows.len() < *results) {
            missing.push(format!(
                "{} has {} of its {results} results: run it again with --resume",
                shard.display(),
                rows.len()
            ));
        }
        for row in rows {
            let key = (row.task.clone(), row.trial);
            if let Some((earlier, _)) = all.get(&key) {
                return Err(format!(
                    "{} and {} both have trial {} of {}",
                    shards[*earlier].display(),
                    shard.display(),
                    row.trial,
                    row.task
                ));
            }
            all.insert(key, (number, row));
        }
    }
    for (of, found) in numbers {
        let absent: Vec<_> = (1..=of).filter(|number| !found.contains(number)).collect();
        let names = absent.iter().map(|number| format!("{number}/{of}"));
        let names: Vec<_> = names.collect();
        if !names.is_empty() {
            missing.push(format!("no shard {} is among them", names.join(", ")));
        }
    }
    let directory = Directory::take(out)?;
    if directory.has_results() {
        return Err(format!(
            "{} holds the results of a run: choose another --out",
            out.display()
        ));
    }
    let mut sums = Sums::default();
    for (shard, row) in all.values() {
        let (from, to) = (shards[*shard].join(&row.dir), out.join(&row.dir));
        let copied = copy(&from, &to).map_err(|error| results::cannot_write(out, &error))?;
        // A task that was none has no files.
        if !copied && row.passed.is_some() {
            missing.push(format!("{} is missing: its files are lost", from.display()));
        }
        sums.add(row);
    }
    if let Some(mut settings) = settings {
        settings.shard = None;
        settings.ended = Some(missing.is_empty());
        settings.results = Some(all.len());
        settings::write(out, &settings)?;
    }
    directory.rewrite(all.values().map(|(_, row)| row))?;
    super::report::write(out).map_err(|error| results::cannot_write(out, &error))?;
    let summary = sums.summary();
    Ok(Merged { summary, missing })
}

/// Number and count of `i/n`.
fn shard_of(text: &str) -> Option<(u32, u32)> {
    let (number, of) = text.split_once('/')?;
    Some((number.parse().ok()?, of.parse().ok()?))
}

/// The files of a trial: linked where both are on one disk, else copied. Tells whether
/// there are any.
fn copy(from: &Path, to: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        entries => entries?,
    };
    super::artifacts::fresh(to)?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(true)
}
