//! JSON into types, by way of a tree.
//!
//! Each type is compiled anew for each way to read it. There is one, and it
//! reads structs from objects alone: what serde_json compiles for text, for
//! trees and for lists of fields would be a tenth of the slim core's download.
//! Only what a model streams is read from text.

use std::vec;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected,
    IntoDeserializer as _, MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Map, Value};

/// Reads `json`. Only what is no JSON has a line in its error; of a name that
/// comes twice the last one counts.
pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> Result<T, Error> {
    from_value(serde_json::from_str(json)?)
}

/// Reads a tree.
pub(crate) fn from_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(Tree(value))
}

struct Tree(Value);

impl Tree {
    fn unexpected(&self, expected: &dyn Expected) -> Error {
        let unexpected = match &self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(bool) => Unexpected::Bool(*bool),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (None, Some(number)) => Unexpected::Signed(number),
                (None, None) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        Error::invalid_type(unexpected, expected)
    }

    fn scalar<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(bool) => visitor.visit_bool(bool),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (None, Some(number)) => visitor.visit_i64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(_) | Value::Object(_) => Err(self.unexpected(&visitor)),
        }
    }
}

macro_rules! scalars {
    ($($name:ident)*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.scalar(visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Tree {
    type Error = Error;

    scalars! {
        deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
        deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_identifier deserialize_unit
    }

    forward_to_deserialize_any! { bytes byte_buf }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(values) => visitor.visit_seq(Elements(values.into_iter())),
            Value::Object(fields) => visitor.visit_map(Fields::new(fields)),
            _ => self.scalar(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(values) => visitor.visit_seq(Elements(values.into_iter())),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(fields) => visitor.visit_map(Fields::new(fields)),
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.scalar(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    /// A name, or an object of one name with what belongs to it.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let (name, content) = match self.0 {
            Value::String(name) => (name, None),
            Value::Object(fields) if fields.len() == 1 => {
                let mut fields = fields.into_iter();
                let (name, content) = fields.next().unwrap_or_default();
                (name, Some(content))
            }
            Value::Object(_) => {
                let expected = &"map with a single key";
                return Err(Error::invalid_value(Unexpected::Map, expected));
            }
            other => return Err(Self(other).unexpected(&"string or map")),
        };
        visitor.visit_enum(Variant { name, content })
    }
}

struct Elements(vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Elements {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let value = self.0.next();
        value.map(|value| seed.deserialize(Tree(value))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Fields {
    left: <Map<String, Value> as IntoIterator>::IntoIter,
    /// Of the name that was read last.
    value: Value,
}

impl Fields {
    fn new(fields: Map<String, Value>) -> Self {
        Self {
            left: fields.into_iter(),
            value: Value::Null,
        }
    }
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.left.next() else {
            return Ok(None);
        };
        self.value = value;
        let name: StringDeserializer<Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(Tree(self.value.take()))
    }
}

struct Variant {
    name: String,
    content: Option<Value>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Content;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content), Error> {
        let name: StringDeserializer<Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Content(self.content)))
    }
}

/// What belongs to a variant.
struct Content(Option<Value>);

impl Content {
    fn tree(self, expected: &str) -> Result<Tree, Error> {
        let missing = || Error::invalid_type(Unexpected::UnitVariant, &expected);
        self.0.map(Tree).ok_or_else(missing)
    }
}

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(value) => Err(Tree(value).unexpected(&"unit")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        seed.deserialize(self.tree("newtype variant")?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.tree("tuple variant")?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tree("struct variant")?.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "snake_case")]
    struct Form {
        text: String,
        count: Option<u8>,
        #[serde(default)]
        choice: Vec<Choice>,
        #[serde(default)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Choice {
        Plain,
        Some(i64),
        Pair(f64, (char, bool)),
        Fields { unit: (), own: Box<Form> },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Tagged {
        Empty,
        Form(Form),
        Fields { a: Option<u64> },
    }

    /// The same as serde_json reads from its own tree; of a variant with several
    /// values our errors say the name, too.
    fn check<T: DeserializeOwned + Debug + PartialEq>(json: &str) {
        let value: Value = serde_json::from_str(json).expect("JSON");
        let peer = serde_json::from_value::<T>(value).map_err(|error| error.to_string());
        let ours = from_json::<T>(json).map_err(|error| error.to_string());
        assert_eq!(ours, peer, "{json}");
    }

    #[test]
    fn the_same_as_serde_json() {
        let fields = r#"{"fields": {"own": {"text": ""}, "unit": null}}"#;
        let choice =
            format!(r#"["plain", {{"some": -3}}, {{"pair": [1, ["é", true]]}}, {fields}]"#);
        check::<Form>(&format!(
            r#"{{"text": "a", "count": 7, "choice": {choice}}}"#
        ));
        for json in [
            r#"{"text": "", "count": null, "rest": {"a": [1, -1, 1.5, {"b": null}]}}"#,
            r#"{"text": 1}"#,
            r#"{"text": {}}"#,
            r#"{"text": "", "count": 256}"#,
            r#"{"text": "", "count": -1}"#,
            r#"{"text": "", "count": 1.5}"#,
            r#"{"text": "", "count": []}"#,
            r#"{"text": "", "rest": []}"#,
            r#"{"text": "", "choice": {}}"#,
            r#"{"text": "", "choice": ["other"]}"#,
            r#"{"text": "", "choice": ["some"]}"#,
            r#"{"text": "", "choice": [{"plain": 1}]}"#,
            r#"{"text": "", "choice": [{"plain": null}]}"#,
            r#"{"text": "", "choice": [{"plain": null, "some": 1}]}"#,
            r#"{"text": "", "choice": [{}]}"#,
            r#"{"text": "", "choice": [7]}"#,
            r#"{"text": "", "choice": [{"pair": [1]}]}"#,
            r#"{"text": "", "other": 1}"#,
            r#"{}"#,
            r#"null"#,
            r#""text""#,
        ] {
            check::<Form>(json);
        }
        for json in [
            r#"{"type": "empty"}"#,
            r#"{"text": "a", "type": "form"}"#,
            r#"{"type": "fields"}"#,
            r#"{"type": "fields", "a": "b"}"#,
            r#"{"type": "other"}"#,
            r#"{}"#,
            r#"7"#,
        ] {
            check::<Tagged>(json);
        }
        check::<(u8, Option<bool>)>("[1, null]");
        check::<BTreeMap<String, f32>>(r#"{"a": 1, "b": -1, "c": 0.5}"#);
    }

    #[test]
    fn a_list_is_no_struct() {
        let error = from_json::<Form>(r#"["a", 1]"#).expect_err("a list");
        assert_eq!(
            error.to_string(),
            "invalid type: sequence, expected struct Form"
        );
    }
}
