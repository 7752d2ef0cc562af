//! The calls of a program, one by one, over a small tree and a small memory.

mod links;
mod random;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hermitcrab::environment::{FileChange, FileNode};

use super::guest::{CallResult, Guest};
use super::*;
use crate::program::tree::{Device, Room};

/// Where arguments of calls lie in the memory, and where answers go.
const PATH: u32 = 0;
const TO: u32 = 512;
const BUFFERS: u32 = 1024;
const DATA: u32 = 2048;
const RESULT: u32 = 8000;

struct Fixture {
    system: System,
    memory: Vec<u8>,
}

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let mut tree = Tree::new(Room::default());
    let changes = files.iter().map(|(path, content)| {
        let content = Bytes::copy_from_slice(content.as_bytes());
        FileChange::new(*path, FileNode::File(content))
    });
    tree.apply(changes.collect(), 1);
    tree.mount("/lib/own.zip", Bytes::from_static(b"own"));
    tree.mark();
    let system = System::new(Start {
        tree,
        args: vec!["p".to_owned(), "é".to_owned()],
        env: BTreeMap::from([("A".to_owned(), "1".to_owned())]),
        stdin: Bytes::from_static(b"input"),
        output_bytes: 16,
        stop: Stop::default(),
        here: None,
    });
    Fixture {
        system,
        memory: vec![0; 8192],
    }
}

impl Fixture {
    fn call(&mut self, call: impl FnOnce(&mut System, &mut Guest) -> CallResult) -> CallResult {
        call(&mut self.system, &mut Guest(&mut self.memory))
    }

    fn text(&mut self, at: u32, text: &str) -> u32 {
        let at = at as usize;
        self.memory[at..at + text.len()].copy_from_slice(text.as_bytes());
        text.len() as u32
    }

    fn result(&mut self) -> u32 {
        Guest(&mut self.memory).u32(RESULT).expect("in the memory")
    }

    /// Opens with `oflags` and every right but, for directories, that to write.
    fn open(&mut self, fd: u32, path: &str, how: u32) -> Result<u32, Fault> {
        let length = self.text(PATH, path);
        self.call(|system, guest| {
            system.path_open(guest, fd, 1, PATH, length, how, 0, 0, 0, RESULT)
        })?;
        Ok(self.result())
    }

    fn on_path(
        &mut self,
        path: &str,
        call: impl FnOnce(&mut System, &mut Guest, u32) -> CallResult,
    ) -> CallResult {
        let length = self.text(PATH, path);
        self.call(|system, guest| call(system, guest, length))
    }

    fn link(&mut self, target: &str, path: &str) -> CallResult {
        let (target_length, length) = (self.text(TO, target), self.text(PATH, path));
        self.call(|system, guest| system.path_symlink(guest, TO, target_length, 3, PATH, length))
    }

    fn read_link(&mut self, path: &str, room: u32) -> Result<String, Fault> {
        self.on_path(path, |system, guest, length| {
            system.path_readlink(guest, 3, PATH, length, DATA, room, RESULT)
        })?;
        let length = self.result();
        Ok(Guest(&mut self.memory).text(DATA, length)?)
    }

    /// Type and size, as `stat` (1) or `lstat` (0) sees them.
    fn stat(&mut self, path: &str, follow: u32) -> Result<(u8, u64), Fault> {
        self.on_path(path, |system, guest, length| {
            system.path_filestat_get(guest, 3, follow, PATH, length, RESULT)
        })?;
        let guest = Guest(&mut self.memory);
        Ok((guest.u8(RESULT + 16)?, guest.u64(RESULT + 32)?))
    }

    fn rename(&mut self, from: &str, to: &str) -> CallResult {
        let (from, to) = (self.text(PATH, from), self.text(TO, to));
        self.call(|system, guest| system.path_rename(guest, 3, PATH, from, 3, TO, to))
    }

    /// One buffer at `DATA`.
    fn buffer(&mut self, length: u32) {
        let mut guest = Guest(&mut self.memory);
        guest.put_u32(BUFFERS, DATA).expect("in the memory");
        guest.put_u32(BUFFERS + 4, length).expect("in the memory");
    }

