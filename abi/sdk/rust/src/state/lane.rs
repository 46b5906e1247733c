//! A lane's state: the cache, what is to be read, and what is to be written.

use super::cache::{Cache, Known, NONE};
use super::heap::view;
use crate::host;
use crate::mem::{self, Arena};
use crate::raw::{self, Op, Rec};

/// More than this is not read ahead at once.
const AHEAD: usize = 8 << 20;

/// Timers that are remembered so as not to be set twice.
const RECENT: usize = 256;

/// Marks a change that is no entry but a delete-prefix.
const PREFIX: u32 = 1 << 31;

/// What the loop over a frame has to call. It is set where state is first used, so that a transform without state has
/// none of this, nor the imports, in its module.
#[derive(Clone, Copy)]
pub struct Hooks {
    /// Before a frame: reads what was wanted.
    pub begin: fn(&mut Lane),
    /// After a frame; true for the last.
    pub end: fn(&mut Lane, bool),
    /// Between two records, when the cache is large.
    pub spill: fn(&mut Lane),
}

const HOOKS: Hooks = Hooks { begin: Lane::begin, end: Lane::end, spill: Lane::spill };

/// The records of the frame at hand.
#[derive(Clone, Copy)]
pub struct Records {
    pub at: *const u8,
    pub count: u32,
    pub stride: usize,
}

/// The state of one lane.
pub struct Lane {
    pub cache: Cache,
    pub hooks: Option<Hooks>,
    /// Bytes the cache takes; looked at after each record.
    pub held: usize,
    pub frame: Records,
    /// The transform says itself what it wants, or not at all: nothing is guessed.
    pub told: bool,
    /// Tables that were read by the key of a record: read for a whole frame at once.
    learned: u64,
    wanted: Vec<u32>,
    changes: Vec<u32>,
    prefixes: Vec<Op>,
    /// Timers to be set or deleted, in order.
    timers: Vec<Op>,
    /// By hash, which of them was noted last.
    recent: Vec<u32>,
    /// One is set that may be there already, and fire in this batch.
    timer_due: bool,
    /// Up to when timers are due: watermark and batch time.
    pub now: [i64; 2],
    timer_deleted: bool,
    /// How often everything was written out.
    pub spills: u32,
    ops: Arena,
    need: Arena,
    scanned: Arena,
    pub scratch: Vec<u8>,
}

impl Lane {
    pub const fn new() -> Lane {
        Lane {
            cache: Cache::new(),
            hooks: None,
            held: 0,
            frame: Records { at: core::ptr::null(), count: 0, stride: 0 },
            told: false,
            learned: 0,
            wanted: Vec::new(),
            changes: Vec::new(),
            prefixes: Vec::new(),
            timers: Vec::new(),
            recent: Vec::new(),
            timer_due: false,
            now: [0; 2],
            timer_deleted: false,
            spills: 0,
            ops: Arena::EMPTY,
            need: Arena::EMPTY,
            scanned: Arena::EMPTY,
            scratch: Vec::new(),
        }
    }

    /// The slot of an entry, with what is known of it so far.
    #[inline]
    pub fn touch(&mut self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        self.hooks = Some(HOOKS);
        let n = self.cache.slot(table, key, sub);
        self.held = self.cache.held();
        n
    }

    /// The slot of an entry, read if it was not.
    #[inline]
    pub fn read(&mut self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        let n = self.touch(table, key, sub);
        if self.cache.slots[n as usize].known == Known::No {
            self.miss(n, table, sub);
        }
        n
    }

    /// Notes that an entry will be read in this frame, and returns its slot.
    #[inline]
    pub fn want(&mut self, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        let before = self.cache.slots.len() as u32;
        let n = self.touch(table, key, sub);
        if n >= before {
            self.wanted.push(n);
        }
        n
    }

    /// The slot of an entry that was wanted in this frame: looked up again only if everything was written out since.
    #[inline]
    pub fn redeem(&mut self, slot: u32, spills: u32, table: u16, key: &[u8], sub: &[u8]) -> u32 {
        match self.cache.slots.get(slot as usize) {
            Some(s) if spills == self.spills && s.known != Known::No => slot,
            _ => self.read(table, key, sub),
        }
    }

    /// Reads one entry; and if its table is held by the key of a record alone, that of every record of the frame.
    #[cold]
    fn miss(&mut self, n: u32, table: u16, sub: &[u8]) {
        self.wanted.push(n);
        let bit = 1 << (table & 63);
        if !self.told && sub.is_empty() && self.learned & bit == 0 {
            self.learned |= bit;
            self.want_table(table);
        }
        self.fill();
        if self.cache.slots[n as usize].known == Known::No {
            // What was wanted was too much for one call.
            self.wanted.push(n);
            self.fill();
        }
    }

