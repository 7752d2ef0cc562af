//! What the requests of all adapters share: endpoint, options, and a body whose
//! history comes last.

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::llm::http::Auth;
use crate::llm::model::{ModelInfo, model_info};
use crate::llm::request::{Endpoint, Request, Warning};

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
/// is `null`.
pub(super) fn merge(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        match (target.get_mut(&name), value) {
            (_, Value::Null) => {
                target.shift_remove(&name);
            }
            (Some(Value::Object(old)), Value::Object(new)) => merge(old, new),
            (_, value) => {
                target.insert(name, value);
            }
        }
    }
}

/// The head, then the list `field` whose text is `pieces`: one copy of the
/// bytes, whatever the length of the history.
pub(super) fn with_history(head: Map<String, Value>, field: &str, pieces: &[&[u8]]) -> Bytes {
    let comma = if head.is_empty() { "" } else { "," };
    // Not through `Display`: a formatter costs a round more than all the rest.
    let head = serde_json::to_string(&head).unwrap_or_default();
    let open = head.strip_suffix('}').unwrap_or(&head);
    let list = format!("{comma}\"{field}\":[");
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    let mut body = Vec::with_capacity(open.len() + list.len() + length + 2);
    body.extend_from_slice(open.as_bytes());
    body.extend_from_slice(list.as_bytes());
    for piece in pieces {
        body.extend_from_slice(piece);
    }
    body.extend_from_slice(b"]}");
    Bytes::from(body)
}

/// `value` without characters that a header must not hold, whoever gives it.
pub(super) fn header_value(value: &str) -> String {
    value.trim().replace(|c: char| !c.is_ascii_graphic(), "")
}
