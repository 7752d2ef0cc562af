//! Fenced commands: what they may change, and that the network is off.
#![cfg(target_os = "linux")]

use std::net::TcpListener;
use std::path::PathBuf;

use bytes::Bytes;
use hermitcrab::environment::EnvironmentErrorKind as Kind;
use hermitcrab_host::{HostEnvironment, LocalBuilder, LocalEnvironment, Sandbox};
use tempfile::TempDir;

use crate::{command, run};

/// A folder, one beside it that is outside, and one for temporary files.
struct Place {
    root: TempDir,
    inside: PathBuf,
    outside: PathBuf,
    temporary: PathBuf,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let path = root.path().join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (inside, outside, temporary) = (of("in"), of("out"), of("tmp"));
        std::fs::write(outside.join("kept"), "kept").unwrap();
        std::fs::hard_link(outside.join("kept"), root.path().join("kept")).unwrap();
        Self {
            root,
            inside,
            outside,
            temporary,
        }
    }

    fn builder(&self, sandbox: Sandbox) -> LocalBuilder {
        LocalEnvironment::builder(&self.inside)
            .sandbox(sandbox)
            .temporary([self.temporary.clone()])
            .env("TMPDIR", &self.temporary)
            .env("OUTSIDE", &self.outside)
    }

    /// Nothing outside has changed.
    #[track_caller]
    fn assert_kept(&self, by: &str) {
        let kept = std::fs::read_to_string(self.outside.join("kept")).unwrap();
        assert_eq!(kept, "kept", "{by}");
        assert_eq!(std::fs::read_dir(&self.outside).unwrap().count(), 1, "{by}");
    }
}

/// Runs `line` in a folder that has one beside it, `$OUTSIDE`, outside of the
/// temporary directories; `ends_well` says whether it exits with 0. The output of
/// a refused command says what is allowed.
async fn check(sandbox: Sandbox, line: &str, ends_well: bool) {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let environment = place
        .builder(sandbox)
        .env("PORT", listener.local_addr().unwrap().port().to_string())
        .build()
        .unwrap();
    assert_eq!(environment.unfenced(), None);
    let ran = run(&environment, command(line)).await;
    assert_eq!(ran.status.exit_code == 0, ends_well, "{line}: {ran:?}");
    assert_eq!(
        ran.stderr
            .contains("hermitcrab: the sandbox of this session allows"),
        !ends_well,
        "{line}: {ran:?}"
    );
    if sandbox != Sandbox::Off {
        place.assert_kept(line);
    }
}

#[tokio::test]
async fn a_workspace_can_be_written_to() {
    for line in [
        "echo a > a && mv a b && ln b c && rm b c && echo x > /dev/null",
        "f=$(mktemp) && echo a > $f && rm $f",
        "git init -q && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm a",
        "cat $OUTSIDE/kept",
    ] {
        check(Sandbox::WorkspaceWrite, line, true).await;
    }
}

#[tokio::test]
async fn nothing_else_can_be_changed() {
    for line in [
        "echo a > $OUTSIDE/kept",
        "echo a > $OUTSIDE/new",
        "rm $OUTSIDE/kept",
        "truncate -s 0 $OUTSIDE/kept",
        "ln -s $OUTSIDE link && echo a > link/kept",
        "echo a > /proc/self/root$OUTSIDE/kept",
        "ln $OUTSIDE/kept linked && echo a > linked",
        "echo a > a && mv -T a $OUTSIDE/kept",
        "bash -c '(setsid bash -c \"echo a > $OUTSIDE/kept\")'",
    ] {
        check(Sandbox::WorkspaceWrite, line, false).await;
        check(Sandbox::ReadOnly, line, false).await;
    }
    check(Sandbox::ReadOnly, "echo a > a", false).await;
    check(Sandbox::ReadOnly, "mktemp", false).await;
    for line in [
        "chmod 700 $OUTSIDE/kept",
        "chmod 700 .",
        "touch -d 2001-01-01 $OUTSIDE/kept",
    ] {
        check(Sandbox::ReadOnly, line, false).await;
    }
    check(Sandbox::ReadOnly, "cat $OUTSIDE/kept > /dev/null", true).await;
}

#[tokio::test]
async fn the_network_is_off() {
    let connect = "exec 3<> /dev/tcp/127.0.0.1/$PORT";
    check(Sandbox::Off, connect, true).await;
    check(Sandbox::WorkspaceWrite, connect, false).await;
    check(Sandbox::ReadOnly, connect, false).await;
}

#[tokio::test]
async fn the_network_can_be_had() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let environment = place
        .builder(Sandbox::WorkspaceWrite)
        .network()
        .build()
        .unwrap();
    let line = format!("exec 3<> /dev/tcp/127.0.0.1/{port}");
    assert_eq!(run(&environment, command(&line)).await.status.exit_code, 0);
    let ran = run(&environment, command("echo a > $OUTSIDE/kept")).await;
    assert_ne!(ran.status.exit_code, 0);
    assert!(!ran.stderr.contains("no network"), "{}", ran.stderr);
}

