//! The table of the core's own tools; profiles declare them to models.

use std::cell::RefCell;
use std::rc::Rc;

use super::apply_patch::ApplyPatch;
use super::background::{CommandOutput, StopCommand};
use super::declaration::{Declaration, Declared};
use super::edit_file::EditFile;
use super::executor::Presented;
use super::glob::Glob;
use super::grep::Grep;
use super::list_dir::ListDir;
use super::mapping::Parameter;
use super::read_file::ReadFile;
use super::read_many_files::ReadManyFiles;
use super::shell::Shell;
use super::vocabulary::Vocabulary;
use super::web_fetch::WebFetch;
use super::write_file::WriteFile;
use super::{
    HostTool, RegisterError, Registry, Tool, apply_patch, background, edit_file, glob, grep,
    list_dir, read_file, read_many_files, shell, web_fetch, write_file,
};
use crate::llm::ToolDefinition;

/// The declarations that the tools' own tests run with: those of a profile.
#[cfg(test)]
pub(super) const CORE_TOOLS: &str = include_str!("../profile/anthropic/tools.spec.json");

/// One executor.
struct Entry {
    key: &'static str,
    parameters: &'static [Parameter],
    /// Makes a tool that presents itself as declared.
    make: fn(Declared, &Offers<'_>) -> Rc<dyn Tool>,
}

/// Executors by key: a new tool is its file and a line here.
#[rustfmt::skip]
const EXECUTORS: &[Entry] = &[
    Entry { key: "read_file", parameters: read_file::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, ReadFile { images_only: false })) },
    Entry { key: "view_image", parameters: read_file::IMAGE_PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, ReadFile { images_only: true })) },
    Entry { key: "read_many_files", parameters: read_many_files::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, ReadManyFiles)) },
    Entry { key: "write_file", parameters: write_file::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, WriteFile)) },
    Entry { key: "edit_file", parameters: edit_file::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, EditFile)) },
    Entry { key: "shell", parameters: shell::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, Shell)) },
    Entry { key: COMMAND_OUTPUT, parameters: background::OUTPUT_PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, CommandOutput)) },
    Entry { key: STOP_COMMAND, parameters: background::STOP_PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, StopCommand)) },
    Entry { key: "grep", parameters: grep::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, Grep)) },
    Entry { key: "glob", parameters: glob::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, Glob)) },
    Entry { key: "list_dir", parameters: list_dir::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, ListDir)) },
    Entry { key: WEB_FETCH, parameters: web_fetch::PARAMETERS, make: |declared, offers| Rc::new(Presented::new(declared, WebFetch::new(offers.web_fetch_hosts))) },
    Entry { key: "apply_patch", parameters: apply_patch::PARAMETERS, make: |declared, _| Rc::new(Presented::new(declared, ApplyPatch::executor())) },
];

/// Only declared where the configuration names hosts.
const WEB_FETCH: &str = "web_fetch";

/// Only declared where commands may run in the background, as the parameter of `shell` that
/// starts one.
const COMMAND_OUTPUT: &str = "command_output";
const STOP_COMMAND: &str = "stop_command";
const RUN_IN_BACKGROUND: &str = "run_in_background";

/// Before the name of a tool that the host runs.
const HOST: &str = "host:";

/// What a session has beyond the core's own tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct Offers<'a> {
    /// Tools that the host runs.
    pub host_tools: &'a [ToolDefinition],
    /// Hosts that `web_fetch` may ask, as [`super::HostList`] reads them; the
    /// tool is not declared when there are none.
    pub web_fetch_hosts: &'a [String],
    /// Whether commands may go on in the background.
    pub background_commands: bool,
    /// Whether tools that have a freeform format use it.
    pub freeform: bool,
}

/// A list of declarations as it is without anything on offer.
struct Plain {
    json: &'static str,
    registry: Registry,
    /// The host's tools that it would present.
    presents: Vec<String>,
}

thread_local! {
    /// Lists that are part of the core are read once.
    static PLAIN: RefCell<Vec<Rc<Plain>>> = const { RefCell::new(Vec::new()) };
}

impl Plain {
    fn of(json: &'static str) -> Result<Rc<Self>, RegisterError> {
        let known = |plain: &&Rc<Self>| std::ptr::eq(plain.json, json);
        if let Some(plain) = PLAIN.with_borrow(|all| all.iter().find(known).cloned()) {
            return Ok(plain);
        }
        let declarations = Declaration::parse_list(json)?;
        let presents = declarations
            .iter()
            .filter_map(|one| one.executor.strip_prefix(HOST));
        let plain = Rc::new(Self {
            json,
            registry: Registry::declared(json)?,
            presents: presents.map(str::to_owned).collect(),
        });
        PLAIN.with_borrow_mut(|all| all.push(plain.clone()));
        Ok(plain)
    }

    fn is_changed_by(&self, offers: &Offers<'_>) -> bool {
        let presented = |tool: &ToolDefinition| self.presents.contains(&tool.name);
        offers.freeform
            || offers.background_commands
            || !offers.web_fetch_hosts.is_empty()
            || offers.host_tools.iter().any(presented)
    }
}

