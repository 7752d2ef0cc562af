//! Tool declarations: what a request says of a tool, and which executor
//! runs it with which arguments. Profiles and hosts write them as JSON.
//!
//! A list of objects with these fields; a field that is not listed is an error:
//!
//! | field | |
//! |---|---|
//! | `name` | what the model calls it |
//! | `description`, `parameters` | for the model; `parameters` is a JSON Schema of an object |
//! | `executor` | who runs it; absent: the executor called `name`. `host:NAME` is the tool `NAME` of the host, and only declared when the host has it |
//! | `map` | per property of `parameters`: what the executor calls it |
//! | `fixed` | arguments that every call gives to the executor |
//! | `defaults` | arguments for the executor where a call leaves them out |
//! | `custom` | freeform input, see [`crate::llm::CustomFormat`]; `"own"`: in the executor's own format |
//! | `strict` | ask the provider to enforce the schema |
//!
//! A property that `map` does not name goes to the executor's parameter of the
//! same name. An entry of `map` is a name, `null` for a property that only
//! people read, or an object with `to` (absent: the same name) and one of
//!
//! | | |
//! |---|---|
//! | `add` | number to add: 1 for a line that is counted from 0 |
//! | `multiply` | factor: 1000 from seconds to milliseconds |
//! | `values` | object from advertised value to the executor's; `null` leaves it out |
//! | `join` | `"shell"`: a list of words becomes a command line |
//! | `members` | the property is an object; a `map` for what is in it, without `to` |

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::mapping::{Kind, Mapping, Parameter, Rule, Transform};
use super::vocabulary::Vocabulary;
use super::{RegisterError, ToolError};
use crate::llm::{CustomFormat, ToolDefinition};

/// One entry of a list of declarations, with its fields checked for form.
#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) definition: ToolDefinition,
    /// Key of the executor.
    pub(super) executor: String,
    /// Freeform input in the executor's own format.
    pub(super) own_format: bool,
    map: Map<String, Value>,
    fixed: Map<String, Value>,
    defaults: Map<String, Value>,
}

/// A tool as it presents itself: its declaration in requests, how arguments reach
/// the executor, and how its messages name things.
#[derive(Clone, Debug)]
pub struct Declared {
    definition: Rc<ToolDefinition>,
    /// `None`: arguments go to the executor as they are.
    route: Option<Rc<Route>>,
    vocabulary: Rc<Vocabulary>,
}

/// How arguments reach an executor.
#[derive(Debug)]
pub(super) struct Route {
    parameters: &'static [Parameter],
    mapping: Mapping,
    reached: Vec<(Parameter, String, Transform)>,
}

impl Route {
    /// The executor's parameters that arguments reach, each with the name of
    /// the argument.
    pub(super) fn reached(&self) -> impl Iterator<Item = (&str, &str)> {
        let names = self.reached.iter();
        names.map(|(parameter, name, _)| (parameter.name.as_ref(), name.as_str()))
    }
}

impl From<ToolDefinition> for Declared {
    /// A tool that uses the executor's own names.
    fn from(definition: ToolDefinition) -> Self {
        Self {
            definition: definition.into(),
            route: None,
            vocabulary: Rc::default(),
        }
    }
}

const FIELDS: [&str; 9] = [
    "name",
    "description",
    "parameters",
    "executor",
    "map",
    "fixed",
    "defaults",
    "custom",
    "strict",
];

impl Declaration {
    /// Reads a list of declarations; errors name the tool and the field.
    pub(super) fn parse_list(json: &str) -> Result<Vec<Self>, RegisterError> {
        let wrong = |problem: String| Err(RegisterError::Declarations(problem));
        let list = match serde_json::from_str(json) {
            Ok(Value::Array(list)) => list,
            Ok(_) => return wrong("must be a list of objects, `[{…}, {…}]`".to_owned()),
            Err(error) if error.is_eof() => {
                return wrong(format!("cut off, so not valid JSON: {error}"));
            }
            Err(error) => return wrong(format!("not valid JSON: {error}")),
        };
        let parsed = list
            .into_iter()
            .enumerate()
            .map(|(index, entry)| Self::parse(index, entry));
        parsed.collect()
    }

