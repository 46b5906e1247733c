//! Finds many JSON pointers in one pass over a value.
//!
//! The value has been checked by the host (a record's `is_json`). On other bytes the scan never panics and always ends; it
//! then finds what it can.

use crate::flat::Names;
use crate::json;
use wasmill::Kind;

/// Where a value lies in the text that was scanned. A string lies there without its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    at: u32,
    len: u32,
    /// What it is; [`Kind::Absent`] when the pointer leads nowhere.
    pub kind: Kind,
}

impl Spot {
    /// A value from one place up to another.
    #[inline(always)]
    pub(crate) fn new(kind: Kind, from: usize, to: usize) -> Spot {
        Spot { at: from as u32, len: (to - from) as u32, kind }
    }

    /// Nothing found.
    pub const ABSENT: Spot = Spot { at: 0, len: 0, kind: Kind::Absent };

    /// The bytes, in the text that was scanned.
    #[inline(always)]
    pub fn raw<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.at as usize..(self.at + self.len) as usize).unwrap_or(b"")
    }

    /// Kind and bytes.
    #[inline(always)]
    pub fn of<'a>(&self, text: &'a [u8]) -> Found<'a> {
        Found { kind: self.kind, raw: self.raw(text) }
    }
}

/// A JSON value: a string's bytes without its quotes (escapes still in it when the kind says so), else the JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// What it is.
    pub kind: Kind,
    /// Its bytes.
    pub raw: &'a [u8],
}

impl<'a> Found<'a> {
    /// Nothing.
    pub const ABSENT: Found<'static> = Found { kind: Kind::Absent, raw: b"" };

    /// True when it is absent or null.
    #[inline(always)]
    pub fn is_null(&self) -> bool {
        self.kind as u8 <= Kind::Null as u8
    }

    /// Appends it as JSON text, escapes as they were; an absent one as null.
    #[inline]
    pub fn write(&self, to: &mut Vec<u8>) {
        match self.kind {
            Kind::Absent => to.extend_from_slice(b"null"),
            Kind::String | Kind::Escaped => {
                to.push(b'"');
                to.extend_from_slice(self.raw);
                to.push(b'"');
            }
            _ => to.extend_from_slice(self.raw),
        }
    }
}

struct Node {
    name: Box<[u8]>,
    /// The token as an array index.
    index: Option<u32>,
    slot: Option<u32>,
    children: Vec<u32>,
}

/// A set of JSON pointers (RFC 6901). Each has the number in which [`Pointers::add`] was first called for it.
pub struct Pointers {
    nodes: Vec<Node>,
    texts: Vec<String>,
    /// The same as names, as long as each is a member of the outermost object.
    flat: Option<Names>,
}

impl Default for Pointers {
    fn default() -> Self {
        Pointers::new()
    }
}

impl Pointers {
    /// None yet.
    pub fn new() -> Pointers {
        Pointers { nodes: vec![Node { name: Box::default(), index: None, slot: None, children: Vec::new() }], texts: Vec::new(), flat: Some(Names::default()) }
    }

