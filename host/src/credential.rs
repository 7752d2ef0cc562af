//! The keys that the host holds, and the door at which they are filled in.
//!
//! The core names a credential and never sees its key. The host puts the key
//! into the header only if the request goes to the origin that the key belongs
//! to, so that neither a changed URL nor a redirect can carry it elsewhere.
//! ARCHITECTURE.md, *Cross-cutting concerns*, describes the way of a key.

use std::collections::BTreeMap;
use std::fmt;

use hermitcrab::llm::{Auth, TransportError, TransportErrorKind};
use reqwest::Url;
use reqwest::header::HeaderValue;

/// Name → key and the one origin it may be sent to.
#[derive(Clone, Default)]
pub struct Credentials(BTreeMap<String, Credential>);

#[derive(Clone)]
struct Credential {
    key: String,
    origin: Origin,
}

impl Credentials {
    /// Holds no key.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `key` under `name` (such as `anthropic`) for the origin (scheme,
    /// host and port) of `base_url`; a later key of that name replaces it.
    /// White space around the key, which files and pasted lines bring along, is
    /// dropped.
    ///
    /// # Errors
    /// An empty key, a key that no HTTP header can carry, or a base URL that is
    /// not an absolute `http` or `https` URL, or has a query or a fragment. The
    /// sentence holds neither the key nor the URL.
    pub fn add(&mut self, name: &str, key: &str, base_url: &str) -> Result<(), CredentialError> {
        let key = key.trim();
        if key.is_empty() {
            return Err(CredentialError(format!("the key of `{name}` is empty")));
        }
        if HeaderValue::from_str(key).is_err() {
            return Err(CredentialError(format!(
                "the key of `{name}` holds a character that an HTTP header cannot carry; \
                 check it for line breaks"
            )));
        }
        let refused = |why| CredentialError(format!("the base URL of `{name}` {why}"));
        let not_absolute = || refused("is not an absolute http or https URL");
        let url = Url::parse(base_url).map_err(|_| not_absolute())?;
        let origin = Origin::of(&url).ok_or_else(not_absolute)?;
        if url.query().is_some() || url.fragment().is_some() {
            return Err(refused(
                "holds a query or a fragment, behind which no path can stand; leave it out",
            ));
        }
        let key = key.to_owned();
        self.0.insert(name.to_owned(), Credential { key, origin });
        Ok(())
    }

    /// [`Credentials::add`] for building in one expression.
    ///
    /// # Errors
    /// As [`Credentials::add`].
    pub fn with(mut self, name: &str, key: &str, base_url: &str) -> Result<Self, CredentialError> {
        self.add(name, key, base_url)?;
        Ok(self)
    }

    /// Whether a key of that name is held.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The keys, for whoever must keep them out of something, such as the
    /// environment variables of a command ([`crate::LocalBuilder::secrets`]).
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(|credential| credential.key.as_str())
    }

    /// The header value that `auth` asks for, if the key belongs to `url`.
    pub(crate) fn header(&self, auth: &Auth, url: &Url) -> Result<HeaderValue, TransportError> {
        let name = &auth.credential;
        let credential = self.0.get(name).ok_or_else(|| {
            refused(format!(
                "the host holds no credential `{name}`; set its key and start again"
            ))
        })?;
        if Origin::of(url).as_ref() != Some(&credential.origin) {
            return Err(refused(format!(
                "credential `{name}` belongs to {} and is not sent to {}",
                credential.origin,
                origin_text(url)
            )));
        }
        let mut value = HeaderValue::from_str(&format!("{}{}", auth.prefix, credential.key))
            .map_err(|_| {
                refused(format!(
                    "the prefix of credential `{name}` holds a character that an HTTP header \
                     cannot carry"
                ))
            })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(self.0.iter().map(|(name, c)| (name, c.origin.to_string())))
            .finish()
    }
}

/// Why a credential was not accepted: one sentence, never with the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialError(String);

impl fmt::Display for CredentialError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CredentialError {}

/// Scheme, host and port; host names in lower case, as [`Url`] gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str()?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match (self.scheme.as_str(), self.port) {
            ("http", 80) | ("https", 443) => Ok(()),
            (_, port) => write!(f, ":{port}"),
        }
    }
}

/// `url` without user, path and query, which may hold secrets.
pub(crate) fn origin_text(url: &Url) -> String {
    Origin::of(url).map_or_else(|| format!("a {} URL", url.scheme()), |o| o.to_string())
}

fn refused(message: String) -> TransportError {
    TransportError {
        kind: TransportErrorKind::Credential,
        message,
    }
}
