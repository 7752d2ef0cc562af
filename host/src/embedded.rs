//! The core inside the binary: compiled machine code, aligned to pages, used
//! where it lies. It is part of the executable, so it is neither copied nor
//! hashed at start.

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::engine::EngineError;

/// The embedded core, if this library was built with one and this build of
/// wasmtime accepts it.
#[cfg(embedded_core)]
pub(crate) fn load(engine: &Engine) -> Option<Result<Component, EngineError>> {
    /// The largest page size that machines use, so that the code lies on page
    /// borders on each of them.
    #[repr(C, align(65536))]
    struct Aligned<T: ?Sized>(T);

    static CORE: &Aligned<[u8]> = &Aligned(*include_bytes!(env!("HERMITCRAB_EMBEDDED")));

    // SAFETY: the bytes were made by `compile_core` of this crate in the same
    // build, they are static, and nothing writes to them.
    #[cfg(unix)]
    let component = unsafe { Component::deserialize_raw(engine, std::ptr::NonNull::from(&CORE.0)) };
    // SAFETY: as above; elsewhere wasmtime copies them into memory of its own.
    #[cfg(not(unix))]
    let component = unsafe { Component::deserialize(engine, &CORE.0) };
    Some(component.map_err(|error| EngineError::new(&error)))
}

/// This library was built without a core.
#[cfg(not(embedded_core))]
pub(crate) fn load(_: &Engine) -> Option<Result<Component, EngineError>> {
    None
}
