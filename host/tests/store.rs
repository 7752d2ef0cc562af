//! The contract of stores: the same cases over files and over SQLite.

use std::io::{Read as _, Write as _};
use std::path::Path;

use hermitcrab_host::store::{
    About, FileStore, Quota, SessionStore, SqliteStore, StoreError, StoredSession, evict,
};
use serde_json::json;

fn about(task: &str, created_ms: u64) -> About {
    About {
        id: String::new(),
        directory: "/work".to_owned(),
        provider: "anthropic".to_owned(),
        model: "claude".to_owned(),
        task: task.to_owned(),
        created_ms,
        host: json!({"sandbox": "read-only"}),
    }
}

type Open = fn(&Path) -> Box<dyn SessionStore>;

/// Runs `case` over each store; it opens the store anew with its argument.
fn check(case: impl Fn(&dyn Fn() -> Box<dyn SessionStore>)) {
    let open: [Open; 2] = [
        |path| Box::new(FileStore::new(path.join("sessions"))),
        |path| Box::new(SqliteStore::open(path.join("deep/sessions.db")).expect("a database")),
    ];
    for open in open {
        let directory = tempfile::tempdir().expect("a directory");
        case(&|| open(directory.path()));
    }
}

fn write(session: &mut dyn StoredSession, pieces: &[&str]) {
    let mut log = session.begin_log().expect("a log");
    for piece in pieces {
        log.write_all(piece.as_bytes()).expect("written");
        log.flush().expect("written");
    }
}

fn log(store: &dyn SessionStore, id: &str) -> String {
    let mut text = String::new();
    let mut log = store.log(id).expect("a log");
    log.read_to_string(&mut text).expect("text");
    text
}

fn ids(store: &dyn SessionStore) -> Vec<String> {
    let kept = store.list().expect("a list");
    kept.into_iter().map(|one| one.about.id).collect()
}

#[test]
fn what_a_session_is_about_may_be_known_later() {
    check(|open| {
        let mut session = open().create(about("", 1)).expect("a session");
        session.set_task("fix it").expect("written");
        assert_eq!(session.about().task, "fix it");
        let mut listed = open().list().expect("a list");
        let kept = listed.pop().expect("a session").about;
        assert_eq!(
            kept,
            About {
                id: kept.id.clone(),
                ..about("fix it", 1)
            }
        );
    });
}

#[test]
fn a_session_is_there_for_who_opens_the_store_next() {
    check(|open| {
        assert_eq!(ids(&*open()), Vec::<String>::new());
        let mut session = open()
            .create(about("fix it", 1_774_972_812_345))
            .expect("a session");
        let id = session.about().id.clone();
        assert!(id.starts_with("20260331-160012-"), "{id}");
        let mut log_of = session.begin_log().expect("a log");
        log_of.write_all(b"one ").expect("written");
        log_of.flush().expect("written");
        // Also while it is written.
        assert_eq!(log(&*open(), &id), "one ");
        log_of.write_all(b"two").expect("written");
        drop(log_of);
        drop(session);
        let store = open();
        assert_eq!(log(&*store, &id), "one two");
        let [kept] = &store.list().expect("a list")[..] else {
            panic!("one session");
        };
        assert_eq!(
            kept.about,
            About {
                id: id.clone(),
                ..about("fix it", 1_774_972_812_345)
            }
        );
        assert!(kept.bytes >= 7, "{kept:?}");
        assert_eq!(*store.open(&id).expect("it").about(), kept.about);
    });
}