    /// Reads what the records of a frame will need: what was wanted, and the tables that were read by a record's key before.
    fn begin(&mut self) {
        self.fired();
        let mut left = if self.told { 0 } else { self.learned };
        while left != 0 {
            self.want_table(left.trailing_zeros() as u16);
            left &= left - 1;
        }
        self.fill();
    }

    fn want_table(&mut self, table: u16) {
        for i in 0..self.frame.count as usize {
            // SAFETY: the frame at hand has `count` records, `stride` bytes apart, and lies there during the call.
            let rec = unsafe { &*self.frame.at.wrapping_add(i * self.frame.stride).cast::<Rec>() };
            if rec.key_len >= 0 {
                // SAFETY: as above.
                let key = unsafe { view(rec.key, rec.key_len as usize) };
                self.want(table, key, b"");
            }
        }
    }

    /// Reads what was wanted, by one call as a rule. What is too much for one is left to be read when it is used.
    fn fill(&mut self) {
        if self.wanted.is_empty() {
            return;
        }
        if !self.prefixes.is_empty() {
            self.write(true, false);
        }
        let mut count = self.wanted.len().min(raw::MAX_OPS);
        let mut room = count * 48 + 1024;
        loop {
            let need = self.gets(count, room);
            if need == 0 {
                break;
            }
            if need > AHEAD && count > 1 {
                count /= 2;
            } else {
                room = need;
            }
        }
        self.wanted.clear();
        self.held = self.cache.held();
    }

    /// Asks for the first `count` wanted entries; if it takes more than `room` bytes, says how much.
    fn gets(&mut self, count: usize, room: usize) -> usize {
        let buffer = self.cache.heap.room(room);
        let cap = self.cache.heap.left();
        let ops = hold(&mut self.ops, count);
        let need = hold(&mut self.need, 1).cast::<u32>();
        for (i, n) in self.wanted[..count].iter().enumerate() {
            let s = &self.cache.slots[*n as usize];
            let op = Op { op: raw::GET, table: s.table, ..s.address() };
            // SAFETY: the array holds `count` operations.
            unsafe { ops.add(i).write(op) };
        }
        if host::read(ops.cast(), count as u32, buffer, cap as u32, need.cast()) == raw::TOO_SMALL {
            // SAFETY: the host wrote it.
            return unsafe { *need } as usize;
        }
        let (start, mut used) = (mem::addr(buffer), 0);
        for i in 0..count {
            // SAFETY: as above.
            let op = unsafe { &*ops.add(i) };
            let n = self.wanted[i];
            // A wanted entry may have been written in the meantime.
            if self.cache.slots[n as usize].known == Known::No {
                self.cache.answer(n, op.answer, op.answer_len);
            }
            if op.answer_len > 0 {
                used = op.answer - start + (op.answer_len as u32).next_multiple_of(8);
            }
        }
        self.cache.heap.used(used as usize);
        0
    }

    /// Notes that a slot's value is new.
    #[inline]
    pub fn changed(&mut self, n: u32) {
        let s = &mut self.cache.slots[n as usize];
        if s.change == NONE {
            s.change = self.changes.len() as u32;
            self.changes.push(n);
        }
        self.held = self.cache.held();
    }

    /// Removes an entry. One that the host does not have is only forgotten.
    pub fn remove(&mut self, n: u32) {
        self.cache.slots[n as usize].known = Known::Absent;
        self.cache.slots[n as usize].value_len = 0;
        self.changed(n);
    }

    /// Removes the entries of a key whose sub-key begins with `prefix`; only those before `before`, if it is there.
    pub fn remove_prefix(&mut self, table: u16, key: &[u8], prefix: &[u8], before: Option<&[u8]>) {
        self.hooks = Some(HOOKS);
        let mut n = self.cache.newest(table, key);
        while n != NONE {
            let s = &mut self.cache.slots[n as usize];
            n = s.next;
            let hit = match before {
                Some(b) => s.sub() >= prefix && s.sub() < b,
                None => s.sub().starts_with(prefix),
            };
            if hit {
                (s.known, s.stored, s.value_len) = (Known::Absent, false, 0);
                if s.change != NONE {
                    self.changes[s.change as usize] = NONE;
                    s.change = NONE;
                }
            }
        }
        let at = self.cache.heap.copy(key, prefix);
        let mut op = Op {
            op: raw::DELETE_PREFIX,
            table,
            key: at,
            key_len: key.len() as u32,
            sub: at + key.len() as u32,
            sub_len: prefix.len() as u32,
            ..Op::EMPTY
        };
        if let Some(b) = before {
            (op.value, op.value_len) = (self.cache.heap.copy(b, b""), b.len() as i32);
        }
        self.changes.push(PREFIX | self.prefixes.len() as u32);
        self.prefixes.push(op);
    }

