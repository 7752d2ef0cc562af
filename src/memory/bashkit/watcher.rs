//! The watcher for cancellation.
//!
//! bashkit polls one beside every execution. On wasm32 it reads the clock until 10 ms
//! have passed, then wakes its task, in every poll but the first; whether it is polled
//! before the command or behind it, chance decides (`tokio::select!`). Its readings
//! counted, every poll would take 10 ms, and no replay would count the same.
//!
//! So readings are counted in rows. A row ends where anything else is seen: a builtin
//! starts, something is printed, read, written or woken, a poll begins or ends. In a row
//! the clock that is seen jumps by those 10 ms at readings 64, 128, 256 and so on,
//! whoever reads. The watcher's last reading is such a jump, wherever in a row its first
//! one was, and at most as many readings behind it as there were before. What counts of
//! a row is the greatest of these numbers that its command has reached, which the
//! watcher does not change: it leads a row on to the next one.
//!
//! What this means for users: a builtin that computes long sees a clock that is ahead, by
//! 10 ms for each doubling of its readings, some 0.2 s at most; `time` and `timeout` look
//! at that. Seen in 0.20.2, which has no option to leave the watcher out; its streaming
//! without a watcher, `exec_streaming`, holds all output until the end.

use std::cell::Cell;

/// How often it wakes its task in a poll.
#[cfg_attr(
    not(all(target_arch = "wasm32", feature = "sandbox")),
    allow(dead_code)
)]
pub(in crate::memory) const WAKES: u32 = 1;

/// How long it reads the clock in a poll, in µs of the time that it sees.
const WAIT_US: u64 = 10_000;
/// The reading of the first jump.
const FIRST_JUMP: u64 = 64;

/// The readings of one command.
#[derive(Debug, Default)]
pub(in crate::memory) struct Rows {
    polls: Cell<u64>,
    /// Readings in this row, and those of them that were counted.
    length: Cell<u64>,
    counted: Cell<u64>,
}

/// Whether the clock jumps at this reading of a row.
fn is_jump(reading: u64) -> bool {
    reading >= FIRST_JUMP && reading.is_power_of_two()
}

/// What counts of so many readings.
fn reached(readings: u64) -> u64 {
    match readings.checked_ilog2() {
        Some(power) if readings >= FIRST_JUMP => 1 << power,
        _ => 0,
    }
}

impl Rows {
    /// A poll begins.
    pub(in crate::memory) fn begin_poll(&self) {
        self.polls.set(self.polls.get() + 1);
        self.begin();
    }

    fn begin(&self) {
        self.length.set(0);
        self.counted.set(0);
    }

    /// One reading. Gives how many count now, if the clock jumps.
    pub(in crate::memory) fn read(&self) -> Option<u64> {
        let length = self.length.get() + 1;
        self.length.set(length);
        // Those since the last jump may be the watcher's.
        is_jump(length).then(|| self.count(reached(length / 2)))
    }

    fn count(&self, readings: u64) -> u64 {
        readings - self.counted.replace(readings)
    }

    /// The row ends. Gives how many more count.
    pub(in crate::memory) fn end(&self) -> u64 {
        let more = self.count(reached(self.length.get()));
        self.begin();
        more
    }

    /// The row ends, because something was woken: perhaps by the watcher.
    pub(in crate::memory) fn end_by_waking(&self) -> u64 {
        let length = self.length.get();
        let readings = match self.polls.get() {
            // bashkit reads once more at the end of a poll; the watcher has not.
            0 | 1 => reached(length + 1),
            _ if is_jump(length) => reached(length / 2),
            _ => reached(length),
        };
        let more = self.count(readings);
        self.begin();
        more
    }

    /// How far the clock that is seen is ahead, in µs.
    pub(in crate::memory) fn ahead_us(&self) -> u64 {
        match reached(self.length.get()) {
            0 => 0,
            jump => (jump / FIRST_JUMP).ilog2() as u64 * WAIT_US + WAIT_US,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The readings that count of polls in which the command reads so often, and what it
    /// sees at its last reading.
    fn counted(polls: &[u64], watcher_first: bool) -> (u64, Vec<u64>) {
        let rows = Rows::default();
        let mut counted = 0;
        let mut seen = Vec::new();
        for (index, readings) in polls.iter().enumerate() {
            rows.begin_poll();
            let read = |counted: &mut u64| {
                *counted += rows.read().unwrap_or(0);
                rows.ahead_us()
            };
            let watch = |counted: &mut u64| {
                if index > 0 {
                    let until = read(counted) + WAIT_US;
                    while read(counted) < until {}
                }
                *counted += rows.end_by_waking();
            };
            if watcher_first {
                watch(&mut counted);
            }
            for _ in 0..*readings {
                let ahead = read(&mut counted);
                seen.push(ahead);
            }
            if !watcher_first {
                watch(&mut counted);
            }
            // bashkit's time limit.
            read(&mut counted);
            counted += rows.end();
        }
        (counted, seen)
    }

    #[test]
    fn the_watcher_changes_nothing_wherever_it_is_polled() {
        let near = |power: u32| (1u64 << power) - 4..(1 << power) + 3;
        let lengths: Vec<u64> = (0..4)
            .chain(near(6))
            .chain(near(7))
            .chain(near(9))
            .collect();
        for first in &lengths {
            for second in &lengths {
                let polls = [*first, *second, *first];
                assert_eq!(counted(&polls, true), counted(&polls, false), "{polls:?}");
            }
        }
    }

    #[test]
    fn long_rows_count_and_short_ones_do_not() {
        assert_eq!(counted(&[20, 30, 40], true).0, 0);
        let (readings, seen) = counted(&[0, 100_000], true);
        assert_eq!(readings, 65_536);
        assert_eq!(seen.last(), Some(&(11 * WAIT_US)));
    }
}
