//! `tar`, by the crate of that name. bashkit's cuts long names, keeps no modes and no
//! links, takes what is no archive for an empty one, and writes through links.
//!
//! Seen in bashkit 0.20.2; gone when `tar` of `tests/it/bashkit.rs` fails.

use globset::{GlobBuilder, GlobMatcher};

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
mod builtin;

#[cfg(all(target_arch = "wasm32", feature = "sandbox"))]
pub(super) use builtin::Tar;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Create,
    Extract,
    List,
}

/// Something that is named, and the directory (`-C`) that it is named from.
#[derive(Clone, Debug, PartialEq)]
struct Member {
    directory: Option<String>,
    name: String,
}

#[derive(Debug)]
struct Call {
    mode: Mode,
    /// The archive; standard input or output if left out, and for `-`.
    archive: Option<String>,
    packs: bool,
    verbose: bool,
    to_output: bool,
    keeps_old: bool,
    touches: bool,
    absolute_names: bool,
    strips: usize,
    excluded: Vec<GlobMatcher>,
    members: Vec<Member>,
    /// Files that hold names of members, one in each line.
    lists: Vec<Member>,
    /// The last `-C`.
    directory: Option<String>,
}

/// Reads the arguments; the error is what is said.
fn parse(args: &[String]) -> Result<Call, String> {
    let mut mode = None;
    // Whether the name of the archive decides if it is packed.
    let mut by_name = false;
    let mut call = Call {
        mode: Mode::List,
        archive: None,
        packs: false,
        verbose: false,
        to_output: false,
        keeps_old: false,
        touches: false,
        absolute_names: false,
        strips: 0,
        excluded: Vec::new(),
        members: Vec::new(),
        lists: Vec::new(),
        directory: None,
    };
    let mut rest = args.iter().map(String::as_str);
    let mut is_first = true;
    while let Some(argument) = rest.next() {
        let is_bundle = std::mem::take(&mut is_first) && !argument.starts_with('-');
        if argument == "--" {
            for name in rest.by_ref() {
                call.member(name);
            }
        } else if let Some(long) = argument.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            let mut value = || {
                let value = value.or_else(|| rest.next());
                value.ok_or_else(|| format!("option '--{name}' requires an argument"))
            };
            match name {
                "create" => set(&mut mode, Mode::Create)?,
                "extract" | "get" => set(&mut mode, Mode::Extract)?,
                "list" => set(&mut mode, Mode::List)?,
                "file" => call.archive = Some(value()?.to_owned()),
                "directory" => call.directory = Some(value()?.to_owned()),
                "files-from" => call.list(value()?),
                "exclude" => call.exclude(value()?)?,
                "strip-components" => call.strips = number(value()?)?,
                "gzip" | "gunzip" => call.packs = true,
                "verbose" => call.verbose = true,
                "to-stdout" => call.to_output = true,
                "keep-old-files" => call.keeps_old = true,
                "touch" => call.touches = true,
                "absolute-names" => call.absolute_names = true,
                "auto-compress" => by_name = true,
                "same-permissions"
                | "preserve-permissions"
                | "no-same-permissions"
                | "no-same-owner"
                | "same-owner"
                | "numeric-owner" => {}
                _ => return Err(unsupported(&format!("--{name}"))),
            }
        } else if is_bundle || argument.starts_with('-') && argument.len() > 1 {
            let letters = argument.trim_start_matches('-');
            for (at, letter) in letters.char_indices() {
                let attached = Some(&letters[at + 1..]).filter(|it| !is_bundle && !it.is_empty());
                let mut value = || {
                    let value = attached.or_else(|| rest.next());
                    value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))
                };
                match letter {
                    'c' => set(&mut mode, Mode::Create)?,
                    'x' => set(&mut mode, Mode::Extract)?,
                    't' => set(&mut mode, Mode::List)?,
                    'z' => call.packs = true,
                    'v' => call.verbose = true,
                    'O' => call.to_output = true,
                    'k' => call.keeps_old = true,
                    'm' => call.touches = true,
                    'P' => call.absolute_names = true,
                    'p' | 'o' => {}
                    'a' => by_name = true,
                    'f' => call.archive = Some(value()?.to_owned()),
                    'C' => call.directory = Some(value()?.to_owned()),
                    'T' => call.list(value()?),
                    _ => return Err(unsupported(&format!("-{letter}"))),
                }
                if attached.is_some() && matches!(letter, 'f' | 'C' | 'T') {
                    break;
                }
            }
        } else {
            call.member(argument);
        }
    }
    call.mode = mode.ok_or("You must specify one of the '-ctx' options")?;
    call.packs |= by_name && is_packed_name(call.archive.as_deref());
    if call.archive.as_deref() == Some("-") {
        call.archive = None;
    }
    Ok(call)
}

fn set(mode: &mut Option<Mode>, to: Mode) -> Result<(), String> {
    match mode.replace(to) {
        Some(before) if before != to => {
            Err("You may not specify more than one of the '-ctx' options".to_owned())
        }
        _ => Ok(()),
    }
}

fn unsupported(option: &str) -> String {
    let way = match option {
        "-j" | "--bzip2" => "; use bzip2 before or behind a pipe",
        "-J" | "--xz" | "--zstd" => "; use -z",
        "-r" | "-u" | "--append" | "--update" => "; make a new archive",
        _ => "",
    };
    format!("{option} is not supported in the sandbox{way}")
}

fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("{text}: Invalid number of elements"))
}

fn is_packed_name(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.ends_with(".gz") || name.ends_with(".tgz"))
}

