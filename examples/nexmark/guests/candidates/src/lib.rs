//! The bids of a lane that can be the highest of their ten seconds: those of the highest price so far, and those on a boundary,
//! which the window before takes in as well. A stage by window decides among those of all lanes; this one, before it, saves
//! most bids the way there. It needs no state. The key of what it emits is the window's end in milliseconds.

use std::collections::BTreeMap;
use wasmill::{Out, Port, Record, Result, Transform, dead_letter};

pub const MANIFEST: &str = r#"{
    "abi": 1, "name": "candidates", "version": "1.0.0",
    "inputs": [{"name": "bids", "content": "json", "fields": ["/price", "/dateTime"]}],
    "outputs": [{"name": "candidates", "content": "json"}, {"name": "late", "content": "json"}]
}"#;
const CANDIDATES: Port = Port::of(MANIFEST, "candidates");
const LATE: Port = Port::of(MANIFEST, "late");
const SIZE: i64 = 10_000;

wasmill::fields! { MANIFEST, PRICE = "/price", AT = "/dateTime" }
wasmill::transform!(MANIFEST, Candidates, |_| Ok(Candidates::default()));

/// By the end of a window: the highest price, and the bids that have it.
#[derive(Default)]
pub struct Candidates {
    windows: BTreeMap<i64, (i64, Vec<Vec<u8>>)>,
}

impl Transform for Candidates {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let (Some(price), Some(at), Some(value)) = (r.get(PRICE).int()?, r.get(AT).int()?, r.value()) else {
            return Err(dead_letter(1, "a bid without price or dateTime"));
        };
        let start = at - at.rem_euclid(SIZE);
        // A window waits a millisecond longer, for the bids on its end.
        if (start + SIZE + 1) * 1000 <= out.batch().late_watermark {
            out.pass(&r, LATE);
            return Ok(());
        }
        let (most, bids) = self.windows.entry(start + SIZE).or_default();
        if price > *most {
            *most = price;
            bids.clear();
        }
        if price == *most {
            bids.push(value.to_vec());
        }
        if at == start && (start + 1) * 1000 > out.batch().late_watermark {
            out.from(&r).key(start.to_string().as_bytes()).value(Some(value), CANDIDATES);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        for (end, (_, bids)) in core::mem::take(&mut self.windows) {
            for bid in bids {
                out.blank().key(end.to_string().as_bytes()).value(Some(&bid), CANDIDATES);
            }
        }
        Ok(())
    }
}
