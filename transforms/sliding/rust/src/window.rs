//! Windows that are complete: put together of their panes, written, and forgotten.

use crate::head::{BITS, Head as Keyed};
use crate::{HEADS, MEMBERS, MOST_MOVED, OUT, SLICES, Sliding, pane};
use stock::group;
use stock::time;
use wasmill::{Out, Result};

/// Panes that were read: where each begins in time, and its bytes.
#[derive(Default)]
pub struct Found {
    list: Vec<(i64, usize, usize)>,
    bytes: Vec<u8>,
}

impl Found {
    fn clear(&mut self) {
        self.list.clear();
        self.bytes.clear();
    }

    fn push(&mut self, start: i64, bytes: &[u8]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        self.list.push((start, from, self.bytes.len()));
    }

    /// Start and bytes of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &[u8])> {
        self.list.iter().map(|&(start, from, to)| (start, &self.bytes[from..to]))
    }
}

impl Sliding {
    /// Reads the panes of a key from one time up to, but without, another: one by one if they are few, or else by looking through
    /// the key.
    pub(crate) fn gather(&mut self, key: &[u8], head: &Keyed, from: i64, to: i64, out: &mut Out) {
        self.found.clear();
        if from > head.newest {
            return;
        }
        let (len, to) = (self.grid.pane, to.min(head.newest + self.grid.pane));
        if (to - from) / len <= BITS || head.covers(from, len) {
            let mut start = from;
            while start < to {
                if !head.lacks(start, len)
                    && let Some(bytes) = SLICES.entry(out, key, &start).get()
                {
                    self.found.push(start, bytes);
                }
                start += len;
            }
            return;
        }
        let mut after = from - 1;
        while after < to {
            let rows = SLICES.scan(out, key).after(&after).limit(256).rows();
            for (sub, bytes) in rows.raw() {
                after = pane::start(sub);
                if after < to {
                    self.found.push(after, bytes);
                }
            }
            if rows.len() < 256 {
                return;
            }
        }
    }

    /// Writes the windows of a key that are complete, in order, as far as there is room for them, and sees to it that the next one
    /// has a timer. A timer that comes too early, since the next window is another one by now, changes nothing.
    pub(crate) fn settle(&mut self, key: &[u8], moved: bool, out: &mut Out) -> Result {
        let mut head = Keyed::read(HEADS.entry(out, key).get());
        let (now, before) = (self.now(out), head.next);
        while !head.is_empty() && self.grid.close_at(head.next) <= now && (head.next == before || self.room > 0) {
            self.gather(key, &head, head.next, head.next + self.grid.size, out);
            self.room = self.room.saturating_sub(self.found.list.len() + 1);
            self.emit(key, head.next, out)?;
            self.forget(key, head.next, out);
            self.go_on(key, &mut head, out);
        }
        if head.next == before {
            if moved && !head.is_empty() {
                self.set_timer(key, &head, out);
            }
            return Ok(());
        }
        if !head.is_empty() {
            HEADS.entry(out, key).set(&head.bytes());
            self.set_timer(key, &head, out);
            return Ok(());
        }
        HEADS.delete(out, key);
        if self.processing {
            // One of the two has not fired. It may be due in this batch, too.
            out.delete_processing_timer(key, self.grid.close_at(before) * 1000, b"");
            out.delete_event_timer(key, time::MAX * 1000, b"");
        }
        Ok(())
    }

    /// Notes that a key's next window is another one: at the end of the batch it is written, or gets a timer.
    pub(crate) fn moved(&mut self, key: &[u8], head: &Keyed, out: &mut Out) {
        if self.moved_len >= MOST_MOVED && !self.moved.contains(key) {
            self.set_timer(key, head, out);
        } else if self.moved.insert(key.to_vec()) {
            self.moved_len += key.len() + 64;
        }
    }

    fn set_timer(&self, key: &[u8], head: &Keyed, out: &mut Out) {
        let (grid, at) = (&self.grid, self.grid.close_at(head.next));
        if self.processing {
            out.set_processing_timer(key, at * 1000, b"");
            // When all input is complete the rest is due, whatever the clock says.
            out.set_event_timer(key, time::MAX * 1000, b"");
        } else {
            // Panes of windows that have more are looked for with one call.
            let bits = if grid.size / grid.pane <= BITS { head.bits(head.next, grid.pane) } else { 0 };
            out.set_event_timer(key, at * 1000, &bits.to_be_bytes());
        }
    }

    /// Goes on to the next window that holds a pane, if there is one, from that whose panes were gathered.
    fn go_on(&self, key: &[u8], head: &mut Keyed, out: &mut Out) {
        let (from, end) = (head.next + self.grid.slide, head.next + self.grid.size);
        let known = self.found.iter().map(|(at, _)| at).find(|at| *at >= from);
        match known.or_else(|| self.first_pane(key, head, end, out)) {
            Some(pane) => head.next = from.max(self.grid.first_window(pane)),
            None => *head = Keyed::read(None),
        }
    }

    /// The first pane of a key from a time on.
    fn first_pane(&self, key: &[u8], head: &Keyed, from: i64, out: &mut Out) -> Option<i64> {
        if from > head.newest || head.covers(from, self.grid.pane) {
            return head.first(from, self.grid.pane);
        }
        if SLICES.contains(out, key, &from) {
            return Some(from);
        }
        SLICES.scan(out, key).after(&from).limit(1).rows().raw().next().map(|(sub, _)| pane::start(sub))
    }

    /// Writes the row of a window of the panes that were gathered; none if there are none.
    fn emit(&mut self, key: &[u8], start: i64, out: &mut Out) -> Result {
        let (end, agg) = (start + self.grid.size, &self.reader.aggregates);
        self.work.clear();
        self.work.extend_from_slice(&self.blank);
        self.ids.clear();
        for (at, bytes) in self.found.iter() {
            for part in pane::parts(bytes).filter(|p| p.from <= start) {
                agg.check(part.group)?;
                agg.merge(&mut self.work, part.group)?;
                self.ids.push(self.grid.id(at, part.from));
            }
        }
        if self.ids.is_empty() {
            return Ok(());
        }
        for set in agg.sets() {
            let n = group::union(&MEMBERS, out, key, self.ids.iter().copied(), set);
            agg.set_members(&mut self.work, set, n);
        }
        self.row.clear();
        self.row.push(b'{');
        let comma = self.head.write(key, Some((start, end)), &mut self.row);
        agg.write(&self.work, comma, &mut self.row)?;
        self.row.push(b'}');
        out.blank().key(key).event_time((end - 1).min(time::MAX) * 1000).value(Some(&self.row), OUT);
        Ok(())
    }

    /// Forgets those of the panes that were gathered whose last window is this one.
    fn forget(&self, key: &[u8], start: i64, out: &mut Out) {
        for (at, bytes) in self.found.iter().take_while(|(at, _)| self.grid.last_window(*at) <= start) {
            if self.reader.aggregates.has_sets() {
                pane::parts(bytes).for_each(|p| MEMBERS.clear_prefix(out, key, &self.grid.id(at, p.from).to_be_bytes()));
            }
            SLICES.delete(out, key, &at);
        }
    }
}
