//! From a schema as JSON to the rules that are checked.

use serde_json::{Map, Value};

use super::{Condition, Expression, Node, Rules, SchemaError, Type};

/// Schemas nested deeper than this are refused, so that recursion is bounded.
const MAX_DEPTH: usize = 64;

/// The nodes that `schema` stands for: its own, then those that references lead
/// to.
pub(super) fn nodes(schema: &Value) -> Result<Vec<Node>, SchemaError> {
    let mut compiler = Compiler {
        document: schema,
        targets: vec![(schema, "$".to_owned())],
    };
    let mut nodes = Vec::new();
    while let Some((target, path)) = compiler.targets.get(nodes.len()).cloned() {
        nodes.push(compiler.node(target, &path, 0)?);
    }
    match circle(&nodes) {
        None => Ok(nodes),
        Some(number) => Err(SchemaError {
            path: compiler.targets[number].1.clone(),
            keyword: Some("$ref".to_owned()),
            message: "leads back to itself without a property or an item in between".to_owned(),
        }),
    }
}

struct Compiler<'a> {
    document: &'a Value,
    /// What is referred to, with its path; first the root.
    targets: Vec<(&'a Value, String)>,
}

/// A keyword's value that is not what the keyword wants.
struct Wrong<'a> {
    path: &'a str,
    keyword: &'a str,
}

impl Wrong<'_> {
    fn error(&self, message: impl Into<String>) -> SchemaError {
        SchemaError {
            path: self.path.to_owned(),
            keyword: Some(self.keyword.to_owned()),
            message: message.into(),
        }
    }
}

impl<'a> Compiler<'a> {
    /// The node that `schema`, found at `path`, stands for.
    fn node(&mut self, schema: &'a Value, path: &str, depth: usize) -> Result<Node, SchemaError> {
        let error = |message: &str| SchemaError {
            path: path.to_owned(),
            keyword: None,
            message: message.to_owned(),
        };
        if depth > MAX_DEPTH {
            return Err(error("nested too deeply"));
        }
        let object = match schema {
            Value::Bool(true) => return Ok(Node::Any),
            Value::Bool(false) => return Ok(Node::Never),
            Value::Object(object) => object,
            _ => return Err(error("must be an object or a boolean")),
        };
        let mut rules = Rules::default();
        for (keyword, value) in object {
            self.rule(&mut rules, object, keyword, value, path, depth)?;
        }
        Ok(Node::Rules(Box::new(rules)))
    }

