//! Joins the records of two streams that have the same key and lie near enough to each other in event time.

mod config;
mod rows;

use config::{LEFT, RIGHT, Settings, Shape, Timing};
use rows::{NO_TIME, Page, ROW_HEAD, Rows, place_of, sub};
use stock::expr::{About, Program, Work};
use stock::{json, scan};
use wasmill::state::{Map, Want};
use wasmill::{Kind, Out, Port, Record, Result, Transform, Value, dead_letter, fail};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
const SIDES: [Rows; 2] = [Rows(Map::of(MANIFEST, "left")), Rows(Map::of(MANIFEST, "right"))];

/// Dead letters: the value is not JSON.
const NOT_JSON: u16 = 1;
/// No event time where one is needed.
const NO_EVENT_TIME: u16 = 2;
/// Key or value are too large for state.
const TOO_LARGE: u16 = 3;

/// The longest key, so that a page's sub-key and its timer's fit beside it.
const MAX_KEY: usize = 4096 - 13;
/// The largest value, so that a page of it alone is a value of state.
const MAX_VALUE: usize = (512 << 10) - 4 - ROW_HEAD;

wasmill::transform!(MANIFEST, Join, Join::new);

struct Join {
    settings: Settings,
    writer: Writer,
    page: Page,
    kept: Vec<u8>,
    /// The record at hand has left something behind already.
    wrote: bool,
}

/// Makes output values.
struct Writer {
    program: Program,
    work: Work,
    value: Vec<u8>,
}

impl Join {
    fn new(config: Value<'_>) -> Result<Join> {
        let mut program = Program::over("left", "right");
        let settings = Settings::read(config, &mut program)?;
        Ok(Join {
            settings,
            writer: Writer { program, work: Work::default(), value: Vec::new() },
            page: Page::default(),
            kept: Vec::new(),
            wrote: false,
        })
    }

    /// Looks for what matches a record on the other side, and writes it. True when there is something.
    fn probe(&mut self, r: &Record<'_>, side: usize, t: i64, out: &mut Out) -> Result<bool> {
        let (key, other, value) = (r.state_key(), 1 - side, r.value().unwrap_or(b"null"));
        let (timing, mut found) = (self.settings.timing, false);
        let reach = timing.reach(side, t);
        let (first, last) = timing.buckets(side, t);
        for bucket in first..=last {
            let (mut number, mut pages) = (0, 0);
            while number <= pages {
                let Some(n) = SIDES[other].load(out, key, bucket, number, &mut self.page) else {
                    break;
                };
                pages = pages.max(n);
                while let Some(row) = self.page.next() {
                    if timing != Timing::Ever && !(reach.0..=reach.1).contains(&row.time) {
                        continue;
                    }
                    let held = self.page.value(row);
                    let values = if side == LEFT { [Some(value), Some(held)] } else { [Some(held), Some(value)] };
                    let time = t.max(row.time);
                    if !self.writer.holds(&self.settings, values, time, out)? {
                        continue;
                    }
                    found = true;
                    let semi = self.settings.kind == config::Kind::Semi && side == RIGHT && !row.matched;
                    if self.settings.pairs() || semi {
                        // Which of the right records makes a left one come out depends on the order: none is written.
                        let (values, time) = if semi { ([Some(held), None], row.time) } else { (values, time) };
                        self.writer.write(&self.settings, values, time, out)?;
                        emit(Some(r), key, time, &self.writer.value, out);
                        self.wrote = true;
                    }
                    if self.settings.marks(other) && !row.matched {
                        self.page.mark(row);
                    }
                }
                self.wrote |= SIDES[other].store(out, key, bucket, number, &self.page);
                number += 1;
            }
        }
        if found && side == LEFT && self.settings.kind == config::Kind::Semi {
            self.writer.write(&self.settings, [Some(value), None], t, out)?;
            emit(Some(r), key, t, &self.writer.value, out);
        }
        Ok(found)
    }

    /// Keeps a record for what may match it later: of its value, what the configuration reads.
    fn keep(&mut self, r: &Record<'_>, side: usize, t: i64, matched: bool, out: &mut Out) {
        if matched && side == LEFT && !self.settings.pairs() {
            return;
        }
        let (key, timing) = (r.state_key(), self.settings.timing);
        let bucket = timing.bucket(t);
        let value = r.value().unwrap_or(b"null");
        let value = match &self.settings.reads[side] {
            Some(names) if cut(value, names, &mut self.kept) => &self.kept[..],
            _ => value,
        };
        let new = SIDES[side].push(out, key, bucket, t, matched, value);
        if let Some(page) = new
            && (timing != Timing::Ever || self.settings.alone(side))
        {
            let mut place = [side as u8; 13];
            place[1..].copy_from_slice(&sub(bucket, page));
            out.set_event_timer(key, timing.over(side, bucket), &place);
        }
    }
}

