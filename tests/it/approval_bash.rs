//! Approval against bash itself: scripts made of pieces at random are judged,
//! and bash runs those that need no question, in a directory of its own where
//! every program is a stand-in. None of them may run what is not listed, or
//! write a file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hermitcrab::tool::CommandLine;
use hermitcrab::tool::approval::{ApprovalPolicy, ApprovalSettings, Proposal, Verdict};
use serde_json::json;

/// Scripts that bash runs; with `HERMITCRAB_TEST_ALL` a hundred times as many.
const RUNS: usize = 1_000;

const LISTED: [&str; 11] = [
    "ls", "cat", "echo", "find", "printf", "set", "read", "export", "test", "[", "sort",
];

const FRAMES: &[&str] = &[
    "ls %",
    "echo \"%\"",
    "x=%; ls",
    "ls && %",
    "if ls; then %; fi",
    "f() { %; }; f",
    "cat <<E\n%\nE\n%",
    "echo $((%))",
    "[[ % ]]",
    "echo ${x:-%}",
    "(%)",
    "case % in %) ls;; esac",
    "for x in %; do %; done",
    "%%",
    "ls # %\n%",
    "echo '%' %",
    "echo $'%'",
    "ls <(%)",
    "{ %; }",
    "echo `%`",
    "x='%'; %",
    "echo \"$(%)\" %",
    "ls % \\\n %",
    "cat <<'E' %\n%\nE\n",
    "echo x\"%\"",
    "a=(%)",
    "a=(%); evil",
    "echo %\\'; evil #'",
    "echo %\\\"; evil #\"",
    "echo %#; evil",
    "echo x %; evil",
    "echo > %",
    "find ls -maxdepth 0 % evil ';'",
    "echo %\\ #; evil",
    "echo %\\<<E\nevil\nE\n",
    "y='[$(evil)]'; [[ -v a% ]]",
    "sort %a",
    "cat <<%\nevil\nE\n",
    "echo $(cat <<E\nE%\nevil\nE\n)",
    "printf % %",
    "read -%a% <<< %; echo $((%))",
    "y='a[$(evil)]'; %",
    "y='a[$(evil)]'; a=([%]=1)",
    "export % x",
    "test % evil",
    "%evil%",
];

const PIECES: &[&str] = &[
    "$'\\x{2d}exec'",
    "''$\"",
    "'-'",
    "\\-exec",
    "''$\"-exec\"",
    "q=~",
    "$y",
    "-o",
    "ls",
    "ls ",
    "echo ",
    "cat ",
    "evil",
    "evil ",
    "evil\n",
    " ",
    "\n",
    ";",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "(",
    ")",
    "{ ",
    "; }",
    "((",
    "))",
    "$((",
    "$(",
    "`",
    "\"",
    "'",
    "\\",
    "\\\n",
    " \\\n",
    "$",
    "${",
    "}",
    "${x:-",
    "${x/a/",
    "x=",
    "x=1",
    "x+=",
    "a[0]=",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "-eq",
    "-v",
    "! ",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "while ",
    "case x in ",
    ";;",
    "esac",
    "x)",
    "function f ",
    "f() ",
    "f",
    "<<E\n",
    "\nE\n",
    "<<\"E\"\n",
    "<<-E\n",
    "<<<",
    "<(",
    ">(",
    "> ",
    ">",
    ">>",
    "&>",
    ">&",
    "2>&1",
    "<",
    ">|",
    "<>",
    "/dev/null",
    " #",
    "$'",
    "$\"",
    "{a,",
    "{evil,",
    "..",
    "*",
    "[",
    "]",
    "@(",
    "!(",
    "coproc ",
    "time ",
    "$x",
    "\"$x\"",
    "$1",
    "a[$(evil)]",
    "$[",
    "read x",
    "i++",
    "#",
    ")#",
    "1>&1",
    "3>&1-",
    "a=(",
    "a=([0]=",
    "y",
    "_",
    "=(",
    "]=1",
    "[y]",
    "-v a ",
    "-v 'a[$(evil)]' ",
    "$'E'\n",
    "$\"E\"\n",
    "-'\tE'\n",
    "E\n",
    "E)",
    "\\'",
    "\\\"",
    "\\`",
    "\"`evil`\"",
    "`evil`",
    "$(evil)",
    "'a[$(evil)]'",
    "x\"",
    "~+",
    "{}",
    "]",
    ": ",
    "%d",
    "declare -a ",
    "local x=",
    "\t",
];

