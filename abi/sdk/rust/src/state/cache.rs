//! What a lane knows of its state: a hash table of the entries that it read or wrote.
//!
//! The table is only ever looked up, never walked; whatever has an order (what is written, what a scan finds) takes it
//! from lists in order of first use.

use super::heap::{Heap, view};
use crate::mem;

/// No position, no entry.
pub const NONE: u32 = u32::MAX;

/// Set in the table's number of the entry that stands for all entries of one key: the head of their chain.
const GROUP: u16 = 1 << 15;

/// Longest key and sub-key together.
const MAX_KEY: usize = 4096;

/// Tables have numbers below this.
const TABLES: u16 = 64;

/// What is known of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Nothing yet.
    No,
    /// There is none.
    Absent,
    /// Its value lies in the heap.
    Present,
}

/// One entry of state.
pub struct Slot {
    hash: u32,
    pub table: u16,
    pub key_len: u16,
    pub key: u32,
    pub sub_len: u16,
    pub known: Known,
    /// The host may have a value for it.
    pub stored: bool,
    pub value: u32,
    pub value_len: u32,
    value_cap: u32,
    /// Where it stands in the list of changes, or NONE.
    pub change: u32,
    /// The next entry of the same table and key, where the table is grouped.
    pub next: u32,
    /// When the value ends, in microseconds; 0 = never.
    pub expiry: i64,
}

impl Slot {
    #[inline(always)]
    pub fn key(&self) -> &[u8] {
        // SAFETY: keys are never written again.
        unsafe { view(self.key, self.key_len.into()) }
    }

    #[inline(always)]
    pub fn sub(&self) -> &[u8] {
        // SAFETY: as for the key.
        unsafe { view(self.key + u32::from(self.key_len), self.sub_len.into()) }
    }

    /// The value, `None` when there is none.
    #[inline(always)]
    pub fn value(&self) -> Option<&[u8]> {
        // SAFETY: values are written only through the cache, borrowed as a whole.
        (self.known == Known::Present).then(|| unsafe { view(self.value, self.value_len as usize) })
    }
}

/// The entries of a lane.
pub struct Cache {
    pub seed: u64,
    /// Hash in the upper half, number of the slot + 1 in the lower; 0 is free. The length is a power of two.
    index: Vec<u64>,
    pub slots: Vec<Slot>,
    pub heap: Heap,
    /// Tables whose entries are chained by key.
    grouped: u64,
}

impl Cache {
    pub const fn new() -> Cache {
        Cache { seed: 0, index: Vec::new(), slots: Vec::new(), heap: Heap::new(), grouped: 0 }
    }

    /// Bytes that it takes, about.
    #[inline(always)]
    pub fn held(&self) -> usize {
        self.heap.held() + self.slots.len() * (size_of::<Slot>() + 24)
    }

    /// The slot of an entry, made if there is none.
    #[inline]
    pub fn slot(&mut self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        let hash = self.hash(table, key, sub);
        let (found, at) = self.probe(hash, table, key, sub);
        if found != NONE { found } else { self.insert(at, hash, table, key, sub) }
    }

    /// The slot of an entry, or NONE.
    fn find(&self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        self.probe(self.hash(table, key, sub), table, key, sub).0
    }

