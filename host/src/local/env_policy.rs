//! `EnvPolicy`: which variables commands inherit.

/// What commands inherit from the host's own environment. In every case the
/// values of credentials that the host holds are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnvPolicy {
    /// Everything except variables that look like secrets ([`looks_secret`](crate::looks_secret)).
    #[default]
    Filtered,
    /// Everything.
    All,
    /// Only what a shell and the tools of the common languages need to be
    /// found: `PATH`, `HOME`, `LANG`, `CARGO_HOME` and the like.
    CoreOnly,
    /// Nothing.
    None,
}
