//! Programs that a run lends to sandboxes, and the sentence for one that it lacks.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::ProgramFn;

/// Programs by name.
#[derive(Clone, Default)]
pub struct Programs(BTreeMap<String, ProgramFn>);

impl Programs {
    /// These programs.
    pub fn new(programs: BTreeMap<String, ProgramFn>) -> Self {
        Self(programs)
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Those that a task asks for. Python has its second name, too.
    ///
    /// # Errors
    /// A sentence about the first that is not there.
    pub(super) fn lent(
        &self,
        needed: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, ProgramFn>, String> {
        let mut lent = BTreeMap::new();
        for name in needed {
            let Some(program) = self.0.get(name) else {
                return Err(missing(name));
            };
            lent.insert(name.clone(), program.clone());
            if name == "python3" {
                lent.insert("python".to_owned(), program.clone());
            }
        }
        Ok(lent)
    }

    /// All of them.
    pub(super) fn all(&self) -> BTreeMap<String, ProgramFn> {
        self.0.clone()
    }
}

fn missing(name: &str) -> String {
    match name {
        "python3" | "python" => "the task needs Python: make it with `cargo xtask python`, and \
                                 name the python.tar.gz with --python, or put it beside the binary"
            .to_owned(),
        _ => format!("the task needs the program {name}: lend it with --program {name}=FILE.wasm"),
    }
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
