//! Aggregates by key and window of fixed length, where windows overlap.
//!
//! A record is added once, to a pane: the time that all windows divide into. A window is put together of its panes when it is
//! complete. Each pane is an entry of state, and each window that has one has a timer.

mod pane;

use pane::Head as Keyed;
use stock::agg::code;
use stock::config::{Config, refuse};
use stock::decimal::Dec;
use stock::group::{self, Head, Reader, passed};
use stock::time;
use std::collections::{BTreeMap, BTreeSet};
use wasmill::state::{Map, Value as Single, Want};
use wasmill::{Batch, Input, Out, Port, Record, Result, Transform, Value, dead_letter};

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// What is known of a key's panes as a whole; see [`pane::Head`].
const HEADS: Single<Vec<u8>> = Single::of(MANIFEST, "heads");
/// The panes of each key by their start; see [`pane`].
const SLICES: Map<i64, Vec<u8>> = Map::of(MANIFEST, "slices");
/// Members of exact sets by key; the sub-key is the part's number, aggregate and value.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");

/// Most panes of a window.
const MOST_PANES: i64 = 1000;
/// Up to so many panes are read one by one, more by looking through the key.
const MOST_GETS: i64 = 64;
/// Parts that are put together at the end of a lane. Windows behind them are left to timers.
const MOST_PARTS: usize = 200_000;
/// No time.
const NEVER: i64 = i64::MIN;
/// Room for a key beside sub-keys and those of timers.
const MAX_KEY: usize = 4096 - 8;

wasmill::transform!(MANIFEST, Sliding, Sliding::new);

/// The transform. Times are milliseconds, but those of the SDK.
pub struct Sliding {
    size: i64,
    slide: i64,
    pane: i64,
    offset: i64,
    allowed: i64,
    processing: bool,
    head: Head,
    reader: Reader,
    /// What the sum of a part may be, times 10^18, so that any window can be put together whatever the others are.
    most: i128,
    /// Windows that were complete when a pane of theirs was made, by key.
    complete: BTreeMap<Vec<u8>, Fresh>,
    /// Windows that the end of all input wrote before their time, where the clock says when they are complete.
    ended: BTreeSet<(Vec<u8>, i64)>,
    blank: Vec<u8>,
    found: Found,
    magnitudes: Vec<Dec>,
    work: Vec<u8>,
    row: Vec<u8>,
    member: Vec<u8>,
}

/// What this batch began under a key.
#[derive(Default)]
struct Fresh {
    /// The starts of windows that are complete and have no timer, unless there was a pane before.
    windows: BTreeSet<i64>,
    /// The starts of their panes.
    panes: BTreeSet<i64>,
    /// There are panes of batches before.
    old: bool,
}

/// Panes that were read: where each begins in time, and its bytes.
#[derive(Default)]
struct Found {
    list: Vec<(i64, usize, usize)>,
    bytes: Vec<u8>,
}

impl Found {
    fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
    }

    fn push(&mut self, start: i64, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.list.push((start, from, self.bytes.len()));
    }

    /// Start and bytes of each, in order.
    fn iter(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.list.iter().map(|&(start, from, to)| (start, &self.bytes[from..to]))
    }
}

