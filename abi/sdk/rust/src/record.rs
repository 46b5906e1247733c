//! What the host hands over: the batch and its records.

use crate::manifest::Field;
use crate::mem;
use crate::raw::{self, Entry, Frame, Located, Rec};
use crate::value::{Kind, Value};
use core::marker::PhantomData;

/// What is known of the batch, the same on every replay. Times are microseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The batch's number.
    pub id: u64,
    /// The batch's pinned time.
    pub time: i64,
    /// Records before it are late; 0 when there is none yet.
    pub late_watermark: i64,
    /// No record before it is expected any more; 0 when there is none yet.
    pub watermark: i64,
    /// Random, but equal on every replay.
    pub seed: [u64; 2],
    /// The lane this instance serves.
    pub lane: u32,
    /// The number of the frame in its lane.
    pub chunk: u32,
    /// True in the lane's first frame.
    pub first: bool,
    /// True in the lane's last frame, which holds no records.
    pub last: bool,
}

impl Batch {
    pub(crate) fn read(f: &Frame) -> Batch {
        Batch {
            id: f.batch,
            time: f.batch_time,
            late_watermark: f.late_watermark,
            watermark: f.watermark,
            seed: f.seed,
            lane: f.lane,
            chunk: f.chunk,
            first: f.flags & raw::FIRST != 0,
            last: f.flags & raw::LAST != 0,
        }
    }
}

/// What an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A record.
    Record,
    /// A timer in event time that is due: its time is the event time, its sub-key the value.
    EventTimer,
    /// A timer in processing time that is due.
    ProcessingTimer,
}

/// One record of the input. It lies in the frame, and everything it gives out lies there too.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    pub(crate) raw: *const Rec,
    fields: u32,
    frame: PhantomData<&'a Frame>,
}

impl<'a> Record<'a> {
    /// # Safety
    /// `raw` is a record of a frame that lives for 'a, with `fields` located fields after it.
    #[inline(always)]
    pub(crate) unsafe fn new(raw: *const Rec, fields: u32) -> Self {
        Record { raw, fields, frame: PhantomData }
    }

    #[inline(always)]
    fn rec(&self) -> &'a Rec {
        // SAFETY: by the contract of new.
        unsafe { &*self.raw }
    }

    /// The key; `None` when it is null.
    #[inline]
    pub fn key(&self) -> Option<&'a [u8]> {
        bytes(self.rec().key, self.rec().key_len)
    }

    /// The value; `None` when it is null.
    #[inline]
    pub fn value(&self) -> Option<&'a [u8]> {
        bytes(self.rec().value, self.rec().value_len)
    }

    /// The key that this record's state is held under: its key, which in a keyed stage is what `keyBy` took.
    #[inline]
    pub fn state_key(&self) -> &'a [u8] {
        self.key().unwrap_or(b"")
    }

    /// What a timer was set with.
    #[inline]
    pub fn sub(&self) -> &'a [u8] {
        self.value().unwrap_or(b"")
    }

    /// True when the value is one JSON text in UTF-8. If not, all fields are absent.
    #[inline(always)]
    pub fn is_json(&self) -> bool {
        self.rec().flags & raw::NOT_JSON == 0
    }

    /// A declared field, found by the host.
    #[inline(always)]
    pub fn get(&self, field: Field) -> Value<'a> {
        if field.at >= self.fields {
            return Value::absent(field.pointer);
        }
        // SAFETY: the record is followed by its fields, and this is one of them.
        let located = unsafe { *self.raw.add(1).cast::<Located>().add(field.at as usize) };
        let (len, kind) = (located.len_kind & 0x0fff_ffff, Kind::from_bits(located.len_kind >> 28));
        Value { raw: bytes(located.ptr, len as i32).unwrap_or(b""), name: field.pointer, kind }
    }

    /// The whole value for the scanner: fields that the manifest did not declare. Each [`Value::get`] scans it again.
    pub fn json(&self) -> Value<'a> {
        match self.value() {
            Some(text) if self.is_json() => Value::parse(text),
            _ => Value::absent(""),
        }
    }

    /// The headers in order: name, and value or null.
    pub fn headers(&self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let (base, count) = (self.rec().headers, u32::from(self.rec().header_count));
        (0..count).map(move |i| {
            // SAFETY: `count` entries lie at `base`, 4-aligned.
            let e = unsafe { *mem::ptr(base + i * size_of::<Entry>() as u32).cast::<Entry>() };
            (bytes(e.name, e.name_len as i32).unwrap_or(b""), bytes(e.value, e.value_len))
        })
    }

    /// The last header of this name; `None` when there is none or it is null.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers().filter(|(n, _)| *n == name.as_bytes()).last()?.1
    }

    /// The event time in microseconds since 1970, if it has one.
    #[inline]
    pub fn event_time(&self) -> Option<i64> {
        (self.rec().flags & raw::HAS_EVENT_TIME != 0).then_some(self.rec().event_time)
    }

    /// Where the record stands in its partition or file.
    #[inline]
    pub fn offset(&self) -> i64 {
        self.rec().offset
    }

    /// The partition it came from.
    #[inline]
    pub fn partition(&self) -> i32 {
        self.rec().partition
    }

    /// The number of the input (the `from` entry of the job) it came by.
    #[inline]
    pub fn input(&self) -> u16 {
        self.rec().input
    }

    /// The record's number in its lane; `None` for timers.
    #[inline]
    pub fn index(&self) -> Option<u32> {
        (self.rec().index != raw::NO_INDEX).then_some(self.rec().index)
    }

    /// Record or timer.
    pub fn kind(&self) -> Input {
        match self.rec().kind {
            1 => Input::EventTimer,
            2 => Input::ProcessingTimer,
            _ => Input::Record,
        }
    }
}

#[inline(always)]
fn bytes<'a>(addr: u32, len: i32) -> Option<&'a [u8]> {
    match len {
        0 => Some(b""),
        n if n < 0 => None,
        // SAFETY: the host laid these bytes out in the frame, which outlives 'a by the contract of Record::new.
        n => Some(unsafe { core::slice::from_raw_parts(mem::ptr(addr), n as usize) }),
    }
}
