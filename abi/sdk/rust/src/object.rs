//! Writes JSON: members in order, strings escaped, numbers exact.

use crate::manifest::Port;
use crate::num::{self, Decimal, NUMBER_ROOM};
use crate::out::Draft;
use crate::value::{Kind, Value};
use std::borrow::Cow;

/// What can be written as a JSON value: integers, booleans, strings, [`Decimal`], a [`Value`] of an input as it lies there,
/// and `Option` of these, whose `None` is `null`.
pub trait ToJson: sealed::Put {}

pub(crate) mod sealed {
    use crate::out::Draft;

    /// Appends itself to a draft.
    pub trait Put {
        /// Appends JSON text.
        fn put(&self, to: &mut Draft<'_>);
    }
}

use sealed::Put;

/// A JSON object in the making: the value of the record that [`Object::emit`] writes. Dropping it leaves no trace.
pub struct Object<'o> {
    draft: Draft<'o>,
    at: usize,
    comma: bool,
}

impl<'o> Object<'o> {
    #[inline(always)]
    pub(crate) fn open(mut draft: Draft<'o>) -> Self {
        let at = draft.len();
        draft.put(b"{");
        Object { draft, at, comma: false }
    }

    /// Goes on after an object's text without its last brace.
    #[inline(always)]
    pub(crate) fn reopen(mut draft: Draft<'o>, text: &[u8]) -> Self {
        let at = draft.len();
        draft.put(text);
        Object { draft, at, comma: text.last() != Some(&b'{') }
    }

    /// Adds a member. Names are not checked for duplicates.
    #[inline(always)]
    pub fn set(&mut self, name: &str, value: impl ToJson) -> &mut Self {
        self.name(name);
        value.put(&mut self.draft);
        self
    }

    /// Adds a member that is an object.
    pub fn object(&mut self, name: &str, fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.name(name);
        self.nest(b'{', b'}', fill)
    }

    /// Adds a member that is an array.
    pub fn array(&mut self, name: &str, fill: impl FnOnce(&mut List<'_, 'o>)) -> &mut Self {
        self.name(name);
        self.nest(b'[', b']', |o| fill(&mut List(o)))
    }

    /// Ends the object and writes the record to this output.
    #[inline]
    pub fn emit(mut self, to: Port) {
        self.draft.put(b"}");
        self.draft.port(to);
        self.draft.finish(self.at);
    }

    #[inline(always)]
    fn name(&mut self, name: &str) {
        // Names are short and mostly constant: a plain loop vanishes where one over words would stay.
        let special = name.as_bytes().iter().fold(false, |s, &c| s | (c < 0x20) | (c == b'"') | (c == b'\\'));
        if special {
            self.separate();
            name.put(&mut self.draft);
            self.draft.put(b":");
            return;
        }
        self.draft.reserve(name.len() + 4);
        self.draft.write(if self.comma { b",\"" as &[u8] } else { b"\"" });
        self.comma = true;
        self.draft.write(name.as_bytes());
        self.draft.write(b"\":");
    }

    #[inline(always)]
    fn separate(&mut self) {
        if self.comma {
            self.draft.put(b",");
        }
        self.comma = true;
    }

    fn nest(&mut self, open: u8, close: u8, fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.draft.put(&[open]);
        self.comma = false;
        fill(self);
        self.draft.put(&[close]);
        self.comma = true;
        self
    }
}

/// A JSON array in the making.
pub struct List<'a, 'o>(&'a mut Object<'o>);

impl<'o> List<'_, 'o> {
    /// Adds an element.
    pub fn push(&mut self, value: impl ToJson) -> &mut Self {
        self.0.separate();
        value.put(&mut self.0.draft);
        self
    }

    /// Adds an element that is an object.
    pub fn object(&mut self, fill: impl FnOnce(&mut Object<'o>)) -> &mut Self {
        self.0.separate();
        self.0.nest(b'{', b'}', fill);
        self
    }

    /// Adds an element that is an array.
    pub fn array(&mut self, fill: impl FnOnce(&mut List<'_, 'o>)) -> &mut Self {
        self.0.separate();
        self.0.nest(b'[', b']', |o| fill(&mut List(o)));
        self
    }
}

