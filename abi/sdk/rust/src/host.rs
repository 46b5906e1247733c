//! The host's functions; natively, a stand-in that keeps what was said.

/// How grave a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Details for the author of the transform.
    Debug = 0,
    /// Normal, rare events.
    Info = 1,
    /// Something odd that was dealt with.
    Warn = 2,
    /// Something that went wrong.
    Error = 3,
}

#[cfg(target_arch = "wasm32")]
mod imp {
    #[link(wasm_import_module = "wasmill_1")]
    unsafe extern "C" {
        fn emit(ptr: u32, count: u32, stride: u32);
        fn log(level: u32, ptr: *const u8, len: u32);
        fn state_read(ops: u32, count: u32, buf: u32, cap: u32, need: u32) -> i32;
        fn state_write(ops: u32, count: u32);
    }

    /// Has `count` gets and scans answered into the buffer; a nonzero answer means that it is too small, and `need` says how
    /// much it takes.
    pub fn read(ops: *mut u8, count: u32, buf: *mut u8, cap: u32, need: *mut u8) -> i32 {
        use crate::mem::addr;
        // SAFETY: the host checks every address and writes answers into the operations and the buffer.
        unsafe { state_read(addr(ops), count, addr(buf), cap, addr(need)) }
    }

    /// Has `count` writes carried out.
    pub fn write(ops: *const u8, count: u32) {
        // SAFETY: the host checks every address and keeps none.
        unsafe { state_write(crate::mem::addr(ops), count) }
    }

    /// Hands `count` records of 56 bytes to the host, which copies them at once.
    pub fn send(records: *const u8, count: u32) {
        // SAFETY: the host checks every address; it copies and keeps none.
        unsafe { emit(crate::mem::addr(records), count, size_of::<crate::raw::Rec>() as u32) }
    }

    /// Writes one line to the host's log.
    pub fn say(level: super::Level, text: &str) {
        // SAFETY: ptr and len are those of a string.
        unsafe { log(level as u32, text.as_ptr(), text.len() as u32) }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod imp {
    use crate::testing;

    pub fn send(records: *const u8, count: u32) {
        testing::receive(records, count);
    }

    pub fn say(level: super::Level, text: &str) {
        testing::hear(level, text);
    }

    pub fn read(ops: *mut u8, count: u32, buf: *mut u8, cap: u32, need: *mut u8) -> i32 {
        testing::state::read(ops, count, buf, cap, need)
    }

    pub fn write(ops: *const u8, count: u32) {
        testing::state::write(ops, count);
    }
}

pub(crate) use imp::{read, send, write};

/// Writes one line to the host's log. The host cuts it at 1 KiB and limits the rate.
pub fn log(level: Level, text: &str) {
    imp::say(level, text);
}
