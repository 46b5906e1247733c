//! The structs of ABI 1 as they lie in linear memory.

/// "WMF1", the first four bytes of a frame.
pub const MAGIC: u32 = u32::from_le_bytes(*b"WMF1");
/// The frame version this crate reads.
pub const VERSION: u16 = 1;
/// Frame flag: the lane's first frame.
pub const FIRST: u16 = 1;
/// Frame flag: the lane's end.
pub const LAST: u16 = 2;
/// Record flag: the event time is set.
pub const HAS_EVENT_TIME: u8 = 1;
/// Record flag on input: the value is not one JSON text in UTF-8.
pub const NOT_JSON: u8 = 2;
/// A record that stems from no input.
pub const NO_INDEX: u32 = u32::MAX;
/// Output kind: set this input aside as a dead letter.
pub const DEAD_LETTER: u8 = 16;
/// Output kind: this input is poison.
pub const FAIL: u8 = 17;
/// Most headers of one record.
pub const MAX_HEADERS: usize = 64;
/// Longest reason, log line and error text, in bytes.
pub const MAX_TEXT: usize = 1024;

/// The frame header, 128 bytes.
#[repr(C)]
pub struct Frame {
    pub magic: u32,
    pub version: u16,
    pub flags: u16,
    pub header_len: u32,
    pub total: u32,
    pub count: u32,
    pub records: u32,
    pub stride: u32,
    pub nfields: u32,
    pub batch: u64,
    pub batch_time: i64,
    pub late_watermark: i64,
    pub watermark: i64,
    pub seed: [u64; 2],
    pub lane: u32,
    pub chunk: u32,
    pub fuel: u64,
    pub progress: u32,
    pub error: u32,
    pub error_len: u32,
    pub zero: [u32; 5],
}

/// One record, 56 bytes; on input `nfields` located fields follow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rec {
    pub event_time: i64,
    pub offset: i64,
    pub key: u32,
    pub key_len: i32,
    pub value: u32,
    pub value_len: i32,
    pub headers: u32,
    pub header_count: u16,
    pub kind: u8,
    pub flags: u8,
    pub partition: i32,
    pub port: u16,
    pub input: u16,
    pub index: u32,
    pub zero: u32,
}

impl Rec {
    /// A record without key, value, headers, event time or origin.
    pub const EMPTY: Rec = Rec {
        event_time: 0,
        offset: 0,
        key: 0,
        key_len: -1,
        value: 0,
        value_len: -1,
        headers: 0,
        header_count: 0,
        kind: 0,
        flags: 0,
        partition: 0,
        port: 0,
        input: 0,
        index: NO_INDEX,
        zero: 0,
    };
}

/// One located field, 8 bytes: address, and length with the kind in the top four bits.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Located {
    pub ptr: u32,
    pub len_kind: u32,
}

/// One header entry, 16 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Entry {
    pub name: u32,
    pub name_len: u32,
    pub value: u32,
    pub value_len: i32,
}

impl Entry {
    /// An unused entry.
    pub const EMPTY: Entry = Entry { name: 0, name_len: 0, value: 0, value_len: -1 };
}

/// Most operations of one call.
pub const MAX_OPS: usize = 65_536;
/// `state_read` answers this when the buffer is too small.
pub const TOO_SMALL: i32 = 2;
/// State operations.
pub const GET: u8 = 1;
/// See [`GET`].
pub const SCAN: u8 = 2;
/// See [`GET`].
pub const PUT: u8 = 3;
/// See [`GET`].
pub const DELETE: u8 = 4;
/// See [`GET`].
pub const DELETE_PREFIX: u8 = 5;
/// See [`GET`].
pub const TIMER_SET: u8 = 6;
/// See [`GET`].
pub const TIMER_DELETE: u8 = 7;
/// Flag of a scan's answer: there is more.
pub const MORE: u32 = 1;
/// Flag of a scan: downwards.
pub const DESCENDING: u32 = 2;

/// One state operation, 56 bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Op {
    pub op: u8,
    pub domain: u8,
    pub table: u16,
    pub limit: u32,
    pub key: u32,
    pub key_len: u32,
    pub sub: u32,
    pub sub_len: u32,
    pub value: u32,
    pub value_len: i32,
    pub at: i64,
    pub answer: u32,
    pub answer_len: i32,
    pub count: u32,
    pub flags: u32,
}

impl Op {
    /// An operation with nothing set.
    pub const EMPTY: Op = Op {
        op: 0,
        domain: 0,
        table: 0,
        limit: 0,
        key: 0,
        key_len: 0,
        sub: 0,
        sub_len: 0,
        value: 0,
        value_len: -1,
        at: 0,
        answer: 0,
        answer_len: 0,
        count: 0,
        flags: 0,
    };
}

const _: () = assert!(size_of::<Frame>() == 128 && size_of::<Rec>() == 56 && size_of::<Located>() == 8 && size_of::<Entry>() == 16);
const _: () = assert!(size_of::<Op>() == 56);