    /// The slot, or NONE, and where in the index the search ended.
    #[inline]
    fn probe(&self, hash: u32, table: u16, key: &[u8], sub: &[u8]) -> (u32, usize) {
        let mask = self.index.len().wrapping_sub(1);
        if self.index.is_empty() {
            return (NONE, 0);
        }
        let mut at = hash as usize & mask;
        loop {
            let cell = self.index[at];
            if cell == 0 {
                return (NONE, at);
            }
            if (cell >> 32) as u32 == hash {
                let n = cell as u32 - 1;
                let s = &self.slots[n as usize];
                if s.table == table && usize::from(s.key_len) == key.len() && same(s.key(), key) && same(s.sub(), sub) {
                    return (n, at);
                }
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn insert(&mut self, mut at: usize, hash: u32, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        if self.slots.len() * 4 >= self.index.len() * 3 {
            self.grow();
            at = self.free(hash);
        }
        let n = self.slots.len() as u32;
        self.index[at] = u64::from(hash) << 32 | u64::from(n + 1);
        assert!(key.len() + sub.len() <= MAX_KEY, "a key and its sub-key have more than 4 KiB");
        let address = self.heap.copy(key, sub);
        self.slots.push(Slot {
            hash,
            table,
            key: address,
            key_len: key.len() as u16,
            sub_len: sub.len() as u16,
            known: Known::No,
            stored: true,
            value: 0,
            value_len: 0,
            value_cap: 0,
            change: NONE,
            next: NONE,
            expiry: 0,
        });
        if table < TABLES && self.grouped & bit(table) != 0 {
            self.link(n);
        }
        n
    }

    /// The first free cell for a hash.
    fn free(&self, hash: u32) -> usize {
        let mask = self.index.len() - 1;
        let mut at = hash as usize & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        at
    }

    #[cold]
    fn grow(&mut self) {
        let len = (self.index.len() * 2).max(1024);
        self.index.clear();
        self.index.resize(len, 0);
        for n in 0..self.slots.len() {
            let hash = self.slots[n].hash;
            let at = self.free(hash);
            self.index[at] = u64::from(hash) << 32 | (n as u64 + 1);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.index.fill(0);
        self.slots.clear();
        self.heap.reset();
    }

    /// Gives the slot's value `len` bytes: the first of them as they were, the others anything. They are the caller's to write.
    #[inline]
    pub fn resize(&mut self, n: u32, len: usize) -> &mut [u8] {
        let s = &mut self.slots[n as usize];
        if s.known != Known::Present {
            s.value_len = 0;
        }
        if len > s.value_cap as usize {
            let cap = if s.value_cap == 0 { len } else { len.max(2 * s.value_cap as usize) }.next_multiple_of(8);
            let at = self.heap.take(cap);
            // SAFETY: the new piece is apart from the old one and has room for it.
            unsafe { crate::json::copy(at, view(s.value, s.value_len as usize)) };
            (s.value, s.value_cap) = (mem::addr(at), cap as u32);
        }
        (s.known, s.value_len) = (Known::Present, len as u32);
        if len == 0 {
            return &mut [];
        }
        // SAFETY: value_cap bytes at value belong to this slot alone, and self is borrowed as a whole.
        unsafe { core::slice::from_raw_parts_mut(mem::ptr(s.value), len) }
    }

    /// Notes what the host answered for a slot. The answer's bytes belong to the slot from now on, rounded up to 8.
    #[inline]
    pub fn answer(&mut self, n: u32, at: u32, len: i32) {
        let s = &mut self.slots[n as usize];
        if len < 0 {
            (s.known, s.stored, s.value_len) = (Known::Absent, false, 0);
            return;
        }
        (s.known, s.stored, s.expiry) = (Known::Present, true, 0);
        (s.value, s.value_len, s.value_cap) = (at, len as u32, (len as u32).next_multiple_of(8));
    }

    /// The newest entry known of one table and key, or NONE. The others follow by `next`.
    pub fn newest(&mut self, table: u16, key: &[u8]) -> u32 {
        if self.grouped & bit(table) == 0 {
            self.group(table);
        }
        let head = self.find(table | GROUP, key, b"");
        if head == NONE { NONE } else { self.slots[head as usize].next }
    }

    /// Begins to chain the entries of a table.
    #[cold]
    fn group(&mut self, table: u16) {
        self.grouped |= bit(table);
        for n in 0..self.slots.len() {
            if self.slots[n].table == table {
                self.link(n as u32);
            }
        }
    }

    fn link(&mut self, n: u32) {
        let (at, len) = (self.slots[n as usize].key, self.slots[n as usize].key_len);
        // SAFETY: keys never move and are never written again.
        let key = unsafe { view(at, len.into()) };
        let head = self.slot(self.slots[n as usize].table | GROUP, key, b"") as usize;
        self.slots[n as usize].next = core::mem::replace(&mut self.slots[head].next, n);
    }

    /// A hash of 32 bits, by a seed that is the batch's: the same on a replay, and nobody's to guess.
    #[inline]
    pub fn hash(&self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        let h = mix(self.seed ^ u64::from(table) << 48 ^ (key.len() as u64) << 32, key);
        let h = mix(h, sub);
        (h ^ h >> 29) as u32
    }
}

fn bit(table: u16) -> u64 {
    1 << (table & 63)
}

const K: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline(always)]
fn step(h: u64, w: u64) -> u64 {
    let h = (h ^ w).wrapping_mul(K);
    h ^ h >> 32
}

/// Eight bytes from `at` on.
///
/// # Safety
/// They lie inside of b.
#[inline(always)]
unsafe fn word(b: &[u8], at: usize) -> u64 {
    // SAFETY: by the contract of this function.
    u64::from_le(unsafe { b.as_ptr().add(at).cast::<u64>().read_unaligned() })
}

/// The bytes of a string of less than eight, in a word of their own for each length below four, and up to the rest.
#[inline(always)]
fn short(b: &[u8]) -> u64 {
    let n = b.len();
    // SAFETY: every load lies inside of the n bytes.
    unsafe {
        let p = b.as_ptr();
        if n >= 4 {
            let (low, high) = (p.cast::<u32>().read_unaligned(), p.add(n - 4).cast::<u32>().read_unaligned());
            return u64::from(u32::from_le(low)) | u64::from(u32::from_le(high)) << 32;
        }
        if n == 0 {
            return 0;
        }
        u64::from(*p) | u64::from(*p.add(n / 2)) << 8 | u64::from(*p.add(n - 1)) << 16
    }
}

#[inline(always)]
fn mix(mut h: u64, b: &[u8]) -> u64 {
    let n = b.len();
    if n < 8 {
        return step(h, short(b) ^ (n as u64) << 56);
    }
    let mut at = 0;
    while at + 8 <= n {
        // SAFETY: at + 8 is at most n.
        h = step(h, unsafe { word(b, at) });
        at += 8;
    }
    // SAFETY: n is at least 8.
    if at < n { step(h, unsafe { word(b, n - 8) } ^ n as u64) } else { h }
}

/// Equality of short byte strings, without a call.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    let n = a.len();
    if n != b.len() {
        return false;
    }
    if n < 8 {
        return short(a) == short(b);
    }
    let mut at = 0;
    while at + 8 <= n {
        // SAFETY: at + 8 is at most n, which both have.
        if unsafe { word(a, at) != word(b, at) } {
            return false;
        }
        at += 8;
    }
    // SAFETY: n is at least 8.
    unsafe { word(a, n - 8) == word(b, n - 8) }
}
