//! The history: turns for hosts, and the same conversation encoded for the model.
//!
//! Turns are only ever appended, and each is converted to a message exactly
//! once, so that the bytes of earlier messages never change. A compaction
//! begins another conversation, which is a function of the turns: a session that goes
//! on from a record has the same.

use super::compaction::cut;
use super::turn::{Turn, results_message, user_message};
use crate::llm::{
    Content, Conversation, Media, MediaSum, Message, Response, Role, ToolResult, unbound,
};

/// What a conversation holds of images and documents at most: every request
/// sends them all again, base64 makes them a third larger, and providers refuse
/// requests beyond 32 MB or 100 images.
const MAX_MEDIA: MediaSum = MediaSum {
    count: 100,
    bytes: 20 * 1024 * 1024,
};

/// Turns of a session together with the conversation that the model sees.
#[derive(Default)]
pub(crate) struct History {
    turns: Vec<Turn>,
    conversation: Conversation,
    /// Turns more than the conversation has messages.
    gone: usize,
    assistant_turns: u32,
}

impl History {
    /// The history of an earlier session. `requests` are the numbers of turns
    /// at which a request was sent; empty: one before every answer.
    pub(crate) fn restored(turns: Vec<Turn>, requests: &[usize]) -> Self {
        let mut history = Self::default();
        for (index, turn) in turns.iter().enumerate() {
            let answer = matches!(turn, Turn::Assistant { .. });
            history.assistant_turns += u32::from(answer);
            // One message per turn, so a request came before this message, too.
            if requests.binary_search(&index).is_ok() || (requests.is_empty() && answer) {
                history.conversation.seal();
            }
            match turn {
                Turn::Compaction { kept, .. } => history.shorten(&turns[..=index], *kept),
                _ => history.conversation.push(turn.to_message()),
            }
        }
        if requests.last() == Some(&turns.len()) {
            history.conversation.seal();
        }
        history.turns = turns;
        history
    }

    /// Whether the model has not yet had its say about all that is there.
    pub(crate) fn is_open(&self) -> bool {
        let is_said = |turn: &&Turn| !matches!(turn, Turn::Compaction { .. });
        match self.turns.iter().rev().find(is_said) {
            Some(Turn::Assistant { tool_calls, .. }) => !tool_calls.is_empty(),
            Some(_) => true,
            None => false,
        }
    }

    pub(crate) fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// Assistant turns so far: what `max_turns` counts.
    pub(crate) fn assistant_turns(&self) -> u32 {
        self.assistant_turns
    }

    /// Text of the last answer.
    pub(crate) fn last_answer(&self) -> Option<&str> {
        self.turns.iter().rev().find_map(|turn| match turn {
            Turn::Assistant { content, .. } => Some(content.as_str()),
            _ => None,
        })
    }

    pub(crate) fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Numbers of turns at which a request was sent, as [`History::restored`] takes
    /// them. Those before the last compaction matter no more.
    pub(crate) fn requests(&self) -> Vec<usize> {
        let seals = self.conversation.seals();
        seals.into_iter().map(|seal| seal + self.gone).collect()
    }

    /// Tokens of a request with what is there and a system prompt of `prompt_chars`
    /// characters. An estimate; where the provider has counted more, that counts.
    pub(crate) fn tokens(&self, prompt_chars: u64) -> u64 {
        let estimate = (self.conversation.approx_chars() + prompt_chars) / 4;
        let mut since = 0;
        for turn in self.turns.iter().rev() {
            match turn {
                Turn::Compaction { .. } => break,
                Turn::Assistant { usage, .. } => {
                    let counted = usage.prompt_tokens_total();
                    let counted = counted.saturating_add(usage.output_tokens);
                    return estimate.max(counted.saturating_add(since / 4));
                }
                turn => since += turn.to_message().approx_chars(),
            }
        }
        estimate
    }

    /// Has the model read `summary` in place of all but the last `kept` turns, and of
    /// what stays word for word.
    pub(crate) fn compact(&mut self, summary: String, kept: usize, timestamp_ms: u64) {
        let mut turns = std::mem::take(&mut self.turns);
        turns.push(Turn::Compaction {
            summary,
            kept,
            timestamp_ms,
        });
        self.shorten(&turns, kept);
        self.turns = turns;
    }

    /// Begins the conversation anew after `turns`, whose last one is a compaction.
    fn shorten(&mut self, turns: &[Turn], kept: usize) {
        let Some((summary, before)) = turns.split_last() else {
            return;
        };
        let start = cut::start(before, before.len(), kept);
        let (gone, stay) = before.split_at(start);
        let mut conversation = self.conversation.successor();
        for turn in cut::carried(gone).chain([summary]) {
            conversation.push(turn.to_message());
        }
        for turn in stay {
            conversation.push(unbound(turn.to_message()));
        }
        // What is carried is at most what has gone.
        self.gone = turns.len().saturating_sub(conversation.len());
        self.conversation = conversation;
    }

