//! Aggregates by key and window of fixed length, where windows overlap.
//!
//! A record is added once, to a pane: the time that all windows divide into. A window is put together of its panes when it is
//! complete. The panes of a key are one entry of state, with one timer.

use stock::agg::code;
use stock::config::{Config, refuse};
use stock::group::{self, Head, Noted, Reader, passed};
use stock::spans::{NEVER, Span, Spans};
use stock::time;
use wasmill::state::{Map, Value as Single, Want};
use wasmill::{Out, Port, Record, Result, Transform, Value, dead_letter};

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// The panes of each key.
const PANES: Single<Vec<u8>> = Single::of(MANIFEST, "panes");
/// Members of exact sets by key; the sub-key is the pane's start, aggregate and value.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");

/// Most panes of a window.
const MOST_PANES: i64 = 1000;

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
    /// Keys with windows that were complete when a record came for them.
    complete: Noted,
    blank: Vec<u8>,
    spans: Spans,
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
            size,
            slide,
            pane,
            offset: c.duration("offset")?.unwrap_or(0) % slide,
            allowed: c.duration("allowedLateness")?.unwrap_or(0),
            processing: c.choice("time", &["event", "processing"])? == "processing",
            head: Head::parse(&mut c, true)?,
            reader: Reader::parse(&mut c)?,
            complete: Noted::default(),
            blank: Vec::new(),
            spans: Spans::default(),
            work: Vec::new(),
            row: Vec::new(),
            member: Vec::new(),
        };
        c.finish()?;
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
    fn late(&self, out: &Out) -> i64 {
        let late = out.batch().late_watermark;
        if self.processing || late == 0 { NEVER } else { late.div_euclid(1000) }
    }

    /// Adds the record that was read to a pane, which is made if there is none. True when it is new.
    fn add(&mut self, pane: i64, at: i64) -> Result<bool> {
        let (found, place) = self.spans.find(|s| s.start >= pane);
        let known = found.filter(|s| s.start == pane);
        let span = known.unwrap_or_else(|| self.spans.insert(place, pane, &self.blank));
        self.reader.aggregates.check(self.spans.group(&span))?;
        self.reader.aggregates.add_fixed(self.spans.group_mut(&span), &self.reader.args)?;
        if !self.reader.aggregates.is_fixed() {
            self.work.clear();
            self.work.extend_from_slice(self.spans.group(&span));
            if self.reader.aggregates.add_varying(&mut self.work, &self.reader.args, at)? {
                self.spans.replace(&span, &self.work);
            }
        }
        Ok(known.is_none())
    }

    /// Sets the key's timer to the window that is complete first, unless it is set to one before.
    fn schedule(&mut self, key: &[u8], out: &mut Out) {
        let Some(first) = self.spans.first() else { return };
        let at = self.close_at(self.next_window(first.start, self.now(out)));
        if self.spans.timer() != NEVER && self.spans.timer() <= at {
            return;
        }
        if self.processing {
            out.set_processing_timer(key, at * 1000, b"");
        } else {
            out.set_event_timer(key, at * 1000, b"");
        }
        self.spans.set_timer(at);
    }

    /// Writes the windows of a key that are complete and were not written, and forgets what no window needs any more.
    fn settle(&mut self, key: &[u8], out: &mut Out) -> Result {
        if !self.spans.load(PANES.entry(out, key).get())? {
            return Ok(());
        }
        let now = self.now(out);
        self.write_until(key, now, out)?;
        self.store(key, out)
    }

    /// The same for the panes at hand, up to a time; they are not stored yet.
    fn write_until(&mut self, key: &[u8], now: i64, out: &mut Out) -> Result {
        if self.spans.timer() <= now {
            self.spans.set_timer(NEVER);
        }
        let mut done = self.spans.written();
        while let Some(start) = self.window_after(done).filter(|s| self.close_at(*s) <= now) {
            self.emit(key, start, out)?;
            done = self.close_at(start);
            if done == time::MAX {
                self.write_last(key, start, out)?;
                break;
            }
        }
        self.spans.set_written(now.max(self.spans.written()));
        while let Some(span) = self.spans.first().filter(|s| self.close_at(self.floor(s.start, self.slide)) <= now) {
            self.spans.remove(&span);
            if self.reader.aggregates.has_sets() {
                MEMBERS.clear_prefix(out, key, &span.id.to_be_bytes());
            }
        }
        Ok(())
    }

    /// Writes the windows behind this one. At the end of time all are complete at one moment, so that their starts tell them
    /// apart.
    fn write_last(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        let last = self.spans.iter().map(|s| s.start).max().unwrap_or(start);
        let mut next = start + self.slide;
        while next <= last {
            let (from, to) = (next, next + self.size);
            if self.spans.iter().any(|s| (from..to).contains(&s.start)) {
                self.emit(key, next, out)?;
            }
            next += self.slide;
        }
        Ok(())
    }

    /// Makes sure that the windows of a pane can be put together with the record at hand in it.
    fn check_sums(&self, pane: i64) -> Result {
        let near = pane - self.size + 1..pane + self.size;
        self.reader.aggregates.check_sums(self.spans.iter().filter(|s| near.contains(&s.start)).map(|s| self.spans.group(&s)), &self.reader.args)
    }

    /// The start of the first window that holds a pane and is complete only after `done`.
    fn window_after(&self, done: i64) -> Option<i64> {
        self.spans.iter().map(|s| (self.next_window(s.start, done), s.start)).find(|(w, pane)| w <= pane).map(|(w, _)| w)
    }

    fn store(&mut self, key: &[u8], out: &mut Out) -> Result {
        if self.spans.is_empty() {
            PANES.delete(out, key);
            if self.processing {
                out.delete_event_timer(key, time::MAX * 1000, b"");
            }
            return Ok(());
        }
        self.schedule(key, out);
        group::store(&mut PANES.entry(out, key), self.spans.bytes())
    }

    /// Writes the row of a window of the panes at hand.
    fn emit(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        let end = start + self.size;
        let panes: Vec<Span> = self.spans.iter().filter(|s| (start..end).contains(&s.start)).collect();
        self.work.clear();
        self.work.extend_from_slice(&self.blank);
        for pane in &panes {
            self.reader.aggregates.check(self.spans.group(pane))?;
            self.reader.aggregates.merge(&mut self.work, self.spans.group(pane))?;
        }
        for set in self.reader.aggregates.sets() {
            let n = group::union(&MEMBERS, out, key, panes.iter().map(|p| p.id), set);
            self.reader.aggregates.set_members(&mut self.work, set, n);
        }
        self.row.clear();
        self.row.push(b'{');
        let comma = self.head.write(key, Some((start, end)), &mut self.row);
        self.reader.aggregates.write(&self.work, comma, &mut self.row)?;
        self.row.push(b'}');
        out.blank().key(key).event_time((end - 1).min(time::MAX) * 1000).value(Some(&self.row), OUT);
        Ok(())
    }
}

