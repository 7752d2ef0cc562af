//! The sandbox clock: virtual time that costs nothing to wait for.
//!
//! An environment has one [`Clock`], `max(step time + skew, last)`, which never
//! goes back. Each command runs on its own [`Timeline`], started from that
//! clock: work moves it by about the time that the work takes (`meter`), a
//! virtual sleep moves it at once (`order`), waiting for a lent program moves it
//! by the real time that passed. So a command times out by its own time, never
//! because a parallel one slept; and sleeps of parallel commands end in the
//! order of their ends. Work is counted, not timed: the core has no other clock,
//! and a replay must stop at the same place.

mod allowance;
mod base;
mod current;
mod deadline;
mod meter;
mod order;
mod sleep;
mod ticks;
mod time;
mod timeline;
mod work;

pub(crate) use base::{Clock, ClockState};
pub(crate) use current::{abandon, current, enter, read_current, spend};
pub(crate) use deadline::{Stop, commands_ended, end_commands, ending};
pub(crate) use order::Idle;
pub(crate) use sleep::Sleep;
pub(crate) use time::TimeSource;
pub(crate) use timeline::Timeline;
pub(crate) use work::{STEP_WORK, charge, end_step, pause, work};

#[cfg(test)]
mod tests;
