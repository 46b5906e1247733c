//! The output: an array of records and an arena for their bytes, both fixed, handed to the host when full and used again.

use crate::host;
use crate::json::copy;
use crate::manifest::Port;
use crate::mem::{self, Arena};
use crate::object::Object;
use crate::raw::{self, Entry, Rec};
use crate::record::{Batch, Record};
use crate::reject::{BAD_FIELD, Reject, Result, dead_letter};
use crate::state::Lane;

/// Records the output array holds.
const RECORDS: usize = 1024;

/// Where a transform's output goes. Records leave in the order in which they were written.
pub struct Out {
    records: Arena,
    count: usize,
    data: Arena,
    used: usize,
    /// Holds one output that is larger than the arena, until it is sent.
    large: Arena,
    headers: [Entry; raw::MAX_HEADERS],
    /// The key, or the headers, of the draft at hand lie in the arena.
    own_key: bool,
    own_headers: bool,
    pub(crate) batch: Batch,
    pub(crate) state: Lane,
}

/// The domains of timers.
const EVENT: u8 = 0;
const PROCESSING: u8 = 1;

impl Out {
    pub(crate) const fn new() -> Out {
        Out {
            records: Arena::EMPTY,
            count: 0,
            data: Arena::EMPTY,
            used: 0,
            large: Arena::EMPTY,
            headers: [Entry::EMPTY; raw::MAX_HEADERS],
            own_key: false,
            own_headers: false,
            batch: Batch { id: 0, time: 0, late_watermark: 0, watermark: 0, seed: [0; 2], lane: 0, chunk: 0, first: false, last: false },
            state: Lane::new(),
        }
    }

    /// Makes the arenas. False when memory is short.
    pub(crate) fn make(&mut self, data: usize) -> bool {
        self.records.hold(RECORDS * size_of::<Rec>()) && self.data.hold(data)
    }

    /// What is known of the batch.
    pub fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Sets a timer for this key: when the watermark has reached `at` (microseconds since 1970, whole milliseconds), in a later
    /// batch, it comes back as a record with this key, this event time and `sub`. The same timer set twice is one.
    #[inline]
    pub fn set_event_timer(&mut self, key: &[u8], at: i64, sub: &[u8]) {
        self.state.timer(raw::TIMER_SET, EVENT, key, at, sub);
    }

    /// The same for the time of batches, that is of the clock.
    pub fn set_processing_timer(&mut self, key: &[u8], at: i64, sub: &[u8]) {
        self.state.timer(raw::TIMER_SET, PROCESSING, key, at, sub);
    }

    /// Deletes a timer in event time: it is the one with the same key, time and `sub`. Without it nothing happens.
    pub fn delete_event_timer(&mut self, key: &[u8], at: i64, sub: &[u8]) {
        self.state.timer(raw::TIMER_DELETE, EVENT, key, at, sub);
    }

    /// The same for a timer in processing time.
    pub fn delete_processing_timer(&mut self, key: &[u8], at: i64, sub: &[u8]) {
        self.state.timer(raw::TIMER_DELETE, PROCESSING, key, at, sub);
    }

    /// Passes the record on as it is. Nothing is copied but its 56 bytes of addresses.
    #[inline]
    pub fn pass(&mut self, record: &Record<'_>, to: Port) {
        let slot = self.copy(record);
        // SAFETY: a slot of the output array.
        unsafe { (*slot).port = to.0 };
        self.count += 1;
    }

    /// Begins a record with the key, headers, event time and origin of this one, and a new value.
    #[inline]
    pub fn from(&mut self, record: &Record<'_>) -> Draft<'_> {
        self.copy(record);
        Draft::new(self)
    }

    /// Begins a record that stems from no input: without key, headers and event time.
    pub fn blank(&mut self) -> Draft<'_> {
        self.place(Rec::EMPTY);
        Draft::new(self)
    }

