//! The models of a comparison: the provider, the settings and the key of each.

use hermitcrab::llm::model_info;
use hermitcrab::session::SessionConfig;

use crate::cli::CompareOptions;
use crate::failure::Failure;
use crate::provider::{self, Chosen};
use crate::secrets::Secrets;
use crate::settings::{self, Texts};

/// The settings of a branch of each model, over those of the run, and the providers
/// that are reached.
///
/// # Errors
/// A model is named twice, or cannot be used.
pub(super) fn chosen(
    options: &CompareOptions,
    wanted: &SessionConfig,
    texts: &Texts,
    secrets: &Secrets,
) -> Result<(Vec<SessionConfig>, Vec<Chosen>), Failure> {
    let named: Vec<Option<&str>> = match &options.models[..] {
        [] => vec![None],
        models => models.iter().map(|model| Some(model.trim())).collect(),
    };
    let mut providers: Vec<Chosen> = Vec::new();
    let mut configs: Vec<SessionConfig> = Vec::new();
    for named in named {
        if named == Some("") {
            return Err(Failure::usage(
                "--models has an empty name between its commas",
            ));
        }
        let (provider, model) = split(named, options.provider.as_deref(), wanted);
        let profile = wanted.profile_of(&provider);
        let wire = profile.as_ref().map_or(&*provider, |profile| profile.wire);
        if !providers.iter().any(|chosen| chosen.provider == wire) {
            providers.push(provider::choose(
                Some(wire),
                options.base_url.as_deref(),
                |name| secrets.variable(name),
            )?);
        }
        let settings = wanted.clone();
        let mut config =
            settings::config(&options.settings, provider, model, texts.clone(), settings);
        settings::check(&config, &options.settings, model)?;
        if let (true, Ok(profile)) = (config.model.is_empty(), &profile) {
            config.model = profile.default_model.clone();
        }
        let is_same = |other: &SessionConfig| {
            (&other.provider, &other.model) == (&config.provider, &config.model)
        };
        if configs.iter().any(is_same) {
            return Err(Failure::usage(format!(
                "--models names {} twice: --trials K runs a model K times",
                config.model
            )));
        }
        configs.push(config);
    }
    if let Some(first) = providers.first() {
        let others = provider::others(first, |name| secrets.variable(name));
        for other in others {
            if !providers.iter().any(|it| it.provider == other.provider) {
                providers.push(other);
            }
        }
    }
    for config in &mut configs {
        config.endpoints = providers
            .iter()
            .map(|provider| (provider.provider.to_owned(), provider.endpoint()))
            .collect();
    }
    Ok((configs, providers))
}

/// Provider and model of an entry of `--models`; none is the run's model.
fn split<'a>(
    named: Option<&'a str>,
    provider: Option<&str>,
    wanted: &SessionConfig,
) -> (String, Option<&'a str>) {
    // Ids of models may hold colons and slashes, so only a name that is known counts.
    let with = named.and_then(|named| named.split_once(':'));
    if let Some((provider, model)) = with
        && wanted.profile_of(provider).is_ok()
    {
        return (provider.to_owned(), Some(model));
    }
    let own = &wanted.provider;
    let wire = wanted.profile_of(own).map(|profile| profile.wire);
    let wire = wire.unwrap_or(own);
    // A server that speaks Chat Completions may name its models as it likes.
    let listed = named.filter(|_| wire != "chat").and_then(model_info);
    let listed = listed.map(|model| &*model.provider);
    let listed = listed.filter(|listed| *listed != wire);
    (provider.or(listed).unwrap_or(own).to_owned(), named)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(of_run: &str, named: &str, option: Option<&str>, expected: (&str, &str)) {
        let wanted = SessionConfig {
            provider: of_run.to_owned(),
            ..SessionConfig::default()
        };
        let (provider, model) = split(Some(named), option, &wanted);
        assert_eq!(
            (&*provider, model),
            (expected.0, Some(expected.1)),
            "{named}"
        );
    }

    #[test]
    fn whose_a_model_is() {
        let opus = "claude-opus-4-6";
        check("openai", opus, None, ("anthropic", opus));
        check("anthropic", opus, None, ("anthropic", opus));
        check("chat", opus, None, ("chat", opus));
        check("anthropic", "unheard-of", None, ("anthropic", "unheard-of"));
        check(
            "anthropic",
            "unheard-of",
            Some("openai"),
            ("openai", "unheard-of"),
        );
        check(
            "anthropic",
            "chat:llama3:8b",
            Some("openai"),
            ("chat", "llama3:8b"),
        );
        check("chat", "qwen/coder:free", None, ("chat", "qwen/coder:free"));
    }
}
