//! Memory for keys, values and answers: handed out in one direction, given back all at once, never moved.

use crate::mem::{self, Arena};

/// The first block; each further one is twice as large, up to `MAX_BLOCK`.
const FIRST_BLOCK: usize = 64 << 10;
const MAX_BLOCK: usize = 1 << 20;

/// Blocks of memory that grow in number, so that addresses into them stay good.
pub struct Heap {
    blocks: Vec<Arena>,
    at: *mut u8,
    left: usize,
    /// Bytes of all blocks but what is left of the last.
    held: usize,
}

impl Heap {
    pub const fn new() -> Heap {
        Heap { blocks: Vec::new(), at: core::ptr::null_mut(), left: 0, held: 0 }
    }

    /// Bytes handed out.
    pub fn held(&self) -> usize {
        self.held
    }

    /// A piece of `len` bytes at a multiple of 8.
    #[inline]
    pub fn take(&mut self, len: usize) -> *mut u8 {
        let at = self.room(len);
        self.used(len);
        at
    }

    /// Makes room for `len` bytes and returns where; `left` says how many there are. They are taken by `used`.
    #[inline]
    pub fn room(&mut self, len: usize) -> *mut u8 {
        if len > self.left {
            self.grow(len);
        }
        self.at
    }

    /// Bytes that the last `room` has.
    #[inline]
    pub fn left(&self) -> usize {
        self.left
    }

    /// Takes `len` of the bytes that `room` made.
    #[inline]
    pub fn used(&mut self, len: usize) {
        let len = len.next_multiple_of(8).min(self.left);
        // SAFETY: len is at most what is left of the block.
        self.at = unsafe { self.at.add(len) };
        self.left -= len;
        self.held += len;
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        let size = (FIRST_BLOCK << self.blocks.len().min(8)).min(MAX_BLOCK).max(len.next_multiple_of(16));
        let mut block = Arena::EMPTY;
        assert!(block.hold_dirty(size), "no memory for state");
        (self.at, self.left) = (block.base, size);
        self.blocks.push(block);
    }

    /// A copy of two byte strings, one behind the other.
    #[inline]
    pub fn copy(&mut self, a: &[u8], b: &[u8]) -> u32 {
        let at = self.take(a.len() + b.len());
        // SAFETY: take made room for both.
        unsafe {
            let end = crate::json::copy(at, a);
            crate::json::copy(end, b);
        }
        mem::addr(at)
    }

    /// Gives everything back but the first block, which is used again.
    pub fn reset(&mut self) {
        for block in self.blocks.drain(1.min(self.blocks.len())..) {
            let mut block = block;
            block.release();
        }
        (self.at, self.left) = self.blocks.first().map_or((core::ptr::null_mut(), 0), |b| (b.base, b.len));
        self.held = 0;
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        for block in &mut self.blocks {
            block.release();
        }
    }
}

/// The bytes at an address of a heap or an answer.
///
/// # Safety
/// They lie there for 'a and nobody writes them meanwhile.
#[inline(always)]
pub unsafe fn view<'a>(at: u32, len: usize) -> &'a [u8] {
    if len == 0 {
        return b"";
    }
    // SAFETY: by the contract of this function.
    unsafe { core::slice::from_raw_parts(mem::ptr(at), len) }
}
