//! Panes as bytes.
//!
//! A pane is an entry: the number of the batch that made it plus one (u64), then its parts. A part has the aggregates of those
//! records that count from one window on: the start of that window (i64), the length of the aggregates (u32), and these; all
//! little-endian. As a rule there is one part, from the first window that holds the pane on. Records that came when some of the
//! windows were complete already are parts of their own, so that it does not matter whether those were written by then.

use stock::agg::code;
use wasmill::state::{Entry, Sub};
use wasmill::{Result, dead_letter};

const STAMP: usize = 8;
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

fn word(bytes: &[u8], at: usize) -> i64 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| i64::from_le_bytes(*b))
}

/// The number of the batch that made a pane, plus one.
pub fn stamp(pane: &[u8]) -> u64 {
    word(pane, 0) as u64
}

/// The parts of a pane.
pub fn parts(pane: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = STAMP;
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
pub fn grow(pane: &mut Entry<'_>, len: usize, stamp: u64, from: i64, group: &[u8]) -> Result {
    let at = len.max(STAMP) + PART;
    check(at + group.len())?;
    let bytes = pane.resize(at + group.len());
    if len == 0 {
        bytes[..STAMP].copy_from_slice(&stamp.to_le_bytes());
    }
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

/// The sub-key of a start, for timers: as that of the entries.
pub fn sub(start: i64) -> [u8; 8] {
    start.with(|s| s.first_chunk().copied()).unwrap_or_default()
}

/// The start that a sub-key stands for.
pub fn start(sub: &[u8]) -> i64 {
    <i64 as Sub>::parse(sub).unwrap_or(0)
}

/// What is known of all panes of a key: the number of the batch that made the first plus one, the newest one, and the newest
/// one with large sums.
pub struct Head {
    /// The batch, plus one.
    pub stamp: u64,
    /// Its start; `i64::MIN` when there is none.
    pub newest: i64,
    /// The start of the newest pane with large sums; `i64::MIN` when there is none.
    pub large: i64,
}

impl Head {
    /// Reads an entry.
    pub fn read(entry: Option<&[u8]>) -> Head {
        match entry {
            Some(b) if b.len() >= 24 => Head { stamp: stamp(b), newest: word(b, 8), large: word(b, 16) },
            _ => Head { stamp: 0, newest: i64::MIN, large: i64::MIN },
        }
    }

    /// The entry's bytes.
    pub fn bytes(&self) -> [u8; 24] {
        let mut b = [0; 24];
        b[..8].copy_from_slice(&self.stamp.to_le_bytes());
        b[8..16].copy_from_slice(&self.newest.to_le_bytes());
        b[16..].copy_from_slice(&self.large.to_le_bytes());
        b
    }
}
