//! One task on one session: events to a printer, Ctrl-C to the session, the end
//! to an exit code.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hermitcrab::llm::Content;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::approve::Questions;
use crate::failure::{Code, Failure, reason};
use crate::harmless::harmless;
use crate::render::{Renderer, Style, TICK_MS};
use crate::signal::Stops;

/// What driving needs of a session.
pub(crate) trait Session {
    /// Gives it the task.
    async fn submit(&mut self, prompt: Content) -> Result<(), Failure>;

    /// The next event as JSON; none after `SESSION_END`. An event is not lost
    /// when the future is dropped.
    async fn next_event(&mut self) -> Option<Bytes>;

    /// Ends what it does, in good order.
    fn abort(&mut self);

    /// Ends it when it is idle.
    fn close(&mut self);

    /// What it may cost, in US dollars.
    fn max_cost_usd(&self) -> Option<f64> {
        None
    }
}

/// Where events go.
pub(crate) enum EventPrinter<W: Write> {
    /// One event per line.
    Json(W),
    /// For people.
    Human(Renderer<W>),
}

impl<W: Write> EventPrinter<W> {
    /// Of a session whose tools act in `elsewhere`, or here.
    pub(crate) fn human(out: W, style: Style, elsewhere: Option<String>) -> Self {
        let mut renderer = Renderer::new(out, style);
        renderer.set_elsewhere(elsewhere);
        Self::Human(renderer)
    }

    fn event(&mut self, json: &[u8]) -> io::Result<()> {
        match self {
            Self::Json(out) => {
                out.write_all(json)?;
                out.write_all(b"\n")
            }
            Self::Human(renderer) => match serde_json::from_slice::<Value>(json) {
                Ok(event) => renderer.event(&event),
                Err(_) => Ok(()),
            },
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Json(out) => out.flush(),
            Self::Human(renderer) => renderer.flush(),
        }
    }

    /// A message of the program's own; never into JSON.
    fn note(&mut self, message: &str) -> io::Result<()> {
        match self {
            Self::Json(_) => {
                eprintln!("hermitcrab: {}", harmless(message));
                Ok(())
            }
            Self::Human(renderer) => renderer.note(message),
        }
    }

    fn animates(&self) -> bool {
        matches!(self, Self::Human(renderer) if renderer.animates())
    }

    fn tick(&mut self) -> io::Result<()> {
        match self {
            Self::Json(_) => Ok(()),
            Self::Human(renderer) => renderer.tick(),
        }
    }

    /// Makes room on the terminal for a question.
    fn make_way(&mut self) -> io::Result<()> {
        match self {
            Self::Json(out) => out.flush(),
            Self::Human(renderer) => renderer.make_way(),
        }
    }

    fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Json(out) => out.flush(),
            Self::Human(renderer) => renderer.end(),
        }
    }
}

/// A stop that follows another one so soon is the same one: `timeout -s INT`
/// sends it to the process and to its group, and keys bounce.
const SAME_STOP: Duration = Duration::from_millis(250);

/// How a run ended.
pub(crate) struct Ended {
    /// Everything but a natural end is a failure, with exit code and sentence.
    pub(crate) result: Result<Code, Failure>,
    /// Whether the session was left as it was, in the middle of something.
    pub(crate) killed: bool,
    /// The last answer, with a line end: its text, or the value that was asked for.
    pub(crate) answer: Option<String>,
}

impl Ended {
    /// As it should.
    pub(crate) fn well() -> Self {
        Self {
            result: Ok(Code::DONE),
            killed: false,
            answer: None,
        }
    }

    /// Because something failed.
    pub(crate) fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            ..Self::well()
        }
    }
}

