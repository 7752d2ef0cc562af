//! What can stand where the cursor is: a command behind `/`, a file behind `@`.

use std::path::Path;
use std::time::{Duration, Instant};

use super::commands::COMMANDS;

/// Proposals that are shown.
const SHOWN: usize = 6;
/// Files that are known, at most.
const MAX_FILES: usize = 100_000;
/// How long they are looked for.
const LOOKING: Duration = Duration::from_secs(3);

/// What could stand at the cursor.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Proposals {
    /// What each puts there, and what is said about it.
    pub(super) all: Vec<(String, &'static str)>,
    /// Bytes before the cursor that it replaces.
    pub(super) replaced: usize,
    /// Which one is chosen.
    pub(super) chosen: usize,
}

impl Proposals {
    /// For a text that goes up to `before`.
    pub(super) fn at(before: &str, files: Option<&[String]>) -> Self {
        if let Some(word) = file_word(before) {
            let all = files.map_or_else(Vec::new, |files| matching(files, word));
            return Self {
                all: all.into_iter().map(|path| (path, "")).collect(),
                replaced: word.len() + 1,
                chosen: 0,
            };
        }
        if before.starts_with('/') && !before.contains([' ', '\n']) {
            let commands = COMMANDS.iter().filter(|(name, _)| name.starts_with(before));
            return Self {
                all: commands
                    .map(|(name, about)| ((*name).to_owned(), *about))
                    .collect(),
                replaced: before.len(),
                chosen: 0,
            };
        }
        Self::default()
    }

    /// The one before or after.
    pub(super) fn choose(&mut self, forward: bool) {
        let count = self.all.len().max(1);
        let step = if forward { 1 } else { count - 1 };
        self.chosen = (self.chosen + step) % count;
    }

    /// The chosen one.
    pub(super) fn text(&self) -> Option<String> {
        Some(self.all.get(self.chosen)?.0.clone() + " ")
    }
}

/// What stands behind the `@` of the last word.
pub(super) fn file_word(before: &str) -> Option<&str> {
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(0, char::len_utf8)
    });
    before[start..].strip_prefix('@')
}

/// The paths that hold `word`, those first whose last name begins with it, shorter ones
/// before longer ones.
fn matching(files: &[String], word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let mut found: Vec<(u8, usize, &String)> = files
        .iter()
        .filter_map(|path| {
            let lower = path.to_lowercase();
            let name = lower
                .trim_end_matches('/')
                .rsplit('/')
                .next()
                .unwrap_or_default();
            let rank = match () {
                () if name.starts_with(&word) => 0,
                () if lower.starts_with(&word) => 1,
                () if lower.contains(&word) => 2,
                () => return None,
            };
            Some((rank, path.len(), path))
        })
        .collect();
    found.sort_unstable();
    found.truncate(SHOWN);
    found.into_iter().map(|(_, _, path)| path.clone()).collect()
}

/// The files of `directory` that are not ignored, and its directories.
pub(super) fn files(directory: &Path) -> Vec<String> {
    let until = Instant::now() + LOOKING;
    let walk = ignore::WalkBuilder::new(directory)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let paths = walk.flatten().take_while(|_| Instant::now() < until);
    let paths = paths.filter_map(|entry| {
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let path = entry
            .path()
            .strip_prefix(directory)
            .ok()?
            .to_str()?
            .to_owned();
        let is_fine = !path.is_empty() && !path.contains(char::is_control);
        is_fine.then(|| if is_dir { path + "/" } else { path })
    });
    paths.take(MAX_FILES).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(before: &str, expected: &[&str], replaced: usize) {
        let files = [
            "src/lib.rs",
            "src/main.rs",
            "tests/lib_test.rs",
            "a lib/",
            "README.md",
        ];
        let files: Vec<String> = files.iter().map(|file| (*file).to_owned()).collect();
        let proposals = Proposals::at(before, Some(&files));
        let all: Vec<&str> = proposals.all.iter().map(|(text, _)| &**text).collect();
        assert_eq!(all, expected, "{before}");
        assert_eq!(proposals.replaced, replaced, "{before}");
    }

    #[test]
    fn proposed() {
        check(
            "see @lib",
            &["src/lib.rs", "tests/lib_test.rs", "a lib/"],
            4,
        );
        check("@READ", &["README.md"], 5);
        check("a@lib", &[], 0);
        check("/co", &["/compact", "/cost"], 3);
        check("/model x", &[], 0);
        check("see /co", &[], 0);
        check("text", &[], 0);
    }
}
