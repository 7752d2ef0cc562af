//! The emitter: events leave a session in order and are stamped with the time
//! of the step that carries them out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;

use crate::event::{Event, EventKind, rfc3339};

/// One event on its way to the host.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionEvent {
    /// Session that the host opened; for a subagent's event the root session.
    pub session_id: Rc<str>,
    /// The event as JSON; see [`crate::event`].
    pub json: Bytes,
}

/// Events that wait for the end of the step. Shared by all sessions of an instance.
#[derive(Clone, Default)]
pub(crate) struct Outbox(Rc<RefCell<Vec<Event>>>);

impl Outbox {
    /// Stamps and encodes what has been emitted since the last call.
    pub(crate) fn take(&self, now_ms: u64) -> Vec<SessionEvent> {
        let events = self.0.take();
        if events.is_empty() {
            return Vec::new();
        }
        let timestamp = rfc3339(now_ms);
        events
            .into_iter()
            .map(|mut event| {
                event.timestamp.clone_from(&timestamp);
                SessionEvent {
                    session_id: event.session_id.clone(),
                    json: event.to_json(),
                }
            })
            .collect()
    }
}

/// Emits the events of one session.
pub(crate) struct Emitter {
    outbox: Outbox,
    session_id: Rc<str>,
    seq: Cell<u64>,
}

impl Emitter {
    pub(crate) fn new(outbox: Outbox, session_id: Rc<str>) -> Self {
        Self {
            outbox,
            session_id,
            seq: Cell::new(0),
        }
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        let seq = self.seq.get() + 1;
        self.seq.set(seq);
        self.outbox.0.borrow_mut().push(Event {
            kind,
            seq,
            timestamp: String::new(),
            session_id: self.session_id.clone(),
            agent_id: None,
            parent_id: None,
        });
    }
}
