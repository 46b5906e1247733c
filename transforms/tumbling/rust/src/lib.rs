//! Aggregates by key and window of fixed length, each record in one window.

use stock::agg::code;
use stock::config::{Config, refuse};
use stock::group::{self, Head, Noted, Reader, passed};
use stock::time;
use wasmill::state::{Map, Ticket, Want};
use wasmill::{Input, Out, Port, Record, Result, Transform, Value, dead_letter};

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
const UPDATES: Port = Port::of(MANIFEST, "updates");
/// Aggregates by key and start of the window.
const WINDOWS: Map<i64, Vec<u8>> = Map::of(MANIFEST, "windows");
/// Members of exact sets by key; the sub-key is start, aggregate and value.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");

/// Room for a key beside a window's start.
const MAX_KEY: usize = 4096 - 8;

wasmill::transform!(MANIFEST, Tumbling, Tumbling::new);

/// The transform. Times are milliseconds, but those of the SDK.
pub struct Tumbling {
    size: i64,
    offset: i64,
    allowed: i64,
    processing: bool,
    update: bool,
    head: Head,
    reader: Reader,
    /// Windows that were complete when they were opened.
    complete: Noted,
    /// Windows that changed, where updates are asked for.
    changed: Noted,
    blank: Vec<u8>,
    row: Vec<u8>,
    member: Vec<u8>,
    /// The windows of the frame's records, in their order.
    plan: Plan,
}

/// What was found out of a frame's records before the first was handled.
#[derive(Default)]
struct Plan {
    windows: Vec<Window>,
    at: usize,
}

enum Window {
    Late,
    None,
    Long,
    Open(i64, Ticket),
}

impl Plan {
    #[inline]
    fn push(&mut self, w: Window) {
        if self.at == self.windows.len() {
            self.windows.clear();
            self.at = 0;
        }
        self.windows.push(w);
    }
}

/// In front of a window's bytes, where updates are asked for: the number of the batch that changed it last, plus one.
const STAMP: usize = 8;

impl Tumbling {
    /// Makes it of a configuration.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn new(config: Value<'_>) -> Result<Tumbling> {
        let mut c = Config::new(config)?;
        let Some(size) = c.duration("size")?.filter(|s| *s > 0) else {
            return Err(refuse("size is missing: how long a window is, such as 10s"));
        };
        let mut t = Tumbling {
            size,
            offset: c.duration("offset")?.unwrap_or(0) % size,
            allowed: c.duration("allowedLateness")?.unwrap_or(0),
            processing: c.choice("time", &["event", "processing"])? == "processing",
            update: c.choice("emit", &["close", "update"])? == "update",
            head: Head::parse(&mut c, true)?,
            reader: Reader::parse(&mut c)?,
            complete: Noted::default(),
            changed: Noted::default(),
            blank: Vec::new(),
            row: Vec::new(),
            member: Vec::new(),
            plan: Plan::default(),
        };
        c.finish()?;
        t.head.check_names(&t.reader.aggregates)?;
        if t.processing && t.allowed > 0 {
            return Err(refuse("allowedLateness is for event time: in processing time nothing is late"));
        }
        t.blank.resize(t.stamp(), 0);
        t.reader.aggregates.init(&mut t.blank);
        Ok(t)
    }

    fn stamp(&self) -> usize {
        if self.update { STAMP } else { 0 }
    }

    /// The start of the window that a record belongs to.
    #[inline]
    fn start(&self, r: &Record<'_>, batch_time: i64) -> Option<i64> {
        let us = if self.processing { batch_time } else { r.event_time()? };
        let at = us.div_euclid(1000) - self.offset;
        Some(at - at.rem_euclid(self.size) + self.offset)
    }

    /// When a window is complete.
    #[inline]
    fn close_at(&self, start: i64) -> i64 {
        (start + self.size + self.allowed).min(time::MAX)
    }

    /// The start of the window that a timer stands for.
    fn of_timer(&self, t: &Record<'_>) -> i64 {
        match t.sub().first_chunk::<8>() {
            Some(start) => i64::from_be_bytes(*start),
            None => t.event_time().unwrap_or(0).div_euclid(1000) - self.allowed - self.size,
        }
    }

    /// Sees to it that a new window is closed in time: by a timer, or at the end of this batch.
    fn schedule(&mut self, key: &[u8], start: i64, out: &mut Out) {
        let (at, sub) = (self.close_at(start), start.to_be_bytes());
        if self.processing {
            out.set_processing_timer(key, at * 1000, &sub);
            // When all input is complete the rest is due, whatever the clock says.
            out.set_event_timer(key, time::MAX * 1000, &sub);
        } else if passed(out.batch().watermark, at) {
            self.complete.push(key, start);
        } else {
            // The start goes along: a time that was cut to the last of all does not tell it, nor does one of another lateness.
            out.set_event_timer(key, at * 1000, &sub);
        }
    }

    /// Counts those members of exact sets that are new.
    fn add_members(&mut self, key: &[u8], start: i64, out: &mut Out) {
        let stamp = self.stamp();
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, start, i, value);
            if MEMBERS.contains(out, key, member) {
                continue;
            }
            MEMBERS.set(out, key, member, &());
            let mut e = WINDOWS.entry(out, key, &start);
            let len = e.get().map_or(0, <[u8]>::len);
            self.reader.aggregates.count_member(&mut e.resize(len)[stamp..], i);
        }
    }

    /// Writes a window's row.
    fn emit(&mut self, key: &[u8], start: i64, to: Port, out: &mut Out) -> Result {
        self.row.clear();
        self.row.push(b'{');
        let end = start + self.size;
        let comma = self.head.write(key, Some((start, end)), &mut self.row);
        let e = WINDOWS.entry(out, key, &start);
        let bytes = e.get().unwrap_or(b"").get(self.stamp()..).unwrap_or(b"");
        self.reader.aggregates.write(bytes, comma, &mut self.row)?;
        self.row.push(b'}');
        let at = (end - 1).min(time::MAX) * 1000;
        let draft = out.blank().event_time(at);
        if to == UPDATES {
            let mut address = Vec::new();
            group::update_key(key, start, &mut address);
            draft.key(&address).value(Some(&self.row), to);
        } else {
            draft.key(key).value(Some(&self.row), to);
        }
        Ok(())
    }

    /// Ends a window.
    fn close(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        if !WINDOWS.contains(out, key, &start) {
            return Ok(());
        }
        if !self.update {
            self.emit(key, start, OUT, out)?;
        } else if self.touched(key, start, out) {
            // Nobody has seen the changes of this batch yet.
            self.emit(key, start, UPDATES, out)?;
        }
        self.remove(key, start, out);
        Ok(())
    }

    fn remove(&mut self, key: &[u8], start: i64, out: &mut Out) {
        WINDOWS.delete(out, key, &start);
        if self.reader.aggregates.has_sets() {
            MEMBERS.clear_prefix(out, key, &start.to_be_bytes());
        }
    }

    /// True when this batch changed the window.
    fn touched(&self, key: &[u8], start: i64, out: &mut Out) -> bool {
        let now = (out.batch().id + 1).to_le_bytes();
        WINDOWS.entry(out, key, &start).get().is_some_and(|b| b.starts_with(&now))
    }
}