    /// Begins a JSON object as the new value of this record: short for `from(record).object()`.
    #[inline]
    pub fn object(&mut self, record: &Record<'_>) -> Object<'_> {
        self.from(record).object()
    }

    /// Copies the record's JSON object and stays before its last brace, to add members: nothing is parsed.
    ///
    /// # Errors
    /// The value is no JSON object.
    #[inline]
    pub fn extend(&mut self, record: &Record<'_>) -> Result<Object<'_>> {
        match record.value().filter(|_| record.is_json()).and_then(open) {
            Some(text) => Ok(Object::reopen(self.from(record), text)),
            None => Err(dead_letter(BAD_FIELD, "the value is not a JSON object")),
        }
    }

    /// Refuses the record now, and once only: what a transform does by returning an error.
    pub fn reject(&mut self, record: &Record<'_>, why: &Reject) {
        let reason = cut(why.reason(), raw::MAX_TEXT).as_bytes();
        let kind = if why.is_poison() { raw::FAIL } else { raw::DEAD_LETTER };
        let index = record.index().unwrap_or(raw::NO_INDEX);
        self.place(Rec { kind, partition: i32::from(why.code()), index, ..Rec::EMPTY });
        let mut draft = Draft::new(self);
        draft.put(reason);
        draft.finish(0, Port::OUT);
    }

    /// Hands everything to the host, which copies it at once.
    pub(crate) fn flush(&mut self) {
        if self.count > 0 {
            host::send(self.records.base, self.count as u32);
        }
        (self.count, self.used) = (0, 0);
    }

    /// The next free record of the output array.
    #[inline(always)]
    fn slot(&mut self) -> *mut Rec {
        if self.count == RECORDS {
            self.flush();
        }
        // SAFETY: count is below RECORDS, which is what the 16-aligned arena was made for.
        unsafe { self.records.base.cast::<Rec>().add(self.count) }
    }

    /// Moves the `len` bytes that a draft has at `old` to where n more fit: to the start of the emptied arena, or to a block
    /// of their own. Returns the new start and end.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, old: *mut u8, len: usize, n: usize) -> (*mut u8, *mut u8) {
        let slots = self.records.base.cast::<Rec>();
        let need = len.checked_add(n).expect("an output of more than 4 GiB");
        // SAFETY: the draft's slot is at count; the first is free once the records are handed over.
        unsafe {
            let rec = *slots.add(self.count);
            self.flush();
            *slots = rec;
        }
        let mut previous = Arena::EMPTY;
        let block = if need <= self.data.len && self.large.base.is_null() {
            &self.data
        } else {
            previous = core::mem::replace(&mut self.large, Arena::EMPTY);
            assert!(self.large.hold(need.max(2 * self.data.len).next_power_of_two()), "no memory for a large output");
            &self.large
        };
        let start = block.base;
        // SAFETY: both blocks hold len bytes; they may overlap inside the arena.
        let (rec, end) = unsafe {
            core::ptr::copy(old, start, len);
            (&mut *slots, start.add(block.len))
        };
        let (from, to) = (mem::addr(old), mem::addr(start));
        if self.own_key {
            rec.key = to + (rec.key - from);
        }
        if self.own_headers {
            for e in &mut self.headers[..usize::from(rec.header_count)] {
                if (from..from + len as u32).contains(&e.name) {
                    (e.name, e.value) = (to + (e.name - from), to + (e.value - from));
                }
            }
        }
        previous.release();
        (start, end)
    }

    /// Fills the next slot; it counts only when `count` is raised.
    #[inline(always)]
    fn place(&mut self, rec: Rec) {
        // SAFETY: a slot of the output array.
        unsafe { self.slot().write(rec) }
    }

    /// Fills the next slot with an input, as an output.
    #[inline(always)]
    fn copy(&mut self, record: &Record<'_>) -> *mut Rec {
        let slot = self.slot();
        // SAFETY: the record is one of the current frame, the slot one of the output array.
        unsafe {
            *slot = *record.raw;
            (*slot).kind = 0;
            (*slot).flags &= raw::HAS_EVENT_TIME;
        }
        slot
    }
}

/// A JSON object's text up to its last member, blanks cut.
#[inline]
fn open(text: &[u8]) -> Option<&[u8]> {
    let text = text.trim_ascii().strip_suffix(b"}")?;
    text.starts_with(b"{").then_some(text.trim_ascii_end())
}

/// The longest beginning of at most `max` bytes that ends at a character.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// A record in the making. Key and headers are set first, then the value; dropping it leaves no trace.
pub struct Draft<'o> {
    out: &'o mut Out,
    start: *mut u8,
    at: *mut u8,
    end: *mut u8,
}

impl<'o> Draft<'o> {
    /// Goes on with the record in the slot at `out.count`.
    #[inline(always)]
    fn new(out: &'o mut Out) -> Self {
        (out.own_key, out.own_headers) = (false, false);
        // SAFETY: used never exceeds the arena's length.
        let (start, end) = unsafe { (out.data.base.add(out.used), out.data.base.add(out.data.len)) };
        Draft { out, start, at: start, end }
    }

    #[inline(always)]
    fn rec(&mut self) -> &mut Rec {
        // SAFETY: the slot belongs to this draft, and nothing else refers to it.
        unsafe { &mut *self.out.records.base.cast::<Rec>().add(self.out.count) }
    }

    /// Sets the key.
    pub fn key(mut self, key: &[u8]) -> Self {
        let at = self.len();
        self.put(key);
        self.out.own_key = true; // not before: where the arena grows, the key that the record has is not in it
        (self.rec().key, self.rec().key_len) = (self.address(at), key.len() as i32);
        self
    }

    /// Sets the key to null.
    pub fn no_key(mut self) -> Self {
        (self.rec().key, self.rec().key_len, self.out.own_key) = (0, -1, false);
        self
    }