struct Dice(u64);

impl Dice {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }

    fn script(&mut self) -> String {
        let mut script = String::new();
        for part in FRAMES[self.below(FRAMES.len())].split_inclusive('%') {
            let (text, has_hole) = match part.strip_suffix('%') {
                Some(text) => (text, true),
                None => (part, false),
            };
            script.push_str(text);
            if has_hole {
                for _ in 0..=self.below(6) {
                    script.push_str(PIECES[self.below(PIECES.len())]);
                }
            }
        }
        script
    }
}

/// A directory with `bin`, whose programs do nothing but `evil`, which leaves
/// a mark.
fn stage() -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("approval-bash");
    let _ = fs::remove_dir_all(&root);
    let bin = root.join("bin");
    fs::create_dir_all(&bin).expect("a directory");
    let mark = root.join("mark").display().to_string();
    let runs = format!("echo >> '{mark}'");
    let with = |options: &str| format!("for a; do case $a in {options}) {runs};; esac; done");
    for name in ["ls", "cat", "find", "sort", "evil"] {
        let path = bin.join(name);
        let line = match name {
            "evil" => runs.clone(),
            "find" => with("-exec|-execdir|-ok|-okdir|-delete|-fls|-fprint*"),
            "sort" => with("-o*|--o*"),
            _ => "exit 0".to_owned(),
        };
        fs::write(&path, format!("#!/bin/bash\n{line}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    root
}

/// What is left after bash ran `script`.
fn traces(root: &Path, script: &str) -> Vec<String> {
    let place = root.join("place");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).expect("a directory");
    let mut bash = Command::new("/bin/bash")
        .args(["-c", script])
        .current_dir(&place)
        .env_clear()
        .env("PATH", root.join("bin"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("bash starts");
    // Some loop for ever.
    let end = Instant::now() + Duration::from_secs(2);
    while bash.try_wait().expect("bash can be waited for").is_none() {
        if Instant::now() > end {
            let _ = bash.kill();
            let _ = bash.wait();
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let files = fs::read_dir(&place).expect("the directory is there");
    let names = files.map(|file| file.expect("an entry").file_name());
    let mut traces: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let mark = root.join("mark");
    if mark.exists() {
        fs::remove_file(&mark).expect("the mark can go");
        traces.push("evil ran".to_owned());
    }
    traces
}

#[test]
fn bash_runs_nothing_that_should_have_asked() {
    if !Path::new("/bin/bash").exists() {
        println!("skipped: no /bin/bash");
        return;
    }
    let settings: ApprovalSettings =
        serde_json::from_value(json!({"commands": LISTED})).expect("settings");
    let policy = ApprovalPolicy::new(&settings).expect("valid settings");
    let allows = |script: &str| {
        policy.judge(&Proposal {
            tool_name: "shell",
            kind: "shell",
            writes: &[],
            command: Some(&CommandLine {
                text: script.to_owned(),
                working_dir: None,
            }),
            working_directory: "/work",
            links: &std::collections::BTreeMap::new(),
        }) == Verdict::Allow
    };
    let root = stage();
    // The stage works: both are seen.
    assert_eq!(traces(&root, "evil > a"), ["a", "evil ran"]);
    assert_eq!(traces(&root, "find . -exec ls"), ["evil ran"]);
    let mut dice = Dice(1);
    let mut wrong = Vec::new();
    let mut runs = 0;
    let is_long = std::env::var_os("HERMITCRAB_TEST_ALL").is_some();
    while runs < if is_long { 100 * RUNS } else { RUNS } {
        let script = dice.script();
        // What names nothing that could show is of no interest.
        let could_show = ["evil", ">", "find", "sort"];
        if !could_show.iter().any(|part| script.contains(part)) || !allows(&script) {
            continue;
        }
        runs += 1;
        let traces = traces(&root, &script);
        if !traces.is_empty() {
            wrong.push((script, traces));
        }
    }
    assert_eq!(wrong, []);
}
