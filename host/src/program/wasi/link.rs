//! The table of calls: from what the program imports to `System`.

use std::fmt;

use wasmtime::{Caller, Linker, Memory, Module, Result, Val, format_err};

use super::System;
use super::guest::{CallResult, Errno, Fault, Guest};

const MODULE: &str = "wasi_snapshot_preview1";

/// What a store holds, so that the calls of its program are answered.
pub(in crate::program) trait Host: 'static {
    /// The program's memory, once there is one, and its system.
    fn parts(&mut self) -> (Option<Memory>, &mut System);
}

/// How a call of the program ended it; the error under which its run returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::program) enum Ended {
    /// By itself, with this exit code.
    Exit(i32),
    /// From outside.
    Stopped,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => write!(f, "exit code {code}"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Ended {}

/// Answers one call.
fn answer<T: Host>(
    caller: &mut Caller<'_, T>,
    call: impl FnOnce(&mut System, &mut Guest<'_>) -> CallResult,
) -> Result<u32> {
    let memory = caller.data_mut().parts().0;
    let memory = memory.ok_or_else(|| format_err!("a call without a memory"))?;
    let (bytes, host) = memory.data_and_store_mut(caller);
    match call(host.parts().1, &mut Guest(bytes)) {
        Ok(()) => Ok(0),
        Err(Fault::Errno(errno)) => Ok(u32::from(errno as u16)),
        Err(Fault::Exit(code)) => Err(Ended::Exit(code).into()),
        Err(Fault::Stopped) => Err(Ended::Stopped.into()),
    }
}

/// Methods of `System` under their names.
macro_rules! calls {
    ($linker:ident; $($name:ident($($argument:ident: $type:ty),*))*) => {$(
        $linker.func_wrap(
            MODULE,
            stringify!($name),
            |mut caller: Caller<'_, T>, $($argument: $type),*| {
                answer(&mut caller, |system, guest| system.$name(guest, $($argument),*))
            },
        )?;
    )*};
}

/// Links the calls that `module` may make; those that nothing answers say that
/// they are not supported.
pub(in crate::program) fn link<T: Host>(linker: &mut Linker<T>, module: &Module) -> Result<()> {
    linker.allow_shadowing(true);
    for import in module.imports().filter(|import| import.module() == MODULE) {
        if let Some(kind) = import.ty().func() {
            linker.func_new(MODULE, import.name(), kind.clone(), |_, _, results| {
                results.fill(Val::I32(Errno::NotSup as i32));
                Ok(())
            })?;
        }
    }
    calls! { linker;
        args_get(pointers: u32, buffer: u32)
        args_sizes_get(count: u32, size: u32)
        environ_get(pointers: u32, buffer: u32)
        environ_sizes_get(count: u32, size: u32)
        clock_res_get(clock: u32, result: u32)
        clock_time_get(clock: u32, precision: u64, result: u32)
        random_get(buffer: u32, length: u32)
        sched_yield()
        poll_oneoff(subscriptions: u32, events: u32, count: u32, result: u32)
        fd_advise(fd: u32, offset: u64, length: u64, advice: u32)
        fd_close(fd: u32)
        fd_datasync(fd: u32)
        fd_fdstat_get(fd: u32, result: u32)
        fd_fdstat_set_flags(fd: u32, flags: u32)
        fd_filestat_get(fd: u32, result: u32)
        fd_filestat_set_size(fd: u32, size: u64)
        fd_filestat_set_times(fd: u32, accessed: u64, modified: u64, flags: u32)
        fd_pread(fd: u32, buffers: u32, count: u32, offset: u64, result: u32)
        fd_prestat_dir_name(fd: u32, buffer: u32, length: u32)
        fd_prestat_get(fd: u32, result: u32)
        fd_pwrite(fd: u32, buffers: u32, count: u32, offset: u64, result: u32)
        fd_read(fd: u32, buffers: u32, count: u32, result: u32)
        fd_readdir(fd: u32, buffer: u32, length: u32, cookie: u64, result: u32)
        fd_seek(fd: u32, offset: i64, whence: u32, result: u32)
        fd_sync(fd: u32)
        fd_tell(fd: u32, result: u32)
        fd_write(fd: u32, buffers: u32, count: u32, result: u32)
        path_create_directory(fd: u32, path: u32, length: u32)
        path_filestat_get(fd: u32, follow: u32, path: u32, length: u32, result: u32)
        path_filestat_set_times(
            fd: u32, follow: u32, path: u32, length: u32, accessed: u64, modified: u64, flags: u32
        )
        path_open(
            fd: u32, follow: u32, path: u32, length: u32, how: u32, rights: u64, inherited: u64,
            flags: u32, result: u32
        )
        path_readlink(fd: u32, path: u32, length: u32, buffer: u32, room: u32, result: u32)
        path_remove_directory(fd: u32, path: u32, length: u32)
        path_rename(fd: u32, path: u32, length: u32, to_fd: u32, to_path: u32, to_length: u32)
        path_symlink(target: u32, target_length: u32, fd: u32, path: u32, length: u32)
        path_unlink_file(fd: u32, path: u32, length: u32)
    }
    linker.func_wrap(MODULE, "proc_exit", |code: i32| -> Result<()> {
        Err(Ended::Exit(code).into())
    })?;
    Ok(())
}
