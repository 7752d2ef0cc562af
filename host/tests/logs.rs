//! Kept logs, run again against the core just built (`tests/logs/README.md`): what
//! the core does in them changes on purpose only.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hermitcrab_host::Host;

/// Name of a log → numbers of the steps whose output differs.
type Departures = BTreeMap<String, Vec<u64>>;

fn place() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/logs")
}

fn departures(host: &Host) -> Departures {
    let mut departures = Departures::new();
    for entry in fs::read_dir(place()).expect("logs") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let Some(name) = name.strip_suffix(".log.gz") else {
            continue;
        };
        let replay = host.replay(&path).expect("a log").tolerate();
        let replayed = replay.run(|_| {}).unwrap_or_else(|error| {
            panic!("{name}: {error}");
        });
        assert!(
            replayed.closed && replayed.rounds > 1,
            "{name}: {replayed:?}"
        );
        departures.insert(name.to_owned(), replayed.departures);
    }
    departures
}

#[test]
fn kept_logs_depart_where_a_commit_says() {
    let host = Host::builder().build().expect("a host");
    let found = departures(&host);
    assert!(found.len() >= 8, "{} logs", found.len());
    let file = place().join("departures.json");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let text = serde_json::to_string_pretty(&found).expect("JSON") + "\n";
        fs::write(&file, text).expect("written");
    }
    let told: Departures =
        serde_json::from_slice(&fs::read(&file).expect("departures")).expect("JSON");
    assert_eq!(
        found, told,
        "if that is meant, write it down with UPDATE_EXPECT=1 (tests/logs/README.md)"
    );
}
