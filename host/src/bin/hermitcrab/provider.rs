//! Which provider to use, with which key, at which URL. What there is to know
//! of a provider its adapter says.

use hermitcrab::llm::{Adapter, adapter};
use hermitcrab::session::ProviderEndpoint;
use hyper::Uri;
use serde_json::Value;

use crate::failure::Failure;

/// Providers in the order in which the default is looked for.
const PROVIDERS: [&str; 4] = ["anthropic", "openai", "gemini", "chat"];

/// The variables that hold keys.
pub(crate) fn keys() -> Vec<&'static str> {
    let adapters = PROVIDERS.into_iter().filter_map(adapter);
    adapters
        .flat_map(|adapter| adapter.variables().keys.iter().copied())
        .collect()
}

/// A provider, ready to be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Name, also of the credential.
    pub(crate) provider: &'static str,
    /// Key.
    pub(crate) key: String,
    /// Base URL.
    pub(crate) base_url: String,
    /// Options of its adapter, an object or null.
    pub(crate) options: Value,
}

impl Chosen {
    /// The same for the session, without the key.
    pub(crate) fn endpoint(&self) -> ProviderEndpoint {
        ProviderEndpoint {
            base_url: Some(self.base_url.clone()),
            credential: None,
            options: self.options.clone(),
        }
    }
}

/// What stands for a key where none is needed: a server on this machine, such
/// as `hermitcrab serve-model`.
const NO_KEY: &str = "no-key";

/// Chooses by the options and the environment variables that `variable` gives.
///
/// # Errors
/// The provider is unknown, its key is missing, or the base URL is not one.
pub(crate) fn choose(
    name: Option<&str>,
    base_url: Option<&str>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Chosen, Failure> {
    let surroundings = Surroundings {
        base_url,
        variable: &variable,
    };
    let usable = |adapter: &&'static dyn Adapter| {
        // A base URL that is meant for any provider means the first one.
        let alone = adapter.name() != "chat" || base_url.is_none();
        surroundings.key_of(*adapter).is_some() || (alone && surroundings.needs_no_key(*adapter))
    };
    let provider = match name {
        Some(name) => PROVIDERS
            .into_iter()
            .find(|known| *known == name)
            .and_then(adapter)
            .ok_or_else(|| {
                let known = one_of(&PROVIDERS);
                Failure::usage(format!("there is no provider {name:?}: choose {known}"))
            })?,
        None => PROVIDERS
            .into_iter()
            .filter_map(adapter)
            .find(usable)
            .ok_or_else(|| {
                Failure::usage(format!(
                    "no provider has a key: set {}, or try `hermitcrab demo`, which needs none",
                    one_of(&keys())
                ))
            })?,
    };
    surroundings.set_up(provider)
}

/// The providers beside `chosen` that the environment variables set up: for
/// subagents. One that is set up wrongly counts as absent; nobody has asked for
/// it.
pub(crate) fn others(chosen: &Chosen, variable: impl Fn(&str) -> Option<String>) -> Vec<Chosen> {
    let surroundings = Surroundings {
        base_url: None,
        variable: &variable,
    };
    PROVIDERS
        .into_iter()
        .filter(|name| *name != chosen.provider)
        .filter_map(adapter)
        .filter(|adapter| {
            surroundings.key_of(*adapter).is_some() || surroundings.needs_no_key(*adapter)
        })
        .filter_map(|adapter| surroundings.set_up(adapter).ok())
        .collect()
}

/// What providers are set up from.
struct Surroundings<'a> {
    /// `--base-url`.
    base_url: Option<&'a str>,
    variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// A variable's value, unless it is empty.
    fn variable(&self, name: &str) -> Option<String> {
        let value = (self.variable)(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    }

    /// The base URL that is set, and by what.
    fn url_of(&self, adapter: &dyn Adapter) -> Option<(String, &'static str)> {
        let from = adapter.variables().base_url;
        match (self.base_url, self.variable(from)) {
            (Some(url), _) => Some((url.to_owned(), "--base-url")),
            (None, Some(url)) => Some((url, from)),
            (None, None) => None,
        }
    }

    /// The key that is set, and by what.
    fn key_of(&self, adapter: &dyn Adapter) -> Option<(String, &'static str)> {
        let mut keys = adapter.variables().keys.iter();
        keys.find_map(|name| self.variable(name).map(|key| (key, *name)))
    }

    /// Whether its URL is set, and to one where no key is needed.
    fn needs_no_key(&self, adapter: &dyn Adapter) -> bool {
        let url = self.url_of(adapter);
        url.is_some_and(|(url, _)| adapter.variables().key_optional || is_loopback(&url))
    }

    fn set_up(&self, provider: &dyn Adapter) -> Result<Chosen, Failure> {
        let (base_url, source) = self
            .url_of(provider)
            .unwrap_or_else(|| (provider.default_base_url().to_owned(), provider.name()));
        check_url(&base_url, source)?;
        let local = provider.variables().key_optional || is_loopback(&base_url);
        let (key, key_name) = match self.key_of(provider) {
            Some(found) => found,
            None if local => (NO_KEY.to_owned(), ""),
            None => {
                return Err(Failure::usage(format!(
                    "there is no key for {}: set {}",
                    provider.name(),
                    one_of(provider.variables().keys)
                )));
            }
        };
        if let Some(at) = key.chars().position(|c| !(' '..='~').contains(&c)) {
            return Err(Failure::usage(format!(
                "{key_name} is not a key: its character {} cannot stand in an HTTP header; copy it again",
                at + 1
            )));
        }
        let mut options = Value::Null;
        for (name, option) in provider.variables().options {
            if let Some(value) = self.variable(name) {
                options[*option] = Value::from(value);
            }
        }
        Ok(Chosen {
            provider: provider.name(),
            key,
            base_url,
            options,
        })
    }
}

