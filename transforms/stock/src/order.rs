//! Values as bytes whose order is that of the values.
//!
//! Numbers come before strings, strings before true and false, and null last, upwards as well as downwards.

use crate::decimal::Dec;

const NEGATIVE: u8 = 0x10;
const ZERO: u8 = 0x11;
const POSITIVE: u8 = 0x12;
const TEXT: u8 = 0x20;
const BOOL: u8 = 0x30;
const OTHER: u8 = 0x40;
const NULL: u8 = 0xff;

/// Turns the order of what was written from `start` on around.
pub fn reverse(to: &mut [u8], start: usize) {
    to[start..].iter_mut().for_each(|b| *b = !*b);
}

/// Null, which is the last in either direction: not to be reversed.
pub fn null(to: &mut Vec<u8>) {
    to.push(NULL);
}

/// A number.
pub fn number(to: &mut Vec<u8>, n: Dec) {
    if n.m == 0 {
        return to.push(ZERO);
    }
    let (mut digits, mut m) = ([0u8; 40], n.m.unsigned_abs());
    let mut at = digits.len();
    while m > 0 {
        at -= 1;
        digits[at] = b'1' + (m % 10) as u8;
        m /= 10;
    }
    // The digits before the point say how large it is; zeros at the end say nothing.
    let whole = (digits.len() - at) as i32 - n.scale as i32;
    let end = digits.iter().rposition(|d| *d != b'1').map_or(at, |i| i + 1);
    to.push(if n.m < 0 { NEGATIVE } else { POSITIVE });
    let start = to.len();
    to.push((whole + 0x80) as u8);
    to.extend_from_slice(&digits[at..end]);
    to.push(0);
    if n.m < 0 {
        reverse(to, start);
    }
}

/// A string, or other bytes.
pub fn text(to: &mut Vec<u8>, text: &[u8]) {
    to.push(TEXT);
    end(to, text);
}

/// An object or array, by its text.
pub fn other(to: &mut Vec<u8>, text: &[u8]) {
    to.push(OTHER);
    end(to, text);
}

/// Bytes, closed so that a beginning comes before what goes on.
fn end(to: &mut Vec<u8>, text: &[u8]) {
    for (i, part) in text.split(|c| *c == 0).enumerate() {
        if i > 0 {
            to.extend_from_slice(&[0, 0xff]);
        }
        to.extend_from_slice(part);
    }
    to.extend_from_slice(&[0, 0]);
}

/// false, then true.
pub fn boolean(to: &mut Vec<u8>, b: bool) {
    to.extend_from_slice(&[BOOL, u8::from(b)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_order_of_values() {
        let numbers = [
            "-99999999999999999999999999999999999999",
            "-1000",
            "-999.5",
            "-999",
            "-10",
            "-9",
            "-1.25",
            "-1.2",
            "-1",
            "-0.1",
            "-0.01",
            "0",
            "0.00000000000000000000000000000000000001",
            "0.01",
            "0.1",
            "1",
            "1.2",
            "1.25",
            "1.3",
            "9",
            "10",
            "100",
            "999",
            "999.5",
            "1000",
            "99999999999999999999999999999999999999",
        ];
        let mut all: Vec<Vec<u8>> = Vec::new();
        for n in numbers {
            let mut to = Vec::new();
            number(&mut to, Dec::parse(n.as_bytes()).unwrap());
            all.push(to);
        }
        for t in ["", "\0", "\0a", "a", "a\0", "aa", "b", "é"] {
            let mut to = Vec::new();
            text(&mut to, t.as_bytes());
            all.push(to);
        }
        for b in [false, true] {
            let mut to = Vec::new();
            boolean(&mut to, b);
            all.push(to);
        }
        let mut to = Vec::new();
        null(&mut to);
        all.push(to);
        assert!(all.is_sorted_by(|a, b| a < b));
        let down = |v: &Vec<u8>| {
            let mut v = v.clone();
            reverse(&mut v, 0);
            v
        };
        assert!(all[..all.len() - 1].iter().map(down).is_sorted_by(|a, b| a > b));
    }

    #[test]
    fn equal_numbers_are_equal_bytes() {
        let bytes = |t: &str| {
            let mut to = Vec::new();
            number(&mut to, Dec::parse(t.as_bytes()).unwrap());
            to
        };
        assert_eq!(bytes("1.50"), bytes("1.5"));
        assert_eq!(bytes("1000"), bytes("1e3"));
        assert_eq!(bytes("0.0"), bytes("0"));
    }
}