/// Runs `prompt` to its end and closes the session. Stops request an abort
/// first; the second one returns at once, and the caller drops the session.
/// While a question stands on the terminal, nothing else is shown there.
pub(crate) async fn drive<S: Session, W: Write>(
    session: &mut S,
    prompt: impl Into<Content>,
    printer: &mut EventPrinter<W>,
    stops: &mut Stops,
    questions: &mut Questions,
) -> Ended {
    let ended = |result| Ended {
        result,
        killed: false,
        answer: None,
    };
    if let Err(failure) = session.submit(prompt.into()).await {
        return ended(Err(failure));
    }
    let mut end = End::default();
    let mut stopping: Option<Instant> = None;
    // What could not be written, once the reader has gone.
    let mut broken: Option<io::Error> = None;
    let mut dirty = false;
    // Ready when the question that stands on the terminal is over.
    let mut asked: Option<oneshot::Receiver<()>> = None;
    let mut ticks = tokio::time::interval(Duration::from_millis(TICK_MS));
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        let written = tokio::select! {
            biased;
            () = stops.next() => {
                match stopping {
                    None => {
                        stopping = Some(Instant::now());
                        session.abort();
                        dirty = true;
                        printer.note("stopping; press Ctrl-C again to kill")
                    }
                    Some(first) if first.elapsed() < SAME_STOP => Ok(()),
                    Some(_) => {
                        let _ = printer.end();
                        return Ended {
                            result: Err(interrupted("killed: what it was doing has been cut off")),
                            killed: true,
                            answer: end.last_answer(),
                        };
                    }
                }
            }
            () = over(asked.as_mut()) => {
                asked = None;
                Ok(())
            }
            event = session.next_event(), if asked.is_none() => {
                let Some(event) = event else { break };
                if end.see(&event) {
                    session.close();
                }
                dirty = true;
                match broken {
                    None => printer.event(&event),
                    Some(_) => Ok(()),
                }
            }
            question = questions.next(), if asked.is_none() => {
                let written = printer.make_way();
                asked = Some(question.ask());
                written
            }
            // Nothing is waiting: what there is, leaves.
            () = std::future::ready(()), if dirty => {
                dirty = false;
                printer.flush()
            }
            _ = ticks.tick(), if printer.animates() && asked.is_none() => {
                dirty = true;
                printer.tick()
            }
        };
        if let Err(error) = written
            && broken.is_none()
        {
            broken = Some(error);
            session.abort();
        }
    }
    let passed = end.passed(session.max_cost_usd());
    for notice in end.notice().into_iter().chain(passed.as_deref()) {
        if broken.is_none()
            && stopping.is_none()
            && let Err(error) = printer.note(notice)
        {
            broken = Some(error);
        }
    }
    if let Err(error) = printer.end() {
        broken.get_or_insert(error);
    }
    let answer = end.last_answer();
    let ended = ended(match broken {
        Some(error) => Err(Failure::failed(format!(
            "cannot write to stdout: {}",
            reason(&error)
        ))),
        None if stopping.is_some() => Err(interrupted("interrupted")),
        None => end.result(),
    });
    Ended { answer, ..ended }
}

async fn over(asked: Option<&mut oneshot::Receiver<()>>) {
    match asked {
        // The other end is dropped, never used.
        Some(over) => drop(over.await),
        None => std::future::pending().await,
    }
}

/// Somebody wanted it to end.
pub(crate) fn interrupted(message: &str) -> Failure {
    Failure {
        code: Code::INTERRUPTED,
        message: message.to_owned(),
    }
}

/// What the events say about the end.
#[derive(Default)]
struct End {
    /// Reason of the last `PROCESSING_END`.
    reason: Option<String>,
    /// Message of the last `ERROR`.
    error: Option<String>,
    /// Limit and value of the last `TURN_LIMIT`.
    limit: Option<(String, u64)>,
    /// Finish reason and text of the last `ASSISTANT_TEXT_END`.
    answer: Option<(String, String)>,
    /// The value of the last `PROCESSING_END`, where one was asked for.
    output: Option<Value>,
    /// Tool rounds of the last `PROCESSING_END`.
    rounds: u64,
    /// Price of the session at the last `PROCESSING_END`, in US dollars, if it is known.
    cost_usd: Option<f64>,
    /// Whether the session closed because of an error.
    failed: bool,
}

/// The part of an event that the end depends on; the rest is skipped unparsed.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    kind: String,
    agent_id: Option<String>,
}