    /// What `content` becomes where the conversation has no room for all of its
    /// images and documents: each that is too many is a text that says so.
    pub(crate) fn fitting(&self, content: Content) -> Content {
        let mut room = Room::in_conversation(&self.conversation);
        content.keeping(|media| room.takes(media))
    }

    /// Whether there is room for all of `content`.
    pub(crate) fn has_room_for(&self, content: &Content) -> bool {
        let mut room = Room::in_conversation(&self.conversation);
        content.media().all(|media| room.takes(media))
    }

    pub(crate) fn push_user(&mut self, content: Content, timestamp_ms: u64) {
        self.conversation.push(user_message(&content));
        self.turns.push(Turn::User {
            content,
            timestamp_ms,
        });
    }

    /// A steering message; the model sees it as the user's (spec 2.6).
    pub(crate) fn push_steering(&mut self, content: Content, timestamp_ms: u64) {
        self.conversation.push(user_message(&content));
        self.turns.push(Turn::Steering {
            content,
            timestamp_ms,
        });
    }

    pub(crate) fn push_system(&mut self, content: String, timestamp_ms: u64) {
        self.conversation
            .push(Message::text(Role::Developer, content.clone()));
        self.turns.push(Turn::System {
            content,
            timestamp_ms,
        });
    }

    pub(crate) fn push_response(&mut self, response: Response, timestamp_ms: u64) {
        self.assistant_turns += 1;
        self.turns.push(Turn::Assistant {
            content: response.message.joined_text(),
            tool_calls: response.message.tool_calls().cloned().collect(),
            reasoning: response.reasoning(),
            usage: Box::new(response.usage),
            response_id: Some(response.id).filter(|id| !id.is_empty()),
            replay: response.message.replay.clone().map(Box::new),
            timestamp_ms,
        });
        self.conversation.push(response.message);
    }

    pub(crate) fn push_results(&mut self, mut results: Vec<ToolResult>, timestamp_ms: u64) {
        let mut room = Room::in_conversation(&self.conversation);
        for result in &mut results {
            room.make_fit(result);
        }
        self.conversation.push(results_message(&results));
        self.turns.push(Turn::ToolResults {
            results,
            timestamp_ms,
        });
    }
}

/// What a conversation still takes of images and documents.
struct Room(MediaSum);

impl Room {
    fn in_conversation(conversation: &Conversation) -> Self {
        Self(conversation.media())
    }

    /// Whether `media` fits; if so, it is counted.
    fn takes(&mut self, media: &Media) -> bool {
        let sum = MediaSum {
            count: self.0.count + 1,
            bytes: self.0.bytes.saturating_add(media.len()),
        };
        let fits = sum.count <= MAX_MEDIA.count && sum.bytes <= MAX_MEDIA.bytes;
        if fits {
            self.0 = sum;
        }
        fits
    }

    fn make_fit(&mut self, result: &mut ToolResult) {
        for media in std::mem::take(&mut result.media) {
            if self.takes(&media) {
                result.media.push(media);
            } else {
                result.content.push('\n');
                result.content.push_str(&media.left_out());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::{MediaSource, Part};

    fn document(bytes: usize) -> Part {
        Part::document(vec![b'a'; bytes]).named("a.txt")
    }

    fn result(media: Vec<Media>) -> ToolResult {
        ToolResult {
            tool_call_id: "c".to_owned(),
            tool_name: "t".to_owned(),
            content: "found".to_owned(),
            media,
            is_error: false,
        }
    }

    /// A history that is full of documents but for one byte.
    fn nearly_full() -> History {
        let mut history = History::default();
        let all = vec![document(MAX_MEDIA.bytes - 1)];
        assert!(history.has_room_for(&all.clone().into()));
        history.push_user(all.into(), 0);
        history
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let mut history = nearly_full();
        let content = Content::from(vec![Part::text("see"), document(1), document(2)]);
        assert!(!history.has_room_for(&content));
        let content = history.fitting(content);
        assert_eq!(content.media().count(), 1);
        let note = "[left out: a.txt, , 2 bytes; the conversation holds too many attachments \
                    already]";
        assert_eq!(content.text(), format!("see\n{note}"));
        history.push_user(content, 0);
        let media = Media {
            source: MediaSource::Data("x".into()),
            media_type: "text/plain".to_owned(),
            detail: None,
            file_name: None,
        };
        history.push_results(vec![result(vec![media])], 0);
        let Some(Turn::ToolResults { results, .. }) = history.turns().last() else {
            panic!("results come last");
        };
        assert!(results[0].media.is_empty());
        assert!(
            results[0]
                .content
                .starts_with("found\n[left out: text/plain, 1 bytes; ")
        );
    }

    #[test]
    fn there_is_a_limit_to_their_number() {
        let history = History::default();
        let many = vec![document(1); MAX_MEDIA.count + 1];
        assert!(!history.has_room_for(&many.clone().into()));
        assert_eq!(
            history.fitting(many.into()).media().count(),
            MAX_MEDIA.count
        );
    }
}
