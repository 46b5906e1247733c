//! Finds members by name in objects as they mostly are: without escapes, and without objects, arrays or brackets in them.
//!
//! In such a text every quote begins or ends a string, so that a name in quotes between a comma and a colon is a member's name.
//! Names are looked for sixteen bytes at a time: a quote, the name's first byte behind it, a quote behind its last one. What is
//! not so simple is left to [`Pointers`](crate::scan::Pointers).

use crate::scan::Spot;
use wasmill::Kind;

/// The longest name, and the most of them, that is worth it.
const LONGEST: usize = 32;
const MOST: usize = 8;
/// Bytes that are looked at together.
const STEP: usize = 16;
/// How far a step looks beyond its bytes.
const BEYOND: usize = LONGEST + 1;

struct Name {
    text: Box<[u8]>,
    first: u8,
    spot: usize,
}

/// Names of members, each with the number of its spot.
#[derive(Default)]
pub struct Names {
    names: Vec<Name>,
    unfit: bool,
}

impl Names {
    /// Adds a name.
    pub fn add(&mut self, name: &[u8], spot: usize) {
        self.unfit |= name.len() > LONGEST || self.names.len() == MOST;
        // The byte behind the quote, which is another quote when the name is empty.
        self.names.push(Name { text: name.into(), first: name.first().copied().unwrap_or(b'"'), spot });
    }

    /// Finds them all; of members with the same name the last one counts. False when the text is not simple enough; some
    /// spots may be filled in then.
    #[inline]
    pub fn find(&self, b: &[u8], spots: &mut [Spot]) -> bool {
        let text = b.trim_ascii();
        if self.unfit || text.len() < 2 || text[0] != b'{' || text[text.len() - 1] != b'}' {
            return false;
        }
        let from = text.as_ptr() as usize - b.as_ptr() as usize;
        let (at, end) = (from + 1, from + text.len() - 1);
        // Whole steps where they lie; the rest in a copy with room behind it.
        let steps = (end - at).saturating_sub(BEYOND) / STEP;
        let middle = at + steps * STEP;
        let mut rest = [0; 4 * STEP + 2 * BEYOND];
        let left = end - middle;
        rest[..left].copy_from_slice(&b[middle..end]);
        self.steps(b, &b[at..end], at, steps, spots) && self.steps(b, &rest, middle, left.div_ceil(STEP), spots)
    }

    /// Looks at so many steps of a window, which begins at `at` of the text; false when one is not simple.
    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn steps(&self, b: &[u8], window: &[u8], at: usize, steps: usize, spots: &mut [Spot]) -> bool {
        assert!(steps == 0 || window.len() >= steps * STEP + BEYOND);
        for i in 0..steps {
            // SAFETY: all that a step looks at lies in the window, by the length that was just seen.
            let look = unsafe { Look::at(window.as_ptr().add(i * STEP)) };
            if look.is_hard() {
                return false;
            }
            for name in &self.names {
                // SAFETY: names have at most LONGEST bytes: all others are unfit.
                let hits = unsafe { look.names(name.first, name.text.len()) };
                if hits != 0 {
                    name.note(b, at + i * STEP, hits, spots);
                }
            }
        }
        true
    }
}

impl Name {
    /// Notes the values of the members that begin at these places from `at` on.
    #[inline(never)]
    fn note(&self, b: &[u8], at: usize, mut hits: u32, spots: &mut [Spot]) {
        while hits != 0 {
            let quote = at + hits.trailing_zeros() as usize;
            hits &= hits - 1;
            if b[quote + 1..].starts_with(&self.text)
                && let Some(spot) = member(b, quote, quote + 1 + self.text.len())
            {
                spots[self.spot] = spot;
            }
        }
    }
}

/// The value of the member whose name stands between two quotes; none when that is no name.
#[inline]
fn member(b: &[u8], open: usize, close: usize) -> Option<Spot> {
    let blank = |c: &u8| *c <= b' ';
    let before = b[..open].iter().rev().find(|c| !blank(c))?;
    if !matches!(before, b',' | b'{') {
        return None;
    }
    let skip = |at: usize| Some(at + b.get(at..)?.iter().position(|c| !blank(c))?);
    let colon = skip(close + 1)?;
    if b[colon] != b':' {
        return None;
    }
    let at = skip(colon + 1)?;
    let ends = |c: &u8| blank(c) || matches!(c, b',' | b'}');
    let kind = match b[at] {
        b'"' => {
            let len = b[at + 1..].iter().position(|c| *c == b'"')?;
            return Some(Spot::new(Kind::String, at + 1, at + 1 + len));
        }
        b'n' => Kind::Null,
        b't' => Kind::True,
        b'f' => Kind::False,
        _ => Kind::Number,
    };
    Some(Spot::new(kind, at, at + b[at..].iter().position(ends)?))
}

/// The sixteen bytes from here on.
#[cfg(target_arch = "wasm32")]
struct Look(*const u8, core::arch::wasm32::v128);

#[cfg(target_arch = "wasm32")]
impl Look {
    /// # Safety
    /// There are sixteen bytes.
    #[target_feature(enable = "simd128")]
    #[inline]
    unsafe fn at(p: *const u8) -> Look {
        // SAFETY: by the contract of this function; v128_load needs no alignment.
        Look(p, unsafe { core::arch::wasm32::v128_load(p.cast()) })
    }

