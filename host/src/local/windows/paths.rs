//! Paths as Git for Windows writes them, `/c/Users/me`, and as Windows does.

use std::path::{Path, PathBuf};

use hermitcrab::environment::{EnvironmentError, EnvironmentErrorKind as Kind};

use crate::environment::without_nul;

/// `path` as Windows writes it; a relative one is below `directory`.
pub(super) fn to_windows(directory: &Path, path: &str) -> Result<PathBuf, EnvironmentError> {
    let invalid =
        |why: &str| EnvironmentError::new(Kind::InvalidInput, format!("the path `{path}` {why}"));
    let Some(rest) = without_nul(path)?.strip_prefix('/') else {
        return Ok(directory.join(path.replace('/', "\\")));
    };
    let (drive, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let mut letters = drive.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if letter.is_ascii_alphabetic() => {
            let letter = letter.to_ascii_uppercase();
            Ok(PathBuf::from(format!(
                "{letter}:\\{}",
                rest.replace('/', "\\")
            )))
        }
        _ => Err(invalid("has no drive: absolute ones are like /c/Users")),
    }
}

/// `path`, absolute, as Git for Windows writes it.
pub(super) fn from_windows(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let text = text.strip_prefix(r"\\?\").unwrap_or(text);
    let (drive, rest) = text.split_once(':')?;
    let mut letters = drive.chars();
    let letter = letters.next().filter(char::is_ascii_alphabetic)?;
    letters.next().is_none().then(|| {
        let rest = rest.replace('\\', "/");
        format!(
            "/{}{}",
            letter.to_ascii_lowercase(),
            rest.trim_end_matches('/')
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_are_the_first_part() {
        let base = Path::new(r"C:\work");
        for (path, expected) in [
            ("/c/Users/me", r"C:\Users\me"),
            ("/d", r"D:\"),
            ("a/b", r"C:\work\a\b"),
        ] {
            let found = to_windows(base, path).expect("a path");
            assert_eq!(found, Path::new(expected));
        }
        assert!(to_windows(base, "/etc/passwd").is_err());
        assert_eq!(
            from_windows(Path::new(r"\\?\C:\Users\me")).as_deref(),
            Some("/c/Users/me")
        );
    }
}
