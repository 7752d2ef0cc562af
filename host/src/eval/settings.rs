//! `run.json`: what a run was asked to do, for its report and for those who go on
//! with it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::results;

/// What a run was, kept beside its results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Settings {
    pub(super) hermitcrab: String,
    pub(super) suite: PathBuf,
    pub(super) title: String,
    pub(super) created_at: String,
    pub(super) seed: String,
    pub(super) trials: u32,
    pub(super) jobs: usize,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) script: Option<String>,
    pub(super) provider_answers: bool,
    pub(super) filter: Option<String>,
    pub(super) shard: Option<String>,
    pub(super) env: String,
    pub(super) core: String,
    /// Whether all of its trials ran; absent in runs of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<bool>,
    /// Results that it has, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) results: Option<usize>,
}

pub(super) const SETTINGS: &str = "run.json";

/// The settings of the run in `directory`.
///
/// # Errors
/// A sentence: there are none, or they are damaged.
pub(super) fn read(directory: &Path) -> Result<Settings, String> {
    let path = directory.join(SETTINGS);
    let text = std::fs::read(&path)
        .map_err(|error| format!("cannot read {}: {}", path.display(), super::reason(&error)))?;
    serde_json::from_slice(&text).map_err(|error| format!("{} is damaged: {error}", path.display()))
}

/// Puts them in place of those that are there.
///
/// # Errors
/// A sentence: they cannot be written.
pub(super) fn write(directory: &Path, settings: &Settings) -> Result<(), String> {
    let path = directory.join(SETTINGS);
    let aside = directory.join(".run.json.new");
    let json = serde_json::to_vec_pretty(settings).map_err(|error| error.to_string())?;
    std::fs::write(&aside, json)
        .and_then(|()| std::fs::rename(&aside, &path))
        .map_err(|error| results::cannot_write(directory, &error))
}
