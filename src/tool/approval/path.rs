//! Which paths may be written.

use globset::{GlobBuilder, GlobMatcher};

use super::settings::normalised;

/// Files that every program may write to.
const DEVICES: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// The rule of `write_paths`.
#[derive(Clone, Debug)]
pub(super) struct WritePaths {
    globs: Vec<(Base, GlobMatcher)>,
    /// Whether a glob names `.git` itself.
    names_git: bool,
}

/// What a glob is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// The path from the working directory.
    Relative,
    /// The whole path.
    Absolute,
}

impl WritePaths {
    /// Compiles `globs`; the error names the one that is not valid.
    pub(super) fn new(globs: &[String]) -> Result<Self, String> {
        let compiled = globs
            .iter()
            .map(|glob| compile(glob))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            globs: compiled,
            names_git: globs.iter().any(|glob| glob.split('/').any(is_git)),
        })
    }

    /// Why writing `path` asks, if it does.
    pub(super) fn concern(&self, working_directory: &str, path: &str) -> Option<String> {
        let absolute = normalised(working_directory, path);
        let root = normalised("/", working_directory);
        let relative = match root.as_str() {
            "/" => absolute.strip_prefix('/'),
            root => absolute
                .strip_prefix(root)
                .and_then(|rest| rest.strip_prefix('/')),
        };
        let is_within = self.globs.iter().any(|(base, glob)| match base {
            Base::Absolute => glob.is_match(&absolute),
            Base::Relative => relative.is_some_and(|path| glob.is_match(path)),
        });
        if !is_within {
            return Some(format!("it writes {path}, which is outside of write_paths"));
        }
        // What lies there is read as commands by every git that runs later.
        let is_git = absolute.split('/').any(is_git);
        (is_git && !self.names_git)
            .then(|| format!("it writes {path}, where git keeps hooks and settings"))
    }
}

fn is_git(part: &str) -> bool {
    part.eq_ignore_ascii_case(".git")
}

fn compile(glob: &str) -> Result<(Base, GlobMatcher), String> {
    if glob.split('/').any(|part| part == "..") {
        return Err(format!(
            "`write_paths` has {glob:?}: `..` is not possible, use an absolute path"
        ));
    }
    let base = if glob.starts_with('/') {
        Base::Absolute
    } else {
        Base::Relative
    };
    let matcher = GlobBuilder::new(glob.strip_prefix("./").unwrap_or(glob))
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .map_err(|error| format!("`write_paths` has {glob:?}: {}", error.kind()))?;
    Ok((base, matcher.compile_matcher()))
}

/// Whether writing to `path` changes no file.
pub(super) fn is_device(path: &str) -> bool {
    let path = normalised("/", path);
    let descriptor = path.strip_prefix("/dev/fd/");
    DEVICES.contains(&path.as_str())
        || descriptor.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}