    /// True when there is a backslash, a bracket of an object or array, or a bar.
    #[target_feature(enable = "simd128")]
    #[inline]
    fn is_hard(&self) -> bool {
        use core::arch::wasm32::{u8x16_le, u8x16_splat, u8x16_sub, v128_any_true, v128_or};
        v128_any_true(u8x16_le(u8x16_sub(v128_or(self.1, u8x16_splat(0x20)), u8x16_splat(b'{')), u8x16_splat(2)))
    }

    /// A bit for each byte at which a name in quotes may begin.
    ///
    /// # Safety
    /// There are `len` + 17 bytes.
    #[target_feature(enable = "simd128")]
    #[inline]
    unsafe fn names(&self, first: u8, len: usize) -> u32 {
        use core::arch::wasm32::{i8x16_bitmask, u8x16_eq, u8x16_splat, v128_and, v128_load};
        // SAFETY: by the contract of this function.
        let (begins, ends) = unsafe { (v128_load(self.0.add(1).cast()), v128_load(self.0.add(1 + len).cast())) };
        let quote = u8x16_splat(b'"');
        let inner = v128_and(u8x16_eq(begins, u8x16_splat(first)), u8x16_eq(ends, quote));
        u32::from(i8x16_bitmask(v128_and(u8x16_eq(self.1, quote), inner)))
    }
}

#[cfg(not(target_arch = "wasm32"))]
struct Look(*const u8);

#[cfg(not(target_arch = "wasm32"))]
impl Look {
    /// # Safety
    /// There are sixteen bytes.
    unsafe fn at(p: *const u8) -> Look {
        Look(p)
    }

    fn is_hard(&self) -> bool {
        // SAFETY: by the contract of `at`.
        let bytes = unsafe { core::slice::from_raw_parts(self.0, STEP) };
        bytes.iter().any(|c| (c | 0x20).wrapping_sub(b'{') <= 2)
    }

    /// # Safety
    /// There are `len` + 17 bytes.
    unsafe fn names(&self, first: u8, len: usize) -> u32 {
        // SAFETY: by the contract of this function.
        let b = unsafe { core::slice::from_raw_parts(self.0, STEP + len + 1) };
        let is = |i: usize| b[i] == b'"' && b[i + 1] == first && b[i + len + 1] == b'"';
        (0..STEP).fold(0, |bits, i| bits | u32::from(is(i)) << i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Pointers;

    /// What is found in a text, or that it is left to the other.
    fn found(names: &[&str], text: &str) -> Option<Vec<(Kind, String)>> {
        let mut all = Names::default();
        names.iter().enumerate().for_each(|(i, n)| all.add(n.as_bytes(), i));
        let mut spots = vec![Spot::ABSENT; names.len()];
        all.find(text.as_bytes(), &mut spots).then(|| plain(&spots, text))
    }

    fn plain(spots: &[Spot], text: &str) -> Vec<(Kind, String)> {
        spots.iter().map(|s| (s.kind, String::from_utf8_lossy(s.raw(text.as_bytes())).into_owned())).collect()
    }

    #[test]
    fn agrees_with_the_walk_of_every_byte() {
        let names = ["a", "amount", "a name of more than sixteen byte", "o", ""];
        let pieces = [
            r#""a":1"#,
            r#""amount": 12.50 "#,
            r#""amount":null"#,
            r#" "a" : "text" "#,
            r#""s":", : a , amount""#,
            r#""x":"a","y":"amount""#,
            r#""a name of more than sixteen byte":true"#,
            r#""":"empty""#,
            r#""o":"""#,
            r#""time":"2026-01-02T00:00:00.000Z""#,
            r#""a":false"#,
            r#""o":{"a":2,"x":[1,{"amount":"]"}]}"#,
            r#""s":"brackets } ] { [ in it""#,
            r#""a":"an \" escape""#,
            r#""\u0061":7"#,
        ];
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = |n: usize| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed % n as u64) as usize
        };
        let mut simple = 0;
        for round in 0..5000 {
            let most = if round % 2 == 0 { 11 } else { pieces.len() };
            let members: Vec<&str> = (0..next(9)).map(|_| pieces[next(most)]).collect();
            let text = format!("{}{{{}}}{}", " ".repeat(next(3)), members.join(","), "\n".repeat(next(3)));
            let mut pointers = Pointers::new();
            for n in names {
                pointers.add(&format!("/{n}")).unwrap();
            }
            let mut spots = Vec::new();
            pointers.find_any(text.as_bytes(), &mut spots);
            if let Some(got) = found(&names, &text) {
                assert_eq!(got, plain(&spots, &text), "{text}");
                simple += 1;
            } else {
                assert!(most > 11, "{text}");
            }
            pointers.find(text.as_bytes(), &mut spots);
            let again = plain(&spots, &text);
            pointers.find_any(text.as_bytes(), &mut spots);
            assert_eq!(again, plain(&spots, &text), "{text}");
        }
        assert!(simple > 2500);
    }

    #[test]
    fn any_bytes_end() {
        for text in ["", "7", "[1]", "{", "}", "{}", "{\"", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":\"}", "{\"a\" 1}", "{,\"a\":", "\"a\":1"] {
            found(&["a", "b"], text);
        }
        assert_eq!(found(&["a"], "{}"), Some(vec![(Kind::Absent, String::new())]));
        assert_eq!(found(&["a"], "[]"), None);
        assert_eq!(found(&["a name that is longer than is worth it"], "{}"), None);
    }
}
