//! What bashkit would get wrong without a word, or not survive: found in the
//! text of a command or in the arguments of a builtin, and refused with a
//! sentence.

mod arithmetic;
mod expansions;
mod sed;

#[cfg_attr(not(target_arch = "wasm32"), allow(unused_imports))]
pub(super) use sed::SedCall;

use super::filter::{Filter, filter_of};

/// Words that one `{1..9}` may have in bashkit, which leaves a longer one as it
/// is.
const BRACE_WORDS: u64 = 10_000;
/// Words that all the braces of one word may have, counted after each of them:
/// beyond this bashkit leaves the rest out.
const BRACE_PRODUCT: u64 = 100_000;
/// Bytes of those words, likewise.
const BRACE_BYTES: u64 = 10 << 20;
/// Groups of braces in one word, likewise.
const BRACE_GROUPS: usize = 100;
/// How deep brackets may nest in the arguments of [`NESTING`]: each level is a
/// call in bashkit, and some thousand end the stack, and the instance with it.
const MAX_NESTING: usize = 200;
/// Builtins that read programs or expressions.
const NESTING: [&str; 17] = [
    "jq", "yq", "tomlq", "awk", "gawk", "mawk", "bc", "expr", "find", "test", "[", "[[", "sed",
    "grep", "egrep", "rg", "let",
];

/// Why `command` cannot be run, with a line end.
pub(super) fn in_command(command: &str) -> Option<String> {
    long_range(command)
        .or_else(|| long_product(command))
        .or_else(|| exported_function(command))
        .or_else(|| cut_substitution(command))
        .or_else(|| misread(command))
        .map(|problem| format!("hermitcrab: {problem}\n"))
}

/// A script in place of the one at `path`, that says why that cannot be run.
pub(super) fn instead_of_script(path: &str, script: &str) -> Option<String> {
    let problem = misread(script)?;
    let sentence = format!("hermitcrab: {path}: {problem}").replace('\'', "'\\''");
    Some(format!(
        "printf '%s\\n' '{sentence}' >&2; return 1 2>/dev/null || exit 1\n"
    ))
}

/// The file that the builtin `name` runs as a script.
pub(super) fn script_file(name: &str, args: &[String]) -> Option<String> {
    let is_shell = ["bash", "sh", "source", "."].contains(&name);
    let file = args.iter().find(|arg| !arg.starts_with('-'));
    file.filter(|_| is_shell && script_of(name, args).is_none())
        .cloned()
}

fn misread(script: &str) -> Option<String> {
    let what = expansions::misread(script)?;
    Some(format!(
        "{what} is not supported in the sandbox; put its value into a variable first"
    ))
}

/// The text that the builtin `name` runs as a script.
fn script_of(name: &str, args: &[String]) -> Option<String> {
    match name {
        "eval" => Some(args.join(" ")),
        "trap" => args.iter().find(|arg| !arg.starts_with('-')).cloned(),
        "bash" | "sh" => {
            let options = args.iter().take_while(|arg| arg.starts_with('-'));
            let is_text = |arg: &String| !arg.starts_with("--") && arg.contains('c');
            let at = options.enumerate().find(|(_, arg)| is_text(arg))?.0;
            args[at + 1..]
                .iter()
                .find(|arg| !arg.starts_with('-'))
                .cloned()
        }
        _ => None,
    }
}

/// Why the builtin `name` cannot be run with `args`.
pub(super) fn in_arguments(name: &str, args: &[String]) -> Option<String> {
    if name == "ln" && !args.iter().any(|argument| is_symbolic(argument)) {
        return Some(
            "hermitcrab: ln: hard links are not supported in the sandbox; use ln -s, or cp\n"
                .to_owned(),
        );
    }
    if name == "mkdir" && args.iter().any(|argument| is_mode(argument)) {
        return Some(
            "hermitcrab: mkdir: -m is not supported in the sandbox; use chmod afterwards\n"
                .to_owned(),
        );
    }
    if name == "sort" && is_random(args) {
        return Some("hermitcrab: sort: -R is not supported in the sandbox; use shuf\n".to_owned());
    }
    if let Some(Filter::File(index)) = filter_of(name, args)
        && args[index].starts_with("/dev/")
    {
        return Some(format!(
            "hermitcrab: {name}: a filter from {} is not supported in the sandbox; put it into a file\n",
            args[index]
        ));
    }
    if let Some(problem) = script_of(name, args).and_then(|script| misread(&script)) {
        return Some(format!("hermitcrab: {name}: {problem}\n"));
    }
    if !NESTING.contains(&name) {
        return None;
    }
    let mut depth = 0_usize;
    for letter in args.iter().flat_map(|argument| argument.bytes()) {
        match letter {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Some(format!(
                "hermitcrab: {name}: brackets nested more than {MAX_NESTING} deep are not supported in the sandbox\n"
            ));
        }
    }
    None
}

