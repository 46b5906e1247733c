//! Joins a stream with a table: the newest record of the table's input by key.

use stock::config::{Config, refuse};
use stock::expr::{About, Program, Work};
use stock::fields::Fields;
use stock::json;
use wasmill::state::{List, Map};
use wasmill::{BAD_FIELD, Out, Port, Record, Result, Transform, Value, dead_letter, fail};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
/// The table's newest value by key.
const ROWS: wasmill::state::Value<Vec<u8>> = wasmill::state::Value::of(MANIFEST, "rows");
/// Records of the stream that wait for their key, in order of arrival: event time (8 bytes, little-endian; the end of time for
/// none), then the value.
const WAITING: List<Vec<u8>> = List::of(MANIFEST, "waiting");
/// The same table, to look into.
const WAITING_ROWS: Map<u64, Vec<u8>> = Map::of(MANIFEST, "waiting");

/// The number of the input that is the table. It comes first, so that a batch's records of the stream see it whole.
const TABLE: u16 = 0;
/// Dead letters: a value is not JSON.
const NOT_JSON: u16 = 1;
/// The table does not have the key.
const MISSING: u16 = 2;
/// The value is too large for state.
const TOO_LARGE: u16 = 3;
/// The largest value that state holds, less the time beside it.
const MAX_VALUE: usize = (512 << 10) - 8;
/// The longest key under which records wait: their numbers have room beside it.
const MAX_KEY: usize = 4096 - 8;
/// Stands for no event time.
const NO_TIME: i64 = i64::MIN;

wasmill::transform!(MANIFEST, Lookup, Lookup::new);

#[derive(Clone, Copy, PartialEq)]
enum Missing {
    Pass,
    Drop,
    DeadLetter,
    /// Microseconds; 0 = for ever.
    Wait(i64),
}

enum Shape {
    Fields(Fields),
    /// The table's record as a member: its name as JSON text with a colon.
    Member(Vec<u8>),
}

struct Lookup {
    program: Program,
    shape: Shape,
    missing: Missing,
    work: Work,
    value: Vec<u8>,
    row: Vec<u8>,
}

impl Lookup {
    fn new(config: Value<'_>) -> Result<Lookup> {
        let mut c = Config::new(config)?;
        let mut program = Program::over("stream", "table");
        let fields = Fields::read(&mut c, "fields", &mut program)?;
        let name = c.string("as")?;
        let missing = c.choice("missing", &["pass", "drop", "dead-letter", "wait"])?;
        let timeout = c.duration("timeout")?;
        c.finish()?;
        if timeout.is_some() && missing != "wait" {
            return Err(refuse("timeout says how long a record waits: it goes with missing: wait"));
        }
        let missing = match missing {
            "drop" => Missing::Drop,
            "dead-letter" => Missing::DeadLetter,
            "wait" => Missing::Wait(timeout.unwrap_or(0) * 1000),
            _ => Missing::Pass,
        };
        let shape = match (fields, name) {
            (Some(_), Some(_)) => return Err(refuse("fields makes a new object: as has nothing to add to")),
            (Some(fields), None) => Shape::Fields(fields),
            (None, name) => {
                let mut label = Vec::new();
                json::string(&mut label, name.as_deref().unwrap_or("table").as_bytes());
                label.push(b':');
                Shape::Member(label)
            }
        };
        Ok(Lookup { program, shape, missing, work: Work::default(), value: Vec::new(), row: Vec::new() })
    }

    /// A record of the table: it replaces the one before, and null removes it.
    fn learn(&mut self, r: &Record<'_>, out: &mut Out) -> Result {
        let key = r.state_key();
        let Some(value) = r.value() else {
            ROWS.delete(out, key);
            return Ok(());
        };
        if !r.is_json() {
            return Err(dead_letter(NOT_JSON, "the table's value is not JSON"));
        }
        fits(value)?;
        ROWS.entry(out, key).set(value);
        if !matches!(self.missing, Missing::Wait(_)) || key.len() > MAX_KEY || WAITING.is_empty(out, key)? {
            return Ok(());
        }
        self.row.clear();
        self.row.extend_from_slice(value);
        let waiting = WAITING_ROWS.scan(out, key).rows();
        for (sub, held) in waiting.raw() {
            if !sub.is_empty() {
                // What was written cannot be taken back here: the lane runs again without the row.
                self.release(key, held, true, out).map_err(|e| fail(e.code(), e.reason().to_owned()))?;
            }
        }
        if self.missing == Missing::Wait(0) {
            WAITING.clear(out, key);
            return Ok(());
        }
        // Their timers are still set: the numbers go on until the last of them has come, so that it stands for no other record.
        for (sub, _) in waiting.raw().filter(|(sub, _)| !sub.is_empty()) {
            WAITING_ROWS.delete(out, key, &place(sub));
        }
        Ok(())
    }

