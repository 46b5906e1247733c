//! Aggregates by key and session: records that follow each other with no gap longer than a given one.
//!
//! The open sessions of a key are one entry of state, with one timer. A record between two sessions can make one of them.

use stock::agg::code;
use stock::config::{Config, refuse};
use stock::decimal::Dec;
use stock::group::{self, Head, Noted, Reader, passed};
use stock::spans::{NEVER, Span, Spans};
use stock::time;
use wasmill::state::{Map, Value as Single, Want};
use wasmill::{Out, Port, Record, Result, Transform, Value, dead_letter};

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// The open sessions of each key.
const SESSIONS: Single<Vec<u8>> = Single::of(MANIFEST, "sessions");
/// Members of exact sets by key; the sub-key is the session's number, aggregate and value.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");

/// Most bytes of a key's open sessions: of a value of state.
const MOST_BYTES: usize = 512 << 10;

wasmill::transform!(MANIFEST, Session, Session::new);

/// The transform. Times are milliseconds, but those of the SDK.
pub struct Session {
    gap: i64,
    allowed: i64,
    head: Head,
    reader: Reader,
    /// Keys with sessions that were complete when a record came for them.
    complete: Noted,
    blank: Vec<u8>,
    spans: Spans,
    /// Most bytes that a record adds.
    room: usize,
    magnitudes: Vec<Dec>,
    work: Vec<u8>,
    row: Vec<u8>,
    member: Vec<u8>,
}

impl Session {
    /// Makes it of a configuration.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn new(config: Value<'_>) -> Result<Session> {
        let mut c = Config::new(config)?;
        let Some(gap) = c.duration("gap")?.filter(|g| *g > 0) else {
            return Err(refuse("gap is missing: how long nothing comes between two sessions, such as 10s"));
        };
        let mut s = Session {
            gap,
            allowed: c.duration("allowedLateness")?.unwrap_or(0),
            head: Head::parse(&mut c, true)?,
            reader: Reader::parse(&mut c)?,
            complete: Noted::default(),
            blank: Vec::new(),
            spans: Spans::default(),
            room: 0,
            magnitudes: Vec::new(),
            work: Vec::new(),
            row: Vec::new(),
            member: Vec::new(),
        };
        c.finish()?;
        s.head.check_names(&s.reader.aggregates)?;
        s.reader.aggregates.init(&mut s.blank);
        s.room = 28 + s.blank.len() + s.reader.aggregates.most_growth();
        Ok(s)
    }

    /// When a session whose last moment this is is complete: a record at the gap's end would still have joined it.
    #[inline]
    fn close_at(&self, last: i64) -> i64 {
        (last + self.gap + 1 + self.allowed).min(time::MAX)
    }

    fn now(&self, out: &Out) -> i64 {
        if out.batch().watermark == 0 { NEVER } else { out.batch().watermark.div_euclid(1000) }
    }

    /// True when a record at t belongs to a session.
    #[inline]
    fn fits(&self, s: &Span, t: i64) -> bool {
        s.start - self.gap <= t && t <= s.last + self.gap
    }

    /// The session of a record at t: a new one, or the one that it joins, with the next if it joins that to it.
    fn join(&mut self, key: &[u8], t: i64, out: &mut Out) -> Result<Span> {
        let (found, place) = self.spans.find(|s| s.last + self.gap >= t);
        let Some(span) = found.filter(|s| self.fits(s, t)) else {
            return Ok(self.spans.insert(place, t, &self.blank));
        };
        let next = self.spans.next(&span).filter(|n| self.fits(n, t));
        self.check_sums(&span, next.as_ref())?;
        let mut joined = span;
        (joined.start, joined.last) = (span.start.min(t), span.last.max(t));
        self.spans.stretch(&span, joined.start, joined.last);
        match next {
            Some(next) => self.merge(key, &joined, &next, out),
            None => Ok(joined),
        }
    }

    /// Makes sure that the record that was read can be added to a session, together with the next one if it joins that to it.
    fn check_sums(&mut self, span: &Span, next: Option<&Span>) -> Result {
        let (agg, args, group) = (&self.reader.aggregates, &self.reader.args, self.spans.group(span));
        agg.check(group)?;
        let Some(next) = next else {
            return agg.check_add(group, args);
        };
        agg.begin_magnitudes(&mut self.magnitudes);
        agg.add_magnitudes(group, &mut self.magnitudes)?;
        agg.add_magnitudes(self.spans.group(next), &mut self.magnitudes)?;
        agg.add_arguments(args, &mut self.magnitudes)
    }

    /// Makes sure that there is room for one more session, or for what a record can add to one.
    fn check_room(&self) -> Result {
        if self.spans.bytes().len() + self.room <= MOST_BYTES {
            return Ok(());
        }
        Err(dead_letter(code::RANGE, "a key has more than 512 KiB of open sessions"))
    }

    /// Makes one session of two that follow each other.
    fn merge(&mut self, key: &[u8], first: &Span, second: &Span, out: &mut Out) -> Result<Span> {
        self.work.clear();
        self.work.extend_from_slice(self.spans.group(first));
        self.reader.aggregates.check(self.spans.group(first))?;
        self.reader.aggregates.check(self.spans.group(second))?;
        self.reader.aggregates.merge(&mut self.work, self.spans.group(second))?;
        for set in self.reader.aggregates.sets() {
            let prefix = group::member(&mut self.member, second.id, set, b"");
            let rows = MEMBERS.scan(out, key).prefix(prefix).rows();
            for (sub, _) in rows.raw() {
                let member = group::member(&mut self.member, first.id, set, &sub[9..]);
                if !MEMBERS.contains(out, key, member) {
                    MEMBERS.set(out, key, member, &());
                    self.reader.aggregates.count_member(&mut self.work, set);
                }
            }
        }
        if self.reader.aggregates.has_sets() {
            MEMBERS.clear_prefix(out, key, &second.id.to_be_bytes());
        }
        self.spans.stretch(first, first.start, second.last);
        self.spans.remove(second);
        self.spans.replace(first, &self.work);
        let mut both = *first;
        (both.last, both.to) = (second.last, first.from + self.work.len());
        Ok(both)
    }

    /// Adds the record that was read to a session.
    fn add(&mut self, key: &[u8], span: &Span, at: i64, out: &mut Out) -> Result {
        self.work.clear();
        self.work.extend_from_slice(self.spans.group(span));
        self.reader.aggregates.check(&self.work)?;
        self.reader.aggregates.add_fixed(&mut self.work, &self.reader.args)?;
        if !self.reader.aggregates.is_fixed() {
            self.reader.aggregates.add_varying(&mut self.work, &self.reader.args, at)?;
        }
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, span.id, i, value);
            if !MEMBERS.contains(out, key, member) {
                MEMBERS.set(out, key, member, &());
                self.reader.aggregates.count_member(&mut self.work, i);
            }
        }
        self.spans.replace(span, &self.work);
        Ok(())
    }

    /// Sets the key's timer to the session that is complete first, unless it is set to one before.
    fn schedule(&mut self, key: &[u8], out: &mut Out) {
        let Some(at) = self.spans.first().map(|s| self.close_at(s.last)) else { return };
        if self.spans.timer() == NEVER || self.spans.timer() > at {
            out.set_event_timer(key, at * 1000, b"");
            self.spans.set_timer(at);
        }
    }

    /// Writes the sessions of a key that are complete, and forgets them.
    fn settle(&mut self, key: &[u8], out: &mut Out) -> Result {
        if !self.spans.load(SESSIONS.entry(out, key).get())? {
            return Ok(());
        }
        let now = self.now(out);
        self.write_until(key, now, out)?;
        if self.spans.is_empty() {
            SESSIONS.delete(out, key);
            return Ok(());
        }
        self.schedule(key, out);
        group::store(&mut SESSIONS.entry(out, key), self.spans.bytes())
    }

    /// The same for the sessions at hand, up to a time; they are not stored yet.
    fn write_until(&mut self, key: &[u8], now: i64, out: &mut Out) -> Result {
        if self.spans.timer() <= now {
            self.spans.set_timer(NEVER);
        }
        let mut next = self.spans.first();
        let mut last = None;
        while let Some(span) = next.filter(|s| self.close_at(s.last) <= now) {
            self.emit(key, &span, out)?;
            if self.reader.aggregates.has_sets() {
                MEMBERS.clear_prefix(out, key, &span.id.to_be_bytes());
            }
            next = self.spans.next(&span);
            last = Some(span);
        }
        // All at once: a key may have many.
        last.iter().for_each(|s| self.spans.remove_until(s));
        Ok(())
    }

    fn emit(&mut self, key: &[u8], span: &Span, out: &mut Out) -> Result {
        self.row.clear();
        self.row.push(b'{');
        let comma = self.head.write(key, Some((span.start, span.last + self.gap)), &mut self.row);
        self.reader.aggregates.write(self.spans.group(span), comma, &mut self.row)?;
        self.row.push(b'}');
        let at = (span.last + self.gap).min(time::MAX);
        out.blank().key(key).event_time(at * 1000).value(Some(&self.row), OUT);
        Ok(())
    }
}