impl Registry {
    /// As [`Registry::offered`], for a list that is part of the core.
    pub(crate) fn built_in(json: &'static str, offers: &Offers<'_>) -> Result<Self, RegisterError> {
        let plain = Plain::of(json)?;
        if plain.is_changed_by(offers) {
            return Self::offered(json, offers);
        }
        Ok(plain.registry.clone())
    }

    /// A registry of the tools that `json` declares and that need nothing
    /// beyond the core; the format is described at the head of
    /// `declaration.rs`.
    pub fn declared(json: &str) -> Result<Self, RegisterError> {
        Self::offered(json, &Offers::default())
    }

    /// A registry of the tools that `json` declares, as far as they are on
    /// offer.
    pub fn offered(json: &str, offers: &Offers<'_>) -> Result<Self, RegisterError> {
        let declarations = Declaration::parse_list(json)?;
        let offered = |declaration: &Declaration| match declaration.executor.strip_prefix(HOST) {
            Some(name) => offers.host_tools.iter().any(|tool| tool.name == name),
            None => match declaration.executor.as_str() {
                WEB_FETCH => !offers.web_fetch_hosts.is_empty(),
                COMMAND_OUTPUT | STOP_COMMAND => offers.background_commands,
                _ => true,
            },
        };
        let mut declarations: Vec<_> = declarations.into_iter().filter(offered).collect();
        for declaration in &mut declarations {
            present(declaration, offers)?;
            if declaration.executor == "shell" && !offers.background_commands {
                declaration.leave_out(RUN_IN_BACKGROUND);
            }
        }
        for (index, declaration) in declarations.iter().enumerate() {
            let name = &declaration.definition.name;
            let mut earlier = declarations[..index].iter();
            if earlier.any(|earlier| earlier.definition.name == *name) {
                return Err(RegisterError::Declaration {
                    tool: name.clone(),
                    problem: "declared twice; give each entry a name of its own".to_owned(),
                });
            }
        }
        let mut vocabulary = Vocabulary::default();
        let mut routes = Vec::with_capacity(declarations.len());
        for declaration in &declarations {
            let route = declaration.route(parameters(declaration)?)?;
            vocabulary.add(
                &declaration.executor,
                &declaration.definition.name,
                route.reached(),
            );
            routes.push(route);
        }
        let vocabulary = Rc::new(vocabulary);
        let mut registry = Self::with_vocabulary(vocabulary.clone());
        for (declaration, route) in declarations.into_iter().zip(routes) {
            let executor = declaration.executor;
            let declared = Declared::new(declaration.definition, route, vocabulary.clone());
            registry.register(match executor.strip_prefix(HOST) {
                Some(name) => Rc::new(HostTool::presented(declared, name)),
                None => (entry(&executor)?.make)(declared, offers),
            })?;
        }
        Ok(registry)
    }

    /// Those of the host's tools that are declared under their own
    /// names, in the place of a declared one of that name; the others are
    /// declared under another name.
    pub fn unpresented<'a>(&self, host_tools: &'a [ToolDefinition]) -> Vec<&'a ToolDefinition> {
        let own_name = |tool: &&ToolDefinition| {
            let presented = self.vocabulary().tool(&format!("{HOST}{}", tool.name));
            presented.is_none_or(|name| name == tool.name)
        };
        host_tools.iter().filter(own_name).collect()
    }

    /// Keys of all executors, in order.
    pub fn executors() -> impl Iterator<Item = &'static str> {
        EXECUTORS.iter().map(|entry| entry.key)
    }
}

/// Puts in the executor's own freeform format where that is asked for.
fn present(declaration: &mut Declaration, offers: &Offers<'_>) -> Result<(), RegisterError> {
    let format = match declaration.executor.as_str() {
        "apply_patch" => Some(ApplyPatch::freeform()),
        _ => None,
    };
    if declaration.own_format && format.is_none() {
        return Err(RegisterError::Declaration {
            tool: declaration.definition.name.clone(),
            problem: format!(
                "`custom`: executor {} has no format of its own",
                declaration.executor
            ),
        });
    }
    if declaration.own_format || (offers.freeform && declaration.definition.custom.is_none()) {
        declaration.definition.custom = format;
    }
    Ok(())
}

fn entry(key: &str) -> Result<&'static Entry, RegisterError> {
    let found = EXECUTORS.iter().find(|entry| entry.key == key);
    found.ok_or_else(|| RegisterError::NoExecutor(key.to_owned()))
}

