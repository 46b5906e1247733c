//! The closing price of each auction: the highest of the bids between its beginning and its end. Auctions come first and bids
//! second, both keyed by the auction's id. An update goes out once a lane and batch for each auction whose price rose.

use std::collections::HashMap;
use wasmill::state::{Codec, Value};
use wasmill::{Out, Port, Record, Result, Transform, dead_letter};

pub const MANIFEST: &str = r#"{
    "abi": 1, "name": "closing", "version": "1.0.0",
    "inputs": [{"name": "events", "content": "json", "fields": ["/dateTime", "/expires", "/category", "/price"]}],
    "outputs": [{"name": "prices", "content": "json", "updates": true}],
    "tables": [{"name": "auctions"}]
}"#;
const PRICES: Port = Port::of(MANIFEST, "prices");
const AUCTIONS: Value<Auction> = Value::of(MANIFEST, "auctions");
const BIDS: u16 = 1;

wasmill::fields! { MANIFEST, AT = "/dateTime", EXPIRES = "/expires", CATEGORY = "/category", PRICE = "/price" }
wasmill::transform!(MANIFEST, Closing, |_| Ok(Closing::default()));

enum Auction {
    /// Beginning, end, category, and highest bid; 0 when there is none.
    Known([i64; 4]),
    /// Not known yet: of two events at one time the bid can be first. Times and prices of bids.
    Early(Vec<[i64; 2]>),
}

/// A byte that says which it is, then its numbers.
impl Codec for Auction {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Auction::Known(a) => {
                to.push(0);
                a.write(to);
            }
            Auction::Early(bids) => {
                to.push(1);
                bids.iter().for_each(|b| b.write(to));
            }
        }
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        match bytes.split_first()? {
            (0, rest) => <[i64; 4]>::read(rest).map(Auction::Known),
            (1, rest) => rest.chunks(16).map(<[i64; 2]>::read).collect::<Option<_>>().map(Auction::Early),
            _ => None,
        }
    }
}

/// What rose in this lane: each auction's id, category and price, in the order in which they rose first.
#[derive(Default)]
pub struct Closing {
    rose: Vec<(Vec<u8>, i64, i64)>,
    place: HashMap<Vec<u8>, usize>,
}

impl Transform for Closing {
    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        if r.input() == BIDS { self.bid(&r, out) } else { self.auction(&r, out) }
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        for (auction, category, price) in self.rose.drain(..) {
            let mut o = out.blank().key(&auction).object();
            o.set("auction", wasmill::Value::parse(&auction)).set("category", category).set("price", price);
            o.emit(PRICES);
        }
        self.place.clear();
        Ok(())
    }
}

impl Closing {
    fn auction(&mut self, r: &Record<'_>, out: &mut Out) -> Result {
        let key = r.state_key();
        let (Some(begins), Some(ends), Some(category)) = (r.get(AT).int()?, r.get(EXPIRES).int()?, r.get(CATEGORY).int()?) else {
            return Err(dead_letter(1, "an auction without dateTime, expires or category"));
        };
        let early = match AUCTIONS.get(out, key)? {
            Some(Auction::Early(bids)) => bids,
            _ => Vec::new(),
        };
        let best = early.iter().filter(|b| (begins..=ends).contains(&b[0])).map(|b| b[1]).max().unwrap_or(0);
        AUCTIONS.set(out, key, &Auction::Known([begins, ends, category, best]));
        if best > 0 {
            self.risen(key, category, best);
        }
        Ok(())
    }

    fn bid(&mut self, r: &Record<'_>, out: &mut Out) -> Result {
        let key = r.state_key();
        let (Some(at), Some(price)) = (r.get(AT).int()?, r.get(PRICE).int()?) else {
            return Err(dead_letter(1, "a bid without dateTime or price"));
        };
        match AUCTIONS.get(out, key)? {
            Some(Auction::Known([begins, ends, category, best])) => {
                if (begins..=ends).contains(&at) && price > best {
                    AUCTIONS.set(out, key, &Auction::Known([begins, ends, category, price]));
                    self.risen(key, category, price);
                }
            }
            Some(Auction::Early(mut bids)) => {
                bids.push([at, price]);
                AUCTIONS.set(out, key, &Auction::Early(bids));
            }
            None => AUCTIONS.set(out, key, &Auction::Early(vec![[at, price]])),
        }
        Ok(())
    }

    fn risen(&mut self, auction: &[u8], category: i64, price: i64) {
        if let Some(&i) = self.place.get(auction) {
            self.rose[i].2 = price;
            return;
        }
        self.place.insert(auction.to_vec(), self.rose.len());
        self.rose.push((auction.to_vec(), category, price));
    }
}
