//! Orders with the fields that the host located, by the SDK.

use wasmill::{Decimal, Field, Out, Port, Record, Result};

const MANIFEST: &str = include_str!("../manifest.json");
const ORDERS: Port = Port::of(MANIFEST, "orders");
const STATUS: Field = Field::of(MANIFEST, "/status");
const AMOUNT: Field = Field::of(MANIFEST, "/amount_usd");

wasmill::transform!(MANIFEST, order);

fn order(r: Record<'_>, out: &mut Out) -> Result {
    if r.get(STATUS).is("cancelled") {
        return Ok(());
    }
    let cents = r.get(AMOUNT).scaled(2)?.unwrap_or(0);
    let mut o = out.extend(&r)?;
    o.set("amount_eur", Decimal { unscaled: (cents * 92 + 50) / 100, scale: 2 });
    o.emit(ORDERS);
    Ok(())
}
