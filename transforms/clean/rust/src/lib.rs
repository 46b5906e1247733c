//! From a raw flight to what is asked of it: on time or late, how much was gained in the air, how fast.

use wasmill::{Decimal, Out, Port, Record, Result, dead_letter, div_round};

const MANIFEST: &str = include_str!("../manifest.json");
const FLIGHTS: Port = Port::of(MANIFEST, "flights");
const CANCELLED: Port = Port::of(MANIFEST, "cancelled");

wasmill::fields! { MANIFEST, DEP_TIME = "/dep_time", DEP_DELAY = "/dep_delay", ARR_DELAY = "/arr_delay", DISTANCE = "/distance", AIR_TIME = "/air_time" }
wasmill::fields! { MANIFEST, CARRIER = "/carrier", FLIGHT = "/flight", TAILNUM = "/tailnum", ORIGIN = "/origin", DEST = "/dest", TIME_HOUR = "/time_hour" }
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