/// What the executor takes; a tool of the host takes anything.
fn parameters(declaration: &Declaration) -> Result<&'static [Parameter], RegisterError> {
    if declaration.executor.starts_with(HOST) {
        return Ok(&[]);
    }
    entry(&declaration.executor).map(|entry| entry.parameters)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn declared(json: &str) -> Result<Registry, RegisterError> {
        Registry::declared(json)
    }

    #[test]
    fn the_shared_core_is_declared() {
        let registry = declared(CORE_TOOLS).expect("valid declarations");
        let names: Vec<_> = registry.names().collect();
        let core = [
            "read_file",
            "write_file",
            "edit_file",
            "shell",
            "grep",
            "glob",
        ];
        assert_eq!(names, core);
        for name in core {
            let tool = registry.get(name).expect("a tool of this name");
            assert_eq!(tool.kind(), name);
        }
    }

    #[test]
    fn freeform_input_has_the_executors_own_format() {
        let patch = json!({"name": "apply_patch", "description": "",
            "parameters": {"type": "object", "required": ["patch"],
                           "properties": {"patch": {"type": "string"}}}});
        let format = |patch: &Value, freeform| {
            let offers = Offers {
                freeform,
                ..Offers::default()
            };
            let registry = Registry::offered(&json!([patch]).to_string(), &offers)?;
            Ok::<_, RegisterError>(registry.definitions()[0].custom.clone())
        };
        assert_eq!(format(&patch, false), Ok(None));
        assert_eq!(format(&patch, true), Ok(Some(ApplyPatch::freeform())));
        let mut own = patch.clone();
        own["custom"] = json!("own");
        assert_eq!(format(&own, false), Ok(Some(ApplyPatch::freeform())));
        own["executor"] = json!("shell");
        own["map"] = json!({"patch": "command"});
        let message = "tool declarations: apply_patch: `custom`: executor shell has no format of \
                       its own";
        assert_eq!(
            format(&own, false).map_err(|e| e.to_string()),
            Err(message.to_owned())
        );
    }

    #[test]
    fn a_profile_renames_tools() {
        let json = r#"[{"name": "run", "executor": "shell", "description": "",
                        "parameters": {"type": "object", "required": ["cmd"],
                                       "properties": {"cmd": {"type": "string"}}},
                        "map": {"cmd": "command"}}]"#;
        let registry = declared(json).expect("valid declarations");
        let tool = registry.get("run").expect("a tool of this name");
        assert_eq!(tool.kind(), "shell");
        let vocabulary = registry.vocabulary();
        assert_eq!(vocabulary.tool("shell"), Some("run"));
        assert_eq!(vocabulary.parameter("shell", "command"), Some("cmd"));
        assert_eq!(vocabulary.parameter("shell", "timeout_ms"), None);
        assert_eq!(vocabulary.tool("grep"), None);
    }

    fn search(name: &str) -> ToolDefinition {
        ToolDefinition {
            name: name.to_owned(),
            description: "of the host".to_owned(),
            parameters: json!({"type": "object"}),
            custom: None,
            strict: None,
            unchecked: false,
        }
    }

    fn check_host(declared_as: &str, host_tools: &[ToolDefinition], expected: &[&str]) {
        let json = json!([{"name": declared_as, "executor": "host:web_search",
                           "description": "declared", "parameters": {"type": "object"}}]);
        let offers = Offers {
            host_tools,
            web_fetch_hosts: &[],
            background_commands: false,
            freeform: false,
        };
        let mut registry = Registry::offered(&json.to_string(), &offers).expect("valid");
        for tool in registry.unpresented(host_tools) {
            let tool = Rc::new(HostTool::new(tool.clone()));
            registry.register(tool).expect("a good tool");
        }
        let tools = registry.definitions();
        let described = tools
            .iter()
            .map(|t| format!("{} {}", t.name, t.description));
        assert_eq!(described.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_tool_of_the_host_is_presented_as_declared() {
        check_host("search", &[], &[]);
        check_host("search", &[search("other")], &["other of the host"]);
        check_host("search", &[search("web_search")], &["search declared"]);
        check_host(
            "web_search",
            &[search("web_search")],
            &["web_search of the host"],
        );
    }

    #[test]
    fn the_document_lists_the_parameters() {
        let document = include_str!("../../docs/toolsets.md");
        for entry in EXECUTORS {
            let row = format!("| `{}` | ", entry.key);
            // The last table is that of the executors.
            let listed = document.lines().rfind(|line| line.starts_with(&row));
            let listed = listed.unwrap_or_else(|| panic!("no row of {}", entry.key));
            for parameter in entry.parameters {
                let name = format!("`{}`", parameter.name);
                assert!(listed.contains(&name), "{name} in {listed}");
            }
        }
    }

    #[test]
    fn web_fetch_waits_for_hosts() {
        let json = r#"[{"name": "web_fetch", "description": "",
                        "parameters": {"type": "object", "required": ["url"],
                                       "properties": {"url": {"type": "string"}}}}]"#;
        assert_eq!(declared(json).expect("valid").names().count(), 0);
        let offers = Offers {
            web_fetch_hosts: &["docs.rs".to_owned()],
            ..Offers::default()
        };
        let registry = Registry::offered(json, &offers).expect("valid");
        assert_eq!(registry.names().collect::<Vec<_>>(), ["web_fetch"]);
    }
}