    /// Sets or deletes a timer. It waits to be written, in order; setting it once more is left out where that is noticed.
    pub fn timer(&mut self, op: u8, domain: u8, key: &[u8], at: i64, sub: &[u8]) {
        self.hooks = Some(HOOKS);
        assert!(key.len() + sub.len() <= 4096, "a timer's key and sub-key have more than 4 KiB");
        let at = at - at.rem_euclid(1000);
        let (key_len, sub_len) = (key.len() as u32, sub.len() as u32);
        if self.recent.is_empty() {
            self.recent.resize(RECENT, NONE);
        }
        let cell = self.cache.hash(domain.into(), key, sub) as usize ^ (at / 1000) as usize;
        let cell = &mut self.recent[cell % RECENT];
        if let Some(last) = self.timers.get(*cell as usize)
            && (last.op, last.domain, last.at) == (op, domain, at)
            && timer_key(last) == (key, sub)
        {
            return;
        }
        *cell = self.timers.len() as u32;
        let address = self.cache.heap.copy(key, sub);
        self.timers.push(Op { op, domain, key: address, key_len, sub: address + key_len, sub_len, at, ..Op::EMPTY });
        self.timer_deleted |= op == raw::TIMER_DELETE;
        self.timer_due |= op == raw::TIMER_SET && at <= self.now[usize::from(domain & 1)];
        self.held = self.cache.held() + self.timers.len() * size_of::<Op>();
    }

    /// Before a frame of timers: one that fires now was there before, so that setting it in this batch meant nothing.
    fn fired(&mut self) {
        if !self.timer_due || self.frame.count == 0 {
            return;
        }
        let (now, timers) = (self.now, &mut self.timers);
        let is_due = |t: &Op| t.op == raw::TIMER_SET && t.at <= now[usize::from(t.domain & 1)];
        let mut due: Vec<usize> = (0..timers.len()).filter(|i| is_due(&timers[*i])).collect();
        due.sort_by(|a, b| place(&timers[*a]).cmp(&place(&timers[*b])));
        for i in 0..self.frame.count as usize {
            // SAFETY: the frame at hand has `count` records, `stride` bytes apart, and lies there during the call.
            let rec = unsafe { &*self.frame.at.wrapping_add(i * self.frame.stride).cast::<Rec>() };
            if rec.kind == 0 {
                return;
            }
            // SAFETY: as above.
            let (key, sub) = unsafe { (view(rec.key, rec.key_len.max(0) as usize), view(rec.value, rec.value_len.max(0) as usize)) };
            let fired = (rec.kind - 1, rec.event_time, (key, sub));
            let mut at = due.partition_point(|t| place(&timers[*t]) < fired);
            while let Some(&t) = due.get(at).filter(|t| place(&timers[**t]) == fired) {
                // No operation any more, and equal to none.
                timers[t].op = 0;
                at += 1;
            }
        }
    }

    /// One call of a scan. The answer lies in a buffer of the lane's until the next one; it begins after `from`.
    pub fn scan(&mut self, mut op: Op, key: &[u8], prefix: &[u8], from: Option<&[u8]>) -> &Op {
        self.hooks = Some(HOOKS);
        if self.changed_under(op.table, key) || !self.prefixes.is_empty() {
            self.write(true, false);
        }
        let words = hold(&mut self.need, 2 + 3 * 4096 / size_of::<Op>() + 3);
        // SAFETY: `need` holds one operation for the answer's size, then one operation, then the bytes of key, prefix and from.
        let (need, at, bytes) = unsafe { (words.cast::<u32>(), words.add(1), words.add(2).cast::<u8>()) };
        let from_len = from.map_or(0, <[u8]>::len);
        assert!(key.len() + prefix.len() + from_len <= 3 * 4096, "a scan's key and sub-keys have more than 4 KiB");
        // SAFETY: as above.
        unsafe {
            let end = crate::json::copy(crate::json::copy(bytes, key), prefix);
            crate::json::copy(end, from.unwrap_or(b""));
        }
        let address = mem::addr(bytes);
        (op.op, op.key, op.key_len) = (raw::SCAN, address, key.len() as u32);
        (op.sub, op.sub_len) = (address + op.key_len, prefix.len() as u32);
        (op.value, op.value_len) = (op.sub + op.sub_len, from.map_or(-1, |f| f.len() as i32));
        let mut cap = self.scanned.len.max(32 << 10);
        loop {
            assert!(self.scanned.hold_dirty(cap), "no memory for a scan");
            // SAFETY: as above.
            unsafe { at.write(op) };
            if host::read(at.cast(), 1, self.scanned.base, self.scanned.len as u32, need.cast()) != raw::TOO_SMALL {
                // SAFETY: the host filled it in.
                return unsafe { &*at };
            }
            // SAFETY: the host wrote it.
            cap = unsafe { *need } as usize;
        }
    }