    fn parse(index: usize, entry: Value) -> Result<Self, RegisterError> {
        let whole =
            |problem: &str| RegisterError::Declarations(format!("entry {} {problem}", index + 1));
        let Value::Object(mut fields) = entry else {
            return Err(whole("is not an object"));
        };
        let Some(name) = fields
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
        else {
            return Err(whole("has no `name`, or one that is not a string"));
        };
        let wrong = |problem: String| RegisterError::Declaration {
            tool: name.clone(),
            problem,
        };
        if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            let known = FIELDS.join(", ");
            return Err(wrong(format!(
                "unknown field `{unknown}`; known are {known}"
            )));
        }
        let mut text = |field: &str| match fields.shift_remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(format!("`{field}` must be a string"))),
        };
        let executor = text("executor")?.unwrap_or_else(|| name.clone());
        let description =
            text("description")?.ok_or_else(|| wrong("`description` is missing".to_owned()))?;
        let mut object = |field: &str| match fields.shift_remove(field) {
            None | Some(Value::Null) => Ok(Map::new()),
            Some(Value::Object(object)) => Ok(object),
            Some(_) => Err(wrong(format!("`{field}` must be an object"))),
        };
        let (map, fixed, defaults) = (object("map")?, object("fixed")?, object("defaults")?);
        let parameters = fields
            .shift_remove("parameters")
            .ok_or_else(|| wrong("`parameters` is missing".to_owned()))?;
        let custom = fields.shift_remove("custom").unwrap_or_default();
        let own_format = custom == "own";
        let custom: Option<CustomFormat> = match own_format {
            true => None,
            false => serde_json::from_value(custom)
                .map_err(|error| wrong(format!("`custom`: {error}")))?,
        };
        let strict: Option<bool> =
            serde_json::from_value(fields.shift_remove("strict").unwrap_or_default())
                .map_err(|error| wrong(format!("`strict`: {error}")))?;
        Ok(Self {
            definition: ToolDefinition {
                name,
                description,
                parameters,
                custom,
                strict,
                unchecked: false,
            },
            executor,
            own_format,
            map,
            fixed,
            defaults,
        })
    }

    /// Without the properties that become `parameter` of the executor.
    pub(super) fn leave_out(&mut self, parameter: &str) {
        let properties = self.definition.parameters.get_mut("properties");
        let Some(properties) = properties.and_then(Value::as_object_mut) else {
            return;
        };
        let map = &mut self.map;
        properties.retain(|name, _| {
            let rule = map.get(name);
            let to = rule.and_then(|rule| rule.as_str().or_else(|| rule["to"].as_str()));
            let is_kept = match rule {
                Some(Value::Null) => true,
                _ => to.unwrap_or(name) != parameter,
            };
            if !is_kept {
                map.shift_remove(name);
            }
            is_kept
        });
    }

    /// The way of arguments to an executor that takes `parameters`; an empty
    /// list stands for a tool of the host, which takes anything.
    pub(super) fn route(&self, parameters: &'static [Parameter]) -> Result<Route, RegisterError> {
        let wrong = |problem: String| RegisterError::Declaration {
            tool: self.definition.name.clone(),
            problem,
        };
        let target = Target {
            executor: &self.executor,
            parameters,
        };
        let none = Map::new();
        let properties = self.definition.parameters["properties"].as_object();
        let rules = target
            .rules(properties.unwrap_or(&none), &self.map, "")
            .map_err(wrong)?;
        let given = |values: &Map<String, Value>, field: &str| {
            let mut checked = Map::new();
            for (name, value) in values {
                let at = format!("`{field}.{name}`");
                let parameter = target.parameter(name, &at)?;
                let value = parameter.kind.take(value.clone(), &at)?;
                checked.insert(name.clone(), value);
            }
            Ok(checked)
        };
        let mapping = Mapping {
            rules,
            fixed: given(&self.fixed, "fixed").map_err(wrong)?,
            defaults: given(&self.defaults, "defaults").map_err(wrong)?,
        };
        let reached = mapping.reached();
        for (index, (parameter, name, _)) in reached.iter().enumerate() {
            let twice = reached[..index]
                .iter()
                .find(|(earlier, _, _)| earlier.name == parameter.name);
            if let Some((_, other, _)) = twice {
                return Err(wrong(format!(
                    "`{other}` and `{name}` both become `{}` of executor {}",
                    parameter.name, self.executor
                )));
            }
        }
        for parameter in parameters.iter().filter(|parameter| parameter.required) {
            let name = parameter.name.as_ref();
            let given = reached.iter().any(|(reached, _, _)| reached.name == name)
                || mapping.fixed.contains_key(name)
                || mapping.defaults.contains_key(name);
            if !given {
                return Err(wrong(format!(
                    "executor {} needs `{name}`, and no property becomes it; name one in `map`, \
                     or set it in `fixed`",
                    self.executor
                )));
            }
        }
        Ok(Route {
            parameters,
            mapping,
            reached,
        })
    }
}

