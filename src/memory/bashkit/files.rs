//! Options of `cp`, `mv`, `rm` and `chmod` that keep files, or name other ones.
//!
//! bashkit takes `mv -n` and overwrites, `rm -i` and asks nobody, `cp -t DIR` and takes
//! the directory for a file.
//!
//! Seen in bashkit 0.20.2; gone when `files` of `tests/it/bashkit.rs` fails.

use std::collections::HashSet;

/// Options of a command, short and long, with the way out.
type Options = (&'static str, &'static [&'static str], &'static str);

const KEEPING: &str = "test for the file first: [ -e DEST ] || …";
const ASKING: &str = "nobody can be asked in the sandbox; leave it out, or name other files";
const NAMING: &str = "put the directory last";

/// The options of the command `name` that are refused.
fn options(name: &str) -> &'static [Options] {
    match name {
        "cp" => &[
            ("i", &["interactive"], ASKING),
            ("u", &["update"], KEEPING),
            ("bS", &["backup", "suffix"], "copy the old file first"),
            ("s", &["symbolic-link"], "use ln -s"),
            ("t", &["target-directory"], NAMING),
            ("", &["parents"], "make the directories with mkdir -p first"),
            ("T", &["no-target-directory"], "use cp -r SOURCE/. DEST"),
        ],
        "mv" => &[
            ("i", &["interactive"], ASKING),
            ("nu", &["no-clobber", "update"], KEEPING),
            ("bS", &["backup", "suffix"], "copy the old file first"),
            ("t", &["target-directory"], NAMING),
            (
                "T",
                &["no-target-directory"],
                "test for the directory first: [ -d DEST ] || …",
            ),
        ],
        "rm" => &[("iI", &["interactive"], ASKING)],
        "chmod" => &[("R", &["recursive"], "use find DIR -exec chmod MODE {} +")],
        _ => &[],
    }
}

/// Why the command `name` cannot be run with `args`.
pub(super) fn refusal(name: &str, args: &[String]) -> Option<String> {
    let problem = empty(name, args)
        .or_else(|| itself(name, args))
        .or_else(|| collision(name, args));
    if problem.is_some() {
        return problem;
    }
    let mut args = args.iter().take_while(|argument| *argument != "--");
    let (option, way) = args.find_map(|argument| {
        options(name).iter().find_map(|(short, long, way)| {
            let option = match argument.strip_prefix("--") {
                // What keeps nothing, asks nobody, or is done.
                Some("interactive=never" | "update=all" | "backup=none" | "backup=off") => None,
                Some("update=none") if name == "cp" => None,
                Some(text) => {
                    let (text, _) = text.split_once('=').unwrap_or((text, ""));
                    long.contains(&text).then(|| format!("--{text}"))
                }
                None => {
                    let letters = argument.strip_prefix('-').unwrap_or_default();
                    let letter = letters.chars().find(|letter| short.contains(*letter));
                    letter.map(|letter| format!("-{letter}"))
                }
            }?;
            Some((option, way))
        })
    })?;
    Some(format!(
        "{name}: {option} is not supported in the sandbox; {way}"
    ))
}

/// Takes the empty operands of `rm -f` away, which GNU's skips and bashkit takes for the
/// working directory.
pub(super) fn drop_empty(name: &str, args: &mut Vec<String>) {
    let is_forced = |argument: &String| match argument.strip_prefix("--") {
        Some(long) => long == "force",
        None => argument.starts_with('-') && argument.contains('f'),
    };
    if name == "rm" && args.iter().any(is_forced) {
        args.retain(|argument| !argument.is_empty());
    }
}

/// Why a file cannot be worked on: its name is empty, which bashkit takes for the working
/// directory.
fn empty(name: &str, args: &[String]) -> Option<String> {
    let operands = match name {
        "find" => args
            .iter()
            .map(String::as_str)
            .take_while(|argument| !argument.starts_with(['-', '(', '!']))
            .collect(),
        "touch" => operands(args).split_off(operands(args).len().saturating_sub(1)),
        _ => operands(args),
    };
    operands
        .contains(&"")
        .then(|| format!("{name}: nothing was done: '': No such file or directory"))
}