    fn rule(
        &mut self,
        rules: &mut Rules,
        all: &'a Map<String, Value>,
        keyword: &str,
        value: &'a Value,
        path: &str,
        depth: usize,
    ) -> Result<(), SchemaError> {
        let wrong = Wrong { path, keyword };
        let mut one = || self.node(value, &format!("{path}.{keyword}"), depth + 1);
        let number = || match value {
            Value::Number(number) => Ok(Some(number.clone())),
            _ => Err(wrong.error("must be a number")),
        };
        let count = || match as_count(value) {
            Some(count) => Ok(Some(count)),
            None => Err(wrong.error("must be a whole number that is not negative")),
        };
        let flag = || {
            value
                .as_bool()
                .ok_or_else(|| wrong.error("must be true or false"))
        };
        match keyword {
            "type" => {
                let types = types(value).ok_or_else(|| wrong.error("names no JSON type"))?;
                rules.types = Some(types);
            }
            "nullable" => rules.nullable = flag()?,
            "$ref" => rules.reference = Some(self.reference(value, &wrong)?),
            "enum" => {
                let values = value.as_array();
                let values = values.ok_or_else(|| wrong.error("must be a list"))?;
                rules.enumeration = Some(values.clone());
            }
            "const" => rules.constant = Some(value.clone()),
            "properties" => rules.properties = self.named(value, &wrong, depth)?,
            "patternProperties" => {
                for (source, node) in self.named(value, &wrong, depth)? {
                    let expression = expression(&source, &wrong)?;
                    rules.pattern_properties.push((expression, node));
                }
            }
            "dependentSchemas" => rules.dependent_schemas = self.named(value, &wrong, depth)?,
            "required" => rules.required = names(value, &wrong)?,
            "dependentRequired" => {
                for (name, needed) in members(value, &wrong)? {
                    let needed = names(needed, &wrong)?;
                    rules.dependent_required.push((name.clone(), needed));
                }
            }
            "additionalProperties" => rules.additional = Some(one()?),
            "propertyNames" => rules.property_names = Some(one()?),
            "prefixItems" => rules.prefix = self.list(value, &wrong, depth)?,
            // A tuple, before 2020-12; `[]` of a tuple without items.
            "items" if value.is_array() => {
                if value.as_array().is_some_and(|items| !items.is_empty()) {
                    rules.prefix = self.list(value, &wrong, depth)?;
                }
            }
            "items" => rules.items = Some(one()?),
            // Only tuples have additional items.
            "additionalItems" if all.get("items").is_some_and(Value::is_array) => {
                rules.items = Some(one()?);
            }
            "additionalItems" => {}
            "uniqueItems" => rules.unique = flag()?,
            "contains" => {
                rules.contains = Some(one()?);
                rules.contained.min = rules.contained.min.or(Some(1));
            }
            "minContains" => rules.contained.min = count()?,
            "maxContains" => rules.contained.max = count()?,
            "anyOf" => rules.any_of = Some(self.list(value, &wrong, depth)?),
            "oneOf" => rules.one_of = Some(self.list(value, &wrong, depth)?),
            "allOf" => rules.all_of = Some(self.list(value, &wrong, depth)?),
            "not" => rules.not = Some(one()?),
            "if" => {
                let test = one()?;
                let mut branch = |keyword: &str| {
                    let path = format!("{path}.{keyword}");
                    let branch = all.get(keyword);
                    branch
                        .map(|branch| self.node(branch, &path, depth + 1))
                        .transpose()
                };
                rules.condition = Some(Condition {
                    test,
                    then: branch("then")?,
                    otherwise: branch("else")?,
                });
            }
            // With `if`, without which they say nothing.
            "then" | "else" => {}
            // In draft 4 and OpenAPI 3.0 they make the other bound exclusive.
            "minimum" if all.get("exclusiveMinimum") == Some(&Value::Bool(true)) => {
                rules.value.above = number()?;
            }
            "maximum" if all.get("exclusiveMaximum") == Some(&Value::Bool(true)) => {
                rules.value.below = number()?;
            }
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() => {}
            "minimum" => rules.value.minimum = number()?,
            "maximum" => rules.value.maximum = number()?,
            "exclusiveMinimum" => rules.value.above = number()?,
            "exclusiveMaximum" => rules.value.below = number()?,
            "multipleOf" => match number()? {
                Some(of) if of.as_f64().is_some_and(|of| of > 0.0) => rules.multiple_of = Some(of),
                _ => return Err(wrong.error("must be more than 0")),
            },
            "minLength" => rules.length.min = count()?,
            "maxLength" => rules.length.max = count()?,
            "pattern" => {
                let source = value.as_str();
                let source = source.ok_or_else(|| wrong.error("must be a text"))?;
                rules.pattern = Some(expression(source, &wrong)?);
            }
            "minItems" => rules.item_count.min = count()?,
            "maxItems" => rules.item_count.max = count()?,
            "minProperties" => rules.property_count.min = count()?,
            "maxProperties" => rules.property_count.max = count()?,
            _ if ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-") => {}
            _ => {
                return Err(wrong.error(
                    "not supported; take it out, or set `unchecked` for the tool to send the \
                     schema as it is and check the arguments yourself",
                ));
            }
        }
        Ok(())
    }

    /// The schemas of an object by name.
    fn named(
        &mut self,
        value: &'a Value,
        wrong: &Wrong<'_>,
        depth: usize,
    ) -> Result<Vec<(String, Node)>, SchemaError> {
        let nodes = members(value, wrong)?.iter().map(|(name, schema)| {
            let path = format!("{}.{}.{name}", wrong.path, wrong.keyword);
            Ok((name.clone(), self.node(schema, &path, depth + 1)?))
        });
        nodes.collect()
    }

    fn list(
        &mut self,
        value: &'a Value,
        wrong: &Wrong<'_>,
        depth: usize,
    ) -> Result<Vec<Node>, SchemaError> {
        match value.as_array() {
            Some(schemas) if !schemas.is_empty() => schemas
                .iter()
                .enumerate()
                .map(|(index, schema)| {
                    let path = format!("{}.{}[{index}]", wrong.path, wrong.keyword);
                    self.node(schema, &path, depth + 1)
                })
                .collect(),
            _ => Err(wrong.error("must be a list of schemas")),
        }
    }