/// Whether `sort` is to sort at random: bashkit's order follows from nothing that a
/// replay has.
fn is_random(args: &[String]) -> bool {
    let mut options = args.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = options.next() {
        let (is_key, value) = if let Some(long) = argument.strip_prefix("--") {
            if long == "sort=random" || long.len() > 7 && "random-sort".starts_with(long) {
                return true;
            }
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            (!name.is_empty() && "key".starts_with(name), value)
        } else if let Some(short) = argument.strip_prefix('-') {
            let flags = short.find(['t', 'o', 'S', 'T', 'k']);
            if short[..flags.unwrap_or(short.len())].contains('R') {
                return true;
            }
            let Some(at) = flags else { continue };
            let value = Some(&short[at + 1..]).filter(|value| !value.is_empty());
            if value.is_none() && !short.ends_with('k') {
                // The value of another option.
                options.next();
            }
            (short[at..].starts_with('k'), value)
        } else {
            continue;
        };
        if is_key {
            let key = value.or_else(|| options.next().map(String::as_str));
            if key.is_some_and(|key| key.contains('R')) {
                return true;
            }
        }
    }
    false
}

/// Whether this argument of `ln` asks for a symbolic link, or only for help.
fn is_symbolic(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => ["symbolic", "help", "version"].contains(&long),
        None => argument.starts_with('-') && argument.contains('s'),
    }
}

/// Whether this argument of `mkdir` gives permission bits, which bashkit takes
/// for the name of another directory.
fn is_mode(argument: &str) -> bool {
    match argument.strip_prefix("--") {
        Some(long) => long.starts_with("mode"),
        None => argument.starts_with('-') && argument.contains('m'),
    }
}

fn cut_substitution(command: &str) -> Option<String> {
    let text = arithmetic::cut_substitution(command)?;
    let shown: String = text.chars().take(60).collect();
    Some(format!(
        "brackets in quotes in $({shown}) within arithmetic are not supported in the sandbox; put its output into a variable first"
    ))
}

fn long_range(command: &str) -> Option<String> {
    command.match_indices('{').find_map(|(at, _)| {
        let end = at + command[at..].find('}')?;
        let words = range(&command[at + 1..end])?;
        (words > BRACE_WORDS).then(|| {
            format!(
                "{} has more than {BRACE_WORDS} words, which this shell does not expand; use seq",
                &command[at..=end]
            )
        })
    })
}

/// Words of `1..9`, `1..9..2` or `a..z`.
fn range(text: &str) -> Option<u64> {
    let bound = |text: &str| -> Option<i64> {
        let mut letters = text.chars();
        match (letters.next(), letters.next()) {
            (Some(letter), None) if letter.is_ascii_alphabetic() => Some(i64::from(letter as u32)),
            _ => text.parse().ok(),
        }
    };
    let bounds: Vec<i64> = text.split("..").map(bound).collect::<Option<_>>()?;
    let (first, last, step) = match bounds[..] {
        [first, last] => (first, last, 1),
        [first, last, step] => (first, last, step.unsigned_abs().max(1)),
        _ => return None,
    };
    Some(first.abs_diff(last) / step + 1)
}

/// The first word outside of quotes whose braces make more words than bashkit
/// makes.
fn long_product(command: &str) -> Option<String> {
    // One range alone is `long_range`'s.
    if command.matches('{').count() < 2 {
        return None;
    }
    words(command).find_map(|word| {
        let made = expand(word);
        let counted = made.words.saturating_mul(made.groups.max(1) as u64);
        let bytes = made.words.saturating_mul(made.longest);
        let too_many = counted > BRACE_PRODUCT || bytes > BRACE_BYTES || made.groups > BRACE_GROUPS;
        (made.groups > 1 && too_many).then(|| {
            let shown: String = word.chars().take(60).collect();
            format!("the braces of `{shown}` make more words than this shell expands; use loops")
        })
    })
}

/// Words of `command` that have no quotes.
fn words(command: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let mut escaped = false;
    let mut quoted = false;
    let mut start = 0;
    let mut ends = command.char_indices().chain([(command.len(), '\n')]);
    std::iter::from_fn(move || {
        for (at, letter) in ends.by_ref() {
            if std::mem::take(&mut escaped) {
                continue;
            }
            match (letter, quote) {
                ('\\', None | Some('"')) => escaped = true,
                (_, Some(open)) if letter == open => quote = None,
                (_, Some(_)) => {}
                ('\'' | '"', None) => {
                    quote = Some(letter);
                    quoted = true;
                }
                _ if letter.is_whitespace() || ";|&<>()`".contains(letter) => {
                    let word = &command[start..at];
                    start = at + letter.len_utf8();
                    if !std::mem::take(&mut quoted) && word.contains('{') {
                        return Some(word);
                    }
                }
                _ => {}
            }
        }
        None
    })
}

