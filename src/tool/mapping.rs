//! How declared arguments become arguments of an executor:
//! names, counting bases, units, words. Data of a declaration, never code of a
//! profile (see `declaration.rs` for the format).

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

/// What an executor takes for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// A whole number that is not negative.
    Count,
    /// True or false.
    Flag,
    /// A list of strings; one string stands for a list of one.
    Texts,
    /// Whatever it is: the host looks at it.
    Any,
}

/// A parameter of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: Cow<'static, str>,
    pub(super) kind: Kind,
    pub(super) required: bool,
}

/// A parameter that every call must have.
pub(super) const fn required(name: &'static str, kind: Kind) -> Parameter {
    Parameter {
        name: Cow::Borrowed(name),
        kind,
        required: true,
    }
}

/// A parameter that a call may leave out.
pub(super) const fn optional(name: &'static str, kind: Kind) -> Parameter {
    Parameter {
        name: Cow::Borrowed(name),
        kind,
        required: false,
    }
}

/// What becomes of one advertised argument.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    /// It is for people, who see it in the events; the executor does not.
    Ignore,
    /// It becomes this parameter.
    To(Parameter, Transform),
    /// It is an object whose members are arguments themselves.
    Members(Vec<(String, Rule)>),
}

/// How the value changes on the way.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Transform {
    /// Not at all.
    Same,
    /// Another counting base: `add` is added.
    Add(i64),
    /// Another unit: multiplied, and rounded up.
    Multiply(u64),
    /// Other words: the value by its text; `null` leaves the parameter out.
    Values(Map<String, Value>),
    /// A list of words, as `exec` takes it, becomes a command line.
    CommandLine,
}

/// The rules of one declaration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Mapping {
    /// Per advertised argument.
    pub(super) rules: Vec<(String, Rule)>,
    /// Given to the executor by every call.
    pub(super) fixed: Map<String, Value>,
    /// Given to the executor by calls that leave them out.
    pub(super) defaults: Map<String, Value>,
}

impl Mapping {
    /// The executor's arguments, or which advertised one makes no sense.
    /// Arguments without a rule are dropped.
    pub(super) fn apply(&self, arguments: Map<String, Value>) -> Result<Value, String> {
        let mut mapped = self.defaults.clone();
        apply(&self.rules, arguments, "arguments", &mut mapped)?;
        for (name, value) in &self.fixed {
            mapped.insert(name.clone(), value.clone());
        }
        Ok(Value::Object(mapped))
    }

    /// Every parameter that an argument reaches: its name for the executor,
    /// its advertised name (`a.b` for a member), and the way between them.
    pub(super) fn reached(&self) -> Vec<(Parameter, String, Transform)> {
        let mut found = Vec::new();
        reached(&self.rules, "", &mut found);
        found
    }
}

fn apply(
    rules: &[(String, Rule)],
    arguments: Map<String, Value>,
    at: &str,
    mapped: &mut Map<String, Value>,
) -> Result<(), String> {
    for (name, value) in arguments {
        let at = format!("{at}.{name}");
        let rule = rules.iter().find(|(known, _)| *known == name);
        match rule.map(|(_, rule)| rule) {
            None | Some(Rule::Ignore) => {}
            Some(Rule::Members(rules)) => match value {
                Value::Object(members) => apply(rules, members, &at, mapped)?,
                _ => return Err(format!("{at}: expected an object")),
            },
            Some(Rule::To(parameter, transform)) => {
                let value = transform.apply(value, &at)?;
                if !value.is_null() {
                    let value = parameter.kind.take(value, &at)?;
                    mapped.insert(parameter.name.to_string(), value);
                }
            }
        }
    }
    Ok(())
}

fn reached(rules: &[(String, Rule)], above: &str, found: &mut Vec<(Parameter, String, Transform)>) {
    for (name, rule) in rules {
        let name = format!("{above}{name}");
        match rule {
            Rule::Ignore => {}
            Rule::To(parameter, transform) => {
                found.push((parameter.clone(), name, transform.clone()))
            }
            Rule::Members(rules) => reached(rules, &format!("{name}."), found),
        }
    }
}

