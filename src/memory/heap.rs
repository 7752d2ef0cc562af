//! How much memory the core holds, and how much it copies in large pieces.
//!
//! The wasm faces count what they allocate. A command that holds too much ends
//! with a message, where it would use up the memory of the instance and end all
//! its sessions; and what it copies counts as work, which builtins that collect
//! their input do without reading the clock. Both are numbers of bytes, so that
//! a replay stops at the same place. Elsewhere nothing is counted.

/// Bytes from which on an allocation counts as a large piece.
#[cfg(all(target_arch = "wasm32", any(feature = "component", feature = "web")))]
const LARGE: usize = 64 << 10;

/// Bytes that are allocated now.
pub(super) fn live() -> usize {
    counted::live()
}

/// Bytes of all large pieces allocated so far; wraps around.
pub(super) fn large() -> usize {
    counted::large()
}

/// Before [`live`] becomes more than `bytes`, what [`on_excess`] was given is called.
pub(super) fn set_limit(bytes: usize) {
    counted::set_limit(bytes);
}

/// Has `excess` called in the middle of an allocation that passes the limit; it may
/// not come back.
pub(super) fn on_excess(excess: fn()) {
    counted::on_excess(excess);
}

/// Whether the allocator is in the middle of something.
pub(super) fn is_busy() -> bool {
    counted::is_busy()
}

/// Whether an allocation was refused since [`forget_refusal`].
pub(super) fn refused() -> bool {
    counted::refused()
}

/// See [`refused`].
pub(super) fn forget_refusal() {
    counted::forget_refusal();
}

#[cfg(all(target_arch = "wasm32", any(feature = "component", feature = "web")))]
mod counted {
    use std::alloc::{GlobalAlloc, Layout};
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use talc::wasm::{WasmDynamicTalc, new_wasm_dynamic_allocator};

    static LIVE: AtomicUsize = AtomicUsize::new(0);
    static COPIED: AtomicUsize = AtomicUsize::new(0);
    static LIMIT: AtomicUsize = AtomicUsize::new(usize::MAX);
    static REFUSED: AtomicBool = AtomicBool::new(false);
    static BUSY: AtomicBool = AtomicBool::new(false);

    thread_local! {
        // Without a destructor: it is read within the allocator.
        static EXCESS: Cell<Option<fn()>> = const { Cell::new(None) };
    }

    #[global_allocator]
    static HEAP: Counting = Counting(new_wasm_dynamic_allocator());

    pub(super) fn live() -> usize {
        LIVE.load(Ordering::Relaxed)
    }

    pub(super) fn large() -> usize {
        COPIED.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(bytes: usize) {
        LIMIT.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn on_excess(excess: fn()) {
        EXCESS.set(Some(excess));
    }

    pub(super) fn is_busy() -> bool {
        BUSY.load(Ordering::Relaxed)
    }

    /// Calls the allocator, which must not be left in the middle.
    fn busy<R>(work: impl FnOnce() -> R) -> R {
        BUSY.store(true, Ordering::Relaxed);
        let result = work();
        BUSY.store(false, Ordering::Relaxed);
        result
    }

    pub(super) fn refused() -> bool {
        REFUSED.load(Ordering::Relaxed)
    }

    pub(super) fn forget_refusal() {
        REFUSED.store(false, Ordering::Relaxed);
    }

    /// Asks for more; may not come back.
    fn ask(bytes: usize) {
        if live().saturating_add(bytes) > LIMIT.load(Ordering::Relaxed)
            && let Some(excess) = EXCESS.get()
        {
            excess();
        }
    }

    /// Talc, counting.
    struct Counting(WasmDynamicTalc);

    /// What a piece takes: a tag behind it, in steps of 16 bytes.
    const fn taken(bytes: usize) -> usize {
        (bytes + 1).next_multiple_of(16)
    }

    fn grow(bytes: usize) {
        let bytes = taken(bytes);
        LIVE.fetch_add(bytes, Ordering::Relaxed);
        if bytes >= super::LARGE {
            COPIED.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts what was asked for, if it was given.
    fn granted(place: *mut u8, bytes: usize) -> *mut u8 {
        if place.is_null() {
            REFUSED.store(true, Ordering::Relaxed);
        } else {
            grow(bytes);
        }
        place
    }

    fn shrink(bytes: usize) {
        LIVE.fetch_sub(taken(bytes), Ordering::Relaxed);
    }

    // SAFETY: every call goes to Talc as it came; the counters allocate
    // nothing and cannot panic. Who is asked for more before may leave the
    // command, before Talc has begun.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            ask(layout.size());
            // SAFETY: by this function's contract.
            let place = busy(|| unsafe { self.0.alloc(layout) });
            granted(place, layout.size())
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            ask(layout.size());
            // SAFETY: by this function's contract.
            let place = busy(|| unsafe { self.0.alloc_zeroed(layout) });
            granted(place, layout.size())
        }

        unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
            shrink(layout.size());
            // SAFETY: by this function's contract.
            busy(|| unsafe { self.0.dealloc(place, layout) });
        }

        unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
            ask(new_size.saturating_sub(layout.size()));
            // SAFETY: by this function's contract.
            let moved = busy(|| unsafe { self.0.realloc(place, layout, new_size) });
            if !moved.is_null() {
                shrink(layout.size());
            }
            granted(moved, new_size)
        }
    }
}

#[cfg(not(all(target_arch = "wasm32", any(feature = "component", feature = "web"))))]
mod counted {
    pub(super) fn live() -> usize {
        0
    }

    pub(super) fn large() -> usize {
        0
    }

    pub(super) fn set_limit(_: usize) {}

    pub(super) fn on_excess(_: fn()) {}

    pub(super) fn is_busy() -> bool {
        false
    }

    pub(super) fn refused() -> bool {
        false
    }

    pub(super) fn forget_refusal() {}
}
