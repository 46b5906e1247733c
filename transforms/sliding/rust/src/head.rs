//! What is known of all panes of a key, as bytes: the start of the window that is written next, that of the newest pane, that of
//! the newest one with large sums (i64 each), and a bit for each of the newest 64 panes, the newest in the lowest (u64); all
//! little-endian.

use crate::NEVER;
use crate::pane::word;

/// So many panes, the newest and those before it, have a bit.
pub const BITS: i64 = 64;
const LEN: usize = 32;

/// What is known of all panes of a key. Times are milliseconds.
pub struct Head {
    /// The start of the first window that was not written and holds a pane. The key's timer is set to it.
    pub next: i64,
    /// The start of the newest pane; [`NEVER`] when there is none.
    pub newest: i64,
    /// The start of the newest pane with large sums; [`NEVER`] when there is none.
    pub large: i64,
    bits: u64,
}

impl Head {
    /// Reads an entry.
    pub fn read(entry: Option<&[u8]>) -> Head {
        match entry {
            Some(b) if b.len() >= LEN => Head { next: word(b, 0), newest: word(b, 8), large: word(b, 16), bits: word(b, 24) as u64 },
            _ => Head { next: NEVER, newest: NEVER, large: NEVER, bits: 0 },
        }
    }

    /// The entry's bytes.
    pub fn bytes(&self) -> [u8; LEN] {
        let mut b = [0; LEN];
        b[..8].copy_from_slice(&self.next.to_le_bytes());
        b[8..16].copy_from_slice(&self.newest.to_le_bytes());
        b[16..24].copy_from_slice(&self.large.to_le_bytes());
        b[24..].copy_from_slice(&self.bits.to_le_bytes());
        b
    }

    /// True when the key has no panes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.newest == NEVER
    }

    /// Notes a new pane. `len` is how long panes are.
    pub fn note(&mut self, pane: i64, len: i64) {
        if self.is_empty() {
            (self.newest, self.bits) = (pane, 1);
        } else if pane > self.newest {
            let n = (pane - self.newest) / len;
            self.bits = if n < BITS { self.bits << n | 1 } else { 1 };
            self.newest = pane;
        } else if self.covers(pane, len) {
            self.bits |= 1 << ((self.newest - pane) / len);
        }
    }

    /// True when this pane and all newer ones have bits.
    #[inline]
    pub fn covers(&self, pane: i64, len: i64) -> bool {
        (self.newest - pane) / len < BITS
    }

    /// True when there is no such pane; false also when that is not known.
    #[inline]
    pub fn lacks(&self, pane: i64, len: i64) -> bool {
        pane > self.newest || (self.covers(pane, len) && self.bits >> ((self.newest - pane) / len) & 1 == 0)
    }

    /// The first pane from one on that has a bit.
    pub fn first(&self, from: i64, len: i64) -> Option<i64> {
        if from > self.newest || !self.covers(from, len) {
            return None;
        }
        let bits = self.bits << (BITS - 1 - (self.newest - from) / len);
        (bits != 0).then(|| from + i64::from(bits.leading_zeros()) * len)
    }

    /// The bits of 64 panes from one on, which has the lowest. Those that are not known are 0.
    pub fn bits(&self, from: i64, len: i64) -> u64 {
        let bits = self.bits.reverse_bits();
        match (self.newest - from) / len - (BITS - 1) {
            d @ 0..BITS => bits << d,
            d if -BITS < d && d < 0 => bits >> -d,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_the_newest_panes() {
        let mut head = Head::read(None);
        assert!(head.is_empty());
        let mut all = std::collections::BTreeSet::new();
        for pane in [100, 102, 90, 400, 398, 280, 274, 272, 410, 1000, 990] {
            head.note(pane, 2);
            all.insert(pane);
            head = Head::read(Some(&head.bytes()));
            for p in (0..1_100).step_by(2) {
                let covered = p <= head.newest && head.newest - p < 128;
                assert_eq!(head.lacks(p, 2), p > head.newest || (covered && !all.contains(&p)), "{p} after {pane}");
                assert_eq!(head.first(p, 2), if covered { all.range(p..).next().copied() } else { None }, "{p} after {pane}");
                let bit = |i: i64| u64::from(all.contains(&(p + i * 2)) && head.newest - (p + i * 2) < 128) << i;
                assert_eq!(head.bits(p, 2), (0..64).map(bit).sum::<u64>(), "{p} after {pane}");
            }
        }
    }
}
