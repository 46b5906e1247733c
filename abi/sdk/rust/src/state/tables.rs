//! The tables of a transform, as it sees them.

use super::codec::{Codec, Sub};
use super::lane::Lane;
use super::rows::Scan;
use crate::manifest;
use crate::out::Out;
use crate::record::Batch;
use crate::reject::{BAD_FIELD, Reject, Result, fail};
use core::marker::PhantomData;

/// What the records of a frame will read: see [`Transform::prefetch`](crate::Transform::prefetch).
pub struct Want<'a> {
    pub(crate) lane: &'a mut Lane,
    pub(crate) batch: &'a Batch,
}

impl Want<'_> {
    /// What is known of the batch.
    #[inline(always)]
    pub fn batch(&self) -> &Batch {
        self.batch
    }

    #[inline]
    fn ticket(&mut self, table: u16, key: &[u8], sub: &[u8]) -> Ticket {
        Ticket { slot: self.lane.want(table, key, sub), spills: self.lane.spills }
    }

    /// Leaves it to the SDK: it learns which tables are read by the record's key alone, and reads those for all records of a
    /// frame at once.
    #[inline(always)]
    pub fn learn(&mut self) {
        self.lane.told = false;
    }
}

/// What [`Map::want`] and [`Value::want`] give for an entry: with it, `claim` finds the entry again without looking for it.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    slot: u32,
    spills: u32,
}

/// One entry of state, to be worked on where it lies. It belongs to the record at hand.
pub struct Entry<'a> {
    lane: &'a mut Lane,
    slot: u32,
}

impl Entry<'_> {
    /// The value's bytes, `None` when there is none.
    #[inline]
    pub fn get(&self) -> Option<&[u8]> {
        self.lane.cache.slots[self.slot as usize].value()
    }

    /// Makes these bytes the value.
    pub fn set(&mut self, value: &[u8]) {
        self.resize(value.len()).copy_from_slice(value);
    }

    /// Makes the value `len` bytes long and gives it out to be changed: the first bytes are those of the old value, any more
    /// hold anything.
    #[inline]
    pub fn resize(&mut self, len: usize) -> &mut [u8] {
        self.lane.changed(self.slot);
        self.lane.cache.resize(self.slot, len)
    }

    /// When the value ends, in microseconds since 1970; 0 = never. An expiry is set anew with each batch that changes the value.
    pub fn expires(&mut self, at: i64) {
        self.lane.changed(self.slot);
        self.lane.cache.slots[self.slot as usize].expiry = at;
    }

    /// Removes it.
    pub fn delete(&mut self) {
        self.lane.remove(self.slot);
    }
}

/// The entry, read if it was not.
#[inline]
fn entry<'a>(out: &'a mut Out, table: u16, key: &[u8], sub: &[u8]) -> Entry<'a> {
    let slot = out.state.read(table, key, sub);
    Entry { lane: &mut out.state, slot }
}

#[inline]
fn claim<'a>(out: &'a mut Out, t: Ticket, table: u16, key: &[u8], sub: &[u8]) -> Entry<'a> {
    let slot = out.state.redeem(t.slot, t.spills, table, key, sub);
    Entry { lane: &mut out.state, slot }
}

/// The entry to be written, whatever was there.
#[inline]
fn blind<'a>(out: &'a mut Out, table: u16, key: &[u8], sub: &[u8]) -> Entry<'a> {
    let slot = out.state.touch(table, key, sub);
    Entry { lane: &mut out.state, slot }
}

fn set<V: Codec>(out: &mut Out, table: u16, key: &[u8], sub: &[u8], value: &V, expires: i64) {
    let mut bytes = core::mem::take(&mut out.state.scratch);
    bytes.clear();
    value.write(&mut bytes);
    let mut e = blind(out, table, key, sub);
    e.set(&bytes);
    e.expires(expires);
    out.state.scratch = bytes;
}

fn get<V: Codec>(out: &mut Out, table: u16, key: &[u8], sub: &[u8]) -> Result<Option<V>> {
    let e = entry(out, table, key, sub);
    let Some(bytes) = e.get() else { return Ok(None) };
    match V::read(bytes) {
        Some(v) => Ok(Some(v)),
        None => Err(unreadable(table)),
    }
}

#[cold]
pub(super) fn unreadable(table: u16) -> Reject {
    fail(BAD_FIELD, format!("table {table} of the manifest holds something that this module cannot read"))
}

/// One value for each key.
#[derive(Debug)]
pub struct Value<T> {
    table: u16,
    of: PhantomData<fn(T)>,
}