#[derive(Deserialize)]
struct Tail {
    data: Data,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    reason: String,
    message: String,
    limit: String,
    value: u64,
    finish_reason: String,
    text: String,
    rounds: u64,
    output: Option<Value>,
    totals: Totals,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Totals {
    cost_usd: Option<f64>,
}

impl End {
    fn last_answer(&self) -> Option<String> {
        let text = match (&self.output, &self.answer) {
            (Some(value), _) => value.to_string(),
            (None, Some((_, text))) => text.trim_end().to_owned(),
            (None, None) => return None,
        };
        Some(text + "\n")
    }

    /// Whether the input is done.
    fn see(&mut self, event: &[u8]) -> bool {
        let head: Head = serde_json::from_slice(event).unwrap_or_default();
        let ending = [
            "ASSISTANT_TEXT_END",
            "PROCESSING_END",
            "TURN_LIMIT",
            "ERROR",
            "SESSION_END",
        ];
        // A subagent's end is its parent's business.
        if head.agent_id.is_some() || !ending.contains(&head.kind.as_str()) {
            return false;
        }
        let data = match serde_json::from_slice::<Tail>(event) {
            Ok(tail) => tail.data,
            Err(_) => Data::default(),
        };
        match head.kind.as_str() {
            "ASSISTANT_TEXT_END" => {
                self.answer = Some((data.finish_reason, data.text));
            }
            "TURN_LIMIT" => self.limit = Some((data.limit, data.value)),
            "ERROR" => self.error = Some(data.message),
            "SESSION_END" => self.failed = data.reason == "error",
            _ => {
                self.reason = Some(data.reason);
                self.rounds = data.rounds;
                self.output = data.output;
                self.cost_usd = data.totals.cost_usd;
                return true;
            }
        }
        false
    }

    fn result(self) -> Result<Code, Failure> {
        let error = |default: &str| {
            Failure::failed(self.error.clone().unwrap_or_else(|| default.to_owned()))
        };
        if self.failed {
            return Err(error("the session ended with an error"));
        }
        match self.reason.as_deref() {
            Some("completed" | "awaiting_input") => self.answered(),
            Some("round_limit" | "turn_limit" | "time_limit" | "cost_limit") => Err(Failure {
                code: Code::LIMIT,
                message: match &self.limit {
                    Some((limit, value)) => limit_message(limit, *value),
                    None => "a limit ended the task".to_owned(),
                },
            }),
            Some("interrupted" | "aborted") => Err(interrupted("interrupted")),
            Some(_) => Err(error("the model call failed")),
            None => Err(error("the session ended before the task was done")),
        }
    }

    /// What the last answer makes of a task that nothing else has ended. Not
    /// every last answer is the end that was asked for, and a script goes by the
    /// exit code: a cut answer counts as a limit, and one that is none as failed.
    fn answered(&self) -> Result<Code, Failure> {
        match &self.answer {
            Some((finish, _)) if finish == "length" => Err(Failure {
                code: Code::LIMIT,
                message: "the last answer was cut off at the model's token limit: ask for less at \
                          once, or go on in another run"
                    .to_owned(),
            }),
            Some((finish, _)) if finish == "content_filter" => Err(Failure::failed(
                "the model refused to answer: put the task in other words or choose another --model",
            )),
            Some((_, text)) if text.trim().is_empty() && self.rounds == 0 => Err(Failure::failed(
                "the model answered nothing: try again or choose another --model",
            )),
            _ => Ok(Code::DONE),
        }
    }

    /// What the user should know about a natural end.
    fn notice(&self) -> Option<&'static str> {
        let silent = matches!(&self.answer, Some((_, text)) if text.trim().is_empty());
        (self.is_natural() && silent && self.answered().is_ok())
            .then_some("the model ended without a last word")
    }

    /// That the last answer passed the limit of the cost: no request was left that the
    /// limit could keep from being sent.
    fn passed(&self, most: Option<f64>) -> Option<String> {
        let (cost, most) = (self.cost_usd?, most?);
        (self.is_natural() && cost > most).then(|| {
            format!(
                "the session has cost {cost} US dollars, which is more than the limit of {most}: \
                 the last answer passed it"
            )
        })
    }

    fn is_natural(&self) -> bool {
        matches!(self.reason.as_deref(), Some("completed" | "awaiting_input"))
    }
}

