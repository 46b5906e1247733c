//! Passes the first record of its kind, and drops those that are the same.

use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Type, Work};
use wasmill::state::{Map, Want};
use wasmill::{Out, Port, Record, Result, Transform, Value, dead_letter};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// What was passed, by key and the values of `by`: without `within`.
const SEEN: Map<[u8], i64> = Map::of(MANIFEST, "seen");
/// With `within`, the event times in microseconds of the records that were passed and may have others like them: 8 bytes each,
/// the least first.
const TIMES: Map<[u8], Vec<u8>> = Map::of(MANIFEST, "times");

/// Dead letters: no event time where one is needed.
const NO_TIME: u16 = 2;
/// The key, or what is told apart by, is too long for state.
const TOO_LONG: u16 = 3;
/// More times of one kind than are remembered.
const TOO_MANY: u16 = 4;

wasmill::transform!(MANIFEST, Dedup, Dedup::new);

struct Dedup {
    program: Program,
    by: Vec<Expr>,
    /// Microseconds; 0 = for ever.
    within: i64,
    work: Work,
    sub: Vec<u8>,
    times: Vec<u8>,
}

/// Most times that are remembered of one kind.
const MOST_TIMES: usize = 60_000;

/// The nth of some times.
fn nth(times: &[u8], n: usize) -> i64 {
    times[8 * n..].first_chunk().map_or(i64::MIN, |t| i64::from_le_bytes(*t))
}

