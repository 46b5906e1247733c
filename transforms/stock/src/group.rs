//! What results have in common: the fields of the key, the bounds of a window, the aggregates; and lists of groups.

use crate::agg::{Aggregates, Args, code};
use crate::config::{self, Config, refuse};
use crate::json;
use crate::scan::{self, Found, Pointers, Spot};
use crate::time;
use std::collections::BTreeSet;
use wasmill::state::{Entry, Map};
use wasmill::{Kind, Out, Record, Reject, Result, dead_letter, fail};

/// The fields that a key is written as.
enum Names {
    /// None: the key is only that of the record.
    None,
    /// The whole key: `"name":`, and whether it is JSON where it can be.
    Whole(Vec<u8>, bool),
    /// The parts of a key of several.
    Parts(Vec<Vec<u8>>),
}

/// The beginning of each result: the key's fields, and the window's bounds.
pub struct Head {
    names: Names,
    start: Option<Vec<u8>>,
    end: Option<Vec<u8>>,
    rfc3339: bool,
}

fn label(name: &str) -> Vec<u8> {
    let mut label = Vec::new();
    json::string(&mut label, name.as_bytes());
    label.push(b':');
    label
}

impl Head {
    /// Reads `key`; for windows also `start`, `end` and `format`.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn parse(config: &mut Config<'_>, windows: bool) -> Result<Head> {
        let mut head = Head { names: Names::None, start: None, end: None, rfc3339: false };
        if let Some(key) = config.value("key") {
            head.names = Names::parse(key, &config.place("key"))?;
        }
        if windows {
            head.start = config.string("start")?.map(|n| label(&n));
            head.end = config.string("end")?.map(|n| label(&n));
            head.rfc3339 = config.choice("format", &["ms", "rfc3339"])? == "rfc3339";
        }
        Ok(head)
    }

    /// Makes sure that no two fields of a result have the same name.
    ///
    /// # Errors
    /// Two have.
    pub fn check_names(&self, aggregates: &Aggregates) -> Result {
        let key: &[Vec<u8>] = match &self.names {
            Names::None => &[],
            Names::Whole(name, _) => std::slice::from_ref(name),
            Names::Parts(names) => names,
        };
        let mut known = BTreeSet::new();
        let all = key.iter().chain(&self.start).chain(&self.end).map(Vec::as_slice).chain(aggregates.labels());
        for label in all {
            if !known.insert(label) {
                let name = String::from_utf8_lossy(&label[..label.len() - 1]);
                return Err(refuse(format!("{name} is the name of two fields: those of key, start, end and aggregates have to differ")));
            }
        }
        Ok(())
    }

    /// Makes sure that a key has the parts that the configuration names.
    ///
    /// # Errors
    /// It has not.
    #[inline]
    pub fn check(&self, key: &[u8]) -> Result {
        match &self.names {
            Names::Parts(names) if parts(key).map(|p| p.len()) != Some(names.len()) => Err(other_parts(names.len(), key)),
            _ => Ok(()),
        }
    }

    /// Appends the fields; true when there are any. A key that passed `check` is written as it says.
    pub fn write(&self, key: &[u8], bounds: Option<(i64, i64)>, to: &mut Vec<u8>) -> bool {
        let before = to.len();
        match &self.names {
            Names::None => {}
            Names::Whole(name, as_json) => {
                to.extend_from_slice(name);
                if *as_json && is_json(key) {
                    to.extend_from_slice(key);
                } else {
                    json::string(to, key);
                }
            }
            Names::Parts(names) => {
                for (name, part) in names.iter().zip(parts(key).unwrap_or_default()) {
                    comma(to, before);
                    to.extend_from_slice(name);
                    part.write(to);
                }
            }
        }
        if let Some((start, end)) = bounds {
            self.bound(&self.start, start, before, to);
            self.bound(&self.end, end, before, to);
        }
        to.len() > before
    }

    fn bound(&self, name: &Option<Vec<u8>>, ms: i64, before: usize, to: &mut Vec<u8>) {
        let Some(name) = name else { return };
        comma(to, before);
        to.extend_from_slice(name);
        if self.rfc3339 {
            to.push(b'"');
            time::write(to, ms.clamp(time::MIN, time::MAX));
            to.push(b'"');
        } else {
            json::int(to, ms);
        }
    }
}

#[inline]
fn comma(to: &mut Vec<u8>, before: usize) {
    if to.len() > before {
        to.push(b',');
    }
}

