//! Ignore files: `.gitignore` and `.ignore`, nested, as ripgrep reads them.
//!
//! Grammar: gitignore(5). The last matching line of a file decides, a deeper
//! file beats a higher one, and any `.ignore` beats any `.gitignore`.

use std::rc::Rc;

use crate::text::Glob;

/// Whether a file of this name holds ignore rules.
pub(crate) fn is_ignore_file(name: &str) -> bool {
    name == ".gitignore" || name == ".ignore"
}

/// The rules in force in one directory: its own and those above. Clones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct IgnoreRules(Option<Rc<Layer>>);

#[derive(Debug)]
struct Layer {
    /// Relative to the search root; empty for the root.
    directory: String,
    ignore: RuleFile,
    gitignore: RuleFile,
    above: Option<Rc<Layer>>,
}

#[derive(Debug, Default)]
struct RuleFile {
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    glob: Glob,
    negated: bool,
    directories_only: bool,
}

impl IgnoreRules {
    /// Rules for `directory` (relative to the search root, empty for it), given
    /// the names and contents of the ignore files in it. Lines that are no
    /// valid pattern are skipped, as git does.
    pub(crate) fn enter<'a>(
        &self,
        directory: &str,
        files: impl Iterator<Item = (&'a str, &'a [u8])>,
    ) -> Self {
        let mut layer = Layer {
            directory: directory.to_owned(),
            ignore: RuleFile::default(),
            gitignore: RuleFile::default(),
            above: self.0.clone(),
        };
        for (name, content) in files {
            let parsed = RuleFile::parse(&String::from_utf8_lossy(content));
            match name {
                ".ignore" => layer.ignore = parsed,
                _ => layer.gitignore = parsed,
            }
        }
        if layer.ignore.rules.is_empty() && layer.gitignore.rules.is_empty() {
            return self.clone();
        }
        Self(Some(Rc::new(layer)))
    }

    /// Whether `path` (relative to the search root) is ignored; `None` when no
    /// rule says anything. Directories above `path` are taken as not ignored.
    pub(crate) fn verdict(&self, path: &str, is_dir: bool) -> Option<bool> {
        let decide = |file: fn(&Layer) -> &RuleFile| {
            let mut layer = self.0.as_deref();
            while let Some(current) = layer {
                let verdict = current
                    .relative(path)
                    .and_then(|path| file(current).verdict(path, is_dir));
                if verdict.is_some() {
                    return verdict;
                }
                layer = current.above.as_deref();
            }
            None
        };
        decide(|layer| &layer.ignore).or_else(|| decide(|layer| &layer.gitignore))
    }
}

impl Layer {
    fn relative<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.directory.is_empty() {
            return Some(path);
        }
        path.strip_prefix(self.directory.as_str())?
            .strip_prefix('/')
    }
}

impl RuleFile {
    fn parse(text: &str) -> Self {
        let mut rules = Vec::new();
        let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
        for line in text.lines() {
            rules.extend(parse_line(line));
        }
        Self { rules }
    }

    fn verdict(&self, path: &str, is_dir: bool) -> Option<bool> {
        let applies = |rule: &&Rule| is_dir || !rule.directories_only;
        let mut rules = self.rules.iter().rev().filter(applies);
        let last = rules.find(|rule| rule.glob.is_match(path))?;
        Some(!last.negated)
    }
}

/// `None` for a line that says nothing or is no valid pattern.
fn parse_line(line: &str) -> Option<Rule> {
    let line = trim_trailing_spaces(line);
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (negated, line) = match line.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let line = match line.strip_prefix('\\') {
        Some(rest) if rest.starts_with(['#', '!']) => rest,
        _ => line,
    };
    let (directories_only, line) = match line.strip_suffix('/') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (anchored, line) = match line.strip_prefix('/') {
        Some(rest) => (true, rest),
        None => (line.contains('/'), line),
    };
    if line.is_empty() {
        return None;
    }
    let mut pattern = if anchored {
        line.to_owned()
    } else {
        format!("**/{line}")
    };
    // What is inside, not the directory itself.
    if pattern.ends_with("/**") {
        pattern.push_str("/*");
    }
    Some(Rule {
        glob: Glob::new(&pattern).ok()?,
        negated,
        directories_only,
    })
}

