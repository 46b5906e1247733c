//! The expression language of the stock transforms; EXPRESSIONS.md describes it to its users.
//!
//! An expression is compiled once, when the transform starts. For a record all its pointers are found in one pass over the
//! value; nothing is allocated.

mod call;
mod eval;
mod functions;
mod lex;
mod parse;
#[cfg(test)]
mod tests;

use crate::config::refuse;
use crate::decimal::Dec;
use crate::json;
use crate::order;
use crate::scan::{Found, Pointers, Spot};
use crate::time::Unit;
use functions::Fun;
use wasmill::{BAD_FIELD, Out, Record, Reject, Result, dead_letter};

/// The code of the dead letter of a record whose value is not JSON.
pub const NOT_JSON: u16 = 1;

/// A mistake and the character where it is.
#[derive(Debug)]
struct Wrong {
    at: u32,
    what: String,
}

impl Wrong {
    fn new(at: u32, what: impl Into<String>) -> Wrong {
        Wrong { at, what: what.into() }
    }
}

/// The number of a node.
type Id = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compare {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug)]
enum Node {
    Null,
    Bool(bool),
    Num(Dec),
    Text(Box<[u8]>),
    Field(u8, u32),
    IsNull(Id),
    IsAbsent(u8, u32),
    Not(Id),
    And(Id, Id),
    Or(Id, Id),
    Compare(Compare, Id, Id),
    In(Id, Box<[Id]>),
    Add(Id, Id),
    Sub(Id, Id),
    Mul(Id, Id),
    Rem(Id, Id),
    Neg(Id),
    Case(Box<[(Id, Id)]>, Id),
    FloorTime(Unit, Id),
    Call(Fun, Box<[Id]>),
}

/// A node and where its text begins.
struct Item {
    node: Node,
    at: u32,
}

/// A compiled expression of a [`Program`].
#[derive(Clone, Copy, Debug)]
pub struct Expr {
    root: Id,
    name: u32,
}

/// What an expression's value is, as far as that is known before there is a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Only a record will tell.
    Any,
    /// true or false
    Bool,
    /// An exact number.
    Number,
    /// A string.
    Text,
}

impl Type {
    fn name(self) -> &'static str {
        match self {
            Type::Any => "anything",
            Type::Bool => "true or false",
            Type::Number => "a number",
            Type::Text => "a string",
        }
    }
}

/// The expressions of one transform. They read one value, or two that are told apart by names (`left`, `right`).
pub struct Program {
    items: Vec<Item>,
    names: Vec<String>,
    scopes: Vec<String>,
    pointers: [Pointers; 2],
}

impl Default for Program {
    fn default() -> Self {
        Program::new()
    }
}

impl Program {
    /// Expressions over one value.
    pub fn new() -> Program {
        Program { items: Vec::new(), names: Vec::new(), scopes: Vec::new(), pointers: [Pointers::new(), Pointers::new()] }
    }

    /// Expressions over two values, whose pointers begin with these names.
    pub fn over(left: &str, right: &str) -> Program {
        Program { scopes: vec![left.into(), right.into()], ..Program::new() }
    }

    /// Compiles a text; `name` is how errors name it.
    ///
    /// # Errors
    /// It is no expression, or not of the type `wanted`; the reason names the place.
    pub fn compile(&mut self, name: &str, text: &str, wanted: Type) -> Result<Expr> {
        let root = parse::parse(self, text, wanted).map_err(|w| refuse(format!("{name}, column {}: {}", w.at + 1, w.what)))?;
        self.names.push(name.into());
        Ok(Expr { root, name: self.names.len() as u32 - 1 })
    }

    /// The pointers that are read of a value: the first, or the second.
    pub fn pointers(&self, value: usize) -> impl Iterator<Item = &str> {
        let pointers = &self.pointers[value];
        (0..pointers.len()).map(|i| pointers.text(i))
    }

    /// Finds what the expressions read of a record.
    ///
    /// # Errors
    /// Its value is not JSON.
    #[inline]
    pub fn row<'a>(&'a self, work: &'a mut Work, record: &Record<'a>, out: &Out) -> Result<Row<'a>> {
        self.record(work, record, out.batch().time)
    }

    /// The same with the batch's time in microseconds, where there is no output at hand.
    ///
    /// # Errors
    /// Its value is not JSON.
    #[inline]
    pub fn record<'a>(&'a self, work: &'a mut Work, record: &Record<'a>, batch_time: i64) -> Result<Row<'a>> {
        if !record.is_json() {
            return Err(dead_letter(NOT_JSON, "the value is not JSON"));
        }
        let value = record.value().unwrap_or(b"null");
        let about = About { record: Some(*record), event_time: record.event_time(), batch_time };
        Ok(self.rows(work, [Some(value), None], about))
    }

    /// Finds what the expressions read of one or two JSON values; of one that is not there, everything is absent.
    #[inline]
    pub fn rows<'a>(&'a self, work: &'a mut Work, texts: [Option<&'a [u8]>; 2], about: About<'a>) -> Row<'a> {
        for (i, pointers) in self.pointers.iter().enumerate() {
            if i == 0 || !pointers.is_empty() {
                pointers.find(texts[i].unwrap_or(b""), &mut work.spots[i]);
            }
        }
        work.text.clear();
        let texts = [texts[0].unwrap_or(b""), texts[1].unwrap_or(b"")];
        Row { program: self, texts, spots: [&work.spots[0], &work.spots[1]], about, scratch: &mut work.text }
    }
}

