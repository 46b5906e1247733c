//! State for tests: a store in memory, and jobs of one lane that run batch after batch over it.

use super::{Host, Input, Output, Row};
use crate::guest::Transform;
use crate::mem;
use crate::raw::{self, Op};
use crate::reject::Result as Made;
use crate::value::Value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A timer that waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// 0 event time, 1 processing time.
    pub domain: u8,
    /// Microseconds since 1970.
    pub at: i64,
    /// Its key.
    pub key: Vec<u8>,
    /// What it was set with.
    pub sub: Vec<u8>,
}

/// Where an entry lies: the table's number, key and sub-key.
type Place = (u16, Vec<u8>, Vec<u8>);

/// Entries, each with its expiry; timers; and how often the host was called.
#[derive(Clone, Debug, Default)]
struct World {
    entries: BTreeMap<Place, (Vec<u8>, i64)>,
    timers: BTreeSet<Timer>,
    /// Timers that this batch set: they are due in a later one.
    fresh: BTreeSet<Timer>,
    /// A buffer for answers is too small the first time, and scans get at most so many entries; 0 = as many as fit.
    scan_limit: usize,
    /// Most timers of a batch.
    timer_limit: Option<usize>,
    reads: usize,
    writes: usize,
    keyed: bool,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
}

/// A keyed stage of one lane with its state, to be run batch after batch. Each batch has a new guest, as in a job.
pub struct Keyed<T> {
    host: Host,
    config: String,
    make: fn(Value<'_>) -> Made<T>,
    world: World,
    tables: Vec<String>,
    watermark: i64,
    batch: u64,
}

impl<T: Transform> Keyed<T> {
    /// A stage without state yet. `make` and `config` (an object as JSON) are what the module would get.
    ///
    /// # Panics
    /// The manifest's tables have no names.
    pub fn new(manifest: &str, config: &str, make: fn(Value<'_>) -> Made<T>) -> Keyed<T> {
        let tables = Value::parse(manifest.as_bytes()).get("tables");
        let name = |t: Value<'_>| t.get("name").str().ok().flatten().expect("a table's name").into_owned();
        Keyed {
            host: Host::new(manifest),
            config: config.into(),
            make,
            world: World { keyed: true, ..World::default() },
            tables: tables.elements().map(name).collect(),
            watermark: 0,
            batch: 0,
        }
    }

    /// Goes on with another configuration, as a job does that was changed.
    pub fn configure(&mut self, config: &str) {
        self.config = config.into();
    }

    /// How the host behaves.
    pub fn host(&mut self) -> &mut Host {
        &mut self.host
    }

    /// Lets a call of a scan answer with so many entries at most, so that transforms meet answers in parts.
    pub fn scan_limit(&mut self, entries: usize) {
        self.world.scan_limit = entries;
    }

    /// Lets so many timers fire in a batch at most; the others wait for the next, although they are due.
    pub fn timer_limit(&mut self, timers: usize) {
        self.world.timer_limit = Some(timers);
    }

    /// Runs a batch: the records, the timers that are due at `watermark` and `time` (both in microseconds), and the lane's end.
    /// The late watermark is that of the batch before. A batch that fails changes nothing.
    ///
    /// # Errors
    /// As for [`Host::run`].
    pub fn run(&mut self, time: i64, watermark: i64, inputs: &[Input]) -> Result<Vec<Output>, String> {
        let watermark = watermark.max(self.watermark);
        let b = &mut self.host.batch;
        (b.id, b.time, b.late_watermark, b.watermark) = (self.batch, time, self.watermark, watermark);
        b.seed = [self.batch.wrapping_mul(0x9e37_79b9_7f4a_7c15), 7];
        let mut world = self.world.clone();
        (world.reads, world.writes) = (0, 0);
        world.entries.retain(|_, (_, expiry)| *expiry == 0 || *expiry > time);
        WORLD.set(world);
        let make = |_: Value<'_>| (self.make)(Value::parse(self.config.as_bytes()));
        let done = self.host.lane(make, inputs, || due(watermark, time));
        let mut world = WORLD.take();
        if done.is_ok() {
            let fresh = std::mem::take(&mut world.fresh);
            world.timers.extend(fresh);
            (self.world, self.watermark, self.batch) = (world, watermark, self.batch + 1);
        }
        done
    }

    /// The value of an entry.
    ///
    /// # Panics
    /// There is no such table.
    pub fn get(&self, table: &str, key: &[u8], sub: &[u8]) -> Option<&[u8]> {
        let entry = self.world.entries.get(&(self.table(table), key.to_vec(), sub.to_vec()));
        entry.map(|e| e.0.as_slice())
    }

    /// The entries of a table, as (key, sub-key, value), in order.
    ///
    /// # Panics
    /// There is no such table.
    pub fn entries(&self, table: &str) -> Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> {
        let n = self.table(table);
        let of = self.world.entries.iter().filter(|(at, _)| at.0 == n);
        of.map(|((_, key, sub), (value, _))| (key.clone(), sub.clone(), value.clone())).collect()
    }

    /// The timers that wait, in order.
    pub fn timers(&self) -> Vec<Timer> {
        self.world.timers.iter().cloned().collect()
    }

    /// How many calls of `state_read` and `state_write` the last batch took.
    pub fn calls(&self) -> (usize, usize) {
        (self.world.reads, self.world.writes)
    }

    fn table(&self, name: &str) -> u16 {
        let at = self.tables.iter().position(|t| t == name);
        at.unwrap_or_else(|| panic!("the manifest has no table {name}")) as u16
    }
}

/// Takes the timers that are due. A watermark of 0 is none yet.
fn due(watermark: i64, time: i64) -> Vec<Timer> {
    WORLD.with_borrow_mut(|w| {
        let is = |t: &Timer| if t.domain == 0 { watermark != 0 && t.at <= watermark } else { t.at <= time };
        let (mut due, mut rest): (Vec<_>, BTreeSet<_>) = (Vec::new(), BTreeSet::new());
        for timer in std::mem::take(&mut w.timers) {
            if is(&timer) && w.timer_limit.is_none_or(|most| due.len() < most) {
                due.push(timer);
            } else {
                rest.insert(timer);
            }
        }
        w.timers = rest;
        due
    })
}

/// Timers as they stand in a frame.
pub(super) fn records(timers: &[Timer]) -> Vec<Row<'_>> {
    let row = |t: &Timer| Row {
        input: Cow::Owned(Input { key: Some(t.key.clone()), value: Some(t.sub.clone()), event_time: Some(t.at), ..Input::default() }),
        kind: 1 + t.domain,
        index: raw::NO_INDEX,
    };
    timers.iter().map(row).collect()
}

fn bytes<'a>(at: u32, len: usize) -> &'a [u8] {
    // SAFETY: what an operation points at lies in the guest's memory during the call.
    unsafe { crate::state::view(at, len) }
}

fn op<'a>(ops: *const u8, i: u32) -> &'a mut Op {
    // SAFETY: `count` operations lie at `ops`, 8-aligned.
    unsafe { &mut *ops.cast_mut().cast::<Op>().add(i as usize) }
}

fn entry(o: &Op) -> Place {
    assert!(o.key_len + o.sub_len <= 4096, "a key and its sub-key have more than 4 KiB");
    (o.table, bytes(o.key, o.key_len as usize).to_vec(), bytes(o.sub, o.sub_len as usize).to_vec())
}

pub(crate) fn write(ops: *const u8, count: u32) {
    WORLD.with_borrow_mut(|w| {
        assert!(w.keyed, "the stage is not keyed and has no state");
        assert!(count as usize <= raw::MAX_OPS, "too many operations");
        w.writes += 1;
        for i in 0..count {
            w.write(op(ops, i));
        }
    });
}

impl World {
    fn write(&mut self, o: &Op) {
        let at = entry(o);
        let timer = || Timer { domain: o.domain, at: o.at - o.at.rem_euclid(1000), key: at.1.clone(), sub: at.2.clone() };
        match o.op {
            raw::PUT => {
                let value = bytes(o.value, usize::try_from(o.value_len).expect("a put without a value"));
                assert!(value.len() <= 512 << 10, "a value has more than 512 KiB");
                self.entries.insert(at, (value.to_vec(), o.at));
            }
            raw::DELETE => {
                self.entries.remove(&at);
            }
            raw::DELETE_PREFIX => {
                let before = (o.value_len >= 0).then(|| bytes(o.value, o.value_len as usize));
                self.entries.retain(|(table, key, sub), _| {
                    let in_range = match before {
                        Some(b) => *sub >= at.2 && sub.as_slice() < b,
                        None => sub.starts_with(&at.2),
                    };
                    !(*table == at.0 && *key == at.1 && in_range)
                });
            }
            raw::TIMER_SET => {
                let t = timer();
                // A timer that waits already stays due.
                if !self.timers.contains(&t) {
                    self.fresh.insert(t);
                }
            }
            raw::TIMER_DELETE => {
                let t = timer();
                self.fresh.remove(&t);
                self.timers.remove(&t);
            }
            other => panic!("operation {other} in state_write"),
        }
    }

