//! Messages of the validator, and its verdicts beside those of the
//! `jsonschema` crate over generated schemas and instances.

use serde_json::json;

use super::*;

fn check(schema: Value, instance: Value, expected: &[&str]) {
    let schema = Schema::compile(&schema).expect("a schema of the subset");
    let violations = schema.validate(&instance, "arguments").err();
    assert_eq!(violations.unwrap_or_default(), expected);
}

#[test]
fn types() {
    check(json!({"type": "integer"}), json!(1.0), &[]);
    check(
        json!({"type": "integer"}),
        json!(1.5),
        &["arguments: expected integer, got number 1.5"],
    );
    check(
        json!({"type": ["string", "null"]}),
        json!([]),
        &["arguments: expected string or null, got array"],
    );
    check(
        json!({"type": "null"}),
        json!("x".repeat(100)),
        &[&format!(
            "arguments: expected null, got string \"{}…",
            "x".repeat(39)
        )],
    );
}

#[test]
fn paths() {
    check(
        json!({"properties": {"a": {"items": {"properties": {"b": {"type": "string"}}}}}}),
        json!({"a": [{"b": "x"}, {"b": null}]}),
        &["arguments.a[1].b: expected string, got null"],
    );
}

#[test]
fn objects() {
    let schema = json!({
        "properties": {"a": true, "b": {}},
        "required": ["a"],
        "additionalProperties": false,
    });
    check(
        schema,
        json!({"b": 1, "c": 2}),
        &[
            "arguments: missing required property \"a\"",
            "arguments: unknown property \"c\", known are \"a\", \"b\"",
        ],
    );
    check(
        json!({"additionalProperties": {"type": "string"}}),
        json!({"x": 1}),
        &["arguments.x: expected string, got integer 1"],
    );
}

#[test]
fn choices() {
    check(
        json!({"enum": ["a", 1]}),
        json!("b"),
        &["arguments: expected one of \"a\", 1, got string \"b\""],
    );
    check(json!({"enum": [1]}), json!(1.0), &[]);
    check(
        json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}),
        json!(1),
        &[
            "arguments: fits no allowed form (arguments: expected string, got integer 1; or arguments: \
           expected at least 3, got 1)",
        ],
    );
    check(
        json!({"oneOf": [{"type": "string"}, {"minLength": 1}]}),
        json!("ab"),
        &["arguments: fits 2 of the forms of which exactly one must fit"],
    );
}

#[test]
fn bounds() {
    check(
        json!({"exclusiveMinimum": 1, "maximum": 0}),
        json!(1),
        &[
            "arguments: expected at most 0, got 1",
            "arguments: expected more than 1, got 1",
        ],
    );
    check(
        json!({"minLength": 3}),
        json!("ää"),
        &["arguments: expected at least 3 characters, got 2"],
    );
    check(
        json!({"maxItems": 1}),
        json!([1, 2]),
        &["arguments: expected at most 1 items, got 2"],
    );
    // Exact where a comparison of floats would not be.
    check(
        json!({"maximum": 9_007_199_254_740_992_u64}),
        json!(9_007_199_254_740_993_u64),
        &["arguments: expected at most 9007199254740992, got 9007199254740993"],
    );
}

#[test]
fn at_most_five_violations() {
    let schema = json!({"items": {"type": "null"}});
    let schema = Schema::compile(&schema).expect("a schema of the subset");
    let violations = schema.validate(&json!([1, 2, 3, 4, 5, 6, 7]), "x");
    assert_eq!(violations.map_err(|all| all.len()), Err(5));
}

