//! What becomes of the calls of an answer when it ends, for every adapter.
//!
//! A call that never came to its end is not run, and never lost in silence: a
//! limit that cut it off becomes a warning, anything else is a broken
//! stream. And every call that stays has a unique id, so that each has
//! exactly one result and the next request is valid.

use std::collections::BTreeSet;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::response::{CALL_TRUNCATED, FinishKind};
use super::stream::Misuse;
use super::warning::Warning;
use crate::text::SortedMap;

/// A call as it stands when the answer ends.
pub(crate) struct Written<'a> {
    pub(crate) segment: u32,
    pub(crate) id: &'a str,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a str,
    /// Its end has not come.
    pub(crate) is_open: bool,
    /// Its arguments are whole whatever they look like.
    pub(crate) is_given: bool,
}

/// The calls of an answer that has ended.
#[derive(Debug)]
pub(crate) struct Settled {
    /// Why the answer ended.
    pub(crate) reason: FinishKind,
    fates: SortedMap<u32, Fate>,
}

#[derive(Debug)]
enum Fate {
    CutOff,
    /// It stands in the answer already.
    Repeated,
    Renamed(String),
}

impl Settled {
    /// Settles `calls`, in the order in which they began; `last` is the
    /// segment that the answer ends with, `earlier` the ids of earlier calls.
    pub(super) fn new(
        reason: FinishKind,
        calls: Vec<Written<'_>>,
        last: Option<u32>,
        earlier: &BTreeSet<String>,
    ) -> Result<Self, Misuse> {
        let mut settled = Self {
            reason,
            fates: SortedMap::new(),
        };
        if calls.is_empty() {
            return match reason {
                FinishKind::ToolCalls => {
                    Err(Misuse("it ended to call a tool, and calls none".to_owned()))
                }
                _ => Ok(settled),
            };
        }
        let is_limit = matches!(reason, FinishKind::Length | FinishKind::ContentFilter);
        for call in &calls {
            if call.is_open && !is_limit {
                let name = call.name;
                return Err(Misuse(format!("the call of `{name}` has no end")));
            }
            // A limit cuts off what is being written.
            let is_last = is_limit && last == Some(call.segment);
            if call.is_open || is_last && !call.is_whole() {
                settled.fates.insert(call.segment, Fate::CutOff);
            }
        }
        settled.name(&calls, earlier);
        if reason == FinishKind::Stop {
            settled.reason = FinishKind::ToolCalls;
        }
        Ok(settled)
    }

    /// Gives every call that stays an id that no other call has.
    fn name(&mut self, calls: &[Written<'_>], earlier: &BTreeSet<String>) {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let mut take = |id: &str| !earlier.contains(id) && taken.insert(id.to_owned());
        let mut written: BTreeSet<(&str, &str, &str)> = BTreeSet::new();
        let mut number = 1_u64;
        for call in calls {
            if self.fates.contains_key(&call.segment) {
                continue;
            }
            if !call.id.is_empty() && !written.insert((call.id, call.name, call.arguments)) {
                self.fates.insert(call.segment, Fate::Repeated);
                continue;
            }
            if !call.id.is_empty() && take(call.id) {
                continue;
            }
            let id = loop {
                number += 1;
                let id = match call.id {
                    "" => format!("call_{number}"),
                    id => format!("{id}_{number}"),
                };
                if take(&id) {
                    break id;
                }
            };
            self.fates.insert(call.segment, Fate::Renamed(id));
        }
    }

    /// Whether the call of `segment` stays; `rename` gets its new id, if it
    /// has one.
    pub(crate) fn keep(&self, segment: u32, rename: impl FnOnce(&str)) -> bool {
        match self.fates.get(&segment) {
            Some(Fate::CutOff | Fate::Repeated) => return false,
            Some(Fate::Renamed(id)) => rename(id),
            None => {}
        }
        true
    }

    /// What a host should know of this.
    pub(super) fn warnings(&self) -> impl Iterator<Item = Warning> + '_ {
        self.fates.values().filter_map(|fate| match fate {
            Fate::CutOff => Some(cut_off()),
            Fate::Repeated => Some(Warning::new(
                "call_repeated",
                "the answer holds the same tool call twice; it is run once",
            )),
            Fate::Renamed(_) => None,
        })
    }
}

/// Says that a limit cut off a call.
pub(super) fn cut_off() -> Warning {
    Warning::new(
        CALL_TRUNCATED,
        "the last tool call was cut off and is left out",
    )
}

impl Written<'_> {
    fn is_whole(&self) -> bool {
        self.is_given || raw_object(self.arguments).is_some()
    }
}

/// `arguments` if they are one JSON object whose numbers can be read: one
/// such as `1e400` would make every later request of the session fail.
pub(super) fn raw_object(arguments: &str) -> Option<&str> {
    let raw: &RawValue = serde_json::from_str(arguments).ok()?;
    let object = serde_json::from_str::<Map<String, Value>>(raw.get());
    object.is_ok().then_some(raw.get())
}