    /// Sets the event time, in microseconds since 1970; the host keeps whole milliseconds.
    pub fn event_time(mut self, us: i64) -> Self {
        (self.rec().event_time, self.rec().flags) = (us, raw::HAS_EVENT_TIME);
        self
    }

    /// Drops the headers that came with the record.
    pub fn no_headers(mut self) -> Self {
        (self.rec().headers, self.rec().header_count, self.out.own_headers) = (0, 0, false);
        self
    }

    /// Adds a header after those that are there.
    ///
    /// # Panics
    /// When there are 64 already.
    pub fn header(mut self, name: &str, value: Option<&[u8]>) -> Self {
        let (n, inherited) = (usize::from(self.rec().header_count), self.rec().headers);
        assert!(n < raw::MAX_HEADERS, "a record has at most {} headers", raw::MAX_HEADERS);
        if !self.out.own_headers {
            for i in 0..n {
                // SAFETY: the record's header entries lie in the frame, 4-aligned.
                self.out.headers[i] = unsafe { *mem::ptr(inherited).cast::<Entry>().add(i) };
            }
            self.out.own_headers = true;
        }
        let at = self.len();
        self.put(name.as_bytes());
        self.put(value.unwrap_or(b""));
        self.out.headers[n] = Entry {
            name: self.address(at),
            name_len: name.len() as u32,
            value: self.address(at + name.len()),
            value_len: value.map_or(-1, |v| v.len() as i32),
        };
        self.rec().header_count += 1;
        self
    }

    /// Writes the record with these bytes as its value, or null.
    pub fn value(mut self, value: Option<&[u8]>, to: Port) {
        let at = self.len();
        if let Some(v) = value {
            self.put(v);
            return self.finish(at, to);
        }
        let rec = self.rec();
        (rec.value, rec.value_len, rec.port) = (0, -1, to.0);
        self.close();
    }

    /// Begins a JSON object as its value.
    #[inline]
    pub fn object(self) -> Object<'o> {
        Object::open(self)
    }

    /// Bytes written so far.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.at as usize - self.start as usize
    }

    #[inline(always)]
    fn address(&self, at: usize) -> u32 {
        // SAFETY: at is at most what was written.
        mem::addr(unsafe { self.start.add(at) })
    }

    /// Makes room for n more bytes.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, n: usize) {
        if self.end as usize - (self.at as usize) < n {
            let len = self.len();
            (self.start, self.end) = self.out.grow(self.start, len, n);
            // SAFETY: the new block holds what was written.
            self.at = unsafe { self.start.add(len) };
        }
    }

    /// Appends bytes.
    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: there is room, and the arena is none of the caller's memory.
        self.at = unsafe { copy(self.at, bytes) };
    }

    /// Appends what `write` writes at the address it is given, up to the one it returns.
    ///
    /// # Safety
    /// Room for that was made.
    #[inline(always)]
    pub(crate) unsafe fn raw(&mut self, write: impl FnOnce(*mut u8) -> *mut u8) {
        self.at = write(self.at);
        debug_assert!(self.at <= self.end);
    }

    /// Ends the record; its value is what was written from `at` on.
    #[inline(always)]
    pub(crate) fn finish(mut self, at: usize, to: Port) {
        let (value, len) = (self.address(at), self.len() - at);
        let rec = self.rec();
        (rec.value, rec.value_len, rec.port) = (value, len as i32, to.0);
        self.close();
    }

    #[inline(always)]
    fn close(mut self) {
        if self.out.own_headers {
            self.write_headers();
        }
        self.out.count += 1;
        if self.out.large.base.is_null() {
            self.out.used = self.at as usize - self.out.data.base as usize;
            return;
        }
        self.out.flush();
        self.out.large.release();
    }

    #[cold]
    fn write_headers(&mut self) {
        let n = usize::from(self.rec().header_count);
        let (value, before) = (self.rec().value, self.start);
        self.reserve(n * size_of::<Entry>() + 4);
        if self.rec().value_len >= 0 {
            self.rec().value = mem::addr(self.start) + (value - mem::addr(before));
        }
        let pad = self.at.align_offset(4);
        // SAFETY: reserve made room for the padding and the entries.
        unsafe {
            let to = self.at.add(pad);
            core::ptr::copy_nonoverlapping(self.out.headers.as_ptr(), to.cast::<Entry>(), n);
            self.rec().headers = mem::addr(to);
            self.at = to.add(n * size_of::<Entry>());
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.records.release();
        self.data.release();
        self.large.release();
    }
}

impl Draft<'_> {
    /// Takes back the byte at `at` of those written.
    pub(crate) fn remove(&mut self, at: usize) -> u8 {
        let rest = self.len() - at - 1;
        // SAFETY: the bytes were written, and all lie in one block.
        unsafe {
            let to = self.start.add(at);
            let byte = *to;
            core::ptr::copy(to.add(1), to, rest);
            self.at = self.at.sub(1);
            byte
        }
    }
}
