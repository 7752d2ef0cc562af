//! `Fence`: bounds a command before its first moment, by Landlock and seccomp.
//!
//! Both bound the calling thread and what it starts. A short-lived thread fences
//! itself in and then spawns the command, so that the host stays free and
//! nothing forks it. File tools change files on one such thread ([`super::hands`]): the
//! kernel judges each path as it opens it, so that neither `..`, links nor races lead
//! out, and no text of a path is looked at.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::local::Sandbox;
use crate::local::sandbox::Bounds;

/// The first ABI that bounds links, renames and truncation too.
const LEAST: ABI = ABI::V3;
/// Marks system calls of the x32 ABI, which are not those of x86_64.
const X32: i64 = 0x4000_0000;
/// The kind of a socket; what else is in the argument are flags.
const KINDS: u64 = 0xf;

/// The bounds of an environment's commands and file tools.
#[derive(Debug)]
pub(super) struct Fence {
    writable: Vec<PathBuf>,
    /// Filters of system calls.
    filters: Vec<BpfProgram>,
    /// Why there are none, if there should be.
    unfiltered: Option<String>,
}

impl Fence {
    /// The fence for `bounds` around `directory`; none where it is off.
    ///
    /// # Errors
    /// One sentence: the kernel lacks what it needs.
    pub(super) fn new(bounds: &Bounds, directory: &Path) -> Result<Option<Self>, String> {
        let mut writable = vec![PathBuf::from("/dev/null")];
        match bounds.sandbox {
            Sandbox::Off => return Ok(None),
            Sandbox::ReadOnly => {}
            Sandbox::WorkspaceWrite => {
                writable.push(directory.to_owned());
                writable.extend(bounds.writable.iter().cloned());
                writable
                    .extend(["/dev/zero", "/dev/full", "/dev/tty", "/dev/shm"].map(PathBuf::from));
                writable.extend(match &bounds.temporary {
                    Some(directories) => directories.clone(),
                    None => vec![std::env::temp_dir(), "/tmp".into(), "/var/tmp".into()],
                });
            }
        }
        ruleset().map_err(|_| "this kernel has no Landlock of ABI 3 (Linux 6.2)".to_owned())?;
        let mut filters = Vec::new();
        let mut unfiltered = None;
        let mut add = |filter: Result<BpfProgram, seccompiler::BackendError>| match filter {
            Ok(filter) => filters.push(filter),
            Err(error) => unfiltered = Some(error.to_string()),
        };
        if !bounds.network {
            add(no_network());
        }
        if bounds.sandbox == Sandbox::ReadOnly {
            add(no_attributes());
        }
        if !filters.is_empty() && !has_filters() {
            filters.clear();
            unfiltered = Some("this kernel has no seccomp".to_owned());
        }
        Ok(Some(Self {
            writable,
            filters,
            unfiltered,
        }))
    }

    /// What of it is missing here, in a sentence.
    pub(super) fn lacks(&self) -> Option<String> {
        let why = self.unfiltered.as_ref()?;
        Some(format!("commands have the network: {why}"))
    }

    /// What stands before the shell of a command: nothing, the thread is bounded.
    pub(super) fn before_shell(&self) -> &[CString] {
        &[]
    }

    /// Whether file tools can be bounded, too.
    pub(super) fn bounds_threads(&self) -> bool {
        true
    }

    /// Bounds the calling thread for good.
    pub(super) fn enter(&self) -> io::Result<()> {
        let mut rules = ruleset().map_err(io::Error::other)?;
        for path in &self.writable {
            // What does not exist cannot be written to.
            let Ok(opened) = PathFd::new(path) else {
                continue;
            };
            let access = match path.is_dir() {
                true => AccessFs::from_write(LEAST),
                false => AccessFs::WriteFile | AccessFs::Truncate,
            };
            rules = rules
                .add_rule(PathBeneath::new(opened, access))
                .map_err(io::Error::other)?;
        }
        // What `LEAST` has is enforced or an error.
        rules.restrict_self().map_err(io::Error::other)?;
        self.filters
            .iter()
            .try_for_each(|filter| seccompiler::apply_filter(filter).map_err(io::Error::other))
    }
}

fn ruleset() -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(LEAST))?
        // From ABI 6 on: no signals and no abstract sockets to who is outside.
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::from_all(ABI::V6))?
        .create()
}

/// Whether a thread can have a filter.
fn has_filters() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: a number that the kernel reads, and nothing else.
    let asked = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    asked == 0
}

/// No socket but pairs, and no way around the filter. Sockets of the file system are
/// made but not connected, and those that send without connecting are not made: behind
/// them are the container engine and the session's bus, which start anything.
fn no_network() -> Result<BpfProgram, seccompiler::BackendError> {
    let other = || {
        let domain = SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Ne,
            libc::AF_UNIX as u64,
        )?;
        Ok::<_, seccompiler::BackendError>(vec![SeccompRule::new(vec![domain])?])
    };
    let mut rules = BTreeMap::new();
    for call in [libc::SYS_socket, libc::SYS_socketpair] {
        for call in [call, call | X32] {
            rules.insert(call, other()?);
        }
    }
    let datagrams = || {
        let kind = SeccompCondition::new(
            1,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(KINDS),
            libc::SOCK_DGRAM as u64,
        )?;
        SeccompRule::new(vec![kind])
    };
    for call in [libc::SYS_socket, libc::SYS_socket | X32] {
        rules.entry(call).or_default().push(datagrams()?);
    }
    let denied = [
        libc::SYS_connect,
        libc::SYS_io_uring_setup,
        libc::SYS_io_uring_enter,
    ];
    for call in denied {
        rules.insert(call, Vec::new());
        rules.insert(call | X32, Vec::new());
    }
    filter(rules)
}

/// No change of modes, owners, times and attributes, which Landlock does not judge.
fn no_attributes() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut denied = vec![
        libc::SYS_fchmod,
        libc::SYS_fchmodat,
        libc::SYS_fchmodat2,
        libc::SYS_fchown,
        libc::SYS_fchownat,
        libc::SYS_utimensat,
        libc::SYS_setxattr,
        libc::SYS_lsetxattr,
        libc::SYS_fsetxattr,
        libc::SYS_removexattr,
        libc::SYS_lremovexattr,
        libc::SYS_fremovexattr,
    ];
    #[cfg(target_arch = "x86_64")]
    denied.extend([
        libc::SYS_chmod,
        libc::SYS_chown,
        libc::SYS_lchown,
        libc::SYS_utime,
        libc::SYS_utimes,
        libc::SYS_futimesat,
    ]);
    let rules = denied.into_iter().flat_map(|call| [call, call | X32]);
    filter(rules.map(|call| (call, Vec::new())).collect())
}

/// Denies what `rules` name.
fn filter(rules: BTreeMap<i64, Vec<SeccompRule>>) -> Result<BpfProgram, seccompiler::BackendError> {
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EACCES as u32),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}
