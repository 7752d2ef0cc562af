//! Declarations: what they make of arguments, and how they are refused.

use serde_json::{Value, json};

use super::super::Registry;
use super::super::testing::{call, play, remote_of};
use crate::effect::EffectKind;
use crate::environment::Scope;

fn shell(properties: Value, more: Value) -> Value {
    let mut declaration = json!({
        "name": "run", "executor": "shell", "description": "",
        "parameters": {"type": "object", "properties": properties},
    });
    let fields = declaration.as_object_mut().expect("an object");
    fields.extend(more.as_object().expect("an object").clone());
    json!([declaration])
}

/// Command, directory and time limit that a call comes to.
fn check(declaration: &Value, arguments: Value, expected: Result<(&str, &str, u64), &str>) {
    let json = declaration.to_string();
    let registry = Registry::declared(&json).expect("valid declarations");
    let call = call("run", &arguments.to_string());
    let (executed, effects) = play(
        &remote_of(registry).0,
        &Scope::new("s"),
        call,
        vec![vec![
            crate::effect::OutcomeKind::ExecEnd(Default::default()),
        ]],
    );
    let actual = match effects.into_iter().next() {
        Some(EffectKind::Exec { request, .. }) => {
            let directory = request.working_dir.unwrap_or_default();
            Ok((request.command, directory, request.timeout_ms))
        }
        _ => Err(executed.full),
    };
    let expected = expected
        .map(|(command, directory, timeout)| (command.to_owned(), directory.to_owned(), timeout));
    assert_eq!(
        actual,
        expected.map_err(|text| format!("Tool error (run): {text}"))
    );
}

#[test]
fn a_list_of_words_with_seconds() {
    let declaration = shell(
        json!({"argv": {"type": "array", "items": {"type": "string"}},
               "seconds": {"type": "number"}, "why": {"type": "string"}}),
        json!({"map": {"argv": {"to": "command", "join": "shell"},
                       "seconds": {"to": "timeout_ms", "multiply": 1000}, "why": null},
               "defaults": {"timeout_ms": 500, "working_dir": "src"}}),
    );
    check(
        &declaration,
        json!({"argv": ["bash", "-lc", "ls | wc"], "seconds": 1.5, "why": "x"}),
        Ok(("ls | wc", "/work/src", 1500)),
    );
    check(
        &declaration,
        json!({"argv": ["ls", "a b"]}),
        Ok(("ls 'a b'", "/work/src", 500)),
    );
    check(
        &declaration,
        json!({"argv": []}),
        Err("invalid arguments: arguments.argv: expected a list of strings with the program first"),
    );
    check(
        &declaration,
        json!({"argv": ["ls"], "seconds": -1}),
        Err("invalid arguments: arguments.seconds: expected no negative number, got -1000"),
    );
    check(
        &declaration,
        json!({}),
        Err("invalid arguments: arguments: missing required property \"argv\""),
    );
}

#[test]
fn fixed_arguments_win() {
    let declaration = shell(
        json!({"command": {"type": "string"}}),
        json!({"fixed": {"working_dir": "/tmp", "timeout_ms": 9}}),
    );
    let arguments = json!({"command": "ls", "working_dir": "/etc"});
    check(&declaration, arguments, Ok(("ls", "/tmp", 9)));
}

fn check_refused(json: impl ToString, message: &str) {
    let error = Registry::declared(&json.to_string()).err();
    let message = format!("tool declarations: {message}");
    assert_eq!(error.map(|error| error.to_string()), Some(message));
}

#[test]
fn lists_that_are_none() {
    let cut_off = "cut off, so not valid JSON: EOF while parsing";
    check_refused("[", &format!("{cut_off} a list at line 1 column 1"));
    check_refused("{", &format!("{cut_off} an object at line 1 column 1"));
    check_refused("", &format!("{cut_off} a value at line 1 column 0"));
    check_refused("shell", "not valid JSON: expected value at line 1 column 1");
    check_refused(
        "{bad",
        "not valid JSON: key must be a string at line 1 column 2",
    );
    check_refused("{}", "must be a list of objects, `[{…}, {…}]`");
    let run = json!({"name": "run", "executor": "shell", "description": "",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}});
    check_refused(
        json!([run, run]),
        "run: declared twice; give each entry a name of its own",
    );
    check_refused("[1]", "entry 1 is not an object");
    check_refused(
        json!([{"name": "a", "description": "", "parameters": {}, "executor": "shell",
                "map": {}}, {"description": ""}]),
        "entry 2 has no `name`, or one that is not a string",
    );
}

