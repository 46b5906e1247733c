//! Aggregates: what a configuration asks for, the bytes they are held in, adding values, merging, and writing results.
//!
//! The bytes of a group: the version, three bytes that say which aggregates they are of, the cells of fixed size, then the
//! others, each with its length before it. A cell of fixed size is changed where it lies.

use crate::config::{self, Config, refuse};
use crate::decimal::Dec;
use crate::hll;
use crate::json;
use crate::scan::{Found, Pointers, Spot};
use std::borrow::Cow;
use std::cmp::Ordering;
use wasmill::{Kind, Reject, Result, dead_letter, fail};

/// The version of the bytes, and what follows it up to the first cell.
const VERSION: u8 = 1;
const HEAD: usize = 4;
/// A sum: 17 bytes of [`Dec`], then how many values it has.
const SUM: usize = 25;
/// The longest value that `distinct` and the like take, in bytes.
const LONGEST: usize = 2048;

/// Codes of dead letters.
pub mod code {
    /// A field of another type.
    pub const FIELD: u16 = 0;
    /// The value is not JSON.
    pub const NOT_JSON: u16 = 1;
    /// No event time.
    pub const NO_TIME: u16 = 2;
    /// The key has not the parts that the configuration names.
    pub const KEY: u16 = 3;
    /// A number or a value is too large.
    pub const RANGE: u16 = 4;
    /// The stored bytes are of other aggregates.
    pub const STATE: u16 = 5;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Avg { digits: u32, down: bool },
    Distinct,
    Approximate,
    Min,
    Max,
    First,
    Last,
}

impl Function {
    fn parse(name: &str) -> Option<Function> {
        Some(match name {
            "count" => Function::Count,
            "sum" => Function::Sum,
            "avg" => Function::Avg { digits: 6, down: false },
            "distinct" => Function::Distinct,
            "min" => Function::Min,
            "max" => Function::Max,
            "first" => Function::First,
            "last" => Function::Last,
            _ => return None,
        })
    }

    /// Bytes of its cell; `None` when they vary.
    fn size(self) -> Option<usize> {
        match self {
            Function::Count | Function::Distinct => Some(8),
            Function::Sum | Function::Avg { .. } => Some(SUM),
            _ => None,
        }
    }

    fn takes_numbers(self) -> bool {
        matches!(self, Function::Sum | Function::Avg { .. })
    }
}

struct Aggregate {
    /// `"name":`
    label: Vec<u8>,
    function: Function,
    /// The argument's number among the pointers; `None` counts records.
    arg: Option<usize>,
    /// Where the cell lies; of those that vary, which one it is.
    at: usize,
}

/// What an argument was in the record at hand.
#[derive(Clone, Copy, Debug)]
enum Arg {
    /// Null, or not there: nothing is added.
    Null,
    Number(Dec),
    /// Bytes of `Args`.
    Bytes(u32, u32),
}

/// The arguments of one record, in the order of the aggregates.
#[derive(Default)]
pub struct Args {
    list: Vec<Arg>,
    bytes: Vec<u8>,
}

impl Args {
    fn bytes(&self, from: u32, to: u32) -> &[u8] {
        &self.bytes[from as usize..to as usize]
    }
}

/// The aggregates of a configuration.
pub struct Aggregates {
    list: Vec<Aggregate>,
    fixed: usize,
    varying: usize,
    signature: [u8; 3],
    sets: bool,
    sums: bool,
    retracts: Option<String>,
}

