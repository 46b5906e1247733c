//! Operators over one record.

use super::{Compare, Id, Node, Row, Text, Val, Wrong};
use crate::decimal::Dec;
use crate::json;
use crate::order;
use crate::scan::Found;
use crate::time;
use std::cmp::Ordering;
use wasmill::Kind;

impl<'a> Row<'a> {
    #[inline(always)]
    fn node(&self, id: Id) -> &'a Node {
        &self.program.items[id as usize].node
    }

    #[inline(always)]
    fn found(&self, scope: u8, slot: u32) -> Found<'a> {
        let scope = usize::from(scope);
        self.spots[scope][slot as usize].of(self.texts[scope])
    }

    /// A mistake at a node.
    #[cold]
    pub(super) fn wrong(&self, id: Id, what: impl Into<String>) -> Wrong {
        Wrong::new(self.program.items[id as usize].at, what)
    }

    /// That a value is not what a node needs.
    #[cold]
    fn not_a(&self, id: Id, v: &Val<'a>, wanted: &str) -> Wrong {
        let mut text = Vec::new();
        match v {
            Val::Null => text.extend_from_slice(b"null"),
            Val::Bool(b) => text.extend_from_slice(if *b { b"true" } else { b"false" }),
            Val::Num(n) => n.write(&mut text),
            Val::Raw(found) => found.write(&mut text),
            Val::Text(t) => json::string(&mut text, self.bytes(*t)),
        }
        let text = String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned();
        match *self.node(id) {
            Node::Field(scope, slot) => {
                let scope = usize::from(scope);
                let name = self.program.scopes.get(scope).map_or("", String::as_str);
                let pointer = self.program.pointers[scope].text(slot as usize);
                self.wrong(id, format!("{name}{pointer} is {text}, where {wanted} is needed"))
            }
            _ => self.wrong(id, format!("this is {text}, where {wanted} is needed")),
        }
    }

    /// The bytes of a string.
    #[inline(always)]
    pub(super) fn bytes(&self, t: Text<'a>) -> &[u8] {
        match t {
            Text::Kept(b) => b,
            Text::Made(from, to) => &self.scratch[from as usize..to as usize],
        }
    }

    /// The value of a node.
    pub(super) fn eval(&mut self, id: Id) -> Result<Val<'a>, Wrong> {
        Ok(match self.node(id) {
            Node::Null => Val::Null,
            Node::Bool(b) => Val::Bool(*b),
            Node::Num(n) => Val::Num(*n),
            Node::Text(t) => Val::Text(Text::Kept(t)),
            Node::Field(scope, slot) => {
                let found = self.found(*scope, *slot);
                match found.kind {
                    Kind::Absent | Kind::Null => Val::Null,
                    Kind::True => Val::Bool(true),
                    Kind::False => Val::Bool(false),
                    _ => Val::Raw(found),
                }
            }
            Node::Add(a, b) => self.arithmetic(id, *a, *b, Dec::add)?,
            Node::Sub(a, b) => self.arithmetic(id, *a, *b, Dec::sub)?,
            Node::Mul(a, b) => self.arithmetic(id, *a, *b, Dec::mul)?,
            Node::Rem(a, b) => {
                let divisor = *b;
                let (Some(x), Some(y)) = (self.num(*a)?, self.num(divisor)?) else {
                    return Ok(Val::Null);
                };
                self.divided(id, divisor, y, x.remainder(y))?
            }
            Node::Neg(a) => match self.num(*a)? {
                None => Val::Null,
                Some(n) => Val::Num(n.neg().ok_or_else(|| self.too_large(id))?),
            },
            Node::Case(arms, otherwise) => {
                for (when, then) in arms {
                    if self.truth(*when)? == Some(true) {
                        return self.eval(*then);
                    }
                }
                return self.eval(*otherwise);
            }
            Node::FloorTime(unit, a) => match self.ms(*a)? {
                None => Val::Null,
                Some(t) => Val::Num(Dec::int(unit.floor(t))),
            },
            Node::Call(fun, args) => return self.call(id, *fun, args),
            _ => self.truth(id)?.map_or(Val::Null, Val::Bool),
        })
    }

    #[inline(always)]
    fn arithmetic(&mut self, id: Id, a: Id, b: Id, op: impl Fn(Dec, Dec) -> Option<Dec>) -> Result<Val<'a>, Wrong> {
        let (Some(x), Some(y)) = (self.num(a)?, self.num(b)?) else {
            return Ok(Val::Null);
        };
        op(x, y).map(Val::Num).ok_or_else(|| self.too_large(id))
    }

    #[cold]
    pub(super) fn too_large(&self, id: Id) -> Wrong {
        self.wrong(id, "the result needs more than 38 digits")
    }

    /// The result of a division.
    pub(super) fn divided(&self, id: Id, divisor: Id, by: Dec, result: Option<Dec>) -> Result<Val<'a>, Wrong> {
        match result {
            Some(n) => Ok(Val::Num(n)),
            None if by.m == 0 => Err(self.wrong(divisor, "a division by zero")),
            None => Err(self.too_large(id)),
        }
    }

    /// True, false or null.
    pub(super) fn truth(&mut self, id: Id) -> Result<Option<bool>, Wrong> {
        Ok(match self.node(id) {
            Node::And(a, b) => match self.truth(*a)? {
                Some(false) => Some(false),
                a => match (a, self.truth(*b)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
            },
            Node::Or(a, b) => match self.truth(*a)? {
                Some(true) => Some(true),
                a => match (a, self.truth(*b)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                },
            },
            Node::Not(a) => self.truth(*a)?.map(|t| !t),
            Node::Compare(op, a, b) => self.compare(id, *op, *a, *b)?,
            Node::In(a, list) => self.is_in(*a, list)?,
            Node::IsNull(a) => Some(matches!(self.eval(*a)?, Val::Null)),
            Node::IsAbsent(scope, slot) => Some(self.found(*scope, *slot).kind == Kind::Absent),
            _ => match self.eval(id)? {
                Val::Null => None,
                Val::Bool(b) => Some(b),
                v => return Err(self.not_a(id, &v, "true or false")),
            },
        })
    }

    fn compare(&mut self, id: Id, op: Compare, a: Id, b: Id) -> Result<Option<bool>, Wrong> {
        let x = self.eval(a)?;
        if let Val::Null = x {
            return Ok(None);
        }
        let y = self.eval(b)?;
        let Some(order) = self.order(x, a, y, b)? else {
            return Ok(None);
        };
        Ok(Some(match op {
            Compare::Equal => order == Ordering::Equal,
            Compare::Unequal => order != Ordering::Equal,
            _ if matches!(x, Val::Bool(_)) => return Err(self.wrong(id, "true and false are only equal or not")),
            Compare::Less => order == Ordering::Less,
            Compare::LessEqual => order != Ordering::Greater,
            Compare::Greater => order == Ordering::Greater,
            Compare::GreaterEqual => order != Ordering::Less,
        }))
    }

    fn is_in(&mut self, a: Id, list: &'a [Id]) -> Result<Option<bool>, Wrong> {
        let x = self.eval(a)?;
        let mut unknown = matches!(x, Val::Null);
        if unknown {
            return Ok(None);
        }
        for b in list {
            let y = self.eval(*b)?;
            match self.order(x, a, y, *b)? {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { None } else { Some(false) })
    }

    /// Which of two values is larger; `None` when one is null.
    pub(super) fn order(&mut self, x: Val<'a>, a: Id, y: Val<'a>, b: Id) -> Result<Option<Ordering>, Wrong> {
        match (x, y) {
            (Val::Null, _) | (_, Val::Null) => Ok(None),
            (Val::Bool(x), Val::Bool(y)) => Ok(Some(x.cmp(&y))),
            (Val::Raw(Found { kind: Kind::String, raw }), Val::Text(Text::Kept(t))) => Ok(Some(raw.cmp(t))),
            _ if is_number(&x) && is_number(&y) => Ok(Some(self.to_num(x, a)?.order(self.to_num(y, b)?))),
            _ if is_text(&x) && is_text(&y) => {
                let (x, y) = (self.to_text(x, a)?, self.to_text(y, b)?);
                Ok(Some(self.bytes(x).cmp(self.bytes(y))))
            }
            // The field is to blame, not the constant that it is compared with.
            _ if matches!(self.node(a), Node::Field(..)) && kind(&y) != OTHER => Err(self.not_a(a, &x, kind(&y))),
            _ if kind(&x) != OTHER => Err(self.not_a(b, &y, kind(&x))),
            _ => Err(self.not_a(a, &x, OTHER)),
        }
    }

    /// A number; `None` when null.
    #[inline]
    pub(super) fn num(&mut self, id: Id) -> Result<Option<Dec>, Wrong> {
        match self.eval(id)? {
            Val::Null => Ok(None),
            v => self.to_num(v, id).map(Some),
        }
    }

    #[inline]
    fn to_num(&self, v: Val<'a>, id: Id) -> Result<Dec, Wrong> {
        match v {
            Val::Num(n) => Ok(n),
            Val::Raw(Found { kind: Kind::Number, raw }) => Dec::parse(raw).ok_or_else(|| self.not_a(id, &v, "a number of at most 38 digits")),
            v => Err(self.not_a(id, &v, "a number")),
        }
    }

    /// An integer of 64 bits; `None` when null.
    pub(super) fn int(&mut self, id: Id) -> Result<Option<i64>, Wrong> {
        let Some(n) = self.num(id)? else {
            return Ok(None);
        };
        n.to_i64().map(Some).ok_or_else(|| self.not_a(id, &Val::Num(n), "an integer of 64 bits"))
    }

    /// A string; `None` when null.
    #[inline]
    pub(super) fn text(&mut self, id: Id) -> Result<Option<Text<'a>>, Wrong> {
        match self.eval(id)? {
            Val::Null => Ok(None),
            v => self.to_text(v, id).map(Some),
        }
    }

    pub(super) fn to_text(&mut self, v: Val<'a>, id: Id) -> Result<Text<'a>, Wrong> {
        match v {
            Val::Text(t) => Ok(t),
            Val::Raw(Found { kind: Kind::String, raw }) => Ok(Text::Kept(raw)),
            Val::Raw(Found { kind: Kind::Escaped, raw }) => Ok(self.make(|to| json::unescape(raw, to))),
            v => Err(self.not_a(id, &v, "a string")),
        }
    }

    /// A string in scratch memory.
    #[inline]
    pub(super) fn make(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Text<'a> {
        let from = self.scratch.len() as u32;
        write(self.scratch);
        Text::Made(from, self.scratch.len() as u32)
    }

    /// A time in milliseconds; `None` when null.
    pub(super) fn ms(&mut self, id: Id) -> Result<Option<i64>, Wrong> {
        let v = self.eval(id)?;
        let t = match v {
            Val::Null => return Ok(None),
            _ if is_number(&v) => self.to_num(v, id)?.to_i64(),
            _ if is_text(&v) => {
                let t = self.to_text(v, id)?;
                time::parse(self.bytes(t))
            }
            _ => None,
        };
        let t = t.filter(|t| (time::MIN..=time::MAX).contains(t));
        t.map(Some).ok_or_else(|| self.not_a(id, &v, "a time (milliseconds since 1970, or RFC 3339)"))
    }

    /// Bytes in the order of the values; false for null, which is in order already.
    pub(super) fn order_bytes(&mut self, id: Id, to: &mut Vec<u8>) -> Result<bool, Wrong> {
        let v = self.eval(id)?;
        match v {
            Val::Null => {
                order::null(to);
                return Ok(false);
            }
            Val::Bool(b) => order::boolean(to, b),
            _ if is_number(&v) => order::number(to, self.to_num(v, id)?),
            _ if is_text(&v) => {
                let t = self.to_text(v, id)?;
                order::text(to, self.bytes(t));
            }
            Val::Raw(found) => order::other(to, found.raw),
            Val::Num(_) | Val::Text(_) => {}
        }
        Ok(true)
    }

    /// Bytes that are equal for equal values; false for null.
    pub(super) fn equal_bytes(&mut self, id: Id, to: &mut Vec<u8>) -> Result<bool, Wrong> {
        let v = self.eval(id)?;
        match v {
            Val::Null => return Ok(false),
            Val::Bool(b) => to.extend_from_slice(if b { b"true" } else { b"false" }),
            _ if is_number(&v) => self.to_num(v, id)?.trimmed().write(to),
            _ if is_text(&v) => {
                let t = self.to_text(v, id)?;
                json::string(to, self.bytes(t));
            }
            Val::Raw(found) => found.write(to),
            Val::Num(_) | Val::Text(_) => {}
        }
        Ok(true)
    }
}

#[inline(always)]
pub(super) fn is_number(v: &Val<'_>) -> bool {
    matches!(v, Val::Num(_) | Val::Raw(Found { kind: Kind::Number, .. }))
}

#[inline(always)]
pub(super) fn is_text(v: &Val<'_>) -> bool {
    matches!(v, Val::Text(_) | Val::Raw(Found { kind: Kind::String | Kind::Escaped, .. }))
}

/// What can be compared.
const OTHER: &str = "a number, a string, true or false";

fn kind(v: &Val<'_>) -> &'static str {
    match v {
        Val::Bool(_) => "true or false",
        _ if is_number(v) => "a number",
        _ if is_text(v) => "a string",
        _ => OTHER,
    }
}