impl Transform {
    fn apply(&self, value: Value, at: &str) -> Result<Value, String> {
        match self {
            Self::Same => Ok(value),
            Self::Add(add) => {
                let number = whole(&value).ok_or_else(|| not_a_number(at, &value))?;
                Ok(number.saturating_add(*add).into())
            }
            Self::Multiply(factor) => {
                let number = value.as_f64().ok_or_else(|| not_a_number(at, &value))?;
                // A cast saturates; nothing here counts beyond 2^53.
                Ok(((number * *factor as f64).ceil() as i64).into())
            }
            Self::Values(values) => {
                let text = match &value {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                values.get(&text).cloned().ok_or_else(|| {
                    let known: Vec<_> = values.keys().map(String::as_str).collect();
                    format!("{at}: expected one of {}, got {text}", known.join(", "))
                })
            }
            Self::CommandLine => match texts(&value) {
                Some(words) if !words.is_empty() => Ok(command_line(&words).into()),
                _ => Err(format!(
                    "{at}: expected a list of strings with the program first"
                )),
            },
        }
    }

    /// The advertised number for a number of the executor.
    pub(super) fn invert(&self, number: u64) -> String {
        match self {
            Self::Add(add) => (i128::from(number) - i128::from(*add)).to_string(),
            Self::Multiply(factor) => number.div_ceil((*factor).max(1)).to_string(),
            Self::Same | Self::Values(_) | Self::CommandLine => number.to_string(),
        }
    }
}

impl Kind {
    /// The value as an executor reads it; a profile may declare other types
    /// than the executor knows.
    pub(super) fn take(self, value: Value, at: &str) -> Result<Value, String> {
        let wrong = |expected: &str| Err(format!("{at}: expected {expected}"));
        match (self, value) {
            (Self::Any, value) => Ok(value),
            (Self::Text, value @ Value::String(_)) => Ok(value),
            (Self::Text, _) => wrong("a string"),
            (Self::Flag, value @ Value::Bool(_)) => Ok(value),
            (Self::Flag, _) => wrong("true or false"),
            (Self::Count, value) => match whole(&value) {
                Some(number) if number >= 0 => Ok(number.into()),
                Some(number) => wrong(&format!("no negative number, got {number}")),
                None => wrong("a number"),
            },
            (Self::Texts, Value::String(text)) => Ok(Value::Array(vec![text.into()])),
            (Self::Texts, value) if texts(&value).is_some() => Ok(value),
            (Self::Texts, _) => wrong("a list of strings"),
        }
    }
}

fn not_a_number(at: &str, value: &Value) -> String {
    format!("{at}: expected a number, got {value}")
}

/// The number, rounded: models write 5.0 where 5 is meant.
fn whole(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else {
        return None;
    };
    let large = |number: &Number| number.as_u64().map(|_| i64::MAX);
    let rounded = |number: &Number| number.as_f64().map(|number| number.round() as i64);
    number
        .as_i64()
        .or_else(|| large(number))
        .or_else(|| rounded(number))
}

fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// The command line that runs `words`. A shell that is only there to run a
/// script (`["bash", "-lc", "…"]`) gives way to the script.
fn command_line(words: &[&str]) -> String {
    if let [shell, flag, script] = words {
        let shell = shell.rsplit('/').next().unwrap_or(shell);
        if ["bash", "sh", "zsh"].contains(&shell) && ["-c", "-lc"].contains(flag) {
            return (*script).to_owned();
        }
    }
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// The word as bash reads it back.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const N: Parameter = optional("n", Kind::Count);
    const T: Parameter = optional("t", Kind::Text);
    const L: Parameter = optional("l", Kind::Texts);
    const F: Parameter = optional("f", Kind::Flag);

    fn check(rule: Rule, given: Value, expected: Result<Value, &str>) {
        let mapping = Mapping {
            rules: vec![("a".to_owned(), rule)],
            ..Mapping::default()
        };
        let Value::Object(arguments) = json!({"a": given, "unknown": 1}) else {
            panic!("an object");
        };
        let actual = mapping.apply(arguments);
        assert_eq!(actual, expected.map_err(str::to_owned));
    }

    #[test]
    fn names_and_kinds() {
        let to = |parameter| Rule::To(parameter, Transform::Same);
        check(to(T), json!("x"), Ok(json!({"t": "x"})));
        check(to(T), json!(1), Err("arguments.a: expected a string"));
        check(to(N), json!(7), Ok(json!({"n": 7})));
        check(to(N), json!(7.0), Ok(json!({"n": 7})));
        check(to(N), json!(u64::MAX), Ok(json!({"n": i64::MAX})));
        check(to(N), json!("7"), Err("arguments.a: expected a number"));
        check(
            to(N),
            json!(-7),
            Err("arguments.a: expected no negative number, got -7"),
        );
        check(to(F), json!(true), Ok(json!({"f": true})));
        check(to(F), json!(1), Err("arguments.a: expected true or false"));
        check(to(L), json!(["x", "y"]), Ok(json!({"l": ["x", "y"]})));
        check(to(L), json!("x"), Ok(json!({"l": ["x"]})));
        check(
            to(L),
            json!([1]),
            Err("arguments.a: expected a list of strings"),
        );
        check(to(T), json!(null), Ok(json!({})));
        check(Rule::Ignore, json!("x"), Ok(json!({})));
    }

    #[test]
    fn numbers() {
        let add = |by| Rule::To(N, Transform::Add(by));
        check(add(1), json!(0), Ok(json!({"n": 1})));
        check(add(1), json!(i64::MAX), Ok(json!({"n": i64::MAX})));
        check(
            add(-2),
            json!(1),
            Err("arguments.a: expected no negative number, got -1"),
        );
        check(
            add(1),
            json!("x"),
            Err("arguments.a: expected a number, got \"x\""),
        );
        let times = |by| Rule::To(N, Transform::Multiply(by));
        check(times(1000), json!(2), Ok(json!({"n": 2000})));
        check(times(1000), json!(0.0015), Ok(json!({"n": 2})));
        check(times(1000), json!(1e300), Ok(json!({"n": i64::MAX})));
        assert_eq!(Transform::Add(1).invert(11), "10");
        assert_eq!(Transform::Multiply(1000).invert(1500), "2");
        assert_eq!(Transform::Same.invert(11), "11");
    }

    #[test]
    fn words() {
        let Value::Object(values) = json!({"true": "files", "false": null, "b": "c"}) else {
            panic!("an object");
        };
        let rule = Rule::To(T, Transform::Values(values));
        check(rule.clone(), json!(true), Ok(json!({"t": "files"})));
        check(rule.clone(), json!(false), Ok(json!({})));
        check(rule.clone(), json!("b"), Ok(json!({"t": "c"})));
        check(
            rule,
            json!("x"),
            Err("arguments.a: expected one of true, false, b, got x"),
        );
    }

    #[test]
    fn members() {
        let member = Rule::To(F, Transform::Same);
        let rule = Rule::Members(vec![("git".to_owned(), member)]);
        check(
            rule.clone(),
            json!({"git": false, "other": 1}),
            Ok(json!({"f": false})),
        );
        check(
            rule.clone(),
            json!({"git": 1}),
            Err("arguments.a.git: expected true or false"),
        );
        check(
            rule.clone(),
            json!(1),
            Err("arguments.a: expected an object"),
        );
        let mapping = Mapping {
            rules: vec![("a".to_owned(), rule)],
            ..Mapping::default()
        };
        let reached = mapping.reached();
        assert_eq!(reached, [(F, "a.git".to_owned(), Transform::Same)]);
    }

    #[test]
    fn fixed_values_and_defaults() {
        let Value::Object(fixed) = json!({"f": true}) else {
            panic!("an object");
        };
        let Value::Object(defaults) = json!({"n": 3}) else {
            panic!("an object");
        };
        let mapping = Mapping {
            rules: vec![("n".to_owned(), Rule::To(N, Transform::Same))],
            fixed,
            defaults,
        };
        let check = |given: Value, expected: Value| {
            let Value::Object(given) = given else {
                panic!("an object");
            };
            assert_eq!(mapping.apply(given), Ok(expected));
        };
        check(json!({}), json!({"n": 3, "f": true}));
        check(json!({"n": 4}), json!({"n": 4, "f": true}));
    }

    #[test]
    fn command_lines() {
        let check = |words: Value, expected: &str| {
            super::tests::check(
                Rule::To(T, Transform::CommandLine),
                words,
                Ok(json!({"t": expected})),
            );
        };
        check(json!(["ls", "-la", "src/a.rs"]), "ls -la src/a.rs");
        check(
            json!(["echo", "it's", "", "$HOME"]),
            r"echo 'it'\''s' '' '$HOME'",
        );
        check(json!(["bash", "-lc", "cd x && ls"]), "cd x && ls");
        check(json!(["/bin/sh", "-c", "a | b"]), "a | b");
        check(json!(["bash", "run.sh"]), "bash run.sh");
        let message = "arguments.a: expected a list of strings with the program first";
        let rule = Rule::To(T, Transform::CommandLine);
        super::tests::check(rule.clone(), json!([]), Err(message));
        super::tests::check(rule, json!("ls"), Err(message));
    }
}
