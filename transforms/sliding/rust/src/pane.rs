//! Panes as bytes.
//!
//! A pane is an entry: its parts. A part has the aggregates of those records that count from one window on: the start of that
//! window (i64), the length of the aggregates (u32), and these; all little-endian. As a rule there is one part, from the first
//! window that holds the pane on. Records that came when some of the windows were complete already are parts of their own, so
//! that it does not matter whether those were written by then.

use stock::agg::code;
use wasmill::state::{Entry, Sub};
use wasmill::{Result, dead_letter};

const PART: usize = 12;
/// The largest value of state.
const MAX: usize = 512 << 10;

/// A part of a pane.
pub struct Part<'a> {
    /// The start of the first window that it counts for.
    pub from: i64,
    /// Where its aggregates begin.
    pub at: usize,
    /// Its aggregates.
    pub group: &'a [u8],
}

/// The 64 bits at a place; 0 behind the end.
pub fn word(bytes: &[u8], at: usize) -> i64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| i64::from_le_bytes(*b))
}

/// The parts of a pane.
pub fn parts(pane: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let len = pane.get(at + 8..)?.first_chunk().map(|b| u32::from_le_bytes(*b) as usize)?;
        let part = Part { from: word(pane, at), at: at + PART, group: pane.get(at + PART..at + PART + len)? };
        at += PART + len;
        Some(part)
    })
}

/// The newest part.
#[inline]
pub fn last(pane: &[u8]) -> Option<Part<'_>> {
    parts(pane).last()
}

/// Adds a part to a pane of `len` bytes, 0 when it is new.
///
/// # Errors
/// The pane would be too large.
pub fn grow(pane: &mut Entry<'_>, len: usize, from: i64, group: &[u8]) -> Result {
    let at = len + PART;
    check(at + group.len())?;
    let bytes = pane.resize(at + group.len());
    bytes[at - PART..at - 4].copy_from_slice(&from.to_le_bytes());
    bytes[at - 4..at].copy_from_slice(&(group.len() as u32).to_le_bytes());
    bytes[at..].copy_from_slice(group);
    Ok(())
}

/// Gives the newest part, which begins at `at`, other aggregates.
///
/// # Errors
/// The pane would be too large.
pub fn replace(pane: &mut Entry<'_>, at: usize, group: &[u8]) -> Result {
    check(at + group.len())?;
    let bytes = pane.resize(at + group.len());
    bytes[at - 4..at].copy_from_slice(&(group.len() as u32).to_le_bytes());
    bytes[at..].copy_from_slice(group);
    Ok(())
}

fn check(len: usize) -> Result {
    if len > MAX { Err(dead_letter(code::RANGE, "a pane of this key has more than 512 KiB")) } else { Ok(()) }
}

/// The start that a sub-key stands for.
pub fn start(sub: &[u8]) -> i64 {
    <i64 as Sub>::parse(sub).unwrap_or(0)
}
