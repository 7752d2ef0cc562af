//! Keys leave the environment of this process before anything else happens.
//!
//! Every command that an agent runs is a child of this process, and a child of
//! the same user reads `/proc/PPID/environ`: the memory in which the kernel put
//! the variables at the start, which `unsetenv` does not touch. So the values
//! are overwritten there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use hermitcrab_host::looks_secret;

/// Shortest key whose value is also looked for in other variables; a shorter one
/// would hit by chance.
const SEARCHED: usize = 8;

/// The variables that were taken out of the environment.
#[derive(Debug, Default)]
pub(crate) struct Secrets(BTreeMap<OsString, OsString>);

impl Secrets {
    /// Takes all variables out of the environment that look like secrets, and
    /// those that hold the value of one of `keys`.
    ///
    /// # Safety
    /// No other thread runs in this process yet.
    pub(crate) unsafe fn take(keys: &[&str]) -> Self {
        let held: Vec<OsString> = keys.iter().filter_map(std::env::var_os).collect();
        let taken: BTreeMap<OsString, OsString> = std::env::vars_os()
            .filter(|(name, value)| {
                looks_secret(name, value)
                    || keys.iter().any(|key| name == key)
                    || held.iter().any(|key| holds(value, key))
            })
            .collect();
        for name in taken.keys() {
            // SAFETY: the caller's promise.
            unsafe {
                #[cfg(any(target_os = "linux", target_os = "macos"))]
                overwrite(name);
                std::env::remove_var(name);
            }
        }
        // SAFETY: sets an attribute of this process.
        #[cfg(target_os = "linux")]
        unsafe {
            // Also its memory, where the key must stay, is nobody's business: not
            // even the same user's, unless with CAP_SYS_PTRACE. No core is dumped.
            nix::libc::prctl(nix::libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        }
        Self(taken)
    }

    /// The variables that were taken, for a process that takes them out again.
    pub(crate) fn all(&self) -> &BTreeMap<OsString, OsString> {
        &self.0
    }

    /// A variable as it is: one that was taken, else one that is still there.
    pub(crate) fn value(&self, name: &str) -> Option<OsString> {
        let taken = self.0.get(OsStr::new(name)).cloned();
        taken.or_else(|| std::env::var_os(name))
    }

    /// A variable as text. What is not UTF-8 is replaced, so that a key or a URL
    /// that is none is refused as such, and not taken for one that is not set.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let value = self.value(name)?;
        Some(value.to_string_lossy().into_owned())
    }
}

/// Whether `value` holds `key`.
pub(crate) fn holds(value: &OsStr, key: &OsStr) -> bool {
    let (value, key) = (value.as_encoded_bytes(), key.as_encoded_bytes());
    value == key && !key.is_empty()
        || key.len() >= SEARCHED && value.windows(key.len()).any(|part| part == key)
}

/// Fills the values of `name` with zeros where the kernel put them.
///
/// # Safety
/// No other thread runs in this process, and nobody has changed the environment.
#[cfg(any(target_os = "linux", target_os = "macos"))]
unsafe fn overwrite(name: &OsStr) {
    use std::ffi::CStr;

    #[cfg(target_os = "linux")]
    unsafe extern "C" {
        static environ: *const *mut std::ffi::c_char;
    }
    // SAFETY: the C library's own variable, set before `main`.
    #[cfg(target_os = "linux")]
    let mut entry = unsafe { environ };
    // SAFETY: as above; it is reached by a call here.
    #[cfg(target_os = "macos")]
    let mut entry = unsafe { *nix::libc::_NSGetEnviron() }.cast_const();

    if entry.is_null() {
        return;
    }
    // SAFETY: a null-terminated array of C strings in writable memory of this
    // process, as the kernel or an earlier `setenv` made them.
    unsafe {
        while !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            let value = text
                .strip_prefix(name.as_encoded_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            if let Some(length) = value.map(<[u8]>::len) {
                let start = text.len() - length;
                (*entry).add(start).write_bytes(0, length);
            }
            entry = entry.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_key() {
        let check = |value: &str, key: &str, expected| {
            assert_eq!(holds(OsStr::new(value), OsStr::new(key)), expected);
        };
        check("Bearer sk-12345678", "sk-12345678", true);
        check("sk-12345678", "sk-12345678", true);
        check("sk-1234567", "sk-12345678", false);
        check("a short one", "short", false);
        check("anything", "", false);
    }
}
