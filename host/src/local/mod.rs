//! `LocalEnvironment`: the files and processes of this machine, as this user.
//!
//! Without a [`Sandbox`] a command may do whatever the user may. Source: spec 4.2.

mod env_policy;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod failure;
pub use env_policy::EnvPolicy;
mod sandbox;
pub use sandbox::Sandbox;
mod builder;
pub use builder::LocalBuilder;
mod secret;
pub use secret::looks_secret;

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod system;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(in crate::local) use system::Table;
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub use system::{Guardian, LocalEnvironment};
#[cfg(unix)]
pub(crate) use system::{follow_links, stays_in_place};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(in crate::local) use windows::Table;
#[cfg(windows)]
pub use windows::{Guardian, LocalEnvironment};

#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod unsupported;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub(in crate::local) use unsupported::Table;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
pub use unsupported::{Guardian, LocalEnvironment};
