//! Keeps the first records of each key in an order: as updates, or once when their time is over.

mod group;

use group::Ties;
use std::collections::BTreeMap;
use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Type, Work};
use stock::json;
use wasmill::{BAD_FIELD, Out, Port, Record, Result, Transform, Value, dead_letter, state};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const FINAL: Port = Port::of(MANIFEST, "final");
const LATE: Port = Port::of(MANIFEST, "late");
const GROUPS: state::Value<Vec<u8>> = state::Value::of(MANIFEST, "groups");

/// Dead letters: no event time where one is needed.
const NO_EVENT_TIME: u16 = 2;
/// The records that are to be kept have more bytes than state can hold.
const TOO_LARGE: u16 = 3;
/// Stands for no event time.
const NO_TIME: i64 = i64::MIN;
/// The end of time, in microseconds.
const END: i64 = stock::time::MAX * 1000;

wasmill::transform!(MANIFEST, Top, Top::new);

struct Top {
    program: Program,
    /// Each with true when it goes downwards.
    order: Vec<(Expr, bool)>,
    n: usize,
    ties: Ties,
    /// The name as JSON text, with comma and colon.
    rank: Option<Vec<u8>>,
    last: bool,
    work: Work,
    bytes: Vec<u8>,
    group: Vec<u8>,
    value: Vec<u8>,
    key: Vec<u8>,
    /// Groups that this lane changed: the first place that is new, and how many rows there were. Also, with `last`, those
    /// that are over when the lane ends.
    touched: BTreeMap<Vec<u8>, (usize, usize)>,
}

impl Top {
    fn new(config: Value<'_>) -> Result<Top> {
        let mut c = Config::new(config)?;
        let mut program = Program::new();
        let n = c.int("n", 1, 1000)?.unwrap_or(1) as usize;
        let mut order = Vec::new();
        for (i, text) in c.strings("order")?.iter().enumerate() {
            let (text, down) = direction(text);
            order.push((program.compile(&format!("order[{i}]"), text, Type::Any)?, down));
        }
        if order.is_empty() {
            return Err(c.missing("order"));
        }
        let ties = match c.choice("ties", &["first", "last", "all"])? {
            "last" => Ties::Last,
            "all" => Ties::All,
            _ => Ties::First,
        };
        let rank = match c.string("rank")? {
            Some(name) if name.is_empty() => return Err(refuse("rank is empty")),
            Some(name) => {
                let mut label = Vec::new();
                json::string(&mut label, name.as_bytes());
                label.push(b':');
                Some(label)
            }
            None => None,
        };
        let last = c.flag("final")?;
        c.finish()?;
        let (work, bytes, group, value, key) = Default::default();
        Ok(Top { program, order, n, ties, rank, last, work, bytes, group, value, key, touched: BTreeMap::new() })
    }

    /// Appends the value of a row, with its rank.
    fn ranked(&mut self, row: &group::Row<'_>, rank: usize) {
        self.value.clear();
        let Some(label) = &self.rank else {
            self.value.extend_from_slice(row.value);
            return;
        };
        let open = row.value.trim_ascii().strip_suffix(b"}").unwrap_or(b"{").trim_ascii_end();
        self.value.extend_from_slice(open);
        if open.len() > 1 {
            self.value.push(b',');
        }
        self.value.extend_from_slice(label);
        json::int(&mut self.value, rank as i64);
        self.value.push(b'}');
    }

    /// The record key of a row: that of the group, or, when there can be more than one, with its place.
    fn address(&mut self, key: &[u8], place: usize) {
        self.key.clear();
        if self.n == 1 && self.ties != Ties::All {
            self.key.extend_from_slice(key);
            return;
        }
        stock::group::update_key(key, place as i64 + 1, &mut self.key);
    }