/// Where arguments go.
struct Target<'a> {
    executor: &'a str,
    parameters: &'a [Parameter],
}

impl Target<'_> {
    fn rules(
        &self,
        properties: &Map<String, Value>,
        map: &Map<String, Value>,
        above: &str,
    ) -> Result<Vec<(String, Rule)>, String> {
        if let Some(name) = map.keys().find(|name| !properties.contains_key(*name)) {
            return Err(format!(
                "`map.{above}{name}`: `parameters` has no such property"
            ));
        }
        let mut rules = Vec::new();
        for (name, schema) in properties {
            let rule = match map.get(name) {
                None => {
                    let at = format!("property `{above}{name}`");
                    Rule::To(self.parameter(name, &at)?, Transform::Same)
                }
                Some(rule) => self.rule(name, schema, rule, above)?,
            };
            rules.push((name.clone(), rule));
        }
        Ok(rules)
    }

    fn rule(&self, name: &str, schema: &Value, rule: &Value, above: &str) -> Result<Rule, String> {
        let at = format!("`map.{above}{name}`");
        let fields = match rule {
            Value::Null => return Ok(Rule::Ignore),
            Value::String(to) => {
                return Ok(Rule::To(self.parameter(to, &at)?, Transform::Same));
            }
            Value::Object(fields) => fields,
            _ => return Err(format!("{at} must be a name, null or an object")),
        };
        let mut to = name;
        let mut transform = None;
        for (key, value) in fields {
            let one = |ok: Option<Transform>, expected: &str| {
                ok.ok_or_else(|| format!("{at}: `{key}` must be {expected}"))
            };
            let new = match (key.as_str(), value) {
                ("to", Value::String(name)) => {
                    to = name;
                    continue;
                }
                ("to", _) => return Err(format!("{at}: `to` must be a name")),
                ("members", Value::Object(map)) if fields.len() == 1 => {
                    let none = Map::new();
                    let properties = schema["properties"].as_object().unwrap_or(&none);
                    let above = format!("{above}{name}.");
                    return Ok(Rule::Members(self.rules(properties, map, &above)?));
                }
                ("members", _) => {
                    return Err(format!("{at}: `members` must be an object and stand alone"));
                }
                ("add", value) => one(value.as_i64().map(Transform::Add), "a whole number")?,
                ("multiply", value) => one(
                    value.as_u64().filter(|by| *by > 0).map(Transform::Multiply),
                    "a whole number above 0",
                )?,
                ("values", value) => one(
                    value.as_object().cloned().map(Transform::Values),
                    "an object",
                )?,
                ("join", value) => one(
                    (value == "shell").then_some(Transform::CommandLine),
                    "\"shell\"",
                )?,
                _ => {
                    return Err(format!(
                        "{at}: unknown field `{key}`; known are to, add, multiply, values, join \
                         and members"
                    ));
                }
            };
            if transform.replace(new).is_some() {
                return Err(format!(
                    "{at}: at most one of add, multiply, values and join"
                ));
            }
        }
        let parameter = self.parameter(to, &at)?;
        Ok(Rule::To(parameter, transform.unwrap_or(Transform::Same)))
    }

    fn parameter(&self, name: &str, at: &str) -> Result<Parameter, String> {
        if self.parameters.is_empty() {
            return Ok(Parameter {
                name: Cow::Owned(name.to_owned()),
                kind: Kind::Any,
                required: false,
            });
        }
        let known = self.parameters.iter().find(|known| known.name == name);
        known.cloned().ok_or_else(|| {
            let names: Vec<_> = self.parameters.iter().map(|p| p.name.as_ref()).collect();
            format!(
                "{at}: executor {} has no parameter `{name}`; it has {}",
                self.executor,
                names.join(", ")
            )
        })
    }
}