/// Spaces at the end do not count unless a backslash stands before them.
fn trim_trailing_spaces(line: &str) -> &str {
    let trimmed = line.trim_end_matches([' ', '\r', '\t']);
    if trimmed.ends_with('\\') && trimmed.len() < line.len() {
        &line[..trimmed.len() + 1]
    } else {
        trimmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One line per file: directory, file name, content.
    fn check(files: &[(&str, &str, &str)], path: &str, is_dir: bool, expected: Option<bool>) {
        let mut rules = IgnoreRules::default();
        for (directory, name, content) in files {
            rules = rules.enter(directory, [(*name, content.as_bytes())].into_iter());
        }
        assert_eq!(rules.verdict(path, is_dir), expected, "{files:?} {path}");
    }

    fn check_line(line: &str, path: &str, is_dir: bool, expected: Option<bool>) {
        check(&[("", ".gitignore", line)], path, is_dir, expected);
    }

    const IGNORED: Option<bool> = Some(true);
    const WANTED: Option<bool> = Some(false);

    #[test]
    fn names_at_any_depth() {
        check_line("*.log", "a.log", false, IGNORED);
        check_line("*.log", "b/c/a.log", false, IGNORED);
        check_line("*.log", "a.logs", false, None);
        check_line("target", "x/target", true, IGNORED);
    }

    #[test]
    fn directories_only() {
        check_line("build/", "build", true, IGNORED);
        check_line("build/", "build", false, None);
        check_line("build/", "a/build", true, IGNORED);
    }

    #[test]
    fn anchored_by_a_slash() {
        check_line("/a.txt", "a.txt", false, IGNORED);
        check_line("/a.txt", "b/a.txt", false, None);
        check_line("doc/*.txt", "doc/a.txt", false, IGNORED);
        check_line("doc/*.txt", "doc/b/a.txt", false, None);
        check_line("doc/*.txt", "x/doc/a.txt", false, None);
    }

    #[test]
    fn double_stars() {
        check_line("**/foo/bar", "a/foo/bar", false, IGNORED);
        check_line("abc/**", "abc/x/y", false, IGNORED);
        check_line("abc/**", "abc", true, None);
        check_line("a/**/b", "a/b", false, IGNORED);
        check_line("a/**/b", "a/x/y/b", false, IGNORED);
    }

    #[test]
    fn the_last_matching_line_decides() {
        check_line("*.log\n!keep.log", "keep.log", false, WANTED);
        check_line("!keep.log\n*.log", "keep.log", false, IGNORED);
    }

    #[test]
    fn comments_spaces_and_escapes() {
        check_line("# a\n\n  \na  \r\n", "a", false, IGNORED);
        check_line("\\#a", "#a", false, IGNORED);
        check_line("\\!a", "!a", false, IGNORED);
        check_line("a\\ ", "a ", false, IGNORED);
        check_line("a[\nb", "b", false, IGNORED);
        check_line("/\n!", "a", false, None);
    }

    #[test]
    fn deeper_files_win() {
        let files = [("", ".gitignore", "*.log"), ("sub", ".gitignore", "!*.log")];
        check(&files, "a.log", false, IGNORED);
        check(&files, "sub/a.log", false, WANTED);
        check(&files, "subway/a.log", false, IGNORED);
        check(&[("sub", ".gitignore", "/x")], "sub/x", false, IGNORED);
        check(&[("sub", ".gitignore", "/x")], "sub/y/x", false, None);
    }

    #[test]
    fn ignore_beats_gitignore_at_any_depth() {
        let files = [("", ".ignore", "!*.log"), ("sub", ".gitignore", "*.log")];
        check(&files, "sub/a.log", false, WANTED);
    }
}
