//! The table of the core's own tools; profiles declare them to models.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::Value;

use super::{
    ApplyPatch, EditFile, Glob, Grep, ReadFile, RegisterError, Registry, Shell, Tool, WriteFile,
};
use crate::llm::ToolDefinition;

/// The declarations that the tools' own tests run with: those of a profile.
#[cfg(test)]
pub(super) const CORE_TOOLS: &str = include_str!("../profile/anthropic/tools.json");

/// Makes a tool that presents itself as `definition` says.
type Make = fn(ToolDefinition) -> Rc<dyn Tool>;

/// Executors by key: a new tool is its file and a line here.
const EXECUTORS: &[(&str, Make)] = &[
    ("read_file", |definition| Rc::new(ReadFile::new(definition))),
    ("write_file", |definition| {
        Rc::new(WriteFile::new(definition))
    }),
    ("edit_file", |definition| Rc::new(EditFile::new(definition))),
    ("shell", |definition| Rc::new(Shell::new(definition))),
    ("grep", |definition| Rc::new(Grep::new(definition))),
    ("glob", |definition| Rc::new(Glob::new(definition))),
    ("apply_patch", |definition| {
        Rc::new(ApplyPatch::new(definition))
    }),
];

/// One entry of a declaration file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: String,
    /// Key of the executor; the name itself where it is left out.
    executor: Option<String>,
    description: String,
    parameters: Value,
}

impl Registry {
    /// A registry of the tools that `json` declares: a list of objects with
    /// `name`, `description`, `parameters` and, where a profile calls a tool by
    /// another name, `executor` (`read_file`, `write_file`, `edit_file`,
    /// `shell`, `grep`, `glob` or `apply_patch`).
    pub fn declared(json: &str) -> Result<Self, RegisterError> {
        let declarations: Vec<Declaration> = serde_json::from_str(json)
            .map_err(|error| RegisterError::Declarations(error.to_string()))?;
        let mut registry = Self::new();
        for declaration in declarations {
            let Declaration {
                name,
                executor,
                description,
                parameters,
            } = declaration;
            let key = executor.as_deref().unwrap_or(&name);
            let Some((_, make)) = EXECUTORS.iter().find(|(known, _)| *known == key) else {
                return Err(RegisterError::NoExecutor(key.to_owned()));
            };
            registry.register(make(ToolDefinition {
                name,
                description,
                parameters,
                custom: None,
                strict: None,
            }))?;
        }
        Ok(registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_has_its_own_executor() {
        let registry = Registry::declared(CORE_TOOLS).expect("valid declarations");
        assert_eq!(registry.names().count(), 6);
        for name in registry.names() {
            let tool = registry.get(name).expect("a tool of this name");
            assert_eq!(tool.kind(), name);
        }
    }

    #[test]
    fn an_executor_is_of_the_kind_of_its_key() {
        for (key, make) in EXECUTORS {
            let tool = make(ToolDefinition {
                name: "renamed".to_owned(),
                description: String::new(),
                parameters: serde_json::json!({"type": "object"}),
                custom: None,
                strict: None,
            });
            assert_eq!(tool.kind(), *key);
        }
    }

    #[test]
    fn a_profile_renames_tools() {
        let json = r#"[{"name": "run", "executor": "shell", "description": "",
                        "parameters": {"type": "object"}}]"#;
        let registry = Registry::declared(json).expect("valid declarations");
        let tool = registry.get("run").expect("a tool of this name");
        assert_eq!(tool.kind(), "shell");
    }

    fn check_refused(json: &str, message: &str) {
        let error = Registry::declared(json).err().map(|e| e.to_string());
        assert_eq!(error.as_deref(), Some(message));
    }

    #[test]
    fn bad_declarations() {
        check_refused(
            "[",
            "tool declarations: EOF while parsing a list at line 1 column 1",
        );
        check_refused(
            r#"[{"name": "x", "description": "", "parameters": {}}]"#,
            "no executor for tool x",
        );
    }
}
