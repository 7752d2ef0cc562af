//! The sandbox exports: environments that live inside the core, their bulk
//! import and export, and their snapshots.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use bytes::Bytes;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::{Core, convert, invalid};
use crate::environment::EnvironmentError;
use crate::memory::{ChangeKind, MemoryEnvironment, MemorySettings};

/// The sandboxes of a core, by number.
pub(super) type Sandboxes = RefCell<BTreeMap<u32, Rc<MemoryEnvironment>>>;

/// A remembered state of a sandbox: files, clock and randomness.
#[wasm_bindgen]
pub struct Snapshot(crate::memory::Snapshot);

#[wasm_bindgen]
impl Core {
    /// Adds a sandbox; `options` is an object, see [`MemorySettings`]. Returns its number.
    #[wasm_bindgen(js_name = addSandbox)]
    pub fn add_sandbox(&self, options: JsValue) -> Result<u32, JsValue> {
        let settings: MemorySettings = convert::from_object(&options)
            .map_err(|error| invalid(format!("invalid sandbox options: {error}")))?;
        let mut made = None;
        let number = self.driver.with(|instance| {
            let port = instance.port().clone();
            let programs = Rc::new(port.clone());
            let mut options = settings.into_options(instance.random().bytes());
            instance.add_environment(|id| {
                options.id = id;
                let now = Rc::new(move || port.now_ms());
                let sandbox = Rc::new(MemoryEnvironment::new(options, now, programs));
                made = Some(sandbox.clone());
                sandbox
            })
        });
        self.sandboxes
            .borrow_mut()
            .extend(made.map(|sandbox| (number, sandbox)));
        Ok(number)
    }

    /// Has the shell call a program of the host's under `name` from now on.
    #[wasm_bindgen(js_name = lendProgram)]
    pub fn lend_program(&self, environment: u32, name: &str) -> Result<(), JsValue> {
        self.sandbox(environment)?.lend(name);
        Ok(())
    }

    /// Unpacks a tar archive below the working directory; all or nothing.
    #[wasm_bindgen(js_name = importTar)]
    pub fn import_tar(&self, environment: u32, archive: &[u8]) -> Result<(), JsValue> {
        self.sandbox(environment)?
            .import_tar(archive)
            .map_err(|error| thrown(&error))
    }

    /// Packs the working directory as a tar archive.
    #[wasm_bindgen(js_name = exportTar)]
    pub fn export_tar(&self, environment: u32) -> Result<Vec<u8>, JsValue> {
        self.sandbox(environment)?
            .export_tar()
            .map_err(|error| thrown(&error))
    }

    /// Writes files below the working directory, all or none: `paths` and
    /// `contents` (`Uint8Array`s) in the same order.
    #[wasm_bindgen(js_name = importFiles)]
    pub fn import_files(
        &self,
        environment: u32,
        paths: Vec<String>,
        contents: Array,
    ) -> Result<(), JsValue> {
        let contents = contents.iter().map(|content| {
            let content = content.dyn_into::<Uint8Array>();
            content
                .map(|bytes| Bytes::from(bytes.to_vec()))
                .map_err(|_| invalid("the content of a file must be a Uint8Array"))
        });
        let files = paths
            .into_iter()
            .zip(contents)
            .map(|(path, content)| content.map(|content| (path, content)))
            .collect::<Result<Vec<_>, JsValue>>()?;
        let sandbox = self.sandbox(environment)?;
        sandbox.import_files(files).map_err(|error| thrown(&error))
    }

    /// Remembers a sandbox as it is now, in constant time.
    pub fn snapshot(&self, environment: u32) -> Result<Snapshot, JsValue> {
        Ok(Snapshot(self.sandbox(environment)?.snapshot()))
    }

    /// Puts a sandbox back, in constant time.
    pub fn restore(&self, environment: u32, snapshot: &Snapshot) -> Result<(), JsValue> {
        self.sandbox(environment)?.restore(&snapshot.0);
        Ok(())
    }

    /// What changed since `snapshot`: `[{path, change}]`, sorted by path, where
    /// `change` is `added`, `changed` or `removed`.
    #[wasm_bindgen(js_name = changesSince)]
    pub fn changes_since(&self, environment: u32, snapshot: &Snapshot) -> Result<Array, JsValue> {
        let changes = self.sandbox(environment)?.changes_since(&snapshot.0);
        let records = changes.iter().map(|change| {
            let kind = match change.kind {
                ChangeKind::Added => "added",
                ChangeKind::Changed => "changed",
                ChangeKind::Removed => "removed",
            };
            let record = convert::Record::new().text("path", &change.path);
            JsValue::from(record.text("change", kind).object())
        });
        Ok(records.collect())
    }

    fn sandbox(&self, number: u32) -> Result<Rc<MemoryEnvironment>, JsValue> {
        let sandbox = self.sandboxes.borrow().get(&number).cloned();
        sandbox.ok_or_else(|| invalid(format!("environment {number} is not a sandbox")))
    }
}

fn thrown(error: &EnvironmentError) -> JsValue {
    convert::to_object(error)
}
