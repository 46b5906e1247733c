//! Counts and sums `amount` by key and window of ten seconds of event time. A window is emitted once, when the watermark has
//! passed its end; what comes later than that goes to the output `late`.

use wasmill::state::{Map, Want};
use wasmill::{Decimal, Out, Port, Record, Result, Transform, dead_letter};

pub const MANIFEST: &str = r#"{
    "abi": 1, "name": "windowed_count", "version": "1.0.0",
    "inputs": [{"name": "orders", "content": "json", "fields": ["/amount"]}],
    "outputs": [{"name": "windows", "content": "json"}, {"name": "late", "content": "json"}],
    "tables": [{"name": "windows"}]
}"#;
const WINDOWS: Port = Port::of(MANIFEST, "windows");
const LATE: Port = Port::of(MANIFEST, "late");
/// Count, and sum in cents, by key and start of the window.
const OPEN: Map<i64, [i64; 2]> = Map::of(MANIFEST, "windows");
const SIZE: i64 = 10_000_000;

wasmill::fields! { MANIFEST, AMOUNT = "/amount" }
wasmill::transform!(MANIFEST, Windows, |_| Ok(Windows));

pub struct Windows;

impl Transform for Windows {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        OPEN.want(want, r.state_key(), &start(r));
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let (key, start) = (r.state_key(), start(&r));
        if start + SIZE <= out.batch().late_watermark {
            out.pass(&r, LATE);
            return Ok(());
        }
        let cents = r.get(AMOUNT).scaled(2)?.ok_or_else(|| dead_letter(1, "amount is missing"))?;
        out.set_event_timer(key, start + SIZE, b"");
        OPEN.update(out, key, &start, |w| w.map_or([1, cents], |[n, sum]| [n + 1, sum + cents]))
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        let (key, start) = (t.state_key(), t.event_time().unwrap_or(0) - SIZE);
        let Some([count, sum]) = OPEN.get(out, key, &start)? else { return Ok(()) };
        OPEN.delete(out, key, &start);
        let mut o = out.blank().key(key).event_time(start).object();
        o.set("key", String::from_utf8_lossy(key)).set("start", start / 1000).set("count", count).set("sum", Decimal { unscaled: sum, scale: 2 });
        o.emit(WINDOWS);
        Ok(())
    }
}

/// Where the window of a record or timer begins. A timer stands at its window's end.
fn start(r: &Record<'_>) -> i64 {
    let at = r.event_time().unwrap_or(0);
    at - at.rem_euclid(SIZE) - if r.index().is_none() { SIZE } else { 0 }
}
