//! Validation of tool arguments against the subset of JSON Schema (2020-12)
//! that tool schemas use.
//!
//! Known: `type`, `enum`, `const`, `properties`, `required`,
//! `additionalProperties`, `items`, `anyOf`, `oneOf`, `allOf`, and the bounds of
//! numbers, strings, arrays and objects. Annotations are ignored. Every other
//! keyword is an error when the schema is compiled, because a rule that is
//! silently not checked is worse than one that is missing (DESIGN §5).

mod compile;

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
}

/// Why a schema cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Where in the schema, such as `$.properties.path`.
    pub path: String,
    /// Keyword at fault, if it is one.
    pub keyword: Option<String>,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keyword {
            Some(keyword) => write!(f, "schema keyword `{keyword}` at {}: ", self.path)?,
            None => write!(f, "schema at {}: ", self.path)?,
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for SchemaError {}

#[derive(Clone, Debug)]
enum Node {
    Any,
    Never,
    Rules(Box<Rules>),
}

#[derive(Clone, Debug, Default)]
struct Rules {
    types: Option<Vec<Type>>,
    enumeration: Option<Vec<Value>>,
    constant: Option<Value>,
    properties: Vec<(String, Node)>,
    required: Vec<String>,
    additional: Option<Node>,
    items: Option<Node>,
    value: Bounds,
    length: Range,
    item_count: Range,
    property_count: Range,
    any_of: Option<Vec<Node>>,
    one_of: Option<Vec<Node>>,
    all_of: Option<Vec<Node>>,
}

#[derive(Clone, Debug, Default)]
struct Bounds {
    minimum: Option<Number>,
    maximum: Option<Number>,
    above: Option<Number>,
    below: Option<Number>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Range {
    min: Option<u64>,
    max: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// Violations reported at once, so that a model can repair them in one go.
const MAX_VIOLATIONS: usize = 5;

/// Characters of an offending value that a message shows.
const SHOWN_CHARS: usize = 40;

impl Schema {
    /// Compiles `schema`, or says which keyword it does not know and where.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self {
            root: compile::node(schema, "$", 0)?,
        })
    }

    /// Checks `instance`; otherwise up to five violations, each naming the path
    /// below `root` and what was expected there.
    pub fn validate(&self, instance: &Value, root: &str) -> Result<(), Vec<String>> {
        let mut violations = Vec::new();
        self.root.check(instance, root, &mut violations);
        if violations.is_empty() {
            return Ok(());
        }
        violations.truncate(MAX_VIOLATIONS);
        Err(violations)
    }

    /// Whether property `name` of the root object may be `null`; true for a
    /// property that the schema does not name.
    pub(crate) fn takes_null(&self, name: &str) -> bool {
        let Node::Rules(rules) = &self.root else {
            return true;
        };
        match rules.properties.iter().find(|(known, _)| known == name) {
            Some((_, node)) => node.accepts(&Value::Null),
            None => true,
        }
    }

    /// Whether property `name` of the root object is required.
    pub(crate) fn requires(&self, name: &str) -> bool {
        matches!(&self.root, Node::Rules(rules) if rules.required.iter().any(|r| r == name))
    }
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }

    /// Narrowest type of `value`; 1.0 is an integer.
    fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if is_integer(number) => Self::Integer,
            Value::Number(_) => Self::Number,
            Value::String(_) => Self::String,
            Value::Array(_) => Self::Array,
            Value::Object(_) => Self::Object,
        }
    }

    fn admits(self, actual: Self) -> bool {
        self == actual || (self == Self::Number && actual == Self::Integer)
    }
}

impl Node {
    fn accepts(&self, instance: &Value) -> bool {
        let mut violations = Vec::new();
        self.check(instance, "", &mut violations);
        violations.is_empty()
    }

    fn check(&self, instance: &Value, path: &str, violations: &mut Vec<String>) {
        match self {
            Self::Any => {}
            Self::Never => violations.push(format!("{path}: not allowed")),
            Self::Rules(rules) => rules.check(instance, path, violations),
        }
    }
}

impl Rules {
    fn check(&self, instance: &Value, path: &str, violations: &mut Vec<String>) {
        if violations.len() >= MAX_VIOLATIONS {
            return;
        }
        if let Some(types) = &self.types {
            let actual = Type::of(instance);
            if !types.iter().any(|expected| expected.admits(actual)) {
                let names: Vec<_> = types.iter().map(|expected| expected.name()).collect();
                violations.push(expected(path, &names.join(" or "), instance));
                return;
            }
        }
        if let Some(values) = &self.enumeration
            && !values.iter().any(|value| equal(value, instance))
        {
            let values: Vec<_> = values.iter().map(Value::to_string).collect();
            let values = format!("one of {}", values.join(", "));
            violations.push(expected(path, &values, instance));
        }
        if let Some(value) = &self.constant
            && !equal(value, instance)
        {
            violations.push(expected(path, &value.to_string(), instance));
        }
        match instance {
            Value::Number(number) => self.value.check(number, path, violations),
            Value::String(text) => {
                let length = text.chars().count();
                self.length.check(length, "characters", path, violations);
            }
            Value::Array(items) => {
                self.item_count
                    .check(items.len(), "items", path, violations);
                if let Some(node) = &self.items {
                    for (index, item) in items.iter().enumerate() {
                        node.check(item, &format!("{path}[{index}]"), violations);
                    }
                }
            }
            Value::Object(object) => self.check_object(object, path, violations),
            Value::Null | Value::Bool(_) => {}
        }
        self.check_combined(instance, path, violations);
    }

