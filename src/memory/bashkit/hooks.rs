//! `Hooks`: what one call into the shell leaves for a later one of the same command.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use super::grep::Narrow;
use crate::environment::Scope;

/// Bytes of `/dev/zero` and `/dev/urandom` for a command that names no number.
const DEVICE_BYTES: usize = 64 << 10;

/// What bashkit says of a command that the hook before it does not let start.
const REFUSED: &[u8] = b": cancelled by before_tool hook\n";

/// Whether `output` has that sentence.
pub(crate) fn has_refusal(output: &[u8]) -> bool {
    memchr::memmem::find(output, REFUSED).is_some()
}

/// What a `grep` may read lines of: there may be thousands of arguments, and it is asked
/// for each file.
#[derive(Default)]
struct Searched {
    names: HashSet<String>,
    is_recursive: bool,
}

/// What is said of a builtin that was not started.
struct Refusal {
    name: String,
    sentence: String,
}

/// What the command and the builtin that runs are about.
pub(crate) struct Hooks {
    scope: RefCell<Option<Scope>>,
    device_bytes: Cell<usize>,
    pipes_are_shared: Cell<bool>,
    narrow: RefCell<Option<Narrow>>,
    filter_file: RefCell<Option<String>>,
    script_file: RefCell<Option<String>>,
    searched: RefCell<Searched>,
    carries_bytes: Cell<bool>,
    refusals: RefCell<Vec<Refusal>>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self {
            scope: RefCell::default(),
            device_bytes: Cell::new(DEVICE_BYTES),
            pipes_are_shared: Cell::new(true),
            narrow: RefCell::default(),
            filter_file: RefCell::default(),
            script_file: RefCell::default(),
            searched: RefCell::default(),
            carries_bytes: Cell::new(false),
            refusals: RefCell::default(),
        }
    }
}

impl Hooks {
    /// The scope that the command runs in; lent programs run in it, too.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.scope.borrow().clone()
    }

    /// Sets the scope.
    pub(crate) fn set_scope(&self, scope: Scope) {
        *self.scope.borrow_mut() = Some(scope);
    }

    /// Bytes that one read of an endless device gives.
    pub(crate) fn device_bytes(&self) -> usize {
        self.device_bytes.get()
    }

    /// Sets the bytes of an endless device, if more than there were.
    pub(crate) fn need_device_bytes(&self, bytes: usize) {
        self.device_bytes.set(self.device_bytes.get().max(bytes));
    }

    /// Whether others may read the pipe that a builtin reads.
    pub(crate) fn pipes_are_shared(&self) -> bool {
        self.pipes_are_shared.get()
    }

    /// Sets whether others may read that pipe.
    pub(crate) fn set_pipes_are_shared(&self, shared: bool) {
        self.pipes_are_shared.set(shared);
    }

    /// How the `grep` that runs lists directories, until it has listed the next.
    pub(crate) fn take_narrow(&self) -> Option<Narrow> {
        self.narrow.take()
    }

    /// Sets how the builtin that runs lists directories.
    pub(crate) fn set_narrow(&self, narrow: Option<Narrow>) {
        *self.narrow.borrow_mut() = narrow;
    }

    /// Whether `path` is the file whose filter the `jq` that runs reads now.
    pub(crate) fn is_filter_file(&self, path: &str) -> bool {
        is_named(self.filter_file.borrow().as_deref(), path)
    }

    /// Sets the file of which the builtin that runs takes its filter.
    pub(crate) fn set_filter_file(&self, file: Option<String>) {
        *self.filter_file.borrow_mut() = file;
    }

    /// Whether `path` is the script that the builtin that runs reads now.
    pub(crate) fn is_script_file(&self, path: &str) -> bool {
        is_named(self.script_file.borrow().as_deref(), path)
    }

    /// Sets the file that the builtin that runs runs as a script.
    pub(crate) fn set_script_file(&self, file: Option<String>) {
        *self.script_file.borrow_mut() = file;
    }

    /// Whether `path` is a file that the `grep` that runs reads line by line.
    pub(crate) fn is_searched(&self, path: &str) -> bool {
        let searched = self.searched.borrow();
        searched.is_recursive || searched.names.contains(name(path))
    }

    /// Sets the arguments of which the builtin that runs may read lines.
    pub(crate) fn set_searched(&self, arguments: &[String]) {
        let is_recursive = |argument: &String| {
            let letters = argument.strip_prefix('-');
            let letters = letters.filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|letters| letters.contains(['r', 'R']))
                || argument.ends_with("recursive") && argument.starts_with("--")
        };
        *self.searched.borrow_mut() = Searched {
            names: arguments.iter().map(|it| name(it).to_owned()).collect(),
            is_recursive: arguments.iter().any(is_recursive),
        };
    }

    /// Whether text stands for bytes in what the builtin that runs reads and writes.
    pub(crate) fn carries_bytes(&self) -> bool {
        self.carries_bytes.get()
    }

    /// Sets whether it does.
    pub(crate) fn set_carries_bytes(&self, carries: bool) {
        self.carries_bytes.set(carries);
    }

    /// What is said in place of bashkit's sentence on the builtin `name`, which was not
    /// started.
    pub(crate) fn add_refusal(&self, name: &str, sentence: String) {
        let name = name.to_owned();
        self.refusals.borrow_mut().push(Refusal { name, sentence });
    }

    /// `output` with those sentences in place of bashkit's.
    pub(crate) fn say_refusals(&self, output: &[u8]) -> Vec<u8> {
        let mut refusals = self.refusals.borrow_mut();
        let mut said = Vec::with_capacity(output.len());
        for line in output.split_inclusive(|byte| *byte == b'\n') {
            let builtin = line.strip_suffix(REFUSED);
            let at = builtin.and_then(|builtin| {
                let is_of = |refusal: &Refusal| builtin.ends_with(refusal.name.as_bytes());
                refusals.iter().position(is_of)
            });
            match at {
                Some(at) => said.extend(refusals.remove(at).sentence.into_bytes()),
                None => said.extend_from_slice(line),
            }
        }
        said
    }
}

/// Whether `file`, as an argument says it, may be `path`: where it is looked for, the
/// shell knows.
fn is_named(file: Option<&str>, path: &str) -> bool {
    file.is_some_and(|file| name(file) == name(path))
}

/// The last part of `path`.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
