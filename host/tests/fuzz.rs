//! Whatever reads bytes of others, on damaged ones: no panic, and what it says holds.
//!
//! Each target has a corpus, `tests/fuzz/TARGET`, of which inputs are made by cutting,
//! doubling, swapping and flipping, the same ones in every run. `cargo xtask fuzz` goes on
//! from another seed for a time that you choose; an input that a target does not stand is
//! written into the corpus.

mod support;

use std::cell::RefCell;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hermitcrab::event::EventKind;
use hermitcrab::llm::SseDecoder;
use hermitcrab::log::LogReader;
use hermitcrab::memory::{Tree, TreeLimits, export_tar, import_tar};
use hermitcrab::script::ScriptedModel;
use hermitcrab::session::{SavedSession, SessionConfig};
use hermitcrab::tool::CommandLine;
use hermitcrab::tool::apply_patch::{Action, apply, parse};
use hermitcrab::tool::approval::{ApprovalPolicy, ApprovalSettings, Proposal};
use hermitcrab_host::store::{About, FileStore, SessionStore as _};
use hermitcrab_host::{trajectory, tree};
use support::harness::{self, Trial};

/// Damaged inputs of each target in a test.
const INPUTS: usize = 2_000;

/// What one does with an input.
type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 10] = [
    ("apply_patch", patches),
    ("archive", archives),
    ("config", configs),
    ("event", events),
    ("journal", journals),
    ("log", logs),
    ("saved", saved_sessions),
    ("shell", commands),
    ("sse", streams),
    ("trajectory", trajectories),
];

fn main() -> ExitCode {
    let trials = TARGETS.map(|(name, target)| Trial::new(name, move || check(name, target)));
    harness::main(trials.into())
}

/// Has `target` read its corpus and what comes of it.
fn check(name: &str, target: Target) -> Result<(), String> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    let until = number("HERMITCRAB_FUZZ_SECONDS")
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let seed = number("HERMITCRAB_FUZZ_SEED").unwrap_or(1);
    let corpus = corpus(name)?;
    for input in &corpus {
        stands(name, target, input)?;
    }
    let mut damage = Damage(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut made = 0;
    while until.map_or(made < INPUTS, |until| Instant::now() < until) {
        stands(name, target, &damage.input(&corpus))?;
        made += 1;
    }
    if until.is_some() {
        println!("{name}: {made} inputs from seed {seed}");
    }
    Ok(())
}

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/fuzz")
        .join(name)
}

fn corpus(name: &str) -> Result<Vec<Vec<u8>>, String> {
    let directory = directory(name);
    let entries = std::fs::read_dir(&directory);
    let entries = entries.map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let read = |path: &PathBuf| std::fs::read(path).map_err(|error| error.to_string());
    let inputs: Vec<Vec<u8>> = paths.iter().map(read).collect::<Result<_, _>>()?;
    match inputs.is_empty() {
        true => Err(format!("{} is empty", directory.display())),
        false => Ok(inputs),
    }
}

/// Whether `target` stands `input`; where it does not, the input is kept.
fn stands(name: &str, target: Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| target(input))).map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let sum = crc32(input);
        let path = directory(name).join(format!("found-{sum:08x}"));
        let kept = match std::fs::write(&path, input) {
            Ok(()) => path.display().to_string(),
            Err(error) => format!("not kept: {error}"),
        };
        format!("{} ({kept})", said.unwrap_or_default())
    })
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = flate2::Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// Makes damaged inputs, the same ones of the same seed (xorshift64).
struct Damage(u64);

/// What formats trip over.
const WORDS: [&[u8]; 22] = [
    b"\0",
    b"\n",
    b"\r\n",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xa8",
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"null",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"../",
    b"/",
    b"*** End Patch\n",
    b"@@\n",
    b"data: ",
    b"$(",
    b"<<EOF",
];

impl Damage {
    fn number(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % below.max(1)
    }

    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.number(length + 1);
        // Short ones are more likely.
        let most = match self.number(3) {
            0 => length - from,
            _ => (length - from).min(16),
        };
        from..from + self.number(most + 1)
    }

    fn input(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.number(corpus.len())].clone();
        for _ in 0..=self.number(4) {
            let range = self.range(input.len());
            match self.number(7) {
                0 => drop(input.drain(range)),
                1 => input.truncate(range.start),
                2 => {
                    let part = input[range.clone()].to_vec();
                    input.splice(range.start..range.start, part);
                }
                3 => {
                    let other = &corpus[self.number(corpus.len())];
                    let part = other[self.range(other.len())].to_vec();
                    input.splice(range, part);
                }
                4 => {
                    let word = WORDS[self.number(WORDS.len())];
                    input.splice(range, word.iter().copied());
                }
                5 if range.start < input.len() => {
                    input[range.start] ^= 1 << self.number(8);
                }
                _ if range.start < input.len() => {
                    input[range.start] = u8::try_from(self.number(256)).unwrap_or_default();
                }
                _ => {}
            }
            // Doubling what was doubled must come to an end.
            input.truncate(1 << 18);
        }
        input
    }
}

/// A patch, a line of `=`, and the file that it is for: what a hunk leaves is a file again.
fn patches(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (patch, file) = text
        .split_once("\n=====\n")
        .unwrap_or((&text, "one\ntwo\n"));
    let Ok(patch) = parse(patch) else { return };
    for change in &patch.files {
        if let Action::Update { hunks, .. } = &change.action {
            let first = apply(&change.path, file, hunks);
            assert_eq!(first, apply(&change.path, file, hunks));
        }
    }
}

