//! Orders, one byte at a time.

use orders::{Record, cents_of, put_eur};

orders::guest!(order);

#[inline(always)]
fn order(r: &Record, out: &mut Vec<u8>) -> bool {
    let v = r.value();
    let (mut key, mut depth, mut i, mut last, mut cents): (&[u8], u32, usize, usize, u64) = (b"", 0, 0, 0, 0);
    while i < v.len() {
        match v[i] {
            b'"' => {
                let from = i + 1;
                i = from;
                while i < v.len() && v[i] != b'"' {
                    i += if v[i] == b'\\' { 2 } else { 1 };
                }
                let text = &v[from..i.min(v.len())];
                i += 1;
                if depth != 1 {
                    continue;
                }
                if i < v.len() && v[i] == b':' {
                    key = text;
                } else if key == b"status" && text == b"cancelled" {
                    return false;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                i += 1;
            }
            b'}' | b']' => {
                depth = depth.wrapping_sub(1);
                last = i;
                i += 1;
            }
            b'0'..=b'9' if depth == 1 => {
                let from = i;
                while i < v.len() && (v[i] == b'.' || v[i].is_ascii_digit()) {
                    i += 1;
                }
                if key == b"amount_usd" {
                    cents = cents_of(&v[from..i]);
                }
            }
            _ => i += 1,
        }
    }
    out.extend_from_slice(&v[..last]);
    put_eur(out, cents);
    true
}