impl Aggregates {
    /// Reads `aggregates`: a list of objects with one member each, name and function, or one object of them.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn parse(config: &mut Config<'_>, pointers: &mut Pointers) -> Result<Aggregates> {
        let place = config.place("aggregates");
        let Some(found) = config.value("aggregates") else {
            return Err(config.missing("aggregates"));
        };
        let parts = match config::elements(found) {
            None => Config::of(found, place.clone())?.rest(),
            Some(parts) => {
                let mut all = Vec::new();
                for part in parts {
                    let members = Config::of(part, place.clone())?.rest();
                    if members.len() != 1 {
                        return Err(refuse(format!("an element of {place} has not one name")));
                    }
                    all.extend(members);
                }
                all
            }
        };
        let mut all = Aggregates { list: Vec::new(), fixed: HEAD, varying: 0, signature: [0; 3], sets: false, sums: false, retracts: None };
        let mut text = String::new();
        for (name, spec) in &parts {
            all.push(name, *spec, &format!("{place}.{name}"), pointers, &mut text)?;
        }
        if all.list.is_empty() || all.list.len() > 64 {
            return Err(refuse(format!("{place} has {} aggregates, not 1 to 64", all.list.len())));
        }
        all.signature.copy_from_slice(&fold(text.as_bytes()).to_le_bytes()[..3]);
        Ok(all)
    }

    fn push(&mut self, name: &str, spec: Found<'_>, place: &str, pointers: &mut Pointers, text: &mut String) -> Result {
        let (function, arg) = parse_one(spec, place, pointers)?;
        let mut label = Vec::new();
        json::string(&mut label, name.as_bytes());
        if self.list.iter().any(|a| a.label[..a.label.len() - 1] == label) {
            return Err(refuse(format!("{place} is there twice")));
        }
        label.push(b':');
        let (at, fixed, varying) = match function.size() {
            Some(n) => (self.fixed, self.fixed + n, self.varying),
            None => (self.varying, self.fixed, self.varying + 1),
        };
        (self.fixed, self.varying) = (fixed, varying);
        self.sets |= function == Function::Distinct;
        self.sums |= function.takes_numbers();
        if !matches!(function, Function::Count | Function::Sum | Function::Avg { .. }) {
            self.retracts.get_or_insert_with(|| place.into());
        }
        // How an average is written is not part of what is stored.
        let stored = if let Function::Avg { .. } = function { "Avg".into() } else { format!("{function:?}") };
        *text += &format!("{stored} {};", arg.map_or("", |a| pointers.text(a)));
        self.list.push(Aggregate { label, function, arg, at });
        Ok(())
    }

    /// The names of the results as JSON text, each with a colon.
    pub fn labels(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(|a| a.label.as_slice())
    }

    /// True when all cells have fixed sizes: [`Aggregates::add_fixed`] is enough.
    #[inline(always)]
    pub fn is_fixed(&self) -> bool {
        self.varying == 0
    }

    /// True when some are exact sets, whose members are held apart: see [`Aggregates::members`].
    pub fn has_sets(&self) -> bool {
        self.sets
    }

    /// Refuses the configuration unless all can take a value back.
    ///
    /// # Errors
    /// One cannot.
    pub fn check_retractable(&self) -> Result {
        match &self.retracts {
            None => Ok(()),
            Some(place) => Err(refuse(format!("{place} cannot be taken back when an input is updated: only count, sum and avg can"))),
        }
    }

    /// The bytes of a group that has nothing yet.
    pub fn init(&self, to: &mut Vec<u8>) {
        to.push(VERSION);
        to.extend_from_slice(&self.signature);
        to.resize(to.len() + self.fixed - HEAD + 4 * self.varying, 0);
    }

    /// Makes sure that stored bytes are of these aggregates.
    ///
    /// # Errors
    /// They are not.
    #[inline]
    pub fn check(&self, bytes: &[u8]) -> Result {
        if bytes.len() >= self.fixed && bytes[0] == VERSION && bytes[1..HEAD] == self.signature {
            return Ok(());
        }
        Err(other_aggregates())
    }

    /// Takes the arguments from a record's value, in which the pointers were found.
    ///
    /// # Errors
    /// One has a type that its aggregate does not take.
    #[inline]
    pub fn read(&self, text: &[u8], spots: &[Spot], pointers: &Pointers, args: &mut Args) -> Result {
        args.list.clear();
        args.bytes.clear();
        for a in &self.list {
            let arg = match a.arg {
                None => Arg::Null,
                Some(i) => {
                    let spot = spots[i];
                    if a.function.takes_numbers() && spot.kind == Kind::Number {
                        number(spot.of(text), pointers.text(i))?
                    } else {
                        self.argument(a.function, spot.of(text), pointers.text(i), args)?
                    }
                }
            };
            args.list.push(arg);
        }
        Ok(())
    }

    fn argument(&self, f: Function, v: Found<'_>, name: &str, args: &mut Args) -> Result<Arg> {
        if v.is_null() {
            return Ok(Arg::Null);
        }
        let start = args.bytes.len();
        match f {
            Function::Count => args.bytes.push(1),
            Function::First | Function::Last => v.write(&mut args.bytes),
            Function::Distinct | Function::Approximate => canonical(v, &mut args.bytes),
            Function::Min | Function::Max if v.kind == Kind::Number => return number(v, name),
            Function::Min | Function::Max if v.kind == Kind::String => args.bytes.extend_from_slice(v.raw),
            Function::Min | Function::Max if v.kind == Kind::Escaped => json::unescape(v.raw, &mut args.bytes),
            Function::Min | Function::Max => return Err(wrong(v, name, "a number or a string")),
            _ => return Err(wrong(v, name, "a number")),
        }
        if args.bytes.len() - start > LONGEST && f != Function::Approximate {
            return Err(dead_letter(code::RANGE, format!("{name} has more than {LONGEST} bytes")));
        }
        Ok(Arg::Bytes(start as u32, args.bytes.len() as u32))
    }

    /// The members that the record adds to exact sets: which aggregate, and the value's bytes.
    pub fn members<'a>(&'a self, args: &'a Args) -> impl Iterator<Item = (usize, &'a [u8])> {
        let sets = self.list.iter().zip(&args.list).enumerate().filter(|(_, (a, _))| a.function == Function::Distinct);
        sets.filter_map(|(i, (_, arg))| if let Arg::Bytes(from, to) = *arg { Some((i, args.bytes(from, to))) } else { None })
    }

    /// Counts a member of an exact set that was not there before.
    pub fn count_member(&self, bytes: &mut [u8], aggregate: usize) {
        let at = self.list[aggregate].at;
        let cell: &mut [u8; 8] = bytes[at..].first_chunk_mut().expect("checked bytes");
        *cell = (u64::from_le_bytes(*cell) + 1).to_le_bytes();
    }

    /// Adds a record to the cells of fixed size, without the exact sets. The bytes were checked.
    ///
    /// # Errors
    /// A sum does not fit; some cells may be changed already.
    #[inline]
    pub fn add_fixed(&self, bytes: &mut [u8], args: &Args) -> Result {
        for (a, arg) in self.list.iter().zip(&args.list) {
            match (a.function, arg) {
                (Function::Count, Arg::Null) if a.arg.is_some() => {}
                (Function::Count, _) => bump(&mut bytes[a.at..a.at + 8], 1),
                (Function::Sum | Function::Avg { .. }, Arg::Number(d)) => add_sum(&mut bytes[a.at..a.at + SUM], *d, 1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes sure that a record's arguments can be added to a group's sums. The bytes were checked.
    ///
    /// # Errors
    /// A sum would have more than 38 digits: the record is a dead letter.
    #[inline]
    pub fn check_add(&self, bytes: &[u8], args: &Args) -> Result {
        if !self.sums {
            return Ok(());
        }
        for (a, arg) in self.list.iter().zip(&args.list) {
            let (Function::Sum | Function::Avg { .. }, Arg::Number(d)) = (a.function, arg) else { continue };
            let cell = &bytes[a.at..a.at + SUM];
            if short_sum(cell, *d).is_none() && decimal(cell)?.add(*d).is_none() {
                return Err(many_digits());
            }
        }
        Ok(())
    }

    /// True when there are sums, or averages.
    #[inline]
    pub fn has_sums(&self) -> bool {
        self.sums
    }

    /// True when a sum of a group, with the record at hand, is larger than `most` / 10^18 or has more than 18 digits after the
    /// point. The bytes were checked.
    #[inline]
    pub fn is_large(&self, bytes: &[u8], args: &Args, most: i128) -> bool {
        self.list.iter().zip(&args.list).any(|(a, arg)| {
            let (Function::Sum | Function::Avg { .. }, Arg::Number(d)) = (a.function, arg) else { return false };
            let sum = decimal(&bytes[a.at..a.at + SUM]).ok().and_then(|sum| sum.add(*d));
            sum.is_none_or(|sum| !sum.is_within(most))
        })
    }

    /// Begins to add up how large sums can be together: each is 0.
    pub fn begin_magnitudes(&self, all: &mut Vec<Dec>) {
        all.clear();
        all.resize(self.list.iter().filter(|a| a.function.takes_numbers()).count(), Dec::ZERO);
    }

    /// Goes on with the record at hand.
    ///
    /// # Errors
    /// A sum may not fit.
    pub fn add_arguments(&self, args: &Args, all: &mut [Dec]) -> Result {
        let sums = self.list.iter().zip(&args.list).filter(|(a, _)| a.function.takes_numbers());
        for ((_, arg), all) in sums.zip(all) {
            let Arg::Number(d) = arg else { continue };
            *all = d.abs().and_then(|d| all.add(d)).ok_or_else(many_digits)?;
        }
        Ok(())
    }

    /// Goes on with a group's sums: what fits here fits whichever groups are put together, and in whatever order.
    ///
    /// # Errors
    /// The group is of other aggregates, or a sum may not fit.
    pub fn add_magnitudes(&self, group: &[u8], all: &mut [Dec]) -> Result {
        self.check(group)?;
        for (a, all) in self.list.iter().filter(|a| a.function.takes_numbers()).zip(all) {
            let sum = decimal(&group[a.at..a.at + SUM])?;
            *all = sum.abs().and_then(|s| all.add(s)).ok_or_else(many_digits)?;
        }
        Ok(())
    }

    /// The most bytes by which a record can make a group larger.
    pub fn most_growth(&self) -> usize {
        self.varying * (LONGEST.max(4096) + 64)
    }

    /// Takes a record's arguments back; see [`Aggregates::check_retractable`].
    ///
    /// # Errors
    /// A sum does not fit.
    pub fn retract(&self, bytes: &mut [u8], args: &Args) -> Result {
        for (a, arg) in self.list.iter().zip(&args.list) {
            match (a.function, arg) {
                (Function::Count, Arg::Null) if a.arg.is_some() => {}
                (Function::Count, _) => bump(&mut bytes[a.at..a.at + 8], -1),
                (_, Arg::Number(d)) => add_sum(&mut bytes[a.at..a.at + SUM], d.neg().ok_or_else(many_digits)?, -1)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The arguments as bytes, for aggregates that can be taken back.
    pub fn store_args(&self, args: &Args, to: &mut Vec<u8>) {
        to.push(VERSION);
        to.extend_from_slice(&self.signature);
        for arg in &args.list {
            match arg {
                Arg::Null => to.push(0),
                Arg::Bytes(..) => to.push(1),
                Arg::Number(d) => {
                    to.push(2);
                    to.extend_from_slice(&d.to_bytes());
                }
            }
        }
    }

    /// Reads what [`Aggregates::store_args`] wrote.
    ///
    /// # Errors
    /// It is of other aggregates.
    pub fn load_args(&self, bytes: &[u8], args: &mut Args) -> Result {
        args.list.clear();
        let ours = bytes.len() >= HEAD && bytes[0] == VERSION && bytes[1..HEAD] == self.signature;
        let mut rest = if ours { &bytes[HEAD..] } else { &[] };
        while let Some((kind, more)) = rest.split_first() {
            rest = more;
            args.list.push(match kind {
                0 => Arg::Null,
                1 => Arg::Bytes(0, 0),
                _ => {
                    let (d, more) = rest.split_first_chunk::<17>().ok_or_else(other_aggregates)?;
                    rest = more;
                    Arg::Number(Dec::from_bytes(*d).ok_or_else(other_aggregates)?)
                }
            });
        }
        if args.list.len() == self.list.len() { Ok(()) } else { Err(other_aggregates()) }
    }

    /// Adds a record to the cells that vary in size, at `at` microseconds. The bytes were checked, and are all of the vector.
    /// True when one changed.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn add_varying(&self, bytes: &mut Vec<u8>, args: &Args, at: i64) -> Result<bool> {
        let (mut new, mut any) = (Vec::new(), false);
        for (a, arg) in self.list.iter().zip(&args.list) {
            if a.function.size().is_some() || matches!(arg, Arg::Null) {
                continue;
            }
            let (from, to) = self.cell(bytes, a.at)?;
            let old = &bytes[from..to];
            new.clear();
            let changed = match (a.function, *arg) {
                (Function::Approximate, Arg::Bytes(x, y)) => {
                    new.extend_from_slice(old);
                    hll::add(&mut new, args.bytes(x, y))
                }
                (Function::First | Function::Last, Arg::Bytes(x, y)) => {
                    new.extend_from_slice(&at.to_le_bytes());
                    new.extend_from_slice(args.bytes(x, y));
                    follows(a.function, old, &new)
                }
                (_, arg) => {
                    extreme(arg, args, &mut new);
                    follows(a.function, old, &new)
                }
            };
            if changed {
                replace(bytes, from, to, &new);
                any = true;
            }
        }
        Ok(any)
    }

    /// Adds all of another group, a later one, exact sets apart. Both were checked.
    ///
    /// # Errors
    /// A sum does not fit, or the bytes are damaged.
    pub fn merge(&self, into: &mut Vec<u8>, other: &[u8]) -> Result {
        for a in &self.list {
            match a.function {
                Function::Distinct => {}
                Function::Count => bump(&mut into[a.at..a.at + 8], word(&other[a.at..])),
                Function::Sum | Function::Avg { .. } => {
                    let cell = &other[a.at..a.at + SUM];
                    let n = word(&cell[17..]);
                    if n != 0 {
                        add_sum(&mut into[a.at..a.at + SUM], decimal(cell)?, n)?;
                    }
                }
                f => {
                    let ((from, to), (x, y)) = (self.cell(into, a.at)?, self.cell(other, a.at)?);
                    let (old, new) = (&into[from..to], &other[x..y]);
                    if f == Function::Approximate {
                        let mut both = old.to_vec();
                        hll::merge(&mut both, new);
                        replace(into, from, to, &both);
                    } else if !new.is_empty() && follows(f, old, new) {
                        replace(into, from, to, new);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sets the number of an exact set, where it was counted apart.
    pub fn set_members(&self, bytes: &mut [u8], aggregate: usize, n: u64) {
        let at = self.list[aggregate].at;
        bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }

    /// The aggregates that are exact sets.
    pub fn sets(&self) -> impl Iterator<Item = usize> {
        self.list.iter().enumerate().filter(|(_, a)| a.function == Function::Distinct).map(|(i, _)| i)
    }

    /// Appends the results as members of an object, each with a comma before it if `comma` says so or others came before.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn write(&self, bytes: &[u8], mut comma: bool, to: &mut Vec<u8>) -> Result {
        self.check(bytes)?;
        for a in &self.list {
            if core::mem::replace(&mut comma, true) {
                to.push(b',');
            }
            to.extend_from_slice(&a.label);
            let cell = match a.function.size() {
                Some(n) => &bytes[a.at..a.at + n],
                None => {
                    let (from, end) = self.cell(bytes, a.at)?;
                    &bytes[from..end]
                }
            };
            result(a.function, cell, to)?;
        }
        Ok(())
    }

    /// Where the nth of the cells that vary lies.
    fn cell(&self, bytes: &[u8], n: usize) -> Result<(usize, usize)> {
        let mut at = self.fixed;
        for i in 0.. {
            let len = bytes.get(at..at + 4).ok_or_else(other_aggregates)?;
            let len = u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize;
            let end = at + 4 + len;
            if end > bytes.len() {
                break;
            }
            if i == n {
                return Ok((at + 4, end));
            }
            at = end;
        }
        Err(other_aggregates())
    }
}

fn parse_one(spec: Found<'_>, place: &str, pointers: &mut Pointers) -> Result<(Function, Option<usize>)> {
    if let Some(word) = config::string(spec) {
        if word == "count" {
            return Ok((Function::Count, None));
        }
        return Err(refuse(format!("{place} is {word:?}; it is \"count\" or an object such as {{\"sum\": \"/amount\"}}")));
    }
    let mut c = Config::of(spec, place.into())?;
    let names = ["count", "sum", "avg", "distinct", "min", "max", "first", "last"];
    let mut found = None;
    for name in names {
        if let Some(pointer) = c.string(name)? {
            if found.is_some() {
                return Err(refuse(format!("{place} names two functions")));
            }
            found = Function::parse(name).map(|f| (f, pointer));
        }
    }
    let Some((mut function, pointer)) = found else {
        return Err(refuse(format!("{place} names none of {}", names.join(", "))));
    };
    match function {
        Function::Avg { .. } => {
            let digits = c.int("digits", 0, 18)?.unwrap_or(6) as u32;
            function = Function::Avg { digits, down: c.choice("round", &["half-up", "down"])? == "down" };
        }
        Function::Distinct if c.flag("approximate")? => function = Function::Approximate,
        _ => {}
    }
    c.finish()?;
    let arg = pointers.add(&pointer).map_err(|why| refuse(format!("{place}: {why}")))?;
    Ok((function, Some(arg)))
}

#[inline]
fn number(v: Found<'_>, name: &str) -> Result<Arg> {
    match Dec::parse(v.raw) {
        Some(d) => Ok(Arg::Number(d)),
        None => Err(wrong(v, name, "a number of at most 38 digits")),
    }
}

/// Bytes that are equal for equal values: numbers by value, strings by their characters.
fn canonical(v: Found<'_>, to: &mut Vec<u8>) {
    match v.kind {
        Kind::Number => match Dec::parse(v.raw) {
            Some(d) => {
                to.push(b'n');
                d.trimmed().write(to);
            }
            None => {
                to.push(b'N');
                to.extend_from_slice(v.raw);
            }
        },
        Kind::String => {
            to.push(b's');
            to.extend_from_slice(v.raw);
        }
        Kind::Escaped => {
            to.push(b's');
            json::unescape(v.raw, to);
        }
        _ => {
            to.push(b'j');
            to.extend_from_slice(v.raw);
        }
    }
}

/// The bytes of a least or greatest value: a number, or a string's characters.
fn extreme(arg: Arg, args: &Args, to: &mut Vec<u8>) {
    match arg {
        Arg::Number(d) => {
            to.push(1);
            to.extend_from_slice(&d.to_bytes());
        }
        Arg::Bytes(from, end) => {
            to.push(2);
            to.extend_from_slice(args.bytes(from, end));
        }
        Arg::Null => {}
    }
}

/// True when a new value takes the place of the old one, which may be empty.
fn follows(f: Function, old: &[u8], new: &[u8]) -> bool {
    if old.is_empty() {
        return true;
    }
    match f {
        Function::First => word(new) < word(old),
        Function::Last => word(new) >= word(old),
        Function::Min => order(new, old) == Ordering::Less,
        _ => order(new, old) == Ordering::Greater,
    }
}

/// Numbers come before strings.
fn order(a: &[u8], b: &[u8]) -> Ordering {
    match (a.split_first(), b.split_first()) {
        (Some((1, x)), Some((1, y))) => {
            let d = |b: &[u8]| b.try_into().ok().and_then(Dec::from_bytes).unwrap_or(Dec::ZERO);
            d(x).order(d(y))
        }
        _ => a.cmp(b),
    }
}

/// Makes a cell that varies hold these bytes.
fn replace(bytes: &mut Vec<u8>, from: usize, to: usize, new: &[u8]) {
    if to - from == new.len() {
        bytes[from..to].copy_from_slice(new);
        return;
    }
    bytes[from - 4..from].copy_from_slice(&(new.len() as u32).to_le_bytes());
    bytes.splice(from..to, new.iter().copied());
}

#[inline(always)]
fn word(bytes: &[u8]) -> i64 {
    bytes.first_chunk().map_or(0, |b| i64::from_le_bytes(*b))
}

#[inline(always)]
fn bump(cell: &mut [u8], by: i64) {
    let n = word(cell).wrapping_add(by);
    cell.copy_from_slice(&n.to_le_bytes());
}

#[inline]
fn decimal(cell: &[u8]) -> Result<Dec> {
    let d = cell.first_chunk::<17>().and_then(|b| Dec::from_bytes(*b));
    d.ok_or_else(other_aggregates)
}

/// The sum of a cell and a number, where all have 64 bits and one scale, as most do.
#[inline]
fn short_sum(cell: &[u8], d: Dec) -> Option<i64> {
    let low = word(cell);
    if word(&cell[8..]) != low >> 63 || u32::from(cell[16]) != d.scale {
        return None;
    }
    low.checked_add(i64::try_from(d.m).ok()?)
}

#[inline]
fn add_sum(cell: &mut [u8], d: Dec, n: i64) -> Result {
    if let Some(sum) = short_sum(cell, d) {
        cell[..8].copy_from_slice(&sum.to_le_bytes());
        cell[8..16].copy_from_slice(&(sum >> 63).to_le_bytes());
        bump(&mut cell[17..25], n);
        return Ok(());
    }
    let sum = decimal(cell)?.add(d).ok_or_else(many_digits)?;
    cell[..17].copy_from_slice(&sum.to_bytes());
    bump(&mut cell[17..25], n);
    Ok(())
}

/// Appends one result.
fn result(f: Function, cell: &[u8], to: &mut Vec<u8>) -> Result {
    match f {
        Function::Count | Function::Distinct => json::int(to, word(cell)),
        Function::Approximate => json::int(to, hll::estimate(cell) as i64),
        Function::Sum | Function::Avg { .. } if word(&cell[17..]) == 0 => to.extend_from_slice(b"null"),
        Function::Sum => decimal(cell)?.write(to),
        Function::Avg { digits, down } => average(decimal(cell)?, word(&cell[17..]), digits, down).write(to),
        Function::First | Function::Last => to.extend_from_slice(cell.get(8..).unwrap_or(b"null")),
        Function::Min | Function::Max => match cell.split_first() {
            Some((1, number)) => number.try_into().ok().and_then(Dec::from_bytes).ok_or_else(other_aggregates)?.write(to),
            Some((_, text)) => json::string(to, text),
            None => to.extend_from_slice(b"null"),
        },
    }
    Ok(())
}

/// sum / n with so many digits after the point, fewer where that would make more than 38: a half goes away from zero, or
/// what is left over is cut off.
fn average(sum: Dec, n: i64, digits: u32, down: bool) -> Dec {
    let exact = |digits: u32| {
        if !down {
            return sum.divide(Dec::int(n), digits);
        }
        let whole = sum.mul(Dec { m: 10i128.checked_pow(digits)?, scale: 0 })?.quotient(Dec::int(n))?;
        Some(Dec { m: whole.m, scale: digits })
    };
    // What is left are sums with so many digits after the point that n does not fit beside them.
    let shorter = || sum.round(19).and_then(|s| s.divide(Dec::int(n), digits));
    (0..=digits).rev().find_map(exact).or_else(shorter).unwrap_or(Dec { m: 0, scale: digits })
}

/// A short hash of what the aggregates are.
fn fold(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |h, c| (h ^ u32::from(*c)).wrapping_mul(0x0100_0193))
}

#[cold]
fn wrong(v: Found<'_>, name: &str, wanted: &str) -> Reject {
    let text: Cow<'_, str> = String::from_utf8_lossy(&v.raw[..v.raw.len().min(64)]);
    dead_letter(code::FIELD, format!("{name} is not {wanted}: {text}"))
}

#[cold]
fn many_digits() -> Reject {
    dead_letter(code::RANGE, "with this record a sum could have more than 38 digits")
}

#[cold]
fn other_aggregates() -> Reject {
    fail(code::STATE, "the state was made by other aggregates: bring the old ones back, or give the transform a new name to begin anew")
}