/// A tar: what a tree takes it gives back, and takes again.
fn archives(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let _ = tree::from_tar(&bytes);
    let mut first = Tree::new(TreeLimits::default());
    if import_tar(&mut first, "/work", input, 0).is_err() {
        return;
    }
    if first.get("/work").is_err() {
        // It held nothing.
        return;
    }
    let again = export_tar(&first, "/work").expect("what was taken");
    let mut second = Tree::new(TreeLimits::default());
    import_tar(&mut second, "/work", &again, 0).expect("what was given");
    assert_eq!(again, export_tar(&second, "/work").expect("it"));
}

/// Settings of a session: those that are taken are taken again as they are written.
fn configs(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let Ok(config) = SessionConfig::from_json(&text) else {
        return;
    };
    let _ = config.check();
    let json = serde_json::to_string(&config).expect("JSON");
    let again = SessionConfig::from_json(&json).expect("its own JSON");
    assert_eq!(json, serde_json::to_string(&again).expect("JSON"));
    let _ = ScriptedModel::from_json(&text);
}

/// An event as hosts read it: one that is understood is understood again as it is written.
fn events(input: &[u8]) {
    let Ok(event) = serde_json::from_slice::<EventKind>(input) else {
        return;
    };
    let json = serde_json::to_vec(&event).expect("JSON");
    let again: EventKind = serde_json::from_slice(&json).expect("its own JSON");
    assert_eq!(json, serde_json::to_vec(&again).expect("JSON"));
}

/// A log, plain here and compressed there: as far as it is read it is whole.
fn logs(input: &[u8]) {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(input).expect("memory");
    let packed = packed.finish().expect("memory");
    for bytes in [&*packed, input] {
        let Ok(mut log) = LogReader::open(bytes) else {
            continue;
        };
        let _ = log.seed();
        while let Ok(Some(_)) = log.read() {}
        let _ = log.is_closed();
    }
}

/// Files of a kept session, of which the first byte chooses the damaged one.
fn journals(input: &[u8]) {
    thread_local! {
        static PLACE: RefCell<Option<tempfile::TempDir>> = const { RefCell::new(None) };
    }
    PLACE.with_borrow_mut(|place| {
        let place = place.get_or_insert_with(|| tempfile::tempdir().expect("a directory"));
        let store = FileStore::new(place.path());
        let id = match store.list().expect("a list").first() {
            Some(kept) => kept.about.id.clone(),
            None => begun(&store),
        };
        let Some((first, rest)) = input.split_first() else {
            return;
        };
        let files = ["about.json", "log.gz", "saved"];
        let name = files[usize::from(*first) % files.len()];
        let path = place.path().join(&id).join(name);
        let before = std::fs::read(&path).ok();
        std::fs::write(&path, rest).expect("a file");
        let _ = store.list().expect("a list");
        if let Ok(session) = store.open(&id) {
            let _ = session.saved();
            if let Ok(log) = session.log()
                && let Ok(mut log) = LogReader::open(log)
            {
                while let Ok(Some(_)) = log.read() {}
            }
        }
        match before {
            Some(before) => std::fs::write(&path, before).expect("a file"),
            None => std::fs::remove_file(&path).expect("a file"),
        }
    });
}

/// Begins a session in `store`; returns its id.
fn begun(store: &FileStore) -> String {
    let about = About {
        id: String::new(),
        directory: "/work".to_owned(),
        provider: "anthropic".to_owned(),
        model: "model".to_owned(),
        task: "a task".to_owned(),
        created_ms: 0,
        host: serde_json::Value::Null,
    };
    let mut session = store.create(about).expect("a session");
    let mut log = session.begin_log().expect("a log");
    let recorded =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/logs/write-todo-cli.log.gz");
    log.write_all(&std::fs::read(recorded).expect("a log"))
        .expect("a file");
    drop(log);
    session.set_saved(b"{}").expect("a file");
    session.about().id.clone()
}

/// A saved session.
fn saved_sessions(input: &[u8]) {
    let _ = SavedSession::read(input);
}

/// A command line: what it is judged as does not depend on who asks first.
fn commands(input: &[u8]) {
    let command = CommandLine {
        text: String::from_utf8_lossy(input).into_owned(),
        working_dir: None,
    };
    let settings = ApprovalSettings {
        commands: Some(vec!["git status".to_owned(), "ls".to_owned()]),
        write_paths: Some(vec!["src/**".to_owned()]),
        ..ApprovalSettings::default()
    };
    let policy = ApprovalPolicy::new(&settings).expect("settings");
    let links = std::collections::BTreeMap::new();
    let proposal = Proposal {
        tool_name: "shell",
        kind: "shell",
        writes: &[],
        command: Some(&command),
        working_directory: "/work",
        links: &links,
    };
    assert_eq!(policy.judge(&proposal), policy.judge(&proposal));
    let _ = policy.paths(&proposal);
}

/// A stream of events: where its pieces end makes no difference.
fn streams(input: &[u8]) {
    let whole = items([input]);
    let halves = input.split_at(input.len() / 2);
    assert_eq!(whole, items([halves.0, halves.1]));
    assert_eq!(whole, items(input.chunks(1)));
}

fn items<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut decoder = SseDecoder::new();
    let mut items = Vec::new();
    for piece in pieces {
        decoder.feed(piece, |item| items.push(format!("{item:?}")));
    }
    items
}

/// A trajectory of another program's agent.
fn trajectories(input: &[u8]) {
    for round in [0, 1, 7] {
        let _ = trajectory::history(input, round);
    }
}