impl Transform for Join {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        let key = r.state_key();
        if r.index().is_none() {
            if let Some((side, bucket, page)) = page_of_timer(r.sub())
                && self.settings.alone(side)
            {
                SIDES[side].want(want, key, bucket, page);
            }
            return;
        }
        let (side, timing) = (usize::from(r.input()).min(RIGHT), self.settings.timing);
        if key.len() > MAX_KEY {
            return;
        }
        let Some(t) = r.event_time().or((timing == Timing::Ever).then_some(NO_TIME)) else {
            return;
        };
        let (first, last) = timing.buckets(side, t);
        for bucket in first..=last {
            SIDES[1 - side].want(want, key, bucket, 0);
        }
        SIDES[side].want(want, key, timing.bucket(t), 0);
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let side = usize::from(r.input()).min(RIGHT);
        if !r.is_json() {
            return Err(dead_letter(NOT_JSON, "the value is not JSON"));
        }
        if r.state_key().len() > MAX_KEY || r.value().is_some_and(|v| v.len() > MAX_VALUE) {
            return Err(dead_letter(TOO_LARGE, "the key has more than 4,083 bytes, or the value more than 512 KiB"));
        }
        let t = match (r.event_time(), self.settings.timing) {
            (Some(t), timing) if timing.late(t, out.batch().late_watermark) => {
                out.pass(&r, LATE);
                return Ok(());
            }
            (Some(t), _) => t,
            (None, Timing::Ever) => NO_TIME,
            (None, _) => return Err(dead_letter(NO_EVENT_TIME, "the record has no event time")),
        };
        if self.settings.alone(side) {
            // Whether it can be written alone shows now: later there is nobody to refuse.
            let value = Some(r.value().unwrap_or(b"null"));
            self.writer.write(&self.settings, if side == LEFT { [value, None] } else { [None, value] }, t, out)?;
        }
        self.wrote = false;
        let matched = match self.probe(&r, side, t, out) {
            Ok(matched) => matched,
            // What was written cannot be taken back here: the lane runs again without the record.
            Err(e) if self.wrote => return Err(fail(e.code(), e.reason().to_owned())),
            Err(e) => return Err(e),
        };
        self.keep(&r, side, t, matched, out);
        Ok(())
    }

    /// Nothing can match a page any more.
    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        let key = timer.state_key();
        let Some((side, bucket, page)) = page_of_timer(timer.sub()) else {
            return Ok(());
        };
        if self.settings.alone(side) && SIDES[side].load(out, key, bucket, page, &mut self.page).is_some() {
            while let Some(row) = self.page.next() {
                if row.matched {
                    continue;
                }
                let value = Some(self.page.value(row));
                let values = if side == LEFT { [value, None] } else { [None, value] };
                self.writer.write(&self.settings, values, row.time, out)?;
                emit(None, key, row.time, &self.writer.value, out);
            }
        }
        SIDES[side].remove(out, key, bucket, page);
        Ok(())
    }
}

/// Side, bucket and page of a timer.
fn page_of_timer(sub: &[u8]) -> Option<(usize, i64, u32)> {
    let (side, place) = sub.split_first()?;
    let (bucket, page) = place_of(place)?;
    Some((usize::from(*side).min(RIGHT), bucket, page))
}

/// Makes an object of the members with these names; false when the value is no object.
fn cut(value: &[u8], names: &[String], to: &mut Vec<u8>) -> bool {
    let found = scan::whole(value);
    if found.kind != Kind::Object {
        return false;
    }
    to.clear();
    let mut plain = Vec::new();
    for (name, escaped, member) in scan::members(found.raw) {
        let known = if escaped {
            plain.clear();
            json::unescape(name, &mut plain);
            names.iter().any(|n| n.as_bytes() == plain)
        } else {
            names.iter().any(|n| n.as_bytes() == name)
        };
        if known {
            to.push(if to.is_empty() { b'{' } else { b',' });
            to.push(b'"');
            to.extend_from_slice(name);
            to.extend_from_slice(b"\":");
            member.write(to);
        }
    }
    if to.is_empty() {
        to.push(b'{');
    }
    to.push(b'}');
    true
}

/// Writes a record: one that stems from a record, or from none.
fn emit(r: Option<&Record<'_>>, key: &[u8], time: i64, value: &[u8], out: &mut Out) {
    let draft = match r {
        Some(r) => out.from(r),
        None => out.blank().key(key),
    };
    let draft = if time == NO_TIME { draft } else { draft.event_time(time) };
    draft.value(Some(value), OUT);
}

impl Writer {
    fn about(time: i64, out: &Out) -> About<'static> {
        About { record: None, event_time: Some(time).filter(|t| *t != NO_TIME), batch_time: out.batch().time }
    }

    /// Whether the condition holds for a pair.
    fn holds(&mut self, s: &Settings, values: [Option<&[u8]>; 2], time: i64, out: &Out) -> Result<bool> {
        match s.condition {
            None => Ok(true),
            Some(c) => self.program.rows(&mut self.work, values, Self::about(time, out)).is_true(c),
        }
    }

    /// Makes the value of a pair, or of a record alone.
    fn write(&mut self, s: &Settings, values: [Option<&[u8]>; 2], time: i64, out: &Out) -> Result {
        self.value.clear();
        match &s.shape {
            Shape::Fields(fields) => fields.write(&mut self.program.rows(&mut self.work, values, Self::about(time, out)), &mut self.value)?,
            Shape::Left => self.value.extend_from_slice(values[LEFT].unwrap_or(b"null")),
            Shape::Pair => {
                for (name, value) in [(&b"{\"left\":"[..], values[LEFT]), (b",\"right\":", values[RIGHT])] {
                    self.value.extend_from_slice(name);
                    self.value.extend_from_slice(value.unwrap_or(b"null").trim_ascii());
                }
                self.value.push(b'}');
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
