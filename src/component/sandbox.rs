//! Opening a sandbox from settings in JSON.

use std::rc::Rc;

use serde::Deserialize;

use crate::memory::{MemoryEnvironment, MemoryOptions};
use crate::session::{Instance, SessionError, SessionErrorKind};

/// Settings of a sandbox; what is left out is as in [`MemoryOptions`].
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    working_directory: Option<String>,
    utc_offset_minutes: Option<i32>,
    programs: Vec<String>,
    author_name: Option<String>,
    author_email: Option<String>,
    limits: Limits,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Limits {
    total_bytes: Option<u64>,
    file_bytes: Option<u64>,
    entries: Option<u64>,
    path_bytes: Option<usize>,
    output_bytes: Option<usize>,
    work_bound: Option<u64>,
    idle_shells: Option<usize>,
}

impl Settings {
    fn apply(self, options: &mut MemoryOptions) {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        set(&mut options.working_directory, self.working_directory);
        set(&mut options.utc_offset_minutes, self.utc_offset_minutes);
        set(&mut options.author_name, self.author_name);
        set(&mut options.author_email, self.author_email);
        options.programs = self.programs;
        let limits = &mut options.limits;
        set(&mut limits.tree.total_bytes, self.limits.total_bytes);
        set(&mut limits.tree.file_bytes, self.limits.file_bytes);
        set(&mut limits.tree.entries, self.limits.entries);
        set(&mut limits.tree.path_bytes, self.limits.path_bytes);
        set(&mut limits.output_bytes, self.limits.output_bytes);
        set(&mut limits.work_bound, self.limits.work_bound);
        set(&mut limits.idle_shells, self.limits.idle_shells);
    }
}

/// Adds a sandbox to `instance`; returns its number and the sandbox.
pub(super) fn open(
    instance: &mut Instance,
    options_json: &str,
) -> Result<(u32, Option<Rc<MemoryEnvironment>>), SessionError> {
    let settings: Settings = serde_json::from_str(options_json).map_err(|error| {
        SessionError::new(
            SessionErrorKind::InvalidConfig,
            format!("invalid sandbox settings: {error}"),
        )
    })?;
    let port = instance.port().clone();
    let programs = Rc::new(port.clone());
    let mut options = MemoryOptions {
        seed: instance.random().bytes(),
        ..MemoryOptions::default()
    };
    settings.apply(&mut options);
    let mut made = None;
    let number = instance.add_environment(|id| {
        options.id = id;
        let now = Rc::new(move || port.now_ms());
        let sandbox = Rc::new(MemoryEnvironment::new(options, now, programs));
        made = Some(sandbox.clone());
        sandbox
    });
    Ok((number, made))
}
