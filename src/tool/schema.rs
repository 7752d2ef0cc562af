//! Validation of tool arguments against JSON Schema (2020-12), as far as the
//! schemas of tools use it: those of zod, pydantic, TypeBox and MCP servers.
//!
//! Known are all keywords but `unevaluated*` and dynamic references; of earlier
//! drafts and OpenAPI also `definitions`, lists under `items`, true and false
//! as exclusive bounds, and `nullable`. References stay within the document and
//! may be recursive. Annotations, and `format` is one, are ignored. Every other
//! keyword is an error when the schema is compiled, because a rule that is
//! silently not checked is worse than one that is missing.

mod check;
mod compile;
mod expression;
mod value;

use std::fmt;

use serde_json::{Number, Value};

use check::Check;
use expression::Expression;

/// A compiled schema.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The root, then what references lead to.
    nodes: Vec<Node>,
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
    /// `null` fits whatever the other rules say.
    nullable: bool,
    /// Number of the node that must fit, too.
    reference: Option<usize>,
    enumeration: Option<Vec<Value>>,
    constant: Option<Value>,
    properties: Vec<(String, Node)>,
    required: Vec<String>,
    pattern_properties: Vec<(Expression, Node)>,
    additional: Option<Node>,
    property_names: Option<Node>,
    dependent_required: Vec<(String, Vec<String>)>,
    dependent_schemas: Vec<(String, Node)>,
    prefix: Vec<Node>,
    items: Option<Node>,
    unique: bool,
    contains: Option<Node>,
    contained: Range,
    value: Bounds,
    multiple_of: Option<Number>,
    length: Range,
    pattern: Option<Expression>,
    item_count: Range,
    property_count: Range,
    any_of: Option<Vec<Node>>,
    one_of: Option<Vec<Node>>,
    all_of: Option<Vec<Node>>,
    not: Option<Node>,
    condition: Option<Condition>,
}

/// `if`, `then`, `else`.
#[derive(Clone, Debug)]
struct Condition {
    test: Node,
    then: Option<Node>,
    otherwise: Option<Node>,
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

impl Schema {
    /// Compiles `schema`, or says which keyword it does not know and where.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self {
            nodes: compile::nodes(schema)?,
        })
    }

    /// A schema that everything fits.
    pub(crate) fn anything() -> Self {
        Self {
            nodes: vec![Node::Any],
        }
    }

    /// Checks `instance`; otherwise up to five violations, each naming the path
    /// below `root` and what was expected there.
    pub fn validate(&self, instance: &Value, root: &str) -> Result<(), Vec<String>> {
        Check::new(&self.nodes).run(instance, root)
    }

    /// Whether property `name` of the root object may be `null`; true for a
    /// property that the schema does not name.
    pub(crate) fn takes_null(&self, name: &str) -> bool {
        let mut named = self.root_rules().flat_map(|rules| &rules.properties);
        match named.find(|(known, _)| known == name) {
            Some((_, node)) => Check::new(&self.nodes).fits(node, &Value::Null),
            None => true,
        }
    }

    /// Whether property `name` of the root object is required.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let mut required = self.root_rules().flat_map(|rules| &rules.required);
        required.any(|required| required == name)
    }

    /// Whether the root says that it is an object, itself or by reference.
    pub(crate) fn is_object(&self) -> bool {
        let mut types = self.root_rules().filter_map(|rules| rules.types.as_deref());
        types.any(|types| types == [Type::Object])
    }

    /// The rules of the root and of what it refers to.
    fn root_rules(&self) -> impl Iterator<Item = &Rules> {
        let rules = |node: Option<&'_ usize>| match self.nodes.get(*node?) {
            Some(Node::Rules(rules)) => Some(&**rules),
            _ => None,
        };
        std::iter::successors(rules(Some(&0)), move |last| rules(last.reference.as_ref()))
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
            Value::Number(number) if value::is_integer(number) => Self::Integer,
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

#[cfg(test)]
mod tests;
