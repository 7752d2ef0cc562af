//! TypeScript declarations of the events, made from `docs/events.schema.json`,
//! which is made from the Rust types: `js/events.d.ts`. A test fails when they
//! differ; `UPDATE_EXPECT=1 cargo test -p xtask` rewrites them.

use std::fmt::Write;

use anyhow::{Context, Result, bail};
use serde_json::Value;

const HEAD: &str = "\
// Made from docs/events.schema.json (xtask/src/events.rs); not edited by hand.
// Consumers ignore kinds and fields that they do not know.

";

/// The declarations for a schema of the shape that `schemars` gives an enum with
/// `tag` and `content`, flattened into a struct.
pub(crate) fn declarations(schema: &Value) -> Result<String> {
    let mut out = HEAD.to_owned();
    let kinds = schema["oneOf"].as_array().context("no kinds of events")?;
    out.push_str("/** What every event has. */\n");
    writeln!(out, "export interface EventBase {}\n", object(schema, 0)?)?;
    let mut union = String::new();
    for kind in kinds {
        let name = kind["properties"]["kind"]["const"]
            .as_str()
            .context("an event without a kind")?;
        let data = object(&kind["properties"]["data"], 1)?;
        let interface = format!("{}Event", camel_case(name));
        comment(&mut out, kind, 0)?;
        writeln!(out, "export interface {interface} extends EventBase {{")?;
        writeln!(out, "  kind: {name:?};\n  data: {data};\n}}\n")?;
        write!(union, "\n  | {interface}")?;
    }
    out.push_str("/** One event of a session, told apart by `kind`. */\n");
    writeln!(out, "export type SessionEvent ={union};\n")?;
    out.push_str(
        "/** The kinds of events. */\nexport type EventKind = SessionEvent[\"kind\"];\n\n",
    );
    out.push_str("/** What the events of one kind bear. */\n");
    out.push_str(
        "export type EventData<K extends EventKind> = Extract<SessionEvent, { kind: K }>[\"data\"];\n",
    );
    for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
        out.push('\n');
        comment(&mut out, definition, 0)?;
        writeln!(out, "export type {name} = {};", type_of(definition, 0)?)?;
    }
    Ok(out)
}

/// `SESSION_START` → `SessionStart`.
fn camel_case(name: &str) -> String {
    name.split('_')
        .map(|word| {
            let (first, rest) = word.split_at(1.min(word.len()));
            format!("{first}{}", rest.to_lowercase())
        })
        .collect()
}

fn object(schema: &Value, depth: usize) -> Result<String> {
    let Some(properties) = schema["properties"].as_object() else {
        return Ok("Record<string, never>".to_owned());
    };
    let required = schema["required"].as_array();
    let mut out = String::from("{\n");
    for (name, property) in properties {
        comment(&mut out, property, depth + 1)?;
        let optional = !required.is_some_and(|names| names.iter().any(|n| n == name));
        let mark = if optional { "?" } else { "" };
        let indent = "  ".repeat(depth + 1);
        let kind = type_of(property, depth + 1)?;
        writeln!(out, "{indent}{name}{mark}: {kind};")?;
    }
    write!(out, "{}}}", "  ".repeat(depth))?;
    Ok(out)
}

fn type_of(schema: &Value, depth: usize) -> Result<String> {
    let alternatives = ["oneOf", "anyOf", "enum"];
    if let Some(list) = alternatives.iter().find_map(|name| schema[name].as_array()) {
        let types = list.iter().map(|one| match one {
            Value::String(text) => Ok(format!("{text:?}")),
            one => type_of(one, depth),
        });
        return Ok(types.collect::<Result<Vec<_>>>()?.join(" | "));
    }
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/");
        return Ok(name.context("a reference to elsewhere")?.to_owned());
    }
    if let Some(text) = schema["const"].as_str() {
        return Ok(format!("{text:?}"));
    }
    match &schema["type"] {
        // Any JSON value.
        Value::Null => Ok("unknown".to_owned()),
        Value::String(name) => named(name, schema, depth),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str);
            let types = names.map(|name| named(name, schema, depth));
            Ok(types.collect::<Result<Vec<_>>>()?.join(" | "))
        }
        other => bail!("a type that is {other}"),
    }
}

fn named(name: &str, schema: &Value, depth: usize) -> Result<String> {
    Ok(match name {
        "string" | "boolean" | "null" => name.to_owned(),
        "integer" | "number" => "number".to_owned(),
        "array" => format!("({})[]", type_of(&schema["items"], depth)?),
        "object" if schema["properties"].is_object() => object(schema, depth)?,
        "object" => match &schema["additionalProperties"] {
            Value::Object(_) => {
                let value = type_of(&schema["additionalProperties"], depth)?;
                format!("Record<string, {value}>")
            }
            _ => "Record<string, unknown>".to_owned(),
        },
        other => bail!("an unknown type {other}"),
    })
}

fn comment(out: &mut String, schema: &Value, depth: usize) -> Result<()> {
    if let Some(text) = schema["description"].as_str() {
        let text = text.replace('\n', " ").replace("*/", "*\\/");
        writeln!(out, "{}/** {text} */", "  ".repeat(depth))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn declarations_are_those_of_the_schema() {
        let schema = std::fs::read_to_string(root().join("docs/events.schema.json")).unwrap();
        let text = declarations(&serde_json::from_str(&schema).unwrap()).unwrap();
        let path = root().join("js/events.d.ts");
        if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
            std::fs::write(&path, text).unwrap();
            return;
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == text,
            "js/events.d.ts differs from docs/events.schema.json; \
             run this test with UPDATE_EXPECT=1 and review the diff"
        );
    }

    #[test]
    fn a_field_that_changes_changes_the_declarations() {
        let event = |ty: &str| {
            serde_json::json!({
                "type": "object", "properties": {"seq": {"type": "integer"}}, "required": ["seq"],
                "oneOf": [{
                    "properties": {
                        "kind": {"const": "A_B"},
                        "data": {"type": "object", "properties": {"x": {"type": [ty, "null"]}}},
                    },
                }],
            })
        };
        let one = declarations(&event("string")).unwrap();
        assert!(one.contains("x?: string | null;"), "{one}");
        assert!(one.contains("export interface ABEvent extends EventBase {\n  kind: \"A_B\";"));
        assert!(
            declarations(&event("integer"))
                .unwrap()
                .contains("x?: number | null;")
        );
        assert!(declarations(&event("strong")).is_err());
    }
}
