//! The JSON Schema of the events, `docs/events.schema.json`, follows the types.

use std::path::Path;

#[test]
fn committed_schema_is_that_of_the_types() {
    let schema = schemars::schema_for!(hermitcrab::event::Event);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is JSON");
    text.push('\n');
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/events.schema.json");
    if std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1") {
        std::fs::write(&path, text).expect("docs/events.schema.json can be written");
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/events.schema.json differs from src/event.rs; \
         run this test with UPDATE_EXPECT=1 and review the diff"
    );
}

/// A schema that takes everything would prove nothing.
#[test]
fn schema_rejects_what_is_no_event() {
    let schema =
        serde_json::to_value(schemars::schema_for!(hermitcrab::event::Event)).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a valid schema");
    let event = serde_json::json!({
        "kind": "USER_INPUT", "data": {"content": "hi"}, "seq": 1,
        "timestamp": "2026-01-01T00:00:00.000Z", "session_id": "s",
    });
    assert!(validator.is_valid(&event), "{event}");
    for (name, value) in [
        ("kind", serde_json::json!("USER_INPUTS")),
        ("data", serde_json::json!({})),
        ("data", serde_json::json!({"content": 1})),
        ("seq", serde_json::json!("1")),
        ("timestamp", serde_json::Value::Null),
        ("session_id", serde_json::Value::Null),
    ] {
        let mut broken = event.clone();
        broken[name] = value;
        assert!(!validator.is_valid(&broken), "{broken}");
    }
}
