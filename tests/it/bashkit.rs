//! What bashkit 0.20.2 does otherwise than the sandbox needs, by the files of
//! `src/memory/bashkit/` that make up for it. A test that fails says that bashkit does
//! it right by now: its file can go.

use std::process::Command;

use bashkit::{Bash, CommandContext, CommandStatus, async_trait};

/// Runs `scripts` one after another in one shell; what they print and the last exit code.
fn run(bash: &mut Bash, scripts: &[&str]) -> (String, i32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let mut printed = String::new();
    let mut exit_code = 0;
    for script in scripts {
        let result = runtime.block_on(bash.exec(script));
        let result = result.unwrap_or_else(|error| panic!("{script}: {error}"));
        printed += &result.stdout.text_lossy();
        exit_code = result.exit_code;
    }
    (printed, exit_code)
}

#[track_caller]
fn check(script: &str, stdout: &str, exit_code: i32) {
    let (printed, code) = run(&mut Bash::new(), &[script]);
    assert_eq!((printed.as_str(), code), (stdout, exit_code), "{script}");
}

#[test]
fn absent() {
    check("http example.com > /dev/null 2>&1; echo $?", "0\n", 0);
}

#[test]
fn braces() {
    check("echo {1..10001}", "{1..10001}\n", 0);
    let (words, _) = run(&mut Bash::new(), &["echo {a..z}{a..z}{a..z}{a..z} | wc -w"]);
    assert_ne!(words.trim(), "456976");
}

#[test]
fn bytes() {
    check("printf 'x\\xf6\\n' | sort | wc -c", "5\n", 0);
    check("printf '\\xf6\\n\\xe4\\n' | uniq | wc -l", "1\n", 0);
    check("printf 'a\\xf6\\n' > f; sort -o f f; wc -c < f", "5\n", 0);
}

#[test]
fn cut() {
    check("echo a:b | cut -d: -f0", "\n", 0);
    check("echo a:b | cut -d: -f x", "\n", 0);
}

#[test]
fn diff() {
    check("echo a > f; diff f nope > /dev/null 2>&1", "", 1);
    check("printf a > f; echo a > g; diff f g", "", 0);
}

#[test]
fn files() {
    check("echo 1 > a; echo 2 > b; mv -n a b; cat b", "1\n", 0);
    check("echo 1 > a; echo n | rm -i a; cat a 2> /dev/null", "", 1);
    check("mkdir d; echo 1 > a; cp -t d a 2> /dev/null", "", 1);
    check("mkdir d; cd d; touch f; rm -rf .; ls f 2> /dev/null", "", 2);
}

#[test]
fn iconv() {
    let script = "printf '\\xc3\\xa4' | iconv -f utf-8 -t latin1 | wc -c";
    check(script, "2\n", 0);
}

#[test]
fn order() {
    let files = "printf 'b\\na\\n' > f; echo c > g;";
    check(&format!("{files} comm -12 f g"), "", 0);
}

#[test]
fn patch() {
    let script = "echo a > f; echo b > g; diff -u f g > p; cp f g; patch < p; cat f";
    check(script, "patching file g\na\n", 0);
}

#[test]
fn slashes() {
    check("echo 1 > a; echo 2 > c; mv a c/; cat c", "1\n", 0);
    check("echo 1 > a; cp a nope/; cat nope", "1\n", 0);
}

#[test]
fn tar() {
    check("echo junk > f; tar tf f", "", 0);
    let script = "touch f; ln -s f l; tar cf t l; rm l; tar xf t; readlink l";
    check(script, "", 1);
}

#[test]
fn tee() {
    check("printf '\\xf6' | tee f > /dev/null; wc -c < f", "3\n", 0);
}

#[test]
fn tr() {
    check("echo abc | tr '[:foo:]' x", "abc\n", 0);
    check("echo abc | tr abc '[x*]'", "[x*\n", 0);
}

#[test]
fn expansions() {
    check("L=(a b); echo \"${x:-${L[1]}}\"", "\n", 0);
    check("p=abab; echo \"${p%$(echo b)}\"", "abab\n", 0);
    check("set -- a b; echo $((${#} + 1))", "1\n", 0);
}

#[test]
fn descriptors() {
    check("echo '{a}' > f; cat f", "\n", 0);
}

#[test]
fn functions() {
    check(
        "f() { echo hi; }; export -f f && bash -c f 2> /dev/null",
        "",
        127,
    );
}

