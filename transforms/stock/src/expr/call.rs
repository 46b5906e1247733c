//! Functions over one record. All give null when an argument is null, unless said otherwise.

use super::eval::{is_number, is_text};
use super::functions::Fun;
use super::{Id, Row, Text, Val, Wrong};
use crate::decimal::Dec;
use crate::time;
use std::cmp::Ordering;

/// A value, or null when one of these is null.
macro_rules! some {
    ($e:expr) => {
        match $e {
            Some(v) => v,
            None => return Ok(Val::Null),
        }
    };
}

fn int(n: i64) -> Val<'static> {
    Val::Num(Dec::int(n))
}

impl<'a> Row<'a> {
    pub(super) fn call(&mut self, id: Id, fun: Fun, args: &'a [Id]) -> Result<Val<'a>, Wrong> {
        let arg = |i: usize| args.get(i).copied().unwrap_or(id);
        match fun {
            Fun::Abs | Fun::Floor | Fun::Ceil | Fun::Round => {
                let n = some!(self.num(arg(0))?);
                let result = match fun {
                    Fun::Abs if n.m < 0 => n.neg(),
                    Fun::Abs => Some(n),
                    Fun::Floor => n.floor(),
                    Fun::Ceil => n.ceil(),
                    _ => n.round(if args.len() > 1 { some!(self.int(arg(1))?) as u32 } else { 0 }),
                };
                result.map(Val::Num).ok_or_else(|| self.too_large(id))
            }
            Fun::Div => {
                let (x, y) = (some!(self.num(arg(0))?), some!(self.num(arg(1))?));
                let result = if args.len() > 2 { x.divide(y, some!(self.int(arg(2))?) as u32) } else { x.quotient(y) };
                self.divided(id, arg(1), y, result)
            }
            Fun::Number => self.number_of(arg(0)),
            Fun::Least => self.extreme(args, Ordering::Less),
            Fun::Greatest => self.extreme(args, Ordering::Greater),
            Fun::Coalesce => {
                for a in args {
                    let v = self.eval(*a)?;
                    if !matches!(v, Val::Null) {
                        return Ok(v);
                    }
                }
                Ok(Val::Null)
            }
            Fun::Concat => self.concat(args),
            Fun::Text => {
                let v = self.eval(arg(0))?;
                if matches!(v, Val::Null) { Ok(v) } else { self.text_of(v, arg(0)).map(Val::Text) }
            }
            Fun::Key => Ok(self.about.record.and_then(|r| r.key()).and_then(kept).unwrap_or(Val::Null)),
            Fun::Header => self.header(arg(0)),
            Fun::EventTime => Ok(self.about.event_time.map_or(Val::Null, |t| int(t.div_euclid(1000)))),
            Fun::BatchTime => Ok(int(self.about.batch_time.div_euclid(1000))),
            Fun::Time | Fun::Hour | Fun::Minute | Fun::Second | Fun::Day | Fun::Month | Fun::Year | Fun::Weekday => {
                let t = some!(self.ms(arg(0))?);
                Ok(int(part(fun, t)))
            }
            Fun::Rfc3339 => {
                let t = some!(self.ms(arg(0))?);
                Ok(Val::Text(self.make(|to| time::write(to, t))))
            }
            Fun::Date => {
                let t = some!(self.ms(arg(0))?);
                Ok(Val::Text(self.make(|to| time::write_date(to, t))))
            }
            Fun::FloorTime => Ok(Val::Null),
            _ => {
                let s = some!(self.text(arg(0))?);
                self.of_text(fun, s, args)
            }
        }
    }

    /// Functions whose first argument is a string.
    fn of_text(&mut self, fun: Fun, s: Text<'a>, args: &'a [Id]) -> Result<Val<'a>, Wrong> {
        match fun {
            Fun::Length => return Ok(int(characters(self.bytes(s)) as i64)),
            Fun::Lower => return Ok(Val::Text(self.mapped(s, false))),
            Fun::Upper => return Ok(Val::Text(self.mapped(s, true))),
            Fun::Trim => {
                let b = self.bytes(s);
                let from = b.len() - b.trim_ascii_start().len();
                let to = from + b.trim_ascii().len();
                return Ok(Val::Text(cut(s, from, to)));
            }
            Fun::Substring => return self.substring(s, args),
            _ => {}
        }
        let with = some!(self.text(args[1])?);
        let (b, w) = (self.bytes(s), self.bytes(with));
        Ok(match fun {
            Fun::Contains => Val::Bool(find(b, w, 0).is_some()),
            Fun::Starts => Val::Bool(b.starts_with(w)),
            Fun::Ends => Val::Bool(b.ends_with(w)),
            Fun::Count => int(occurrences(b, w)),
            Fun::Position => int(find(b, w, 0).map_or(0, |at| characters(&b[..at]) as i64 + 1)),
            Fun::Before => Val::Text(cut(s, 0, some!(find(b, w, 0)))),
            Fun::After => {
                let from = some!(find(b, w, 0)) + w.len();
                Val::Text(cut(s, from, b.len()))
            }
            Fun::Split => {
                let n = some!(self.int(args[2])?);
                let (from, to) = some!(piece(self.bytes(s), self.bytes(with), n));
                Val::Text(cut(s, from, to))
            }
            _ => {
                let by = some!(self.text(args[2])?);
                Val::Text(self.replaced(s, with, by))
            }
        })
    }

