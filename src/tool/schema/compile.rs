//! From a schema as JSON to the rules that are checked.

use serde_json::Value;

use super::{Node, Rules, SchemaError, Type};

/// Schemas nested deeper than this are refused, so that recursion is bounded.
const MAX_DEPTH: usize = 64;

/// The node that `schema`, found at `path`, stands for.
pub(super) fn node(schema: &Value, path: &str, depth: usize) -> Result<Node, SchemaError> {
    let error = |keyword: Option<&str>, message: &str| SchemaError {
        path: path.to_owned(),
        keyword: keyword.map(str::to_owned),
        message: message.to_owned(),
    };
    if depth > MAX_DEPTH {
        return Err(error(None, "nested too deeply"));
    }
    let object = match schema {
        Value::Bool(true) => return Ok(Node::Any),
        Value::Bool(false) => return Ok(Node::Never),
        Value::Object(object) => object,
        _ => return Err(error(None, "must be an object or a boolean")),
    };
    let below = |keyword: &str, value: &Value| node(value, &format!("{path}.{keyword}"), depth + 1);
    let list = |keyword: &str, value: &Value| match value.as_array() {
        Some(schemas) if !schemas.is_empty() => schemas
            .iter()
            .enumerate()
            .map(|(index, schema)| node(schema, &format!("{path}.{keyword}[{index}]"), depth + 1))
            .collect(),
        _ => Err(error(Some(keyword), "must be a list of schemas")),
    };
    let mut rules = Rules::default();
    for (keyword, value) in object {
        let key = keyword.as_str();
        let wrong = |message: &str| error(Some(key), message);
        let number = || match value {
            Value::Number(number) => Ok(Some(number.clone())),
            _ => Err(wrong("must be a number")),
        };
        let count = || match as_count(value) {
            Some(count) => Ok(Some(count)),
            None => Err(wrong("must be a whole number that is not negative")),
        };
        match key {
            "type" => {
                rules.types = Some(types(value).ok_or_else(|| wrong("names no JSON type"))?);
            }
            "enum" => {
                let values = value.as_array().ok_or_else(|| wrong("must be a list"))?;
                rules.enumeration = Some(values.clone());
            }
            "const" => rules.constant = Some(value.clone()),
            "properties" => {
                let properties = value
                    .as_object()
                    .ok_or_else(|| wrong("must be an object"))?;
                for (name, schema) in properties {
                    let node = below(&format!("properties.{name}"), schema)?;
                    rules.properties.push((name.clone(), node));
                }
            }
            "required" => {
                let names = value.as_array().and_then(|names| {
                    let names = names.iter().map(|name| name.as_str().map(str::to_owned));
                    names.collect::<Option<Vec<_>>>()
                });
                rules.required = names.ok_or_else(|| wrong("must be a list of names"))?;
            }
            "additionalProperties" => rules.additional = Some(below(key, value)?),
            "items" => rules.items = Some(below(key, value)?),
            "anyOf" => rules.any_of = Some(list(key, value)?),
            "oneOf" => rules.one_of = Some(list(key, value)?),
            "allOf" => rules.all_of = Some(list(key, value)?),
            "minimum" => rules.value.minimum = number()?,
            "maximum" => rules.value.maximum = number()?,
            "exclusiveMinimum" => rules.value.above = number()?,
            "exclusiveMaximum" => rules.value.below = number()?,
            "minLength" => rules.length.min = count()?,
            "maxLength" => rules.length.max = count()?,
            "minItems" => rules.item_count.min = count()?,
            "maxItems" => rules.item_count.max = count()?,
            "minProperties" => rules.property_count.min = count()?,
            "maxProperties" => rules.property_count.max = count()?,
            "$schema" | "$id" | "$comment" | "title" | "description" | "default" | "examples"
            | "format" | "deprecated" | "readOnly" | "writeOnly" => {}
            _ => {
                return Err(wrong(
                    "not supported; known are type, enum, const, properties, required, \
                     additionalProperties, items, anyOf, oneOf, allOf and min/max bounds",
                ));
            }
        }
    }
    Ok(Node::Rules(Box::new(rules)))
}

fn types(value: &Value) -> Option<Vec<Type>> {
    match value {
        Value::String(name) => Some(vec![Type::named(name)?]),
        Value::Array(names) if !names.is_empty() => names
            .iter()
            .map(|name| Type::named(name.as_str()?))
            .collect(),
        _ => None,
    }
}

fn as_count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number >= 0.0 && number.fract() == 0.0 && number < u64::MAX as f64)
            .then_some(number as u64)
    })
}
