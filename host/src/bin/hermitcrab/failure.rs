//! Exit codes, and failures as one sentence each.

use std::fmt;

pub(crate) use hermitcrab_host::reason;

/// An exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u8);

impl Code {
    /// The task came to its natural end.
    pub(crate) const DONE: Self = Self(0);
    /// The session failed.
    pub(crate) const FAILED: Self = Self(1);
    /// The command line, or something that it names, is wrong.
    pub(crate) const USAGE: Self = Self(2);
    /// A limit ended the task.
    pub(crate) const LIMIT: Self = Self(3);
    /// The user ended it: 128 + SIGINT, as shells count.
    pub(crate) const INTERRUPTED: Self = Self(130);
}

/// Why a command did not do its work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Exit code.
    pub(crate) code: Code,
    /// One sentence that names the thing and what to do; lower case, no full stop.
    pub(crate) message: String,
}

impl Failure {
    /// The user can mend it: exit code 2.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            code: Code::USAGE,
            message: message.into(),
        }
    }

    /// It went wrong on the way: exit code 1.
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self {
            code: Code::FAILED,
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
