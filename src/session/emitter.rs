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

/// Bytes of an event that tells a piece of text.
const USUAL_BYTES: usize = 192;

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
        // One buffer for all: a step that brings news of an answer has tens.
        let mut timestamp = rfc3339(now_ms);
        let mut json = Vec::with_capacity(events.len() * USUAL_BYTES);
        let mut ends = Vec::with_capacity(events.len());
        for event in events {
            let mut event = Event { timestamp, ..event };
            event.write_json(&mut json);
            timestamp = std::mem::take(&mut event.timestamp);
            ends.push((event.session_id, json.len()));
        }
        let json = Bytes::from(json);
        let mut start = 0;
        ends.into_iter()
            .map(|(session_id, end)| SessionEvent {
                session_id,
                json: json.slice(std::mem::replace(&mut start, end)..end),
            })
            .collect()
    }
}

/// Emits the events of one session, or of a subagent on its session's stream.
pub(crate) struct Emitter {
    outbox: Outbox,
    session_id: Rc<str>,
    /// Counts all events of the stream.
    seq: Rc<Cell<u64>>,
    /// Counts all subagents of the stream.
    agents: Rc<Cell<u64>>,
    agent_id: Option<Rc<str>>,
    parent_id: Option<Rc<str>>,
}

impl Emitter {
    pub(crate) fn new(outbox: Outbox, session_id: Rc<str>) -> Self {
        Self {
            outbox,
            session_id,
            seq: Rc::default(),
            agents: Rc::default(),
            agent_id: None,
            parent_id: None,
        }
    }

    /// For a subagent of the session or subagent that this one emits for.
    pub(crate) fn child(&self) -> Self {
        let number = self.agents.get() + 1;
        self.agents.set(number);
        let parent = self.agent_id.as_ref().unwrap_or(&self.session_id);
        Self {
            outbox: self.outbox.clone(),
            session_id: self.session_id.clone(),
            seq: self.seq.clone(),
            agents: self.agents.clone(),
            agent_id: Some(format!("agent-{number}").into()),
            parent_id: Some(parent.clone()),
        }
    }

    /// Id of the subagent, if it is one.
    pub(crate) fn agent_id(&self) -> Option<&Rc<str>> {
        self.agent_id.as_ref()
    }

    pub(crate) fn emit(&self, kind: EventKind) {
        let seq = self.seq.get() + 1;
        self.seq.set(seq);
        self.outbox.0.borrow_mut().push(Event {
            kind,
            seq,
            timestamp: String::new(),
            session_id: self.session_id.clone(),
            agent_id: self.agent_id.clone(),
            parent_id: self.parent_id.clone(),
        });
    }
}