#[test]
fn gzip() {
    check("yes | head -20000 | gzip | gunzip 2> /dev/null", "", 1);
    check("echo a | gzip > f; zcat f 2> /dev/null", "", 127);
}

#[test]
fn incomplete() {
    assert!(Bash::new().analyze("cat <<END\na").is_ok());
}

#[test]
fn leftovers() {
    let mut bash = Bash::new();
    let state = bash.shell_state();
    run(&mut bash, &["echo before"]);
    bash.restore_shell_state(&state);
    let (history, _) = run(&mut bash, &["history"]);
    assert!(history.contains("echo before"), "{history}");
}

#[test]
fn ln() {
    check("echo a > f; ln f g 2> /dev/null; test -L g", "", 0);
}

#[test]
fn ls() {
    check("mkdir d; ls -a d", "", 0);
}

#[test]
fn mkdir() {
    check("mkdir -m 700 d 2> /dev/null; test -d 700", "", 0);
}

/// Set for a process whose stack [`nesting`] ends.
const NESTS: &str = "HERMITCRAB_NESTS";

#[test]
fn nesting() {
    if std::env::var_os(NESTS).is_some() {
        let [open, close] = ["(", ")"].map(|bracket| bracket.repeat(20_000));
        run(&mut Bash::new(), &[&format!("echo '{open}1{close}' | bc")]);
        return;
    }
    let this = std::env::current_exe().expect("this program");
    let mut child = Command::new(this);
    child.args(["--exact", "bashkit::nesting"]).env(NESTS, "");
    let output = child.output().expect("a process");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("overflowed its stack"), "{printed}");
}

#[test]
fn options() {
    let (printed, _) = run(&mut Bash::new(), &["set -e; true", "false; echo on"]);
    assert_eq!(printed, "on\n");
}

/// Takes one piece of what its pipe holds.
struct Piece;

#[async_trait]
impl bashkit::Command for Piece {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        context.stdin.read_chunk().await?;
        Ok(CommandStatus::with_code(0))
    }
}

#[test]
fn pipes() {
    let mut bash = Bash::builder().command("piece", Piece).build();
    let (left, _) = run(&mut bash, &["seq 100000 | { piece; tail -n 1; }"]);
    assert_eq!(left, "");
}

#[test]
fn printf() {
    check("printf 'a\\x00b' | wc -c", "2\n", 0);
}

#[test]
fn sed() {
    let script = "printf 'x%.0s' {1..2000} | sed ':a;s/x//;ta' 2> /dev/null | wc -c";
    let (left, code) = run(&mut Bash::new(), &[script]);
    assert_ne!((left.trim(), code), ("0", 0));
    check("printf a > f; sed -i '$a\\' f; wc -l < f", "0\n", 0);
}

#[test]
fn seq() {
    check("seq 100001 | tail -n 1", "100000\n", 0);
}

#[test]
fn sleep() {
    let script = "sleep --help | grep -c 'Maximum duration is 60 seconds'";
    check(script, "1\n", 0);
}

#[test]
fn stat() {
    check("echo a > f; stat -c '%i' f", "%i\n", 0);
}

#[test]
fn substitutions() {
    check("echo $(($(printf '(' | tr -dc '(' | wc -c) + 1))", "0\n", 0);
}

#[test]
fn timeout() {
    let script = "timeout --help | grep -c 'Maximum timeout is 300 seconds'";
    check(script, "1\n", 0);
}

#[test]
fn yes() {
    check("yes | head -n 10001 | wc -l", "10000\n", 0);
}

/// Files of the directory that make up for nothing.
const HELPERS: [&str; 4] = ["mod", "number", "registry", "words"];

#[test]
fn the_table_names_every_file() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/memory/bashkit");
    let table = std::fs::read_to_string(format!("{directory}/mod.rs")).expect("mod.rs");
    let tests = include_str!("bashkit.rs");
    for entry in std::fs::read_dir(directory).expect("the directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() || HELPERS.contains(&&*name) {
            continue;
        }
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("//! | `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("{name} is not in the table"));
        let shown = row.trim_end_matches([' ', '|']).rsplit('|').next();
        let is_tested = shown.map(str::trim) == Some(&format!("`{name}`"));
        let has_test = tests.contains(&format!("fn {name}()"));
        assert_eq!(is_tested, has_test, "{name}");
    }
}