    /// A record that waited.
    fn release(&mut self, key: &[u8], held: &[u8], found: bool, out: &mut Out) -> Result {
        let Some((time, value)) = held.split_first_chunk::<8>() else {
            return Ok(());
        };
        let time = Some(i64::from_le_bytes(*time)).filter(|t| *t != NO_TIME);
        let about = About { event_time: time, batch_time: out.batch().time, record: None };
        self.write(value, found, about)?;
        let mut draft = out.blank().key(key);
        if let Some(t) = time {
            draft = draft.event_time(t);
        }
        draft.value(Some(&self.value), OUT);
        Ok(())
    }

    /// Makes the output's value of the stream's value and the table's row.
    fn write(&mut self, value: &[u8], found: bool, about: About<'_>) -> Result {
        self.value.clear();
        match &self.shape {
            Shape::Fields(fields) => {
                let row = Some(&self.row[..]).filter(|_| found);
                fields.write(&mut self.program.rows(&mut self.work, [Some(value), row], about), &mut self.value)
            }
            Shape::Member(label) => {
                let open = value.trim_ascii().strip_suffix(b"}").filter(|v| v.starts_with(b"{"));
                let Some(open) = open.map(<[u8]>::trim_ascii_end) else {
                    return Err(dead_letter(BAD_FIELD, "the value is not a JSON object"));
                };
                self.value.extend_from_slice(open);
                if open.len() > 1 {
                    self.value.push(b',');
                }
                self.value.extend_from_slice(label);
                self.value.extend_from_slice(if found { self.row.trim_ascii() } else { b"null" });
                self.value.push(b'}');
                Ok(())
            }
        }
    }

    fn wait(&mut self, r: &Record<'_>, limit: i64, out: &mut Out) -> Result {
        let key = r.state_key();
        let value = r.value().unwrap_or(b"null");
        fits(value)?;
        if key.len() > MAX_KEY {
            return Err(dead_letter(TOO_LARGE, format!("the key has more than {MAX_KEY} bytes, too many for a record to wait")));
        }
        // Whether it can be written without a row shows now: later there is nobody to refuse.
        self.write(value, false, About { event_time: r.event_time(), batch_time: out.batch().time, record: None })?;
        if limit > 0 {
            let n = WAITING.len(out, key)?;
            out.set_processing_timer(key, out.batch().time + limit, &n.to_be_bytes());
        }
        let mut held = r.event_time().unwrap_or(NO_TIME).to_le_bytes().to_vec();
        held.extend_from_slice(value);
        WAITING.push(out, key, &held)
    }
}

impl Transform for Lookup {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        if r.input() == TABLE {
            return self.learn(&r, out);
        }
        if !r.is_json() {
            return Err(dead_letter(NOT_JSON, "the value is not JSON"));
        }
        let entry = ROWS.entry(out, r.state_key());
        let found = match entry.get() {
            Some(row) => {
                self.row.clear();
                self.row.extend_from_slice(row);
                true
            }
            None => false,
        };
        match self.missing {
            _ if found => {}
            Missing::Pass => {}
            Missing::Drop => return Ok(()),
            Missing::DeadLetter => return Err(dead_letter(MISSING, "the table does not have the key")),
            Missing::Wait(limit) => return self.wait(&r, limit, out),
        }
        let about = About { record: Some(r), event_time: r.event_time(), batch_time: out.batch().time };
        self.write(r.value().unwrap_or(b"null"), found, about)?;
        out.from(&r).value(Some(&self.value), OUT);
        Ok(())
    }

    /// A record has waited long enough.
    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        let key = timer.state_key();
        let n = place(timer.sub());
        if let Some(held) = WAITING.get(out, key, n)? {
            WAITING_ROWS.delete(out, key, &n);
            self.release(key, &held, false, out)?;
        }
        // With the last timer of the key the numbers may begin anew.
        if WAITING.len(out, key)? == n.wrapping_add(1) && WAITING_ROWS.scan(out, key).limit(2).rows().raw().all(|(sub, _)| sub.is_empty()) {
            WAITING.clear(out, key);
        }
        Ok(())
    }
}

/// The number of a record that waits.
fn place(sub: &[u8]) -> u64 {
    sub.try_into().map_or(u64::MAX, u64::from_be_bytes)
}

/// That state can hold a value.
fn fits(value: &[u8]) -> Result {
    if value.len() > MAX_VALUE { Err(dead_letter(TOO_LARGE, "the value has more than 512 KiB")) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
