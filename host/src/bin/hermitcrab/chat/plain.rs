//! The conversation line by line, for a terminal that cannot move its cursor.

use std::io::{self, Write as _};

use bytes::Bytes;
use hermitcrab::llm::Content;

use super::commands::{self, Command};
use crate::approve::Questions;
use crate::cli::RunOptions;
use crate::connect::HostSession;
use crate::failure::{Code, Failure};
use crate::render::Style;
use crate::session::{Ended, EventPrinter, Session, drive, interrupted};
use crate::signal::Stops;

/// One input of a session that goes on after it.
struct Input<'a> {
    session: &'a mut HostSession,
    done: bool,
    over: bool,
    first: bool,
}

impl Session for Input<'_> {
    async fn submit(&mut self, prompt: Content) -> Result<(), Failure> {
        match self.first {
            true => self.session.submit(prompt).await,
            false => {
                let submitted = self.session.session.submit(prompt).await;
                submitted.map_err(crate::connect::failed)
            }
        }
    }

    async fn next_event(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        let event = self.session.next_event().await;
        self.over |= event.is_none();
        event
    }

    fn abort(&mut self) {
        self.session.interrupt();
    }

    fn close(&mut self) {
        self.done = true;
    }
}

/// Reads lines and has each done.
pub(super) async fn converse(
    session: &mut HostSession,
    prompt: Content,
    options: &RunOptions,
    stops: &mut Stops,
    questions: &mut Questions,
) -> Ended {
    let style = Style::of_stdout(options.quiet);
    let mut printer = EventPrinter::human(io::stdout(), style, options.elsewhere.name());
    let mut prompt = Some(prompt).filter(|prompt| !prompt.is_empty());
    let mut first = true;
    let mut ended = Ended::well();
    loop {
        let input = match prompt.take() {
            Some(prompt) => prompt,
            None => match line(stops).await {
                Err(Stopped) => {
                    ended = Ended::failed(interrupted("interrupted"));
                    break;
                }
                Ok(None) => break,
                Ok(Some(line)) if line.trim().is_empty() && !(first && session.is_cut_off()) => {
                    continue;
                }
                Ok(Some(line)) => match commands::parse(&line) {
                    None => line.into(),
                    Some(Ok(Command::Quit)) => break,
                    Some(_) => {
                        println!("On this terminal there is only /quit; what you write is sent.");
                        continue;
                    }
                },
            },
        };
        let mut one = Input {
            session,
            done: false,
            over: false,
            first,
        };
        ended = drive(&mut one, input, &mut printer, stops, questions).await;
        let over = one.over;
        first = false;
        if let Err(failure) = &ended.result {
            println!("! {}", crate::harmless::harmless(&failure.message));
        }
        if over || ended.killed {
            return ended;
        }
        if stops.are_final() {
            ended.result = Err(interrupted("interrupted"));
            break;
        }
        ended.result = Ok(Code::DONE);
    }
    session.close();
    while session.next_event().await.is_some() {}
    ended
}

/// A signal came.
struct Stopped;

/// The next line; none at the end.
async fn line(stops: &mut Stops) -> Result<Option<String>, Stopped> {
    print!("> ");
    let _ = io::stdout().flush();
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line);
        read.is_ok_and(|bytes| bytes > 0).then_some(line)
    });
    tokio::select! {
        () = stops.next() => {
            println!();
            Err(Stopped)
        }
        line = read => Ok(line.ok().flatten()),
    }
}
