//! Which paths may be written.

use std::collections::BTreeMap;

use super::settings::normalised;
use crate::text::Glob;

/// The rule of `write_paths`.
#[derive(Clone, Debug)]
pub(super) struct WritePaths {
    globs: Vec<(Base, Glob)>,
    /// What globs name themselves.
    named: Vec<Guarded>,
}

/// What a glob is matched against.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Base {
    /// The path from the working directory.
    Relative,
    /// The whole path; the glob begins with this directory.
    Absolute(String),
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
            named: globs.iter().filter_map(|glob| guarded(glob)).collect(),
        })
    }

    /// Directories that the globs start from, beside the working directory.
    pub(super) fn directories(&self) -> impl Iterator<Item = &str> {
        self.globs.iter().filter_map(|(base, _)| match base {
            Base::Absolute(directory) => Some(directory.as_str()),
            Base::Relative => None,
        })
    }

    /// Why writing `path` asks, if it does: it must lie within the globs by its
    /// name, and where `links` says that it leads elsewhere, also there.
    pub(super) fn concern(
        &self,
        working_directory: &str,
        links: &BTreeMap<String, String>,
        path: &str,
    ) -> Option<String> {
        let absolute = normalised(working_directory, path);
        let root = normalised("/", working_directory);
        if !self.holds(&root, &absolute, &BTreeMap::new()) {
            return Some(format!("it writes {path}, which is outside of write_paths"));
        }
        let real = [path, &absolute]
            .into_iter()
            .filter_map(|name| links.get(name));
        let real_root = links.get(&root).unwrap_or(&root);
        if let Some(real) = real
            .clone()
            .find(|real| !self.holds(real_root, real, links))
        {
            return Some(format!(
                "it writes {path}, which leads to {real}, outside of write_paths"
            ));
        }
        let mut guarded = [&absolute]
            .into_iter()
            .chain(real)
            .filter_map(|path| guarded(path));
        let guarded = guarded.find(|guarded| !self.named.contains(guarded))?;
        Some(format!("it writes {path}, {}", guarded.concern()))
    }

    /// Whether a glob holds `absolute`. A glob means what lies in its directory,
    /// even if `links` says that this directory leads elsewhere.
    fn holds(&self, root: &str, absolute: &str, links: &BTreeMap<String, String>) -> bool {
        self.globs.iter().any(|(base, glob)| match base {
            Base::Relative => below(absolute, root).is_some_and(|path| glob.is_match(path)),
            Base::Absolute(directory) => {
                glob.is_match(absolute)
                    || links
                        .get(directory)
                        .and_then(|real| below(absolute, real))
                        .is_some_and(|rest| glob.is_match(&normalised(directory, rest)))
            }
        })
    }
}

/// The path from `directory` to `path`, if it is below.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    path.strip_prefix(directory.trim_end_matches('/'))?
        .strip_prefix('/')
}

/// What no `**` opens: a glob must name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarded {
    /// Every git that runs later reads what lies there as commands.
    Git,
    /// `hermitcrab.toml`, whose `approve` the next run has.
    Settings,
}

impl Guarded {
    fn concern(self) -> &'static str {
        match self {
            Self::Git => "where git keeps hooks and settings",
            Self::Settings => "which says what the next run asks about",
        }
    }
}

/// What a path or a glob names that is guarded.
fn guarded(path: &str) -> Option<Guarded> {
    let path = path.to_ascii_lowercase();
    let parts: Vec<_> = path.split('/').collect();
    let is_git = parts
        .iter()
        // Common names of what `.gitconfig` includes: `.gitconfig.local`, `.gitconfig-work`.
        .any(|part| matches!(*part, ".git" | ".gitmodules") || part.starts_with(".gitconfig"))
        || parts.windows(2).any(|parts| parts == [".config", "git"]);
    match parts.last() {
        _ if is_git => Some(Guarded::Git),
        Some(&"hermitcrab.toml") => Some(Guarded::Settings),
        _ => None,
    }
}

fn compile(glob: &str) -> Result<(Base, Glob), String> {
    if glob.split('/').any(|part| part == "..") {
        return Err(format!(
            "`write_paths` has {glob:?}: `..` is not possible, use an absolute path"
        ));
    }
    let base = if glob.starts_with('/') {
        Base::Absolute(directory_of(glob))
    } else {
        Base::Relative
    };
    let matcher = Glob::new(glob.strip_prefix("./").unwrap_or(glob))
        .map_err(|reason| format!("`write_paths` has {glob:?}: {reason}"))?;
    Ok((base, matcher))
}

/// The directory that the absolute `glob` names before its first wildcard.
fn directory_of(glob: &str) -> String {
    let wildcard = glob.find(['*', '?', '[', '{', '\\']);
    let plain = &glob[..wildcard.unwrap_or(glob.len())];
    let end = plain.rfind('/').unwrap_or(0);
    normalised("/", &plain[..end])
}
