//! The builtin that bashkit calls for a lent program.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
use bytes::Bytes;

use super::Seen;
use super::answer::{apply, overtaken, overtaking, resolved, without_told};
use crate::environment::{ProgramFiles, ProgramPort, ProgramRequest, ProgramResult, Scope};
use crate::memory::bashkit::last_words::ProgramLimit;
use crate::memory::clock::{self, Timeline};
use crate::memory::local::Local;
use crate::memory::tree::Tree;

/// Exit code of a command that `timeout` ended.
const TIMED_OUT: i32 = 124;

/// What all lent programs of one environment share.
pub(crate) struct Lender {
    pub(crate) environment: u32,
    pub(crate) tree: Rc<RefCell<Tree>>,
    pub(crate) port: Rc<dyn ProgramPort>,
    pub(crate) seen: Seen,
}

/// One lent program.
pub(crate) struct LentProgram {
    name: String,
    lender: Local<Rc<Lender>>,
}

impl LentProgram {
    pub(crate) fn new(name: String, lender: Rc<Lender>) -> Self {
        Self {
            name,
            lender: Local::new(lender),
        }
    }
}

/// Counts real time while it lives.
struct Outside(Rc<Timeline>);

impl Drop for Outside {
    fn drop(&mut self) {
        self.0.leave_outside();
    }
}

/// The limit of a `timeout` that calls the program. Until the program has ended
/// the `timeout` does not see it pass, or it would drop what the program printed.
struct Limit {
    timeline: Rc<Timeline>,
    limit: Option<ProgramLimit>,
    passed: bool,
}

impl Limit {
    fn new(timeline: Rc<Timeline>, limit: Option<ProgramLimit>) -> Self {
        if let Some(limit) = limit {
            timeline.hold_clock(limit.us);
        }
        Self {
            timeline,
            limit,
            passed: false,
        }
    }

    /// Whether it has passed.
    fn pass(&mut self) -> bool {
        let now_us = self.timeline.now_us();
        self.passed |= self.limit.is_some_and(|limit| now_us >= limit.us);
        self.passed
    }

    /// Exit code of the program, which ended with `exit_code`.
    fn exit_code(&self, exit_code: i32) -> i32 {
        let preserves = self.limit.is_some_and(|limit| limit.preserve_status);
        match self.passed && !preserves {
            true => TIMED_OUT,
            false => exit_code,
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Some(limit) = self.limit {
            self.timeline.end_hold(limit.us);
        }
    }
}

async fn run(
    lender: &Lender,
    timeline: &Rc<Timeline>,
    scope: &Scope,
    limit: &mut Limit,
    request: ProgramRequest,
) -> ProgramResult {
    timeline.enter_outside();
    let _outside = Outside(timeline.clone());
    // The program is cancelled by its own signal at the time limit or that of
    // a `timeout`, the timer by its own once the program has ended; both are
    // waited for.
    let (program_cancel, _program_guard) = scope.cancel.child();
    let (timer_cancel, _timer_guard) = scope.cancel.child();
    let owned = |cancel| Scope {
        agent: scope.agent.clone(),
        cancel,
        ..scope.clone()
    };
    let (program_scope, timer_scope) = (owned(program_cancel.clone()), owned(timer_cancel.clone()));
    let mut program = pin!(lender.port.run(&program_scope, request));
    let start_timer = || {
        let limit_ms = timeline.until_deadline_us().div_ceil(1_000);
        Box::pin(lender.port.sleep(&timer_scope, limit_ms))
    };
    let mut timer = Some(start_timer());
    poll_fn(|cx| {
        while let Some(running) = &mut timer
            && running.as_mut().poll(cx).is_ready()
        {
            timeline.count_outside();
            let is_over = timeline.remaining_us() == 0 || timer_cancel.is_cancelled();
            if timeline.remaining_us() == 0 {
                program_cancel.cancel();
            }
            timer = (!is_over).then(&start_timer);
        }
        if limit.pass() {
            program_cancel.cancel();
        }
        let polled = program.as_mut().poll(cx);
        if polled.is_ready() {
            timer_cancel.cancel();
        }
        polled
    })
    .await
}

/// Has a program told everything at its next call, unless it ended.
struct Unfinished {
    lender: Rc<Lender>,
    name: String,
    ended: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.ended {
            self.lender.seen.forget(&self.name);
        }
    }
}

/// Calls the program, a second time if it lacks the files that the first
/// call built on, and puts what it changed into the tree.
async fn call(
    lender: Rc<Lender>,
    timeline: Rc<Timeline>,
    scope: Scope,
    limit: Option<ProgramLimit>,
    mut request: ProgramRequest,
) -> ExecResult {
    let mut limit = Limit::new(timeline.clone(), limit);
    let name = request.name.clone();
    let mut unfinished = Unfinished {
        lender: lender.clone(),
        name: name.clone(),
        ended: false,
    };
    let (result, told) = loop {
        let told = lender.seen.tell(&name, &lender.tree.borrow());
        let may_miss = told.since.is_some();
        request.since = told.since;
        request.state = told.state;
        request.changes = told.changes;
        let tree = told.tree;
        let asked = request.clone();
        let result = run(&lender, &timeline, &scope, &mut limit, asked).await;
        if result.files != ProgramFiles::Missing || !may_miss {
            break (result, tree);
        }
        lender.seen.forget(&name);
    };
    let mut stderr = result.stderr.to_vec();
    let now_us = timeline.now_us();
    let made = resolved(&told, result.changes);
    let changes = without_told(&told, &lender.tree.borrow(), made.clone());
    let lost = overtaking(&name, &overtaken(&told, &lender.tree.borrow(), &changes));
    let failures = apply(&mut lender.tree.borrow_mut(), changes, now_us);
    if failures.is_empty() && result.files == ProgramFiles::Kept {
        unfinished.ended = true;
        lender.seen.changed(&name, request.state, made, now_us);
    }
    stderr.extend_from_slice(lost.unwrap_or_default().as_bytes());
    for failure in &failures {
        stderr.extend_from_slice(format!("{name}: cannot keep {failure}\n").as_bytes());
    }
    timeline
        .last_words
        .printed(result.stdout.len() + stderr.len());
    let mut output = ExecResult::ok_bytes(result.stdout.to_vec());
    output.stderr = stderr.into();
    output.exit_code = match limit.exit_code(result.exit_code) {
        0 if !failures.is_empty() => 1,
        code => code,
    };
    output
}

#[async_trait]
impl Builtin for LentProgram {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let future = {
            let Some((timeline, scope)) = clock::current()
                .and_then(|timeline| timeline.hooks.scope().map(|scope| (timeline, scope)))
            else {
                return Ok(ExecResult::err(
                    format!("{}: no command is running\n", self.name),
                    126,
                ));
            };
            let lender = Rc::clone(&self.lender);
            let limit = timeline.last_words.take_limit();
            let request = ProgramRequest {
                environment: lender.environment,
                name: self.name.clone(),
                args: ctx.args.to_vec(),
                env: ctx
                    .env
                    .iter()
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect::<BTreeMap<_, _>>(),
                working_dir: ctx.cwd.to_string_lossy().into_owned(),
                stdin: Bytes::copy_from_slice(ctx.stdin_bytes().unwrap_or_default()),
                ..ProgramRequest::default()
            };
            let future: Pin<Box<dyn Future<Output = ExecResult>>> =
                Box::pin(call(lender, timeline, scope, limit, request));
            Local::new(future)
        };
        Ok(future.await)
    }
}
