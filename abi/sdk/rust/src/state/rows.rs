//! Scans.

use super::codec::{Codec, Sub};
use super::heap::view;
use super::lane::Lane;
use super::tables::unreadable;
use crate::mem;
use crate::raw::{self, Op};
use crate::reject::Result;
use core::marker::PhantomData;

/// What to look for under one key. [`Scan::rows`] does it.
pub struct Scan<'a, K: ?Sized, V> {
    lane: &'a mut Lane,
    table: u16,
    key: &'a [u8],
    prefix: Vec<u8>,
    after: Option<Vec<u8>>,
    descending: bool,
    limit: u32,
    of: PhantomData<fn(V, &K)>,
}

/// What a scan found, in its order: a copy, so that state can be changed meanwhile.
pub struct Rows<K: ?Sized, V> {
    table: u16,
    bytes: Vec<u8>,
    /// Where sub-key and value of each end.
    ends: Vec<(u32, u32)>,
    of: PhantomData<fn(V, &K)>,
}

impl<'a, K: Sub + ?Sized, V: Codec> Scan<'a, K, V> {
    pub(super) fn new(lane: &'a mut Lane, table: u16, key: &'a [u8]) -> Self {
        Scan { lane, table, key, prefix: Vec::new(), after: None, descending: false, limit: 0, of: PhantomData }
    }

    /// Only sub-keys whose bytes begin with these.
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.prefix = prefix.to_vec();
        self
    }

    /// Only sub-keys behind this one; before it when the scan is reversed.
    pub fn after(self, sub: &K) -> Self {
        sub.with(|s| self.after_raw(s))
    }

    pub(super) fn after_raw(mut self, sub: &[u8]) -> Self {
        self.after = Some(sub.to_vec());
        self
    }

    /// From the last to the first.
    pub fn reverse(mut self) -> Self {
        self.descending = true;
        self
    }

    /// At most so many entries; 0 = all.
    pub fn limit(mut self, entries: u32) -> Self {
        self.limit = entries;
        self
    }

    /// Does it. What a call of the host cannot hold is asked for by further ones.
    pub fn rows(mut self) -> Rows<K, V> {
        let mut rows = Rows { table: self.table, bytes: Vec::new(), ends: Vec::new(), of: PhantomData };
        loop {
            let limit = if self.limit == 0 { 0 } else { self.limit - rows.ends.len() as u32 };
            let flags = if self.descending { raw::DESCENDING } else { 0 };
            let op = Op { table: self.table, limit, flags, ..Op::EMPTY };
            let answer = *self.lane.scan(op, self.key, &self.prefix, self.after.as_deref());
            rows.take(&answer);
            if answer.flags & raw::MORE == 0 || answer.count == 0 {
                return rows;
            }
            let last = rows.raw().last().map_or(b"" as &[u8], |r| r.0);
            self.after = Some(last.to_vec());
        }
    }
}

impl<K: ?Sized, V> Rows<K, V> {
    /// Copies a scan's answer.
    fn take(&mut self, op: &Op) {
        for i in 0..op.count {
            // SAFETY: the answer holds `count` entries of 16 bytes, and what they point to, until the next call.
            unsafe {
                let e = *mem::ptr(op.answer + i * 16).cast::<raw::Entry>();
                self.bytes.extend_from_slice(view(e.name, e.name_len as usize));
                let sub = self.bytes.len() as u32;
                self.bytes.extend_from_slice(view(e.value, e.value_len as usize));
                self.ends.push((sub, self.bytes.len() as u32));
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Sub-keys and values as bytes.
    pub fn raw(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        (0..self.ends.len()).map(|i| {
            let start = if i == 0 { 0 } else { self.ends[i - 1].1 } as usize;
            let (sub, end) = (self.ends[i].0 as usize, self.ends[i].1 as usize);
            (&self.bytes[start..sub], &self.bytes[sub..end])
        })
    }
}

impl<K: Sub + ?Sized, V: Codec> Rows<K, V> {
    /// Sub-keys and values. An item is an error when its bytes are not what the table's type says.
    pub fn iter(&self) -> impl Iterator<Item = Result<(K::Owned, V)>> {
        self.raw().map(|(sub, value)| match (K::parse(sub), V::read(value)) {
            (Some(k), Some(v)) => Ok((k, v)),
            _ => Err(unreadable(self.table)),
        })
    }
}
