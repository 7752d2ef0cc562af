//! Assertions on the requests that the scripted model recorded.

use serde::Deserialize;
use serde_json::Value;

use super::case::strings;
use super::normalise::{Circumstances, abbreviated, placed};

/// One assertion; see `tests/cases/README.md`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assertion {
    n: i64,
    #[serde(default)]
    pointer: String,
    #[serde(default, with = "present")]
    equals: Option<Value>,
    #[serde(default)]
    contains: OneOrMany,
    #[serde(default)]
    not_contains: OneOrMany,
    starts_with: Option<String>,
    ends_with: Option<String>,
    length: Option<usize>,
    #[serde(default)]
    absent: bool,
}

/// `null` is a value to compare with, not an absent field.
mod present {
    use serde::{Deserialize, Deserializer};
    use serde_json::Value;

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn texts(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

impl Assertion {
    /// Why the requests with these bodies do not meet the assertion.
    pub fn check(&self, bodies: &[Value], around: &Circumstances) -> Result<(), String> {
        let fail = |why: String| Err(format!("request {} {}: {why}", self.n, self.pointer));
        let index = match usize::try_from(self.n) {
            Ok(n) => n.checked_sub(1),
            Err(_) => bodies.len().checked_sub(self.n.unsigned_abs() as usize),
        };
        let Some(body) = index.and_then(|index| bodies.get(index)) else {
            return fail(format!("there are {} requests", bodies.len()));
        };
        let mut body = body.clone();
        strings(&mut body, &|text| placed(text, around));
        let Some(value) = lookup(&body, &self.pointer) else {
            return if self.absent {
                Ok(())
            } else {
                fail(format!("nothing there in {body}"))
            };
        };
        if self.absent {
            return fail(format!("should be absent, is {value}"));
        }
        let text = value.as_str();
        if let Some(expected) = &self.equals {
            let found = text.map_or_else(|| value.clone(), |text| abbreviated(text).into());
            if found != *expected {
                return fail(format!("should be\n  {expected}\nis\n  {found}"));
            }
        }
        for needle in self.contains.texts() {
            if !contains(value, needle) {
                return fail(format!("does not contain {needle:?}: {value}"));
            }
        }
        for needle in self.not_contains.texts() {
            if contains(value, needle) {
                return fail(format!("contains {needle:?}: {value}"));
            }
        }
        if let Some(start) = &self.starts_with
            && !text.is_some_and(|text| text.starts_with(start))
        {
            return fail(format!("does not start with {start:?}: {value}"));
        }
        if let Some(end) = &self.ends_with
            && !text.is_some_and(|text| text.ends_with(end))
        {
            return fail(format!("does not end with {end:?}: {value}"));
        }
        if let Some(length) = self.length {
            let found = match value {
                Value::Array(items) => items.len(),
                _ => text.unwrap_or_default().chars().count(),
            };
            if found != length {
                return fail(format!("length should be {length}, is {found}"));
            }
        }
        Ok(())
    }
}

/// JSON pointer with negative array indexes.
fn lookup<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(value, |value, token| {
        let token = token.replace("~1", "/").replace("~0", "~");
        match value {
            Value::Array(items) => {
                let index = match token.strip_prefix('-') {
                    Some(back) => items.len().checked_sub(back.parse().ok()?)?,
                    None => token.parse().ok()?,
                };
                items.get(index)
            }
            _ => value.get(&token),
        }
    })
}

fn contains(value: &Value, needle: &str) -> bool {
    match value {
        Value::String(text) => text.contains(needle),
        Value::Array(items) => items.iter().any(|item| contains(item, needle)),
        Value::Object(map) => map.values().any(|item| contains(item, needle)),
        _ => false,
    }
}