fn one_of(names: &[&str]) -> String {
    match names {
        [name] => (*name).to_owned(),
        names => format!("one of {}", names.join(", ")),
    }
}

fn check_url(url: &str, source: &str) -> Result<(), Failure> {
    let parsed: Option<Uri> = url.parse().ok();
    let whole = parsed.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.host().is_some_and(|host| !host.is_empty())
    });
    // Not shown: it is a secret, and would not be sent.
    let named = url.split_once("://").map_or(url, |(_, rest)| rest);
    if named
        .split(['/', '?', '#'])
        .next()
        .is_some_and(|host| host.contains('@'))
    {
        return Err(Failure::usage(format!(
            "{source} has a user name or password in it, which are not sent: write it like https://host/path, and give a key in the provider's variable"
        )));
    }
    if url.contains(['?', '#']) {
        return Err(Failure::usage(format!(
            "{source} holds a query or a fragment, behind which no path can stand: write it like https://host/path"
        )));
    }
    if whole {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{source} {url:?} is not an absolute http or https URL: write it like https://host/path"
    )))
}

fn is_loopback(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let host = uri.host().unwrap_or_default();
    host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `variables` are `NAME=value` words.
    fn check(
        name: Option<&str>,
        base_url: Option<&str>,
        variables: &[&str],
        expected: Result<(&str, &str), &str>,
    ) {
        let expected = expected.map(|(key, base_url)| ("anthropic", key, base_url));
        check_provider(name, base_url, variables, expected);
    }

    fn check_provider(
        name: Option<&str>,
        base_url: Option<&str>,
        variables: &[&str],
        expected: Result<(&'static str, &str, &str), &str>,
    ) {
        let chosen = choose(name, base_url, among(variables));
        let expected = expected
            .map(|(provider, key, base_url)| Chosen {
                provider,
                key: key.to_owned(),
                base_url: base_url.to_owned(),
                options: Value::Null,
            })
            .map_err(Failure::usage);
        assert_eq!(chosen, expected);
    }

    fn among<'a>(variables: &'a [&'a str]) -> impl Fn(&str) -> Option<String> + 'a {
        |wanted| {
            variables
                .iter()
                .filter_map(|word| word.split_once('='))
                .find_map(|(name, value)| (name == wanted).then(|| value.to_owned()))
        }
    }

    /// `expected`: provider, key, base URL.
    fn check_others(variables: &[&str], expected: &[(&str, &str, &str)]) {
        let chosen = choose(
            Some("anthropic"),
            Some("http://localhost"),
            among(variables),
        );
        let chosen = chosen.expect("a provider");
        let others = others(&chosen, among(variables));
        let others: Vec<_> = others
            .iter()
            .map(|other| (other.provider, &*other.key, &*other.base_url))
            .collect();
        assert_eq!(others, expected);
    }

    #[test]
    fn others_that_are_set_up() {
        let openai = ("openai", "o", "https://api.openai.com/v1");
        check_others(&["ANTHROPIC_API_KEY=a"], &[]);
        check_others(&["OPENAI_API_KEY=o"], &[openai]);
        check_others(
            &["CHAT_BASE_URL=http://models.lan/v1", "OPENAI_API_KEY=o"],
            &[openai, ("chat", NO_KEY, "http://models.lan/v1")],
        );
        check_others(&["OPENAI_API_KEY=o", "OPENAI_BASE_URL=nonsense"], &[]);
        check_others(&["OPENAI_API_KEY=a\nb"], &[]);
    }

    #[test]
    fn options_by_variable() {
        let variables = [
            "OPENAI_API_KEY=k",
            "OPENAI_ORG_ID=org-1",
            "OPENAI_PROJECT_ID= ",
        ];
        let chosen = choose(None, None, among(&variables)).expect("a provider");
        assert_eq!(chosen.options, serde_json::json!({"organization": "org-1"}));
    }

    #[test]
    fn first_with_a_key() {
        check(
            None,
            None,
            &["ANTHROPIC_API_KEY= k \n"],
            Ok(("k", "https://api.anthropic.com")),
        );
    }

    #[test]
    fn no_key_at_all() {
        let message = "no provider has a key: set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, GOOGLE_API_KEY, CHAT_API_KEY, or try `hermitcrab demo`, which needs none";
        check(None, None, &[], Err(message));
        check(None, None, &["ANTHROPIC_API_KEY="], Err(message));
    }

    #[test]
    fn no_key_for_the_named() {
        check(
            Some("anthropic"),
            None,
            &[],
            Err("there is no key for anthropic: set ANTHROPIC_API_KEY"),
        );
    }

    #[test]
    fn every_provider_by_its_key() {
        for (variable, provider, url) in [
            ("OPENAI_API_KEY=k", "openai", "https://api.openai.com/v1"),
            (
                "GEMINI_API_KEY=k",
                "gemini",
                "https://generativelanguage.googleapis.com",
            ),
            (
                "GOOGLE_API_KEY=k",
                "gemini",
                "https://generativelanguage.googleapis.com",
            ),
            ("CHAT_API_KEY=k", "chat", "http://localhost:11434/v1"),
        ] {
            check_provider(None, None, &[variable], Ok((provider, "k", url)));
        }
        let both = ["OPENAI_API_KEY=o", "GEMINI_API_KEY=g"];
        let url = "https://generativelanguage.googleapis.com";
        check_provider(Some("gemini"), None, &both, Ok(("gemini", "g", url)));
    }

    #[test]
    fn a_chat_server_needs_no_key() {
        let local = "http://localhost:11434/v1";
        check_provider(Some("chat"), None, &[], Ok(("chat", NO_KEY, local)));
        let lan = ["CHAT_BASE_URL=http://models.lan/v1"];
        check_provider(
            None,
            None,
            &lan,
            Ok(("chat", NO_KEY, "http://models.lan/v1")),
        );
    }

    #[test]
    fn unknown_provider() {
        check(
            Some("acme"),
            None,
            &["ANTHROPIC_API_KEY=k"],
            Err("there is no provider \"acme\": choose one of anthropic, openai, gemini, chat"),
        );
    }

    #[test]
    fn base_url_by_option_before_variable() {
        let variables = ["ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=https://b/v"];
        check(None, None, &variables, Ok(("k", "https://b/v")));
        check(None, Some("http://c"), &variables, Ok(("k", "http://c")));
    }

    #[test]
    fn base_url_on_this_machine_needs_no_key() {
        for url in [
            "http://127.0.0.1:80",
            "http://localhost",
            "http://[::1]:9/x",
        ] {
            check(None, Some(url), &[], Ok((NO_KEY, url)));
            check(Some("anthropic"), Some(url), &[], Ok((NO_KEY, url)));
        }
        check(
            Some("anthropic"),
            Some("http://127.0.0.1.example"),
            &[],
            Err("there is no key for anthropic: set ANTHROPIC_API_KEY"),
        );
    }

    #[test]
    fn base_url_with_a_password() {
        check(
            None,
            Some("http://user:pw@host/v1"),
            &["ANTHROPIC_API_KEY=k"],
            Err(
                "--base-url has a user name or password in it, which are not sent: write it like https://host/path, and give a key in the provider's variable",
            ),
        );
    }

    #[test]
    fn base_url_with_a_query() {
        for url in ["https://host/v1?k=secret", "https://host/v1#secret"] {
            check(
                None,
                Some(url),
                &["ANTHROPIC_API_KEY=k"],
                Err(
                    "--base-url holds a query or a fragment, behind which no path can stand: write it like https://host/path",
                ),
            );
        }
    }

    #[test]
    fn base_url_that_is_none() {
        for url in ["", "host", "ftp://host", "http://", "/path", "http://a b"] {
            check(
                None,
                Some(url),
                &["ANTHROPIC_API_KEY=k"],
                Err(&format!(
                    "--base-url {url:?} is not an absolute http or https URL: write it like https://host/path"
                )),
            );
        }
    }

    #[test]
    fn key_with_a_line_break() {
        check(
            None,
            None,
            &["ANTHROPIC_API_KEY=a\nb"],
            Err(
                "ANTHROPIC_API_KEY is not a key: its character 2 cannot stand in an HTTP header; copy it again",
            ),
        );
    }
}