#[test]
fn another_log_counts_when_it_is_whole() {
    check(|open| {
        let mut session = open().create(about("x", 1)).expect("a session");
        let id = session.about().id.clone();
        write(&mut *session, &["first"]);
        session.commit().expect("nothing to do");
        assert_eq!(log(&*open(), &id), "first");
        write(&mut *session, &["sec"]);
        assert_eq!(log(&*open(), &id), "first");
        // Whoever began it was killed.
        drop(session);
        let mut session = open().open(&id).expect("the session");
        write(&mut *session, &["third ", "try"]);
        assert_eq!(log(&*open(), &id), "first");
        let mut own = String::new();
        session
            .log()
            .expect("a log")
            .read_to_string(&mut own)
            .expect("text");
        assert_eq!(own, "first");
        session.commit().expect("a commit");
        assert_eq!(log(&*open(), &id), "third try");
    });
}

#[test]
fn what_was_saved_is_replaced_whole() {
    check(|open| {
        let mut session = open().create(about("x", 1)).expect("a session");
        assert_eq!(session.saved().expect("nothing"), None);
        session.set_saved(b"one").expect("saved");
        session.set_saved(b"and two").expect("saved");
        let id = session.about().id.clone();
        drop(session);
        let saved = open().open(&id).expect("it").saved().expect("saved");
        assert_eq!(saved.as_deref(), Some(&b"and two"[..]));
    });
}

#[test]
fn one_holds_a_session() {
    check(|open| {
        let session = open().create(about("x", 1)).expect("a session");
        let id = session.about().id.clone();
        let Err(refused) = open().open(&id) else {
            panic!("two processes have {id}");
        };
        assert!(
            matches!(&refused, StoreError::InUse(of) if *of == id),
            "{refused}"
        );
        let refused = open().remove(&id).expect_err("a refusal");
        assert!(
            matches!(&refused, StoreError::InUse(of) if *of == id),
            "{refused}"
        );
        drop(session);
        open().open(&id).expect("free again");
        open().remove(&id).expect("free again");
        assert_eq!(ids(&*open()), Vec::<String>::new());
        let refused = open().remove(&id).expect_err("a refusal");
        assert!(
            matches!(&refused, StoreError::Unknown(of) if *of == id),
            "{refused}"
        );
    });
}

#[test]
fn no_name_leads_out() {
    check(|open| {
        open().create(about("x", 1)).expect("a session");
        for id in [
            "",
            ".",
            "..",
            "../x",
            "a/b",
            "/",
            "x'; DROP TABLE session; --",
        ] {
            assert!(
                matches!(open().open(id), Err(StoreError::Unknown(_))),
                "{id}"
            );
            assert!(
                matches!(open().log(id), Err(StoreError::Unknown(_))),
                "{id}"
            );
            assert!(
                matches!(open().remove(id), Err(StoreError::Unknown(_))),
                "{id}"
            );
        }
        assert_eq!(ids(&*open()).len(), 1);
    });
}

#[test]
fn the_oldest_make_room() {
    check(|open| {
        let store = open();
        let mut made = Vec::new();
        for n in 0..4 {
            let mut session = store.create(about("x", n)).expect("a session");
            write(&mut *session, &[&"x".repeat(10_000)]);
            made.push(session.about().id.clone());
            // The list is by the time of the last write, in ms.
            let written = store.list().expect("a list")[0].updated_ms;
            while now_ms() <= written + TICK_MS {
                std::thread::yield_now();
            }
        }
        let held = store.open(&made[0]).expect("the oldest");
        let quota = Quota {
            bytes: 25_000,
            sessions: 100,
        };
        let evicted = evict(&*store, quota).expect("room");
        let evicted: Vec<&str> = evicted.iter().map(|one| &*one.about.id).collect();
        assert_eq!(evicted, [&made[1], &made[2]]);
        assert_eq!(ids(&*store), [made[3].clone(), made[0].clone()]);
        drop(held);
        let quota = Quota {
            bytes: u64::MAX,
            sessions: 1,
        };
        assert_eq!(evict(&*store, quota).expect("room").len(), 1);
        assert_eq!(ids(&*store), [made[3].clone()]);
    });
}

/// How far the clock of a file system may be behind, in ms.
const TICK_MS: u64 = 20;

fn now_ms() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("a time");
    u64::try_from(now.as_millis()).expect("a time")
}
