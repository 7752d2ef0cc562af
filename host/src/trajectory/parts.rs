//! Messages of a trajectory as text, and what has no place in a history.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A text, or parts of it.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Option<Written>")]
pub(super) struct Text(Vec<Part>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

impl From<Option<Written>> for Text {
    fn from(written: Option<Written>) -> Self {
        Self(match written {
            None => Vec::new(),
            Some(Written::Parts(parts)) => parts,
            Some(Written::Text(text)) => vec![Part {
                kind: "text".to_owned(),
                text: Some(text),
            }],
        })
    }
}

impl Text {
    /// The texts, one a line, with a remark in place of each other part.
    pub(super) fn joined(self, left_out: &mut LeftOut) -> String {
        let parts = self.0.into_iter().map(|part| match part.text {
            Some(text) => text,
            None => {
                let kind: String = part.kind.chars().take(20).collect();
                let remark = format!("[{kind}, left out]");
                left_out.part(kind);
                remark
            }
        });
        parts.collect::<Vec<_>>().join("\n")
    }
}

/// What is left out of a history.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    notes: Vec<&'static str>,
    /// Parts by kind.
    parts: BTreeMap<String, usize>,
}

impl LeftOut {
    pub(super) fn note(&mut self, what: &'static str) {
        if !self.notes.contains(&what) {
            self.notes.push(what);
        }
    }

    fn part(&mut self, kind: String) {
        *self.parts.entry(kind).or_default() += 1;
    }

    pub(super) fn list(self) -> Vec<String> {
        let parts = self
            .parts
            .into_iter()
            .map(|(kind, count)| match (&*kind, count) {
                ("image", 2..) => format!("{count} images"),
                (kind, 1) => format!("1 {kind}"),
                (kind, count) => format!("{count} parts of type {kind}"),
            });
        let notes = self.notes.into_iter().map(str::to_owned);
        notes.chain(parts).collect()
    }
}
