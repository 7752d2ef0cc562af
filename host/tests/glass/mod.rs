//! Guest memory that a test can look into: plain address space that is never
//! given back, so that what a guest left behind can still be read.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous, mprotect};
use wasmtime::{Error, LinearMemory, MemoryCreator, MemoryType, Result};

/// Makes the memories and remembers them.
#[derive(Default)]
pub(crate) struct Glass(Mutex<Vec<Arc<Region>>>);

struct Region {
    start: NonNull<core::ffi::c_void>,
    reserved: usize,
    used: AtomicUsize,
}

// SAFETY: the address range is fixed, never unmapped, and only wasmtime writes to it.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Glass {
    /// All bytes of all guests' memories, as they are now. Read through the
    /// kernel: a guest may be writing meanwhile.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let own = File::open("/proc/self/mem").expect("/proc/self/mem");
        let regions = self.0.lock().expect("no panic while making memory");
        let mut contents = Vec::new();
        for region in regions.iter() {
            let at = contents.len();
            contents.resize(at + region.used.load(Ordering::Acquire), 0);
            own.read_exact_at(&mut contents[at..], region.start.as_ptr() as u64)
                .expect("the guest's memory can be read");
        }
        contents
    }
}

// SAFETY: `new_memory` reserves what it is asked to reserve and the guard after
// it, and makes accessible exactly what is in use; nothing is ever moved.
unsafe impl MemoryCreator for Glass {
    fn new_memory(
        &self,
        _: MemoryType,
        minimum: usize,
        maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> std::result::Result<Box<dyn LinearMemory>, String> {
        let reserved = reserved.or(maximum).unwrap_or(1 << 32).max(minimum);
        let length = NonZeroUsize::new(reserved + guard).ok_or("no memory asked for")?;
        let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
        // SAFETY: a fresh anonymous mapping overlaps nothing.
        let start = unsafe { mmap_anonymous(None, length, ProtFlags::PROT_NONE, flags) };
        let start = start.map_err(|errno| errno.to_string())?;
        let region = Arc::new(Region {
            start,
            reserved,
            used: AtomicUsize::new(0),
        });
        let mut memory = Pane(region.clone());
        memory.grow_to(minimum).map_err(|error| error.to_string())?;
        self.0
            .lock()
            .expect("no panic while making memory")
            .push(region);
        Ok(Box::new(memory))
    }
}

struct Pane(Arc<Region>);

// SAFETY: see `Glass`.
unsafe impl LinearMemory for Pane {
    fn byte_size(&self) -> usize {
        self.0.used.load(Ordering::Acquire)
    }

    fn byte_capacity(&self) -> usize {
        self.0.reserved
    }

    fn grow_to(&mut self, size: usize) -> Result<()> {
        if size > self.0.reserved {
            return Err(Error::msg("more memory than was reserved"));
        }
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        if size > 0 {
            // SAFETY: the range lies within this region's mapping.
            unsafe { mprotect(self.0.start, size, access)? };
        }
        self.0.used.store(size, Ordering::Release);
        Ok(())
    }

    fn as_ptr(&self) -> *mut u8 {
        self.0.start.as_ptr().cast()
    }
}