/// Memory that is used again for each record.
#[derive(Default)]
pub struct Work {
    spots: [Vec<Spot>; 2],
    text: Vec<u8>,
}

/// What expressions can ask beside the value. Times are microseconds since 1970.
#[derive(Clone, Copy, Default)]
pub struct About<'a> {
    /// For its key and headers.
    pub record: Option<Record<'a>>,
    /// The event time.
    pub event_time: Option<i64>,
    /// The batch's time.
    pub batch_time: i64,
}

/// A string: bytes of the record or the program, or of the scratch memory.
#[derive(Clone, Copy, Debug)]
enum Text<'a> {
    Kept(&'a [u8]),
    Made(u32, u32),
}

/// The value of an expression.
#[derive(Clone, Copy, Debug)]
enum Val<'a> {
    Null,
    Bool(bool),
    Num(Dec),
    Text(Text<'a>),
    /// A number, string, object or array of the record as it lies there.
    Raw(Found<'a>),
}

/// A record that expressions are evaluated over.
pub struct Row<'a> {
    program: &'a Program,
    texts: [&'a [u8]; 2],
    spots: [&'a [Spot]; 2],
    about: About<'a>,
    scratch: &'a mut Vec<u8>,
}

impl<'a> Row<'a> {
    /// Whether an expression is true; null is not.
    ///
    /// # Errors
    /// The record has a value that the expression cannot take.
    #[inline]
    pub fn is_true(&mut self, e: Expr) -> Result<bool> {
        self.truth(e.root).map(|t| t == Some(true)).map_err(|w| self.explain(e, &w))
    }

    /// Appends the value as JSON text: what is passed on unchanged is written as it was, null for what is absent.
    ///
    /// # Errors
    /// As for [`Row::is_true`].
    #[inline]
    pub fn write(&mut self, e: Expr, to: &mut Vec<u8>) -> Result {
        match self.eval(e.root).map_err(|w| self.explain(e, &w))? {
            Val::Null => to.extend_from_slice(b"null"),
            Val::Bool(b) => to.extend_from_slice(if b { b"true" } else { b"false" }),
            Val::Num(n) => n.write(to),
            Val::Raw(found) => found.write(to),
            Val::Text(t) => json::string(to, self.bytes(t)),
        }
        Ok(())
    }

    /// Appends a string's characters, and anything else as JSON; false, and nothing, when null.
    ///
    /// # Errors
    /// As for [`Row::is_true`].
    pub fn write_text(&mut self, e: Expr, to: &mut Vec<u8>) -> Result<bool> {
        let text = self.piece_of(e.root).map_err(|w| self.explain(e, &w))?;
        if let Some(t) = text {
            to.extend_from_slice(self.bytes(t));
        }
        Ok(text.is_some())
    }

    /// Appends the value so that equal values give equal bytes, and null none: false, and nothing is appended. Numbers of
    /// equal value are equal (1.0 and 1), also when they are written differently. For keys made by a transform.
    ///
    /// # Errors
    /// As for [`Row::is_true`].
    pub fn write_equal(&mut self, e: Expr, to: &mut Vec<u8>) -> Result<bool> {
        let done = self.equal_bytes(e.root, to);
        done.map_err(|w| self.explain(e, &w))
    }

    /// Appends the value as bytes whose order is that of the values (see [`order`]); downwards, when asked to. Null is the last.
    ///
    /// # Errors
    /// As for [`Row::is_true`].
    pub fn write_order(&mut self, e: Expr, down: bool, to: &mut Vec<u8>) -> Result {
        let start = to.len();
        let there = self.order_bytes(e.root, to).map_err(|w| self.explain(e, &w))?;
        if there && down {
            order::reverse(to, start);
        }
        Ok(())
    }

    /// The dead letter of a mistake.
    #[cold]
    fn explain(&self, e: Expr, w: &Wrong) -> Reject {
        dead_letter(BAD_FIELD, format!("{}, column {}: {}", self.program.names[e.name as usize], w.at + 1, w.what))
    }
}
