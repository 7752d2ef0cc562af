//! Messages of the validator, and its verdicts beside those of the
//! `jsonschema` crate over generated schemas and instances.

use serde_json::{Map, json};

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
        json!({"properties": {"a": {"anyOf": [{}, {"unevaluatedItems": false}]}}}),
        "schema keyword `unevaluatedItems` at $.properties.a.anyOf[1]: not supported; take it out, \
         or set `unchecked` for the tool",
    );
    check_refused(
        json!({"pattern": "a(?=b)"}),
        "schema keyword `pattern` at $: `a(?=b)` cannot be checked: lookaround is read only right \
         behind a leading `^`; write it otherwise, or set `unchecked`",
    );
    check_refused(
        json!({"$ref": "https://example.org/a.json"}),
        "schema keyword `$ref` at $: \"https://example.org/a.json\" is not in the schema",
    );
    check_refused(
        json!({"multipleOf": 0}),
        "schema keyword `multipleOf` at $: must be more than 0",
    );
    check_refused(
        json!({"type": "int"}),
        "schema keyword `type` at $: names no",
    );
    check_refused(json!({"type": []}), "schema keyword `type` at $: names no");
    check_refused(json!({"items": 1}), "schema at $.items: must be");
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

#[test]
fn texts_numbers_and_lists() {
    check(
        json!({"pattern": "^a"}),
        json!("ba"),
        &["arguments: expected text that matches `^a`, got string \"ba\""],
    );
    check(json!({"multipleOf": 0.01}), json!(19.99), &[]);
    check(
        json!({"multipleOf": 0.1}),
        json!(0.25),
        &["arguments: expected a multiple of 0.1, got 0.25"],
    );
    check(
        json!({"prefixItems": [{"type": "string"}], "items": false}),
        json!([1, 2]),
        &[
            "arguments: expected at most 1 items, got 2",
            "arguments[0]: expected string, got integer 1",
        ],
    );
    check(
        json!({"uniqueItems": true}),
        json!([{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]),
        &["arguments: expected items that differ, arguments[1] is there already"],
    );
    check(
        json!({"contains": {"type": "string"}, "maxContains": 1}),
        json!(["a", "b"]),
        &["arguments: expected at most 1 items of the form that `contains` gives, got 2"],
    );
}

#[test]
fn names_of_properties() {
    check(
        json!({"propertyNames": {"enum": ["a"]}}),
        json!({"b": 1}),
        &["arguments: property name: expected one of \"a\", got string \"b\""],
    );
    check(
        json!({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false}),
        json!({"n_a": "x", "b": 1}),
        &[
            "arguments.n_a: expected integer, got string \"x\"",
            "arguments: unknown property \"b\", known are what matches `^n_`",
        ],
    );
    check(
        json!({"dependentRequired": {"a": ["b"]}}),
        json!({"a": 1}),
        &["arguments: missing property \"b\", which \"a\" requires"],
    );
}

#[test]
fn conditions() {
    check(
        json!({"not": {"type": "string"}}),
        json!("a"),
        &["arguments: has a form that `not` forbids"],
    );
    let schema = json!({"if": {"properties": {"kind": {"const": "a"}}},
                        "then": {"required": ["x"]}, "else": {"required": ["y"]}});
    check(schema.clone(), json!({"kind": "a", "x": 1}), &[]);
    check(
        schema,
        json!({"kind": "b", "x": 1}),
        &["arguments: missing required property \"y\""],
    );
}

#[test]
fn earlier_drafts_and_openapi() {
    let tuple = json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}});
    check(tuple.clone(), json!(["a", 1]), &[]);
    check(
        tuple,
        json!(["a", "b"]),
        &["arguments[1]: expected integer, got string \"b\""],
    );
    check(
        json!({"minimum": 1, "exclusiveMinimum": true}),
        json!(1),
        &["arguments: expected more than 1, got 1"],
    );
    check(
        json!({"type": "string", "enum": ["a"], "nullable": true}),
        json!(null),
        &[],
    );
    check(
        json!({"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}}),
        json!(1),
        &["arguments: expected null, got integer 1"],
    );
}

#[test]
fn references() {
    let tree = json!({
        "$defs": {"tree": {
            "type": "object",
            "required": ["name"],
            "properties": {"children": {"items": {"$ref": "#/$defs/tree"}}},
        }},
        "properties": {"root": {"$ref": "#/$defs/tree"}},
    });
    check(
        tree,
        json!({"root": {"name": "a", "children": [{"name": "b", "children": [{}]}]}}),
        &["arguments.root.children[0].children[0]: missing required property \"name\""],
    );
    check(
        json!({"$id": "List", "properties": {"next": {"$ref": "List"}, "to": {"$ref": "#end"}},
               "additionalProperties": {"$anchor": "end", "type": "null"}}),
        json!({"next": {"next": {"to": 1}}}),
        &["arguments.next.next.to: expected null, got integer 1"],
    );
    for schema in [
        json!({"$ref": "#"}),
        json!({"anyOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"not": {"$ref": "#"}}}}),
        json!({"if": true, "then": {"allOf": [{"$ref": "#"}]}}),
    ] {
        let error = Schema::compile(&schema).expect_err("a circle").to_string();
        assert!(error.contains("leads back to itself"), "{error}");
    }
}

#[test]
fn what_would_take_for_ever_is_given_up() {
    // Two ways at each of a hundred levels.
    let schema = json!({"$defs": {"a": {"anyOf": [
        {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["y"]},
        {"properties": {"x": {"$ref": "#/$defs/a"}}, "required": ["z"]},
    ]}}, "$ref": "#/$defs/a"});
    let schema = Schema::compile(&schema).expect("a schema of the subset");
    let mut value = json!({});
    for _ in 0..100 {
        value = json!({"x": value});
    }
    let violations = schema.validate(&value, "arguments");
    assert_eq!(
        violations.err().unwrap_or_default(),
        ["arguments: nested too deeply, or in too many ways, to be checked; give a simpler value"]
    );
}

/// What zod says of its fifteen everyday forms, with values that zod takes and
/// values that it does not: `tests/schemas/zod.mjs` writes the file.
#[test]
fn everyday_schemas_of_zod() {
    #[derive(serde::Deserialize)]
    struct Form {
        name: String,
        schema: Value,
        fits: Vec<Value>,
        not: Vec<Value>,
    }
    let forms = include_str!("../../../tests/schemas/zod.json");
    let forms: Vec<Form> = serde_json::from_str(forms).expect("the file");
    assert_eq!(forms.len(), 15);
    for form in forms {
        let name = form.name;
        let schema =
            Schema::compile(&form.schema).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(schema.is_object(), "{name}");
        for (values, expected) in [(&form.fits, true), (&form.not, false)] {
            for value in values {
                let violations = schema.validate(&json!({"value": value}), "arguments").err();
                assert_eq!(
                    violations.is_none(),
                    expected,
                    "{name}: {value} {violations:?}"
                );
            }
        }
    }
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
        match self.below(if depth == 0 { 16 } else { 32 }) {
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
            12 => (
                "pattern",
                json!(self.pick(&["^a", "b$", "^[a-c]{2,}$", "^(?!a)", "\\w", "^.$"])),
            ),
            13 => (
                "multipleOf",
                self.pick(&[json!(1), json!(0.5), json!(2), json!(3)]),
            ),
            14 => ("uniqueItems", json!(true)),
            15 => ("dependentRequired", json!({self.name(): [self.name()]})),
            16 | 17 => ("not", self.schema(depth - 1)),
            18 => ("prefixItems", self.schemas(depth - 1)),
            19 => ("contains", self.schema(depth - 1)),
            20 => ("propertyNames", self.schema(0)),
            21 => (
                "patternProperties",
                json!({"^[ab]$": self.schema(depth - 1)}),
            ),
            22 => (
                "dependentSchemas",
                json!({self.name(): self.schema(depth - 1)}),
            ),
            23 => ("if", self.schema(depth - 1)),
            24 => (self.pick(&["then", "else"]), self.schema(depth - 1)),
            25..=26 => {
                let mut properties = Map::new();
                for _ in 0..=self.below(3) {
                    properties.insert(self.name().to_owned(), self.schema(depth - 1));
                }
                ("properties", Value::Object(properties))
            }
            27 => ("items", self.schema(depth - 1)),
            28 => ("additionalProperties", self.schema(depth - 1)),
            29 => ("anyOf", self.schemas(depth - 1)),
            30 => ("oneOf", self.schemas(depth - 1)),
            _ => ("allOf", self.schemas(depth - 1)),
        }
    }
}

#[test]
fn verdicts_equal_those_of_the_jsonschema_crate() {
    let mut random = Random(2020);
    let mut verdicts = [0, 0];
    for _ in 0..4000 {
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
