//! Bytes in JSON, for people who read logs: text as a string, and all else, such as
//! archives, as `{"base64": …}`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Blob<'a> {
    Text(std::borrow::Cow<'a, str>),
    Bytes { base64: String },
}

impl<'a> From<&'a Bytes> for Blob<'a> {
    fn from(bytes: &'a Bytes) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Self::Text(text.into()),
            _ => Self::Bytes {
                base64: STANDARD.encode(bytes),
            },
        }
    }
}

impl Blob<'_> {
    fn bytes<E: de::Error>(self) -> Result<Bytes, E> {
        match self {
            Self::Text(text) => Ok(text.into_owned().into()),
            Self::Bytes { base64 } => STANDARD.decode(base64).map(Bytes::from).map_err(E::custom),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
    Blob::from(bytes).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    Blob::deserialize(deserializer)?.bytes()
}

/// Paths and contents, as pairs.
pub(crate) mod files {
    use super::{Blob, Bytes, Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        files: &[(String, Bytes)],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            files
                .iter()
                .map(|(path, content)| (path, Blob::from(content))),
        )
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<(String, Bytes)>, D::Error> {
        Vec::<(String, Blob<'_>)>::deserialize(deserializer)?
            .into_iter()
            .map(|(path, content)| Ok((path, content.bytes()?)))
            .collect()
    }
}