/// True when a string's bytes can stand in JSON as they are.
#[inline(always)]
fn plain(bytes: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let (words, rest) = bytes.as_chunks::<8>();
    let special = |w: u64| {
        let (q, s) = (w ^ (ONES * b'"' as u64), w ^ (ONES * b'\\' as u64));
        (w.wrapping_sub(ONES * 0x20) & !w | q.wrapping_sub(ONES) & !q | s.wrapping_sub(ONES) & !s) & (ONES << 7)
    };
    words.iter().all(|w| special(u64::from_le_bytes(*w)) == 0) && rest.iter().all(|&c| c >= 0x20 && c != b'"' && c != b'\\')
}

#[inline(always)]
fn quote(to: &mut Draft<'_>, text: &[u8]) {
    to.reserve(text.len() + 2);
    to.write(b"\"");
    to.write(text);
    to.write(b"\"");
}

/// Appends a string's characters, escaped where JSON needs it.
#[cold]
fn escape(to: &mut Draft<'_>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    for &c in text.as_bytes() {
        match c {
            b'"' | b'\\' => to.put(&[b'\\', c]),
            b'\n' => to.put(b"\\n"),
            b'\r' => to.put(b"\\r"),
            b'\t' => to.put(b"\\t"),
            0..0x20 => to.put(&[b'\\', b'u', b'0', b'0', HEX[usize::from(c >> 4)], HEX[usize::from(c & 15)]]),
            _ => to.put(&[c]),
        }
    }
}

impl Put for str {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        if plain(self.as_bytes()) {
            return quote(to, self.as_bytes());
        }
        to.put(b"\"");
        escape(to, self);
        to.put(b"\"");
    }
}

impl Put for i64 {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        let (buf, at) = num::digits(self.unsigned_abs());
        to.reserve(NUMBER_ROOM);
        if *self < 0 {
            to.write(b"-");
        }
        to.write(&buf[at..]);
    }
}

impl Put for Decimal {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        let (mut buf, at) = num::digits(self.unscaled.unsigned_abs());
        let point = NUMBER_ROOM - self.scale.min(18) as usize;
        let at = at.min(point - 1);
        to.reserve(NUMBER_ROOM);
        if self.unscaled < 0 {
            to.write(b"-");
        }
        to.write(&buf[at..point]);
        if point < NUMBER_ROOM {
            buf[point - 1] = b'.';
            to.write(&buf[point - 1..]);
        }
    }
}

impl Put for bool {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        to.put(if *self { b"true" as &[u8] } else { b"false" });
    }
}

impl Put for Value<'_> {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        match self.kind {
            Kind::Absent => to.put(b"null"),
            Kind::String | Kind::Escaped => quote(to, self.raw),
            _ => to.put(self.raw),
        }
    }
}

impl<T: Put> Put for Option<T> {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        match self {
            Some(v) => v.put(to),
            None => to.put(b"null"),
        }
    }
}

impl<T: Put + ?Sized> Put for &T {
    #[inline]
    fn put(&self, to: &mut Draft<'_>) {
        (**self).put(to);
    }
}

macro_rules! forward {
    ($($t:ty => |$v:ident| $e:expr;)*) => {$(
        impl Put for $t {
            #[inline]
            fn put(&self, to: &mut Draft<'_>) {
                let $v = self;
                ($e).put(to);
            }
        }
        impl ToJson for $t {}
    )*};
}

forward! {
    i32 => |v| i64::from(*v);
    u32 => |v| i64::from(*v);
    u16 => |v| i64::from(*v);
    String => |v| v.as_str();
    Cow<'_, str> => |v| v.as_ref();
}

impl ToJson for str {}
impl ToJson for i64 {}
impl ToJson for bool {}
impl ToJson for Decimal {}
impl ToJson for Value<'_> {}
impl<T: ToJson> ToJson for Option<T> {}
impl<T: ToJson + ?Sized> ToJson for &T {}