    fn read(&mut self, fd: u32, length: u32) -> Result<String, Fault> {
        self.buffer(length);
        self.call(|system, guest| system.fd_read(guest, fd, BUFFERS, 1, RESULT))?;
        let length = self.result();
        let guest = Guest(&mut self.memory);
        let bytes = guest.bytes(DATA, length)?;
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }

    fn write(&mut self, fd: u32, text: &str) -> Result<u32, Fault> {
        let length = self.text(DATA, text);
        self.buffer(length);
        self.call(|system, guest| system.fd_write(guest, fd, BUFFERS, 1, RESULT))?;
        Ok(self.result())
    }

    /// Names in a directory, read in pieces of `length` bytes as a program does.
    fn names(&mut self, fd: u32, length: u32) -> Vec<String> {
        let mut names = Vec::new();
        let mut cookie = 0;
        loop {
            self.call(|system, guest| system.fd_readdir(guest, fd, DATA, length, cookie, RESULT))
                .expect("a directory");
            let used = self.result();
            let guest = Guest(&mut self.memory);
            let mut at = 0;
            while at + 24 <= used {
                let name_length = guest.u32(DATA + at + 16).expect("a length");
                if at + 24 + name_length > used {
                    break;
                }
                cookie = guest.u64(DATA + at).expect("a cookie");
                let name = guest.bytes(DATA + at + 24, name_length).expect("a name");
                names.push(String::from_utf8_lossy(name).into_owned());
                at += 24 + name_length;
            }
            if used < length {
                return names;
            }
        }
    }
}

fn refused<T>(errno: Errno) -> Result<T, Fault> {
    Err(Fault::Errno(errno))
}

#[test]
fn paths_start_at_a_directory_and_stay_in_the_tree() {
    let mut fixture = fixture(&[("/a/b", "1"), ("/c", "2")]);
    let a = fixture.open(3, "a", 0).expect("a directory");
    for (fd, path, expected) in [
        (3, "a/b", Ok("1")),
        (3, "a//./b", Ok("1")),
        (3, "a/../c", Ok("2")),
        (3, "../../../c", Ok("2")),
        (a, "b", Ok("1")),
        (a, "../c", Ok("2")),
        (a, "../../../../c", Ok("2")),
        (3, "/c", Err(Errno::Perm)),
        (3, "", Err(Errno::NoEnt)),
        (3, "none", Err(Errno::NoEnt)),
        (3, "none/..", Err(Errno::NoEnt)),
        (3, "c/", Err(Errno::NotDir)),
        (3, "c/..", Err(Errno::NotDir)),
        (3, "c/x", Err(Errno::NotDir)),
        (0, "c", Err(Errno::BadF)),
        (99, "c", Err(Errno::BadF)),
    ] {
        let opened = fixture.open(fd, path, 0);
        let read = opened.and_then(|fd| fixture.read(fd, 100));
        let expected = expected.map(str::to_owned).map_err(Fault::Errno);
        assert_eq!(read, expected, "{path}");
    }
    let file = fixture.open(3, "c", 0).expect("a file");
    assert_eq!(fixture.open(file, "x", 0), refused(Errno::NotDir));
}

#[test]
fn opening_has_its_ways() {
    let mut fixture = fixture(&[("/a/b", "1")]);
    for (path, how, expected) in [
        ("new", 0, Err(Errno::NoEnt)),
        ("new", 1 | 2, Err(Errno::Inval)),
        ("a/b", 1 | 4, Err(Errno::Exist)),
        ("a/b", 2, Err(Errno::NotDir)),
        ("lib/own.zip", 8, Err(Errno::RoFs)),
        ("a", 2, Ok(())),
        ("a/b", 8, Ok(())),
        ("new", 1, Ok(())),
    ] {
        let opened = fixture.open(3, path, how).map(drop);
        assert_eq!(opened, expected.map_err(Fault::Errno), "{path} {how}");
    }
    let length = fixture.text(PATH, "a");
    let to_write = fixture
        .call(|system, guest| system.path_open(guest, 3, 1, PATH, length, 0, 1 << 6, 0, 0, RESULT));
    assert_eq!(to_write, refused(Errno::IsDir));
    let nowhere = fixture
        .call(|system, guest| system.path_open(guest, 3, 1, PATH, length, 0, 0, 0, 0, u32::MAX));
    assert_eq!(nowhere, refused(Errno::Fault));
}

