//! The sandbox exports: environments that live inside the core, their bulk
//! import and export, and their snapshots.

use std::rc::{Rc, Weak};

use bytes::Bytes;
use js_sys::{Array, Uint8Array};
use wasm_bindgen::prelude::*;

use super::driver::Driver;
use super::{Core, convert, copied, invalid, out_of_place, refused};
use crate::environment::{EnvironmentError, EnvironmentErrorKind, ExecutionEnvironment as _};
use crate::memory::tree::NodeKind;
use crate::memory::{ChangeKind, Delta, ImportNode, MemoryEnvironment};
use crate::session::{InstanceCall, InstanceReply};

/// A remembered state of a sandbox: files, clock and randomness.
#[wasm_bindgen]
pub struct Snapshot {
    state: crate::memory::Snapshot,
    /// Its number in a core that is recorded.
    kept: Option<Kept>,
}

/// A snapshot that a core keeps, too, so that its log can name it.
struct Kept {
    driver: Weak<Driver>,
    number: u64,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // A core that has failed must not be looked at.
        if let Some(driver) = self.driver.upgrade().filter(|driver| !driver.is_stopped()) {
            let snapshot = self.number;
            let _ = driver.call(InstanceCall::ForgetSnapshot { snapshot });
        }
    }
}

#[wasm_bindgen]
impl Snapshot {
    /// Everything below `directory`, absolute, in path order: `{path, type,
    /// mode, modifiedMs, size}`, where `path` is relative to it, `type` is
    /// `file`, `directory` or `link`; a link has its `target`.
    pub fn entries(&self, directory: &str) -> Result<Array, JsValue> {
        let records = Array::new();
        let walked = self
            .state
            .tree()
            .walk(directory, u32::MAX, &mut |path, node| {
                let record = convert::Record::new()
                    .text("path", path)
                    .number("mode", f64::from(node.mode))
                    .number("modifiedMs", (node.modified_us / 1_000) as f64);
                let record = match &node.kind {
                    NodeKind::File(content) => record
                        .text("type", "file")
                        .number("size", content.as_slice().len() as f64),
                    NodeKind::Directory(_) => record.text("type", "directory").number("size", 0.0),
                    NodeKind::Link(target) => record
                        .text("type", "link")
                        .number("size", 0.0)
                        .text("target", target),
                };
                records.push(record.object());
                true
            });
        match walked {
            Ok(()) => Ok(records),
            Err(error) => Err(invalid(format!("cannot list {directory}: {error}"))),
        }
    }

    /// Content of the file at `path`, absolute; no link is followed.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, JsValue> {
        let content = self.state.tree().read(path);
        content
            .map(|content| content.as_slice().to_vec())
            .map_err(|error| invalid(format!("cannot read {path}: {error}")))
    }

    /// The files below `directory`, absolute, as a tar archive.
    #[wasm_bindgen(js_name = exportTar)]
    pub fn export_tar(&self, directory: &str) -> Result<Vec<u8>, JsValue> {
        self.state
            .export_tar(directory)
            .map_err(|error| thrown(&error))
    }

    /// What changed since `old`, as `deltaSince` of [`Core`] gives it.
    #[wasm_bindgen(js_name = deltaSince)]
    pub fn delta_since(&self, old: &Snapshot) -> Result<JsValue, JsValue> {
        if self.is_same(old) {
            return Ok(JsValue::UNDEFINED);
        }
        let delta = self
            .state
            .delta_since(&old.state)
            .map_err(|error| thrown(&error))?;
        Ok(delta_object(&delta))
    }

    /// Whether no file, directory or link differs from `other`, found without
    /// looking inside.
    #[wasm_bindgen(js_name = isSame)]
    pub fn is_same(&self, other: &Snapshot) -> bool {
        self.state.tree().is_same(other.state.tree())
    }
}

/// Files on their way into a sandbox; nothing is there before
/// [`Core::commit_import`].
#[wasm_bindgen]
pub struct Import(crate::memory::Import);

#[wasm_bindgen]
impl Import {
    /// Takes a file; `name` is relative. `mode`: permission bits, if known.
    #[wasm_bindgen(js_name = addFile)]
    pub fn add_file(
        &mut self,
        name: String,
        content: &Uint8Array,
        mode: Option<u32>,
        modified_ms: Option<f64>,
    ) -> Result<(), JsValue> {
        let content = Bytes::from(copied(content)?);
        self.add(name, ImportNode::File { content, mode }, modified_ms)
    }

    /// Takes a directory. `mode`: permission bits, if known.
    #[wasm_bindgen(js_name = addDirectory)]
    pub fn add_directory(&mut self, name: String, mode: Option<u32>) -> Result<(), JsValue> {
        self.add(name, ImportNode::Directory { mode }, None)
    }

    /// Takes a symbolic link.
    #[wasm_bindgen(js_name = addLink)]
    pub fn add_link(&mut self, name: String, target: String) -> Result<(), JsValue> {
        self.add(name, ImportNode::Link(target), None)
    }

