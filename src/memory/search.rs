//! Search over the tree: contents by regular expression, names by glob.

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};

use super::clock;
use super::tree::{self, Node, NodeKind, Tree};
use crate::environment::{
    DirEntry, Entries, EnvironmentError, EnvironmentErrorKind, GlobRequest, GrepRequest, Match,
    Matches, absolute_path,
};

/// Bytes of a file that are looked at to tell whether it is binary.
const BINARY_PROBE: usize = 8 << 10;
/// Bytes searched that are worth one unit of work.
const BYTES_PER_WORK: u64 = 1_000;

/// Answers a [`GrepRequest`]. Binary files and `.git` are skipped, as ripgrep
/// skips them.
pub fn grep(
    tree: &Tree,
    working_directory: &str,
    request: &GrepRequest,
) -> Result<Matches, EnvironmentError> {
    let regex = RegexBuilder::new(&request.pattern)
        .case_insensitive(request.case_insensitive)
        .multi_line(true)
        .crlf(true)
        .build()
        .map_err(|error| invalid(&request.pattern, &error))?;
    let filter = request
        .glob_filter
        .as_deref()
        .map(PathFilter::new)
        .transpose()?;
    let start = start(tree, working_directory, &request.path)?;
    let mut found = Matches::default();
    let limit = limit(request.max_results);
    if let NodeKind::File(content) = &node(tree, &start, &request.path)?.kind {
        grep_file(
            &regex,
            &relative(working_directory, &start),
            content.as_slice(),
            limit,
            &mut found,
        );
        return Ok(found);
    }
    tree.walk(&start, u32::MAX, &mut |path, node| {
        if let NodeKind::File(content) = &node.kind
            && !in_git(path)
            && filter.as_ref().is_none_or(|filter| filter.matches(path))
        {
            let path = relative(working_directory, &join(&start, path));
            grep_file(&regex, &path, content.as_slice(), limit, &mut found);
        }
        !found.truncated
    })
    .map_err(|error| failed(&request.path, &error))?;
    Ok(found)
}

/// Answers a [`GlobRequest`].
pub fn glob(
    tree: &Tree,
    working_directory: &str,
    request: &GlobRequest,
) -> Result<Entries, EnvironmentError> {
    let filter = PathFilter::new(&request.pattern)?;
    let start = start(tree, working_directory, &request.path)?;
    let mut found: Vec<(u64, DirEntry)> = Vec::new();
    let mut visited = 0;
    tree.walk(&start, u32::MAX, &mut |path, node| {
        visited += 1;
        if !node.is_directory() && !in_git(path) && filter.matches(path) {
            let path = relative(working_directory, &join(&start, path));
            found.push((node.modified_us, entry(path, node)));
        }
        true
    })
    .map_err(|error| failed(&request.path, &error))?;
    clock::charge(visited);
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.path.cmp(&b.1.path)));
    let limit = limit(request.max_results);
    let truncated = found.len() > limit;
    found.truncate(limit);
    Ok(Entries {
        entries: found.into_iter().map(|(_, entry)| entry).collect(),
        truncated,
    })
}

/// A listing entry for `node`.
pub fn entry(path: String, node: &Node) -> DirEntry {
    DirEntry {
        path,
        is_dir: node.is_directory(),
        size: (!node.is_directory()).then(|| node.size()),
        modified_ms: Some(node.modified_us / 1_000),
    }
}

fn grep_file(regex: &Regex, path: &str, content: &[u8], limit: usize, found: &mut Matches) {
    clock::charge(1 + content.len() as u64 / BYTES_PER_WORK);
    if content[..content.len().min(BINARY_PROBE)].contains(&0) {
        return;
    }
    let mut position = 0;
    let mut line = 1;
    let mut counted = 0;
    while position < content.len() {
        let Some(hit) = regex.find_at(content, position) else {
            return;
        };
        let start = content[..hit.start()]
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        if start >= content.len() {
            return;
        }
        let end = content[start..]
            .iter()
            .position(|&byte| byte == b'\n')
            .map_or(content.len(), |at| start + at);
        line += content[counted..start]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count() as u64;
        counted = start;
        position = end + 1;
        let text = &content[start..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // The expression is matched line by line: a match that only the next
        // line completes (`\s*` and the like) must hold within this one.
        if hit.end() > end && !regex.is_match(text) {
            continue;
        }
        if found.matches.len() >= limit {
            found.truncated = true;
            return;
        }
        found.matches.push(Match {
            path: path.to_owned(),
            line,
            text: String::from_utf8_lossy(text).into_owned(),
        });
    }
}

/// A glob over relative paths; without a `/` it matches names at any depth.
struct PathFilter {
    matcher: GlobMatcher,
    names_only: bool,
}

impl PathFilter {
    fn new(pattern: &str) -> Result<Self, EnvironmentError> {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
        let glob = GlobBuilder::new(pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| invalid(pattern, &error))?;
        Ok(Self {
            matcher: glob.compile_matcher(),
            names_only: !pattern.contains('/'),
        })
    }

    fn matches(&self, path: &str) -> bool {
        let subject = if self.names_only {
            tree::file_name(path).unwrap_or(path)
        } else {
            path
        };
        self.matcher.is_match(subject)
    }
}

fn in_git(path: &str) -> bool {
    path.split('/').any(|name| name == ".git")
}

fn limit(max_results: u64) -> usize {
    match max_results {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    }
}

fn start(tree: &Tree, working_directory: &str, path: &str) -> Result<String, EnvironmentError> {
    let absolute = absolute_path(working_directory, path);
    tree.resolve(&absolute, tree::LastLink::Follow)
        .map(|path| path.into_owned())
        .map_err(|error| failed(path, &error))
}

fn node<'a>(tree: &'a Tree, start: &str, path: &str) -> Result<&'a Node, EnvironmentError> {
    tree.get(start).map_err(|error| failed(path, &error))
}

