//! The tool registry (spec 3.8): names to tools, in a stable order.

use std::cell::OnceCell;
use std::fmt;
use std::rc::Rc;

use serde_json::Value;

use super::vocabulary::Vocabulary;
use super::{Schema, SchemaError, Tool};
use crate::llm::ToolDefinition;

/// The tools of a session. Clones are cheap and independent, so a round can
/// hold on to the tools that its request named.
#[derive(Clone)]
pub struct Registry {
    tools: Rc<Vec<Registered>>,
    /// Made when somebody asks: to copy all schemas at every registration was
    /// a good part of opening a session.
    definitions: OnceCell<Rc<[Rc<ToolDefinition>]>>,
    vocabulary: Rc<Vocabulary>,
}

/// A tool with its compiled schema.
#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) tool: Rc<dyn Tool>,
    pub(crate) schema: Rc<Schema>,
}

/// Why a tool cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegisterError {
    /// The name is not `[A-Za-z][A-Za-z0-9_]{0,63}`.
    Name(String),
    /// The root of the schema does not say `"type": "object"`.
    NotAnObject(String),
    /// The schema of this tool cannot be compiled.
    Schema(String, SchemaError),
    /// A list of declarations is not what [`Registry::declared`] reads.
    Declarations(String),
    /// One of its entries is not.
    Declaration {
        /// Name of the tool that it declares.
        tool: String,
        /// What is wrong with which field.
        problem: String,
    },
    /// The core has no executor under this key.
    NoExecutor(String),
}

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(
                f,
                "tool name {name:?}: a letter, then at most 63 letters, digits or underscores"
            ),
            Self::NotAnObject(name) => {
                write!(
                    f,
                    "tool {name}: parameters must have \"type\": \"object\"; put other forms \
                     into a property"
                )
            }
            Self::Schema(name, error) => write!(f, "tool {name}: {error}"),
            Self::Declarations(error) => write!(f, "tool declarations: {error}"),
            Self::Declaration { tool, problem } => {
                write!(f, "tool declarations: {tool}: {problem}")
            }
            Self::NoExecutor(key) => {
                let known: Vec<_> = Registry::executors().collect();
                write!(
                    f,
                    "tool declarations: no executor `{key}`; known are {}, and host:NAME for a \
                     tool of the host",
                    known.join(", ")
                )
            }
        }
    }
}

impl std::error::Error for RegisterError {}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// A registry without tools.
    pub fn new() -> Self {
        Self {
            tools: Rc::default(),
            definitions: OnceCell::new(),
            vocabulary: Rc::default(),
        }
    }

    pub(super) fn with_vocabulary(vocabulary: Rc<Vocabulary>) -> Self {
        Self {
            vocabulary,
            ..Self::new()
        }
    }

    /// How the declared tools are called, for prompts.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The same, of the tools that have not been removed since.
    pub fn offered_vocabulary(&self) -> Vocabulary {
        self.vocabulary.only(|name| self.position(name).is_some())
    }

    /// Adds a tool. One of the same name is replaced and its place kept, so
    /// that the order of definitions, and with it the prompt prefix, is stable.
    pub fn register(&mut self, tool: Rc<dyn Tool>) -> Result<(), RegisterError> {
        let schema = Rc::new(compile(tool.definition())?);
        self.put(tool, schema);
        Ok(())
    }

    /// Adds a tool whose definition has become `schema` already.
    pub(crate) fn put(&mut self, tool: Rc<dyn Tool>, schema: Rc<Schema>) {
        let position = self.position(&tool.definition().name);
        let registered = Registered { tool, schema };
        let tools = Rc::make_mut(&mut self.tools);
        match position {
            Some(position) => tools[position] = registered,
            None => tools.push(registered),
        }
        self.definitions.take();
    }

    /// Removes a tool; whether there was one.
    pub fn unregister(&mut self, name: &str) -> bool {
        let Some(position) = self.position(name) else {
            return false;
        };
        Rc::make_mut(&mut self.tools).remove(position);
        self.definitions.take();
        true
    }

    /// The tool of this name.
    pub fn get(&self, name: &str) -> Option<Rc<dyn Tool>> {
        self.find(name).map(|registered| registered.tool.clone())
    }

    /// The declarations, in order of registration.
    pub fn definitions(&self) -> Rc<[Rc<ToolDefinition>]> {
        let copies = || self.tools.iter().map(|t| t.tool.definition().clone());
        self.definitions.get_or_init(|| copies().collect()).clone()
    }

    /// Names in order of registration.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let definitions = self.tools.iter().map(|t| t.tool.definition());
        definitions.map(|definition| definition.name.as_str())
    }

    /// The tools themselves, in order of registration.
    pub fn tools(&self) -> impl Iterator<Item = Rc<dyn Tool>> {
        self.tools.iter().map(|registered| registered.tool.clone())
    }

    /// Kinds of the tools, see [`Tool::kind`].
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|registered| registered.tool.kind())
    }

    /// Whether a tool of this kind is there.
    pub fn has_kind(&self, kind: &str) -> bool {
        self.kinds().any(|known| known == kind)
    }

    /// Removes the tools that `keep` does not want.
    pub fn retain(&mut self, keep: impl Fn(&dyn Tool) -> bool) {
        Rc::make_mut(&mut self.tools).retain(|registered| keep(&*registered.tool));
        self.definitions.take();
    }

    /// What a subagent gets of them.
    pub fn inherited(&self) -> Self {
        let mut registry = self.clone();
        registry.retain(|tool| tool.is_inherited());
        registry
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Registered> {
        self.position(name).map(|position| &self.tools[position])
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.names().position(|known| known == name)
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registry")
            .field(&self.names().collect::<Vec<_>>())
            .finish()
    }
}

