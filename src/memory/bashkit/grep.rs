//! Narrowing: a recursive `grep` sees only files that can hold a match.
//!
//! bashkit's `grep` copies every file, cuts it into lines and looks at each:
//! some 400 ns a line. What a file must contain to match is mostly known from
//! the pattern (`foo.*bar` needs `foo`), and looking for that in the tree's own
//! bytes is fifty times faster. So the directories that a recursive `grep` lists
//! are listed without the files that cannot match. What matches, and what is
//! printed, is still bashkit's decision alone.
//!
//! A command is narrowed only where leaving such a file out changes nothing:
//! with options known here, one directory, and patterns whose needles are
//! certain. Nothing else that lists directories may see a narrowed listing:
//! narrowing ends with the last directory that `grep` lists, at the first
//! directory out of its order, at the next builtin and at the end of the poll.
//!
//! Seen in bashkit 0.20.2; a matter of time: `cargo xtask bench sandbox`.

use regex_syntax::ParserBuilder;

use crate::memory::tree::{Directory, Node, NodeKind};
use crate::text::Pattern;

/// Alternatives that a search has at most, and their bytes together.
const MAX_NEEDLES: usize = 32;
const MAX_BYTES: usize = 4_096;

/// Options without a value under which only files that match count.
const FLAGS: &str = "nlowxHhbaIsZTUriyEFGP";
const LONG_FLAGS: [&str; 20] = [
    "basic-regexp",
    "binary",
    "byte-offset",
    "color",
    "colour",
    "extended-regexp",
    "files-with-matches",
    "fixed-strings",
    "ignore-case",
    "initial-tab",
    "line-buffered",
    "line-number",
    "line-regexp",
    "no-filename",
    "no-group-separator",
    "no-messages",
    "null",
    "only-matching",
    "perl-regexp",
    "with-filename",
];
/// What makes `grep` list directories, as `-r`.
const RECURSIVE: &str = "recursive";
/// Options whose value makes no difference here.
const LONG_VALUES: [&str; 4] = ["color", "colour", "exclude", "include"];

/// The narrowing of one `grep`.
pub(crate) struct Narrow {
    needles: Pattern,
    /// Only files of nothing but ASCII are judged.
    ascii_only: bool,
    excluded: Vec<String>,
    left: Left,
}

/// The directories that `grep` has yet to list.
enum Left {
    /// The first one, named by this operand.
    Root(String),
    /// These, the next one last.
    Below(Vec<String>),
}

impl Narrow {
    /// The narrowing of `grep` with `args`, if it can be narrowed.
    pub(crate) fn of_grep(args: &[String]) -> Option<Self> {
        let call = Call::parse(args)?;
        let mut needles = Vec::new();
        for line in call.patterns.iter().flat_map(|text| text.split('\n')) {
            needles.extend(needles_of(line, call.syntax)?);
        }
        // Where text is not UTF-8, `grep` reads U+FFFD, which is not in the file.
        let odd = |needle: &String| needle.contains('\u{fffd}');
        let bytes: usize = needles.iter().map(String::len).sum();
        if needles.len() > MAX_NEEDLES || bytes > MAX_BYTES || needles.iter().any(odd) {
            return None;
        }
        if call.ignore_case && !needles.iter().all(|needle| needle.is_ascii()) {
            return None;
        }
        let escaped: Vec<_> = needles.iter().map(|it| regex_syntax::escape(it)).collect();
        let needles = ParserBuilder::new()
            .unicode(false)
            .utf8(false)
            .case_insensitive(call.ignore_case)
            .build()
            .parse(&escaped.join("|"))
            .ok()?;
        let needles = Pattern::new(&needles).ok()?;
        let operand = call.operand.unwrap_or_default();
        let relative = operand.strip_prefix("./").unwrap_or(&operand);
        let root = match relative.trim_end_matches('/') {
            "." => "",
            root => root,
        };
        let unusual = |name| matches!(name, "" | "." | "..");
        if operand.starts_with('/') && root.is_empty()
            || !root.is_empty() && root.trim_start_matches('/').split('/').any(unusual)
        {
            return None;
        }
        Some(Self {
            needles,
            ascii_only: call.ignore_case,
            excluded: call.excluded,
            left: Left::Root(root.to_owned()),
        })
    }

