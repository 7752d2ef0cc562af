//! File calls.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use hermitcrab::environment::{
    DirEntry, EnvironmentCall, EnvironmentErrorKind as Kind, EnvironmentReply,
};
use hermitcrab_host::HostEnvironment;

use crate::{GUARD, command, fresh, run, with_files};

const MAX: u64 = 1 << 20;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Asserts what a read of `path` fails with, after `prepare`.
async fn check_read_error(path: &str, prepare: &str, kind: Kind, message: &str) {
    let (_directory, environment) = fresh();
    assert_eq!(
        run(&environment, command(prepare)).await.status.exit_code,
        0
    );
    let error = tokio::time::timeout(GUARD, environment.read(path, 10))
        .await
        .expect("the read hangs")
        .unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
}

#[tokio::test]
async fn bytes_come_back_as_they_are() {
    let (_directory, environment) = fresh();
    let content = Bytes::from_static(b"\xef\xbb\xbfa\r\nb\0\xff\xfe\r");
    environment
        .write("deep/er/file", content.clone())
        .await
        .unwrap();
    assert_eq!(
        environment.read("deep/er/file", MAX).await.unwrap(),
        content
    );
}

#[tokio::test]
async fn large_files_too() {
    let (_directory, environment) = fresh();
    let content = Bytes::from(vec![7; 3 << 20]);
    environment.write("large", content.clone()).await.unwrap();
    assert_eq!(environment.read("large", 3 << 20).await.unwrap(), content);
    let error = environment.read("large", (3 << 20) - 1).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
}

#[tokio::test]
async fn read_missing() {
    let message = "cannot read `none`: no such file or directory";
    check_read_error("none", "true", Kind::NotFound, message).await;
}

#[tokio::test]
async fn read_directory() {
    let message = "cannot read `d`: it is a directory";
    check_read_error("d", "mkdir d", Kind::IsDirectory, message).await;
}

#[tokio::test]
async fn read_below_a_file() {
    let message = "cannot read `f/x`: a part of the path is not a directory";
    check_read_error("f/x", "touch f", Kind::NotDirectory, message).await;
}

#[tokio::test]
async fn read_too_large() {
    let message = "cannot read `f`: it is larger than 10 bytes";
    check_read_error("f", "echo 0123456789 > f", Kind::TooLarge, message).await;
}

#[tokio::test]
async fn read_pipe() {
    let message = "cannot read `p`: it is a named pipe, not a regular file";
    check_read_error("p", "mkfifo p", Kind::InvalidInput, message).await;
}

#[tokio::test]
async fn read_device() {
    let message = "cannot read `/dev/zero`: it is a device, not a regular file";
    check_read_error("/dev/zero", "true", Kind::InvalidInput, message).await;
}

