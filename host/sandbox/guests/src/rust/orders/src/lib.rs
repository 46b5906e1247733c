//! What the Rust guests share: memory, the loop over a frame, and the output. A guest is this and one function of a value.

use std::cell::UnsafeCell;

#[repr(C)]
struct Frame {
    magic: u32,
    version: u16,
    flags: u16,
    header_len: u32,
    total: u32,
    count: u32,
    records: u32,
    stride: u32,
    nfields: u32,
    rest: [u64; 8],
    progress: u32,
}

/// A record as it lies in memory, in and out.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Record {
    event_time: i64,
    offset: i64,
    key: u32,
    key_len: i32,
    value: u32,
    value_len: i32,
    headers: u32,
    header_count: u16,
    kind: u8,
    flags: u8,
    partition: i32,
    port: u16,
    input: u16,
    /// Its number in the lane.
    pub index: u32,
    zero: u32,
}

impl Record {
    /// The bytes of the value.
    #[inline(always)]
    pub fn value(&self) -> &[u8] {
        unsafe { std::slice::from_raw_parts(self.value as usize as *const u8, self.value_len.max(0) as usize) }
    }
}

#[link(wasm_import_module = "wasmill_1")]
unsafe extern "C" {
    fn emit(records: *const Record, count: u32, stride: u32);
}

/// Frames of 1,000 records, and their output.
const ARENA: usize = 512 << 10;

#[repr(C, align(16))]
struct Memory {
    frame: [u8; ARENA + 16],
    pending: [Record; 1024],
    values: [(u32, u32); 1024],
}

struct Global<T>(UnsafeCell<T>);

// A guest has one thread.
unsafe impl<T> Sync for Global<T> {}

static MEMORY: Global<Memory> = Global(UnsafeCell::new(unsafe { std::mem::zeroed() }));
static OUTPUT: Global<Vec<u8>> = Global(UnsafeCell::new(Vec::new()));

pub fn alloc(n: u32) -> *mut u8 {
    if n as usize > ARENA + 16 {
        return std::ptr::null_mut();
    }
    unsafe { (*MEMORY.0.get()).frame.as_mut_ptr() }
}

pub fn init() -> i32 {
    unsafe { (*OUTPUT.0.get()).reserve(ARENA) };
    0
}

/// Runs a frame. A guest's function appends a record's new value, or answers false to drop it.
///
/// # Safety
/// The host calls it, with a frame in memory.
#[inline(always)]
pub unsafe fn batch(frame: u32, mut each: impl FnMut(&Record, &mut Vec<u8>) -> bool) -> i32 {
    let (frame, memory, output) = unsafe { (&mut *(frame as usize as *mut Frame), &mut *MEMORY.0.get(), &mut *OUTPUT.0.get()) };
    output.clear();
    let mut kept = 0;
    for i in 0..frame.count {
        let record = unsafe { &*((frame.records + i * frame.stride) as usize as *const Record) };
        frame.progress = record.index;
        let from = output.len();
        if !each(record, output) {
            output.truncate(from);
            continue;
        }
        memory.pending[kept] = *record;
        memory.values[kept] = (from as u32, (output.len() - from) as u32);
        kept += 1;
    }
    // The output may have moved while it grew, so addresses come last.
    let base = output.as_ptr() as usize as u32;
    for i in 0..kept {
        let (at, n) = memory.values[i];
        memory.pending[i].value = base + at;
        memory.pending[i].value_len = n as i32;
    }
    unsafe { emit(memory.pending.as_ptr(), kept as u32, 56) };
    0
}

/// The exports of a guest.
#[macro_export]
macro_rules! guest {
    ($each:path) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn wasmill_alloc(n: u32) -> *mut u8 {
            $crate::alloc(n)
        }
        #[unsafe(no_mangle)]
        pub extern "C" fn wasmill_init(_config: u32, _n: u32, _max_frame: u32) -> i32 {
            $crate::init()
        }
        /// # Safety
        /// The host calls it, with a frame in memory.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn wasmill_batch(frame: u32, _n: u32) -> i32 {
            unsafe { $crate::batch(frame, $each) }
        }
    };
}

/// A number with at most two decimals, in cents.
#[inline(always)]
pub fn cents_of(text: &[u8]) -> u64 {
    let (mut v, mut left, mut point) = (0u64, 2, false);
    for &c in text {
        if c == b'.' {
            point = true;
            continue;
        }
        if point {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        v = v * 10 + u64::from(c - b'0');
    }
    while left > 0 {
        v *= 10;
        left -= 1;
    }
    v
}

/// Appends the new member and the brace.
#[inline(always)]
pub fn put_eur(out: &mut Vec<u8>, cents: u64) {
    let eur = (cents * 92 + 50) / 100;
    let mut digits = [0u8; 20];
    let (mut n, mut whole) = (digits.len(), eur / 100);
    loop {
        n -= 1;
        digits[n] = b'0' + (whole % 10) as u8;
        whole /= 10;
        if whole == 0 {
            break;
        }
    }
    out.extend_from_slice(b",\"amount_eur\":");
    out.extend_from_slice(&digits[n..]);
    out.extend_from_slice(&[b'.', b'0' + (eur / 10 % 10) as u8, b'0' + (eur % 10) as u8, b'}']);
}
