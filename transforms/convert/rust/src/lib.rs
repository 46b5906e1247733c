//! Drops cancelled orders and adds the amount in euros: what examples/orders does between two topics.

use wasmill::{Decimal, Field, Out, Port, Record, Reject, Result, Value, dead_letter, div_round};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const STATUS: Field = Field::of(MANIFEST, "/status");
const AMOUNT: Field = Field::of(MANIFEST, "/amount");
const CURRENCY: Field = Field::of(MANIFEST, "/currency");

/// Rates are euros times this.
const ONE: i64 = 10_000;

wasmill::transform!(MANIFEST, convert);

fn convert(r: Record<'_>, out: &mut Out) -> Result {
    if !r.is_json() {
        return Err(dead_letter(1, "the value is not JSON"));
    }
    let status = r.get(STATUS).text()?;
    if status.is("cancelled") {
        return Ok(());
    }
    if status.is_null() {
        return Err(dead_letter(2, "status is missing"));
    }
    let cents = r.get(AMOUNT).scaled(2)?;
    let currency = r.get(CURRENCY).text()?;
    let Some(cents) = cents else {
        return Err(dead_letter(3, "amount is missing"));
    };
    let Some(rate) = rate(&currency) else {
        return Err(no_rate(&currency));
    };
    let Some(unscaled) = in_euros(cents, rate) else {
        return Err(dead_letter(5, "amount_eur is out of range"));
    };
    let mut o = out.extend(&r)?;
    o.set("amount_eur", Decimal { unscaled, scale: 2 });
    o.emit(OUT);
    Ok(())
}

/// Cents times a rate, rounded half up (a half goes away from zero).
fn in_euros(cents: i64, rate: i64) -> Option<i64> {
    // Most amounts are small, and 64-bit division is slow in a module.
    if let Ok(n) = u32::try_from(cents)
        && n < 100_000
    {
        return Some(i64::from((n * rate as u32 + ONE as u32 / 2) / ONE as u32));
    }
    div_round(cents.checked_mul(rate)?, ONE)
}

fn rate(currency: &Value<'_>) -> Option<i64> {
    match () {
        _ if currency.is("EUR") => Some(ONE),
        _ if currency.is("USD") => Some(9_200),
        _ if currency.is("GBP") => Some(11_700),
        _ if currency.is("JPY") => Some(61),
        _ => None,
    }
}

#[cold]
fn no_rate(currency: &Value<'_>) -> Reject {
    if currency.is_null() {
        return dead_letter(4, "currency is missing");
    }
    let text = String::from_utf8_lossy(&currency.raw()[..currency.raw().len().min(64)]);
    dead_letter(4, format!("there is no rate for the currency {text}"))
}