#[test]
fn files_that_are_open_are_numbered_from_below_and_bounded() {
    let mut fixture = fixture(&[("/a", "1")]);
    assert_eq!(fixture.open(3, "a", 0), Ok(4));
    assert_eq!(fixture.open(3, "a", 0), Ok(5));
    assert_eq!(
        fixture.call(|system, guest| system.fd_close(guest, 4)),
        Ok(())
    );
    assert_eq!(
        fixture.call(|system, guest| system.fd_close(guest, 4)),
        refused(Errno::BadF)
    );
    assert_eq!(fixture.open(3, "a", 0), Ok(4));
    while fixture.open(3, "a", 0).is_ok() {}
    assert_eq!(fixture.system.open.len(), OPEN_FILES);
    assert_eq!(fixture.open(3, "a", 0), refused(Errno::MFile));
}

#[test]
fn reading_writing_and_seeking() {
    let mut fixture = fixture(&[("/a", "abcdef")]);
    let fd = fixture.open(3, "a", 0).expect("a file");
    assert_eq!(fixture.read(fd, 2), Ok("ab".to_owned()));
    assert_eq!(fixture.write(fd, "XY"), Ok(2));
    assert_eq!(fixture.read(fd, 100), Ok("ef".to_owned()));
    assert_eq!(fixture.read(fd, 100), Ok(String::new()));
    for (offset, whence, expected) in [
        (1, 0, Ok(1)),
        (2, 1, Ok(3)),
        (-1, 2, Ok(5)),
        (-7, 2, Err(Errno::Inval)),
        (i64::MIN, 1, Err(Errno::Inval)),
        (0, 3, Err(Errno::Inval)),
        (10, 2, Ok(16)),
    ] {
        let sought =
            fixture.call(|system, guest| system.fd_seek(guest, fd, offset, whence, RESULT));
        let sought = sought.map(|()| fixture.result());
        assert_eq!(sought, expected.map_err(Fault::Errno), "{offset} {whence}");
    }
    assert_eq!(fixture.write(fd, "!"), Ok(1));
    let seek = fixture.call(|system, guest| system.fd_seek(guest, fd, 0, 0, RESULT));
    assert_eq!(seek, Ok(()));
    let all = "abXYef\0\0\0\0\0\0\0\0\0\0!";
    assert_eq!(fixture.read(fd, 100), Ok(all.to_owned()));
    // Nothing that a program says about lengths leaves its memory.
    fixture.buffer(u32::MAX);
    let far = fixture.call(|system, guest| system.fd_read(guest, fd, BUFFERS, 1, RESULT));
    assert_eq!(far, refused(Errno::Fault));
    let many = fixture.call(|system, guest| system.fd_write(guest, fd, 8188, 1, RESULT));
    assert_eq!(many, refused(Errno::Fault));
}

#[test]
fn appending_is_at_the_end_wherever_one_was() {
    let mut fixture = fixture(&[("/a", "abc")]);
    let fd = fixture.open(3, "a", 0).expect("a file");
    let set = fixture.call(|system, guest| system.fd_fdstat_set_flags(guest, fd, 1));
    assert_eq!(set, Ok(()));
    let other = fixture.open(3, "a", 0).expect("a file");
    assert_eq!(fixture.write(fd, "d"), Ok(1));
    assert_eq!(fixture.write(fd, "e"), Ok(1));
    assert_eq!(fixture.read(other, 100), Ok("abcde".to_owned()));
}

#[test]
fn streams_are_pipes() {
    let mut fixture = fixture(&[]);
    assert_eq!(fixture.read(0, 3), Ok("inp".to_owned()));
    assert_eq!(fixture.read(0, 3), Ok("ut".to_owned()));
    assert_eq!(fixture.read(0, 3), Ok(String::new()));
    assert_eq!(fixture.read(1, 3), refused(Errno::BadF));
    assert_eq!(fixture.write(0, "x"), refused(Errno::BadF));
    assert_eq!(fixture.write(1, "out"), Ok(3));
    assert_eq!(fixture.write(2, "err"), Ok(3));
    let seek = fixture.call(|system, guest| system.fd_seek(guest, 1, 0, 0, RESULT));
    assert_eq!(seek, refused(Errno::SPipe));
    let full = fixture.write(1, "more than there is room for");
    assert_eq!(full, Err(Fault::Exit(1)));
    let (stdout, stderr) = fixture.system.end().1.into_streams();
    assert_eq!(stdout, "outmore than the");
    assert!(stderr.starts_with(b"erroutput was cut"), "{stderr:?}");
}

