//! The core inside the binary: compiled machine code, aligned to pages, used
//! where it lies. It is part of the executable, so it is neither copied nor
//! hashed at start.

use hermitcrab_engine::{self as engine, EngineError};
use std::sync::OnceLock;

use wasmtime::Engine;
use wasmtime::component::Component;

/// The embedded core on the shared engine, if this library was built with one
/// and this build of wasmtime accepts it. Machine code can be registered once
/// per process where it lies, so every host shares this one.
pub(crate) fn shared() -> Option<Result<Component, EngineError>> {
    static COMPONENT: OnceLock<Result<Component, EngineError>> = OnceLock::new();
    let bytes = bytes()?;
    let load = || {
        let engine = engine::shared()?;
        // SAFETY: the bytes were made by `make_core` of the engine's crate in the
        // same build, they are static, and nothing writes to them.
        #[cfg(unix)]
        let component =
            unsafe { Component::deserialize_raw(engine, std::ptr::NonNull::from(bytes)) };
        // SAFETY: as above; elsewhere wasmtime copies them.
        #[cfg(not(unix))]
        let component = unsafe { Component::deserialize(engine, bytes) };
        component.map_err(|error| EngineError::new(&error))
    };
    Some(COMPONENT.get_or_init(load).clone())
}

/// A copy of the embedded core for another engine.
pub(crate) fn copy(engine: &Engine) -> Option<Result<Component, EngineError>> {
    // SAFETY: the bytes were made by `make_core` of the engine's crate in the same
    // build; wasmtime checks that the engine's settings fit.
    let component = unsafe { Component::deserialize(engine, bytes()?) };
    Some(component.map_err(|error| EngineError::new(&error)))
}

/// SHA-256 of the component that was compiled, in hexadecimal digits.
#[cfg(embedded_core)]
pub(crate) const HASH: &str = env!("HERMITCRAB_EMBEDDED_HASH");
#[cfg(not(embedded_core))]
pub(crate) const HASH: &str = "";

#[cfg(embedded_core)]
fn bytes() -> Option<&'static [u8]> {
    /// The largest page size that machines use, so that the code lies on page
    /// borders on each of them.
    #[repr(C, align(65536))]
    struct Aligned<T: ?Sized>(T);

    static CORE: &Aligned<[u8]> = &Aligned(*include_bytes!(env!("HERMITCRAB_EMBEDDED")));
    Some(&CORE.0)
}

/// This library was built without a core.
#[cfg(not(embedded_core))]
fn bytes() -> Option<&'static [u8]> {
    None
}