    /// SQL's substring: characters from 1 on; a start before them uses up the length.
    fn substring(&mut self, s: Text<'a>, args: &'a [Id]) -> Result<Val<'a>, Wrong> {
        let start = some!(self.int(args[1])?);
        let end = match args.get(2) {
            None => i64::MAX,
            Some(a) => start.saturating_add(some!(self.int(*a)?).max(0)),
        };
        let b = self.bytes(s);
        let from = byte_of(b, start.saturating_sub(1));
        let to = byte_of(b, end.saturating_sub(1)).max(from);
        Ok(Val::Text(cut(s, from, to)))
    }

    /// In small or capital letters.
    fn mapped(&mut self, s: Text<'a>, upper: bool) -> Text<'a> {
        let copy = self.copy(s);
        let Text::Made(from, to) = copy else {
            return copy;
        };
        let made = &mut self.scratch[from as usize..to as usize];
        if made.is_ascii() {
            if upper {
                made.make_ascii_uppercase()
            } else {
                made.make_ascii_lowercase()
            }
            return copy;
        }
        let text = String::from_utf8_lossy(made);
        let text = if upper { text.to_uppercase() } else { text.to_lowercase() };
        self.scratch.truncate(from as usize);
        self.make(|to| to.extend_from_slice(text.as_bytes()))
    }

    /// A copy at the end of the scratch memory.
    fn copy(&mut self, s: Text<'a>) -> Text<'a> {
        self.make(|to| match s {
            Text::Kept(b) => to.extend_from_slice(b),
            Text::Made(from, end) => to.extend_from_within(from as usize..end as usize),
        })
    }

    fn replaced(&mut self, s: Text<'a>, what: Text<'a>, by: Text<'a>) -> Text<'a> {
        let start = self.scratch.len() as u32;
        let mut at = 0;
        while let Some(hit) = find(self.bytes(s), self.bytes(what), at) {
            let end = hit + self.bytes(what).len();
            if end == hit {
                break;
            }
            self.copy(cut(s, at, hit));
            self.copy(by);
            at = end;
        }
        let rest = self.bytes(s).len();
        self.copy(cut(s, at, rest));
        Text::Made(start, self.scratch.len() as u32)
    }

    fn concat(&mut self, args: &'a [Id]) -> Result<Val<'a>, Wrong> {
        let mut pieces = [Text::Kept(b""); 16];
        for (piece, a) in pieces.iter_mut().zip(args) {
            *piece = some!(self.piece_of(*a)?);
        }
        let start = self.scratch.len() as u32;
        for piece in pieces {
            self.copy(piece);
        }
        Ok(Val::Text(Text::Made(start, self.scratch.len() as u32)))
    }

    /// A value's text, `None` when null.
    pub(super) fn piece_of(&mut self, id: Id) -> Result<Option<Text<'a>>, Wrong> {
        match self.eval(id)? {
            Val::Null => Ok(None),
            v => self.text_of(v, id).map(Some),
        }
    }

    /// A value's text: a string's characters, anything else as JSON.
    fn text_of(&mut self, v: Val<'a>, id: Id) -> Result<Text<'a>, Wrong> {
        match v {
            _ if is_text(&v) => self.to_text(v, id),
            Val::Raw(found) => Ok(Text::Kept(found.raw)),
            Val::Bool(b) => Ok(Text::Kept(if b { b"true" } else { b"false" })),
            Val::Num(n) => Ok(self.make(|to| n.write(to))),
            Val::Null | Val::Text(_) => Ok(Text::Kept(b"null")),
        }
    }

    /// A number, also from a string that holds one; null from a string that does not.
    fn number_of(&mut self, id: Id) -> Result<Val<'a>, Wrong> {
        let v = self.eval(id)?;
        match v {
            Val::Null => Ok(Val::Null),
            _ if is_number(&v) => Ok(v),
            Val::Bool(b) => Ok(int(i64::from(b))),
            _ => {
                let t = self.to_text(v, id)?;
                Ok(Dec::parse(self.bytes(t).trim_ascii()).map_or(Val::Null, Val::Num))
            }
        }
    }

    fn extreme(&mut self, args: &'a [Id], keep: Ordering) -> Result<Val<'a>, Wrong> {
        let mut best: Option<(Val<'a>, Id)> = None;
        for a in args {
            let v = self.eval(*a)?;
            if matches!(v, Val::Null) {
                return Ok(Val::Null);
            }
            best = match best {
                Some((b, of)) if self.order(v, *a, b, of)? != Some(keep) => Some((b, of)),
                _ => Some((v, *a)),
            };
        }
        Ok(best.map_or(Val::Null, |b| b.0))
    }

    fn header(&mut self, name: Id) -> Result<Val<'a>, Wrong> {
        let name = some!(self.text(name)?);
        let record = some!(self.about.record);
        let name = self.bytes(name);
        let last = record.headers().filter(|(n, _)| *n == name).last();
        Ok(last.and_then(|(_, v)| v).and_then(kept).unwrap_or(Val::Null))
    }
}

/// A key or header as a string; `None` when it is no UTF-8.
fn kept(b: &[u8]) -> Option<Val<'_>> {
    std::str::from_utf8(b).ok().map(|_| Val::Text(Text::Kept(b)))
}

/// A part of a string, by its bytes.
fn cut(s: Text<'_>, from: usize, to: usize) -> Text<'_> {
    match s {
        Text::Kept(b) => Text::Kept(&b[from..to]),
        Text::Made(at, _) => Text::Made(at + from as u32, at + to as u32),
    }
}

fn part(fun: Fun, t: i64) -> i64 {
    let (day, ms) = (t.div_euclid(time::DAY), t.rem_euclid(time::DAY));
    match fun {
        Fun::Hour => ms / 3_600_000,
        Fun::Minute => ms / 60_000 % 60,
        Fun::Second => ms / 1000 % 60,
        // 1970 began on a Thursday; Monday is 1.
        Fun::Weekday => (day + 3).rem_euclid(7) + 1,
        Fun::Year => time::date(day).0,
        Fun::Month => time::date(day).1,
        Fun::Day => time::date(day).2,
        _ => t,
    }
}

/// How many characters there are.
fn characters(b: &[u8]) -> usize {
    b.iter().filter(|c| **c & 0xc0 != 0x80).count()
}

/// Where character n (from 0) begins.
fn byte_of(b: &[u8], n: i64) -> usize {
    if n <= 0 {
        return 0;
    }
    let mut starts = b.iter().enumerate().filter(|(_, c)| **c & 0xc0 != 0x80);
    starts.nth(usize::try_from(n).unwrap_or(usize::MAX)).map_or(b.len(), |(at, _)| at)
}

/// Where `what` begins, at `from` or later.
fn find(b: &[u8], what: &[u8], from: usize) -> Option<usize> {
    let Some((first, rest)) = what.split_first() else {
        return Some(from);
    };
    let mut at = from;
    loop {
        at += b.get(at..)?.iter().position(|c| c == first)?;
        if b[at + 1..].starts_with(rest) {
            return Some(at);
        }
        at += 1;
    }
}

/// How often `what` stands in b, counted without overlaps.
fn occurrences(b: &[u8], what: &[u8]) -> i64 {
    match what {
        [] => 0,
        [c] => b.iter().filter(|x| *x == c).count() as i64,
        _ => {
            let (mut n, mut at) = (0, 0);
            while let Some(hit) = find(b, what, at) {
                (n, at) = (n + 1, hit + what.len());
            }
            n
        }
    }
}

/// Where piece n (from 0) of what `by` splits lies; `None` when there are fewer.
fn piece(b: &[u8], by: &[u8], n: i64) -> Option<(usize, usize)> {
    let mut from = 0;
    if n < 0 || by.is_empty() {
        return (n == 0).then_some((0, b.len()));
    }
    for _ in 0..n {
        from = find(b, by, from)? + by.len();
    }
    Some((from, find(b, by, from).unwrap_or(b.len())))
}
