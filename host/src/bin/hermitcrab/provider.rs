//! Which provider to use, with which key, at which URL. A new provider is one
//! line in [`PROVIDERS`].

use hyper::Uri;

use crate::failure::Failure;

/// In the order in which the default is looked for.
const PROVIDERS: [Provider; 1] = [Provider {
    name: "anthropic",
    key: "ANTHROPIC_API_KEY",
    base_url: "ANTHROPIC_BASE_URL",
    default_base_url: "https://api.anthropic.com",
}];

/// The variables that hold keys.
pub(crate) const KEYS: [&str; PROVIDERS.len()] = {
    let mut keys = [""; PROVIDERS.len()];
    let mut index = 0;
    while index < keys.len() {
        keys[index] = PROVIDERS[index].key;
        index += 1;
    }
    keys
};

struct Provider {
    name: &'static str,
    /// Environment variable that holds the key.
    key: &'static str,
    /// Environment variable that holds the base URL.
    base_url: &'static str,
    default_base_url: &'static str,
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
    let url_of = |provider: &Provider| match base_url {
        Some(url) => (url.to_owned(), "--base-url"),
        None => match variable(provider.base_url) {
            Some(url) => (url, provider.base_url),
            None => (provider.default_base_url.to_owned(), provider.name),
        },
    };
    let usable =
        |provider: &&Provider| variable(provider.key).is_some() || is_loopback(&url_of(provider).0);
    let provider = match name {
        Some(name) => PROVIDERS
            .iter()
            .find(|provider| provider.name == name)
            .ok_or_else(|| {
                let known = one_of(&PROVIDERS.map(|provider| provider.name));
                Failure::usage(format!("there is no provider {name:?}: choose {known}"))
            })?,
        None => PROVIDERS.iter().find(usable).ok_or_else(|| {
            Failure::usage(format!(
                "no provider has a key: set {}, or try `hermitcrab demo`, which needs none",
                one_of(&KEYS)
            ))
        })?,
    };
    let (base_url, source) = url_of(provider);
    check_url(&base_url, source)?;
    let key = match variable(provider.key) {
        Some(key) => key,
        None if is_loopback(&base_url) => NO_KEY.to_owned(),
        None => {
            return Err(Failure::usage(format!(
                "there is no key for {}: set {}",
                provider.name, provider.key
            )));
        }
    };
    if let Some(at) = key.chars().position(|c| !(' '..='~').contains(&c)) {
        return Err(Failure::usage(format!(
            "{} is not a key: its character {} cannot stand in an HTTP header; copy it again",
            provider.key,
            at + 1
        )));
    }
    Ok(Chosen {
        provider: provider.name,
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
        let chosen = choose(name, base_url, |wanted| {
            variables
                .iter()
                .filter_map(|word| word.split_once('='))
                .find_map(|(name, value)| (name == wanted).then(|| value.to_owned()))
        });
        let expected = expected
            .map(|(key, base_url)| Chosen {
                provider: "anthropic",
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
        let message = "no provider has a key: set ANTHROPIC_API_KEY, or try `hermitcrab demo`, which needs none";
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
    fn unknown_provider() {
        check(
            Some("acme"),
            None,
            &["ANTHROPIC_API_KEY=k"],
            Err("there is no provider \"acme\": choose anthropic"),
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
