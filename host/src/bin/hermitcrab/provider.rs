//! Which provider to use, with which key, at which URL. What there is to know
//! of a provider its adapter says.

use hermitcrab::llm::{Adapter, adapter};
use hyper::Uri;

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
    let variable = |name: &str| {
        let value = variable(name)?.trim().to_owned();
        (!value.is_empty()).then_some(value)
    };
    let url_of = |adapter: &dyn Adapter| {
        let from = adapter.variables().base_url;
        match (base_url, variable(from)) {
            (Some(url), _) => Some((url.to_owned(), "--base-url")),
            (None, Some(url)) => Some((url, from)),
            (None, None) => None,
        }
    };
    let key_of = |adapter: &dyn Adapter| {
        let mut keys = adapter.variables().keys.iter();
        keys.find_map(|name| variable(name).map(|key| (key, *name)))
    };
    let needs_no_key = |adapter: &dyn Adapter, url: Option<&str>| match url {
        Some(url) => adapter.variables().key_optional || is_loopback(url),
        None => false,
    };
    let usable = |adapter: &&'static dyn Adapter| {
        let url = url_of(*adapter).map(|(url, _)| url);
        // A base URL that is meant for any provider means the first one.
        let alone = adapter.name() != "chat" || base_url.is_none();
        key_of(*adapter).is_some() || (alone && needs_no_key(*adapter, url.as_deref()))
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
    let (base_url, source) = url_of(provider)
        .unwrap_or_else(|| (provider.default_base_url().to_owned(), provider.name()));
    check_url(&base_url, source)?;
    let (key, key_name) = match key_of(provider) {
        Some(found) => found,
        None if needs_no_key(provider, Some(&base_url)) => (NO_KEY.to_owned(), ""),
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
    Ok(Chosen {
        provider: provider.name(),
        key,
        base_url,
    })
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
        let chosen = choose(name, base_url, |wanted| {
            variables
                .iter()
                .filter_map(|word| word.split_once('='))
                .find_map(|(name, value)| (name == wanted).then(|| value.to_owned()))
        });
        let expected = expected
            .map(|(provider, key, base_url)| Chosen {
                provider,
                key: key.to_owned(),
                base_url: base_url.to_owned(),
            })
            .map_err(Failure::usage);
        assert_eq!(chosen, expected);
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