/// The schema of a definition that can be registered.
pub(crate) fn compile(definition: &ToolDefinition) -> Result<Schema, RegisterError> {
    let name = &definition.name;
    if !is_tool_name(name) {
        return Err(RegisterError::Name(name.clone()));
    }
    let schema = match Schema::compile(&definition.parameters) {
        Ok(schema) => schema,
        Err(_) if definition.unchecked && says_object(&definition.parameters) => Schema::anything(),
        Err(error) => return Err(RegisterError::Schema(name.clone(), error)),
    };
    match schema.is_object() || says_object(&definition.parameters) {
        true => Ok(schema),
        false => Err(RegisterError::NotAnObject(name.clone())),
    }
}

fn says_object(parameters: &Value) -> bool {
    parameters.get("type").is_some_and(|name| name == "object")
}

fn is_tool_name(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::HostTool;
    use super::*;

    fn tool(name: &str, description: &str, parameters: Value) -> Rc<dyn Tool> {
        Rc::new(HostTool::new(ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            custom: None,
            strict: None,
            unchecked: false,
        }))
    }

    fn described(registry: &Registry) -> Vec<String> {
        let definitions = registry.definitions();
        let described = definitions
            .iter()
            .map(|tool| format!("{} {}", tool.name, tool.description));
        described.collect()
    }

    #[test]
    fn latest_wins_and_keeps_its_place() {
        let mut registry = Registry::new();
        let object = json!({"type": "object"});
        for (name, description) in [("a", "1"), ("b", "2"), ("a", "3")] {
            let tool = tool(name, description, object.clone());
            assert_eq!(registry.register(tool), Ok(()));
        }
        assert_eq!(described(&registry), ["a 3", "b 2"]);
        let before = registry.clone();
        assert!(registry.unregister("a"));
        assert!(!registry.unregister("a"));
        assert_eq!(described(&registry), ["b 2"]);
        assert!(registry.get("a").is_none());
        assert_eq!(described(&before), ["a 3", "b 2"]);
    }

    fn check_refused(name: &str, parameters: Value, message: &str) {
        let mut registry = Registry::new();
        let error = registry.register(tool(name, "", parameters)).err();
        assert_eq!(error.map(|e| e.to_string()).as_deref(), Some(message));
        assert_eq!(registry.names().count(), 0);
    }

    #[test]
    fn refusals() {
        check_refused(
            "1a",
            json!({"type": "object"}),
            "tool name \"1a\": a letter, then at most 63 letters, digits or underscores",
        );
        check_refused(
            "a",
            json!({"type": "string"}),
            "tool a: parameters must have \"type\": \"object\"; put other forms into a property",
        );
        check_refused(
            "a",
            json!({"type": "object", "properties": {"p": {"items": {"pattern": "x(?=y)"}}}}),
            "tool a: schema keyword `pattern` at $.properties.p.items: `x(?=y)` cannot be checked: \
             lookaround is read only right behind a leading `^`; write it otherwise, or set \
             `unchecked` for the tool to send the schema as it is and check the arguments yourself",
        );
    }

    #[test]
    fn what_is_not_checked_may_be_anything_of_an_object() {
        let unchecked = |parameters: Value| {
            let definition = ToolDefinition {
                unchecked: true,
                ..(*tool("a", "", parameters).definition().clone()).clone()
            };
            Registry::new().register(Rc::new(HostTool::new(definition)))
        };
        assert_eq!(
            unchecked(json!({"type": "object", "unevaluatedProperties": false})),
            Ok(())
        );
        let error = unchecked(json!({"type": "string"})).expect_err("no object");
        assert_eq!(error, RegisterError::NotAnObject("a".to_owned()));
    }

    #[test]
    fn an_object_by_reference() {
        let mut registry = Registry::new();
        let recursive = json!({
            "$ref": "#/$defs/Node",
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        });
        assert_eq!(registry.register(tool("a", "", recursive)), Ok(()));
    }
}
