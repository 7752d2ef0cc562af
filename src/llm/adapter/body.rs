//! What the requests of all adapters share: endpoint and options.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::llm::endpoint::Endpoint;
use crate::llm::http::{Auth, HttpRequest};
use crate::llm::message::Message;
use crate::llm::model::{ModelInfo, model_info};
use crate::llm::request::Request;
use crate::llm::warning::Warning;

/// What the catalogue knows about the request's model, if `provider` serves it.
pub(super) fn known_model(provider: &str, request: &Request) -> Option<&'static ModelInfo> {
    model_info(&request.model).filter(|info| info.provider == provider)
}

/// The id on the wire; an alias of the catalogue is not one.
pub(super) fn wire_model<'a>(info: Option<&'static ModelInfo>, request: &'a Request) -> &'a str {
    match info {
        Some(info) if info.aliases.contains(&request.model) => &info.id,
        _ => &request.model,
    }
}

/// The endpoint's URL without a slash at its end, or `default`. A URL that is
/// only an origin gets `version` (such as `/v1`) as its path.
pub(super) fn base_url(target: &Endpoint, default: &str, version: &str) -> String {
    let url = match target.base_url.trim().trim_end_matches('/') {
        "" => default,
        url => url,
    };
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    if after_scheme.contains('/') {
        url.to_owned()
    } else {
        format!("{url}{version}")
    }
}

/// The exchange at `url`, still without its body; `headers` come on top of the
/// one that every adapter sends.
pub(super) fn post(
    target: &Endpoint,
    url: String,
    headers: impl IntoIterator<Item = (&'static str, String)>,
    auth: Option<Auth>,
) -> HttpRequest {
    let json = ("content-type", "application/json".to_owned());
    let headers = std::iter::once(json).chain(headers);
    HttpRequest {
        method: "POST".to_owned(),
        url,
        headers: headers
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        body: Bytes::new(),
        auth,
        connect_timeout_ms: target.connect_timeout_ms,
    }
}

/// The header that the host fills, unless the endpoint needs no key.
pub(super) fn auth(target: &Endpoint, header: &str, prefix: &str) -> Option<Auth> {
    (!target.credential.is_empty()).then(|| Auth {
        credential: target.credential.clone(),
        header: header.to_owned(),
        prefix: prefix.to_owned(),
    })
}

/// The options for the adapter `name`, then those for the provider under whose
/// name the client knows it. `reserved` fields belong to the adapter.
pub(super) fn options(
    request: &Request,
    name: &str,
    reserved: &[&str],
    warnings: &mut Vec<Warning>,
) -> Map<String, Value> {
    let mut options = request.options(name).cloned().unwrap_or_default();
    if let Some(provider) = request.provider.as_deref().filter(|other| *other != name) {
        // No `merge`: a `null` here is still meant for the body.
        options.extend(request.options(provider).cloned().unwrap_or_default());
    }
    for field in reserved {
        if options.shift_remove(*field).is_some() {
            let message =
                format!("provider_options.{name}.{field} is not an option and is left out");
            warnings.push(Warning::new("option_dropped", message));
        }
    }
    options
}

/// Merges objects into objects, replaces everything else, and takes out what
/// is `null`. An object of another `type` replaces, too: the fields of the one
/// mean nothing in the other, and servers refuse them.
pub(super) fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(&name), value) {
            (_, Value::Null) => {
                target.shift_remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(new)) if !is_other_type(old, &new) => {
                merge(old, new);
            }
            (_, value) => {
                target.insert(name, value);
            }
        }
    }
}

fn is_other_type(old: &Map<String, Value>, new: &Map<String, Value>) -> bool {
    let [old, new] = [old, new].map(|fields| fields.get("type").and_then(Value::as_str));
    old.is_some() && new.is_some() && old != new
}

/// `value` without characters that a header must not hold, whoever gives it.
pub(super) fn header_value(value: &str) -> String {
    value.trim().replace(|c: char| !c.is_ascii_graphic(), "")
}

/// The texts for the provider's system field: those of the request, then the
/// leading run of system messages. Later ones stay in their place.
pub(super) fn system_texts(request: &Request) -> Vec<String> {
    let leading = request.conversation.leading_system().iter();
    request
        .system
        .iter()
        .cloned()
        .chain(leading.map(Message::joined_text))
        .filter(|text| !text.trim().is_empty())
        .collect()
}
