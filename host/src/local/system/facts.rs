//! Facts of the machine, asked from the system without starting a process.
//!
//! `uname` and `localtime_r` are two calls; a time-zone crate would read the
//! same files again, and only the offset is needed.

use std::ffi::CStr;
use std::mem::MaybeUninit;

use nix::libc;

/// The platform in the words of spec 4.1.
pub(super) fn platform() -> &'static str {
    match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    }
}

/// Name and release of the running kernel, such as `Linux 6.12.1`; empty when
/// the system does not say.
pub(super) fn os_version() -> String {
    let mut facts = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: `facts` is valid for writes and all-zero is a valid value; on
    // success the fields are C strings.
    unsafe {
        if libc::uname(facts.as_mut_ptr()) != 0 {
            return String::new();
        }
        let facts = facts.assume_init();
        let name = CStr::from_ptr(facts.sysname.as_ptr()).to_string_lossy();
        let release = CStr::from_ptr(facts.release.as_ptr()).to_string_lossy();
        format!("{name} {release}")
    }
}

/// Minutes east of UTC of the system's local time zone, now.
pub(super) fn utc_offset_minutes() -> i32 {
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are valid; all-zero is a valid `tm`.
    let parts = unsafe {
        let now = libc::time(std::ptr::null_mut());
        if libc::localtime_r(&now, parts.as_mut_ptr()).is_null() {
            return 0;
        }
        parts.assume_init()
    };
    i32::try_from(parts.tm_gmtoff / 60).unwrap_or(0)
}
