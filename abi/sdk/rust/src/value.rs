//! JSON values as they lie in a record.

use crate::num;
use crate::reject::{BAD_FIELD, Reject, Result, dead_letter};
use crate::scan;
use std::borrow::Cow;

/// What a JSON value is. The numbers are those of ABI 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The pointer leads nowhere.
    Absent = 0,
    /// `null`
    Null = 1,
    /// `false`
    False = 2,
    /// `true`
    True = 3,
    /// A number, as its exact text.
    Number = 4,
    /// A string without escapes; its text has no quotes.
    String = 5,
    /// A string with escapes; its text has no quotes, and the escapes are still in it.
    Escaped = 6,
    /// An object.
    Object = 7,
    /// An array.
    Array = 8,
}

impl Kind {
    #[inline(always)]
    pub(crate) fn from_bits(bits: u32) -> Kind {
        const KINDS: [Kind; 16] = {
            use Kind::*;
            [Absent, Null, False, True, Number, String, Escaped, Object, Array, Absent, Absent, Absent, Absent, Absent, Absent, Absent]
        };
        KINDS[bits as usize & 15]
    }
}

/// One JSON value: a located field, or one that [`Value::get`] found. Nothing is copied or converted until asked for.
#[derive(Clone, Copy)]
pub struct Value<'a> {
    pub(crate) raw: &'a [u8],
    pub(crate) name: &'a str,
    pub(crate) kind: Kind,
}

impl<'a> Value<'a> {
    pub(crate) const fn absent(name: &'a str) -> Value<'a> {
        Value { raw: b"", name, kind: Kind::Absent }
    }

    /// Reads one JSON text. Absent when the bytes are none.
    pub fn parse(text: &'a [u8]) -> Value<'a> {
        scan::whole(text)
    }

    /// What it is.
    #[inline(always)]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// True when the value is absent or `null`.
    #[inline(always)]
    pub fn is_null(&self) -> bool {
        self.kind as u8 <= Kind::Null as u8
    }

    /// True when it is a string of exactly these characters.
    #[inline(always)]
    pub fn is(&self, text: &str) -> bool {
        match self.kind {
            Kind::String => self.raw == text.as_bytes(),
            Kind::Escaped => self.unescape() == text,
            _ => false,
        }
    }

    /// The bytes as they lie in the record: a string without its quotes, anything else as its JSON text.
    #[inline(always)]
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// An integer of 64 bits, `None` when absent or null.
    ///
    /// # Errors
    /// Anything else, also a number with a fraction or an exponent.
    #[inline]
    pub fn int(&self) -> Result<Option<i64>> {
        if self.kind == Kind::Number
            && let Some(n) = num::parse_int(self.raw)
        {
            return Ok(Some(n));
        }
        self.null_or("a 64-bit integer")
    }

    /// A number times 10^`scale` as an integer of 64 bits, rounded half up; `None` when absent or null.
    ///
    /// # Errors
    /// Not a number, or it does not fit.
    #[inline]
    pub fn scaled(&self, scale: u32) -> Result<Option<i64>> {
        if self.kind == Kind::Number
            && let Some(n) = num::parse_scaled(self.raw, scale)
        {
            return Ok(Some(n));
        }
        self.null_or("a number in range")
    }

    /// A boolean, `None` when absent or null.
    ///
    /// # Errors
    /// Anything else.
    #[inline]
    pub fn bool(&self) -> Result<Option<bool>> {
        match self.kind {
            Kind::True => Ok(Some(true)),
            Kind::False => Ok(Some(false)),
            _ => self.null_or("a boolean"),
        }
    }

    /// A string's characters, `None` when absent or null. Copies only when there are escapes.
    ///
    /// # Errors
    /// Anything else.
    #[inline]
    pub fn str(&self) -> Result<Option<Cow<'a, str>>> {
        match self.kind {
            Kind::String => Ok(Some(String::from_utf8_lossy(self.raw))),
            Kind::Escaped => Ok(Some(Cow::Owned(self.unescape()))),
            _ => self.null_or("a string"),
        }
    }

    /// The value itself if it is a string or null; to pass a string on, escapes and all.
    ///
    /// # Errors
    /// Anything else.
    #[inline]
    pub fn text(&self) -> Result<Value<'a>> {
        match self.kind {
            Kind::String | Kind::Escaped | Kind::Null | Kind::Absent => Ok(*self),
            _ => Err(self.wrong("a string")),
        }
    }

    /// The member of an object, absent when there is none. The last duplicate counts. Scans the object.
    pub fn get(&self, name: &'a str) -> Value<'a> {
        let mut found = Value::absent(name);
        for (key, value) in self.members() {
            if key.is(name) {
                found = Value { name, ..value };
            }
        }
        found
    }

    /// The members of an object in order, as (name, value); none for anything else. Stops where the text is no JSON.
    pub fn members(&self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'a> {
        scan::Members::new(if self.kind == Kind::Object { self.raw } else { b"" })
    }

    /// The elements of an array in order; none for anything else. Stops where the text is no JSON.
    pub fn elements(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        scan::Elements::new(if self.kind == Kind::Array { self.raw } else { b"" })
    }

    pub(crate) fn unescape(&self) -> String {
        scan::unescape(self.raw)
    }

    #[inline(always)]
    fn null_or<T>(&self, wanted: &str) -> Result<Option<T>> {
        if self.is_null() { Ok(None) } else { Err(self.wrong(wanted)) }
    }

    #[cold]
    fn wrong(&self, wanted: &str) -> Reject {
        let name = if self.name.is_empty() { "the value" } else { self.name };
        let text = String::from_utf8_lossy(&self.raw[..self.raw.len().min(64)]);
        dead_letter(BAD_FIELD, format!("{name} is not {wanted}: {text}"))
    }
}