impl Names {
    fn parse(key: Found<'_>, place: &str) -> Result<Names> {
        if let Some(name) = config::string(key) {
            return Ok(Names::Whole(label(&name), false));
        }
        if let Some(names) = config::elements(key) {
            let names: Option<Vec<String>> = names.into_iter().map(config::string).collect();
            return match names {
                Some(names) if names.len() == 1 => Ok(Names::Whole(label(&names[0]), false)),
                Some(names) if !names.is_empty() => Ok(Names::Parts(names.iter().map(|n| label(n)).collect())),
                _ => Err(refuse(format!("{place} is not a list of names"))),
            };
        }
        let mut c = Config::of(key, place.into())?;
        let members = c.rest();
        c.finish()?;
        match members.as_slice() {
            [(name, kind)] => match config::string(*kind).as_deref() {
                Some("string") => Ok(Names::Whole(label(name), false)),
                Some("json") => Ok(Names::Whole(label(name), true)),
                _ => Err(refuse(format!("{place}.{name} is neither \"string\" nor \"json\""))),
            },
            _ => Err(refuse(format!("{place} is a name, a list of names, or one name with \"json\""))),
        }
    }
}

/// The elements of a key that is a JSON array, as `keyBy` with several pointers makes it.
fn parts(key: &[u8]) -> Option<Vec<Found<'_>>> {
    if key.first() != Some(&b'[') || key.last() != Some(&b']') {
        return None;
    }
    config::elements(Found { kind: Kind::Array, raw: key })
}

/// True when a key's bytes are one number, boolean or array of JSON.
fn is_json(key: &[u8]) -> bool {
    let v = scan::whole(key);
    if v.raw.len() != key.len() {
        return false;
    }
    match v.kind {
        Kind::Number => is_number(key),
        Kind::True => key == b"true",
        Kind::False => key == b"false",
        Kind::Array => is_array(key),
        _ => false,
    }
}

/// A whole JSON number: no zeros before it, digits on both sides of a point.
fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let plain = digits.len() == 1 || digits.first() != Some(&b'0') || matches!(digits.get(1), Some(b'.' | b'e' | b'E'));
    plain && (crate::decimal::Dec::parse(text).is_some() || digits.iter().all(u8::is_ascii_digit))
}

/// True when the bytes read as an array without blanks, as `keyBy` makes it.
fn is_array(key: &[u8]) -> bool {
    let mut again = vec![b'['];
    for (i, part) in parts(key).unwrap_or_default().iter().enumerate() {
        if i > 0 {
            again.push(b',');
        }
        part.write(&mut again);
    }
    again.push(b']');
    again == key
}

#[cold]
fn other_parts(n: usize, key: &[u8]) -> Reject {
    let text = String::from_utf8_lossy(&key[..key.len().min(64)]);
    dead_letter(code::KEY, format!("the key has not {n} parts: {text}"))
}

/// What a record is read with: pointers, aggregates, and room that is used again.
pub struct Reader {
    /// The pointers of the configuration.
    pub pointers: Pointers,
    /// The aggregates.
    pub aggregates: Aggregates,
    /// The arguments of the record that was read last.
    pub args: Args,
    spots: Vec<Spot>,
}

impl Reader {
    /// Reads `aggregates`.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn parse(config: &mut Config<'_>) -> Result<Reader> {
        let mut pointers = Pointers::new();
        let aggregates = Aggregates::parse(config, &mut pointers)?;
        Ok(Reader { pointers, aggregates, args: Args::default(), spots: Vec::new() })
    }

    /// Finds the arguments in a record.
    ///
    /// # Errors
    /// Its value is not JSON, or an argument has the wrong type.
    #[inline]
    pub fn read(&mut self, r: &Record<'_>) -> Result {
        let text = if self.pointers.is_empty() { b"" } else { self.find(r)? };
        self.aggregates.read(text, &self.spots, &self.pointers, &mut self.args)
    }

    /// Makes sure that the members of exact sets in the record that was read can be state under this key.
    ///
    /// # Errors
    /// One is too long.
    #[inline]
    pub fn check_members(&self, key: &[u8]) -> Result {
        if !self.aggregates.has_sets() || self.aggregates.members(&self.args).all(|(_, v)| key.len() + 9 + v.len() <= 4096) {
            return Ok(());
        }
        Err(dead_letter(code::RANGE, "key and value are too long for a set"))
    }

    /// Finds the pointers in a record's value and returns it.
    ///
    /// # Errors
    /// It is not JSON.
    #[inline]
    pub fn find<'a>(&mut self, r: &Record<'a>) -> Result<&'a [u8]> {
        let Some(text) = r.value().filter(|_| r.is_json()) else {
            return Err(dead_letter(code::NOT_JSON, "the value is not JSON"));
        };
        self.pointers.find(text, &mut self.spots);
        Ok(text)
    }

    /// What the pointer of this number led to in the value that `find` returned.
    pub fn found<'a>(&self, pointer: usize, text: &'a [u8]) -> Found<'a> {
        self.spots[pointer].of(text)
    }
}

/// True when a watermark, in microseconds and 0 when there is none, has reached this time.
#[inline]
pub fn passed(watermark: i64, ms: i64) -> bool {
    watermark != 0 && ms * 1000 <= watermark
}

/// Makes sure that a key has room beside it for sub-keys and those of timers: it has at most so many bytes.
///
/// # Errors
/// It is longer: the record is a dead letter.
#[inline]
pub fn check_key(key: &[u8], most: usize) -> Result {
    if key.len() <= most { Ok(()) } else { Err(dead_letter(code::KEY, format!("the key has more than {most} bytes"))) }
}

