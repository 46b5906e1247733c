//! Where windows and panes lie in time, and which panes a timer will read. Times are milliseconds.

use crate::NEVER;
use crate::head::BITS;
use stock::time;

/// The windows of a configuration.
pub struct Grid {
    /// How long a window is.
    pub size: i64,
    /// How far it is from one to the next.
    pub slide: i64,
    /// How long a pane is: all windows divide into them.
    pub pane: i64,
    /// Windows begin at this time and a multiple of the slide.
    pub offset: i64,
    /// How long after its end a window takes records.
    pub allowed: i64,
}

impl Grid {
    /// The largest multiple of `step` from the offset on that is not behind t.
    #[inline]
    pub fn floor(&self, t: i64, step: i64) -> i64 {
        t - (t - self.offset).rem_euclid(step)
    }

    /// The start of the first window that holds the moment t.
    #[inline]
    pub fn first_window(&self, t: i64) -> i64 {
        self.floor(t - self.size, self.slide) + self.slide
    }

    /// The start of the last window that holds the moment t.
    #[inline]
    pub fn last_window(&self, t: i64) -> i64 {
        self.floor(t, self.slide)
    }

    /// When a window is complete.
    #[inline]
    pub fn close_at(&self, start: i64) -> i64 {
        (start + self.size + self.allowed).min(time::MAX)
    }

    /// The start of the first window that holds t and is complete only after `done`.
    pub fn next_window(&self, t: i64, done: i64) -> i64 {
        let first = self.first_window(t);
        if done == NEVER || self.close_at(first) > done {
            return first;
        }
        first.max(self.floor(done - self.size - self.allowed, self.slide) + self.slide)
    }

    /// The number that the members of a part of a pane are held under.
    pub fn id(&self, pane: i64, from: i64) -> i64 {
        pane.wrapping_mul(1024) + (from - self.first_window(pane)) / self.slide
    }

    /// The panes up to a time that a timer of an event time will read as a rule: those that were there when it was set, of which
    /// `sub` has bits, the first of its window in the lowest; and those of the window's last slide, if the one before has them.
    pub fn expected(&self, at: i64, sub: &[u8], until: i64) -> impl Iterator<Item = i64> {
        let known = sub.first_chunk().filter(|_| at < time::MAX).map_or(0, |b| u64::from_be_bytes(*b));
        let (n, step) = (self.size / self.pane, self.slide / self.pane);
        let again = if n <= BITS && 2 * step <= n { known << step & ones(n) & !ones(n - step) } else { 0 };
        let mut bits = known | again;
        let (start, pane) = (at - self.allowed - self.size, self.pane);
        std::iter::from_fn(move || {
            let n = bits.trailing_zeros();
            bits &= bits.wrapping_sub(1);
            Some(start + i64::from(n) * pane).filter(|pane| n < u64::BITS && *pane < until)
        })
    }
}

/// So many bits, at most 64, from the lowest on.
fn ones(n: i64) -> u64 {
    if n < BITS { (1 << n) - 1 } else { u64::MAX }
}

/// The greatest common divisor.
pub fn common(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_expects_what_was_there_and_what_came_before() {
        let grid = Grid { size: 10, slide: 2, pane: 2, offset: 0, allowed: 3 };
        let expected = |bits: u64, until| grid.expected(13, &bits.to_be_bytes(), until).collect::<Vec<i64>>();
        assert_eq!(expected(0b1, 10), [0]);
        assert_eq!(expected(0b1001, 10), [0, 6, 8]);
        assert_eq!(expected(1 << 63 | 0b110000, 10), [8]);
        assert_eq!(expected(1 << 63 | 0b110000, 1_000), [8, 10, 126]);
        assert!(grid.expected(13, b"", 1_000).next().is_none());
        assert!(grid.expected(time::MAX, &[255; 8], time::MAX).next().is_none());
        let far = Grid { size: 100, slide: 50, pane: 1, ..grid };
        assert_eq!(far.expected(103, &1u64.to_be_bytes(), 1_000).collect::<Vec<i64>>(), [0]);
    }
}
