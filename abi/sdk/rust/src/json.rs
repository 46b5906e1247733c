//! What can be written as JSON.

use crate::num::{self, Decimal, NUMBER_ROOM};
use crate::value::{Kind, Value};
use std::borrow::Cow;

/// What can be written as a JSON value: integers, booleans, strings, [`Decimal`], a [`Value`] of an input as it lies there,
/// and `Option` of these, whose `None` is `null`.
pub trait ToJson: Put {}

/// Writes itself into an arena.
pub trait Put {
    /// At least the bytes that `write` needs.
    fn room(&self) -> usize;

    /// Writes JSON text and returns where it ends.
    ///
    /// # Safety
    /// There are `room` bytes at `to`, which are no part of self.
    unsafe fn write(&self, to: *mut u8) -> *mut u8;
}

/// Copies bytes and returns where they end; the short ones go without a call.
///
/// # Safety
/// `to` has room for them and does not overlap them.
#[inline(always)]
pub unsafe fn copy(to: *mut u8, from: &[u8]) -> *mut u8 {
    let (src, n) = (from.as_ptr(), from.len());
    // SAFETY: every load and store lies inside the n bytes.
    unsafe {
        match n {
            0 => {}
            1..4 => {
                *to = *src;
                *to.add(n / 2) = *src.add(n / 2);
                *to.add(n - 1) = *src.add(n - 1);
            }
            4..8 => {
                let (a, b) = (src.cast::<u32>().read_unaligned(), src.add(n - 4).cast::<u32>().read_unaligned());
                to.cast::<u32>().write_unaligned(a);
                to.add(n - 4).cast::<u32>().write_unaligned(b);
            }
            8..=16 => {
                let (a, b) = (src.cast::<u64>().read_unaligned(), src.add(n - 8).cast::<u64>().read_unaligned());
                to.cast::<u64>().write_unaligned(a);
                to.add(n - 8).cast::<u64>().write_unaligned(b);
            }
            17..=64 => {
                for i in (0..n - 8).step_by(8) {
                    to.add(i).cast::<u64>().write_unaligned(src.add(i).cast::<u64>().read_unaligned());
                }
                to.add(n - 8).cast::<u64>().write_unaligned(src.add(n - 8).cast::<u64>().read_unaligned());
            }
            _ => core::ptr::copy_nonoverlapping(src, to, n),
        }
        to.add(n)
    }
}

/// # Safety
/// As for `copy`, with two bytes more.
#[inline(always)]
unsafe fn quote(to: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: by the contract of this function.
    unsafe {
        *to = b'"';
        let end = copy(to.add(1), text);
        *end = b'"';
        end.add(1)
    }
}

/// True when a string's bytes can stand in JSON as they are.
#[inline(always)]
fn plain(bytes: &[u8]) -> bool {
    // Short strings are mostly constant names: this loop vanishes from the code where one over words would stay.
    if bytes.len() < 16 {
        return !bytes.iter().fold(false, |special, &c| special | (c < 0x20) | (c == b'"') | (c == b'\\'));
    }
    plain_words(bytes)
}

fn plain_words(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    let special = |w: u64| {
        let (q, s) = (w ^ (ONES * b'"' as u64), w ^ (ONES * b'\\' as u64));
        (w.wrapping_sub(ONES * 0x20) & !w | q.wrapping_sub(ONES) & !q | s.wrapping_sub(ONES) & !s) & (ONES << 7)
    };
    words.iter().all(|w| special(u64::from_le_bytes(*w)) == 0) && rest.iter().all(|&c| c >= 0x20 && c != b'"' && c != b'\\')
}

/// How many bytes a character's byte takes in a JSON string.
fn escaped_len(c: u8) -> usize {
    match c {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// # Safety
/// There is room for each byte's `escaped_len`.
#[cold]
unsafe fn escape(mut to: *mut u8, text: &[u8]) -> *mut u8 {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &c in text {
        let short = match c {
            b'"' | b'\\' => c,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            _ => 0,
        };
        // SAFETY: by the contract of this function.
        to = unsafe {
            match c {
                _ if short != 0 => copy(to, &[b'\\', short]),
                0..0x20 => copy(to, &[b'\\', b'u', b'0', b'0', HEX[usize::from(c >> 4)], HEX[usize::from(c & 15)]]),
                _ => copy(to, &[c]),
            }
        };
    }
    to
}

impl Put for str {
    #[inline(always)]
    fn room(&self) -> usize {
        if plain(self.as_bytes()) { self.len() + 2 } else { self.bytes().map(escaped_len).sum::<usize>() + 2 }
    }

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: room counted the same bytes.
        unsafe {
            if plain(self.as_bytes()) {
                return quote(to, self.as_bytes());
            }
            *to = b'"';
            let end = escape(to.add(1), self.as_bytes());
            *end = b'"';
            end.add(1)
        }
    }
}

impl Put for i64 {
    #[inline(always)]
    fn room(&self) -> usize {
        NUMBER_ROOM
    }

    #[inline]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: there is room for a number.
        unsafe { to.add(num::write_int(&mut *to.cast(), *self)) }
    }
}

impl Put for Decimal {
    #[inline(always)]
    fn room(&self) -> usize {
        NUMBER_ROOM
    }

    #[inline]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: there is room for a number.
        unsafe { to.add(num::write_decimal(&mut *to.cast(), *self)) }
    }
}

impl Put for bool {
    #[inline(always)]
    fn room(&self) -> usize {
        5
    }

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: there is room for five bytes.
        unsafe { if *self { copy(to, b"true") } else { copy(to, b"false") } }
    }
}

impl Put for Value<'_> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.raw.len() + 4
    }

    #[inline]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: there is room for the quotes, or for null.
        unsafe {
            match self.kind {
                Kind::Absent => copy(to, b"null"),
                Kind::String | Kind::Escaped => quote(to, self.raw),
                _ => copy(to, self.raw),
            }
        }
    }
}

impl<T: Put> Put for Option<T> {
    #[inline(always)]
    fn room(&self) -> usize {
        self.as_ref().map_or(4, Put::room)
    }

    #[inline(always)]
    unsafe fn write(&self, to: *mut u8) -> *mut u8 {
        // SAFETY: by the contract of this function.
        unsafe {
            match self {
                Some(v) => v.write(to),
                None => copy(to, b"null"),
            }
        }
    }
}

macro_rules! forward {
    ($($t:ty => |$v:ident| $e:expr;)*) => {$(
        impl Put for $t {
            #[inline(always)]
            fn room(&self) -> usize {
                let $v = self;
                ($e).room()
            }

            #[inline(always)]
            unsafe fn write(&self, to: *mut u8) -> *mut u8 {
                let $v = self;
                // SAFETY: by the contract of this function.
                unsafe { ($e).write(to) }
            }
        }

        impl ToJson for $t {}
    )*};
}

forward! {
    i32 => |v| i64::from(*v);
    u32 => |v| i64::from(*v);
    u16 => |v| i64::from(*v);
    &str => |v| **v;
    String => |v| v.as_str();
    Cow<'_, str> => |v| v.as_ref();
}

impl ToJson for i64 {}
impl ToJson for bool {}
impl ToJson for Decimal {}
impl ToJson for Value<'_> {}
impl<T: ToJson> ToJson for Option<T> {}
