//! Paths as keys of JSON objects: as they are, and those that are not UTF-8 as a NUL, which
//! no path has, and a character for each byte.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<V: Serialize, S: Serializer>(
    map: &BTreeMap<PathBuf, V>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.iter().map(|(path, value)| (text(path), value)))
}

pub(super) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<PathBuf, V>, D::Error> {
    let texts = BTreeMap::<String, V>::deserialize(deserializer)?;
    let paths = texts.into_iter().map(|(text, value)| (path(&text), value));
    Ok(paths.collect())
}

fn text(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => {
            let bytes = path.as_os_str().as_bytes().iter();
            std::iter::once('\0')
                .chain(bytes.map(|byte| char::from(*byte)))
                .collect()
        }
    }
}

fn path(text: &str) -> PathBuf {
    let Some(bytes) = text.strip_prefix('\0') else {
        return PathBuf::from(text);
    };
    let bytes = bytes.chars().filter_map(|byte| u8::try_from(byte).ok());
    PathBuf::from(OsString::from_vec(bytes.collect()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_path_comes_back() {
        for bytes in [
            &b"src/a.txt"[..],
            "\u{e4}/\u{2603}".as_bytes(),
            b"a/\xff\xe4\x80",
        ] {
            let one = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(path(&text(one)), one);
        }
        assert_eq!(text(Path::new("\u{e4}")), "\u{e4}");
    }
}
