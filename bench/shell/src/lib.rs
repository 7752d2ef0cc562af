//! The floor of `cargo xtask bench sandbox`: bashkit as it comes, in a module
//! that does nothing else. No limits, no hooks, no host to answer; a seed and
//! pristine state only where a function says so.

#[cfg(target_arch = "wasm32")]
mod bare {
    use std::cell::{Cell, RefCell};

    use bashkit::{Bash, SessionLimits, ShellState};
    use futures_util::FutureExt;

    thread_local! {
        static NOW_US: Cell<u64> = const { Cell::new(1_700_000_000_000_000) };
        static SHELL: RefCell<Option<(Bash, ShellState)>> = const { RefCell::new(None) };
    }

    const SEEDED: &str = "RANDOM=1234567890 SECONDS=0; echo hi";

    /// bashkit's clock: a microsecond later at every reading.
    #[unsafe(no_mangle)]
    extern "Rust" fn __bashkit_host_now_micros() -> u64 {
        NOW_US.set(NOW_US.get() + 1);
        NOW_US.get()
    }

    /// `getrandom`'s custom backend; nothing that is measured draws from it.
    ///
    /// # Safety
    ///
    /// `dest` must be valid for writes of `len` bytes, as `getrandom` guarantees.
    #[unsafe(no_mangle)]
    unsafe extern "Rust" fn __getrandom_v03_custom(
        dest: *mut u8,
        len: usize,
    ) -> Result<(), getrandom::Error> {
        // SAFETY: by this function's contract.
        unsafe { dest.write_bytes(0, len) };
        Ok(())
    }

    /// Runs `echo hi` in a shell that is made at the first call. 1 when it
    /// printed what it should.
    #[unsafe(no_mangle)]
    extern "C" fn echo() -> u32 {
        with_shell(|shell, _| prints_hi(shell, "echo hi"))
    }

    /// Like `echo`, with the two assignments that the core puts in front.
    #[unsafe(no_mangle)]
    extern "C" fn seeded() -> u32 {
        with_shell(|shell, _| prints_hi(shell, SEEDED))
    }

    /// Like `seeded`, from pristine state.
    #[unsafe(no_mangle)]
    extern "C" fn pristine() -> u32 {
        with_shell(|shell, pristine| {
            shell.restore_shell_state(pristine);
            prints_hi(shell, SEEDED)
        })
    }

    fn prints_hi(shell: &mut Bash, script: &str) -> u32 {
        let ended = shell.exec(script).now_or_never();
        let printed = ended.and_then(|result| Some(&*result.ok()?.stdout == "hi\n"));
        u32::from(printed == Some(true))
    }

    fn with_shell(work: impl FnOnce(&mut Bash, &ShellState) -> u32) -> u32 {
        SHELL.with_borrow_mut(|kept| {
            let (shell, pristine) = kept.get_or_insert_with(|| {
                let builder = Bash::builder().session_limits(SessionLimits::unlimited());
                let shell = builder.build();
                let pristine = shell.shell_state();
                (shell, pristine)
            });
            work(shell, pristine)
        })
    }
}