    /// Whether `path` is the directory that `grep` lists next.
    pub(crate) fn is_next(&self, path: &str) -> bool {
        match &self.left {
            // The working directory, which only the shell knows.
            Left::Root(root) if root.is_empty() => true,
            Left::Root(root) if root.starts_with('/') => root == path,
            Left::Root(root) => path
                .strip_suffix(root.as_str())
                .is_some_and(|before| before.ends_with('/')),
            Left::Below(left) => left.last().is_some_and(|next| next == path),
        }
    }

    /// Lists `directory`, the next one, at `path`. Returns what `grep` gets, the
    /// bytes that were looked at, and whether directories are left.
    pub(crate) fn list<'a>(
        &mut self,
        path: &str,
        directory: &'a Directory,
    ) -> (Vec<(&'a str, &'a Node)>, usize, bool) {
        let mut left = match std::mem::replace(&mut self.left, Left::Below(Vec::new())) {
            Left::Root(_) => Vec::new(),
            Left::Below(mut left) => {
                left.pop();
                left
            }
        };
        let below = left.len();
        let mut looked_at = 0;
        let mut kept = Vec::new();
        for (name, node) in directory.iter() {
            match &node.kind {
                NodeKind::File(content) => {
                    looked_at += content.as_slice().len();
                    if !self.may_match(content.as_slice()) {
                        continue;
                    }
                }
                NodeKind::Directory(_) if !self.excluded.iter().any(|out| out == name) => {
                    let separator = if path.ends_with('/') { "" } else { "/" };
                    left.push(format!("{path}{separator}{name}"));
                }
                NodeKind::Directory(_) | NodeKind::Link(_) => {}
            }
            kept.push((name, node));
        }
        left[below..].reverse();
        let more = !left.is_empty();
        self.left = Left::Below(left);
        (kept, looked_at, more)
    }

    fn may_match(&self, content: &[u8]) -> bool {
        self.ascii_only && !content.is_ascii() || self.needles.find(content, 0).is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    Basic,
    Extended,
    Fixed,
    Perl,
}

/// A call of `grep` whose every option is known here.
struct Call {
    patterns: Vec<String>,
    operand: Option<String>,
    syntax: Syntax,
    ignore_case: bool,
    excluded: Vec<String>,
}

impl Call {
    fn parse(args: &[String]) -> Option<Self> {
        let mut call = Self {
            patterns: Vec::new(),
            operand: None,
            syntax: Syntax::Basic,
            ignore_case: false,
            excluded: Vec::new(),
        };
        let mut recursive = false;
        let mut operands = Vec::new();
        let mut rest = args.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                operands.extend(rest);
                break;
            }
            if let Some(option) = argument.strip_prefix("--") {
                recursive |= option == RECURSIVE;
                if matches!(option, "exclude" | "exclude-dir" | "include") {
                    call.long(&format!("{option}={}", rest.next()?))?;
                } else {
                    call.long(option)?;
                }
            } else if let Some(flags) = argument.strip_prefix('-').filter(|it| !it.is_empty()) {
                let mut flags = flags.chars();
                while let Some(flag) = flags.next() {
                    recursive |= flag == 'r';
                    if flag.is_ascii_digit() || FLAGS.contains(flag) {
                        call.flag(flag);
                        continue;
                    }
                    let attached = flags.as_str();
                    let value = match attached {
                        "" => rest.next()?,
                        attached => attached,
                    };
                    call.value(flag, value)?;
                    break;
                }
            } else {
                operands.push(argument);
            }
        }
        let mut operands = operands.into_iter();
        if call.patterns.is_empty() {
            call.patterns.push(operands.next()?.clone());
        }
        call.operand = operands.next().cloned();
        let known = recursive && operands.next().is_none() && call.operand.as_deref() != Some("-");
        known.then_some(call)
    }

    fn flag(&mut self, flag: char) {
        match flag {
            'i' | 'y' => self.ignore_case = true,
            'E' => self.syntax = Syntax::Extended,
            'F' => self.syntax = Syntax::Fixed,
            'G' => self.syntax = Syntax::Basic,
            'P' => self.syntax = Syntax::Perl,
            _ => {}
        }
    }

    fn value(&mut self, flag: char, value: &str) -> Option<()> {
        let number = || value.parse::<u32>().ok();
        match flag {
            'e' => self.patterns.push(value.to_owned()),
            'm' => return number().filter(|count| *count > 0).map(drop),
            'A' | 'B' | 'C' => return number().map(drop),
            _ => return None,
        }
        Some(())
    }

    fn long(&mut self, option: &str) -> Option<()> {
        if option == RECURSIVE {
            return Some(());
        }
        let Some((name, value)) = option.split_once('=') else {
            let flag = match option {
                "ignore-case" => 'i',
                "basic-regexp" => 'G',
                "extended-regexp" => 'E',
                "fixed-strings" => 'F',
                "perl-regexp" => 'P',
                _ => '-',
            };
            self.flag(flag);
            return LONG_FLAGS.contains(&option).then_some(());
        };
        match name {
            "regexp" => self.value('e', value),
            "max-count" => self.value('m', value),
            "after-context" | "before-context" | "context" => self.value('C', value),
            "exclude-dir" if !value.contains(['*', '?', '[', '\\']) => {
                self.excluded.push(value.to_owned());
                Some(())
            }
            _ => LONG_VALUES.contains(&name).then_some(()),
        }
    }
}

