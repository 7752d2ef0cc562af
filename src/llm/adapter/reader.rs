//! What every decoder does with the bytes of a body: split them into events,
//! hand each one's data to the provider's [`ResponseDecoder`], and see to it that the
//! answer ends exactly once.

use super::sampled;
use crate::llm::builder::ResponseBuilder;
use crate::llm::error::{LlmError, LlmErrorKind, clip};
use crate::llm::names::Names;
use crate::llm::request::Request;
use crate::llm::response::{Sampled, Usage};
use crate::llm::sse::{SseDecoder, SseItem};
use crate::llm::stream::{Misuse, StreamDecoder, StreamEvent};

/// An answer as one provider's events tell it.
pub(super) trait ResponseDecoder {
    /// Takes the data of an event, or JSON that stands bare in the stream.
    fn data(&mut self, data: &str, out: &mut Vec<StreamEvent>) -> Result<(), Misuse>;

    /// Takes `[DONE]`, which says nothing where the last event does.
    fn done(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let _ = out;
        Ok(())
    }

    /// The body ended. Finishes an answer that is complete then; otherwise
    /// says what is missing.
    fn end_of_body(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), Misuse> {
        let _ = out;
        Err(Misuse("it ended without its last event".to_owned()))
    }

    /// What collects the answer.
    fn builder(&mut self) -> &mut ResponseBuilder;

    /// Names for errors.
    fn names(&self) -> &Names;

    /// Tokens counted so far.
    fn usage(&self) -> Usage;

    /// Ends the answer with `error`.
    fn fail(&mut self, error: LlmError, out: &mut Vec<StreamEvent>) {
        let usage = self.usage();
        self.builder().error(error, usage, out);
    }
}

/// The decoder of `answer`, which is one to `request` before its first event.
pub(super) fn decoder(
    request: &Request,
    answer: impl ResponseDecoder + 'static,
) -> Box<dyn StreamDecoder> {
    Box::new(Reader {
        sse: SseDecoder::new(),
        answer,
        sampled: sampled::are_asked_for(request).then(Sampled::default),
    })
}

/// The decoder around an [`ResponseDecoder`].
struct Reader<A> {
    sse: SseDecoder,
    answer: A,
    /// Tokens so far, where they are asked for.
    sampled: Option<Sampled>,
}

impl<A: ResponseDecoder> Reader<A> {
    /// Adds the tokens to an answer that has just ended.
    fn give_sampled(&mut self, out: &mut [StreamEvent]) {
        if let Some(StreamEvent::Finish { response }) = out.last_mut() {
            let sampled = self.sampled.take();
            let sampled = sampled.filter(|sampled| *sampled != Sampled::default());
            response.sampled = sampled.map(Box::new);
        }
    }
}

impl<A: ResponseDecoder> StreamDecoder for Reader<A> {
    fn feed(&mut self, bytes: &[u8], out: &mut Vec<StreamEvent>) {
        let (answer, sampled) = (&mut self.answer, &mut self.sampled);
        if !answer.builder().has_ended() {
            self.sse
                .feed(bytes, |item| take(answer, sampled, item, out));
            self.give_sampled(out);
        }
    }

    fn finish(&mut self, out: &mut Vec<StreamEvent>) {
        let (answer, sampled) = (&mut self.answer, &mut self.sampled);
        if answer.builder().has_ended() {
            return;
        }
        self.sse.finish(|item| take(answer, sampled, item, out));
        if answer.builder().has_ended() {
            return self.give_sampled(out);
        }
        if let Err(Misuse(missing)) = answer.end_of_body(out) {
            let cause = match self.sse.first_stray_line() {
                "" => missing,
                line => format!(
                    "what {} sends is not an event stream, it begins with `{}`",
                    sender(answer.names()),
                    clip(line)
                ),
            };
            broken(answer, &cause, out);
        }
        self.give_sampled(out);
    }

    fn fail(&mut self, error: LlmError, out: &mut Vec<StreamEvent>) {
        self.answer.fail(error, out);
    }
}

fn take(
    answer: &mut impl ResponseDecoder,
    sampled: &mut Option<Sampled>,
    item: SseItem<'_>,
    out: &mut Vec<StreamEvent>,
) {
    if answer.builder().has_ended() {
        return;
    }
    if let (Some(sampled), SseItem::Event { data, .. } | SseItem::Json(data)) = (sampled, &item) {
        sampled::collect(data, sampled);
    }
    let result = match item {
        // A sign of life, or all that came of an event before the body broke off.
        SseItem::Event { data, .. } if data.trim().is_empty() => Ok(()),
        SseItem::Event { data, .. } if data.trim() == "[DONE]" => answer.done(out),
        SseItem::Event { data, .. } | SseItem::Json(data) => answer.data(data, out),
        SseItem::TooLong => Err(Misuse("an event is longer than 64 MiB".to_owned())),
    };
    if let Err(Misuse(cause)) = result {
        broken(answer, &cause, out);
    }
}

/// Whose body it is: a wrong base URL is the usual cause of a strange one.
fn sender(names: &Names) -> String {
    match names.base_url.as_str() {
        "" => "its server".to_owned(),
        url => format!("the base URL {url}"),
    }
}

fn broken(answer: &mut impl ResponseDecoder, cause: &str, out: &mut Vec<StreamEvent>) {
    let error = answer
        .names()
        .error(LlmErrorKind::Stream, None, None, cause);
    answer.fail(error, out);
}