    /// True when an entry of this table and key has a change that is not written.
    fn changed_under(&mut self, table: u16, key: &[u8]) -> bool {
        let mut n = self.cache.newest(table, key);
        while n != NONE {
            let s = &self.cache.slots[n as usize];
            if s.change != NONE {
                return true;
            }
            n = s.next;
        }
        false
    }

    /// After a frame: deleted timers are gone before the host looks which are due; the rest waits for the last frame.
    fn end(&mut self, last: bool) {
        if last || self.timer_deleted {
            self.write(last, true);
        }
    }

    /// Writes everything and forgets it.
    fn spill(&mut self) {
        self.write(true, true);
        self.wanted.clear();
        self.cache.clear();
        self.held = 0;
        self.spills += 1;
    }

    /// Writes the changes in the order in which they were first made, and the timers, by one call as a rule.
    fn write(&mut self, changes: bool, timers: bool) {
        let most = if changes { self.changes.len() } else { 0 } + if timers { self.timers.len() } else { 0 };
        let mut writer = Writer { ops: hold(&mut self.ops, most.min(raw::MAX_OPS)), count: 0 };
        if changes {
            for i in 0..self.changes.len() {
                if let Some(op) = self.change(self.changes[i]) {
                    writer.push(op);
                }
            }
            self.changes.clear();
            self.prefixes.clear();
        }
        if timers {
            self.timers.drain(..).filter(|t| t.op != 0).for_each(|t| writer.push(t));
            (self.timer_deleted, self.timer_due) = (false, false);
        }
        writer.send();
    }

    /// The operation of a change; none when it was taken back, or the host has nothing to delete.
    fn change(&mut self, change: u32) -> Option<Op> {
        if change == NONE {
            return None;
        }
        if change & PREFIX != 0 {
            return Some(self.prefixes[(change & !PREFIX) as usize]);
        }
        let s = &mut self.cache.slots[change as usize];
        s.change = NONE;
        let (present, stored) = (s.known == Known::Present, s.stored);
        s.stored = present;
        if !present && !stored {
            return None;
        }
        let op = if present { raw::PUT } else { raw::DELETE };
        Some(Op { op, table: s.table, value: s.value, value_len: s.value_len as i32, at: s.expiry, ..s.address() })
    }
}

/// Collects operations and hands them over when there are as many as a call may have.
struct Writer {
    ops: *mut Op,
    count: usize,
}

impl Writer {
    fn push(&mut self, op: Op) {
        // SAFETY: the array holds all that there are, or as many as a call may have.
        unsafe { self.ops.add(self.count).write(op) };
        self.count += 1;
        if self.count == raw::MAX_OPS {
            self.send();
        }
    }

    fn send(&mut self) {
        if self.count > 0 {
            host::write(self.ops.cast(), self.count as u32);
        }
        self.count = 0;
    }
}

impl super::cache::Slot {
    /// An operation on this entry.
    fn address(&self) -> Op {
        let key_len = u32::from(self.key_len);
        Op { key: self.key, key_len, sub: self.key + key_len, sub_len: self.sub_len.into(), ..Op::EMPTY }
    }
}

/// What timers are in order of.
fn place(t: &Op) -> (u8, i64, (&[u8], &[u8])) {
    (t.domain, t.at, timer_key(t))
}

/// Key and sub-key of a timer.
fn timer_key(t: &Op) -> (&[u8], &[u8]) {
    // SAFETY: they lie in the heap, which forgets them only with the timers.
    unsafe { (view(t.key, t.key_len as usize), view(t.sub, t.sub_len as usize)) }
}

/// The arena as an array of `count` operations.
fn hold(arena: &mut Arena, count: usize) -> *mut Op {
    assert!(arena.hold_dirty((count * size_of::<Op>()).next_power_of_two()), "no memory for state operations");
    arena.base.cast()
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.ops.release();
        self.need.release();
        self.scanned.release();
    }
}