/// Texts of which a line that matches `pattern` must hold at least one; none
/// if that is not certain.
fn needles_of(pattern: &str, syntax: Syntax) -> Option<Vec<String>> {
    if syntax == Syntax::Fixed {
        return (!pattern.is_empty()).then(|| vec![pattern.to_owned()]);
    }
    let basic = syntax == Syntax::Basic;
    let mut needles = Vec::new();
    let mut branch = Branch::default();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                '|' if basic => needles.push(std::mem::take(&mut branch).needle()?),
                '+' | '?' if basic => branch.quantified(),
                '(' | ')' | '{' | '}' if basic => return None,
                'w' | 'W' | 's' | 'S' | 'b' | 'B' | '<' | '>' => branch.cut(),
                'd' | 'D' if syntax == Syntax::Perl => branch.cut(),
                '`' | '\'' => return None,
                c if c.is_ascii_punctuation() => branch.run.push(c),
                _ => return None,
            },
            '|' if !basic => needles.push(std::mem::take(&mut branch).needle()?),
            '(' | ')' | '{' if !basic => return None,
            '*' | '+' | '?' => branch.quantified(),
            '[' => {
                skip_set(&mut chars)?;
                branch.cut();
            }
            '.' | '^' | '$' | '|' | '(' | ')' | '{' | '}' => branch.cut(),
            c => branch.run.push(c),
        }
    }
    needles.push(branch.needle()?);
    Some(needles)
}

/// One alternative: its longest literal text so far, and the current one.
#[derive(Default)]
struct Branch {
    longest: String,
    run: String,
}

impl Branch {
    fn cut(&mut self) {
        if self.run.len() > self.longest.len() {
            self.longest = std::mem::take(&mut self.run);
        }
        self.run.clear();
    }

    /// The last character may be missing.
    fn quantified(&mut self) {
        self.run.pop();
        self.cut();
    }

    fn needle(mut self) -> Option<String> {
        self.cut();
        (!self.longest.is_empty()).then_some(self.longest)
    }
}

/// Skips the rest of a plain set such as `[^a-z_]`; anything else in brackets
/// may be an error that `grep` reports.
fn skip_set(chars: &mut std::str::Chars<'_>) -> Option<()> {
    let (set, rest) = chars.as_str().split_once(']')?;
    let members = set.strip_prefix('^').unwrap_or(set);
    let plain = !members.is_empty() && !members.contains(['[', '\\']);
    let bytes = members.as_bytes();
    let ordered = (1..bytes.len().saturating_sub(1))
        .filter(|at| bytes[*at] == b'-')
        .all(|at| {
            let (from, to) = (bytes[at - 1], bytes[at + 1]);
            from.is_ascii_alphanumeric() && to.is_ascii_alphanumeric() && from <= to
        });
    *chars = rest.chars();
    (plain && ordered).then_some(())
}

#[cfg(test)]
mod tests;