    fn add(
        &mut self,
        name: String,
        node: ImportNode,
        modified_ms: Option<f64>,
    ) -> Result<(), JsValue> {
        let modified_us = modified_ms.map(|ms| (ms as u64).saturating_mul(1_000));
        self.0
            .add(name, node, modified_us)
            .map_err(|error| thrown(&error))
    }
}

/// See [`crate::memory::held_bytes`]; of all cores of the module.
#[wasm_bindgen(js_name = heldBytes)]
#[allow(unreachable_pub, reason = "wasm-bindgen exports public functions only")]
pub fn held_bytes() -> f64 {
    crate::memory::held_bytes() as f64
}

#[wasm_bindgen]
impl Core {
    /// Adds a sandbox; `options` is an object, see [`MemorySettings`]. Returns its number.
    #[wasm_bindgen(js_name = addSandbox)]
    pub fn add_sandbox(&self, options: JsValue) -> Result<u32, JsValue> {
        let settings = convert::from_object(&options)
            .map_err(|error| invalid(format!("invalid sandbox options: {error}")))?;
        self.small_number(InstanceCall::AddMemoryEnvironment { settings })
    }

    /// Adds the sandbox of a saved session; `options` are as those of `addSandbox`, and
    /// win over its own. Returns its number.
    #[wasm_bindgen(js_name = addSaved)]
    pub fn add_saved(&self, saved: &Uint8Array, options: JsValue) -> Result<u32, JsValue> {
        let settings = convert::from_object(&options)
            .map_err(|error| invalid(format!("invalid sandbox options: {error}")))?;
        let saved = copied(saved)?.into();
        self.small_number(InstanceCall::AddSavedEnvironment { saved, settings })
    }

    /// Has the shell call a program of the host's under `name` from now on.
    #[wasm_bindgen(js_name = lendProgram)]
    pub fn lend_program(&self, environment: u32, name: &str) -> Result<(), JsValue> {
        let name = name.to_owned();
        self.change(InstanceCall::LendProgram { environment, name })
    }

    /// The working directory of a sandbox, absolute.
    #[wasm_bindgen(js_name = workingDirectory)]
    pub fn working_directory(&self, environment: u32) -> Result<String, JsValue> {
        let sandbox = self.sandbox(environment)?;
        Ok(sandbox.info().working_directory.clone())
    }

    /// Unpacks a tar archive below the working directory; all or nothing.
    #[wasm_bindgen(js_name = importTar)]
    pub fn import_tar(&self, environment: u32, archive: &Uint8Array) -> Result<(), JsValue> {
        let archive = copied(archive)?.into();
        self.change(InstanceCall::ImportTar {
            environment,
            archive,
        })
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
        let sandbox = self.sandbox(environment)?;
        let limit = sandbox.tree().limits().total_bytes;
        let mut bytes = 0;
        let files = paths
            .into_iter()
            .zip(contents.iter())
            .map(|(path, content)| {
                let content = content
                    .dyn_into::<Uint8Array>()
                    .map_err(|_| invalid("the content of a file must be a Uint8Array"))?;
                // Before they take the memory that all sandboxes share.
                bytes += convert::length(&content);
                if bytes > limit {
                    let refused = format!(
                        "cannot take {path}: the sandbox limit on bytes of all files is {limit}"
                    );
                    return Err(thrown(&EnvironmentError::new(
                        EnvironmentErrorKind::TooLarge,
                        refused,
                    )));
                }
                Ok((path, Bytes::from(copied(&content)?)))
            });
        let files = files.collect::<Result<Vec<_>, JsValue>>()?;
        self.change(InstanceCall::ImportFiles { environment, files })
    }

    /// Collects files for the working directory of a sandbox.
    #[wasm_bindgen(js_name = beginImport)]
    pub fn begin_import(&self, environment: u32) -> Result<Import, JsValue> {
        Ok(Import(self.sandbox(environment)?.import("")))
    }

    /// Takes what was collected; all or nothing.
    #[wasm_bindgen(js_name = commitImport)]
    pub fn commit_import(&self, environment: u32, import: Import) -> Result<(), JsValue> {
        let sandbox = self.sandbox(environment)?;
        if !self.driver.recording().is_on() {
            return sandbox.commit(import.0).map_err(|error| thrown(&error));
        }
        // The log has what comes of it.
        let before = sandbox.snapshot();
        let committed = sandbox.commit(import.0);
        let delta = sandbox.delta_since(&before);
        sandbox.restore(&before);
        committed.map_err(|error| thrown(&error))?;
        let delta = delta.map_err(|error| thrown(&error))?;
        self.change(InstanceCall::ApplyDelta {
            environment,
            archive: delta.archive.into(),
            removed: delta.removed,
        })
    }