impl Transform for Tumbling {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        if r.index().is_none() {
            WINDOWS.want(want, r.state_key(), &self.of_timer(r));
            return;
        }
        let (batch_time, late) = (want.batch().time, want.batch().late_watermark);
        let Some(start) = self.start(r, batch_time) else { return self.plan.push(Window::None) };
        if !self.processing && passed(late, self.close_at(start)) {
            return self.plan.push(Window::Late);
        }
        if r.state_key().len() > MAX_KEY {
            return self.plan.push(Window::Long);
        }
        let ticket = WINDOWS.want(want, r.state_key(), &start);
        self.plan.push(Window::Open(start, ticket));
        if self.reader.aggregates.has_sets() && self.reader.read(r).is_ok() {
            if self.reader.check_members(r.state_key()).is_err() {
                return;
            }
            for (i, value) in self.reader.aggregates.members(&self.reader.args) {
                MEMBERS.want(want, r.state_key(), group::member(&mut self.member, start, i, value));
            }
        }
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let window = self.plan.windows.get(self.plan.at).unwrap_or(&Window::None);
        self.plan.at += 1;
        let (start, ticket) = match *window {
            Window::None => return Err(dead_letter(code::NO_TIME, "the record has no event time")),
            Window::Long => return group::check_key(r.state_key(), MAX_KEY),
            Window::Late => {
                out.pass(&r, LATE);
                return Ok(());
            }
            Window::Open(start, ticket) => (start, ticket),
        };
        self.reader.read(&r)?;
        let (key, now, stamp) = (r.state_key(), out.batch().id + 1, self.stamp());
        self.reader.check_members(key)?;
        let mut e = WINDOWS.claim(out, ticket, key, &start);
        let (new, len) = match e.get() {
            None => (true, self.blank.len()),
            Some(bytes) => {
                let group = bytes.get(stamp..).unwrap_or(b"");
                self.reader.aggregates.check(group)?;
                self.reader.aggregates.check_add(group, &self.reader.args)?;
                (false, bytes.len())
            }
        };
        if new {
            self.head.check(key)?;
        }
        let bytes = e.resize(len);
        if new {
            bytes.copy_from_slice(&self.blank);
        }
        let mut first = false;
        if let Some(old) = bytes[..stamp].first_chunk_mut::<STAMP>() {
            first = u64::from_le_bytes(*old) != now;
            *old = now.to_le_bytes();
        }
        self.reader.aggregates.add_fixed(&mut bytes[stamp..], &self.reader.args)?;
        if !self.reader.aggregates.is_fixed() {
            self.row.clear();
            self.row.extend_from_slice(&bytes[stamp..]);
            if self.reader.aggregates.add_varying(&mut self.row, &self.reader.args, r.event_time().unwrap_or(0))? {
                e.resize(stamp + self.row.len())[stamp..].copy_from_slice(&self.row);
            }
        }
        if first {
            self.changed.push(key, start);
        }
        if new {
            self.schedule(key, start, out);
        }
        if self.reader.aggregates.has_sets() {
            self.add_members(key, start, out);
        }
        Ok(())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        let (key, start) = (t.state_key(), self.of_timer(&t));
        if self.processing {
            // The other of the two is not needed any more.
            match t.kind() {
                Input::EventTimer => out.delete_processing_timer(key, self.close_at(start) * 1000, t.sub()),
                _ => out.delete_event_timer(key, time::MAX * 1000, t.sub()),
            }
        }
        self.close(key, start, out)
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        let changed = core::mem::take(&mut self.changed);
        for (key, start) in changed.iter() {
            if self.touched(key, start, out) {
                self.emit(key, start, UPDATES, out)?;
            }
        }
        let complete = core::mem::take(&mut self.complete);
        for (key, start) in complete.iter() {
            if self.update {
                self.remove(key, start, out);
            } else {
                self.close(key, start, out)?;
            }
        }
        Ok(())
    }
}
