//! Traps on demand: the value of a record says how. Built with debug information and names, to show what a message of a
//! trap can say. Any other record is emitted as it lies.

use std::hint::black_box;

#[repr(C)]
pub struct Frame {
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

#[repr(C)]
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
    index: u32,
    zero: u32,
}

#[link(wasm_import_module = "wasmill_1")]
unsafe extern "C" {
    fn emit(records: *const Record, count: u32, stride: u32);
}

const ARENA: usize = 262_288 + 16;

#[repr(align(16))]
struct Arena(std::cell::UnsafeCell<[u8; ARENA]>);

unsafe impl Sync for Arena {}

static FRAME: Arena = Arena(std::cell::UnsafeCell::new([0; ARENA]));

#[unsafe(no_mangle)]
pub extern "C" fn wasmill_alloc(n: u32) -> *mut u8 {
    if n as usize <= ARENA {
        FRAME.0.get().cast()
    } else {
        std::ptr::null_mut()
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn wasmill_init(_config: u32, _n: u32, _max_frame: u32) -> i32 {
    0
}

/// # Safety
/// The host calls it with a frame in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wasmill_batch(frame: *mut Frame, _n: u32) -> i32 {
    let frame = unsafe { &mut *frame };
    let mut sum = 0;
    for i in 0..frame.count {
        let record = unsafe { &*((frame.records + i * frame.stride) as usize as *const Record) };
        frame.progress = record.index;
        sum += on_record(record);
    }
    sum
}

#[inline(never)]
fn on_record(record: &Record) -> i32 {
    let value = unsafe { std::slice::from_raw_parts(record.value as usize as *const u8, record.value_len.max(0) as usize) };
    match value {
        b"unreachable" => core::arch::wasm32::unreachable(),
        b"index" => index(value, black_box(100)),
        b"inlined" => inlined(value) + 1,
        b"divide" => divide(7, black_box(0)),
        b"unwrap" => unwrap(value),
        b"memory" => unsafe { *black_box(0xffff_fff0_usize as *const i32) },
        b"depth" => Tree::grow(0).depth(),
        b"generic" => Generic(black_box(3u64)).fall(),
        b"fuel" => spin(),
        _ => {
            unsafe { emit(record, 1, 56) };
            0
        }
    }
}

#[inline(never)]
fn index(value: &[u8], at: usize) -> i32 {
    i32::from(value[at])
}

/// It is to appear in messages as a frame of its own, although it is part of its caller.
#[inline(always)]
fn inlined(value: &[u8]) -> i32 {
    let at = value.len() + 10;
    index(value, black_box(at))
}

#[inline(never)]
fn divide(a: i32, b: i32) -> i32 {
    a / b
}

#[inline(never)]
fn unwrap(value: &[u8]) -> i32 {
    value.iter().find(|b| **b == 0).copied().unwrap().into()
}

#[inline(never)]
fn spin() -> i32 {
    let mut i = 0u32;
    loop {
        i = black_box(i.wrapping_add(1));
    }
}

struct Tree(i32);

impl Tree {
    #[inline(never)]
    fn grow(n: i32) -> Tree {
        black_box(Tree(n))
    }

    #[inline(never)]
    fn depth(&self) -> i32 {
        if self.0 < 0 {
            return 0;
        }
        let next = Tree::grow(self.0 + 1);
        black_box(next.depth()) + self.0
    }
}

struct Generic<T>(T);

impl<T: Into<u64> + Copy> Generic<T> {
    #[inline(never)]
    fn fall(&self) -> i32 {
        let v: u64 = self.0.into();
        if v != 0 {
            core::arch::wasm32::unreachable()
        }
        0
    }
}