impl Transform for Session {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        SESSIONS.want(want, r.state_key());
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let Some(at) = r.event_time() else {
            return Err(dead_letter(code::NO_TIME, "the record has no event time"));
        };
        let (key, t) = (r.state_key(), at.div_euclid(1000));
        let known = self.spans.load(SESSIONS.entry(out, key).get())?;
        let late = out.batch().late_watermark.div_euclid(1000);
        if late != 0 && self.spans.timer() != NEVER && self.spans.timer() <= late {
            // It was due before this batch and has not fired yet: what it stands for comes before this record.
            self.write_until(key, late, out)?;
            group::store(&mut SESSIONS.entry(out, key), self.spans.bytes())?;
            self.complete.push(key, 0);
        }
        if passed(out.batch().late_watermark, self.close_at(t)) && !self.spans.iter().any(|s| self.fits(&s, t)) {
            out.pass(&r, LATE);
            return Ok(());
        }
        self.reader.read(&r)?;
        self.reader.check_members(key)?;
        if !known {
            self.head.check(key)?;
        }
        self.check_room()?;
        let span = self.join(key, t, out)?;
        self.add(key, &span, at, out)?;
        let (now, timer) = (self.now(out), self.spans.timer());
        let due = timer != NEVER && timer <= now;
        if !due && self.spans.first().is_some_and(|s| self.close_at(s.last) <= now) {
            self.complete.push(key, 0);
        } else {
            self.schedule(key, out);
        }
        group::store(&mut SESSIONS.entry(out, key), self.spans.bytes())
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
