//! Calls of Python by what only this host has: cancellation from Rust, several
//! sandboxes, cores that die, archives that are none, caches, limits.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use hermitcrab::environment::ExecRequest;
use hermitcrab_host::{CoreLimits, Host, MemoryOptions, ProgramFn, Python};

use super::{Trial, answer, archive, cache, check, equal, exec, python, sandbox, two_minutes};

/// A hang guard, far above what any test takes.
const GUARD: Duration = Duration::from_secs(120);

pub(super) fn trials() -> Vec<Trial> {
    vec![
        Trial::new(
            "calls::a_cancel_ends_a_busy_loop",
            a_cancel_ends_a_busy_loop,
        ),
        Trial::new("calls::sandboxes_and_names", sandboxes_and_names),
        Trial::new("calls::side_by_side", side_by_side),
        Trial::new("calls::a_thousand_files", a_thousand_files),
        Trial::new("calls::a_dead_core_is_replayed", a_dead_core_is_replayed),
        Trial::new(
            "calls::more_than_the_sandbox_takes",
            more_than_the_sandbox_takes,
        ),
        Trial::new("calls::more_than_a_call_may_add", more_than_a_call_may_add),
        Trial::new("calls::archives_that_are_none", archives_that_are_none),
        Trial::new("calls::a_damaged_cache", a_damaged_cache),
    ]
}

fn none() -> BTreeMap<String, String> {
    BTreeMap::new()
}

#[tokio::main(flavor = "current_thread")]
async fn a_cancel_ends_a_busy_loop() -> Result<(), String> {
    let sandbox = sandbox(&BTreeMap::from([("a".to_owned(), "1".to_owned())])).await?;
    let endless = |code: &str| ExecRequest {
        command: format!("python3 -c 'print(\"before\", flush=True)\n{code}'"),
        timeout_ms: two_minutes(),
        ..ExecRequest::default()
    };
    for code in ["while True: pass", "import time; time.sleep(1e9)"] {
        let stopped = async {
            // Others go on meanwhile.
            let command = "echo 2 > a; python3 -c 'print(open(\"a\").read().strip())'";
            check(&sandbox, command, &answer(0, "2\n", "")).await
        };
        let mut meanwhile = Ok(());
        let status = sandbox.exec_until(endless(code), |_, _| {}, async {
            meanwhile = stopped.await;
        });
        let status = tokio::time::timeout(GUARD, status).await;
        let status = status.map_err(|_| format!("{code}: no end"))?;
        let status = status.map_err(|error| error.to_string())?;
        meanwhile?;
        equal(&status.cancelled, &true, code)?;
    }
    // Nobody waits for it any more: it ends all the same, and its place is free.
    for _ in 0..8 {
        let request = endless("while True: pass");
        let run = sandbox.exec_with(request, |_, _| {});
        let _ = tokio::time::timeout(Duration::from_millis(20), run).await;
    }
    let one = answer(0, "1\n", "");
    let done = check(&sandbox, "python3 -c 'print(1)'", &one);
    tokio::time::timeout(GUARD, done)
        .await
        .map_err(|_| "no place".to_owned())?
}

