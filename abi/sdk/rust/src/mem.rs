//! Linear memory: addresses and arenas.
//!
//! In a module an address is a pointer. Natively, where pointers are wider than addresses, each thread has a block that
//! plays linear memory, so that the same code runs in unit tests.

/// Arenas are aligned to this many bytes.
pub const ALIGN: usize = 16;

#[cfg(target_arch = "wasm32")]
mod imp {
    use super::ALIGN;
    use std::alloc::{Layout, alloc as fresh, alloc_zeroed, dealloc};

    /// The pointer an address stands for.
    #[inline(always)]
    pub fn ptr(addr: u32) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(addr as usize)
    }

    /// The address of a pointer into an arena or a frame.
    #[inline(always)]
    pub fn addr(p: *const u8) -> u32 {
        p.expose_provenance() as u32
    }

    /// A zeroed block of `len` bytes, or null when memory is short.
    pub fn alloc(len: usize) -> *mut u8 {
        match Layout::from_size_align(len.max(1), ALIGN) {
            // SAFETY: the size is not zero.
            Ok(layout) => unsafe { alloc_zeroed(layout) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    /// A block of `len` bytes that hold anything, or null when memory is short.
    pub fn alloc_dirty(len: usize) -> *mut u8 {
        match Layout::from_size_align(len.max(1), ALIGN) {
            // SAFETY: the size is not zero.
            Ok(layout) => unsafe { fresh(layout) },
            Err(_) => core::ptr::null_mut(),
        }
    }

    /// Gives back a block of `alloc` or `alloc_dirty`.
    ///
    /// # Safety
    /// `p` came from there with this `len` and is not used again.
    pub unsafe fn free(p: *mut u8, len: usize) {
        if let Ok(layout) = Layout::from_size_align(len.max(1), ALIGN) {
            // SAFETY: same layout as in alloc.
            unsafe { dealloc(p, layout) }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use super::ALIGN;
    use std::cell::Cell;

    /// Size of a thread's stand-in for linear memory; untouched pages cost nothing.
    const SIZE: usize = 512 << 20;

    thread_local! {
        static BASE: *mut u8 = {
            let layout = std::alloc::Layout::from_size_align(SIZE, ALIGN).expect("a fixed layout");
            // SAFETY: the size is not zero.
            unsafe { std::alloc::alloc_zeroed(layout) }
        };
        static USED: Cell<usize> = const { Cell::new(65536) };
    }

    /// The pointer an address stands for.
    pub fn ptr(addr: u32) -> *mut u8 {
        assert!((addr as usize) < SIZE, "address outside of memory");
        // SAFETY: inside the block.
        BASE.with(|b| unsafe { b.add(addr as usize) })
    }

    /// The address of a pointer into an arena or a frame.
    pub fn addr(p: *const u8) -> u32 {
        let at = BASE.with(|b| (p as usize).wrapping_sub(*b as usize));
        assert!(at < SIZE, "not a pointer into linear memory");
        at as u32
    }

    /// A zeroed block of `len` bytes, or null when memory is short.
    pub fn alloc(len: usize) -> *mut u8 {
        USED.with(|u| {
            let at = u.get();
            if len > SIZE - at - ALIGN {
                return std::ptr::null_mut();
            }
            u.set((at + len + ALIGN).next_multiple_of(ALIGN));
            ptr(at as u32)
        })
    }

    /// A block of `len` bytes, or null when memory is short.
    pub fn alloc_dirty(len: usize) -> *mut u8 {
        alloc(len)
    }

    /// How far the stand-in is used.
    pub fn mark() -> usize {
        USED.get()
    }

    /// Takes back what was handed out after `mark`.
    ///
    /// # Safety
    /// None of it is used again.
    pub unsafe fn rewind(mark: usize) {
        let used = USED.replace(mark);
        // SAFETY: inside the block; blocks are handed out zeroed.
        BASE.with(|b| unsafe { b.add(mark).write_bytes(0, used - mark) });
    }

    /// Gives back a block of `alloc`; the stand-in keeps it until `rewind`.
    ///
    /// # Safety
    /// `p` came from `alloc(len)` and is not used again.
    pub unsafe fn free(_p: *mut u8, _len: usize) {}
}

pub use imp::{addr, alloc, alloc_dirty, free, ptr};
#[cfg(not(target_arch = "wasm32"))]
pub use imp::{mark, rewind};

/// A block that lives as long as the guest, or until a larger one takes its place.
pub struct Arena {
    pub base: *mut u8,
    pub len: usize,
}

impl Arena {
    /// No block yet.
    pub const EMPTY: Arena = Arena { base: core::ptr::null_mut(), len: 0 };

    /// Makes the arena at least `len` bytes long; its contents are lost when it has to grow. False when memory is short.
    pub fn hold(&mut self, len: usize) -> bool {
        if len <= self.len {
            return true;
        }
        self.release();
        self.base = alloc(len);
        if self.base.is_null() {
            return false;
        }
        self.len = len;
        true
    }

    /// The same for a block that is going to be written: it holds anything.
    pub fn hold_dirty(&mut self, len: usize) -> bool {
        if len <= self.len {
            return true;
        }
        self.release();
        self.base = alloc_dirty(len);
        if self.base.is_null() {
            return false;
        }
        self.len = len;
        true
    }

    /// Gives the block back.
    pub fn release(&mut self) {
        if !self.base.is_null() {
            // SAFETY: base and len are those of one alloc, and both are forgotten here.
            unsafe { free(self.base, self.len) }
        }
        *self = Arena::EMPTY;
    }
}
