//! The records of one side that are kept, in pages. Each has a timer of its own, so that it can be removed without being read.
//!
//! A page lies under key, bucket of time (8 bytes, order kept) and number of the page (4 bytes, big-endian). Page 0 begins with
//! the number of the bucket's last page; then, as in all others, the rows follow in order of arrival: length of the value
//! (u32), flags (u8), event time (i64), value; little-endian.

use wasmill::Out;
use wasmill::state::{Map, Want};

/// A page takes no more rows behind this many bytes.
const PAGE: usize = 32 << 10;
/// Bytes before a row's value.
pub const ROW_HEAD: usize = 13;
/// Bytes before the rows of page 0.
const PAGE_HEAD: usize = 4;
/// Stands for no event time.
pub const NO_TIME: i64 = i64::MIN;

/// One side's table.
pub struct Rows(pub Map<[u8], Vec<u8>>);

/// A page that was copied out, so that rows can be written while it is looked through.
#[derive(Default)]
pub struct Page {
    bytes: Vec<u8>,
    at: usize,
    dirty: bool,
}

/// Where a row of a page lies.
#[derive(Clone, Copy)]
pub struct Row {
    start: usize,
    end: usize,
    pub time: i64,
    /// Something has matched it.
    pub matched: bool,
}

/// The sub-key of a page. Its bytes have the order of the numbers.
pub fn sub(bucket: i64, page: u32) -> [u8; 12] {
    let mut s = [0; 12];
    s[..8].copy_from_slice(&((bucket as u64) ^ 1 << 63).to_be_bytes());
    s[8..].copy_from_slice(&page.to_be_bytes());
    s
}

/// Bucket and page of a sub-key.
pub fn place_of(sub: &[u8]) -> Option<(i64, u32)> {
    let (bucket, page) = sub.split_first_chunk::<8>()?;
    Some(((u64::from_be_bytes(*bucket) ^ 1 << 63) as i64, u32::from_be_bytes(page.try_into().ok()?)))
}

impl Rows {
    /// Says that a page will be read.
    pub fn want(&self, want: &mut Want<'_>, key: &[u8], bucket: i64, page: u32) {
        self.0.want(want, key, &sub(bucket, page));
    }

    /// Appends a row; returns the page's number when it is its first.
    pub fn push(&self, out: &mut Out, key: &[u8], bucket: i64, time: i64, matched: bool, value: &[u8]) -> Option<u32> {
        let size = ROW_HEAD + value.len();
        let first = self.0.entry(out, key, &sub(bucket, 0));
        let (new, last, len) = match first.get() {
            Some(page) => (false, last_page(page), page.len()),
            None => (true, 0, 0),
        };
        let mut page = last;
        let mut len = if last == 0 { len.max(PAGE_HEAD) } else { self.0.entry(out, key, &sub(bucket, last)).get().map_or(0, <[u8]>::len) };
        if len > PAGE_HEAD && len + size > PAGE {
            (page, len) = (last + 1, 0);
            let mut first = self.0.entry(out, key, &sub(bucket, 0));
            let length = first.get().map_or(PAGE_HEAD, <[u8]>::len);
            first.resize(length)[..PAGE_HEAD].copy_from_slice(&page.to_le_bytes());
        }
        let mut entry = self.0.entry(out, key, &sub(bucket, page));
        let bytes = entry.resize(len + size);
        if new {
            bytes[..PAGE_HEAD].fill(0);
        }
        let row = &mut bytes[len..];
        row[..4].copy_from_slice(&(value.len() as u32).to_le_bytes());
        row[4] = u8::from(matched);
        row[5..ROW_HEAD].copy_from_slice(&time.to_le_bytes());
        row[ROW_HEAD..].copy_from_slice(value);
        (new || page > last).then_some(page)
    }

    /// Copies a page out; `None` when there is none. Page 0 says how many there are.
    pub fn load(&self, out: &mut Out, key: &[u8], bucket: i64, number: u32, page: &mut Page) -> Option<u32> {
        let entry = self.0.entry(out, key, &sub(bucket, number));
        let bytes = entry.get()?;
        page.bytes.clear();
        page.bytes.extend_from_slice(bytes);
        (page.at, page.dirty) = (if number == 0 { PAGE_HEAD } else { 0 }, false);
        Some(if number == 0 { last_page(bytes) } else { 0 })
    }

    /// Writes a page back when rows of it were marked; true if so.
    pub fn store(&self, out: &mut Out, key: &[u8], bucket: i64, number: u32, page: &Page) -> bool {
        if page.dirty {
            self.0.entry(out, key, &sub(bucket, number)).set(&page.bytes);
        }
        page.dirty
    }

    /// Removes a page.
    pub fn remove(&self, out: &mut Out, key: &[u8], bucket: i64, page: u32) {
        self.0.delete(out, key, &sub(bucket, page));
    }
}

fn last_page(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

impl Page {
    /// The next row.
    pub fn next(&mut self) -> Option<Row> {
        let head: &[u8; ROW_HEAD] = self.bytes.get(self.at..)?.first_chunk()?;
        let [a, b, c, d, flags, t @ ..] = *head;
        let start = self.at + ROW_HEAD;
        let end = start + u32::from_le_bytes([a, b, c, d]) as usize;
        self.at = end;
        Some(Row { start, end, time: i64::from_le_bytes(t), matched: flags & 1 != 0 }).filter(|r| r.end <= self.bytes.len())
    }

    /// A row's value.
    pub fn value(&self, row: Row) -> &[u8] {
        &self.bytes[row.start..row.end]
    }

    /// Notes that something has matched a row.
    pub fn mark(&mut self, row: Row) {
        self.bytes[row.start - ROW_HEAD + 4] |= 1;
        self.dirty = true;
    }
}
