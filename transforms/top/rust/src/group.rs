//! The records of one key, in their order, as bytes.
//!
//! Time when the group is over (i64), number of rows (u32), where the last row begins (u32); then the rows: length of the order
//! (u32), length of the value (u32), event time (i64), order, value; all little-endian.

/// Bytes before the rows.
const HEAD: usize = 16;
/// Bytes before a row's order.
const ROW_HEAD: usize = 16;
/// The largest group: that is the largest value of state.
pub const MAX: usize = 512 << 10;

/// Which of equal records comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    First,
    Last,
    /// The one that came first; and what equals the last one is kept, too.
    All,
}

/// One row.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    start: usize,
    end: usize,
    pub time: i64,
    pub order: &'a [u8],
    pub value: &'a [u8],
}

fn u32_at(b: &[u8], at: usize) -> usize {
    b.get(at..at + 4).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_le_bytes(*b) as usize)
}

fn i64_at(b: &[u8], at: usize) -> i64 {
    b.get(at..at + 8).and_then(|b| b.first_chunk()).map_or(0, |b| i64::from_le_bytes(*b))
}

/// When the group is over.
pub fn close(group: &[u8]) -> i64 {
    i64_at(group, 0)
}

/// How many rows there are.
pub fn len(group: &[u8]) -> usize {
    u32_at(group, 8)
}

fn row(b: &[u8], start: usize) -> Option<Row<'_>> {
    let order = start + ROW_HEAD;
    let value = order + u32_at(b, start);
    let end = value + u32_at(b, start + 4);
    Some(Row { start, end, time: i64_at(b, start + 8), order: b.get(order..value)?, value: b.get(value..end)? })
}

/// The rows, the first one first.
pub fn rows(group: &[u8]) -> impl Iterator<Item = Row<'_>> {
    let mut at = HEAD;
    (0..len(group)).map_while(move |_| {
        let r = row(group, at)?;
        at = r.end;
        Some(r)
    })
}

/// Whether a record of this order has a place among the first n.
#[inline]
pub fn has_place(group: &[u8], n: usize, ties: Ties, order: &[u8]) -> bool {
    if len(group) < n {
        return true;
    }
    let Some(last) = row(group, u32_at(group, 12)) else {
        return true;
    };
    match order.cmp(last.order) {
        std::cmp::Ordering::Less => true,
        std::cmp::Ordering::Equal => ties != Ties::First,
        std::cmp::Ordering::Greater => false,
    }
}

/// Puts a row in its place, and takes away what has none any more; returns the place, counted from 0.
pub fn insert(group: &mut Vec<u8>, n: usize, ties: Ties, close: i64, time: i64, order: &[u8], value: &[u8]) -> usize {
    if group.len() < HEAD {
        group.clear();
        group.resize(HEAD, 0);
        group[..8].copy_from_slice(&i64::MIN.to_le_bytes());
    }
    let before = |r: &Row<'_>| if ties == Ties::Last { r.order < order } else { r.order <= order };
    let (mut place, mut at) = (0, HEAD);
    for r in rows(group).take_while(before) {
        (place, at) = (place + 1, r.end);
    }
    let count = len(group) + 1;
    let mut bytes = Vec::with_capacity(ROW_HEAD + order.len() + value.len());
    bytes.extend_from_slice(&(order.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(value.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&time.to_le_bytes());
    bytes.extend_from_slice(order);
    bytes.extend_from_slice(value);
    group.splice(at..at, bytes);
    group[8..12].copy_from_slice(&(count as u32).to_le_bytes());
    let (kept, last, end) = cut(group, n, ties);
    group.truncate(end);
    let close = close.max(self::close(group));
    group[..8].copy_from_slice(&close.to_le_bytes());
    group[8..12].copy_from_slice(&(kept as u32).to_le_bytes());
    group[12..16].copy_from_slice(&(last as u32).to_le_bytes());
    place
}

/// How many rows are kept, where the last of them begins, and where it ends.
fn cut(group: &[u8], n: usize, ties: Ties) -> (usize, usize, usize) {
    let (mut kept, mut last, mut end) = (0, HEAD, HEAD);
    let mut least: &[u8] = b"";
    for r in rows(group) {
        if kept >= n && !(ties == Ties::All && r.order == least) {
            break;
        }
        (kept, last, end, least) = (kept + 1, r.start, r.end, r.order);
    }
    (kept, last, end)
}