fn join(directory: &str, path: &str) -> String {
    format!("{}/{path}", directory.trim_end_matches('/'))
}

/// `path` relative to the working directory when below it, else as it is.
fn relative(working_directory: &str, path: &str) -> String {
    if tree::is_below(path, working_directory) {
        path[working_directory.trim_end_matches('/').len() + 1..].to_owned()
    } else {
        path.to_owned()
    }
}

fn failed(path: &str, error: &tree::TreeError) -> EnvironmentError {
    super::environment_error(path, error)
}

fn invalid(pattern: &str, error: &dyn std::fmt::Display) -> EnvironmentError {
    EnvironmentError::new(
        EnvironmentErrorKind::InvalidInput,
        format!("the pattern {pattern} is not valid: {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tree::{Content, TreeLimits};

    fn sample() -> Tree {
        let mut tree = Tree::new(TreeLimits::default());
        for (time, (path, content)) in [
            ("/w/a.rs", "fn main() {}\n\n  let x = 1;\r\nlast"),
            ("/w/src/b.rs", "fn b() {}\nfn c() {}\n"),
            ("/w/src/b.txt", "fn text\n"),
            ("/w/.git/config", "fn hidden\n"),
            ("/w/bin", "fn \0 binary"),
            ("/other/x.rs", "fn x\n"),
        ]
        .into_iter()
        .enumerate()
        {
            tree.write_with_parents(path, Content::from(content.as_bytes()), time as u64 * 1_000)
                .unwrap();
        }
        tree
    }

    fn check_grep(request: GrepRequest, expected: &[&str]) {
        let found = grep(&sample(), "/w", &request).unwrap();
        let mut lines: Vec<String> = found
            .matches
            .iter()
            .map(|hit| format!("{}:{}:{}", hit.path, hit.line, hit.text))
            .collect();
        if found.truncated {
            lines.push("...".to_owned());
        }
        assert_eq!(lines, expected);
    }

    fn request(pattern: &str) -> GrepRequest {
        GrepRequest {
            pattern: pattern.to_owned(),
            ..GrepRequest::default()
        }
    }

    #[test]
    fn grep_finds_lines_in_path_order() {
        check_grep(
            request("^fn"),
            &[
                "a.rs:1:fn main() {}",
                "src/b.rs:1:fn b() {}",
                "src/b.rs:2:fn c() {}",
                "src/b.txt:1:fn text",
            ],
        );
    }

    #[test]
    fn grep_filters_by_glob_case_and_count() {
        check_grep(
            GrepRequest {
                glob_filter: Some("*.rs".to_owned()),
                case_insensitive: true,
                max_results: 2,
                ..request("FN")
            },
            &["a.rs:1:fn main() {}", "src/b.rs:1:fn b() {}", "..."],
        );
    }

    #[test]
    fn grep_takes_one_file_and_paths_outside() {
        check_grep(
            GrepRequest {
                path: "/other".to_owned(),
                ..request("fn")
            },
            &["/other/x.rs:1:fn x"],
        );
        check_grep(
            GrepRequest {
                path: "src/b.txt".to_owned(),
                ..request("t$")
            },
            &["src/b.txt:1:fn text"],
        );
    }

    #[test]
    fn grep_matches_line_by_line() {
        check_grep(request(r"\{\}\s+let"), &[]);
        check_grep(request("^$"), &["a.rs:2:"]);
        check_grep(request(";$"), &["a.rs:3:  let x = 1;"]);
    }

    #[test]
    fn glob_sorts_newest_first() {
        let found = glob(
            &sample(),
            "/w",
            &GlobRequest {
                pattern: "**/*.rs".to_owned(),
                ..GlobRequest::default()
            },
        )
        .unwrap();
        let paths: Vec<&str> = found.entries.iter().map(|entry| &*entry.path).collect();
        assert_eq!(paths, ["src/b.rs", "a.rs"]);
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = grep(&sample(), "/w", &request("(")).unwrap_err();
        assert_eq!(error.kind, EnvironmentErrorKind::InvalidInput);
        assert!(error.message.starts_with("the pattern ( is not valid"));
    }
}