    /// What an operation finds: for a get no sub-key and the value, for a scan the entries.
    fn find(&self, o: &Op) -> Vec<(&[u8], &[u8])> {
        let at = entry(o);
        if o.op == raw::GET {
            return self.entries.get(&at).iter().map(|e| (b"" as &[u8], e.0.as_slice())).collect();
        }
        assert_eq!(o.op, raw::SCAN, "an operation in state_read");
        let after = (o.value_len >= 0).then(|| bytes(o.value, o.value_len as usize));
        let down = o.flags & raw::DESCENDING != 0;
        let range = self.entries.range((at.0, at.1.clone(), Vec::new())..).take_while(|(k, _)| k.0 == at.0 && k.1 == at.1);
        let hit = |sub: &[u8]| sub.starts_with(&at.2) && after.is_none_or(|a| if down { sub < a } else { sub > a });
        let mut found: Vec<_> = range.filter(|(k, _)| hit(&k.2)).map(|(k, v)| (k.2.as_slice(), v.0.as_slice())).collect();
        if down {
            found.reverse();
        }
        found.truncate(if o.limit == 0 { usize::MAX } else { o.limit as usize });
        found
    }
}

fn size(get: bool, found: &[(&[u8], &[u8])]) -> usize {
    let entry = if get { 0 } else { 16 };
    found.iter().map(|(s, v)| entry + s.len() + v.len()).sum::<usize>().next_multiple_of(8)
}

pub(crate) fn read(ops: *mut u8, count: u32, buf: *mut u8, cap: u32, need: *mut u8) -> i32 {
    WORLD.with_borrow_mut(|w| {
        assert!(w.keyed, "the stage is not keyed and has no state");
        assert!(count as usize <= raw::MAX_OPS, "too many operations");
        w.reads += 1;
        let least = |o: &Op| size(o.op == raw::GET, &w.find(o)[..w.find(o).len().min(1)]);
        let sum: usize = (0..count).map(|i| least(op(ops, i))).sum();
        if sum > cap as usize {
            // SAFETY: need is a u32 of the guest's.
            unsafe { *need.cast::<u32>() = sum as u32 };
            return raw::TOO_SMALL;
        }
        let (mut at, mut slack) = (mem::addr(buf), cap as usize - sum);
        for i in 0..count {
            let o = op(ops, i);
            let all = w.find(o);
            let first = least(o);
            let mut n = all.len();
            if w.scan_limit > 0 && o.op == raw::SCAN {
                n = n.min(w.scan_limit);
            }
            while size(o.op == raw::GET, &all[..n]) > first + slack {
                n -= 1;
            }
            let used = size(o.op == raw::GET, &all[..n]);
            slack -= used - first;
            place(o, &all[..n], at, n < all.len());
            at += used as u32;
        }
        0
    })
}

/// Writes one answer.
fn place(o: &mut Op, found: &[(&[u8], &[u8])], at: u32, more: bool) {
    let put = |at: u32, b: &[u8]| {
        // SAFETY: the guest's buffer has room for it.
        unsafe { std::ptr::copy_nonoverlapping(b.as_ptr(), mem::ptr(at), b.len()) };
        at + b.len() as u32
    };
    (o.answer, o.answer_len, o.count) = (0, if o.op == raw::GET { -1 } else { 0 }, 0);
    if o.op == raw::GET {
        if let Some((_, value)) = found.first() {
            put(at, value);
            (o.answer, o.answer_len) = (if value.is_empty() { 0 } else { at }, value.len() as i32);
        }
        return;
    }
    o.flags = o.flags & raw::DESCENDING | if more { raw::MORE } else { 0 };
    if found.is_empty() {
        return;
    }
    (o.answer, o.count) = (at, found.len() as u32);
    let mut data = at + 16 * found.len() as u32;
    for (i, (sub, value)) in found.iter().enumerate() {
        let e = raw::Entry { name: data, name_len: sub.len() as u32, value: data + sub.len() as u32, value_len: value.len() as i32 };
        // SAFETY: as above.
        unsafe { *mem::ptr(at + 16 * i as u32).cast() = e };
        data = put(put(data, sub), value);
    }
    o.answer_len = (data - at) as i32;
}