#[test]
fn fields_that_make_no_sense() {
    let check = |fields: Value, message: &str| {
        let mut entry = json!({"name": "run", "executor": "shell", "description": "",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}});
        let object = entry.as_object_mut().expect("an object");
        for (name, value) in fields.as_object().expect("an object") {
            object.insert(name.clone(), value.clone());
        }
        object.retain(|_, value| value != "gone");
        check_refused(json!([entry]), message);
    };
    check(
        json!({"mpa": {}}),
        "run: unknown field `mpa`; known are name, description, parameters, executor, map, fixed, \
         defaults, custom, strict",
    );
    check(
        json!({"description": "gone"}),
        "run: `description` is missing",
    );
    check(
        json!({"description": 1}),
        "run: `description` must be a string",
    );
    check(
        json!({"parameters": "gone"}),
        "run: `parameters` is missing",
    );
    check(json!({"map": []}), "run: `map` must be an object");
    check(
        json!({"strict": 1}),
        "run: `strict`: invalid type: integer `1`, expected a boolean",
    );
    check(
        json!({"custom": {"type": "x"}}),
        "run: `custom`: unknown variant `x`, expected `text` or `grammar`",
    );
    check(
        json!({"executor": "x"}),
        "no executor `x`; known are read_file, view_image, read_many_files, write_file, \
         edit_file, shell, command_output, stop_command, grep, glob, list_dir, web_fetch, apply_patch, and host:NAME for a tool of the host",
    );
    let parameters = json!({"type": "object", "properties": {"cmd": {"type": "string"}}});
    check(
        json!({"parameters": parameters}),
        "run: property `cmd`: executor shell has no parameter `cmd`; it has command, timeout_ms, \
         working_dir, max_output_chars, run_in_background, description",
    );
    check(
        json!({"parameters": parameters, "map": {"cmd": null}}),
        "run: executor shell needs `command`, and no property becomes it; name one in `map`, or \
         set it in `fixed`",
    );
    check(
        json!({"parameters": parameters, "map": {"cmd": {"to": "command", "add": 1, "multiply": 2}}}),
        "run: `map.cmd`: at most one of add, multiply, values and join",
    );
    check(
        json!({"map": {"cmd": "command"}}),
        "run: `map.cmd`: `parameters` has no such property",
    );
    check(
        json!({"map": {"command": "cmd"}}),
        "run: `map.command`: executor shell has no parameter `cmd`; it has command, timeout_ms, \
         working_dir, max_output_chars, run_in_background, description",
    );
    check(
        json!({"map": {"command": 1}}),
        "run: `map.command` must be a name, null or an object",
    );
    check(
        json!({"map": {"command": {"plus": 1}}}),
        "run: `map.command`: unknown field `plus`; known are to, add, multiply, values, join and \
         members",
    );
    check(
        json!({"map": {"command": {"multiply": 0}}}),
        "run: `map.command`: `multiply` must be a whole number above 0",
    );
    check(
        json!({"map": {"command": {"join": ","}}}),
        "run: `map.command`: `join` must be \"shell\"",
    );
    check(
        json!({"fixed": {"timeout_ms": "1"}}),
        "run: `fixed.timeout_ms`: expected a number",
    );
    check(
        json!({"defaults": {"x": 1}}),
        "run: `defaults.x`: executor shell has no parameter `x`; it has command, timeout_ms, \
         working_dir, max_output_chars, run_in_background, description",
    );
    let two = json!({"type": "object", "properties": {"command": {}, "cmd": {}}});
    check(
        json!({"parameters": two, "map": {"cmd": "command"}}),
        "run: `command` and `cmd` both become `command` of executor shell",
    );
}
