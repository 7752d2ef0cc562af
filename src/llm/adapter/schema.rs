//! Schemas of tools as providers take them: JSON Schema of 2020-12, whose root
//! says what it is.
//!
//! Anthropic refuses a request for one tuple in the form of draft 7, and every
//! provider wants `"type": "object"` at the root, where pydantic has a `$ref`.
//! What means the same in 2020-12 is rewritten; the rest goes out as it is.

use serde_json::{Map, Value, json};

/// `schema`, the root of a tool's parameters, in the forms of 2020-12.
pub(super) fn current(schema: &Value) -> Value {
    let mut root = schema.clone();
    inline_root(&mut root, schema);
    rewrite(&mut root, &|_| {});
    root
}

/// `root` with `enum` in place of `const`, which Gemini does not list among what
/// it reads.
pub(super) fn without_const(mut root: Value) -> Value {
    rewrite(&mut root, &|object| {
        if let Some(value) = object.shift_remove("const") {
            object.entry("enum").or_insert_with(|| json!([value]));
        }
    });
    root
}

/// Puts what the root refers to into the root.
fn inline_root(root: &mut Value, document: &Value) {
    let mut seen = Vec::new();
    while let Value::Object(object) = &mut *root
        && !object.contains_key("type")
        && let Some(Value::String(reference)) = object.get("$ref")
        && !seen.contains(reference)
        && let Some(pointer) = reference.strip_prefix('#')
        && let Some(Value::Object(target)) = document.pointer(pointer)
    {
        seen.push(reference.clone());
        object.shift_remove("$ref");
        let mut merged = target.clone();
        merged.extend(std::mem::take(object));
        *object = merged;
    }
}

/// What a keyword holds.
enum Holds {
    Schema,
    Schemas,
    Named,
}

/// Keywords with schemas in them. Names of properties and values of `enum` or
/// `default` are none, whatever they look like.
fn holds(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "items"
        | "additionalItems"
        | "additionalProperties"
        | "propertyNames"
        | "contains"
        | "not"
        | "if"
        | "then"
        | "else" => Holds::Schema,
        "prefixItems" | "anyOf" | "oneOf" | "allOf" => Holds::Schemas,
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions" => {
            Holds::Named
        }
        _ => return None,
    })
}

/// Rewrites `schema` and all schemas in it, inner ones first; registered
/// schemas are not nested without bound.
fn rewrite(schema: &mut Value, also: &dyn Fn(&mut Map<String, Value>)) {
    let Value::Object(object) = schema else {
        return;
    };
    for (keyword, value) in object.iter_mut() {
        match (holds(keyword), value) {
            (Some(Holds::Schema | Holds::Schemas), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(|schema| rewrite(schema, also));
            }
            (Some(Holds::Schema), schema) => rewrite(schema, also),
            (Some(Holds::Named), Value::Object(schemas)) => {
                schemas
                    .values_mut()
                    .for_each(|schema| rewrite(schema, also));
            }
            _ => {}
        }
    }
    tuple(object);
    exclusive(object, "exclusiveMinimum", "minimum");
    exclusive(object, "exclusiveMaximum", "maximum");
    nullable(object);
    also(object);
}

/// `items: [a, b]` with `additionalItems` becomes `prefixItems` with `items`.
fn tuple(object: &mut Map<String, Value>) {
    let more = object.shift_remove("additionalItems");
    let Some(Value::Array(items)) = object.get_mut("items") else {
        return;
    };
    let items = std::mem::take(items);
    object.shift_remove("items");
    if !items.is_empty() {
        object.insert("prefixItems".to_owned(), Value::Array(items));
    }
    if let Some(more) = more {
        object.insert("items".to_owned(), more);
    }
}

/// `exclusiveMinimum: true` beside a `minimum`, as draft 4 has it.
fn exclusive(object: &mut Map<String, Value>, exclusive: &str, bound: &str) {
    match object.get(exclusive) {
        Some(Value::Bool(true)) => {
            object.shift_remove(exclusive);
            if let Some(value) = object.shift_remove(bound) {
                object.insert(exclusive.to_owned(), value);
            }
        }
        Some(Value::Bool(false)) => drop(object.shift_remove(exclusive)),
        _ => {}
    }
}

/// `nullable: true` of OpenAPI 3.0.
fn nullable(object: &mut Map<String, Value>) {
    if !matches!(object.get("nullable"), Some(Value::Bool(_))) {
        return;
    }
    if object.shift_remove("nullable") == Some(Value::Bool(false)) {
        return;
    }
    let is_plain = !["const", "anyOf", "oneOf", "allOf", "not", "$ref", "if"]
        .iter()
        .any(|keyword| object.contains_key(*keyword));
    match object.get_mut("type") {
        Some(Value::String(name)) if is_plain => {
            let types = json!([std::mem::take(name), "null"]);
            object.insert("type".to_owned(), types);
            if let Some(Value::Array(values)) = object.get_mut("enum")
                && !values.contains(&Value::Null)
            {
                values.push(Value::Null);
            }
        }
        _ => {
            let form = Value::Object(std::mem::take(object));
            object.insert("anyOf".to_owned(), json!([form, {"type": "null"}]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, expected: Value) {
        let actual = current(&schema);
        assert_eq!(actual.to_string(), expected.to_string());
    }

    #[test]
    fn forms_of_earlier_drafts() {
        check(
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            json!({"prefixItems": [{"type": "string"}], "items": false}),
        );
        check(
            json!({"minimum": 1, "exclusiveMinimum": true, "maximum": 2, "exclusiveMaximum": false}),
            json!({"maximum": 2, "exclusiveMinimum": 1}),
        );
        check(
            json!({"properties": {"a": {"type": "string", "enum": ["x"], "nullable": true},
                                  "b": {"$ref": "#/definitions/b", "nullable": true}}}),
            json!({"properties": {"a": {"type": ["string", "null"], "enum": ["x", null]},
                                  "b": {"anyOf": [{"$ref": "#/definitions/b"}, {"type": "null"}]}}}),
        );
    }

    #[test]
    fn what_only_looks_like_a_keyword_stays() {
        let schema = json!({
            "type": "object",
            "properties": {"items": {"type": "array"}, "nullable": {"default": {"nullable": true}}},
            "required": ["items"],
            "additionalProperties": false,
        });
        check(schema.clone(), schema);
    }

    #[test]
    fn a_root_that_refers_to_its_form() {
        check(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "object"}}}),
            json!({"type": "object", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "object"}}}),
        );
        let endless = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
        assert_eq!(current(&endless)["$ref"], "#/$defs/a");
    }

    #[test]
    fn gemini_reads_a_list_of_one() {
        let schema = json!({"properties": {"const": {"const": 1}}});
        let expected = json!({"properties": {"const": {"enum": [1]}}});
        assert_eq!(without_const(schema), expected);
    }
}
