//! All that a Rust program has to be undetermined by: the order of a HashMap with its random keys, addresses, and floats
//! that are infinite or not a number. A record becomes the list of its words with what was reckoned for each.

use std::collections::HashMap;
use std::fmt::Write;

use orders::Record;

orders::guest!(record);

fn record(r: &Record, out: &mut Vec<u8>) -> bool {
    let mut words: HashMap<&[u8], f64> = HashMap::new();
    for (i, word) in r.value().split(|c| !c.is_ascii_alphanumeric()).enumerate() {
        let x = words.entry(word).or_insert(word.len() as f64);
        *x = (*x * 1.7 + i as f64).sqrt() / (word.len() as f64 - 4.0);
        if i % 5 == 0 {
            *x -= *x / (i as f64);
        }
    }
    let mut text = String::new();
    for (word, x) in &words {
        let near = (*x as f32).ln();
        let _ = write!(text, "{}={:e}/{:016x}/{:08x} ", String::from_utf8_lossy(word), x, x.to_bits(), near.to_bits());
    }
    let _ = write!(text, "at {:p}", &raw const words);
    out.extend_from_slice(text.as_bytes());
    true
}
