//! Orders by serde_json: read into structs, written again, with the new member behind.

use std::borrow::Cow;

use orders::{Record, put_eur};
use serde::{Deserialize, Serialize};

orders::guest!(order);

#[derive(Deserialize, Serialize)]
struct Order<'a> {
    order_id: u64,
    #[serde(borrow)]
    customer: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    amount_usd: f64,
    #[serde(borrow)]
    items: Vec<Item<'a>>,
    #[serde(borrow)]
    note: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
}

#[derive(Deserialize, Serialize)]
struct Item<'a> {
    #[serde(borrow)]
    sku: Cow<'a, str>,
    qty: u32,
    price: f64,
}

fn order(r: &Record, out: &mut Vec<u8>) -> bool {
    let Ok(order) = serde_json::from_slice::<Order>(r.value()) else {
        return false;
    };
    if order.status == "cancelled" || serde_json::to_writer(&mut *out, &order).is_err() {
        return false;
    }
    out.pop();
    put_eur(out, (order.amount_usd * 100.0).round() as u64);
    true
}