/// How many times lie before t.
fn before(times: &[u8], t: i64) -> usize {
    let (mut from, mut to) = (0, times.len() / 8);
    while from < to {
        let middle = (from + to) / 2;
        if nth(times, middle) < t {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

impl Dedup {
    fn new(config: Value<'_>) -> Result<Dedup> {
        let mut c = Config::new(config)?;
        let mut program = Program::new();
        let mut by = Vec::new();
        for (i, text) in c.strings("by")?.iter().enumerate() {
            by.push(program.compile(&format!("by[{i}]"), text, Type::Any)?);
        }
        let within = c.duration("within")?;
        if within == Some(0) {
            return Err(refuse("within is no time: leave it out to remember for ever"));
        }
        c.finish()?;
        Ok(Dedup { program, by, within: within.unwrap_or(0) * 1000, work: Work::default(), sub: Vec::new(), times: Vec::new() })
    }

    /// What the record is told apart by, beside its key.
    fn identify(&mut self, r: &Record<'_>, out_time: i64) -> Result {
        self.sub.clear();
        if self.by.is_empty() {
            return Ok(());
        }
        let mut row = self.program.record(&mut self.work, r, out_time)?;
        for (i, e) in self.by.iter().enumerate() {
            if i > 0 {
                self.sub.push(b',');
            }
            if !row.write_equal(*e, &mut self.sub)? {
                self.sub.extend_from_slice(b"null");
            }
        }
        if self.sub.len() + r.state_key().len() > 4096 {
            return Err(dead_letter(TOO_LONG, "key and by have more than 4 KiB"));
        }
        Ok(())
    }

    /// Remembers a time, unless one is remembered that lies nearer than `within`: then it returns false.
    fn remember(&mut self, key: &[u8], t: i64, out: &mut Out) -> Result<bool> {
        self.times.clear();
        let mut e = TIMES.entry(out, key, &self.sub);
        self.times.extend_from_slice(e.get().unwrap_or(b""));
        let (at, n) = (before(&self.times, t), self.times.len() / 8);
        let near = |other: i64| t.abs_diff(other) < self.within.unsigned_abs();
        if at < n && near(nth(&self.times, at)) || at > 0 && near(nth(&self.times, at - 1)) {
            return Ok(false);
        }
        if n == MOST_TIMES {
            return Err(dead_letter(TOO_MANY, "60,000 records of this kind are remembered, each by its time: the watermark is too far behind them"));
        }
        self.times.splice(8 * at..8 * at, t.to_le_bytes());
        e.set(&self.times);
        out.set_event_timer(key, t.saturating_add(self.within), &self.sub);
        Ok(true)
    }
}

impl Transform for Dedup {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        if r.index().is_none() {
            TIMES.want(want, r.state_key(), r.sub());
        } else if self.identify(r, 0).is_ok() {
            if self.within == 0 {
                SEEN.want(want, r.state_key(), &self.sub);
            } else {
                TIMES.want(want, r.state_key(), &self.sub);
            }
        }
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        self.identify(&r, out.batch().time)?;
        let key = r.state_key();
        if self.within == 0 {
            if !SEEN.contains(out, key, &self.sub) {
                SEEN.set(out, key, &self.sub, &0);
                out.pass(&r, OUT);
            }
            return Ok(());
        }
        let Some(t) = r.event_time() else {
            return Err(dead_letter(NO_TIME, "the record has no event time"));
        };
        let late = out.batch().late_watermark;
        if late != 0 && t < late {
            out.pass(&r, LATE);
        } else if self.remember(key, t, out)? {
            out.pass(&r, OUT);
        }
        Ok(())
    }

    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        let at = timer.event_time().unwrap_or(0);
        let mut e = TIMES.entry(out, timer.state_key(), timer.sub());
        let Some(times) = e.get() else { return Ok(()) };
        let n = times.len() / 8;
        let gone = (0..n).take_while(|i| nth(times, *i).saturating_add(self.within) <= at).count();
        if gone == n {
            e.delete();
        } else if gone > 0 {
            self.times.clear();
            self.times.extend_from_slice(&times[8 * gone..]);
            e.set(&self.times);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmill::testing::{Input, Keyed, Output};

    fn job(config: &str) -> Keyed<Dedup> {
        Keyed::new(MANIFEST, config, Dedup::new)
    }

    fn at(key: &str, second: i64, value: &str) -> Input {
        Input { key: Some(key.into()), event_time: Some(second * 1_000_000), ..value.into() }
    }

    fn shown(out: &[Output]) -> Vec<String> {
        out.iter().map(|o| format!("{}:{}", o.port, String::from_utf8_lossy(o.value.as_deref().unwrap_or(b"-")))).collect()
    }

    #[test]
    fn the_first_of_a_kind_for_ever() {
        let mut job = job(r#"{"by":["/a","lower(/b)"]}"#);
        let batch =
            [at("k", 0, r#"{"a":1,"b":"X"}"#), at("k", 1, r#"{"a":1.0,"b":"x"}"#), at("l", 2, r#"{"a":1,"b":"x"}"#), at("k", 3, r#"{"a":null}"#)];
        let first = job.run(0, 0, &batch).unwrap();
        assert_eq!(first.iter().map(|o| o.index).collect::<Vec<_>>(), [Some(0), Some(2), Some(3)]);
        assert_eq!(job.run(0, 99_000_000, &batch).unwrap(), []);
        assert_eq!(job.entries("seen").len(), 3);
    }

    #[test]
    fn the_first_of_a_key_without_by() {
        let mut job = job("{}");
        assert_eq!(shown(&job.run(0, 0, &[at("k", 0, "1"), at("k", 0, "no json"), at("l", 0, "3")]).unwrap()), ["0:1", "0:3"]);
    }

    #[test]
    fn forgets_by_event_time_and_sends_what_is_late_aside() {
        let mut job = job(r#"{"within":"10s"}"#);
        assert_eq!(
            shown(&job.run(0, 0, &[at("k", 100, "1"), at("k", 109, "2"), at("k", 91, "3"), at("k", 90, "4"), at("k", 110, "5")]).unwrap()),
            ["0:1", "0:4", "0:5"]
        );
        assert_eq!((job.entries("times").len(), job.timers().len()), (1, 3));
        // The timer of 100 leaves the newer one of 110 alone.
        assert_eq!(shown(&job.run(0, 115_000_000, &[at("k", 111, "6")]).unwrap()), [""; 0]);
        assert_eq!(shown(&job.run(0, 120_000_000, &[at("k", 114, "7"), at("k", 115, "8")]).unwrap()), ["1:7"]);
        assert_eq!((job.entries("times").len(), job.timers().len()), (0, 0));
        assert_eq!(shown(&job.run(0, 120_000_000, &[at("k", 120, "9")]).unwrap()), ["0:9"]);
    }

    #[test]
    fn remembers_each_that_it_passed_until_none_like_it_can_come() {
        let mut job = job(r#"{"within":"10s"}"#);
        let times = [100, 111, 101, 102, 109, 85, 85, 86, 95, 121, -5, -14, -15];
        let batch: Vec<Input> = times.iter().map(|t| at("k", *t, &t.to_string())).collect();
        assert_eq!(shown(&job.run(0, 0, &batch).unwrap()), ["0:100", "0:111", "0:85", "0:121", "0:-5", "0:-15"]);
        // The same in any cut into batches, and in any order the rule holds: none that passed lies near another.
        let mut seed = 7u64;
        for _ in 0..200 {
            let mut job = self::job(r#"{"within":"10s"}"#);
            let mut passed: Vec<i64> = Vec::new();
            for _ in 0..10 {
                let mut batch = Vec::new();
                for _ in 0..5 {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let t = (seed >> 33) as i64 % 120 - 40;
                    batch.push(at("k", t, &t.to_string()));
                }
                for o in job.run(0, 0, &batch).unwrap() {
                    let t: i64 = String::from_utf8(o.value.unwrap()).unwrap().parse().unwrap();
                    assert!(passed.iter().all(|p| (p - t).abs() >= 10), "{t} beside {passed:?}");
                    passed.push(t);
                }
                for b in &batch {
                    let t = b.event_time.unwrap() / 1_000_000;
                    assert!(passed.iter().any(|p| (p - t).abs() < 10), "{t} is lost");
                }
            }
        }
    }

    #[test]
    fn sets_aside_what_it_cannot_tell() {
        let mut timed = job(r#"{"within":"10s"}"#);
        let out = timed.run(0, 0, &[Input { key: Some(b"k".to_vec()), ..r#"{"a":1}"#.into() }]).unwrap();
        assert_eq!(out[0].reject.as_ref().unwrap().0, NO_TIME);
        let mut by = job(r#"{"by":"/a"}"#);
        let out = by.run(0, 0, &[at("k", 0, &format!(r#"{{"a":"{}"}}"#, "x".repeat(4096))), at("k", 0, "{")]).unwrap();
        assert_eq!(out.iter().map(|o| o.reject.as_ref().unwrap().0).collect::<Vec<_>>(), [TOO_LONG, 1]);
    }

    #[test]
    fn refuses_other_configurations() {
        for (config, want) in [
            (r#"{"within":"0"}"#, "config: within is no time: leave it out to remember for ever"),
            (r#"{"within":5}"#, "config: within is not a duration such as 500ms, 10s, 15m, 2h or 1d"),
            (r#"{"by":["/a +"]}"#, "config: by[0], column 5: the text ends, where a value was expected"),
            (r#"{"keep":"last"}"#, "config: keep is no setting of this transform"),
        ] {
            let Err(e) = Dedup::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
            assert_eq!(e.reason(), want, "{config}");
        }
    }
}