#[tokio::test]
async fn read_nul() {
    let message = "the path `a\\0b` holds a NUL byte";
    check_read_error("a\0b", "true", Kind::InvalidInput, message).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_that_says_it_is_empty_is_read() {
    let (_directory, environment) = fresh();
    let content = environment.read("/proc/self/status", MAX).await.unwrap();
    assert!(content.starts_with(b"Name:"));
    let error = environment.read("/proc/self/status", 4).await.unwrap_err();
    assert_eq!(error.kind, Kind::TooLarge);
}

#[tokio::test]
async fn home_is_not_expanded() {
    let (directory, environment) = fresh();
    environment
        .write("~/x", Bytes::from_static(b"x"))
        .await
        .unwrap();
    assert!(directory.path().join("~/x").exists());
}

#[tokio::test]
async fn write_keeps_permissions_and_leaves_nothing_beside() {
    for bits in [0o755, 0o600, 0o664] {
        let (directory, environment) = with_files(&[("f", "a longer old text")]);
        let file = directory.path().join("f");
        std::fs::set_permissions(&file, PermissionsExt::from_mode(bits)).unwrap();
        environment
            .write("f", Bytes::from_static(b"new"))
            .await
            .unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"new");
        assert_eq!(mode(&file), bits);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}

#[tokio::test]
async fn write_follows_a_link() {
    let (directory, environment) = with_files(&[("sub/target", "old")]);
    symlink("sub/target", directory.path().join("link")).unwrap();
    environment
        .write("link", Bytes::from_static(b"new"))
        .await
        .unwrap();
    assert!(directory.path().join("link").is_symlink());
    assert_eq!(
        std::fs::read(directory.path().join("sub/target")).unwrap(),
        b"new"
    );
}

#[tokio::test]
async fn write_through_a_link_to_nowhere_makes_its_target() {
    let (directory, environment) = fresh();
    symlink("target", directory.path().join("link")).unwrap();
    environment
        .write("link", Bytes::from_static(b"new"))
        .await
        .unwrap();
    assert!(directory.path().join("link").is_symlink());
    assert_eq!(
        std::fs::read(directory.path().join("target")).unwrap(),
        b"new"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn write_keeps_attributes() {
    let (directory, environment) = with_files(&[("a", "before")]);
    let path = directory.path().join("a");
    let attribute = |call: &str| {
        let line = format!(
            "python3 -c 'import os, sys; print(os.{call})' {}",
            path.display()
        );
        run(&environment, command(&line))
    };
    let set = attribute("setxattr(sys.argv[1], \"user.note\", b\"kept\")").await;
    if set.status.exit_code != 0 {
        println!(
            "write_keeps_attributes: this file system has none: {}",
            set.stderr
        );
        return;
    }
    environment
        .write("a", Bytes::from_static(b"after"))
        .await
        .unwrap();
    let kept = attribute("getxattr(sys.argv[1], \"user.note\")").await;
    assert_eq!(kept.stdout, "b'kept'\n", "{kept:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "after");
}

#[tokio::test]
async fn write_keeps_hard_links_together() {
    for new in ["longer than before", "s", ""] {
        let (directory, environment) = with_files(&[("a", "before")]);
        std::fs::hard_link(directory.path().join("a"), directory.path().join("b")).unwrap();
        environment
            .write("a", Bytes::from_static(new.as_bytes()))
            .await
            .unwrap();
        assert_eq!(
            std::fs::read_to_string(directory.path().join("b")).unwrap(),
            new
        );
        assert_eq!(
            std::fs::metadata(directory.path().join("b"))
                .unwrap()
                .nlink(),
            2
        );
    }
}

#[tokio::test]
async fn write_to_a_directory_or_a_pipe_is_refused() {
    let (_directory, environment) = fresh();
    run(&environment, command("mkdir d; mkfifo p")).await;
    for (path, kind) in [("d", Kind::IsDirectory), ("p", Kind::InvalidInput)] {
        let write = environment.write(path, Bytes::from_static(b"x"));
        let error = tokio::time::timeout(GUARD, write)
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
    }
}

#[tokio::test]
async fn a_read_only_file_is_not_replaced() {
    if run(&fresh().1, command("id -u")).await.stdout == "0\n" {
        // Root may write everything; the rule is the system's.
        return;
    }
    let (directory, environment) = with_files(&[("f", "old")]);
    let file = directory.path().join("f");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o444)).unwrap();
    let error = environment
        .write("f", Bytes::from_static(b"new"))
        .await
        .unwrap_err();
    assert_eq!(error.kind, Kind::PermissionDenied);
    assert_eq!(std::fs::read(&file).unwrap(), b"old");
}

#[tokio::test]
async fn stat_tells_files_from_directories() {
    let (directory, environment) = with_files(&[("d/f", "12345")]);
    symlink("d/f", directory.path().join("l")).unwrap();
    let file = environment.stat("d/f").await.unwrap();
    assert_eq!((file.is_dir, file.size), (false, 5));
    assert!(file.modified_ms.is_some());
    assert_eq!(environment.stat("l").await.unwrap(), file);
    let directory = environment.stat("d").await.unwrap();
    assert_eq!((directory.is_dir, directory.size), (true, 0));
    let error = environment.stat("none").await.unwrap_err();
    assert_eq!(
        error.message,
        "cannot look at `none`: no such file or directory"
    );
}

async fn check_list(path: &str, depth: u32, expected: &[(&str, bool, Option<u64>)]) {
    let (directory, environment) = with_files(&[
        ("b/x/deep", "1"),
        ("b/y", "22"),
        ("b.txt", "333"),
        (".hidden", ""),
    ]);
    symlink("b", directory.path().join("to-dir")).unwrap();
    symlink("b/y", directory.path().join("to-file")).unwrap();
    symlink("nowhere", directory.path().join("to-nothing")).unwrap();
    let listed = environment.list(path, depth).await.unwrap();
    let entries: Vec<_> = listed
        .entries
        .iter()
        .map(
            |DirEntry {
                 path, is_dir, size, ..
             }| (path.as_str(), *is_dir, *size),
        )
        .collect();
    assert_eq!((entries.as_slice(), listed.truncated), (expected, false));
}

const TOP: [(&str, bool, Option<u64>); 6] = [
    (".hidden", false, Some(0)),
    ("b", true, None),
    ("b.txt", false, Some(3)),
    ("to-dir", false, None),
    ("to-file", false, Some(2)),
    ("to-nothing", false, None),
];

#[tokio::test]
async fn list_one_level() {
    check_list("", 1, &TOP).await;
}

#[tokio::test]
async fn depth_zero_is_one() {
    check_list(".", 0, &TOP).await;
}

#[tokio::test]
async fn list_two_levels_sorted_as_strings() {
    let mut expected = TOP.to_vec();
    expected.splice(3..3, [("b/x", true, None), ("b/y", false, Some(2))]);
    check_list("", 2, &expected).await;
}

#[tokio::test]
async fn list_a_subdirectory_to_the_bottom() {
    let expected = [
        ("x", true, None),
        ("x/deep", false, Some(1)),
        ("y", false, Some(2)),
    ];
    check_list("b", 9, &expected).await;
}

#[tokio::test]
async fn list_errors() {
    let (_directory, environment) = with_files(&[("f", "")]);
    let error = environment.list("f", 1).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (Kind::NotDirectory, "cannot list `f`: it is not a directory")
    );
    assert_eq!(
        environment.list("none", 1).await.unwrap_err().kind,
        Kind::NotFound
    );
}

#[tokio::test]
async fn remove_does_not_follow_links() {
    let (directory, environment) = with_files(&[("keep/f", "x"), ("gone/a/b", "x")]);
    symlink("keep", directory.path().join("gone/link")).unwrap();
    symlink("keep", directory.path().join("link")).unwrap();
    environment.remove("link").await.unwrap();
    environment.remove("gone").await.unwrap();
    assert!(directory.path().join("keep/f").exists());
    assert!(!directory.path().join("gone").exists());
    let error = environment.remove("gone").await.unwrap_err();
    assert_eq!(
        error.message,
        "cannot remove `gone`: no such file or directory"
    );
}

#[tokio::test]
async fn rename_replaces_and_makes_parents() {
    let (directory, environment) = with_files(&[("a", "1"), ("b", "2")]);
    environment.rename("a", "b").await.unwrap();
    environment.rename("b", "new/place/c").await.unwrap();
    assert_eq!(
        std::fs::read(directory.path().join("new/place/c")).unwrap(),
        b"1"
    );
    let error = environment.rename("none", "x/y").await.unwrap_err();
    assert_eq!(error.kind, Kind::NotFound);
    assert!(!directory.path().join("x").exists());
}

#[tokio::test]
async fn make_dir_is_fine_twice_but_not_over_a_file() {
    let (directory, environment) = with_files(&[("f", "")]);
    environment.make_dir("a/b/c").await.unwrap();
    environment.make_dir("a/b/c").await.unwrap();
    assert!(directory.path().join("a/b/c").is_dir());
    let error = environment.make_dir("f").await.unwrap_err();
    assert_eq!(error.kind, Kind::NotDirectory);
}

#[tokio::test]
async fn calls_as_data_reach_the_methods() {
    let (_directory, environment) = fresh();
    let write = EnvironmentCall::Write {
        path: "f".to_owned(),
        content: Bytes::from_static(b"x"),
    };
    let read = EnvironmentCall::Read {
        path: "f".to_owned(),
        max_bytes: 1,
    };
    assert_eq!(
        environment.call(EnvironmentCall::Initialize).await,
        Ok(EnvironmentReply::Done)
    );
    assert_eq!(environment.call(write).await, Ok(EnvironmentReply::Done));
    let bytes = EnvironmentReply::Bytes(Bytes::from_static(b"x"));
    assert_eq!(environment.call(read).await, Ok(bytes));
    assert_eq!(
        environment.call(EnvironmentCall::Cleanup).await,
        Ok(EnvironmentReply::Done)
    );
}

/// A file size limit stands for a full disk: both stop a write half way. It
/// holds for a whole process, so that the write happens in a child: this test
/// binary, told by a variable which file to write.
#[tokio::test]
async fn a_full_disk_loses_nothing() {
    const TARGET: &str = "HERMITCRAB_TEST_TARGET";
    if let Ok(target) = std::env::var(TARGET) {
        let (_directory, environment) = fresh();
        let new = Bytes::from(vec![b'n'; 200_000]);
        let error = environment.write(&target, new).await.unwrap_err();
        assert!(error.message.starts_with("cannot write"), "{error}");
        return;
    }
    for hard_link in [false, true] {
        let old = "o".repeat(10_000);
        let (directory, environment) = with_files(&[("f", &old)]);
        if hard_link {
            std::fs::hard_link(directory.path().join("f"), directory.path().join("g")).unwrap();
        }
        let test = std::env::current_exe().unwrap();
        let line = format!(
            "trap '' XFSZ; ulimit -f 100; {TARGET}=\"$PWD/f\" TMPDIR=/tmp '{}' --exact \
             files::a_full_disk_loses_nothing",
            test.display()
        );
        let ran = run(&environment, command(line)).await;
        assert_eq!(ran.status.exit_code, 0, "{ran:?}");
        assert_eq!(
            std::fs::read_to_string(directory.path().join("f")).unwrap(),
            old
        );
        let names = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(
            names,
            1 + usize::from(hard_link),
            "something is left beside"
        );
    }
}

#[tokio::test]
async fn readers_never_see_half_a_file() {
    let (_directory, environment) = fresh();
    let environment = &environment;
    let contents = [vec![b'a'; 100_000], vec![b'b'; 150_000]].map(Bytes::from);
    environment.write("f", contents[0].clone()).await.unwrap();
    let write = async {
        for round in 0..200 {
            environment
                .write("f", contents[round % 2].clone())
                .await
                .unwrap();
            tokio::time::sleep(Duration::ZERO).await;
        }
    };
    let read = async {
        for _ in 0..200 {
            let content = environment.read("f", MAX).await.unwrap();
            assert!(contents.contains(&content), "{} bytes", content.len());
            tokio::time::sleep(Duration::ZERO).await;
        }
    };
    tokio::join!(write, read);
}
