//! Schemas of tools against values as deep as they are read.

use hermitcrab::tool::Schema;
use serde_json::json;

/// Whether `[[…]]`, `depth` levels deep, fits a schema that refers to itself in
/// the longest way, checked on a stack that is half of a core's.
fn check(depth: usize) -> Result<(), Vec<String>> {
    let check = move || {
        let node = json!({"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]});
        let schema = json!({
            "$defs": {
                "a": {"type": "array", "items": node},
                "b": {"oneOf": [{"$ref": "#/$defs/a"}]},
            },
            "$ref": "#/$defs/a",
        });
        let schema = Schema::compile(&schema).expect("a good schema");
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let value = serde_json::from_str(&text).expect("JSON");
        schema.validate(&value, "arguments")
    };
    let thread = std::thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(check);
    thread.expect("a thread").join().expect("no panic")
}

#[test]
fn deep_values_are_checked_or_refused_on_a_small_stack() {
    assert_eq!(check(60), Ok(()));
    let refused = check(126).expect_err("too deep for the bound");
    assert!(refused[0].contains("nested too deeply"), "{refused:?}");
}