impl Declared {
    pub(super) fn new(
        definition: ToolDefinition,
        route: Route,
        vocabulary: Rc<Vocabulary>,
    ) -> Self {
        Self {
            definition: definition.into(),
            route: Some(Rc::new(route)),
            vocabulary,
        }
    }

    /// The declaration in requests.
    pub fn definition(&self) -> &Rc<ToolDefinition> {
        &self.definition
    }

    /// The executor's arguments for those of a call. Errors name the
    /// advertised argument.
    pub(super) fn arguments(&self, arguments: Value) -> Result<Value, ToolError> {
        let Some(route) = &self.route else {
            return Ok(arguments);
        };
        let invalid = |problem| ToolError::new(format!("invalid arguments: {problem}"));
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let mapped = route.mapping.apply(arguments).map_err(invalid)?;
        let missing = route
            .parameters
            .iter()
            .find(|parameter| parameter.required && mapped.get(parameter.name.as_ref()).is_none());
        match missing {
            None => Ok(mapped),
            Some(parameter) => Err(invalid(format!(
                "arguments: missing required property \"{}\"",
                self.named(&parameter.name)
            ))),
        }
    }

    /// The arguments of a call as an executor's own type.
    pub(crate) fn parse<T: serde::de::DeserializeOwned>(
        &self,
        arguments: Value,
    ) -> Result<T, ToolError> {
        serde_json::from_value(self.arguments(arguments)?)
            .map_err(|error| ToolError::new(format!("invalid arguments: {error}")))
    }

    /// What the model calls the executor's `parameter`; its own name where the
    /// model does not know it.
    pub(super) fn named<'a>(&'a self, parameter: &'a str) -> &'a str {
        self.advertised(parameter).unwrap_or(parameter)
    }

    /// What the model calls the executor's `parameter`, if it can set it.
    pub(super) fn advertised<'a>(&'a self, parameter: &'a str) -> Option<&'a str> {
        let Some(route) = &self.route else {
            return Some(parameter);
        };
        let found = route.reached.iter().find(|(to, _, _)| to.name == parameter);
        found.map(|(_, name, _)| name.as_str())
    }

    /// `offset 11`, as the model would write it for the executor's number.
    pub(super) fn shown(&self, parameter: &str, number: u64) -> Option<String> {
        let Some(route) = &self.route else {
            return Some(format!("{parameter} {number}"));
        };
        let found = route.reached.iter().find(|(to, _, _)| to.name == parameter);
        found.map(|(_, name, transform)| format!("{name} {}", transform.invert(number)))
    }

    /// The names of those of `executors` that the model can call, joined by
    /// "or"; `None` when it can call none.
    pub(super) fn others(&self, executors: &[&str]) -> Option<String> {
        let known = executors.iter().filter_map(|key| match self.route {
            None => Some(*key),
            Some(_) => self.vocabulary.tool(key),
        });
        let names: Vec<_> = known.collect();
        match names.as_slice() {
            [] => None,
            [only] => Some((*only).to_owned()),
            [first @ .., last] => Some(format!("{} or {last}", first.join(", "))),
        }
    }
}

#[cfg(test)]
mod tests;
