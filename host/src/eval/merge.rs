//! `eval merge`: the shards of a run as one directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::results::{self, Directory, Row};
use super::run::{read_settings, write_settings};
use super::statistics::{Summary, Sums};

/// Joins the results in `shards` to a new run in `out`.
///
/// # Errors
/// A directory that is no run, a trial that two of them have, or a disk that fails.
pub fn merge(shards: &[PathBuf], out: &Path) -> Result<Summary, String> {
    let directory = Directory::take(out)?;
    if directory.has_results() {
        return Err(format!(
            "{} holds the results of a run: choose another --out",
            out.display()
        ));
    }
    let mut all: BTreeMap<(String, u32), (usize, Row)> = BTreeMap::new();
    let mut settings = None;
    for (number, shard) in shards.iter().enumerate() {
        let own = read_settings(shard)?;
        let first = settings.get_or_insert_with(|| own.clone());
        for (what, one, other) in [
            ("seeds", &first.seed, &own.seed),
            ("cores", &first.core, &own.core),
            ("models", &first.model, &own.model),
            ("providers", &first.provider, &own.provider),
        ] {
            if one != other {
                return Err(format!(
                    "{} and {} are no shards of one run: their {what} differ ({one} and {other})",
                    shards[0].display(),
                    shard.display()
                ));
            }
        }
        for row in results::read(shard)? {
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
    let mut sums = Sums::default();
    for (shard, row) in all.values() {
        let (from, to) = (shards[*shard].join(&row.dir), out.join(&row.dir));
        copy(&from, &to).map_err(|error| results::cannot_write(out, &error))?;
        sums.add(row);
    }
    if let Some(mut settings) = settings {
        settings.shard = None;
        write_settings(out, &settings)?;
    }
    directory.rewrite(all.values().map(|(_, row)| row))?;
    super::report::write(out).map_err(|error| results::cannot_write(out, &error))?;
    Ok(sums.summary())
}

/// The files of a trial: linked where both are on one disk, else copied.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(from) {
        // A task that was none has no files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
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
    Ok(())
}
