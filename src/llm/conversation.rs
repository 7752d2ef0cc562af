//! The append-only list of messages, with their encoded bytes kept and, beside
//! them, the head of the last request.
//!
//! Providers cache prefixes, so everything up to the end of message n is the same
//! bytes in every later request. What has been sent is sealed: an adapter merges
//! neighbours only among messages that were never sent, and the seals are part of
//! the saved conversation, so encoding it afresh gives the same bytes again.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::LlmError;
use super::head::KeptHead;
use super::message::{Message, Role};
use super::warning::Warning;
use super::wire::{Wire, WireFormat};

/// Messages in order. A clone shares storage until one of the two grows.
#[derive(Clone, Debug, Default)]
pub struct Conversation(Rc<Inner>);

#[derive(Clone, Debug, Default)]
struct Inner {
    messages: Vec<Message>,
    chars: u64,
    media: MediaSum,
    /// Ids of all calls, apart so that a decoder can hold them alone.
    call_ids: Rc<BTreeSet<String>>,
    sent: RefCell<Sent>,
}

/// Images, sounds and documents together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MediaSum {
    /// How many.
    pub count: usize,
    /// Their bytes, before base64.
    pub bytes: usize,
}

#[derive(Clone, Debug, Default)]
struct Sent {
    /// Message counts at which a request was encoded, ascending.
    seals: Vec<usize>,
    wire: Wire,
    /// Neither saved nor part of equality, like `wire`.
    head: Option<Rc<KeptHead>>,
}

impl Conversation {
    /// An empty conversation.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message. Costs O(this message), or one copy of everything when
    /// a clone still shares the storage.
    pub fn push(&mut self, message: Message) {
        let inner = Rc::make_mut(&mut self.0);
        inner.chars = inner.chars.saturating_add(message.approx_chars());
        for media in message.media() {
            inner.media.count += 1;
            inner.media.bytes = inner.media.bytes.saturating_add(media.len());
        }
        for call in message.tool_calls() {
            Rc::make_mut(&mut inner.call_ids).insert(call.id.clone());
        }
        inner.messages.push(message);
    }

    /// All messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.0.messages
    }

    /// An empty conversation that comes after this one: the ids of its calls are taken.
    pub(crate) fn successor(&self) -> Self {
        Self(Rc::new(Inner {
            call_ids: self.call_ids(),
            ..Inner::default()
        }))
    }

    /// Ids of all calls so far.
    pub(crate) fn call_ids(&self) -> Rc<BTreeSet<String>> {
        self.0.call_ids.clone()
    }

    /// Number of messages.
    pub fn len(&self) -> usize {
        self.0.messages.len()
    }

    /// Whether nothing has been said.
    pub fn is_empty(&self) -> bool {
        self.0.messages.is_empty()
    }

    /// Unicode characters of all messages, media counted at a flat rate; a
    /// running sum. A quarter of it is the token estimate of spec 5.5.
    pub fn approx_chars(&self) -> u64 {
        self.0.chars
    }

    /// Images, sounds and documents of all messages; a running sum.
    pub fn media(&self) -> MediaSum {
        self.0.media
    }

    /// The leading run of system and developer messages: they go into the
    /// provider's system field, everything later stays in place.
    pub fn leading_system(&self) -> &[Message] {
        let messages = self.messages();
        let end = messages
            .iter()
            .position(|message| !message.role.is_system())
            .unwrap_or(messages.len());
        &messages[..end]
    }

    /// Marks what is there as sent: it is never merged with what comes.
    pub fn seal(&mut self) {
        let inner = Rc::make_mut(&mut self.0);
        let count = inner.messages.len();
        let seals = &mut inner.sent.get_mut().seals;
        if count > 0 && seals.last() != Some(&count) {
            seals.push(count);
        }
    }

    /// Message counts at which a request was encoded, ascending.
    pub fn seals(&self) -> Vec<usize> {
        self.0.sent.borrow().seals.clone()
    }

    /// The head of the last request.
    pub(super) fn kept_head(&self) -> Option<Rc<KeptHead>> {
        self.0.sent.borrow().head.clone()
    }

    /// Keeps `head` in the place of the last one.
    pub(super) fn keep_head(&self, head: Rc<KeptHead>) {
        self.0.sent.borrow_mut().head = Some(head);
    }

    /// Seals what is there and returns its encoding, appending only messages
    /// that `format` has not encoded yet.
    ///
    /// # Errors
    ///
    /// Those of [`WireFormat::append`].
    pub fn encode(
        &self,
        format: &dyn WireFormat,
        warnings: &mut Vec<Warning>,
    ) -> Result<Ref<'_, Wire>, LlmError> {
        let messages = self.messages();
        let mut sent = self.0.sent.borrow_mut();
        let key = format.key();
        if sent.wire.key != key || sent.wire.encoded > messages.len() {
            sent.wire = Wire {
                key,
                ..Wire::default()
            };
        }
        // They are not in the history, even if they are all that there was.
        sent.wire.encoded = sent.wire.encoded.max(self.leading_system().len());
        if sent.seals.last() != Some(&messages.len()) {
            sent.seals.push(messages.len());
        }
        let Sent { seals, wire, .. } = &mut *sent;
        for group in groups(seals, wire.encoded) {
            let end = group.end;
            let (before, group) = messages[..end].split_at(group.start);
            if let Err(error) = format.append(before, group, wire, warnings) {
                *wire = Wire::default();
                return Err(error);
            }
            wire.encoded = end;
        }
        drop(sent);
        Ok(Ref::map(self.0.sent.borrow(), |sent| &sent.wire))
    }
}

/// The sealed runs after message `from`; walks back from the newest seal, so
/// that a round does not cost O(rounds).
fn groups(seals: &[usize], from: usize) -> Vec<Range<usize>> {
    let first = seals
        .iter()
        .rposition(|seal| *seal <= from)
        .map_or(0, |position| position + 1);
    let mut start = from;
    seals[first..]
        .iter()
        .map(|end| {
            let group = start..*end;
            start = *end;
            group
        })
        .collect()
}

impl Role {
    /// Whether the role gives instructions.
    pub fn is_system(self) -> bool {
        matches!(self, Role::System | Role::Developer)
    }
}

impl FromIterator<Message> for Conversation {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        let mut conversation = Self::new();
        for message in messages {
            conversation.push(message);
        }
        conversation
    }
}

/// Equal messages and equal seals: the two encode to the same bytes.
impl PartialEq for Conversation {
    fn eq(&self, other: &Self) -> bool {
        self.0.messages == other.0.messages
            && self.0.sent.borrow().seals == other.0.sent.borrow().seals
    }
}

#[derive(Serialize)]
struct SavedRef<'a> {
    messages: &'a [Message],
    seals: &'a [usize],
}

#[derive(Deserialize)]
struct Saved {
    messages: Vec<Message>,
    #[serde(default)]
    seals: Vec<usize>,
}

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SavedRef {
            messages: &self.0.messages,
            seals: &self.0.sent.borrow().seals,
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let saved = Saved::deserialize(deserializer)?;
        let ascending = saved.seals.is_sorted_by(|a, b| a < b);
        if !ascending || saved.seals.last() > Some(&saved.messages.len()) {
            return Err(serde::de::Error::custom(
                "seals must ascend and stay within the messages",
            ));
        }
        let conversation: Self = saved.messages.into_iter().collect();
        conversation.0.sent.borrow_mut().seals = saved.seals;
        Ok(conversation)
    }
}
