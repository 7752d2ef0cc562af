//! What the system refuses while a run goes on: file sizes, directories that
//! are gone or too deep, bodies that nobody can read. The right exit code and a
//! sentence, and nothing half written.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::libc;
use serde_json::json;

use super::{Ran, command, finish, run_in, scratch, serve, shell};

/// No file of the process or its commands may grow beyond this, in bytes.
const LIMIT: u64 = 64 << 10;

fn limited(command: &mut Command) {
    limited_to(command, LIMIT);
}

fn limited_to(command: &mut Command, bytes: u64) {
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: setrlimit is safe between fork and exec; the pointer is valid.
    unsafe {
        command.pre_exec(move || {
            match libc::setrlimit(libc::RLIMIT_FSIZE as _, &raw const limit) {
                0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            }
        });
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

#[test]
fn files_beyond_the_limit_of_the_system_are_errors() {
    let directory = scratch();
    let old = "old\n";
    fs::write(directory.path().join("old"), old).expect("a file");
    let big = "x".repeat(usize::try_from(LIMIT).expect("64 bits") + 1);
    let write = |path: &str| {
        json!({"tool_calls": [{"name": "write_file",
            "arguments": {"file_path": path, "content": big}}]})
    };
    // The command gets the signal that the binary ignores: 128 + SIGXFSZ.
    let command_line = "head -c 100000 /dev/zero > cut; echo ended with $?";
    let model = serve(json!([
        write("old"), write("new"), shell(command_line), {"text": "done"},
    ]));
    let mut command = command(&model.url(), directory.path(), &["--json", "x"]);
    limited(&mut command);
    // The memory that the component starts from is a file to the system, and
    // larger than this limit.
    command.env("HERMITCRAB_CORE", "native");
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = "the file would be larger than the system allows (see `ulimit -f`)";
    assert_eq!(ran.stdout.matches(told).count(), 2, "{}", ran.stdout);
    let signal = 128 + libc::SIGXFSZ;
    let ended = format!("ended with {signal}");
    assert!(ran.stdout.contains(&ended), "{}", ran.stdout);
    assert_eq!(names(directory.path()), ["cut", "old"]);
    let kept = fs::read_to_string(directory.path().join("old"));
    assert_eq!(kept.expect("the old file"), old);
}

#[test]
fn a_tree_beyond_the_limit_of_the_system_leaves_no_file() {
    for out in ["tree", "tree.tar", "tree.tar.gz"] {
        let directory = scratch();
        // Nothing that compresses, and more than the limit, which the core's memory is not.
        let noise = "head -c 40000000 /dev/urandom > noise";
        let model = serve(json!([shell(noise), {"text": "done"}]));
        let arguments = ["--env", "memory", "--out", out, "x"];
        let mut command = command(&model.url(), directory.path(), &arguments);
        limited_to(&mut command, 32 << 20);
        let ran = finish(command, b"");
        assert_eq!(ran.code, Some(1), "{out}: {ran:?}");
        assert!(ran.stderr.contains(out), "{ran:?}");
        let left = names(directory.path());
        assert!(
            left.iter().all(|name| !name.starts_with("tree")),
            "{out}: {left:?}"
        );
    }
}

#[test]
fn a_limit_of_the_cost_needs_a_price() {
    let directory = scratch();
    let model = serve(json!([{"text": "done"}]));
    let arguments = ["--model", "nobody-knows", "--max-cost", "1", "x"];
    let ran = finish(command(&model.url(), directory.path(), &arguments), b"");
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let told = "hermitcrab: the price of the model nobody-knows is not known, so no limit";
    assert!(ran.stderr.starts_with(told), "{ran:?}");
    assert!(model.requests().is_empty());
    let config = directory.path().join("config.json");
    let prices = json!({"prices": {"nobody-knows": {"input": 1, "output": 2}}});
    fs::write(&config, prices.to_string()).expect("a file");
    let config = config.to_str().expect("UTF-8");
    let mut with = vec!["--config", config];
    with.extend(arguments);
    let ran = finish(command(&model.url(), directory.path(), &with), b"");
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
}

#[test]
fn a_last_answer_that_passes_the_limit_of_the_cost_is_told() {
    let usage = json!({"input_tokens": 10_000, "output_tokens": 100});
    for (most, is_passed) in [("0.0000001", true), ("1000", false)] {
        let model = serve(json!([{"text": "done", "usage": usage}]));
        let arguments = ["--max-cost", most, "x"];
        let ran = finish(command(&model.url(), scratch().path(), &arguments), b"");
        assert_eq!((ran.code, &*ran.stdout), (Some(0), "done\n"), "{ran:?}");
        match is_passed {
            true => {
                assert!(
                    ran.stderr.starts_with("! the session has cost 0."),
                    "{ran:?}"
                );
                assert!(ran.stderr.contains("the limit of 0.0000001: "), "{ran:?}");
            }
            false => assert_eq!(ran.stderr, ""),
        }
    }
}

#[test]
fn a_limit_below_the_memory_of_the_core_is_named() {
    let directory = scratch();
    let mut command = command("http://127.0.0.1:1", directory.path(), &["x"]);
    limited(&mut command);
    let ran = finish(command, b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(
        ran.stderr.contains("(`ulimit -f`) is smaller; raise it"),
        "{ran:?}"
    );
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let directory = scratch();
    let work = directory.path().join("work");
    fs::create_dir(&work).expect("a directory");
    let steps = json!([shell("rm -rf \"$PWD\""), shell("ls"), {"text": "done"}]);
    let ran = run_in(&work, steps, &["x"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let work = fs::canonicalize(directory.path())
        .expect("a path")
        .join("work");
    let told = format!(
        "cannot run a command: the working directory `{}` is gone\n",
        work.display()
    );
    assert!(ran.stdout.contains(&told), "{}", ran.stdout);
}

#[test]
fn directories_too_deep_for_the_sandbox_are_wrong_usage() {
    let directory = scratch();
    let mut deep = directory.path().to_owned();
    for _ in 0..400 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).expect("directories");
    let ran = run_in(
        directory.path(),
        json!([{"text": "never"}]),
        &["--env", "memory", "x"],
    );
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.len() < 400, "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "d into the sandbox: it lies more than 250 directories deep; add it to .gitignore"
        ),
        "{}",
        ran.stderr
    );
}

/// Answers every request with `answer`.
fn serve_raw(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.expect("a client"));
            let mut length = 0;
            loop {
                let mut line = String::new();
                if stream.read_line(&mut line).is_err() || line.trim_end().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or_default();
                }
            }
            let _ = stream.read_exact(&mut vec![0; length]);
            let _ = stream.get_mut().write_all(&answer);
        }
    });
    url
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn check_answer(answer: Vec<u8>, told: &str) -> Ran {
    let ran = finish(command(&serve_raw(answer), scratch().path(), &["x"]), b"");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(
        ran.stderr.lines().all(|line| line.len() < 400),
        "{}",
        ran.stderr
    );
    ran
}

#[test]
fn answers_that_nest_too_deep_are_told_in_a_line() {
    let bomb = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    let error = format!("{{\"error\":{bomb}}}");
    check_answer(answer("400 Bad Request", "", error.as_bytes()), "[[[[[[[[…");
    let event = format!(
        "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"content_block\":{bomb}}}\n\n"
    );
    let stream = "content-type: text/event-stream\r\n";
    check_answer(answer("200 OK", stream, event.as_bytes()), "[[[[[[[[…");
}

#[test]
fn answers_in_an_encoding_that_nobody_asked_for_are_named() {
    let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n";
    let body = b"\x1f\x8b\x08\0\0\0\0\0\0\x03";
    let ran = check_answer(
        answer("200 OK", headers, body),
        "answered with a body in the encoding gzip, which no request asks for; turn compression \
         off in the server or the proxy before it",
    );
    assert!(!ran.stderr.contains("trying again"), "{}", ran.stderr);
    let ran = check_answer(answer("400 Bad Request", headers, body), "400");
    assert!(!ran.stderr.contains('\u{fffd}'), "{}", ran.stderr);
}