impl Call {
    fn member(&mut self, name: &str) {
        self.members.push(Member {
            directory: self.directory.clone(),
            name: name.to_owned(),
        });
    }

    fn list(&mut self, name: &str) {
        self.lists.push(Member {
            directory: self.directory.clone(),
            name: name.to_owned(),
        });
    }

    fn exclude(&mut self, pattern: &str) -> Result<(), String> {
        let pattern = pattern.trim_end_matches('/');
        let glob = GlobBuilder::new(pattern)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map_err(|_| format!("--exclude={pattern} is not supported in the sandbox"))?;
        self.excluded.push(glob.compile_matcher());
        Ok(())
    }

    /// Whether `name`, or what is behind one of its slashes, is left out.
    fn excludes(&self, name: &str) -> bool {
        let name = name.trim_end_matches('/');
        let starts = name.match_indices('/').map(|(at, _)| at + 1);
        let mut parts = std::iter::once(0).chain(starts).map(|at| &name[at..]);
        parts.any(|part| self.excluded.iter().any(|glob| glob.is_match(part)))
    }

    /// Where an entry goes: its name without a slash in front and without as many
    /// directories as are stripped. `None`: nowhere.
    fn place<'a>(&self, name: &'a str) -> Option<&'a str> {
        let mut rest = name.trim_start_matches('/');
        for _ in 0..self.strips {
            rest = rest.split_once('/')?.1.trim_start_matches('/');
        }
        (!rest.is_empty()).then_some(rest)
    }
}

/// Whether an entry is the member `wanted`, or within it.
fn is_within(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (name.trim_end_matches('/'), wanted.trim_end_matches('/'));
    let rest = name.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The name that a file has in an archive, and what was taken away in front.
fn name_in_archive(name: &str) -> (&str, &str) {
    let end = match name.rfind("../") {
        Some(at) if at == 0 || name[..at].ends_with('/') => at + 3,
        _ if name == ".." => 2,
        _ => 0,
    };
    let rest = name[end..].trim_start_matches('/');
    (rest, &name[..name.len() - rest.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(line: &str, expected: (Mode, Option<&str>, bool, &[&str])) {
        let call = parse(&args(line)).unwrap_or_else(|error| panic!("{line}: {error}"));
        let members: Vec<_> = call.members.iter().map(|it| it.name.as_str()).collect();
        let archive = call.archive.as_deref();
        assert_eq!(
            (call.mode, archive, call.packs, &members[..]),
            expected,
            "{line}"
        );
    }

    #[test]
    fn arguments() {
        check("cf a.tar d", (Mode::Create, Some("a.tar"), false, &["d"]));
        check(
            "-czf a.tgz d e",
            (Mode::Create, Some("a.tgz"), true, &["d", "e"]),
        );
        check(
            "-c -z -fa.tgz d",
            (Mode::Create, Some("a.tgz"), true, &["d"]),
        );
        check("fc a.tar d", (Mode::Create, Some("a.tar"), false, &["d"]));
        check("cfz a.tgz d", (Mode::Create, Some("a.tgz"), true, &["d"]));
        check(
            "-caf a.tar.gz d",
            (Mode::Create, Some("a.tar.gz"), true, &["d"]),
        );
        check("xzf - -C x", (Mode::Extract, None, true, &[]));
        check(
            "--extract --file=a --strip-components=1",
            (Mode::Extract, Some("a"), false, &[]),
        );
        check("tvf a x y", (Mode::List, Some("a"), false, &["x", "y"]));
        let call = parse(&args("cf a -C x b -C y c")).expect("a call");
        let from: Vec<_> = call
            .members
            .iter()
            .map(|it| it.directory.as_deref())
            .collect();
        assert_eq!(from, [Some("x"), Some("y")]);
    }

    #[test]
    fn arguments_that_are_refused() {
        let check = |line: &str, start: &str| {
            let error = parse(&args(line)).expect_err(line);
            assert!(error.starts_with(start), "{line}: {error}");
        };
        check("f a", "You must specify one");
        check("cxf a", "You may not specify more than one");
        check("cjf a d", "-j is not supported in the sandbox; use bzip2");
        check("-rf a d", "-r is not supported");
        check("cf", "option requires an argument -- 'f'");
        check("xf a --strip-components=x", "x: Invalid number");
        check("xf a --no-recursion", "--no-recursion is not supported");
    }

    #[test]
    fn names() {
        let call = |line: &str| parse(&args(line)).expect("a call");
        assert_eq!(call("xf a").place("/d/f"), Some("d/f"));
        assert_eq!(
            call("xf a --strip-components=1").place("d/e/f"),
            Some("e/f")
        );
        assert_eq!(call("xf a --strip-components=1").place("d/"), None);
        assert!(call("cf a --exclude=*.pyc .").excludes("./d/x.pyc"));
        assert!(call("cf a --exclude=node_modules .").excludes("./a/node_modules/"));
        assert!(call("cf a --exclude=./build .").excludes("./build"));
        assert!(!call("cf a --exclude=build .").excludes("./builds"));
        assert!(is_within("d/e/f", "d/e") && is_within("d/", "d") && !is_within("dd", "d"));
        assert_eq!(name_in_archive("/a/b"), ("a/b", "/"));
        assert_eq!(name_in_archive("../../a"), ("a", "../../"));
        assert_eq!(name_in_archive("a/../b"), ("b", "a/../"));
        assert_eq!(name_in_archive("a..b/c"), ("a..b/c", ""));
        assert_eq!(name_in_archive("./a"), ("./a", ""));
    }
}
