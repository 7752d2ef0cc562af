//! Opening a sandbox from settings in JSON.

use std::rc::Rc;

use crate::memory::{MemoryEnvironment, MemorySettings};
use crate::session::{Instance, SessionError, SessionErrorKind};

/// Adds a sandbox to `instance`; returns its number and the sandbox.
pub(super) fn open(
    instance: &mut Instance,
    options_json: &str,
) -> Result<(u32, Option<Rc<MemoryEnvironment>>), SessionError> {
    let settings: MemorySettings = serde_json::from_str(options_json).map_err(|error| {
        SessionError::new(
            SessionErrorKind::InvalidConfig,
            format!("invalid sandbox settings: {error}"),
        )
    })?;
    let port = instance.port().clone();
    let programs = Rc::new(port.clone());
    let mut options = settings.into_options(instance.random().bytes());
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