    /// What still fits a sandbox: `{bytes, fileBytes, entries}`.
    pub fn room(&self, environment: u32) -> Result<JsValue, JsValue> {
        let tree = self.sandbox(environment)?.tree();
        let limits = tree.limits();
        let bytes = limits.total_bytes.saturating_sub(tree.total_bytes());
        let entries = limits.entries.saturating_sub(tree.total_entries());
        let record = convert::Record::new()
            .number("bytes", bytes as f64)
            .number("fileBytes", limits.file_bytes as f64)
            .number("entries", entries as f64);
        Ok(record.object().into())
    }

    /// Replaces all files of a sandbox by those of a tar archive of a whole tree.
    #[wasm_bindgen(js_name = replaceTree)]
    pub fn replace_tree(&self, environment: u32, archive: &Uint8Array) -> Result<(), JsValue> {
        let archive = copied(archive)?.into();
        self.change(InstanceCall::ReplaceTree {
            environment,
            archive,
        })
    }

    /// Remembers a sandbox as it is now, in constant time.
    pub fn snapshot(&self, environment: u32) -> Result<Snapshot, JsValue> {
        let state = self.sandbox(environment)?.snapshot();
        if !self.driver.recording().is_on() {
            return Ok(Snapshot { state, kept: None });
        }
        let call = InstanceCall::Snapshot { environment };
        match self.driver.call(call).map_err(refused)? {
            InstanceReply::Number(number) => {
                let driver = Rc::downgrade(&self.driver);
                let kept = Some(Kept { driver, number });
                Ok(Snapshot { state, kept })
            }
            _ => Err(out_of_place()),
        }
    }

    /// What is left of a sandbox of a core that has failed, for another core:
    /// its state before the commands that ran then.
    pub fn rescue(&self, environment: u32) -> Result<Snapshot, JsValue> {
        let rescued = self.sandbox(environment)?.rescue();
        rescued
            .map(|state| Snapshot { state, kept: None })
            .ok_or_else(|| invalid("the core failed in the middle of a change of its files"))
    }

    /// Puts a sandbox back, in constant time.
    pub fn restore(&self, environment: u32, snapshot: &Snapshot) -> Result<(), JsValue> {
        if !self.driver.recording().is_on() {
            self.sandbox(environment)?.restore(&snapshot.state);
            return Ok(());
        }
        let own = |kept: &&Kept| kept.driver.ptr_eq(&Rc::downgrade(&self.driver));
        match snapshot.kept.as_ref().filter(own) {
            Some(Kept { number, .. }) => self.change(InstanceCall::Restore {
                environment,
                snapshot: *number,
            }),
            // Of a core that has failed: the files alone, as a log can have them.
            None => {
                let archive = snapshot.export_tar("/")?.into();
                self.change(InstanceCall::ReplaceTree {
                    environment,
                    archive,
                })
            }
        }
    }

    /// What changed since `snapshot`: `[{path, change}]`, sorted by path, where
    /// `change` is `added`, `changed` or `removed`.
    #[wasm_bindgen(js_name = changesSince)]
    pub fn changes_since(&self, environment: u32, snapshot: &Snapshot) -> Result<Array, JsValue> {
        let changes = self.sandbox(environment)?.changes_since(&snapshot.state);
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

    /// What leads from `snapshot` to the sandbox as it is now, wherever below
    /// `/`, to be kept outside: `{archive, removed}`, or `undefined` if nothing
    /// changed.
    #[wasm_bindgen(js_name = deltaSince)]
    pub fn delta_since(&self, environment: u32, snapshot: &Snapshot) -> Result<JsValue, JsValue> {
        let sandbox = self.sandbox(environment)?;
        if sandbox.tree().is_same(snapshot.state.tree()) {
            return Ok(JsValue::UNDEFINED);
        }
        let delta = sandbox
            .delta_since(&snapshot.state)
            .map_err(|error| thrown(&error))?;
        Ok(delta_object(&delta))
    }

    /// Applies what `deltaSince` gave; all or nothing.
    #[wasm_bindgen(js_name = applyDelta)]
    pub fn apply_delta(
        &self,
        environment: u32,
        archive: &Uint8Array,
        removed: Vec<String>,
    ) -> Result<(), JsValue> {
        let archive = copied(archive)?.into();
        self.change(InstanceCall::ApplyDelta {
            environment,
            archive,
            removed,
        })
    }

    /// Makes a call that needs no step.
    fn change(&self, call: InstanceCall) -> Result<(), JsValue> {
        self.driver.call(call).map(drop).map_err(refused)
    }

    pub(super) fn sandbox(&self, number: u32) -> Result<Rc<MemoryEnvironment>, JsValue> {
        self.driver
            .look(|instance| instance.sandbox(number))
            .ok_or_else(|| invalid(format!("environment {number} is not a sandbox")))
    }
}

fn delta_object(delta: &Delta) -> JsValue {
    let removed: Array = delta
        .removed
        .iter()
        .map(|path| JsValue::from_str(path))
        .collect();
    let record = convert::Record::new()
        .bytes("archive", &delta.archive)
        .value("removed", &removed);
    record.object().into()
}

fn thrown(error: &EnvironmentError) -> JsValue {
    convert::to_object(error)
}
