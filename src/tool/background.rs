//! Commands that run beside the conversation: `shell` starts one, `command_output` says
//! what it printed, `stop_command` ends it. They outlive the input that began them and
//! end with the session.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use async_trait::async_trait;
use futures_util::future::{Either, select};
use serde::Deserialize;

use super::executor::Executor;
use super::mapping::{Kind, Parameter, optional, required};
use super::shell::{Combined, last_line};
use super::{CallContext, Declared, ToolError, ToolOutput};
use crate::effect::Spawner;
use crate::environment::{Cancel, EnvironmentError, ExecRequest, ExecStatus, Scope};

pub(super) const OUTPUT_PARAMETERS: &[Parameter] = &[
    required("command_id", Kind::Count),
    optional("wait_ms", Kind::Count),
];

pub(super) const STOP_PARAMETERS: &[Parameter] = &[required("command_id", Kind::Count)];

/// Commands of one session that run at the same time, at most.
const MAX_RUNNING: usize = 16;

/// A day, in ms: the limit of a command in the background.
const TIME_LIMIT_MS: u64 = 24 * 60 * 60 * 1_000;

/// The commands that one session has left running, and those that have ended since.
/// The default one belongs to no session and starts none.
#[derive(Clone, Default)]
pub struct BackgroundCommands(Rc<Inner>);

#[derive(Default)]
struct Inner {
    spawner: Option<Spawner>,
    /// Ends all of them.
    life: Cancel,
    commands: RefCell<Vec<Rc<Running>>>,
}

/// One of them.
struct Running {
    number: u64,
    started_ms: u64,
    max_bytes: usize,
    cancel: Cancel,
    /// What nobody has read yet.
    unread: RefCell<Combined>,
    end: RefCell<Option<Result<ExecStatus, EnvironmentError>>>,
    waiting: RefCell<Vec<Waker>>,
}

impl BackgroundCommands {
    /// None yet; all end when `life` fires.
    pub fn new(spawner: Spawner, life: Cancel) -> Self {
        Self(Rc::new(Inner {
            spawner: Some(spawner),
            life,
            commands: RefCell::default(),
        }))
    }

    /// Resolves when all have ended.
    pub async fn ended(&self) {
        let commands = self.0.commands.borrow().clone();
        for command in commands {
            command.ended().await;
        }
    }

    /// Starts `request` for `call`; returns its number.
    pub(super) fn start(&self, call: &CallContext, request: ExecRequest) -> Result<u64, ToolError> {
        let Some(spawner) = &self.0.spawner else {
            return Err(ToolError::new(
                "no command can go on in the background here",
            ));
        };
        let mut commands = self.0.commands.borrow_mut();
        let running = commands.iter().filter(|one| one.end.borrow().is_none());
        if running.count() >= MAX_RUNNING {
            return Err(ToolError::new(format!(
                "{MAX_RUNNING} commands run in the background, and there can be no more: stop one"
            )));
        }
        let (cancel, link) = self.0.life.child();
        let command = Rc::new(Running {
            number: commands.len() as u64 + 1,
            started_ms: call.port.now_ms(),
            max_bytes: call.max_captured_bytes,
            cancel: cancel.clone(),
            unread: Combined::new(call.max_captured_bytes).into(),
            end: RefCell::default(),
            waiting: RefCell::default(),
        });
        commands.push(command.clone());
        let environment = call.environment.within(Scope {
            cancel,
            in_background: true,
            ..call.scope.clone()
        });
        let number = command.number;
        spawner.spawn(async move {
            let _link = link;
            let request = ExecRequest {
                timeout_ms: TIME_LIMIT_MS,
                ..request
            };
            let push = |stream, bytes: &[u8]| command.unread.borrow_mut().push(stream, bytes);
            let end = environment.exec(request, &mut { push }).await;
            command.end.replace(Some(end));
            for waker in command.waiting.take() {
                waker.wake();
            }
        });
        Ok(number)
    }

    fn find(&self, number: u64) -> Result<Rc<Running>, ToolError> {
        let commands = self.0.commands.borrow();
        let index = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let found = index.and_then(|index| commands.get(index)).cloned();
        found.ok_or_else(|| {
            let known: Vec<_> = commands.iter().map(|one| one.number.to_string()).collect();
            ToolError::new(match known.as_slice() {
                [] => format!("no command {number} in the background; none has been started since the session began or was resumed"),
                known => format!("no command {number} in the background; there are {}", known.join(", ")),
            })
        })
    }
}

impl std::fmt::Debug for BackgroundCommands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BackgroundCommands")
            .field("commands", &self.0.commands.borrow().len())
            .finish()
    }
}