    /// Number of the node that `value` refers to.
    fn reference(&mut self, value: &Value, wrong: &Wrong<'_>) -> Result<usize, SchemaError> {
        let name = value.as_str();
        let name = name.ok_or_else(|| wrong.error("must be a text"))?;
        let target = match name.strip_prefix('#') {
            Some("") => Some(self.document),
            Some(pointer) if pointer.starts_with('/') => self.document.pointer(pointer),
            Some(anchor) => identified(self.document, "$anchor", anchor),
            None => identified(self.document, "$id", name),
        };
        let target = target.ok_or_else(|| {
            wrong.error(format!(
                "{name:?} is not in the schema; put it under `$defs`"
            ))
        })?;
        let mut known = self.targets.iter();
        if let Some(number) = known.position(|(known, _)| std::ptr::eq(*known, target)) {
            return Ok(number);
        }
        self.targets.push((target, name.to_owned()));
        Ok(self.targets.len() - 1)
    }
}

/// Keywords that say something to people, to models or to other programs.
const ANNOTATIONS: [&str; 25] = [
    "$schema",
    "$id",
    "id",
    "$anchor",
    "$defs",
    "definitions",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "markdownDescription",
    "default",
    "example",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "externalDocs",
    "xml",
    "propertyOrdering",
];

/// The schema within `schema` whose `keyword` is `name`.
fn identified<'a>(schema: &'a Value, keyword: &str, name: &str) -> Option<&'a Value> {
    match schema {
        Value::Object(object) if object.get(keyword).is_some_and(|id| id == name) => Some(schema),
        Value::Object(object) => object
            .values()
            .find_map(|value| identified(value, keyword, name)),
        Value::Array(values) => values
            .iter()
            .find_map(|value| identified(value, keyword, name)),
        _ => None,
    }
}

/// A node that applies to a value because it applies to that value: checking it
/// would never end.
fn circle(nodes: &[Node]) -> Option<usize> {
    let leads_to: Vec<Vec<usize>> = nodes
        .iter()
        .map(|node| {
            let mut found = Vec::new();
            in_place(node, &mut found);
            found
        })
        .collect();
    let mut waiting = vec![0; nodes.len()];
    for number in leads_to.iter().flatten() {
        waiting[*number] += 1;
    }
    // Those that nothing leads to are in no circle; without them, nor are others.
    let mut free: Vec<_> = (0..nodes.len()).filter(|n| waiting[*n] == 0).collect();
    while let Some(number) = free.pop() {
        for next in &leads_to[number] {
            waiting[*next] -= 1;
            if waiting[*next] == 0 {
                free.push(*next);
            }
        }
    }
    waiting.iter().position(|count| *count > 0)
}

/// References that `node` applies to the same value as itself.
fn in_place(node: &Node, found: &mut Vec<usize>) {
    let Node::Rules(rules) = node else {
        return;
    };
    found.extend(rules.reference);
    let lists = [&rules.any_of, &rules.one_of, &rules.all_of];
    for node in lists.into_iter().flatten().flatten() {
        in_place(node, found);
    }
    for node in rules
        .not
        .iter()
        .chain(rules.dependent_schemas.iter().map(|(_, node)| node))
    {
        in_place(node, found);
    }
    if let Some(condition) = &rules.condition {
        let branches = condition.then.iter().chain(&condition.otherwise);
        for node in branches.chain([&condition.test]) {
            in_place(node, found);
        }
    }
}

fn expression(source: &str, wrong: &Wrong<'_>) -> Result<Expression, SchemaError> {
    Expression::new(source).map_err(|problem| {
        wrong.error(format!(
            "`{source}` cannot be checked: {problem}; write it otherwise, or set `unchecked` for \
             the tool to send the schema as it is and check the arguments yourself"
        ))
    })
}

fn members<'a>(value: &'a Value, wrong: &Wrong<'_>) -> Result<&'a Map<String, Value>, SchemaError> {
    value
        .as_object()
        .ok_or_else(|| wrong.error("must be an object"))
}

fn names(value: &Value, wrong: &Wrong<'_>) -> Result<Vec<String>, SchemaError> {
    let names = value.as_array().and_then(|names| {
        let names = names.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<Vec<_>>>()
    });
    names.ok_or_else(|| wrong.error("must be a list of names"))
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
