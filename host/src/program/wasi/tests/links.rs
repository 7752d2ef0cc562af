//! Links: what a program sees of them, makes of them and does through them.

use super::*;

const CREATE: u32 = 1;
const EXCLUSIVE: u32 = 4;

fn linked() -> Fixture {
    let mut fixture = fixture(&[("/d/x", "in d"), ("/d/e/y", "in e"), ("/f", "file")]);
    for (target, path) in [
        ("d", "to-d"),
        ("../f", "d/up"),
        ("/d/e", "d/e/self"),
        ("d/../to-d/x", "round"),
        ("none", "nowhere"),
        ("two", "one"),
        ("one", "two"),
        ("../../../f", "above"),
    ] {
        assert_eq!(fixture.link(target, path), Ok(()), "{path}");
    }
    fixture
}

#[test]
fn paths_lead_through_links() {
    let mut fixture = linked();
    for (path, expected) in [
        ("to-d/x", Ok("in d")),
        ("to-d/up", Ok("file")),
        ("to-d/e/self/self/y", Ok("in e")),
        // The directory above what a link leads to, not above the link.
        ("d/e/self/../x", Ok("in d")),
        ("round", Ok("in d")),
        ("above", Ok("file")),
        ("nowhere", Err(Errno::NoEnt)),
        ("nowhere/x", Err(Errno::NoEnt)),
        ("round/x", Err(Errno::NotDir)),
        ("round/", Err(Errno::NotDir)),
        ("one", Err(Errno::Loop)),
        ("two/x", Err(Errno::Loop)),
    ] {
        let read = fixture
            .open(3, path, 0)
            .and_then(|fd| fixture.read(fd, 100));
        let expected = expected.map(str::to_owned).map_err(Fault::Errno);
        assert_eq!(read, expected, "{path}");
    }
}

#[test]
fn paths_that_end_in_a_dot_or_a_slash() {
    let mut fixture = linked();
    for (path, how, expected) in [
        ("d/.", 0, Ok(())),
        ("to-d/./x", 0, Ok(())),
        ("f/.", 0, Err(Errno::NotDir)),
        ("new/.", CREATE, Err(Errno::NoEnt)),
        ("new/", CREATE, Err(Errno::IsDir)),
        ("f/", 0, Err(Errno::NotDir)),
    ] {
        let opened = fixture.open(3, path, how).map(drop);
        assert_eq!(opened, expected.map_err(Fault::Errno), "{path}");
    }
    assert_eq!(fixture.stat("to-d/.", 0), Ok((3, 0)));
    assert_eq!(fixture.stat("f/.", 0), refused(Errno::NotDir));
    assert_eq!(fixture.link("d", "new/"), refused(Errno::NoEnt));
    assert_eq!(fixture.link("d", "new/."), refused(Errno::NoEnt));
    let remove = fixture.on_path("d/e/.", |system, guest, length| {
        system.path_remove_directory(guest, 3, PATH, length)
    });
    assert_eq!(remove, refused(Errno::Inval));
}

#[test]
fn a_link_is_seen_as_itself_or_as_what_it_leads_to() {
    let mut fixture = linked();
    assert_eq!(fixture.stat("to-d", 0), Ok((7, 1)));
    assert_eq!(fixture.stat("to-d", 1), Ok((3, 0)));
    assert_eq!(fixture.stat("to-d/", 0), Ok((3, 0)));
    assert_eq!(fixture.stat("round", 1), Ok((4, 4)));
    assert_eq!(fixture.stat("nowhere", 0), Ok((7, 4)));
    assert_eq!(fixture.stat("nowhere", 1), refused(Errno::NoEnt));
    assert_eq!(fixture.stat("one", 1), refused(Errno::Loop));
    assert_eq!(fixture.read_link("to-d", 100), Ok("d".to_owned()));
    assert_eq!(fixture.read_link("to-d/up", 100), Ok("../f".to_owned()));
    assert_eq!(fixture.read_link("nowhere", 2), Ok("no".to_owned()));
    assert_eq!(fixture.read_link("f", 100), refused(Errno::Inval));
    assert_eq!(fixture.read_link("none", 100), refused(Errno::NoEnt));
}

#[test]
fn making_moving_and_removing_links() {
    let mut fixture = linked();
    assert_eq!(fixture.link("d", "f"), refused(Errno::Exist));
    assert_eq!(fixture.link("d", "nowhere"), refused(Errno::Exist));
    assert_eq!(fixture.link("", "empty"), refused(Errno::NoEnt));
    assert_eq!(fixture.link("d", "none/x"), refused(Errno::NoEnt));
    // What is made through a link is where it leads, unless it must be new.
    let exclusive = fixture.open(3, "nowhere", CREATE | EXCLUSIVE);
    assert_eq!(exclusive.map(drop), refused(Errno::Exist));
    let fd = fixture.open(3, "nowhere", CREATE).expect("made");
    assert_eq!(fixture.write(fd, "now"), Ok(3));
    assert_eq!(fixture.stat("none", 0), Ok((4, 3)));
    assert_eq!(fixture.rename("to-d", "moved"), Ok(()));
    assert_eq!(fixture.read_link("moved", 100), Ok("d".to_owned()));
    assert_eq!(fixture.rename("moved", "round"), Ok(()));
    assert_eq!(fixture.stat("round", 1), Ok((3, 0)));
    let unlink = |fixture: &mut Fixture, path| {
        fixture.on_path(path, |system, guest, length| {
            system.path_unlink_file(guest, 3, PATH, length)
        })
    };
    assert_eq!(unlink(&mut fixture, "round"), Ok(()));
    assert_eq!(unlink(&mut fixture, "one"), Ok(()));
    let remove = fixture.on_path("two", |system, guest, length| {
        system.path_remove_directory(guest, 3, PATH, length)
    });
    assert_eq!(remove, refused(Errno::NotDir));
    assert_eq!(fixture.stat("d/x", 0), Ok((4, 4)), "still there");
}
