//! The two symbols that a wasm32 build asks its embedder for: the clock of
//! bashkit and the entropy of `getrandom`. Both answer from the command that is
//! being polled, never from the host.

use super::clock;

/// bashkit's clock: µs since 1970-01-01 UTC.
#[cfg(feature = "analysis")]
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_now_micros() -> u64 {
    clock::read_current()
}

/// `getrandom`'s custom backend (0.3 and 0.4 share the symbol).
///
/// # Safety
///
/// `dest` must be valid for writes of `len` bytes, as `getrandom` guarantees.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    dest: *mut u8,
    len: usize,
) -> Result<(), getrandom::Error> {
    let Some(timeline) = clock::current() else {
        return Err(getrandom::Error::UNSUPPORTED);
    };
    // SAFETY: by this function's contract; zeroed first, so that no
    // uninitialised byte is ever behind a reference.
    let bytes = unsafe {
        dest.write_bytes(0, len);
        std::slice::from_raw_parts_mut(dest, len)
    };
    timeline.random().fill(bytes);
    Ok(())
}