impl<T: Codec> Value<T> {
    /// The table of this name. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, name: &str) -> Self {
        Value { table: manifest::table(manifest, name), of: PhantomData }
    }

    /// The key's value, `None` when there is none.
    ///
    /// # Errors
    /// The stored bytes are no `T`.
    #[inline]
    pub fn get(&self, out: &mut Out, key: &[u8]) -> Result<Option<T>> {
        get(out, self.table, key, b"")
    }

    /// Sets the key's value.
    #[inline]
    pub fn set(&self, out: &mut Out, key: &[u8], value: &T) {
        set(out, self.table, key, b"", value, 0);
    }

    /// Sets the key's value, which is gone when the batch time reaches `expires` (microseconds since 1970).
    pub fn set_until(&self, out: &mut Out, key: &[u8], value: &T, expires: i64) {
        set(out, self.table, key, b"", value, expires);
    }

    /// Makes a value of what is there.
    ///
    /// # Errors
    /// The stored bytes are no `T`.
    pub fn update(&self, out: &mut Out, key: &[u8], change: impl FnOnce(Option<T>) -> T) -> Result {
        let value = change(self.get(out, key)?);
        self.set(out, key, &value);
        Ok(())
    }

    /// Removes the key's value.
    pub fn delete(&self, out: &mut Out, key: &[u8]) {
        blind(out, self.table, key, b"").delete();
    }

    /// The entry itself.
    #[inline]
    pub fn entry<'a>(&self, out: &'a mut Out, key: &[u8]) -> Entry<'a> {
        entry(out, self.table, key, b"")
    }

    /// The entry that this ticket stands for, which was given for the same key in the same frame.
    #[inline]
    pub fn claim<'a>(&self, out: &'a mut Out, ticket: Ticket, key: &[u8]) -> Entry<'a> {
        claim(out, ticket, self.table, key, b"")
    }

    /// Says that the frame will read it.
    #[inline]
    pub fn want(&self, want: &mut Want<'_>, key: &[u8]) -> Ticket {
        want.ticket(self.table, key, b"")
    }
}

/// A number for each key: 64 bits, 0 at first. The manifest should give the table the type `i64`.
#[derive(Debug)]
pub struct Counter(Value<i64>);

impl Counter {
    /// The table of this name. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, name: &str) -> Self {
        Counter(Value::of(manifest, name))
    }

    /// The key's number.
    ///
    /// # Errors
    /// The stored bytes are no number.
    #[inline]
    pub fn get(&self, out: &mut Out, key: &[u8]) -> Result<i64> {
        Ok(self.0.get(out, key)?.unwrap_or(0))
    }

    /// Adds to the key's number and returns it.
    ///
    /// # Errors
    /// The stored bytes are no number, or the sum does not fit; nothing is changed.
    #[inline]
    pub fn add(&self, out: &mut Out, key: &[u8], n: i64) -> Result<i64> {
        let mut e = self.0.entry(out, key);
        let old = match e.get() {
            None => 0,
            Some(bytes) => <i64 as Codec>::read(bytes).ok_or_else(|| unreadable(self.0.table))?,
        };
        let Some(sum) = old.checked_add(n) else {
            return Err(fail(BAD_FIELD, "a counter does not fit 64 bits"));
        };
        e.resize(8).copy_from_slice(&sum.to_le_bytes());
        Ok(sum)
    }

    /// Sets the key's number.
    pub fn set(&self, out: &mut Out, key: &[u8], n: i64) {
        self.0.set(out, key, &n);
    }

    /// Removes the key's number: it is 0 again, and takes no room.
    pub fn delete(&self, out: &mut Out, key: &[u8]) {
        self.0.delete(out, key);
    }

    /// Says that the frame will read it.
    #[inline]
    pub fn want(&self, want: &mut Want<'_>, key: &[u8]) -> Ticket {
        self.0.want(want, key)
    }
}

/// Values by sub-key, under each key. `K` is `str`, `[u8]`, `i64` or `u64`.
#[derive(Debug)]
pub struct Map<K: ?Sized, V> {
    table: u16,
    of: PhantomData<fn(V, &K)>,
}