/// What the braces of a word make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Made {
    words: u64,
    groups: usize,
    longest: u64,
}

/// Counts without expanding. Braces that hold no comma and no range stay, and
/// so do those of `${name}`.
fn expand(word: &str) -> Made {
    // What is open: the word, or a group with its alternatives so far.
    struct Open {
        start: usize,
        product: Made,
        sum: u64,
        commas: usize,
        longest: u64,
        groups: usize,
    }
    let one = Made {
        words: 1,
        groups: 0,
        longest: 0,
    };
    let open = |start| Open {
        start,
        product: one,
        sum: 0,
        commas: 0,
        longest: 0,
        groups: 0,
    };
    let mut stack = vec![open(0)];
    let mut before = ' ';
    for (at, letter) in word.char_indices() {
        let depth = stack.len();
        let Some(top) = stack.last_mut() else {
            return one;
        };
        match letter {
            '{' if before != '$' => stack.push(open(at + 1)),
            ',' if depth > 1 => {
                top.sum = top.sum.saturating_add(top.product.words);
                top.longest = top.longest.max(top.product.longest);
                top.groups += top.product.groups;
                top.commas += 1;
                top.product = one;
            }
            '}' if depth > 1 => {
                let group = stack.pop().unwrap_or_else(|| open(at));
                let text = &word[group.start..at];
                let made = match range(text) {
                    Some(words) if group.commas == 0 => Made {
                        words,
                        groups: 1,
                        longest: text.len() as u64,
                    },
                    _ if group.commas == 0 => Made {
                        longest: group.product.longest + 2,
                        ..group.product
                    },
                    _ => Made {
                        words: group.sum.saturating_add(group.product.words),
                        groups: 1 + group.groups + group.product.groups,
                        longest: group.longest.max(group.product.longest),
                    },
                };
                if let Some(top) = stack.last_mut() {
                    top.product.words = top.product.words.saturating_mul(made.words);
                    top.product.groups += made.groups;
                    top.product.longest += made.longest;
                }
            }
            _ => top.product.longest += letter.len_utf8() as u64,
        }
        before = letter;
    }
    // Braces that were never closed are text.
    let mut made = one;
    for open in stack {
        made.words = made.words.saturating_mul(open.product.words.max(open.sum));
        made.groups += open.groups + open.product.groups;
        made.longest += open.longest.max(open.product.longest);
    }
    made
}

/// `export -f` says yes and exports nothing: a child shell starts without
/// functions.
fn exported_function(command: &str) -> Option<String> {
    if !command.contains("-f") && !command.contains("x") {
        return None;
    }
    let mut words = command
        .split(|c: char| c.is_whitespace() || ";|&(){}`".contains(c))
        .filter(|word| !word.is_empty());
    let mut before = words.next()?;
    for word in words {
        let exports = match before {
            "export" => word.starts_with("-f"),
            "declare" | "typeset" => {
                word.starts_with('-') && word.contains('f') && word.contains('x')
            }
            _ => false,
        };
        if exports {
            return Some(format!(
                "`{before} {word}` is not supported: functions do not reach child shells in the \
                 sandbox; put the function into the script that calls it"
            ));
        }
        before = word;
    }
    None
}

