//! The limits that bashkit gets.
//!
//! Its own are those of a server that runs strangers' scripts: 30 s of real time,
//! 10,000 commands, 10,000 turns of a loop. A build script ends at them, and time is
//! counted here, by each command. So they are raised out of the way; what bounds a command
//! is its time limit and the sandbox's own bounds ([`MemoryLimits`]).
//!
//! Seen in bashkit 0.20.2.

use std::time::Duration;

use bashkit::{ExecutionLimits, MemoryLimits as ShellMemory};

use crate::memory::MemoryLimits;

/// bashkit never times out by itself.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Turns that loops may have. It is what stops `awk 'BEGIN { while (1); }'`,
/// which does nothing else that is counted: after some 5 s.
const LOOP_TURNS: usize = 1 << 26;

/// Those of one execution.
pub(in crate::memory) fn of_execution(limits: &MemoryLimits) -> ExecutionLimits {
    let mut set = ExecutionLimits::new()
        .timeout(NEVER)
        .parser_timeout(Duration::from_secs(60))
        .max_work_units(1 << 50)
        .max_aggregate_input_bytes(1 << 40)
        .max_live_intermediate_bytes(1 << 30)
        .max_commands(1 << 30)
        .max_loop_iterations(LOOP_TURNS)
        .max_total_loop_iterations(LOOP_TURNS)
        .max_input_bytes(64 << 20)
        .max_parser_operations(100_000_000)
        .max_stdout_bytes(limits.output_bytes)
        .max_stderr_bytes(limits.output_bytes)
        .max_word_split_fields(10_000_000)
        .max_word_split_bytes(256 << 20)
        .max_background_jobs(1_024);
    set.max_function_depth = 16;
    set
}

/// Those of what the shell keeps.
pub(in crate::memory) fn of_memory() -> ShellMemory {
    ShellMemory::new()
        .max_variable_count(1_000_000)
        .max_total_variable_bytes(256 << 20)
        .max_array_entries(10_000_000)
        .max_function_count(100_000)
        .max_function_body_bytes(64 << 20)
}
