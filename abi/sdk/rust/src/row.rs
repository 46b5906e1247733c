//! Binary rows: the values of an output's columns, for tables, without text. See abi/README.md, section 16.

use core::num::TryFromIntError;

use crate::manifest::{Port, columns};
use crate::out::{Draft, Out};
use crate::record::Record;
use crate::value::{Kind, Value};

/// What stands for a value in a row.
const NULL: u8 = 0;
/// The value follows.
const VALUE: u8 = 1;
/// The value does not fit its column.
const UNFIT: u8 = 2;
/// Behind a map's key: that was none.
const NO_KEY: u8 = 3;

/// The columns of an output's binary rows: the mark that each row begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns(u32);

impl Columns {
    /// Those that the output of this name declares beside `"rows": 1`. In a `const` a missing one is a compile error.
    pub const fn of(manifest: &str, output: &str) -> Columns {
        let b = manifest.as_bytes();
        let (mut at, end) = columns(b, output.as_bytes());
        let mut h: u32 = 2_166_136_261;
        while at < end {
            let skipped = says_nothing(b, at);
            if skipped > 0 {
                at += skipped;
                continue;
            }
            if b[at] == b'\\' {
                at += 1;
                assert!(b[at] == b'"' || b[at] == b'\\', "the columns have an escape other than of a quote");
            }
            h = (h ^ b[at] as u32).wrapping_mul(16_777_619);
            at += 1;
        }
        Columns(h)
    }
}

/// How many bytes at `at` say nothing of a row's bytes: `not null`, and the unit of a timestamp.
const fn says_nothing(b: &[u8], at: usize) -> usize {
    let words: [&[u8]; 4] = [b" not null", b"(s)", b"(ms)", b"(us)"];
    let mut w = 0;
    while w < words.len() {
        let mut i = 0;
        while i < words[w].len() && at + i < b.len() && b[at + i] == words[w][i] {
            i += 1;
        }
        if i == words[w].len() {
            return i;
        }
        w += 1;
    }
    0
}

/// A binary row in the making: the value of the record that [`Row::emit`] writes. Values are pushed in the order of the
/// columns; the host sets the record aside, code range, if one does not fit its column. Dropping it leaves no trace.
pub struct Row<'o> {
    draft: Draft<'o>,
    at: usize,
}

/// What can be pushed: numbers of the column's own type, `bool`, `&str`, `&[u8]`, and `Option` of each, where `None` is null.
/// A [`Value`] is its string's characters, or null when it is no string. `date` is an `i32` of days, `timestamp` an `i64` of
/// microseconds since 1970, `decimal` an `i32` (up to 9 digits), `i64` (up to 18) or `i128`, times ten to the power of its
/// scale. A number of another type is not cut with `as` but pushed as what `i32::try_from` and the like make of it: if it does
/// not fit, the row is a misfit.
pub trait Cell {
    /// Writes the byte that says that it is there, and the value.
    #[doc(hidden)]
    fn push(&self, draft: &mut Draft<'_>);
}

macro_rules! numbers {
    ($($t:ty),+) => {$(
        impl Cell for $t {
            #[inline(always)]
            fn push(&self, draft: &mut Draft<'_>) {
                let mut cell = [VALUE; size_of::<$t>() + 1];
                cell[1..].copy_from_slice(&self.to_le_bytes());
                draft.put(&cell);
            }
        }
    )+};
}

numbers!(i8, i16, i32, i64, i128, f32, f64);

/// What `try_from` makes of a number.
impl<T: Cell> Cell for Result<T, TryFromIntError> {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        match self {
            Ok(v) => v.push(draft),
            Err(_) => draft.put(&[UNFIT]),
        }
    }
}

impl Cell for bool {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        draft.put(&[VALUE, u8::from(*self)]);
    }
}

impl Cell for &[u8] {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        let [a, b, c, d] = (self.len() as u32).to_le_bytes();
        draft.put(&[VALUE, a, b, c, d]);
        draft.put(self);
    }
}

impl Cell for &str {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        self.as_bytes().push(draft);
    }
}

impl<T: Cell> Cell for Option<T> {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        match self {
            Some(v) => v.push(draft),
            None => draft.put(&[NULL]),
        }
    }
}

impl Cell for Value<'_> {
    #[inline(always)]
    fn push(&self, draft: &mut Draft<'_>) {
        match self.kind() {
            Kind::String => self.raw().push(draft),
            Kind::Escaped => self.unescape().as_str().push(draft),
            _ => draft.put(&[NULL]),
        }
    }
}

impl<'o> Row<'o> {
    #[inline(always)]
    fn open(mut draft: Draft<'o>, columns: Columns) -> Self {
        let at = draft.len();
        let [a, b, c, d] = columns.0.to_le_bytes();
        draft.put(&[1, a, b, c, d]);
        Row { draft, at }
    }

    /// Writes the next value.
    #[inline(always)]
    pub fn push(&mut self, value: impl Cell) -> &mut Self {
        value.push(&mut self.draft);
        self
    }

    /// Writes null.
    #[inline]
    pub fn null(&mut self) -> &mut Self {
        self.draft.put(&[NULL]);
        self
    }

    /// Begins a struct: the values of its fields come next.
    #[inline]
    pub fn structure(&mut self) -> &mut Self {
        self.draft.put(&[VALUE]);
        self
    }

    /// Begins a list of `n` elements, or a map of `n` entries, which come next: of a map a [`Row::key`] and a value each.
    #[inline]
    pub fn count(&mut self, n: usize) -> &mut Self {
        u32::try_from(n).map(|n| n as i32).push(&mut self.draft);
        self
    }

    /// Writes a key of a map. In a row it has another form than that value alone. Null is no key, nor is what does not fit: it
    /// makes the row a misfit.
    pub fn key(&mut self, key: impl Cell) -> &mut Self {
        let at = self.draft.len();
        key.push(&mut self.draft);
        if self.draft.remove(at) != VALUE {
            self.draft.put(&[NO_KEY; 17]); // one of them stands behind the key, whatever its type
        }
        self
    }

    /// Ends the row and writes the record to this output.
    #[inline]
    pub fn emit(self, to: Port) {
        self.draft.finish(self.at, to);
    }
}

impl Out {
    /// Begins a binary row as the new value of this record.
    #[inline]
    pub fn row(&mut self, record: &Record<'_>, columns: Columns) -> Row<'_> {
        self.from(record).row(columns)
    }
}

impl<'o> Draft<'o> {
    /// Begins a binary row as its value.
    #[inline]
    pub fn row(self, columns: Columns) -> Row<'o> {
        Row::open(self, columns)
    }
}
