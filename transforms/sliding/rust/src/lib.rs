//! Aggregates by key and window of fixed length, where windows overlap.
//!
//! A record is added once, to a pane: the time that all windows divide into. A window is put together of its panes when it is
//! complete. Each pane is an entry of state, and each key has a timer, for the window that is complete next.

mod grid;
mod head;
mod pane;
mod window;

use grid::{Grid, common};
use head::Head as Keyed;
use std::collections::BTreeSet;
use stock::agg::code;
use stock::config::{Config, refuse};
use stock::decimal::Dec;
use stock::group::{self, Head, Reader, passed};
use stock::time;
use wasmill::state::{Map, Value as Single, Want};
use wasmill::{Batch, Out, Port, Record, Result, Transform, Value, dead_letter};
use window::Found;

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// What is known of a key's panes as a whole; see [`head`].
const HEADS: Single<Vec<u8>> = Single::of(MANIFEST, "heads");
/// The panes of each key by their start; see [`pane`].
const SLICES: Map<i64, Vec<u8>> = Map::of(MANIFEST, "slices");
/// Members of exact sets by key; the sub-key is the part's number, aggregate and value.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");

/// Most panes of a window.
const MOST_PANES: i64 = 1000;
/// Panes that are put together in a batch by each lane. What is behind them is left to the next batch, but for one window of each
/// timer.
const MOST_PARTS: usize = 200_000;
/// So much room keys take that wait for the end of the batch. Those that come then have their timers set at once.
const MOST_MOVED: usize = 16 << 20;
/// No time.
const NEVER: i64 = i64::MIN;
/// Room for a key beside sub-keys and those of timers.
const MAX_KEY: usize = 4096 - 8;

wasmill::transform!(MANIFEST, Sliding, Sliding::new);

/// The transform. Times are milliseconds, but those of the SDK.
pub struct Sliding {
    grid: Grid,
    processing: bool,
    head: Head,
    reader: Reader,
    /// What the sum of a part may be, times 10^18, so that any window can be put together whatever the others are.
    most: i128,
    /// Keys whose next window is another one since this batch, and not by their timer.
    moved: BTreeSet<Vec<u8>>,
    /// Bytes that these take, about.
    moved_len: usize,
    /// How much of [`MOST_PARTS`] is left.
    room: usize,
    blank: Vec<u8>,
    found: Found,
    magnitudes: Vec<Dec>,
    ids: Vec<i64>,
    work: Vec<u8>,
    row: Vec<u8>,
    member: Vec<u8>,
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
            grid: Grid {
                size,
                slide,
                pane,
                offset: c.duration("offset")?.unwrap_or(0) % slide,
                allowed: c.duration("allowedLateness")?.unwrap_or(0),
            },
            processing: c.choice("time", &["event", "processing"])? == "processing",
            head: Head::parse(&mut c, true)?,
            reader: Reader::parse(&mut c)?,
            most: 10i128.pow(38) / i128::from((size / pane) * ((size + slide - 1) / slide)),
            moved: BTreeSet::new(),
            moved_len: 0,
            room: MOST_PARTS,
            blank: Vec::new(),
            found: Found::default(),
            magnitudes: Vec::new(),
            ids: Vec::new(),
            work: Vec::new(),
            row: Vec::new(),
            member: Vec::new(),
        };
        c.finish()?;
        s.head.check_names(&s.reader.aggregates)?;
        if s.processing && s.grid.allowed > 0 {
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

    /// True when no window of the moment t is open any more.
    #[inline]
    fn is_late(&self, t: i64, late_watermark: i64) -> bool {
        !self.processing && passed(late_watermark, self.grid.close_at(self.grid.last_window(t)))
    }

    /// Up to when windows are complete in this batch.
    pub(crate) fn now(&self, out: &Out) -> i64 {
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

    /// Makes sure that a pane is of these aggregates, and that all windows can be put together with the record at hand in them.
    /// True when its sums are large, so that records beside it have to be looked at, too.
    fn check_sums(&mut self, key: &[u8], head: &Keyed, start: i64, from: i64, out: &mut Out) -> Result<bool> {
        let (agg, args) = (&self.reader.aggregates, &self.reader.args);
        let entry = SLICES.entry(out, key, &start);
        let group = pane::last(entry.get().unwrap_or(b"")).filter(|p| p.from == from).map_or(&self.blank[..], |p| p.group);
        agg.check(group)?;
        let is_large = agg.has_sums() && agg.is_large(group, args, self.most);
        if !is_large && (head.large == NEVER || start >= head.large + self.grid.size) {
            return Ok(false);
        }
        self.gather(key, head, start - self.grid.size + self.grid.pane, start + self.grid.size, out);
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
        let (agg, args) = (&self.reader.aggregates, &self.reader.args);
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
            None => pane::grow(&mut entry, len, from, &self.work)?,
        }
        Ok(new)
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
            let at = r.event_time().unwrap_or(0) / 1000;
            let until = want.batch().watermark.div_euclid(1000) - self.grid.allowed;
            self.grid.expected(at, r.sub(), until).for_each(|pane| _ = SLICES.want(want, key, &pane));
            return;
        }
        let Some(t) = self.moment(r, want.batch().time) else { return };
        if self.is_late(t, want.batch().late_watermark) {
            return;
        }
        let pane = self.grid.floor(t, self.grid.pane);
        SLICES.want(want, key, &pane);
        if self.reader.aggregates.has_sets() && self.reader.read(r).is_ok() && self.reader.check_members(key).is_ok() {
            let id = self.grid.id(pane, self.grid.next_window(pane, self.late(want.batch())));
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
        let (key, pane) = (r.state_key(), self.grid.floor(t, self.grid.pane));
        group::check_key(key, MAX_KEY)?;
        self.reader.check_members(key)?;
        let mut keyed = Keyed::read(HEADS.entry(out, key).get());
        if keyed.is_empty() {
            self.head.check(key)?;
        }
        let from = self.grid.next_window(pane, self.late(out.batch()));
        let large = self.check_sums(key, &keyed, pane, from, out)?;
        let new = self.add(key, pane, from, r.event_time().unwrap_or(0), out)?;
        if new {
            let moved = keyed.is_empty() || from < keyed.next;
            keyed.note(pane, self.grid.pane);
            if moved {
                keyed.next = from;
                self.moved(key, &keyed, out);
            }
        }
        if new || (large && keyed.large < pane) {
            keyed.large = if large { keyed.large.max(pane) } else { keyed.large };
            HEADS.entry(out, key).set(&keyed.bytes());
        }
        let id = self.grid.id(pane, from);
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, id, i, value);
            if !MEMBERS.contains(out, key, member) {
                MEMBERS.set(out, key, member, &());
            }
        }
        Ok(())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        self.settle(t.state_key(), false, out)
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        for key in core::mem::take(&mut self.moved) {
            self.settle(&key, true, out)?;
        }
        (self.moved_len, self.room) = (0, MOST_PARTS);
        Ok(())
    }
}