impl<K: Sub + ?Sized, V: Codec> Map<K, V> {
    /// The table of this name. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, name: &str) -> Self {
        Map { table: manifest::table(manifest, name), of: PhantomData }
    }

    /// The value under key and sub-key, `None` when there is none.
    ///
    /// # Errors
    /// The stored bytes are no `V`.
    #[inline]
    pub fn get(&self, out: &mut Out, key: &[u8], sub: &K) -> Result<Option<V>> {
        sub.with(|s| get(out, self.table, key, s))
    }

    /// True when there is a value.
    #[inline]
    pub fn contains(&self, out: &mut Out, key: &[u8], sub: &K) -> bool {
        sub.with(|s| entry(out, self.table, key, s).get().is_some())
    }

    /// Sets the value under key and sub-key.
    #[inline]
    pub fn set(&self, out: &mut Out, key: &[u8], sub: &K, value: &V) {
        sub.with(|s| set(out, self.table, key, s, value, 0));
    }

    /// Sets the value under key and sub-key, which is gone when the batch time reaches `expires` (microseconds since 1970).
    pub fn set_until(&self, out: &mut Out, key: &[u8], sub: &K, value: &V, expires: i64) {
        sub.with(|s| set(out, self.table, key, s, value, expires));
    }

    /// Makes a value of what is there.
    ///
    /// # Errors
    /// The stored bytes are no `V`.
    pub fn update(&self, out: &mut Out, key: &[u8], sub: &K, change: impl FnOnce(Option<V>) -> V) -> Result {
        let value = change(self.get(out, key, sub)?);
        self.set(out, key, sub, &value);
        Ok(())
    }

    /// Removes the value under key and sub-key.
    pub fn delete(&self, out: &mut Out, key: &[u8], sub: &K) {
        sub.with(|s| blind(out, self.table, key, s).delete());
    }

    /// Removes all that is under the key.
    pub fn clear(&self, out: &mut Out, key: &[u8]) {
        out.state.remove_prefix(self.table, key, b"", None);
    }

    /// Removes what is under the key and whose sub-key's bytes begin with these.
    pub fn clear_prefix(&self, out: &mut Out, key: &[u8], prefix: &[u8]) {
        out.state.remove_prefix(self.table, key, prefix, None);
    }

    /// Removes what is under the key from sub-key `from` up to, but without, `before`.
    pub fn clear_range(&self, out: &mut Out, key: &[u8], from: &K, before: &K) {
        from.with(|f| before.with(|b| out.state.remove_prefix(self.table, key, f, Some(b))));
    }

    /// Looks through what is under the key, in the order of the sub-keys.
    pub fn scan<'a>(&self, out: &'a mut Out, key: &'a [u8]) -> Scan<'a, K, V> {
        Scan::new(&mut out.state, self.table, key)
    }

    /// The entry itself.
    #[inline]
    pub fn entry<'a>(&self, out: &'a mut Out, key: &[u8], sub: &K) -> Entry<'a> {
        sub.with(|s| entry(out, self.table, key, s))
    }

    /// The entry that this ticket stands for, which was given for the same key and sub-key in the same frame.
    #[inline]
    pub fn claim<'a>(&self, out: &'a mut Out, ticket: Ticket, key: &[u8], sub: &K) -> Entry<'a> {
        sub.with(|s| claim(out, ticket, self.table, key, s))
    }

    /// Says that the frame will read it.
    #[inline]
    pub fn want(&self, want: &mut Want<'_>, key: &[u8], sub: &K) -> Ticket {
        sub.with(|s| want.ticket(self.table, key, s))
    }
}

/// Values in the order in which they were appended, under each key.
///
/// An element lies under its number, eight bytes big-endian, and the length, in decimal, under the empty sub-key.
#[derive(Debug)]
pub struct List<T> {
    items: Map<u64, T>,
}

impl<T: Codec> List<T> {
    /// The table of this name. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, name: &str) -> Self {
        List { items: Map::of(manifest, name) }
    }

    /// How many elements there are.
    ///
    /// # Errors
    /// The stored bytes are no length.
    pub fn len(&self, out: &mut Out, key: &[u8]) -> Result<u64> {
        let e = entry(out, self.items.table, key, b"");
        let Some(bytes) = e.get() else { return Ok(0) };
        let length = crate::num::parse_int(bytes).and_then(|n| u64::try_from(n).ok());
        length.ok_or_else(|| unreadable(self.items.table))
    }

    /// True when there are none.
    ///
    /// # Errors
    /// As for `len`.
    pub fn is_empty(&self, out: &mut Out, key: &[u8]) -> Result<bool> {
        Ok(self.len(out, key)? == 0)
    }

    /// Appends an element.
    ///
    /// # Errors
    /// As for `len`.
    pub fn push(&self, out: &mut Out, key: &[u8], value: &T) -> Result {
        let n = self.len(out, key)?;
        self.items.set(out, key, &n, value);
        let mut digits = [0; crate::num::NUMBER_ROOM];
        let len = crate::num::write_int(&mut digits, n as i64 + 1);
        entry(out, self.items.table, key, b"").set(&digits[..len]);
        Ok(())
    }

    /// The element of this number, counted from 0; `None` behind the last.
    ///
    /// # Errors
    /// The stored bytes are no `T`.
    pub fn get(&self, out: &mut Out, key: &[u8], n: u64) -> Result<Option<T>> {
        self.items.get(out, key, &n)
    }

    /// All elements.
    ///
    /// # Errors
    /// The stored bytes of one are no `T`.
    pub fn all(&self, out: &mut Out, key: &[u8]) -> Result<Vec<T>> {
        let rows = Scan::<u64, T>::new(&mut out.state, self.items.table, key).after_raw(b"").rows();
        rows.iter().map(|r| Ok(r?.1)).collect()
    }

    /// Removes all elements.
    pub fn clear(&self, out: &mut Out, key: &[u8]) {
        self.items.clear(out, key);
    }

    /// Says that the frame will append, or ask for the length.
    #[inline]
    pub fn want(&self, want: &mut Want<'_>, key: &[u8]) {
        want.lane.want(self.items.table, key, b"");
    }
}