    fn check_object(&self, object: &Map<String, Value>, path: &str, out: &mut Vec<String>) {
        self.property_count
            .check(object.len(), "properties", path, out);
        for name in &self.required {
            if !object.contains_key(name) {
                out.push(format!("{path}: missing required property \"{name}\""));
            }
        }
        for (name, value) in object {
            let below = format!("{path}.{name}");
            match self.properties.iter().find(|(known, _)| known == name) {
                Some((_, node)) => node.check(value, &below, out),
                None => match &self.additional {
                    None | Some(Node::Any) => {}
                    Some(Node::Never) => out.push(format!(
                        "{path}: unknown property \"{name}\", known are {}",
                        self.known_properties()
                    )),
                    Some(node) => node.check(value, &below, out),
                },
            }
        }
    }

    fn known_properties(&self) -> String {
        if self.properties.is_empty() {
            return "none".to_owned();
        }
        let names = self
            .properties
            .iter()
            .map(|(name, _)| format!("\"{name}\""));
        names.collect::<Vec<_>>().join(", ")
    }

    fn check_combined(&self, instance: &Value, path: &str, out: &mut Vec<String>) {
        for node in self.all_of.iter().flatten() {
            node.check(instance, path, out);
        }
        if let Some(nodes) = &self.any_of {
            let reasons = reasons(nodes, instance, path);
            if reasons.len() == nodes.len() {
                out.push(none_fits(path, &reasons));
            }
        }
        if let Some(nodes) = &self.one_of {
            let reasons = reasons(nodes, instance, path);
            match nodes.len() - reasons.len() {
                1 => {}
                0 => out.push(none_fits(path, &reasons)),
                fitting => out.push(format!(
                    "{path}: fits {fitting} of the forms of which exactly one must fit"
                )),
            }
        }
    }
}

/// Why each form that does not fit does not. Every form is checked once, so
/// that nested choices do not multiply.
fn reasons(nodes: &[Node], instance: &Value, path: &str) -> Vec<String> {
    let reasons = nodes.iter().filter_map(|node| {
        let mut violations = Vec::new();
        node.check(instance, path, &mut violations);
        violations.into_iter().next()
    });
    reasons.collect()
}

fn none_fits(path: &str, reasons: &[String]) -> String {
    let shown = &reasons[..reasons.len().min(MAX_VIOLATIONS)];
    format!("{path}: fits no allowed form ({})", shown.join("; or "))
}

impl Bounds {
    fn check(&self, number: &Number, path: &str, violations: &mut Vec<String>) {
        use Ordering::{Equal, Greater, Less};
        let rules = [
            (&self.minimum, "at least", [Greater, Equal]),
            (&self.maximum, "at most", [Less, Equal]),
            (&self.above, "more than", [Greater, Greater]),
            (&self.below, "less than", [Less, Less]),
        ];
        for (bound, words, allowed) in rules {
            if let Some(bound) = bound
                && !allowed.contains(&compare(number, bound))
            {
                violations.push(format!("{path}: expected {words} {bound}, got {number}"));
            }
        }
    }
}

impl Range {
    fn check(self, count: usize, unit: &str, path: &str, violations: &mut Vec<String>) {
        let count = count as u64;
        if let Some(min) = self.min.filter(|min| count < *min) {
            violations.push(format!(
                "{path}: expected at least {min} {unit}, got {count}"
            ));
        }
        if let Some(max) = self.max.filter(|max| count > *max) {
            violations.push(format!(
                "{path}: expected at most {max} {unit}, got {count}"
            ));
        }
    }
}

fn expected(path: &str, what: &str, instance: &Value) -> String {
    let actual = Type::of(instance).name();
    let text = match instance {
        Value::Null => return format!("{path}: expected {what}, got null"),
        Value::Array(_) | Value::Object(_) => {
            return format!("{path}: expected {what}, got {actual}");
        }
        // Long strings are cut before they are copied.
        Value::String(text) => {
            let shown: String = text.chars().take(SHOWN_CHARS + 1).collect();
            Value::String(shown).to_string()
        }
        other => other.to_string(),
    };
    let mut shown: String = text.chars().take(SHOWN_CHARS).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("{path}: expected {what}, got {actual} {shown}")
}

fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|n| n.fract() == 0.0)
}

/// Equality of JSON Schema: 1 equals 1.0, and the order of keys does not count.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Order by value; exact, also between large integers and floats.
fn compare(a: &Number, b: &Number) -> Ordering {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => {
            let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
            float(a).total_cmp(&float(b))
        }
    }
}

fn whole(number: &Number) -> Option<i128> {
    if let Some(number) = number.as_i64() {
        return Some(number.into());
    }
    if let Some(number) = number.as_u64() {
        return Some(number.into());
    }
    let number = number.as_f64()?;
    (number.fract() == 0.0 && number.abs() < 1e38).then_some(number as i128)
}

#[cfg(test)]
mod tests;