    /// Adds a pointer, unless it is there, and returns its number.
    ///
    /// # Errors
    /// It is no JSON pointer; the reason in words.
    pub fn add(&mut self, pointer: &str) -> Result<usize, String> {
        let (mut at, tokens) = (0, tokens(pointer)?);
        let name = tokens.first().filter(|_| tokens.len() == 1).cloned();
        for token in tokens {
            let known = self.nodes[at].children.iter().find(|c| *self.nodes[**c as usize].name == *token.as_bytes());
            at = match known {
                Some(c) => *c as usize,
                None => {
                    let index = token.parse().ok().filter(|i: &u32| i.to_string() == token);
                    self.nodes.push(Node { name: token.into_bytes().into(), index, slot: None, children: Vec::new() });
                    let new = self.nodes.len() - 1;
                    self.nodes[at].children.push(new as u32);
                    new
                }
            };
        }
        let slot = *self.nodes[at].slot.get_or_insert(self.texts.len() as u32) as usize;
        if slot == self.texts.len() {
            self.texts.push(pointer.into());
            self.flat = self.flat.take().zip(name).map(|(mut flat, name)| {
                flat.add(name.as_bytes(), slot);
                flat
            });
        }
        Ok(slot)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The pointer of this number.
    pub fn text(&self, i: usize) -> &str {
        &self.texts[i]
    }

    /// Finds them all in one JSON text; of members with the same name the last one counts. Afterwards `spots` has one
    /// entry a pointer.
    #[inline]
    pub fn find(&self, text: &[u8], spots: &mut Vec<Spot>) {
        spots.clear();
        spots.resize(self.texts.len(), Spot::ABSENT);
        if spots.is_empty() || self.flat.as_ref().is_some_and(|flat| flat.find(text, spots)) {
            return;
        }
        self.find_any(text, spots);
    }

    /// The same for any text and pointers.
    pub(crate) fn find_any(&self, text: &[u8], spots: &mut Vec<Spot>) {
        spots.clear();
        spots.resize(self.texts.len(), Spot::ABSENT);
        let at = skip_blanks(text, 0);
        self.value(text, at, 0, spots);
    }

    /// The value at `at`, which node leads to; returns where it ends.
    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn value(&self, b: &[u8], at: usize, node: u32, spots: &mut [Spot]) -> Option<usize> {
        let n = &self.nodes[node as usize];
        let inner = match *b.get(at)? {
            b'{' if !n.children.is_empty() => Some((Kind::Object, self.object(b, at + 1, n, spots)?)),
            b'[' if !n.children.is_empty() => Some((Kind::Array, self.array(b, at + 1, n, spots)?)),
            _ => None,
        };
        let (spot, end) = match inner {
            Some((kind, end)) => (Spot { at: at as u32, len: (end - at) as u32, kind }, end),
            None => skip(b, at)?,
        };
        if let Some(slot) = n.slot {
            spots[slot as usize] = spot;
        }
        Some(end)
    }

    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn object(&self, b: &[u8], mut at: usize, node: &Node, spots: &mut [Spot]) -> Option<usize> {
        loop {
            at = skip_blanks(b, at);
            match *b.get(at)? {
                b'"' => {}
                b'}' => return Some(at + 1),
                b',' => {
                    at += 1;
                    continue;
                }
                _ => return None,
            }
            let (end, escaped) = skip_string(b, at + 1)?;
            let name = &b[at + 1..end];
            at = skip_blanks(b, end + 1);
            if *b.get(at)? != b':' {
                return None;
            }
            at = skip_blanks(b, at + 1);
            at = match self.child(node, name, escaped) {
                Some(c) => {
                    self.forget(c, spots);
                    self.value(b, at, c, spots)?
                }
                None => skip(b, at)?.1,
            };
        }
    }

    #[inline(always)]
    fn child(&self, node: &Node, name: &[u8], escaped: bool) -> Option<u32> {
        if escaped {
            return self.child_escaped(node, name);
        }
        node.children.iter().copied().find(|c| same(&self.nodes[*c as usize].name, name))
    }

    #[cold]
    fn child_escaped(&self, node: &Node, name: &[u8]) -> Option<u32> {
        let mut plain = Vec::new();
        json::unescape(name, &mut plain);
        node.children.iter().copied().find(|c| *self.nodes[*c as usize].name == *plain)
    }

    /// Forgets what an earlier member of the same name had below it.
    #[inline(always)]
    fn forget(&self, node: u32, spots: &mut [Spot]) {
        for c in &self.nodes[node as usize].children {
            if let Some(slot) = self.nodes[*c as usize].slot {
                spots[slot as usize] = Spot::ABSENT;
            }
            self.forget_deep(*c, spots);
        }
    }

    fn forget_deep(&self, node: u32, spots: &mut [Spot]) {
        if !self.nodes[node as usize].children.is_empty() {
            self.forget(node, spots);
        }
    }

    #[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
    fn array(&self, b: &[u8], mut at: usize, node: &Node, spots: &mut [Spot]) -> Option<usize> {
        let mut i = 0;
        loop {
            at = skip_blanks(b, at);
            match *b.get(at)? {
                b']' => return Some(at + 1),
                b',' => {
                    at += 1;
                    continue;
                }
                _ => {}
            }
            let child = node.children.iter().copied().find(|c| self.nodes[*c as usize].index == Some(i));
            at = match child {
                Some(c) => self.value(b, at, c, spots)?,
                None => skip(b, at)?.1,
            };
            i += 1;
        }
    }
}

/// The tokens of a JSON pointer, escapes resolved.
///
/// # Errors
/// It is none; the reason in words.
pub fn tokens(pointer: &str) -> Result<Vec<String>, String> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(rest) = pointer.strip_prefix('/') else {
        return Err(format!("{pointer:?} is no JSON pointer: it does not begin with /"));
    };
    let unescape = |token: &str| {
        if token.replace("~0", "").replace("~1", "").contains('~') {
            return Err(format!("{pointer:?} is no JSON pointer: ~ stands only in ~0 and ~1"));
        }
        Ok(token.replace("~1", "/").replace("~0", "~"))
    };
    rest.split('/').map(unescape).collect()
}