/// Why `cp` or `mv` cannot be run: two files would get the same name.
fn collision(name: &str, args: &[String]) -> Option<String> {
    let mut sources = operands(args);
    sources.pop();
    if !matches!(name, "cp" | "mv") {
        return None;
    }
    let last = |path: &str| {
        let path = path.trim_end_matches('/');
        path.rsplit('/').next().unwrap_or(path).to_owned()
    };
    let mut names = HashSet::new();
    let names_of = sources.iter().map(|path| last(path));
    let mut named = names_of.filter(|it| !matches!(it.as_str(), "." | ".."));
    let twice = named.find(|it| !names.insert(it.clone()))?;
    Some(format!(
        "{name}: nothing was done: more than one file would be named '{twice}'"
    ))
}

/// Why `rm`, `rmdir` or `mv` cannot be run: a directory would take itself away, or all
/// there is. GNU's refuse the same.
fn itself(name: &str, args: &[String]) -> Option<String> {
    let mut operands = operands(args);
    if name == "mv" {
        operands.pop();
    }
    let takes = |operand: &&str| {
        let path = operand.trim_end_matches('/');
        let last = path.rsplit('/').next().unwrap_or(path);
        matches!(last, "." | "..") || path.is_empty() && !operand.is_empty()
    };
    let takes_away = matches!(name, "mv" | "rm" | "rmdir");
    let operand = operands.into_iter().find(takes).filter(|_| takes_away)?;
    Some(format!(
        "{name}: nothing was done: '{operand}' cannot be taken away from where it is; name what is in it, or the directory itself"
    ))
}

/// The arguments that are no options.
pub(super) fn operands(args: &[String]) -> Vec<&str> {
    let mut operands = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--" => operands.extend(rest.by_ref()),
            option if option.starts_with('-') && option.len() > 1 => {}
            operand => operands.push(operand),
        }
    }
    operands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> (String, Vec<String>) {
        let mut words = line.split(' ').map(str::to_owned);
        (words.next().expect("a name"), words.collect())
    }

    #[test]
    fn names_that_are_empty_or_equal() {
        let check = |line: &str, refused: bool| {
            let (name, mut args) = words(line);
            drop_empty(&name, &mut args);
            assert_eq!(refusal(&name, &args).is_some(), refused, "{line}");
        };
        check("rm -rf  a", false);
        check("rm -r  a", true);
        check("rmdir ", true);
        check("mv  x", true);
        check("cp -r x ", true);
        check("chmod 600 ", true);
        check("touch ", true);
        check("touch -d  f", false);
        check("find  -name x", true);
        check("find . -name ", false);
        check("mv x/f y/f d", true);
        check("cp a b/a/ d", true);
        check("cp a/. b/. d", false);
        check("cp a b a", false);
    }

    #[test]
    fn directories_themselves() {
        let check = |line: &str, named: Option<&str>| {
            let (name, args) = words(line);
            let refusal = itself(&name, &args);
            let said = refusal.as_deref().and_then(|it| it.split('\'').nth(1));
            assert_eq!(said, named, "{line}");
        };
        check("rm -rf .", Some("."));
        check("rm -rf ./", Some("./"));
        check("rm -rf a d/..", Some("d/.."));
        check("rm -rf /", Some("/"));
        check("rm -rf //", Some("//"));
        check("rm -rf -- ..", Some(".."));
        check("rmdir .", Some("."));
        check("mv . x", Some("."));
        check("mv d/.. x y", Some("d/.."));
        check("mv x .", None);
        check("mv x /", None);
        check("rm -rf .git ./a ..b /a", None);
        check("rm -rf d/", None);
        check("cp -r . x", None);
    }

    #[test]
    fn what_is_refused() {
        let check = |line: &str, expected: Option<&str>| {
            let (name, args) = words(line);
            let expected =
                expected.map(|it| format!("{name}: {it} is not supported in the sandbox"));
            let refusal = refusal(&name, &args);
            let said = refusal.as_deref().and_then(|said| said.split_once("; "));
            assert_eq!(said.map(|it| it.0.to_owned()), expected, "{line}");
        };
        check("mv -n a b", Some("-n"));
        check("mv --no-clobber a b", Some("--no-clobber"));
        check("mv -vi a b", Some("-i"));
        check("mv -f -- -n b", None);
        check("cp -n a b", None);
        check("cp --update=none a b", None);
        check("cp -ru a b", Some("-u"));
        check("cp --backup=numbered a b", Some("--backup"));
        check("cp -t b a", Some("-t"));
        check("cp -av a b", None);
        check("rm -ri a", Some("-i"));
        check("rm --interactive=never -rf a", None);
        check("chmod -R 755 a", Some("-R"));
        check("chmod -x a", None);
        check("chmod u-r a", None);
    }
}