/// Makes these bytes an entry's value.
///
/// # Errors
/// They are more than a value of state may have.
pub fn store(entry: &mut Entry<'_>, bytes: &[u8]) -> Result {
    if bytes.len() > 512 << 10 {
        return Err(fail(code::RANGE, "a key has more than 512 KiB of open windows"));
    }
    entry.set(bytes);
    Ok(())
}

/// How many different members these groups have in a set.
pub fn union(members: &Map<[u8], ()>, out: &mut Out, key: &[u8], groups: impl Iterator<Item = i64>, set: usize) -> u64 {
    let (mut all, mut room) = (BTreeSet::new(), Vec::new());
    for id in groups {
        let prefix = member(&mut room, id, set, b"");
        all.extend(members.scan(out, key).prefix(prefix).rows().raw().map(|(sub, _)| sub[prefix.len()..].to_vec()));
    }
    all.len() as u64
}

/// The sub-key of a member of an exact set: the window's start, the aggregate, the value.
pub fn member<'a>(room: &'a mut Vec<u8>, start: i64, aggregate: usize, value: &[u8]) -> &'a [u8] {
    room.clear();
    room.extend_from_slice(&start.to_be_bytes());
    room.push(aggregate as u8);
    room.extend_from_slice(value);
    room
}

/// The record key of an update: a JSON array of the group's key and a number, such as a window's start or a place.
///
/// A key that `keyBy` made by several pointers is an array of two elements or more: its elements come first, and there are
/// three or more in the end. Any other key is one string, so that no two keys give the same.
pub fn update_key(key: &[u8], n: i64, to: &mut Vec<u8>) {
    match key.strip_suffix(b"]").filter(|_| is_composite(key)) {
        Some(open) => to.extend_from_slice(open),
        None => {
            to.push(b'[');
            json::string(to, String::from_utf8_lossy(key).as_bytes());
        }
    }
    to.push(b',');
    json::int(to, n);
    to.push(b']');
}

/// True when a key is an array as `keyBy` makes it of several pointers: strings, numbers, booleans and nulls without blanks.
fn is_composite(key: &[u8]) -> bool {
    let is_plain = |v: &Found<'_>| match v.kind {
        Kind::Null => v.raw == b"null",
        Kind::True => v.raw == b"true",
        Kind::False => v.raw == b"false",
        Kind::Number => is_number(v.raw),
        Kind::String | Kind::Escaped => is_text(v.raw),
        _ => false,
    };
    parts(key).is_some_and(|p| p.len() > 1 && p.iter().all(is_plain)) && is_array(key)
}

/// True when these bytes can stand between the quotes of a JSON string.
fn is_text(raw: &[u8]) -> bool {
    let mut rest = raw;
    while let Some((c, more)) = rest.split_first() {
        rest = match (c, more) {
            (b'\\', [b'u', a, b, c, d, more @ ..]) if [a, b, c, d].iter().all(|h| h.is_ascii_hexdigit()) => more,
            (b'\\', [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', more @ ..]) => more,
            (b'\\' | b'"' | 0..0x20, _) => return false,
            _ => more,
        };
    }
    std::str::from_utf8(raw).is_ok()
}

/// Groups that something is left to do for at the lane's end, in the order in which they were noted.
#[derive(Default)]
pub struct Noted {
    bytes: Vec<u8>,
    items: Vec<(usize, i64)>,
}

impl Noted {
    /// Notes a key and a number, such as a window's start.
    pub fn push(&mut self, key: &[u8], n: i64) {
        self.bytes.extend_from_slice(key);
        self.items.push((self.bytes.len(), n));
    }

    /// The groups.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], i64)> {
        let mut from = 0;
        self.items.iter().map(move |&(to, n)| (&self.bytes[core::mem::replace(&mut from, to)..to], n))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_updates_are_json_and_differ() {
        let keys: [&[u8]; 12] =
            [b"a", b"[\"a\"]", b"[\"a\",\"b\"]", b"[\"a\", \"b\"]", b"[]", b"[x]", b"[x,y]", b"[1,null]", b"[01,true]", b"[\"\\x\",1]", b"", b"[\"a\",1]"];
        let text = |key| {
            let mut to = Vec::new();
            update_key(key, 1, &mut to);
            String::from_utf8(to).unwrap()
        };
        let all: BTreeSet<String> = keys.iter().map(|k| text(k)).collect();
        assert_eq!(all.len(), keys.len());
        assert_eq!(text(b"a"), r#"["a",1]"#);
        assert_eq!(text(b"[\"a\"]"), r#"["[\"a\"]",1]"#);
        assert_eq!(text(b"[\"a\",\"b\"]"), r#"["a","b",1]"#);
        assert_eq!(text(b"[1,null]"), "[1,null,1]");
        assert_eq!(text(b"[x,y]"), r#"["[x,y]",1]"#);
    }
}
