//! Drops views and adds the amount in cents: the work of the benchmark F1.

use wasmill::{Field, Out, Port, Record, Result, dead_letter};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const EVENT: Field = Field::of(MANIFEST, "/event");
const AMOUNT: Field = Field::of(MANIFEST, "/amount");

wasmill::transform!(MANIFEST, f1);

fn f1(r: Record<'_>, out: &mut Out) -> Result {
    if !r.is_json() {
        return Err(dead_letter(1, "the value is not JSON"));
    }
    let event = r.get(EVENT).text()?;
    if event.is_null() || event.is("view") {
        return Ok(());
    }
    let cents = r.get(AMOUNT).scaled(2)?;
    let mut o = out.extend(&r)?;
    o.set("cents", cents);
    o.emit(OUT);
    Ok(())
}
