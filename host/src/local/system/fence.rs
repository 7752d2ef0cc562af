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

/// The bounds of an environment's commands and file tools.
#[derive(Debug)]
pub(super) struct Fence {
    writable: Vec<PathBuf>,
    network: Option<BpfProgram>,
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
        ruleset().map_err(|error| format!("this kernel has no Landlock of ABI 3: {error}"))?;
        let network = match bounds.network {
            true => None,
            false => Some(no_network().map_err(|error| format!("no seccomp here: {error}"))?),
        };
        Ok(Some(Self { writable, network }))
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
        match &self.network {
            Some(filter) => seccompiler::apply_filter(filter).map_err(io::Error::other),
            None => Ok(()),
        }
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

/// No socket but pairs, and no way around the filter. Sockets of the file system are
/// made but not connected: behind them are the container engine and the session's bus,
/// which start anything.
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
        rules.insert(call, other()?);
        rules.insert(call | X32, other()?);
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
    SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EACCES as u32),
        std::env::consts::ARCH.try_into()?,
    )?
    .try_into()
}
