//! `Event`: one event of a session as the host's users get it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

/// One event of a session: JSON bytes as the core encoded them, parsed only
/// when asked. [`hermitcrab::event`] describes every kind. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Event {
    json: Bytes,
    kind: Kind,
    value: Arc<OnceLock<Value>>,
}

/// Where the kind stands in the JSON, so that telling it allocates nothing.
type Kind = std::ops::Range<usize>;

/// What every event the core writes begins with.
const PREFIX: &[u8] = br#"{"kind":""#;

impl Event {
    pub(crate) fn from_json(json: Bytes) -> Self {
        let kind = match json.strip_prefix(PREFIX) {
            Some(rest) => {
                let end = rest.iter().position(|byte| *byte == b'"').unwrap_or(0);
                PREFIX.len()..PREFIX.len() + end
            }
            None => 0..0,
        };
        Self {
            json,
            kind,
            value: Arc::default(),
        }
    }

    /// Kind of event, such as `ASSISTANT_TEXT_DELTA`.
    pub fn kind(&self) -> &str {
        std::str::from_utf8(&self.json[self.kind.clone()]).unwrap_or_default()
    }

    /// The event as one JSON object in UTF-8, without a line break.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// The event as a JSON value; parsed at the first call.
    pub fn value(&self) -> &Value {
        self.value
            .get_or_init(|| serde_json::from_slice(&self.json).unwrap_or_default())
    }

    /// What belongs to the kind: the field `data`.
    pub fn data(&self) -> &Value {
        &self.value()["data"]
    }

    /// The kind with its data as a Rust type; `None` for kinds that this
    /// version does not know.
    pub fn parse(&self) -> Option<hermitcrab::event::EventKind> {
        serde_json::from_slice(&self.json).ok()
    }

    /// Number of the event within its session, from 1.
    pub fn seq(&self) -> u64 {
        #[derive(Deserialize)]
        struct Seq {
            seq: u64,
        }
        serde_json::from_slice::<Seq>(&self.json).map_or(0, |event| event.seq)
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

#[cfg(test)]
mod tests {
    use hermitcrab::event::EventKind;

    use super::Event;

    #[test]
    fn the_core_writes_the_kind_first() {
        let event = hermitcrab::event::Event {
            kind: EventKind::AssistantTextDelta {
                text: "hi".to_owned(),
            },
            seq: 7,
            timestamp: String::new(),
            session_id: "s".into(),
            agent_id: None,
            parent_id: None,
        };
        let read = Event::from_json(event.to_json());
        assert_eq!(read.kind(), "ASSISTANT_TEXT_DELTA");
        assert_eq!(read.seq(), 7);
        assert_eq!(read.data()["text"], "hi");
        assert_eq!(read.parse(), Some(event.kind));
    }
}