impl Transform for Sliding {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        PANES.want(want, r.state_key());
        let Some(t) = self.moment(r, want.batch().time).filter(|_| r.index().is_some()) else { return };
        if self.reader.aggregates.has_sets() && self.reader.read(r).is_ok() && self.reader.check_members(r.state_key()).is_ok() {
            let pane = self.floor(t, self.pane);
            for (i, value) in self.reader.aggregates.members(&self.reader.args) {
                MEMBERS.want(want, r.state_key(), group::member(&mut self.member, pane, i, value));
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
        self.reader.check_members(key)?;
        if !self.spans.load(PANES.entry(out, key).get())? {
            self.head.check(key)?;
            if self.processing {
                // When all input is complete the rest is due, whatever the clock says.
                out.set_event_timer(key, time::MAX * 1000, b"");
            }
        }
        self.check_sums(pane)?;
        let (now, late) = (self.now(out), self.late(out));
        if self.spans.timer() != NEVER && self.spans.timer() <= late {
            // It was due before this batch and has not fired yet: what it stands for comes before this record.
            self.write_until(key, late, out)?;
            self.complete.push(key, 0);
        }
        self.spans.set_written(late.max(self.spans.written()));
        if self.add(pane, r.event_time().unwrap_or(0))? {
            let due = self.spans.timer() != NEVER && self.spans.timer() <= now;
            if !due && self.close_at(self.next_window(pane, self.spans.written())) <= now {
                self.complete.push(key, 0);
            } else {
                self.schedule(key, out);
            }
        }
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, pane, i, value);
            if !MEMBERS.contains(out, key, member) {
                MEMBERS.set(out, key, member, &());
            }
        }
        group::store(&mut PANES.entry(out, key), self.spans.bytes())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        self.settle(t.state_key(), out)
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        let complete = core::mem::take(&mut self.complete);
        for (key, _) in complete.iter() {
            self.settle(key, out)?;
        }
        Ok(())
    }
}

/// The greatest common divisor.
fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common(b, a % b) }
}