/// The arguments of `printf` with every `\xHH` of its format as `\OOO`, which
/// is the same byte: bashkit leaves out a NUL byte that is written in the first
/// way.
pub(super) fn octal_escapes(args: &mut [String]) {
    let mut format = 0;
    if args.first().is_some_and(|first| first == "-v") {
        format = 2;
    }
    if args.get(format).is_some_and(|first| first == "--") {
        format += 1;
    }
    let Some(format) = args.get_mut(format).filter(|text| text.contains("\\x")) else {
        return;
    };
    let mut octal = String::with_capacity(format.len());
    let mut rest = format.as_str();
    while let Some(at) = rest.find('\\') {
        octal.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let digits = escape.strip_prefix('x').unwrap_or_default().bytes();
        let digits = digits.take(2).take_while(u8::is_ascii_hexdigit).count();
        let byte = u8::from_str_radix(escape.get(1..=digits).unwrap_or_default(), 16);
        rest = match byte {
            Ok(byte) => {
                octal.push_str(&format!("\\{byte:03o}"));
                &escape[1 + digits..]
            }
            Err(_) => {
                let escaped = escape.chars().next();
                octal.push('\\');
                octal.extend(escaped);
                &escape[escaped.map_or(0, char::len_utf8)..]
            }
        };
    }
    octal.push_str(rest);
    *format = octal;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_that_bashkit_expands() {
        for command in [
            "echo {1..10000}",
            "echo {a..z}{a..z}{a..z}",
            "mkdir -p src/{a,b}/{c,d}",
            "echo '{a..z}{a..z}{a..z}{a..z}'",
            "echo \"{a..z}{a..z}{a..z}{a..z}\"",
            "echo ${a}${b}{1..9}",
            "awk '{print $1, $2}' f | { read a, b; }",
            "curl -d {\"a\":[1,2],\"b\":{\"c\":1}}",
            "echo {{{{a,b},c},d},e}{x",
        ] {
            assert_eq!(in_command(command), None, "{command}");
        }
    }

    #[test]
    fn braces_that_lose_words() {
        let product = |word: &str| {
            Some(format!(
                "hermitcrab: the braces of `{word}` make more words than this shell expands; use loops\n"
            ))
        };
        for word in [
            "{a..z}{a..z}{a..z}{a..z}",
            "x{1..100}y{1..100}z{1..100}",
            "{a,{1..400}}{b,{1..400}}",
            "${a}{1..999},{1..999}",
        ] {
            assert_eq!(
                in_command(&format!("echo a; echo {word} | wc")),
                product(word)
            );
        }
        let groups = "{a,}".repeat(101);
        let shown: String = groups.chars().take(60).collect();
        assert_eq!(in_command(&format!("echo {groups}")), product(&shown));
        assert_eq!(
            in_command("for i in {1..10001}; do :; done").as_deref(),
            Some(
                "hermitcrab: {1..10001} has more than 10000 words, which this shell does not expand; use seq\n"
            )
        );
    }

    #[test]
    fn texts_that_builtins_run() {
        let check = |name: &str, args: &[&str], expected: Option<&str>| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(
                script_of(name, &args).as_deref(),
                expected,
                "{name} {args:?}"
            );
        };
        check("eval", &["echo", "$x"], Some("echo $x"));
        check("trap", &["--", "ls $x", "EXIT"], Some("ls $x"));
        check("bash", &["-c", "ls", "a"], Some("ls"));
        check("sh", &["-e", "-xc", "ls"], Some("ls"));
        check("bash", &["--norc", "run.sh", "-c", "x"], None);
        check("bash", &["run.sh"], None);
        check("echo", &["-c", "x"], None);
    }

    #[test]
    fn functions_cannot_be_exported() {
        let message = |what: &str| {
            Some(format!(
                "hermitcrab: `{what}` is not supported: functions do not reach child shells in \
                 the sandbox; put the function into the script that calls it\n"
            ))
        };
        let check = |command, expected| assert_eq!(in_command(command), expected, "{command}");
        check("f() { :; }; export -f f", message("export -f"));
        check("declare -fx f; ls", message("declare -fx"));
        check("export FILE=x; rm -f x; declare -x A=1; declare -f f", None);
    }

    #[test]
    fn brackets_nest_so_deep() {
        let args = |depth: usize| vec!["(".repeat(depth), ")".repeat(depth)];
        assert_eq!(in_arguments("jq", &args(200)), None);
        assert_eq!(in_arguments("echo", &args(5_000)), None);
        assert_eq!(in_arguments("jq", &["()".repeat(5_000)]), None);
        assert_eq!(
            in_arguments("find", &vec!["(".to_owned(); 201]).as_deref(),
            Some(
                "hermitcrab: find: brackets nested more than 200 deep are not supported in the sandbox\n"
            )
        );
    }

    fn check_octal(args: &[&str], expected: &[&str]) {
        let mut args: Vec<String> = args.iter().map(|text| (*text).to_owned()).collect();
        octal_escapes(&mut args);
        assert_eq!(args, expected);
    }

    #[test]
    fn hexadecimal_escapes_become_octal() {
        check_octal(&["a\\x00b"], &["a\\000b"]);
        check_octal(&["\\xff\\x0g\\x41\\n"], &["\\377\\000g\\101\\n"]);
        check_octal(&["\\\\x00\\xz\\x"], &["\\\\x00\\xz\\x"]);
        check_octal(&["-v", "a", "--", "\\x7e"], &["-v", "a", "--", "\\176"]);
        check_octal(&["%s", "\\x00"], &["%s", "\\x00"]);
        check_octal(&["ü\\x", "x\\"], &["ü\\x", "x\\"]);
    }
}
