//! Content of tools as MCP servers give it, as parts.
//!
//! Source: Model Context Protocol 2025-11-25, *Tools*, "Tool Result": a list of
//! `text`, `image`, `audio`, `resource_link` and `resource` items.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::content::{Content, Part};

impl Content {
    /// The `content` of an MCP tool's result: texts, images and embedded files
    /// become parts. What no model reads, such as a sound, becomes a text that
    /// says what it is.
    pub fn from_mcp(items: &[Value]) -> Self {
        let parts: Vec<Part> = items.iter().map(part).collect();
        parts.into()
    }
}

fn part(item: &Value) -> Part {
    match item["type"].as_str() {
        Some("text") => Part::text(field(item, "text")),
        Some("image") => match bytes(item, "data") {
            Some(data) => Part::image(data),
            None => left_out("image: its `data` is not base64"),
        },
        Some("audio") => left_out(&format!("audio: {}", field(item, "mimeType"))),
        Some("resource_link") => {
            Part::text(format!("{}: {}", field(item, "name"), field(item, "uri")))
        }
        Some("resource") => resource(&item["resource"]),
        Some(other) => left_out(&format!("content of the unknown type {other}")),
        None => Part::text(item.to_string()),
    }
}

fn resource(resource: &Value) -> Part {
    let uri = field(resource, "uri");
    if let Some(text) = resource["text"].as_str() {
        return Part::text(format!("{uri}:\n{text}"));
    }
    match bytes(resource, "blob") {
        Some(data) => Part::file(uri.rsplit('/').next().unwrap_or(uri), data),
        None => left_out(&format!(
            "{uri}: it has neither `text` nor a `blob` of base64"
        )),
    }
}

fn left_out(what: &str) -> Part {
    Part::text(format!("[left out: {what}]"))
}

fn field<'a>(item: &'a Value, name: &str) -> &'a str {
    item[name].as_str().unwrap_or_default()
}

fn bytes(item: &Value, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(item[name].as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::PNG;

    fn check(item: Value, expected: Part) {
        assert_eq!(Content::from_mcp(&[item]).parts(), [expected]);
    }

    #[test]
    fn items_become_parts() {
        let png = STANDARD.encode(PNG);
        check(json!({"type": "text", "text": "a"}), Part::text("a"));
        check(
            json!({"type": "image", "data": png, "mimeType": "image/png"}),
            Part::image(PNG),
        );
        let file = |resource| json!({"type": "resource", "resource": resource});
        check(
            file(json!({"uri": "file:///a/b.png", "blob": png})),
            Part::image(PNG).named("b.png"),
        );
        check(
            file(json!({"uri": "file:///a.txt", "text": "x"})),
            Part::text("file:///a.txt:\nx"),
        );
        check(
            json!({"type": "resource_link", "uri": "file:///a", "name": "a"}),
            Part::text("a: file:///a"),
        );
    }

    #[test]
    fn what_no_model_reads_is_named() {
        let left_out = |text: &str| Part::text(format!("[left out: {text}]"));
        check(
            json!({"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
            left_out("audio: audio/wav"),
        );
        check(
            json!({"type": "image", "data": "?"}),
            left_out("image: its `data` is not base64"),
        );
        check(
            json!({"type": "hologram"}),
            left_out("content of the unknown type hologram"),
        );
        check(
            json!({"type": "resource", "resource": {"uri": "a:b"}}),
            left_out("a:b: it has neither `text` nor a `blob` of base64"),
        );
        check(json!({"x": 1}), Part::text(r#"{"x":1}"#));
    }
}