#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    // Names are short: no call is cheaper than one.
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// Sixteen bytes a step in WebAssembly, byte by byte elsewhere: up to the first byte that counts, or to what is left behind the
/// last whole step.
macro_rules! find_first {
    ($(#[$doc:meta])* $name:ident, |$v:ident| $simd:expr, |$c:ident| $scalar:expr) => {
        $(#[$doc])*
        #[cfg(target_arch = "wasm32")]
        #[target_feature(enable = "simd128")]
        #[inline]
        fn $name(b: &[u8], mut at: usize) -> usize {
            use core::arch::wasm32::*;
            while let Some(chunk) = b.get(at..at + 16) {
                // SAFETY: the chunk has 16 bytes, and v128_load needs no alignment.
                let $v = unsafe { v128_load(chunk.as_ptr().cast()) };
                let hits = i8x16_bitmask($simd);
                if hits != 0 {
                    return at + hits.trailing_zeros() as usize;
                }
                at += 16;
            }
            at
        }

        $(#[$doc])*
        #[cfg(not(target_arch = "wasm32"))]
        #[inline]
        fn $name(b: &[u8], at: usize) -> usize {
            at + b.get(at..).unwrap_or(b"").iter().take_while(|c| { let $c = **c; !($scalar) }).count()
        }
    };
}

find_first! {
    /// The next quote or backslash.
    next_of_string,
    |v| v128_or(i8x16_eq(v, i8x16_splat(b'"' as i8)), i8x16_eq(v, i8x16_splat(b'\\' as i8))),
    |c| c == b'"' || c == b'\\'
}

find_first! {
    /// The next quote or bracket.
    next_of_nested,
    |v| {
        let folded = v128_or(v, i8x16_splat(0x20));
        let brackets = v128_or(i8x16_eq(folded, i8x16_splat(b'{' as i8)), i8x16_eq(folded, i8x16_splat(b'}' as i8)));
        v128_or(brackets, i8x16_eq(v, i8x16_splat(b'"' as i8)))
    },
    |c| matches!(c, b'"' | b'{' | b'}' | b'[' | b']')
}

#[inline(always)]
pub(crate) fn skip_blanks(b: &[u8], mut at: usize) -> usize {
    while at < b.len() && b[at] <= b' ' {
        at += 1;
    }
    at
}

/// Where the string that begins after the quote ends (at its closing quote), and whether it holds escapes.
#[inline]
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
pub(crate) fn skip_string(b: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut escaped = false;
    loop {
        at = next_of_string(b, at);
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
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
fn skip_nested(b: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0usize;
    loop {
        at = next_of_nested(b, at);
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
#[cfg_attr(target_arch = "wasm32", target_feature(enable = "simd128"))]
pub(crate) fn skip(b: &[u8], at: usize) -> Option<(Spot, usize)> {
    let spot = |kind, from: usize, to: usize| Spot { at: from as u32, len: (to - from) as u32, kind };
    let c = *b.get(at)?;
    let kind = match c {
        b'"' => {
            let (end, escaped) = skip_string(b, at + 1)?;
            return Some((spot(if escaped { Kind::Escaped } else { Kind::String }, at + 1, end), end + 1));
        }
        b'{' | b'[' => {
            let end = skip_nested(b, at)?;
            return Some((spot(if c == b'{' { Kind::Object } else { Kind::Array }, at, end), end));
        }
        b'n' => Kind::Null,
        b't' => Kind::True,
        b'f' => Kind::False,
        b'-' | b'0'..=b'9' => Kind::Number,
        _ => return None,
    };
    let mut end = at + 1;
    while end < b.len() && b[end] > b' ' && !matches!(b[end], b',' | b'}' | b']') {
        end += 1;
    }
    Some((spot(kind, at, end), end))
}

/// The one value of a JSON text.
pub fn whole(text: &[u8]) -> Found<'_> {
    skip(text, skip_blanks(text, 0)).map_or(Found::ABSENT, |(spot, _)| spot.of(text))
}

/// The members of an object in order: name as it lies there (with escapes), whether it has escapes, and value. Ends where
/// the text is no JSON.
pub fn members<'a>(object: &'a [u8]) -> impl Iterator<Item = (&'a [u8], bool, Found<'a>)> {
    let mut at = 1;
    std::iter::from_fn(move || {
        at = skip_blanks(object, at);
        if object.get(at) == Some(&b',') {
            at = skip_blanks(object, at + 1);
        }
        if object.get(at) != Some(&b'"') {
            return None;
        }
        let (end, escaped) = skip_string(object, at + 1)?;
        let name = &object[at + 1..end];
        at = skip_blanks(object, end + 1);
        if *object.get(at)? != b':' {
            return None;
        }
        let (spot, next) = skip(object, skip_blanks(object, at + 1))?;
        at = next;
        Some((name, escaped, spot.of(object)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pointers: &[&str]) -> Vec<String> {
        let mut p = Pointers::new();
        for (i, pointer) in pointers.iter().enumerate() {
            assert_eq!(p.add(pointer), Ok(i));
        }
        let mut spots = Vec::new();
        p.find(text.as_bytes(), &mut spots);
        spots.iter().map(|s| format!("{:?} {}", s.kind, String::from_utf8_lossy(s.raw(text.as_bytes())))).collect()
    }

    #[test]
    fn finds_everything_in_one_pass() {
        let text = r#" { "a" : 1.50 , "b":{"c":"x","d":[10,{"e":true},null]},"long name, really":"a\"b","f":{},"g":[ ] } "#;
        let got = found(text, &["/a", "/b/c", "/b/d/1/e", "/b/d/2", "/b/d", "/long name, really", "/f", "/g", "/no", "/b/no", "", "/a/x"]);
        let want = [
            "Number 1.50",
            "String x",
            "True true",
            "Null null",
            r#"Array [10,{"e":true},null]"#,
            r#"Escaped a\"b"#,
            "Object {}",
            "Array [ ]",
            "Absent ",
            "Absent ",
            &format!("Object {}", text.trim()),
            "Absent ",
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn the_last_duplicate_counts_with_all_that_is_below_it() {
        let text = r#"{"a":{"b":1,"c":{"d":2}},"x":1,"a":{"b":3},"x":"two"}"#;
        assert_eq!(found(text, &["/a/b", "/a/c/d", "/x"]), ["Number 3", "Absent ", "String two"]);
        assert_eq!(found(r#"{"a":{"b":1},"a":7}"#, &["/a/b", "/a"]), ["Absent ", "Number 7"]);
    }

    #[test]
    fn names_with_escapes_and_digits() {
        let text = r#"{"a\/b":1,"~":2,"0":3,"\u0061":{"":4},"l":[[5]]}"#;
        assert_eq!(
            found(text, &["/a~1b", "/~0", "/0", "/a/", "/l/0/0", "/l/00"]),
            ["Number 1", "Number 2", "Number 3", "Number 4", "Number 5", "Absent "]
        );
    }

    #[test]
    fn pointers_are_checked_and_counted_once() {
        let mut p = Pointers::new();
        assert_eq!((p.add("/a"), p.add("/b"), p.add("/a"), p.len()), (Ok(0), Ok(1), Ok(0), 2));
        assert!(p.add("a").unwrap_err().contains("does not begin with /"));
        assert!(p.add("/a~2").unwrap_err().contains("~0 and ~1"));
    }

    #[test]
    fn anything_ends() {
        let text = br#"{"a":{"b":[1,{"c":"x\\"}]},"d":"e"}"#;
        let mut p = Pointers::new();
        let _ = (p.add("/a/b/1/c"), p.add("/d"), p.add("/a"));
        let mut spots = Vec::new();
        for cut in 0..text.len() {
            p.find(&text[..cut], &mut spots);
            for (i, c) in [(cut, b'"'), (cut, b'{'), (cut, b']'), (cut, b'\\'), (cut, 0)] {
                let mut bad = text.to_vec();
                bad[i] = c;
                p.find(&bad, &mut spots);
                assert_eq!(members(&bad).take(99).count() < 99, true);
            }
        }
    }
}