fn check_refused(schema: Value, expected: &str) {
    let error = Schema::compile(&schema).expect_err("not of the subset");
    let text = error.to_string();
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn unknown_keywords_are_loud() {
    check_refused(
        json!({"properties": {"a": {"anyOf": [{}, {"pattern": "x"}]}}}),
        "schema keyword `pattern` at $.properties.a.anyOf[1]: not supported",
    );
    check_refused(json!({"$ref": "#"}), "schema keyword `$ref` at $: not");
    check_refused(
        json!({"type": "int"}),
        "schema keyword `type` at $: names no",
    );
    check_refused(json!({"type": []}), "schema keyword `type` at $: names no");
    check_refused(json!({"items": [{}]}), "schema at $.items: must be");
    check_refused(json!({"minimum": "1"}), "schema keyword `minimum` at $");
    check_refused(json!({"minLength": -1}), "schema keyword `minLength` at $");
    check_refused(json!({"required": [1]}), "schema keyword `required` at $");
    check_refused(json!({"anyOf": []}), "schema keyword `anyOf` at $");
    let mut deep = json!({});
    for _ in 0..100 {
        deep = json!({"items": deep});
    }
    check_refused(deep, "schema at $.items.items");
}

#[test]
fn nested_choices_are_checked_once() {
    let mut schema = json!({"type": "null"});
    for _ in 0..25 {
        schema = json!({"anyOf": [schema]});
    }
    let schema = Schema::compile(&schema).expect("a schema of the subset");
    // Twice per level would be 2^25 checks of ever longer messages.
    let violations = schema.validate(&json!(1), "x").err().unwrap_or_default();
    assert_eq!(violations.len(), 1);
}

#[test]
fn annotations_are_ignored() {
    let schema = json!({"title": "t", "description": "d", "default": 1, "format": "uri",
                        "examples": [1], "$schema": "x", "$comment": "c"});
    check(schema, json!("no uri"), &[]);
}

/// SplitMix64: the same pairs in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn number(&mut self) -> Value {
        let numbers = [
            json!(-1),
            json!(0),
            json!(0.0),
            json!(1),
            json!(1.0),
            json!(1.5),
            json!(2),
            json!(3),
            json!(-2.5),
            json!(1e3),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(9_007_199_254_740_993_i64),
        ];
        self.pick(&numbers)
    }

    fn text(&mut self) -> Value {
        json!(self.pick(&["", "a", "b", "ab", "äö", "😀", "abc"]))
    }

    fn name(&mut self) -> &'static str {
        self.pick(&["a", "b", "c", "d"])
    }

    fn instance(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.below(2) == 0),
            2 => self.number(),
            3 => self.text(),
            4 | 5 => {
                let mut object = Map::new();
                for _ in 0..self.below(4) {
                    object.insert(self.name().to_owned(), self.instance(depth - 1));
                }
                Value::Object(object)
            }
            _ => (0..self.below(4))
                .map(|_| self.instance(depth - 1))
                .collect(),
        }
    }

    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = Map::new();
        for _ in 0..=self.below(3) {
            let (keyword, value) = self.rule(depth);
            schema.insert(keyword.to_owned(), value);
        }
        Value::Object(schema)
    }

    fn schemas(&mut self, depth: usize) -> Value {
        (0..=self.below(3)).map(|_| self.schema(depth)).collect()
    }

    fn rule(&mut self, depth: usize) -> (&'static str, Value) {
        let types = [
            "null", "boolean", "integer", "number", "string", "array", "object",
        ];
        match self.below(if depth == 0 { 12 } else { 20 }) {
            0 | 1 => ("type", json!(self.pick(&types))),
            2 => {
                // Draft 2020-12 wants each name once.
                let first = self.below(types.len());
                let second = (first + 1 + self.below(types.len() - 1)) % types.len();
                ("type", json!([types[first], types[second]]))
            }
            3 => (
                "enum",
                json!([self.instance(1), self.number(), self.text()]),
            ),
            4 => ("const", self.instance(1)),
            5 => (self.pick(&["minimum", "maximum"]), self.number()),
            6 => (
                self.pick(&["exclusiveMinimum", "exclusiveMaximum"]),
                self.number(),
            ),
            7 => (self.pick(&["minLength", "maxLength"]), json!(self.below(4))),
            8 => (self.pick(&["minItems", "maxItems"]), json!(self.below(4))),
            9 => (
                self.pick(&["minProperties", "maxProperties"]),
                json!(self.below(4)),
            ),
            10 => ("required", json!([self.name()])),
            11 => ("additionalProperties", json!(self.below(2) == 0)),
            12..=14 => {
                let mut properties = Map::new();
                for _ in 0..=self.below(3) {
                    properties.insert(self.name().to_owned(), self.schema(depth - 1));
                }
                ("properties", Value::Object(properties))
            }
            15 => ("items", self.schema(depth - 1)),
            16 => ("additionalProperties", self.schema(depth - 1)),
            17 => ("anyOf", self.schemas(depth - 1)),
            18 => ("oneOf", self.schemas(depth - 1)),
            _ => ("allOf", self.schemas(depth - 1)),
        }
    }
}

#[test]
fn verdicts_equal_those_of_the_jsonschema_crate() {
    let mut random = Random(2020);
    let mut verdicts = [0, 0];
    for _ in 0..1500 {
        let schema = random.schema(3);
        let ours = Schema::compile(&schema).expect("a schema of the subset");
        let theirs = jsonschema::draft202012::new(&schema).expect("a valid schema");
        for _ in 0..12 {
            let instance = random.instance(3);
            let verdict = ours.validate(&instance, "$").is_ok();
            assert_eq!(
                verdict,
                theirs.is_valid(&instance),
                "schema {schema}\ninstance {instance}"
            );
            verdicts[usize::from(verdict)] += 1;
        }
    }
    // The generator must not drift into one verdict.
    assert!(verdicts.iter().all(|count| *count > 3000), "{verdicts:?}");
}