    /// Writes the rows of a group from a place on. Updates are addressed, and places that are gone are deleted.
    fn write(&mut self, key: &[u8], from: usize, before: usize, out: &mut Out) {
        let held = std::mem::take(&mut self.group);
        let (mut rank, mut order): (usize, &[u8]) = (0, b"");
        for (i, row) in group::rows(&held).enumerate() {
            if i == 0 || self.ties != Ties::All || row.order != order {
                rank = i + 1;
            }
            order = row.order;
            if i < from {
                continue;
            }
            self.ranked(&row, rank);
            let draft = if self.last {
                out.blank().key(key)
            } else {
                self.address(key, i);
                out.blank().key(&self.key)
            };
            let draft = if row.time == NO_TIME { draft } else { draft.event_time(row.time) };
            draft.value(Some(&self.value), if self.last { FINAL } else { OUT });
        }
        for place in group::len(&held)..before {
            self.address(key, place);
            out.blank().key(&self.key).value(None, OUT);
        }
        self.group = held;
    }

    /// Writes a group that is over, and forgets it; one that is not gets a timer.
    fn end(&mut self, key: &[u8], out: &mut Out) {
        if !self.load(key, out) {
            return;
        }
        let close = group::close(&self.group);
        if close > out.batch().watermark {
            out.set_event_timer(key, close, b"");
            return;
        }
        self.write(key, 0, 0, out);
        GROUPS.delete(out, key);
    }

    fn load(&mut self, key: &[u8], out: &mut Out) -> bool {
        self.group.clear();
        let entry = GROUPS.entry(out, key);
        self.group.extend_from_slice(entry.get().unwrap_or(b""));
        !self.group.is_empty()
    }
}

impl Transform for Top {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        if r.value().is_some_and(|v| v.len() > group::MAX) {
            return Err(dead_letter(TOO_LARGE, "the value has more than 512 KiB"));
        }
        let mut row = self.program.row(&mut self.work, &r, out)?;
        self.bytes.clear();
        for (e, down) in &self.order {
            row.write_order(*e, *down, &mut self.bytes)?;
        }
        let (key, value) = (r.state_key(), r.value().unwrap_or(b"null"));
        if self.rank.is_some() && !value.trim_ascii().starts_with(b"{") {
            return Err(dead_letter(BAD_FIELD, "the value is not a JSON object: it has no place for a rank"));
        }
        let time = match r.event_time() {
            None if self.last => return Err(dead_letter(NO_EVENT_TIME, "the record has no event time")),
            Some(t) if self.last && out.batch().late_watermark != 0 && t < out.batch().late_watermark => {
                out.pass(&r, LATE);
                return Ok(());
            }
            t => t.unwrap_or(NO_TIME),
        };
        let (n, ties) = (self.n, self.ties);
        let close = if self.last { (time + 1000).min(END) } else { NO_TIME };
        let entry = GROUPS.entry(out, key);
        let old = entry.get().unwrap_or(b"");
        let known = group::close(old);
        if !old.is_empty() && !group::has_place(old, n, ties, &self.bytes) && close <= known {
            return Ok(());
        }
        self.group.clear();
        self.group.extend_from_slice(old);
        let before = group::len(&self.group);
        let place = group::insert(&mut self.group, n, ties, close, time, &self.bytes, value);
        if self.group.len() > group::MAX {
            return Err(dead_letter(TOO_LARGE, "the records to keep have more than 512 KiB"));
        }
        GROUPS.entry(out, key).set(&self.group);
        if !self.last {
            let touched = self.touched.entry(key.to_vec()).or_insert((place, before));
            touched.0 = touched.0.min(place);
        } else if out.batch().watermark != 0 && close <= out.batch().watermark {
            self.touched.entry(key.to_vec()).or_default();
        } else if before == 0 {
            // One timer is enough: when it is due the group may get another.
            out.set_event_timer(key, close, b"");
        }
        Ok(())
    }

    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        self.end(timer.state_key(), out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        for (key, (from, before)) in std::mem::take(&mut self.touched) {
            if self.last {
                self.end(&key, out);
            } else if self.load(&key, out) {
                self.write(&key, from, before, out);
            }
        }
        Ok(())
    }
}

/// An expression without its direction, and whether that is downwards.
fn direction(text: &str) -> (&str, bool) {
    let text = text.trim_end();
    for (word, down) in [("desc", true), ("asc", false)] {
        if let Some(at) = text.len().checked_sub(word.len())
            && text.is_char_boundary(at)
            && text[at..].eq_ignore_ascii_case(word)
            && text[..at].ends_with(char::is_whitespace)
        {
            return (&text[..at], down);
        }
    }
    (text, false)
}

#[cfg(test)]
mod tests;
