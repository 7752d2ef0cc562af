//! Where a provider is, and the environment variables that say so (LLM-client
//! brief §1).

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Where a provider is, and how to present oneself there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Endpoint {
    /// URL without the API's path; empty takes the adapter's own.
    pub base_url: String,
    /// Name under which the host holds the key; never the key itself.
    pub credential: String,
    /// Whether a page sends the request itself (LLM-client brief §11).
    pub browser: bool,
    /// Time limit for connecting, in ms.
    pub connect_timeout_ms: u64,
    /// Options of the adapter; its module names them.
    pub options: Value,
}

impl Endpoint {
    /// An endpoint at `base_url` that uses `credential`.
    pub fn new(base_url: impl Into<String>, credential: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            credential: credential.into(),
            ..Self::default()
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            base_url: String::new(),
            credential: String::new(),
            browser: false,
            connect_timeout_ms: 10_000,
            options: Value::Null,
        }
    }
}

/// Environment variables that set a provider up (LLM-client brief §1). The
/// core reads none: a host gives their values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProviderVariables {
    /// Variables that may hold the key, the first one set counts.
    pub keys: &'static [&'static str],
    /// Variable with the base URL.
    pub base_url: &'static str,
    /// Variables that set an option of the [`Endpoint`], with its name.
    pub options: &'static [(&'static str, &'static str)],
    /// Whether a base URL alone is enough: a server that needs no key.
    pub key_optional: bool,
}

impl ProviderVariables {
    /// The endpoint that `variable` describes, with `credential` as the name
    /// of its key; `None` when the provider is not set up. Empty values count
    /// as absent.
    pub fn endpoint(
        &self,
        credential: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Option<Endpoint> {
        let set = |name: &str| {
            let value = variable(name)?.trim().to_owned();
            (!value.is_empty()).then_some(value)
        };
        let has_key = self.keys.iter().any(|key| set(key).is_some());
        let base_url = set(self.base_url);
        let is_set_up = has_key || (self.key_optional && base_url.is_some());
        if !is_set_up {
            return None;
        }
        let credential = if has_key { credential } else { "" };
        let mut endpoint = Endpoint::new(base_url.unwrap_or_default(), credential);
        for (name, option) in self.options {
            if let Some(value) = set(name) {
                endpoint.options[*option] = Value::from(value);
            }
        }
        Some(endpoint)
    }
}
