//! Arguments, variables, clocks, random bytes and waiting.

use std::time::Duration;

use super::guest::{CallResult, Errno, Fault, Guest};
use super::{System, now_ns};

/// The clock that counts from 1970 on; all others count from the start.
const REALTIME: u32 = 0;

impl System {
    pub(super) fn args_get(&mut self, guest: &mut Guest, pointers: u32, buffer: u32) -> CallResult {
        list(guest, &self.args, pointers, buffer)
    }

    pub(super) fn args_sizes_get(
        &mut self,
        guest: &mut Guest,
        count: u32,
        size: u32,
    ) -> CallResult {
        list_sizes(guest, &self.args, count, size)
    }

    pub(super) fn environ_get(
        &mut self,
        guest: &mut Guest,
        pointers: u32,
        buffer: u32,
    ) -> CallResult {
        list(guest, &self.env, pointers, buffer)
    }

    pub(super) fn environ_sizes_get(
        &mut self,
        guest: &mut Guest,
        count: u32,
        size: u32,
    ) -> CallResult {
        list_sizes(guest, &self.env, count, size)
    }

    pub(super) fn clock_res_get(
        &mut self,
        guest: &mut Guest,
        _clock: u32,
        result: u32,
    ) -> CallResult {
        Ok(guest.put_u64(result, 1_000)?)
    }

    pub(super) fn clock_time_get(
        &mut self,
        guest: &mut Guest,
        clock: u32,
        _precision: u64,
        result: u32,
    ) -> CallResult {
        Ok(guest.put_u64(result, self.now(clock))?)
    }

    pub(super) fn random_get(&mut self, guest: &mut Guest, buffer: u32, length: u32) -> CallResult {
        getrandom::fill(guest.bytes_mut(buffer, length)?).map_err(|_| Errno::Io.into())
    }

    pub(super) fn sched_yield(&mut self, _guest: &mut Guest) -> CallResult {
        Ok(())
    }

    /// Waits for the first of some times; what is not a time is ready at once,
    /// because standard input is complete and files never wait.
    pub(super) fn poll_oneoff(
        &mut self,
        guest: &mut Guest,
        subscriptions: u32,
        events: u32,
        count: u32,
        result: u32,
    ) -> CallResult {
        const CLOCK: u8 = 0;
        let mut timers = Vec::new();
        let mut ready = 0;
        for index in 0..count {
            let at = Guest::element(subscriptions, index, 48)?;
            // The last field, so that all of them lie within the memory.
            guest.bytes(at, 48)?;
            let user_data = guest.u64(at)?;
            let kind = guest.u8(at + 8)?;
            if kind != CLOCK {
                report(guest, events, &mut ready, user_data, kind)?;
                continue;
            }
            let clock = guest.u32(at + 16)?;
            let time = guest.u64(at + 24)?;
            let is_absolute = guest.u16(at + 40)? & 1 != 0;
            let wait = match is_absolute {
                true => time.saturating_sub(self.now(clock)),
                false => time,
            };
            timers.push((user_data, wait));
        }
        if let (0, Some(wait)) = (ready, timers.iter().map(|(_, wait)| *wait).min()) {
            if self.stop.wait(Duration::from_nanos(wait)) {
                return Err(Fault::Stopped);
            }
            for (user_data, time) in timers {
                if time <= wait {
                    report(guest, events, &mut ready, user_data, CLOCK)?;
                }
            }
        }
        Ok(guest.put_u32(result, ready)?)
    }

    /// ns.
    fn now(&self, clock: u32) -> u64 {
        match clock {
            REALTIME => now_ns(),
            _ => u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        }
    }
}

/// Adds an event.
fn report(
    guest: &mut Guest,
    events: u32,
    ready: &mut u32,
    user_data: u64,
    kind: u8,
) -> Result<(), Errno> {
    let at = Guest::element(events, *ready, 32)?;
    let event = guest.bytes_mut(at, 32)?;
    event.fill(0);
    event[..8].copy_from_slice(&user_data.to_le_bytes());
    event[10] = kind;
    *ready += 1;
    Ok(())
}

/// Writes strings, each with a NUL at its end, and where each begins.
fn list(guest: &mut Guest, strings: &[String], pointers: u32, buffer: u32) -> CallResult {
    let mut at = buffer;
    for (index, string) in (0..).zip(strings) {
        guest.put_u32(Guest::element(pointers, index, 4)?, at)?;
        guest.put(at, string.as_bytes())?;
        at += string.len() as u32;
        guest.put(at, b"\0")?;
        at += 1;
    }
    Ok(())
}

fn list_sizes(guest: &mut Guest, strings: &[String], count: u32, size: u32) -> CallResult {
    let bytes: usize = strings.iter().map(|string| string.len() + 1).sum();
    guest.put_u32(count, strings.len() as u32)?;
    guest.put_u32(size, bytes as u32)?;
    Ok(())
}