impl Running {
    async fn ended(&self) {
        poll_fn(|cx| {
            if self.end.borrow().is_some() {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits for its end, `ms` at most, or until the call is cancelled.
    async fn wait(&self, call: &CallContext, ms: u64) -> Result<(), ToolError> {
        if ms == 0 || self.end.borrow().is_some() {
            return Ok(());
        }
        let time = pin!(call.port.sleep(&call.scope, ms));
        match select(pin!(self.ended()), time).await {
            Either::Right((false, _)) => Err(ToolError::stopped("before it ended")),
            Either::Left(_) | Either::Right(_) => Ok(()),
        }
    }

    /// What it printed since the last time, and how it is.
    fn report(&self, call: &CallContext) -> Result<ToolOutput, ToolError> {
        let unread = self.unread.replace(Combined::new(self.max_bytes));
        let mut output = unread.finish();
        if output.text.is_empty() {
            output.text.push_str("(no new output)");
        }
        if !output.text.ends_with('\n') {
            output.text.push('\n');
        }
        match &*self.end.borrow() {
            None => {
                let ms = call.port.now_ms().saturating_sub(self.started_ms);
                let (s, tenths) = (ms / 1_000, ms % 1_000 / 100);
                output.text += &format!("[runs since {s}.{tenths} s]");
            }
            Some(Ok(status)) => {
                if status.timed_out {
                    output.text += "[ended: a day is the limit]\n";
                }
                output.text += &last_line(status);
                output.exit_code = Some(status.exit_code);
            }
            Some(Err(error)) => return Err(ToolError::from(error.clone()).after(output)),
        }
        Ok(output)
    }
}

/// Says what a command in the background printed.
pub(super) struct CommandOutput;

#[derive(Deserialize)]
pub(super) struct OutputArguments {
    command_id: u64,
    #[serde(default)]
    wait_ms: u64,
}

#[async_trait(?Send)]
impl Executor for CommandOutput {
    type Arguments = OutputArguments;

    const KIND: &'static str = "command_output";

    async fn execute(
        &self,
        _declared: &Declared,
        call: &CallContext,
        arguments: OutputArguments,
    ) -> Result<ToolOutput, ToolError> {
        let command = call.background.find(arguments.command_id)?;
        let wait_ms = arguments.wait_ms.min(call.timeouts.max_ms);
        command.wait(call, wait_ms).await?;
        command.report(call)
    }
}

/// Ends a command in the background.
pub(super) struct StopCommand;

#[derive(Deserialize)]
pub(super) struct StopArguments {
    command_id: u64,
}

#[async_trait(?Send)]
impl Executor for StopCommand {
    type Arguments = StopArguments;

    const KIND: &'static str = "stop_command";

    async fn execute(
        &self,
        _declared: &Declared,
        call: &CallContext,
        arguments: StopArguments,
    ) -> Result<ToolOutput, ToolError> {
        let command = call.background.find(arguments.command_id)?;
        command.cancel.cancel();
        command.ended().await;
        command.report(call)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use bytes::Bytes;
    use serde_json::json;

    use super::super::core::{CORE_TOOLS, Offers};
    use super::super::testing::{Log, call, remote_of};
    use super::super::{Executed, Pipeline, Registry};
    use super::*;
    use crate::effect::{self, EffectKind, Outcome, OutcomeKind};
    use crate::environment::OutputStream;

    /// A session that leaves commands running.
    struct Play {
        pipeline: Pipeline,
        executor: effect::Executor,
        life: Cancel,
        _log: Rc<Log>,
    }

    impl Play {
        fn new() -> Self {
            let offers = Offers {
                background_commands: true,
                ..Offers::default()
            };
            let registry = Registry::offered(CORE_TOOLS, &offers).expect("valid declarations");
            let (mut pipeline, log) = remote_of(registry);
            let (executor, life) = (effect::Executor::new(), Cancel::new());
            pipeline.background = BackgroundCommands::new(executor.spawner(), life.clone());
            Self {
                pipeline,
                executor,
                life,
                _log: log,
            }
        }

        /// The effects that there are now.
        fn effects(&mut self) -> Vec<(u64, EffectKind)> {
            self.executor.run(|| false);
            let effects = self.pipeline.port.take_effects().into_iter();
            effects.map(|effect| (effect.id, effect.kind)).collect()
        }

        fn tell(&mut self, id: u64, kind: OutcomeKind) {
            self.pipeline.port.deliver(Outcome { id, kind });
            self.executor.run(|| false);
        }

        /// Starts a call; what it comes to is there once it has ended.
        fn begin(
            &mut self,
            name: &str,
            arguments: serde_json::Value,
        ) -> Rc<Cell<Option<Executed>>> {
            let slot = Rc::new(Cell::new(None));
            let (pipeline, call) = (self.pipeline.clone(), call(name, &arguments.to_string()));
            let result = slot.clone();
            self.executor.spawner().spawn(async move {
                result.set(Some(pipeline.run(&Scope::new("s"), &call).await));
            });
            self.executor.run(|| false);
            slot
        }

        /// Runs a call that ends at once.
        fn text(&mut self, name: &str, arguments: serde_json::Value) -> String {
            let executed = self.begin(name, arguments).take();
            executed.expect("it does not wait").full
        }

        /// Leaves a command running; the id of its effect.
        fn leave(&mut self, text: &str) -> u64 {
            let started = json!({"command": text, "run_in_background": true});
            let said = self.text("shell", started);
            assert!(said.contains("runs in the background"), "{said}");
            let effects = self.effects();
            let [(id, EffectKind::Exec { request, .. })] = effects.as_slice() else {
                panic!("{effects:?}");
            };
            assert_eq!(request.command, text);
            *id
        }
    }

    fn out(text: &str) -> OutcomeKind {
        OutcomeKind::ExecOutput {
            stream: OutputStream::Stdout,
            data: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    fn end(exit_code: i32) -> OutcomeKind {
        OutcomeKind::ExecEnd(ExecStatus {
            exit_code,
            duration_ms: 4_200,
            ..ExecStatus::default()
        })
    }

    #[test]
    fn output_comes_in_parts() {
        let mut play = Play::new();
        let server = play.leave("serve");
        let of = json!({"command_id": 1});
        play.tell(server, out("listening\n"));
        play.pipeline.port.set_now_ms(2_500);
        let read = |play: &mut Play| play.text("command_output", of.clone());
        assert_eq!(read(&mut play), "listening\n[runs since 2.5 s]");
        assert_eq!(read(&mut play), "(no new output)\n[runs since 2.5 s]");
        play.tell(server, out("bye"));
        play.tell(server, end(3));
        let ended = "[exit code: 3, duration: 4.2 s]";
        assert_eq!(read(&mut play), format!("bye\n{ended}"));
        assert_eq!(read(&mut play), format!("(no new output)\n{ended}"));
    }

    #[test]
    fn a_call_waits_for_the_end_or_for_a_time() {
        let mut play = Play::new();
        let server = play.leave("serve");
        let waits = json!({"command_id": 1, "wait_ms": 5_000});
        let call = play.begin("command_output", waits.clone());
        let effects = play.effects();
        let [(sleep, EffectKind::Sleep { ms: 5_000 })] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        play.tell(*sleep, OutcomeKind::Slept);
        let text = call.take().expect("the time is over").full;
        assert!(text.contains("[runs since"), "{text}");

        let call = play.begin("command_output", waits);
        play.effects();
        play.tell(server, end(0));
        let text = call.take().expect("it has ended").full;
        assert!(text.contains("exit code: 0"), "{text}");
        // Nobody waits for the time any more.
        let effects = play.effects();
        assert!(
            matches!(effects.as_slice(), [(_, EffectKind::Cancel { .. })]),
            "{effects:?}"
        );
    }

    #[test]
    fn a_command_is_stopped() {
        let mut play = Play::new();
        let server = play.leave("serve");
        let call = play.begin("stop_command", json!({"command_id": 1}));
        let effects = play.effects();
        let [(_, EffectKind::Cancel { target })] = effects.as_slice() else {
            panic!("{effects:?}");
        };
        assert_eq!(*target, server);
        play.tell(server, end(143));
        let text = call.take().expect("it has ended").full;
        assert_eq!(text, "(no new output)\n[exit code: 143, duration: 4.2 s]");
    }

    #[test]
    fn the_end_of_the_session_ends_all_and_an_input_waits_for_none() {
        let mut play = Play::new();
        let commands = [play.leave("one"), play.leave("two")];
        let settled = Rc::new(Cell::new(false));
        let (port, done) = (play.pipeline.port.clone(), settled.clone());
        play.executor.spawner().spawn(async move {
            port.settled(&Scope::new("s")).await;
            done.set(true);
        });
        play.executor.run(|| false);
        assert!(settled.get());

        play.life.cancel();
        let mut stopped: Vec<u64> = Vec::new();
        for (_, effect) in play.effects() {
            if let EffectKind::Cancel { target } = effect {
                stopped.push(target);
            }
        }
        assert_eq!(stopped, commands);
    }

    #[test]
    fn unknown_ones_and_too_many() {
        let mut play = Play::new();
        let text = play.text("command_output", json!({"command_id": 1}));
        assert!(
            text.contains("no command 1 in the background; none has been"),
            "{text}"
        );
        for _ in 0..MAX_RUNNING {
            play.leave("serve");
        }
        let text = play.text("stop_command", json!({"command_id": 99}));
        assert!(
            text.contains("no command 99 in the background; there are 1, 2"),
            "{text}"
        );
        let one_more = json!({"command": "x", "run_in_background": true});
        let text = play.text("shell", one_more);
        assert!(text.contains("there can be no more: stop one"), "{text}");
    }
}