/// What is said of a limit that ended a task.
pub(crate) fn limit_message(limit: &str, value: u64) -> String {
    let (unit, option) = match limit {
        "tool_rounds" if value == 1 => ("tool round", "--max-tool-rounds"),
        "tool_rounds" => ("tool rounds", "--max-tool-rounds"),
        "turns" if value == 1 => ("model answer", "--max-turns"),
        "turns" => ("model answers", "--max-turns"),
        "wall_time" => ("ms", "--max-wall-ms"),
        "cost" => {
            let dollars = value as f64 / 1e6;
            return format!(
                "the limit of {dollars} US dollars ended the task: raise --max-cost to let it go on"
            );
        }
        other => return format!("the limit {other} of {value} ended the task"),
    };
    format!("the limit of {value} {unit} ended the task: raise {option} to let it go on")
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A session that was recorded: its events after submit, abort and close.
    #[derive(Default)]
    struct Recorded {
        events: VecDeque<String>,
        calls: Vec<&'static str>,
    }

    impl Session for Recorded {
        async fn submit(&mut self, _prompt: Content) -> Result<(), Failure> {
            self.calls.push("submit");
            Ok(())
        }

        async fn next_event(&mut self) -> Option<Bytes> {
            self.events.pop_front().map(Bytes::from)
        }

        fn abort(&mut self) {
            self.calls.push("abort");
        }

        fn close(&mut self) {
            self.calls.push("close");
        }
    }

    fn recorded(events: &[&str]) -> Recorded {
        Recorded {
            events: events.iter().map(|event| (*event).to_owned()).collect(),
            calls: Vec::new(),
        }
    }

    const CLOSED: &str = r#"{"kind":"SESSION_END","data":{"state":"CLOSED","reason":"closed"}}"#;

    async fn check(events: &[&str], expected: Result<Code, (Code, &str)>) {
        let mut session = recorded(events);
        let mut out = Vec::new();
        let mut printer = EventPrinter::Json(&mut out);
        let mut stops = Stops::listen().expect("signals");
        let result = drive(
            &mut session,
            "x",
            &mut printer,
            &mut stops,
            &mut Questions::none(),
        )
        .await
        .result;
        let expected = expected.map_err(|(code, message)| Failure {
            code,
            message: message.to_owned(),
        });
        assert_eq!(result, expected);
        let lines: Vec<&str> = std::str::from_utf8(&out).expect("UTF-8").lines().collect();
        assert_eq!(lines, events);
    }

    #[tokio::test]
    async fn natural_end() {
        for reason in ["completed", "awaiting_input"] {
            let end = format!(r#"{{"kind":"PROCESSING_END","data":{{"reason":"{reason}"}}}}"#);
            check(&[&end, CLOSED], Ok(Code::DONE)).await;
        }
    }

    #[tokio::test]
    async fn limits() {
        for (limit, reason, message) in [
            (
                "tool_rounds",
                "round_limit",
                "the limit of 3 tool rounds ended the task: raise --max-tool-rounds to let it go on",
            ),
            (
                "turns",
                "turn_limit",
                "the limit of 3 model answers ended the task: raise --max-turns to let it go on",
            ),
            (
                "wall_time",
                "time_limit",
                "the limit of 3 ms ended the task: raise --max-wall-ms to let it go on",
            ),
            (
                "cost",
                "cost_limit",
                "the limit of 0.000003 US dollars ended the task: raise --max-cost to let it go on",
            ),
        ] {
            let hit = format!(r#"{{"kind":"TURN_LIMIT","data":{{"limit":"{limit}","value":3}}}}"#);
            let end = format!(r#"{{"kind":"PROCESSING_END","data":{{"reason":"{reason}"}}}}"#);
            check(&[&hit, &end, CLOSED], Err((Code::LIMIT, message))).await;
        }
    }

    #[tokio::test]
    async fn a_limit_of_one() {
        let hit = r#"{"kind":"TURN_LIMIT","data":{"limit":"tool_rounds","value":1}}"#;
        let end = r#"{"kind":"PROCESSING_END","data":{"reason":"round_limit"}}"#;
        let message =
            "the limit of 1 tool round ended the task: raise --max-tool-rounds to let it go on";
        check(&[hit, end, CLOSED], Err((Code::LIMIT, message))).await;
    }

    #[tokio::test]
    async fn last_answers() {
        let refused =
            "the model refused to answer: put the task in other words or choose another --model";
        let cut = "the last answer was cut off at the model's token limit: ask for less at once, or go on in another run";
        let nothing = "the model answered nothing: try again or choose another --model";
        for (finish, text, rounds, expected) in [
            ("stop", "a", 0, Ok(Code::DONE)),
            ("stop", "", 2, Ok(Code::DONE)),
            ("stop", " \\n", 0, Err((Code::FAILED, nothing))),
            ("length", "a", 2, Err((Code::LIMIT, cut))),
            ("length", "", 0, Err((Code::LIMIT, cut))),
            ("content_filter", "I", 2, Err((Code::FAILED, refused))),
        ] {
            let answer = format!(
                r#"{{"kind":"ASSISTANT_TEXT_END","data":{{"text":"{text}","finish_reason":"{finish}"}}}}"#
            );
            let end = format!(
                r#"{{"kind":"PROCESSING_END","data":{{"reason":"completed","rounds":{rounds}}}}}"#
            );
            check(&[&answer, &end, CLOSED], expected).await;
        }
    }

    #[test]
    fn a_limit_of_the_cost_that_the_last_answer_passed() {
        let check = |reason: &str, most: Option<f64>, expected: Option<&str>| {
            let mut end = End::default();
            end.see(
                format!(
                    r#"{{"kind":"PROCESSING_END","data":{{"reason":"{reason}","totals":{{"cost_usd":0.25}}}}}}"#
                )
                .as_bytes(),
            );
            assert_eq!(end.passed(most).as_deref(), expected, "{reason}, {most:?}");
        };
        let passed = "the session has cost 0.25 US dollars, which is more than the limit of \
                      0.0000001: the last answer passed it";
        check("completed", Some(0.000_000_1), Some(passed));
        check("cost_limit", Some(0.000_000_1), None);
        check("completed", Some(0.25), None);
        check("completed", None, None);
    }

    #[tokio::test]
    async fn errors() {
        let error = r#"{"kind":"ERROR","data":{"code":"c","message":"the key is wrong"}}"#;
        let end = r#"{"kind":"PROCESSING_END","data":{"reason":"error"}}"#;
        let dead = r#"{"kind":"SESSION_END","data":{"state":"CLOSED","reason":"error"}}"#;
        let failed = |message| Err((Code::FAILED, message));
        check(&[error, end, CLOSED], failed("the key is wrong")).await;
        check(&[error, dead], failed("the key is wrong")).await;
        check(&[dead], failed("the session ended with an error")).await;
        check(&[end], failed("the model call failed")).await;
        check(&[], failed("the session ended before the task was done")).await;
    }

    #[tokio::test]
    async fn an_error_that_was_overcome_is_none() {
        let error = r#"{"kind":"ERROR","data":{"message":"x"}}"#;
        let end = r#"{"kind":"PROCESSING_END","data":{"reason":"completed"}}"#;
        check(&[error, end, CLOSED], Ok(Code::DONE)).await;
    }

    #[tokio::test]
    async fn the_end_of_a_subagent_is_not_the_end() {
        let child = r#"{"kind":"PROCESSING_END","agent_id":"1","data":{"reason":"completed"}}"#;
        let end = r#"{"kind":"PROCESSING_END","data":{"reason":"aborted"}}"#;
        check(
            &[child, end, CLOSED],
            Err((Code::INTERRUPTED, "interrupted")),
        )
        .await;
    }

    #[tokio::test]
    async fn closes_after_the_input_and_aborts_when_nobody_reads() {
        struct Shut;
        impl Write for Shut {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let end = r#"{"kind":"PROCESSING_END","data":{"reason":"completed"}}"#;
        let mut session = recorded(&[end, CLOSED]);
        let mut stops = Stops::listen().expect("signals");
        let result = drive(
            &mut session,
            "x",
            &mut EventPrinter::Json(Shut),
            &mut stops,
            &mut Questions::none(),
        )
        .await
        .result;
        let error = Failure::failed("cannot write to stdout: broken pipe");
        assert_eq!(result, Err(error));
        assert_eq!(session.calls, ["submit", "close", "abort"]);
    }
}