#[tokio::test]
async fn services_of_the_machine_are_out_of_reach() {
    // A socket of the file system, as of a container engine, which would do anything.
    let place = Place::new();
    let path = place.inside.join("engine.sock");
    let _engine = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let environment = place.builder(Sandbox::WorkspaceWrite).build().unwrap();
    let line = "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1)); \
                socket.socket(socket.AF_UNIX).connect(\"engine.sock\")'";
    let ran = run(&environment, command(line)).await;
    assert_ne!(ran.status.exit_code, 0, "{ran:?}");
    assert_eq!(ran.stdout, "b'x'\n", "{ran:?}");
    // One that is sent to without connecting, as of a log.
    let datagrams = std::os::unix::net::UnixDatagram::bind(place.inside.join("log.sock")).unwrap();
    let line = "python3 -c 'import socket; \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b\"x\", \"log.sock\")'";
    let ran = run(&environment, command(line)).await;
    assert_ne!(ran.status.exit_code, 0, "{ran:?}");
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0]).is_err());
    // Nor can it end who is outside.
    let line = format!("kill -0 {}", std::process::id());
    assert_ne!(run(&environment, command(&line)).await.status.exit_code, 0);
}

#[tokio::test]
async fn file_tools_have_the_same_bounds() {
    let place = Place::new();
    let environment = place.builder(Sandbox::WorkspaceWrite).build().unwrap();
    let outside = place.outside.to_str().unwrap();
    std::os::unix::fs::symlink(&place.outside, place.inside.join("link")).unwrap();
    std::os::unix::fs::symlink(place.outside.join("kept"), place.inside.join("file")).unwrap();
    let content = || Bytes::from_static(b"changed");
    for path in [
        format!("{outside}/kept"),
        format!("{outside}/new"),
        format!("{outside}/new/deep/er"),
        "../out/kept".to_owned(),
        "../out/new".to_owned(),
        "link/kept".to_owned(),
        "link/new".to_owned(),
        "file".to_owned(),
        format!("/proc/self/root{outside}/kept"),
        "x/../../out/new".to_owned(),
    ] {
        let error = environment.write(&path, content()).await.unwrap_err();
        if path != "x/../../out/new" {
            assert_eq!(error.kind, Kind::PermissionDenied, "{path}: {error}");
            assert!(error.message.contains("--allow-write"), "{path}: {error}");
        }
        place.assert_kept(&path);
    }
    environment.write("a/b/new", content()).await.unwrap();
    environment.rename("a/b/new", "a/moved").await.unwrap();
    for error in [
        environment.rename("a/moved", "../out/moved").await,
        environment.rename("../out/kept", "a/kept").await,
        environment.remove("../out/kept").await,
        environment.remove("link/kept").await,
        environment.make_dir("../out/dir").await,
    ] {
        assert_eq!(error.unwrap_err().kind, Kind::PermissionDenied);
        place.assert_kept("a change of names");
    }
    environment.remove("link").await.unwrap();
    environment.remove("a").await.unwrap();
    environment.make_dir("a").await.unwrap();
    place.assert_kept("removals inside");
    assert_eq!(environment.read("../out/kept", 100).await.unwrap(), "kept");

    let environment = place.builder(Sandbox::ReadOnly).build().unwrap();
    let error = environment.write("new", content()).await.unwrap_err();
    assert_eq!(error.kind, Kind::PermissionDenied, "{error}");
    assert!(error.message.contains("allows no changes"), "{error}");
    assert!(place.root.path().join("kept").exists());
}

#[tokio::test]
async fn more_can_be_allowed() {
    let place = Place::new();
    let environment = place
        .builder(Sandbox::WorkspaceWrite)
        .writable(place.outside.join("kept"))
        .writable(place.root.path().join("missing"))
        .build()
        .unwrap();
    let ran = run(&environment, command("echo more >> $OUTSIDE/kept")).await;
    assert_eq!(ran.status.exit_code, 0, "{ran:?}");
    let ran = run(&environment, command("touch $OUTSIDE/new")).await;
    assert_ne!(ran.status.exit_code, 0, "{ran:?}");
    let path = place.outside.join("kept");
    environment
        .write(path.to_str().unwrap(), Bytes::from_static(b"tools"))
        .await
        .unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), "tools");
}

/// A link that is turned to the outside again and again leads no write there.
#[tokio::test(flavor = "multi_thread")]
async fn races_lead_nowhere() {
    let place = Place::new();
    let environment = place.builder(Sandbox::WorkspaceWrite).build().unwrap();
    let inside = place.inside.clone();
    let outside = place.outside.clone();
    std::fs::create_dir(inside.join("real")).unwrap();
    std::os::unix::fs::symlink("real", inside.join("turning")).unwrap();
    let turning = std::thread::spawn(move || {
        for turn in 0..2_000 {
            let target = match turn % 2 {
                0 => inside.join("real"),
                _ => outside.clone(),
            };
            let next = inside.join("next");
            std::os::unix::fs::symlink(target, &next).unwrap();
            std::fs::rename(&next, inside.join("turning")).unwrap();
        }
    });
    let mut written = 0;
    while !turning.is_finished() {
        for path in ["turning/kept", "turning/new"] {
            let wrote = environment.write(path, Bytes::from_static(b"changed"));
            written += u32::from(wrote.await.is_ok());
        }
    }
    turning.join().unwrap();
    place.assert_kept("a race");
    assert!(written > 0, "no write came through at all");
}
