//! `Verdict`: what a checker decided.

/// What a checker decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Verdict {
    #[default]
    Passed,
    /// Not, for this reason.
    Failed(String),
    /// There is no verdict: the checker could not do its work.
    None(String),
}
