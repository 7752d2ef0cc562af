//! What a shell command says that it would do, as far as that can be seen.
//!
//! The reading is of bash's grammar, by bashkit's parser. Where the parser
//! keeps a text to be expanded at run time, or where bash is known to read
//! the same text in another way, the script has a concern: a reason to ask.

mod arithmetic;
mod expansion;
mod read;
mod surface;
mod variable;
mod word;

pub(super) use read::read;

/// A script as a list of what it would do.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// Every command that might run, in order.
    pub(super) calls: Vec<Call>,
    /// Files that redirects write.
    pub(super) writes: Vec<Argument>,
    /// Whether a redirect opens a file to read: `/dev/fd/0` may then be that file.
    pub(super) opens: bool,
    /// Whether the working directory changes on the way.
    pub(super) changes_directory: bool,
    /// Reasons to ask that have nothing to do with a single command.
    pub(super) concerns: Vec<String>,
}

/// A command with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// Name, as the shell looks it up.
    pub(super) name: String,
    /// Arguments.
    pub(super) arguments: Vec<Argument>,
    /// Whether the name surely is that of a function of this script.
    pub(super) is_function: bool,
}

/// An argument, or the target of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Exactly this text.
    Literal(String),
    /// One argument that begins with this text, as with `"src/$x"`.
    Beginning(String),
    /// Any number of arguments that begin with this text, as with `src/*.rs`.
    Pattern(String),
    /// One argument of unknown text, as with `"$x"`.
    Value,
    /// Any number of arguments of unknown text, as with `$x`.
    Unknown,
}

impl Argument {
    /// The text, if it is known.
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it might be read as an option.
    pub(super) fn may_be_option(&self) -> bool {
        match self {
            Self::Literal(text) | Self::Beginning(text) | Self::Pattern(text) => {
                text.is_empty() || text.starts_with('-')
            }
            Self::Value | Self::Unknown => true,
        }
    }
}
