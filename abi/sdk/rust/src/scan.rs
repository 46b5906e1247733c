//! A JSON scanner, eight bytes a step, for what the manifest did not declare.
//!
//! It finds where values lie and does not check what it skips: a record's value has been checked by the host. On other
//! bytes it never panics and always ends.

use crate::value::{Kind, Value};

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// A bit at the top of each byte of x that equals c. A byte after an equal one may be marked too, never one before.
#[inline(always)]
const fn equal(x: u64, c: u8) -> u64 {
    let y = x ^ (ONES * c as u64);
    y.wrapping_sub(ONES) & !y & HIGH
}

#[inline(always)]
fn word(b: &[u8], at: usize) -> Option<u64> {
    let chunk: &[u8; 8] = b.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_le_bytes(*chunk))
}

#[inline(always)]
fn blank(c: u8) -> bool {
    c == b' ' || c == b'\n' || c == b'\r' || c == b'\t'
}

/// The first byte at or after `at` that is no blank.
#[inline(always)]
fn skip_blanks(b: &[u8], mut at: usize) -> usize {
    while at < b.len() && blank(b[at]) {
        at += 1;
    }
    at
}

/// Where the string that begins after the quote ends (at its closing quote), and whether it holds escapes.
#[inline(always)]
fn skip_string(b: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    loop {
        while let Some(w) = word(b, at) {
            let hit = equal(w, b'"') | equal(w, b'\\');
            if hit != 0 {
                at += hit.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        match *b.get(at)? {
            b'"' => return Some((at, escaped)),
            b'\\' => {
                escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
}

/// Where the object or array that begins at `at` ends, one past its bracket.
fn skip_nested(b: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        while let Some(w) = word(b, at) {
            let folded = w | (ONES * 0x20);
            let hit = equal(w, b'"') | equal(folded, b'{') | equal(folded, b'}');
            if hit != 0 {
                at += hit.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        match *b.get(at)? {
            b'"' => at = skip_string(b, at + 1)?.0,
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// The value that begins at `at`, and where it ends.
#[inline]
fn value(b: &[u8], at: usize) -> Option<(Value<'_>, usize)> {
    let (kind, raw, end) = match *b.get(at)? {
        b'"' => {
            let (end, escaped) = skip_string(b, at + 1)?;
            (if escaped { Kind::Escaped } else { Kind::String }, &b[at + 1..end], end + 1)
        }
        c @ (b'{' | b'[') => {
            let end = skip_nested(b, at)?;
            (if c == b'{' { Kind::Object } else { Kind::Array }, &b[at..end], end)
        }
        c => {
            let kind = match c {
                b'n' => Kind::Null,
                b't' => Kind::True,
                b'f' => Kind::False,
                b'-' | b'0'..=b'9' => Kind::Number,
                _ => return None,
            };
            let mut end = at + 1;
            while end < b.len() && !blank(b[end]) && !matches!(b[end], b',' | b'}' | b']') {
                end += 1;
            }
            (kind, &b[at..end], end)
        }
    };
    Some((Value { raw, name: "", kind }, end))
}

/// The one value of a text; absent when there is none, or more than one.
pub fn whole(b: &[u8]) -> Value<'_> {
    match value(b, skip_blanks(b, 0)) {
        Some((v, end)) if skip_blanks(b, end) == b.len() => v,
        _ => Value::absent(""),
    }
}

/// Walks an object.
pub struct Members<'a> {
    rest: &'a [u8],
}

impl<'a> Members<'a> {
    /// Over the text of an object, braces included.
    pub fn new(object: &'a [u8]) -> Self {
        Members { rest: object.get(1..).unwrap_or(b"") }
    }

    #[inline]
    fn step(&mut self) -> Option<(Value<'a>, Value<'a>)> {
        let b = self.rest;
        let at = skip_blanks(b, 0);
        if *b.get(at)? != b'"' {
            return None;
        }
        let (name, at) = value(b, at)?;
        let at = skip_blanks(b, at);
        if *b.get(at)? != b':' {
            return None;
        }
        let (v, at) = value(b, skip_blanks(b, at + 1))?;
        let at = skip_blanks(b, at);
        self.rest = if b.get(at) == Some(&b',') { &b[at + 1..] } else { b"" };
        Some((name, v))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Value<'a>, Value<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_none() {
            self.rest = b"";
        }
        step
    }
}

/// Walks an array.
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Elements<'a> {
    /// Over the text of an array, brackets included.
    pub fn new(array: &'a [u8]) -> Self {
        Elements { rest: array.get(1..).unwrap_or(b"") }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let b = self.rest;
        self.rest = b"";
        let (v, at) = value(b, skip_blanks(b, 0))?;
        let at = skip_blanks(b, at);
        if b.get(at) == Some(&b',') {
            self.rest = &b[at + 1..];
        }
        Some(v)
    }
}

/// A string's characters. What is no valid escape, half a surrogate pair, or no UTF-8 becomes U+FFFD.
pub fn unescape(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        if raw[at] != b'\\' {
            out.push(raw[at]);
            at += 1;
            continue;
        }
        let c = raw.get(at + 1).copied().unwrap_or(0);
        at += 2;
        let plain = match c {
            b'"' | b'\\' | b'/' => c,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (ch, next) = unicode(raw, at);
                out.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
                at = next;
                continue;
            }
            _ => {
                out.extend_from_slice("\u{fffd}".as_bytes());
                continue;
            }
        };
        out.push(plain);
    }
    match String::from_utf8(out) {
        Ok(s) => s,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    }
}

/// The character of the four digits at `at`, with its second half if it has one, and where it ends.
fn unicode(raw: &[u8], at: usize) -> (char, usize) {
    let Some(high) = hex4(raw, at) else {
        return ('\u{fffd}', at);
    };
    if let Some(c) = char::from_u32(high) {
        return (c, at + 4);
    }
    if high < 0xdc00
        && raw.get(at + 4..at + 6) == Some(b"\\u")
        && let Some(low) = hex4(raw, at + 6)
        && (0xdc00..0xe000).contains(&low)
    {
        let c = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return (char::from_u32(c).unwrap_or('\u{fffd}'), at + 10);
    }
    ('\u{fffd}', at + 4)
}

fn hex4(raw: &[u8], at: usize) -> Option<u32> {
    raw.get(at..at + 4)?.iter().try_fold(0, |n, &c| Some(n * 16 + char::from(c).to_digit(16)?))
}
