//! Persons who came and sold something within the same ten seconds. Persons come first and auctions second, keyed by the
//! person's and the seller's id. A person goes out once, as soon as both are known; what comes after its window goes to `late`.

use wasmill::state::{Map, Want};
use wasmill::{Out, Port, Record, Result, Transform, dead_letter};

pub const MANIFEST: &str = r#"{
    "abi": 1, "name": "newcomers", "version": "1.0.0",
    "inputs": [{"name": "events", "content": "json", "fields": ["/name"]}],
    "outputs": [{"name": "newcomers", "content": "json"}, {"name": "late", "content": "json"}],
    "tables": [{"name": "windows"}]
}"#;
const NEWCOMERS: Port = Port::of(MANIFEST, "newcomers");
const LATE: Port = Port::of(MANIFEST, "late");
/// By person and start of the window: the name as JSON text, `SOLD`, or `DONE`.
const WINDOWS: Map<i64, Vec<u8>> = Map::of(MANIFEST, "windows");
const SOLD: &[u8] = b"sold";
const DONE: &[u8] = b"done";
const SIZE: i64 = 10_000_000;
const AUCTIONS: u16 = 1;

wasmill::fields! { MANIFEST, NAME = "/name" }
wasmill::transform!(MANIFEST, Newcomers, |_| Ok(Newcomers));

pub struct Newcomers;

impl Transform for Newcomers {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        if r.index().is_some() {
            WINDOWS.want(want, r.state_key(), &start(r));
        }
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let (key, start) = (r.state_key(), start(&r));
        if start + SIZE <= out.batch().late_watermark {
            out.pass(&r, LATE);
            return Ok(());
        }
        let sold = r.input() == AUCTIONS;
        let name = r.get(NAME).text()?;
        if !sold && name.is_null() {
            return Err(dead_letter(1, "a person without a name"));
        }
        let name = [b"\"", name.raw(), b"\""].concat();
        let known = WINDOWS.get(out, key, &start)?;
        let next = match known.as_deref() {
            None if sold => SOLD,
            None => &name,
            Some(DONE) => return Ok(()),
            Some(SOLD) if sold => return Ok(()),
            Some(SOLD) => return emit(out, key, start, &name),
            Some(name) if sold => return emit(out, key, start, name),
            Some(_) => return Ok(()),
        };
        WINDOWS.set(out, key, &start, &next.to_vec());
        out.set_event_timer(key, start + SIZE, b"");
        Ok(())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        WINDOWS.delete(out, t.state_key(), &(t.event_time().unwrap_or(0) - SIZE));
        Ok(())
    }
}

/// Emits a person, for the first and last time in its window.
fn emit(out: &mut Out, key: &[u8], start: i64, name: &[u8]) -> Result {
    WINDOWS.set(out, key, &start, &DONE.to_vec());
    let mut o = out.blank().key(key).event_time(start).object();
    o.set("id", wasmill::Value::parse(key)).set("name", wasmill::Value::parse(name)).set("start", start / 1000);
    o.emit(NEWCOMERS);
    Ok(())
}

/// Where a record's window begins, in microseconds.
fn start(r: &Record<'_>) -> i64 {
    let at = r.event_time().unwrap_or(0);
    at - at.rem_euclid(SIZE)
}
