//! The open groups of one key in one entry of state: sessions.
//!
//! The bytes: version, the time of the timer that is set, up to when windows were written, then for each span its start, its
//! last moment, its number, the length of its aggregates, and these. Spans are in order of start.

use crate::agg::code;
use wasmill::{Reject, Result, fail};

const VERSION: u8 = 1;
const HEAD: usize = 17;
const SPAN: usize = 28;

/// No time.
pub const NEVER: i64 = i64::MIN;

/// One span, and where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    at: usize,
    /// The first moment.
    pub start: i64,
    /// The last moment.
    pub last: i64,
    /// What its members of exact sets are held under.
    pub id: i64,
    /// Where its aggregates begin.
    pub from: usize,
    /// Where they end.
    pub to: usize,
}

/// The spans of a key.
#[derive(Default)]
pub struct Spans {
    bytes: Vec<u8>,
}

impl Spans {
    /// Reads an entry; `None` is one without spans. True when there was one.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn load(&mut self, entry: Option<&[u8]>) -> Result<bool> {
        self.bytes.clear();
        match entry {
            None => {
                self.bytes.push(VERSION);
                self.bytes.extend_from_slice(&NEVER.to_le_bytes());
                self.bytes.extend_from_slice(&NEVER.to_le_bytes());
            }
            Some(b) if b.len() >= HEAD && b[0] == VERSION => self.bytes.extend_from_slice(b),
            Some(_) => return Err(damaged()),
        }
        Ok(entry.is_some())
    }

    /// The entry's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True when there are no spans.
    pub fn is_empty(&self) -> bool {
        self.bytes.len() <= HEAD
    }

    /// When the timer is due that is set for the key, or [`NEVER`].
    pub fn timer(&self) -> i64 {
        self.word(1)
    }

    /// Notes that a timer is set.
    pub fn set_timer(&mut self, ms: i64) {
        self.put(1, ms);
    }

    /// Up to when windows were written, or [`NEVER`].
    pub fn written(&self) -> i64 {
        self.word(9)
    }

    /// Notes up to when windows were written.
    pub fn set_written(&mut self, ms: i64) {
        self.put(9, ms);
    }

    /// The first span.
    pub fn first(&self) -> Option<Span> {
        self.read(HEAD)
    }

    /// The span after this one.
    pub fn next(&self, span: &Span) -> Option<Span> {
        self.read(span.to)
    }

    /// All spans, in order.
    pub fn iter(&self) -> impl Iterator<Item = Span> + Clone {
        std::iter::successors(self.first(), |s| self.next(s))
    }

    /// The first span for which this is true, or where one would be put behind all others.
    pub fn find(&self, is: impl Fn(&Span) -> bool) -> (Option<Span>, usize) {
        let mut end = HEAD;
        for s in self.iter() {
            if is(&s) {
                return (Some(s), s.at);
            }
            end = s.to;
        }
        (None, end)
    }

    /// The aggregates of a span.
    pub fn group(&self, span: &Span) -> &[u8] {
        &self.bytes[span.from..span.to]
    }

    /// The same, to be changed.
    pub fn group_mut(&mut self, span: &Span) -> &mut [u8] {
        &mut self.bytes[span.from..span.to]
    }

    /// Puts a span of one moment at a place that `find` returned.
    pub fn insert(&mut self, at: usize, moment: i64, group: &[u8]) -> Span {
        let mut head = [0; SPAN];
        for i in 0..3 {
            head[8 * i..8 * i + 8].copy_from_slice(&moment.to_le_bytes());
        }
        head[24..].copy_from_slice(&(group.len() as u32).to_le_bytes());
        self.bytes.splice(at..at, head.iter().chain(group).copied());
        Span { at, start: moment, last: moment, id: moment, from: at + SPAN, to: at + SPAN + group.len() }
    }

    /// Moves the ends of a span.
    pub fn stretch(&mut self, span: &Span, start: i64, last: i64) {
        self.put(span.at, start);
        self.put(span.at + 8, last);
    }

    /// Gives a span other aggregates.
    pub fn replace(&mut self, span: &Span, group: &[u8]) {
        self.bytes[span.from - 4..span.from].copy_from_slice(&(group.len() as u32).to_le_bytes());
        self.bytes.splice(span.from..span.to, group.iter().copied());
    }

    /// Takes away all spans up to this one.
    pub fn remove_until(&mut self, last: &Span) {
        self.bytes.drain(HEAD..last.to);
    }

    /// Takes a span away.
    pub fn remove(&mut self, span: &Span) {
        self.bytes.drain(span.at..span.to);
    }

    fn read(&self, at: usize) -> Option<Span> {
        let head = self.bytes.get(at..at + SPAN)?;
        let len = u32::from_le_bytes([head[24], head[25], head[26], head[27]]) as usize;
        let (from, to) = (at + SPAN, at + SPAN + len);
        let span = Span { at, start: self.word(at), last: self.word(at + 8), id: self.word(at + 16), from, to };
        (to <= self.bytes.len()).then_some(span)
    }

    fn word(&self, at: usize) -> i64 {
        self.bytes.get(at..).and_then(|b| b.first_chunk()).map_or(NEVER, |b| i64::from_le_bytes(*b))
    }

    fn put(&mut self, at: usize, n: i64) {
        self.bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }
}

#[cold]
fn damaged() -> Reject {
    fail(code::STATE, "the state was made by another version of this transform")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_put_found_stretched_and_taken_away() {
        let mut s = Spans::default();
        assert!(!s.load(None).unwrap());
        assert!(s.is_empty() && s.timer() == NEVER && s.written() == NEVER);
        for (moment, group) in [(50, b"five" as &[u8]), (10, b""), (30, b"three")] {
            let at = s.find(|x| x.start > moment).1;
            let span = s.insert(at, moment, group);
            assert_eq!((s.group(&span), span.id), (group, moment));
        }
        s.set_timer(99);
        s.set_written(7);
        let middle = s.find(|x| x.start == 30).0.unwrap();
        s.stretch(&middle, 25, 40);
        s.replace(&middle, b"a longer one");
        let stored = s.bytes().to_vec();
        assert!(s.load(Some(&stored)).unwrap());
        let all: Vec<_> = s.iter().map(|x| (x.start, x.last, x.id, s.group(&x).to_vec())).collect();
        assert_eq!(all, [(10, 10, 10, vec![]), (25, 40, 30, b"a longer one".to_vec()), (50, 50, 50, b"five".to_vec())]);
        assert_eq!((s.timer(), s.written()), (99, 7));
        s.remove(&s.find(|x| x.start == 25).0.unwrap());
        s.remove(&s.first().unwrap());
        assert_eq!(s.iter().map(|x| x.start).collect::<Vec<_>>(), [50]);
        s.remove_until(&s.first().unwrap());
        assert!(s.is_empty() && s.timer() == 99);
    }

    #[test]
    fn bytes_of_another_version_are_refused() {
        let mut s = Spans::default();
        for bad in [b"" as &[u8], &[1; 5], &[2; 40]] {
            assert!(s.load(Some(bad)).is_err());
        }
        // Cut off in a span: what is whole is there.
        s.load(None).unwrap();
        s.insert(HEAD, 5, b"group");
        let cut = s.bytes()[..s.bytes().len() - 1].to_vec();
        s.load(Some(&cut)).unwrap();
        assert_eq!(s.iter().count(), 0);
    }
}
