//! The highest bids of each ten seconds, among the candidates of all lanes: keyed by the window's end, as `candidates` puts
//! it. A window is emitted once, when the watermark has passed its end. Bids on the end belong to the next window; they count
//! here when their price is the highest of this one.

use wasmill::state::{Codec, Value};
use wasmill::{Out, Port, Record, Result, Transform, dead_letter, fail};

pub const MANIFEST: &str = r#"{
    "abi": 1, "name": "highest", "version": "1.0.0",
    "inputs": [{"name": "candidates", "content": "json", "fields": ["/price", "/dateTime"]}],
    "outputs": [{"name": "highest", "content": "json"}],
    "tables": [{"name": "windows"}]
}"#;
const HIGHEST: Port = Port::of(MANIFEST, "highest");
const WINDOWS: Value<Window> = Value::of(MANIFEST, "windows");

wasmill::fields! { MANIFEST, PRICE = "/price", AT = "/dateTime" }
wasmill::transform!(MANIFEST, Highest, |_| Ok(Highest));

/// The highest price, and each bid that has it, or lies on the end and has it or more.
#[derive(Default)]
struct Window {
    most: i64,
    bids: Vec<(i64, Vec<u8>)>,
}

/// The price, then price, length and bytes of each bid.
impl Codec for Window {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.most.to_le_bytes());
        for (price, bid) in &self.bids {
            to.extend_from_slice(&price.to_le_bytes());
            to.extend_from_slice(&(bid.len() as u32).to_le_bytes());
            to.extend_from_slice(bid);
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (most, mut rest) = bytes.split_first_chunk()?;
        let mut w = Window { most: i64::from_le_bytes(*most), bids: Vec::new() };
        while !rest.is_empty() {
            let (price, r) = rest.split_first_chunk()?;
            let (len, r) = r.split_first_chunk()?;
            let (bid, r) = r.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            w.bids.push((i64::from_le_bytes(*price), bid.to_vec()));
            rest = r;
        }
        Some(w)
    }
}

pub struct Highest;

impl Transform for Highest {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let (Some(price), Some(at), Some(bid)) = (r.get(PRICE).int()?, r.get(AT).int()?, r.value()) else {
            return Err(dead_letter(1, "a bid without price or dateTime"));
        };
        let (key, end) = (r.state_key(), end(&r)?);
        let mut w = WINDOWS.get(out, key)?.unwrap_or_default();
        if price < w.most {
            return Ok(());
        }
        if at < end && price > w.most {
            w.most = price;
            w.bids.retain(|(p, _)| *p >= price);
        }
        w.bids.push((price, bid.to_vec()));
        WINDOWS.set(out, key, &w);
        out.set_event_timer(key, (end + 1) * 1000, b"");
        Ok(())
    }

    fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
        let (key, end) = (t.state_key(), end(&t)?);
        let Some(w) = WINDOWS.get(out, key)? else { return Ok(()) };
        WINDOWS.delete(out, key);
        for (_, bid) in w.bids.iter().filter(|(price, _)| *price == w.most) {
            let bid = wasmill::Value::parse(bid);
            let mut o = out.blank().key(key).event_time(end * 1000).object();
            for name in ["auction", "price", "bidder", "dateTime", "extra"] {
                o.set(name, bid.get(name));
            }
            o.emit(HIGHEST);
        }
        Ok(())
    }
}

/// The window's end in milliseconds, which is the key.
fn end(r: &Record<'_>) -> Result<i64> {
    let key = core::str::from_utf8(r.state_key()).ok().and_then(|k| k.parse().ok());
    key.ok_or_else(|| fail(2, "the key is no time in milliseconds"))
}