#[tokio::main(flavor = "current_thread")]
async fn sandboxes_and_names() -> Result<(), String> {
    let host = Host::builder().build().map_err(|error| error.to_string())?;
    let mut sandboxes = Vec::new();
    for who in ["one", "two"] {
        let mut options = MemoryOptions {
            files: vec![("who".to_owned(), who.into())],
            ..MemoryOptions::default()
        };
        for name in ["python3", "py"] {
            options.programs.insert(name.to_owned(), python().program());
        }
        // Each in an instance of its own, so that both have the same number.
        let instance = host.instance().map_err(|error| error.to_string())?;
        let sandbox = instance.add_memory(options).await;
        sandboxes.push((who, sandbox.map_err(|error| error.to_string())?));
    }
    for _ in 0..2 {
        let calls = sandboxes.iter().flat_map(|(who, sandbox)| {
            ["python3", "py"].map(|name| async move {
                let command =
                    format!("{name} -c 'import os; print(open(\"who\").read(), os.listdir())'");
                let expected = answer(0, &format!("{who} ['who']\n"), "");
                check(sandbox, &command, &expected).await
            })
        });
        join_all(calls)
            .await
            .into_iter()
            .collect::<Result<(), String>>()?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn side_by_side() -> Result<(), String> {
    let sandbox = sandbox(&none()).await?;
    let calls = (0..9).map(|number| {
        let sandbox = &sandbox;
        async move {
            let command =
                format!("python3 -c 'open(\"f{number}\", \"w\").write(\"x\"); print({number})'");
            check(sandbox, &command, &answer(0, &format!("{number}\n"), "")).await
        }
    });
    join_all(calls)
        .await
        .into_iter()
        .collect::<Result<(), String>>()?;
    let command = "ls | wc -l; python3 -c 'import os; print(len(os.listdir()))'";
    check(&sandbox, command, &answer(0, "9\n9\n", "")).await
}

#[tokio::main(flavor = "current_thread")]
async fn a_thousand_files() -> Result<(), String> {
    let files: BTreeMap<String, String> = (0..1000)
        .map(|number| {
            let path = format!("src/d{}/f{number}.txt", number % 40);
            (path, format!("{number}\n").repeat(1000))
        })
        .collect();
    let total: usize = files.values().map(String::len).sum();
    let sandbox = sandbox(&files).await?;
    let command = "python3 -c '
import os
total = 0
for path, _, names in os.walk(\"src\"):
    for name in names: total += len(open(os.path.join(path, name)).read())
open(\"total\", \"w\").write(str(total))'; cat total";
    for turn in ["told, walked and read", "again"] {
        let start = Instant::now();
        check(&sandbox, command, &answer(0, &total.to_string(), "")).await?;
        println!("1,000 files, {total} bytes, {turn}: {:?}", start.elapsed());
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn a_dead_core_is_replayed() -> Result<(), String> {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted: ProgramFn = {
        let (calls, run) = (calls.clone(), python().program());
        Arc::new(move |call| {
            calls.fetch_add(1, Ordering::SeqCst);
            run(call)
        })
    };
    let limits = CoreLimits {
        step_timeout: Duration::from_millis(300),
        ..CoreLimits::default()
    };
    let host = Host::builder().limits(limits).build();
    let instance = host
        .and_then(|host| host.instance())
        .map_err(|error| error.to_string())?;
    let mut options = MemoryOptions::default();
    options.programs.insert("python3".to_owned(), counted);
    let sandbox = instance.add_memory(options).await;
    let sandbox = sandbox.map_err(|error| error.to_string())?;
    let command = "python3 -c '
import os, time
open(\"made\", \"w\").write(str(time.time_ns()) + os.urandom(8).hex()); print(1)'";
    check(&sandbox, command, &answer(0, "1\n", "")).await?;
    let held = sandbox.export_tar().await;
    let end = ExecRequest {
        command: "awk 'BEGIN{while(1);}'".to_owned(),
        timeout_ms: two_minutes(),
        ..ExecRequest::default()
    };
    let ended = sandbox
        .exec(end)
        .await
        .map(|output| output.status.timed_out);
    equal(&ended, &Ok(true), "the command has ended")?;
    // The same bytes, although they were drawn from clock and chance: what the
    // program answered goes to the next core, and the program does not run again.
    equal(&sandbox.export_tar().await, &held, "the files")?;
    equal(&calls.load(Ordering::SeqCst), &1, "calls")
}

#[tokio::main(flavor = "current_thread")]
async fn more_than_the_sandbox_takes() -> Result<(), String> {
    let host = Host::builder().build().map_err(|error| error.to_string())?;
    let instance = host.instance().map_err(|error| error.to_string())?;
    let mut options = MemoryOptions::default();
    options.limits.tree.file_bytes = 32 << 20;
    let python = python().program();
    options.programs.insert("python3".to_owned(), python);
    let sandbox = instance.add_memory(options).await;
    let sandbox = sandbox.map_err(|error| error.to_string())?;
    let command = "python3 -c '
open(\"fits\", \"w\").write(\"x\")
with open(\"huge\", \"wb\") as file: file.write(bytes(40 << 20))
print(\"written\")'; echo $?; ls";
    let (actual, _) = exec(&sandbox, command, two_minutes()).await?;
    let shown = format!("{command}\n{}", actual.stderr);
    equal(&&*actual.stdout, &"written\n1\nfits\n", &shown)?;
    let told = actual
        .stderr
        .starts_with("python3: cannot keep /workspace/huge: ");
    equal(&told, &true, &actual.stderr)?;
    let command = "python3 -c 'import os; print(os.listdir())'";
    check(&sandbox, command, &answer(0, "['fits']\n", "")).await
}

#[tokio::main(flavor = "current_thread")]
async fn more_than_a_call_may_add() -> Result<(), String> {
    let sandbox = sandbox(&none()).await?;
    let command = "python3 -c '
import os
def attempt(what):
    try: what()
    except OSError as error: print(error.strerror)
def fill():
    with open(\"a\", \"wb\", buffering=0) as file:
        while True: file.write(bytes(32 << 20))
attempt(fill)
print(os.path.getsize(\"a\") >> 20)
os.remove(\"a\")
attempt(lambda: os.truncate(open(\"b\", \"w\").name, 1 << 60))
deep = lambda: [(os.mkdir(\"d\"), os.chdir(\"d\")) for _ in range(300)]
attempt(deep)
attempt(lambda: open(\"n\" * 300, \"w\"))
attempt(lambda: [open(\"/dev/null\") for _ in range(2000)])
attempt(lambda: [open(f\"/workspace/o{n}\", \"w\") for n in range(2000)])
'; ls | head -2";
    let (actual, _) = exec(&sandbox, command, two_minutes()).await?;
    let lines: Vec<&str> = actual.stdout.lines().collect();
    let expected = [
        "No space left on device",
        "512",
        "No space left on device",
        "Filename too long",
        "Filename too long",
    ];
    equal(
        &lines.get(..5),
        &Some(&expected[..]),
        &format!("{actual:?}"),
    )
}

fn archives_that_are_none() -> Result<(), String> {
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    let way_out = "name the file python.tar.gz that `cargo xtask python` makes";
    let refused = |name: &str, content: Option<&[u8]>, problem: &str| {
        let path = directory.path().join(name);
        if let Some(content) = content {
            fs::write(&path, content).map_err(|error| error.to_string())?;
        }
        let said = match Python::builder(&path).no_cache().load() {
            Ok(_) => "it is one".to_owned(),
            Err(error) => error.to_string(),
        };
        let shown = path.display().to_string();
        match said.replace(&shown, "ARCHIVE") {
            said if said.starts_with(problem) && said.lines().count() == 1 => Ok(said),
            said => Err(format!("{name}\n  says      {said}\n  should be {problem}")),
        }
    };
    let whole = fs::read(archive()).map_err(|error| error.to_string())?;
    let missing = format!("there is no ARCHIVE: {way_out}");
    refused("missing.tar.gz", None, &missing)?;
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0xff;
    refused("flipped.tar.gz", Some(&flipped), "ARCHIVE is ")?;
    let half = &whole[..whole.len() / 2];
    refused("half.tar.gz", Some(half), "ARCHIVE is ")?;
    refused(
        "empty",
        Some(b""),
        &format!("ARCHIVE is not a tar archive: {way_out}"),
    )?;
    let no_wasm = packed(&[("python314.zip", b"PK")]);
    refused(
        "a",
        Some(&no_wasm),
        &format!("ARCHIVE holds no python.wasm: {way_out}"),
    )?;
    let no_library = packed(&[("python.wasm", b"\0asm\x01\0\0\0")]);
    refused(
        "b",
        Some(&no_library),
        &format!("ARCHIVE holds no python314.zip: {way_out}"),
    )?;
    let no_module = packed(&[("python.wasm", b"MZ"), ("python314.zip", b"PK")]);
    refused("c", Some(&no_module), "python.wasm in ARCHIVE cannot run: ")?;
    // A module that wants what no program gets: `(import "env" "system" (func))`.
    let alien = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x02\x0e\x01\x03env\x06system\0\0";
    let alien = packed(&[("python.wasm", alien), ("python314.zip", b"PK")]);
    let problem = "python.wasm in ARCHIVE is not the Python that this version runs: ";
    refused("d", Some(&alien), problem).map(drop)
}

fn packed(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, content) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        archive
            .append_data(&mut header, name, *content)
            .expect("written to memory");
    }
    let encoder = archive.into_inner().expect("written to memory");
    encoder.finish().expect("written to memory")
}

/// Loads through a cache of its own; says whether something was compiled.
fn compiles(dir: &Path) -> Result<bool, String> {
    let compiled = Arc::new(AtomicUsize::new(0));
    let count = compiled.clone();
    let python = Python::builder(archive())
        .cache_dir(dir)
        .on_compile(move || {
            count.fetch_add(1, Ordering::SeqCst);
        });
    python.load().map_err(|error| error.to_string())?;
    Ok(compiled.load(Ordering::SeqCst) == 1)
}

fn a_damaged_cache() -> Result<(), String> {
    // What the other tests compile, so that this compiles once.
    python();
    let root = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dir = root.path().join("programs");
    let copy = || -> std::io::Result<std::path::PathBuf> {
        fs::create_dir_all(&dir)?;
        let file = fs::read_dir(cache())?
            .next()
            .ok_or(std::io::ErrorKind::NotFound)??;
        let target = dir.join(file.file_name());
        fs::copy(file.path(), &target)?;
        Ok(target)
    };
    let file = copy().map_err(|error| error.to_string())?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(&dir, private).map_err(|error| error.to_string())?;
    }
    equal(&compiles(&dir)?, &false, "a whole cache")?;
    let mut content = fs::read(&file).map_err(|error| error.to_string())?;
    let middle = content.len() / 2;
    content[middle] ^= 1;
    fs::write(&file, &content).map_err(|error| error.to_string())?;
    equal(&compiles(&dir)?, &true, "a damaged cache")?;
    equal(&compiles(&dir)?, &false, "a repaired cache")
}
