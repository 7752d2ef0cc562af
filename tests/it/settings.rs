//! `docs/settings.md` against the settings themselves.

use hermitcrab::session::SessionConfig;
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../docs/settings.md");

#[test]
fn every_setting_is_listed_with_its_default() {
    let defaults = serde_json::to_value(SessionConfig::default()).expect("JSON");
    let mut expected: Vec<(String, String)> = defaults
        .as_object()
        .expect("an object")
        .iter()
        .map(|(name, value)| match value {
            Value::Object(fields) if !fields.is_empty() => {
                let shown = serde_json::to_string(value).expect("JSON");
                assert!(DOCUMENT.contains(&shown), "{name}: {shown}");
                (name.clone(), "see below".to_owned())
            }
            value => (name.clone(), format!("`{value}`")),
        })
        .collect();
    expected.push(("model".to_owned(), "–".to_owned()));
    let mut listed: Vec<(String, String)> = DOCUMENT
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| {
            let (name, rest) = line.split_once("` | ")?;
            let (default, _) = rest.split_once(" | ")?;
            Some((name.to_owned(), default.to_owned()))
        })
        .collect();
    expected.sort();
    listed.sort();
    assert_eq!(listed, expected);
}
