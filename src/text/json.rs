//! JSON into types.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads `json` by way of a tree. Each type would otherwise be compiled for
/// text and for trees, which costs the download more than the detour costs
/// time: only what a model streams is read from text. A type's error has no
/// line; of a name that comes twice the last one counts.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> serde_json::Result<T> {
    let tree: Value = serde_json::from_str(json)?;
    serde_json::from_value(tree)
}