impl Sliding {
    /// Makes it of a configuration.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn new(config: Value<'_>) -> Result<Sliding> {
        let mut c = Config::new(config)?;
        let mut length = |name: &str, what: &str| match c.duration(name)? {
            Some(ms) if ms > 0 => Ok(ms),
            _ => Err(refuse(format!("{name} is missing: {what}, such as 10s"))),
        };
        let size = length("size", "how long a window is")?;
        let slide = length("slide", "how far it is from one window to the next")?;
        let pane = common(size, slide);
        if slide > size {
            return Err(refuse("slide is longer than size: there would be records that belong to no window"));
        }
        if size / pane > MOST_PANES {
            return Err(refuse(format!("size and slide divide a window into {} parts, at most {MOST_PANES} are possible", size / pane)));
        }
        let mut s = Sliding {
            size,
            slide,
            pane,
            offset: c.duration("offset")?.unwrap_or(0) % slide,
            allowed: c.duration("allowedLateness")?.unwrap_or(0),
            processing: c.choice("time", &["event", "processing"])? == "processing",
            head: Head::parse(&mut c, true)?,
            reader: Reader::parse(&mut c)?,
            most: 10i128.pow(38) / i128::from((size / pane) * ((size + slide - 1) / slide)),
            complete: BTreeMap::new(),
            ended: BTreeSet::new(),
            blank: Vec::new(),
            found: Found::default(),
            magnitudes: Vec::new(),
            work: Vec::new(),
            row: Vec::new(),
            member: Vec::new(),
        };
        c.finish()?;
        s.head.check_names(&s.reader.aggregates)?;
        if s.processing && s.allowed > 0 {
            return Err(refuse("allowedLateness is for event time: in processing time nothing is late"));
        }
        s.reader.aggregates.init(&mut s.blank);
        Ok(s)
    }

    #[inline]
    fn moment(&self, r: &Record<'_>, batch_time: i64) -> Option<i64> {
        let us = if self.processing { batch_time } else { r.event_time()? };
        Some(us.div_euclid(1000))
    }

    /// The largest multiple of `step` from the offset on that is not behind t.
    #[inline]
    fn floor(&self, t: i64, step: i64) -> i64 {
        t - (t - self.offset).rem_euclid(step)
    }

    /// The start of the first window that holds the moment t.
    #[inline]
    fn first_window(&self, t: i64) -> i64 {
        self.floor(t - self.size, self.slide) + self.slide
    }

    /// When a window is complete.
    #[inline]
    fn close_at(&self, start: i64) -> i64 {
        (start + self.size + self.allowed).min(time::MAX)
    }

    /// The start of the first window that holds t and is complete only after `done`.
    fn next_window(&self, t: i64, done: i64) -> i64 {
        let first = self.first_window(t);
        if done == NEVER || self.close_at(first) > done {
            return first;
        }
        first.max(self.floor(done - self.size - self.allowed, self.slide) + self.slide)
    }

    /// True when no window of the moment t is open any more.
    #[inline]
    fn is_late(&self, t: i64, late_watermark: i64) -> bool {
        !self.processing && passed(late_watermark, self.close_at(self.floor(t, self.slide)))
    }

    /// Up to when windows are complete in this batch.
    fn now(&self, out: &Out) -> i64 {
        let b = out.batch();
        if !self.processing || b.watermark >= time::MAX * 1000 {
            return if b.watermark == 0 { NEVER } else { b.watermark.div_euclid(1000) };
        }
        b.time.div_euclid(1000)
    }

    /// Up to when windows were complete before this batch.
    fn late(&self, batch: &Batch) -> i64 {
        let late = batch.late_watermark;
        if self.processing || late == 0 { NEVER } else { late.div_euclid(1000) }
    }

    /// The start of the last window that holds a pane.
    #[inline]
    fn last_window(&self, pane: i64) -> i64 {
        self.floor(pane, self.slide)
    }

    /// Reads the panes of a key from one time up to, but without, another.
    fn gather(&mut self, key: &[u8], from: i64, to: i64, out: &mut Out) {
        self.found.clear();
        if (to - from) / self.pane <= MOST_GETS {
            let mut start = from;
            while start < to {
                if let Some(bytes) = SLICES.entry(out, key, &start).get() {
                    self.found.push(start, bytes);
                }
                start += self.pane;
            }
            return;
        }
        let mut after = from - 1;
        while after < to {
            let rows = SLICES.scan(out, key).after(&after).limit(256).rows();
            for (sub, bytes) in rows.raw() {
                after = pane::start(sub);
                if after < to {
                    self.found.push(after, bytes);
                }
            }
            if rows.len() < 256 {
                return;
            }
        }
    }

    /// Makes sure that a pane is of these aggregates, and that all windows can be put together with the record at hand in them. True when its sums are large, so that
    /// records beside it have to be looked at, too.
    fn check_sums(&mut self, key: &[u8], start: i64, from: i64, large: i64, out: &mut Out) -> Result<bool> {
        let (agg, args) = (&self.reader.aggregates, &self.reader.args);
        let entry = SLICES.entry(out, key, &start);
        let group = pane::last(entry.get().unwrap_or(b"")).filter(|p| p.from == from).map_or(&self.blank[..], |p| p.group);
        agg.check(group)?;
        let is_large = agg.has_sums() && agg.is_large(group, args, self.most);
        if !is_large && (large == NEVER || start >= large + self.size) {
            return Ok(false);
        }
        self.gather(key, start - self.size + self.pane, start + self.size, out);
        let (agg, args) = (&self.reader.aggregates, &self.reader.args);
        agg.begin_magnitudes(&mut self.magnitudes);
        for (_, bytes) in self.found.iter() {
            for part in pane::parts(bytes) {
                agg.add_magnitudes(part.group, &mut self.magnitudes)?;
            }
        }
        agg.add_arguments(args, &mut self.magnitudes)?;
        Ok(is_large)
    }

    /// Adds the record that was read to a pane's part, which is made if there is none. True when the pane is new.
    fn add(&mut self, key: &[u8], start: i64, from: i64, at: i64, out: &mut Out) -> Result<bool> {
        let (agg, args, stamp) = (&self.reader.aggregates, &self.reader.args, out.batch().id + 1);
        let mut entry = SLICES.entry(out, key, &start);
        let old = entry.get();
        let (new, len) = (old.is_none(), old.map_or(0, <[u8]>::len));
        let known = pane::last(old.unwrap_or(b"")).filter(|p| p.from == from);
        if let (Some(part), true) = (&known, agg.is_fixed()) {
            let group = part.at;
            agg.add_fixed(&mut entry.resize(len)[group..], args)?;
            return Ok(false);
        }
        self.work.clear();
        self.work.extend_from_slice(known.as_ref().map_or(&self.blank[..], |p| p.group));
        agg.add_fixed(&mut self.work, args)?;
        agg.add_varying(&mut self.work, args, at)?;
        match known.map(|p| p.at) {
            Some(group) => pane::replace(&mut entry, group, &self.work)?,
            None => pane::grow(&mut entry, len, stamp, from, &self.work)?,
        }
        Ok(new)
    }

    /// Sees to it that the windows of a new pane are written: by timers, or at the end of this batch. Those up to `known` have
    /// timers, if they are not complete.
    fn schedule(&mut self, key: &[u8], pane: i64, from: i64, known: i64, old: bool, out: &mut Out) {
        let (now, last) = (self.now(out), self.last_window(pane));
        let mut fresh = None;
        let mut start = from;
        while start <= last {
            if self.close_at(start) <= now {
                let fresh = fresh.get_or_insert_with(|| self.complete.remove(key).unwrap_or_default());
                fresh.windows.insert(start);
                fresh.panes.insert(pane);
                fresh.old = old;
            } else if start > known {
                self.set_timer(key, start, out);
            }
            start += self.slide;
        }
        if let Some(fresh) = fresh {
            self.complete.insert(key.to_vec(), fresh);
        }
    }

    fn set_timer(&self, key: &[u8], start: i64, out: &mut Out) {
        let (at, sub) = (self.close_at(start), pane::sub(start));
        if self.processing {
            out.set_processing_timer(key, at * 1000, &sub);
            // When all input is complete the rest is due, whatever the clock says.
            out.set_event_timer(key, time::MAX * 1000, &sub);
        } else {
            out.set_event_timer(key, at * 1000, &sub);
        }
    }

    /// Writes a window and forgets what no later one needs.
    fn close(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        self.gather(key, start, start + self.size, out);
        self.emit(key, start, out)?;
        self.forget(key, start, true, out);
        Ok(())
    }

    /// Writes those windows of a key that were complete when their panes were made, up to, but without, the one at `before`.
    fn close_before(&mut self, key: &[u8], before: i64, out: &mut Out) -> Result {
        let Some(mut fresh) = self.complete.remove(key) else { return Ok(()) };
        while let Some(start) = fresh.windows.pop_first() {
            if start >= before {
                if start > before {
                    fresh.windows.insert(start);
                }
                break;
            }
            self.close(key, start, out)?;
        }
        if !fresh.windows.is_empty() {
            self.complete.insert(key.to_vec(), fresh);
        }
        Ok(())
    }

    /// The same at the end of the lane, where those that have a timer are left to it. Takes from `room` what it put together.
    fn close_rest(&mut self, key: &[u8], mut fresh: Fresh, room: &mut usize, out: &mut Out) -> Result {
        let stamp = out.batch().id + 1;
        while let Some(start) = fresh.windows.pop_first() {
            if fresh.old {
                self.gather(key, start, start + self.size, out);
            } else {
                self.found.clear();
                for pane in fresh.panes.range(start..start + self.size) {
                    if let Some(bytes) = SLICES.entry(out, key, pane).get() {
                        self.found.push(*pane, bytes);
                    }
                }
            }
            let has_timer = self.found.iter().any(|(_, bytes)| pane::stamp(bytes) != stamp);
            if has_timer || *room == 0 {
                // It comes out with the timers of the next batch, and those behind it, too.
                self.set_timer(key, start, out);
                fresh.windows.iter().for_each(|s| self.set_timer(key, *s, out));
                return Ok(());
            }
            *room = room.saturating_sub(self.found.list.len() + 1);
            self.emit(key, start, out)?;
            self.forget(key, start, !fresh.old, out);
        }
        if fresh.old {
            settle(key, out);
        }
        Ok(())
    }

    /// Writes the row of a window of the panes that were gathered; none if there are none.
    fn emit(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        let (end, agg) = (start + self.size, &self.reader.aggregates);
        self.work.clear();
        self.work.extend_from_slice(&self.blank);
        let mut ids = Vec::new();
        for (at, bytes) in self.found.iter() {
            for part in pane::parts(bytes).filter(|p| p.from <= start) {
                agg.check(part.group)?;
                agg.merge(&mut self.work, part.group)?;
                ids.push(self.id(at, part.from));
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        for set in agg.sets() {
            let n = group::union(&MEMBERS, out, key, ids.iter().copied(), set);
            agg.set_members(&mut self.work, set, n);
        }
        self.row.clear();
        self.row.push(b'{');
        let comma = self.head.write(key, Some((start, end)), &mut self.row);
        agg.write(&self.work, comma, &mut self.row)?;
        self.row.push(b'}');
        out.blank().key(key).event_time((end - 1).min(time::MAX) * 1000).value(Some(&self.row), OUT);
        Ok(())
    }

    /// Forgets those of the panes that were gathered whose last window is this one; with the newest, `all` are gone.
    fn forget(&mut self, key: &[u8], start: i64, all: bool, out: &mut Out) {
        for (at, bytes) in self.found.iter() {
            if self.last_window(at) > start {
                continue;
            }
            if self.reader.aggregates.has_sets() {
                pane::parts(bytes).for_each(|p| MEMBERS.clear_prefix(out, key, &self.id(at, p.from).to_be_bytes()));
            }
            SLICES.delete(out, key, &at);
            if all && Keyed::read(HEADS.entry(out, key).get()).newest <= at {
                HEADS.delete(out, key);
            }
        }
    }

    /// The number that the members of a part of a pane are held under.
    fn id(&self, pane: i64, from: i64) -> i64 {
        pane.wrapping_mul(1024) + (from - self.first_window(pane)) / self.slide
    }
}

impl Transform for Sliding {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        let key = r.state_key();
        if key.len() > MAX_KEY {
            return;
        }
        HEADS.want(want, key);
        if r.index().is_none() {
            let start = pane::start(r.sub());
            for i in (0..self.size / self.pane).take_while(|_| self.size / self.pane <= MOST_GETS) {
                SLICES.want(want, key, &(start + i * self.pane));
            }
            return;
        }
        let Some(t) = self.moment(r, want.batch().time) else { return };
        if self.is_late(t, want.batch().late_watermark) {
            return;
        }
        let pane = self.floor(t, self.pane);
        SLICES.want(want, key, &pane);
        if self.reader.aggregates.has_sets() && self.reader.read(r).is_ok() && self.reader.check_members(key).is_ok() {
            let id = self.id(pane, self.next_window(pane, self.late(want.batch())));
            for (i, value) in self.reader.aggregates.members(&self.reader.args) {
                MEMBERS.want(want, key, group::member(&mut self.member, id, i, value));
            }
        }
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let Some(t) = self.moment(&r, out.batch().time) else {
            return Err(dead_letter(code::NO_TIME, "the record has no event time"));
        };
        if self.is_late(t, out.batch().late_watermark) {
            out.pass(&r, LATE);
            return Ok(());
        }
        self.reader.read(&r)?;
        let (key, pane) = (r.state_key(), self.floor(t, self.pane));
        group::check_key(key, MAX_KEY)?;
        self.reader.check_members(key)?;
        let mut keyed = Keyed::read(HEADS.entry(out, key).get());
        if keyed.newest == NEVER {
            self.head.check(key)?;
            keyed.stamp = out.batch().id + 1;
        }
        let from = self.next_window(pane, self.late(out.batch()));
        let large = self.check_sums(key, pane, from, keyed.large, out)?;
        if self.add(key, pane, from, r.event_time().unwrap_or(0), out)? {
            let known = if keyed.newest < pane && keyed.newest != NEVER { self.last_window(keyed.newest) } else { NEVER };
            self.schedule(key, pane, from, known, keyed.stamp != out.batch().id + 1, out);
        }
        if keyed.newest < pane || (large && keyed.large < pane) {
            keyed.newest = keyed.newest.max(pane);
            keyed.large = if large { keyed.large.max(pane) } else { keyed.large };
            HEADS.entry(out, key).set(&keyed.bytes());
        }
        let id = self.id(pane, from);
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, id, i, value);
            if !MEMBERS.contains(out, key, member) {
                MEMBERS.set(out, key, member, &());
            }
        }
        Ok(())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        let (key, start) = (t.state_key(), pane::start(t.sub()));
        if self.processing {
            // The other of the two is not needed any more; it may be due in this batch, too.
            match t.kind() {
                Input::EventTimer => out.delete_processing_timer(key, self.close_at(start) * 1000, t.sub()),
                _ => out.delete_event_timer(key, time::MAX * 1000, t.sub()),
            }
            if out.batch().watermark >= time::MAX * 1000 && !self.ended.insert((key.to_vec(), start)) {
                return Ok(());
            }
        }
        self.close_before(key, start, out)?;
        self.close(key, start, out)
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        let mut room = MOST_PARTS;
        for (key, fresh) in core::mem::take(&mut self.complete) {
            self.close_rest(&key, fresh, &mut room, out)?;
        }
        Ok(())
    }
}

/// Where windows of older panes still wait for their timers, the newest pane may be forgotten before them.
fn settle(key: &[u8], out: &mut Out) {
    let mut head = Keyed::read(HEADS.entry(out, key).get());
    if head.newest == NEVER || SLICES.contains(out, key, &head.newest) {
        return;
    }
    match SLICES.scan(out, key).reverse().limit(1).rows().raw().next() {
        Some((sub, _)) => {
            head.newest = pane::start(sub);
            HEADS.entry(out, key).set(&head.bytes());
        }
        None => HEADS.delete(out, key),
    }
}

/// The greatest common divisor.
fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common(b, a % b) }
}
