//! From a raw flight to what is asked of it: on time or late, how much was gained in the air, how fast.

use wasmill::{Decimal, Field, Out, Port, Record, Result, dead_letter, div_round};

const MANIFEST: &str = include_str!("../manifest.json");
const FLIGHTS: Port = Port::of(MANIFEST, "flights");
const CANCELLED: Port = Port::of(MANIFEST, "cancelled");
const DEP_TIME: Field = Field::of(MANIFEST, "/dep_time");
const ORIGIN: Field = Field::of(MANIFEST, "/origin");
const DEP_DELAY: Field = Field::of(MANIFEST, "/dep_delay");
const ARR_DELAY: Field = Field::of(MANIFEST, "/arr_delay");
const DISTANCE: Field = Field::of(MANIFEST, "/distance");
const AIR_TIME: Field = Field::of(MANIFEST, "/air_time");
const FLIGHT: Field = Field::of(MANIFEST, "/flight");
const CARRIER: Field = Field::of(MANIFEST, "/carrier");
const TAILNUM: Field = Field::of(MANIFEST, "/tailnum");
const DEST: Field = Field::of(MANIFEST, "/dest");
const TIME_HOUR: Field = Field::of(MANIFEST, "/time_hour");

wasmill::transform!(MANIFEST, clean);

fn clean(r: Record<'_>, out: &mut Out) -> Result {
    if !r.is_json() {
        return Err(dead_letter(1, "the value is not JSON"));
    }
    if r.get(ORIGIN).is_null() {
        return Err(dead_letter(2, "origin is missing"));
    }
    if r.get(DEP_TIME).is_null() {
        out.pass(&r, CANCELLED);
        return Ok(());
    }
    let (dep, arr) = (r.get(DEP_DELAY).int()?, r.get(ARR_DELAY).int()?);
    let gain = both(dep, arr).map(|(d, a)| d.checked_sub(a).ok_or_else(|| dead_letter(3, "gain is out of range"))).transpose()?;
    let mph = both(r.get(DISTANCE).int()?, r.get(AIR_TIME).int()?).filter(|(_, minutes)| *minutes != 0);
    let mph = mph.map(|(miles, minutes)| tenths(miles, minutes).ok_or_else(|| dead_letter(4, "mph is out of range"))).transpose()?;

    let mut o = out.object(&r);
    o.set("carrier", r.get(CARRIER).text()?).set("flight", r.get(FLIGHT).int()?).set("tailnum", r.get(TAILNUM).text()?);
    o.set("origin", r.get(ORIGIN).text()?).set("dest", r.get(DEST).text()?).set("time_hour", r.get(TIME_HOUR).text()?);
    o.set("dep_delay", dep).set("arr_delay", arr).set("gain", gain);
    o.set("mph", mph.map(|t| Decimal { unscaled: t, scale: 1 })).set("late", arr.map(|a| a >= 15));
    o.emit(FLIGHTS);
    Ok(())
}

/// Miles an hour, in tenths.
fn tenths(miles: i64, minutes: i64) -> Option<i64> {
    div_round(miles.checked_mul(600)?, minutes)
}

fn both(a: Option<i64>, b: Option<i64>) -> Option<(i64, i64)> {
    Some((a?, b?))
}