#[test]
fn what_has_no_end_comes_in_pieces() {
    let mut fixture = fixture(&[]);
    fixture.system.tree.mount_device("/dev/zero", Device::Zero);
    fixture.memory.resize(4 << 20, 1);
    let zeros = fixture.open(3, "dev/zero", 0).expect("opened");
    assert_eq!(fixture.read(zeros, 100), Ok("\0".repeat(100)));
    // As many buffers as one call may name, each of 3 MiB and all the same one.
    let mut guest = Guest(&mut fixture.memory);
    for index in 0..100 {
        let at = BUFFERS + 8 * index;
        guest.put_u32(at, DATA).expect("in the memory");
        guest.put_u32(at + 4, 3 << 20).expect("in the memory");
    }
    fixture
        .call(|system, guest| system.fd_read(guest, zeros, BUFFERS, 100, RESULT))
        .expect("read");
    assert_eq!(fixture.result(), 1 << 20);
}

#[test]
fn listings_come_in_pieces_of_any_size() {
    let files: Vec<String> = (0..40)
        .map(|n| format!("/d/{}", "n".repeat(n + 1)))
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|path| (&**path, "")).collect();
    let mut fixture = fixture(&files);
    let fd = fixture.open(3, "d", 2).expect("a directory");
    let mut expected = vec![".".to_owned(), "..".to_owned()];
    expected.extend((0..40).map(|n| "n".repeat(n + 1)));
    for length in [70, 100, 333, 4096] {
        assert_eq!(fixture.names(fd, length), expected, "{length}");
    }
    let file = fixture.open(3, "lib/own.zip", 0).expect("a file");
    let listed = fixture.call(|system, guest| system.fd_readdir(guest, file, DATA, 100, 0, RESULT));
    assert_eq!(listed, refused(Errno::NotDir));
    let end =
        fixture.call(|system, guest| system.fd_readdir(guest, fd, DATA, 100, u64::MAX, RESULT));
    assert_eq!((end, fixture.result()), (Ok(()), 0));
}

#[test]
fn making_and_removing() {
    let mut fixture = fixture(&[("/d/x", "1"), ("/f", "2")]);
    for (path, expected) in [
        ("new", Ok(())),
        ("new", Err(Errno::Exist)),
        (".", Err(Errno::Exist)),
        ("none/new", Err(Errno::NoEnt)),
        ("f/new", Err(Errno::NotDir)),
    ] {
        let made = fixture.on_path(path, |system, guest, length| {
            system.path_create_directory(guest, 3, PATH, length)
        });
        assert_eq!(made, expected.map_err(Fault::Errno), "{path}");
    }
    for (path, expected) in [
        ("d", Err(Errno::NotEmpty)),
        ("f", Err(Errno::NotDir)),
        ("none", Err(Errno::NoEnt)),
        ("new/.", Err(Errno::Inval)),
        ("new/", Ok(())),
        ("..", Err(Errno::Inval)),
    ] {
        let removed = fixture.on_path(path, |system, guest, length| {
            system.path_remove_directory(guest, 3, PATH, length)
        });
        assert_eq!(removed, expected.map_err(Fault::Errno), "{path}");
    }
    for (path, expected) in [
        ("d", Err(Errno::IsDir)),
        ("lib/own.zip", Err(Errno::RoFs)),
        ("none", Err(Errno::NoEnt)),
        ("f", Ok(())),
    ] {
        let removed = fixture.on_path(path, |system, guest, length| {
            system.path_unlink_file(guest, 3, PATH, length)
        });
        assert_eq!(removed, expected.map_err(Fault::Errno), "{path}");
    }
}

