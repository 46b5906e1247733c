//! A kernel of floats: two logistic maps in a row, eight operations a step; the bits of the result are the record.

use orders::Record;

orders::guest!(record);

const STEPS: u32 = 1000;

fn iterate(mut x: f64) -> f64 {
    for _ in 0..STEPS {
        let a = 3.99 * x * (1.0 - x);
        let b = 3.98 * a * (1.0 - a);
        x = b * 0.96 + 0.01;
    }
    x
}

fn record(r: &Record, out: &mut Vec<u8>) -> bool {
    let bits = iterate(f64::from(r.index % 1000 + 1) / 1001.0).to_bits();
    for d in (0..16).rev() {
        out.push(b"0123456789abcdef"[(bits >> (4 * d) & 15) as usize]);
    }
    true
}