#[test]
fn moving() {
    let mut fixture = fixture(&[("/d/x", "1"), ("/f", "2"), ("/g", "3")]);
    for (from, to, expected) in [
        ("none", "a", Err(Errno::NoEnt)),
        ("d", "d/e", Err(Errno::Inval)),
        ("d", "f", Err(Errno::NotDir)),
        ("f", "d", Err(Errno::IsDir)),
        ("lib", "d", Err(Errno::RoFs)),
        ("f", "lib/own.zip", Err(Errno::RoFs)),
        ("f", "none/f", Err(Errno::NoEnt)),
        ("..", "a", Err(Errno::Busy)),
        ("f", "new/", Err(Errno::NotDir)),
        ("f", "f", Ok(())),
        ("f", "g", Ok(())),
        ("d", "e", Ok(())),
    ] {
        let moved = fixture.rename(from, to);
        assert_eq!(moved, expected.map_err(Fault::Errno), "{from} {to}");
    }
    let fd = fixture.open(3, "g", 0).expect("a file");
    assert_eq!(fixture.read(fd, 10), Ok("2".to_owned()));
    assert_eq!(fixture.open(3, "e/x", 0).map(drop), Ok(()));
}

#[test]
fn arguments_and_variables() {
    let mut fixture = fixture(&[]);
    let sizes = fixture.call(|system, guest| system.args_sizes_get(guest, RESULT, TO));
    assert_eq!((sizes, fixture.result()), (Ok(()), 2));
    let args = fixture.call(|system, guest| system.args_get(guest, BUFFERS, DATA));
    assert_eq!(args, Ok(()));
    let start = DATA as usize;
    assert_eq!(&fixture.memory[start..start + 5], "p\0é\0".as_bytes());
    let env = fixture.call(|system, guest| system.environ_get(guest, BUFFERS, DATA));
    assert_eq!(env, Ok(()));
    assert_eq!(&fixture.memory[start..start + 4], b"A=1\0");
    let far = fixture.call(|system, guest| system.environ_get(guest, BUFFERS, 8190));
    assert_eq!(far, refused(Errno::Fault));
}

/// A subscription to a clock at `at`.
fn subscribe(memory: &mut [u8], at: u32, user_data: u64, nanoseconds: u64, flags: u16) {
    let mut guest = Guest(memory);
    guest.put(at, &[0; 48]).expect("in the memory");
    guest.put_u64(at, user_data).expect("in the memory");
    guest.put_u32(at + 16, 1).expect("in the memory");
    guest.put_u64(at + 24, nanoseconds).expect("in the memory");
    guest
        .put(at + 40, &flags.to_le_bytes())
        .expect("in the memory");
}

#[test]
fn the_first_of_some_times_is_waited_for() {
    let mut fixture = fixture(&[]);
    subscribe(&mut fixture.memory, BUFFERS, 7, 1_000_000, 0);
    subscribe(&mut fixture.memory, BUFFERS + 48, 8, u64::MAX, 0);
    let start = Instant::now();
    let polled = fixture.call(|system, guest| system.poll_oneoff(guest, BUFFERS, DATA, 2, RESULT));
    assert_eq!((polled, fixture.result()), (Ok(()), 1));
    assert!(start.elapsed() >= Duration::from_millis(1));
    assert_eq!(Guest(&mut fixture.memory).u64(DATA), Ok(7));
    // A time that is over already, of the clock that counts from the start.
    subscribe(&mut fixture.memory, BUFFERS, 9, 1, 1);
    let polled = fixture.call(|system, guest| system.poll_oneoff(guest, BUFFERS, DATA, 1, RESULT));
    assert_eq!((polled, fixture.result()), (Ok(()), 1));
    let far =
        fixture.call(|system, guest| system.poll_oneoff(guest, BUFFERS, DATA, u32::MAX, RESULT));
    assert!(far.is_err(), "{far:?}");
}

#[test]
fn a_stop_ends_a_wait() {
    let mut fixture = fixture(&[]);
    subscribe(&mut fixture.memory, BUFFERS, 7, u64::MAX, 0);
    fixture.system.stop.fire();
    let polled = fixture.call(|system, guest| system.poll_oneoff(guest, BUFFERS, DATA, 1, RESULT));
    assert_eq!(polled, Err(Fault::Stopped));
}
