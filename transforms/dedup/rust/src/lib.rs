//! Passes the first record of its kind, and drops those that are the same.

use stock::config::{Config, refuse};
use stock::expr::{Expr, Program, Type, Work};
use wasmill::state::{Map, Want};
use wasmill::{Out, Port, Record, Result, Transform, Value, dead_letter};

const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
const LATE: Port = Port::of(MANIFEST, "late");
/// The event time in microseconds of the record that was passed (0 without `within`), by key and the values of `by`.
const SEEN: Map<[u8], i64> = Map::of(MANIFEST, "seen");

/// Dead letters: no event time where one is needed.
const NO_TIME: u16 = 2;
/// The key, or what is told apart by, is too long for state.
const TOO_LONG: u16 = 3;

wasmill::transform!(MANIFEST, Dedup, Dedup::new);

struct Dedup {
    program: Program,
    by: Vec<Expr>,
    /// Microseconds; 0 = for ever.
    within: i64,
    work: Work,
    sub: Vec<u8>,
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
        Ok(Dedup { program, by, within: within.unwrap_or(0) * 1000, work: Work::default(), sub: Vec::new() })
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
}

impl Transform for Dedup {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        if r.index().is_none() {
            SEEN.want(want, r.state_key(), r.sub());
        } else if self.identify(r, 0).is_ok() {
            SEEN.want(want, r.state_key(), &self.sub);
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
        if t < out.batch().late_watermark {
            out.pass(&r, LATE);
            return Ok(());
        }
        match SEEN.get(out, key, &self.sub)? {
            Some(first) if (t - first).abs() < self.within => return Ok(()),
            // It lies before the one that is remembered by more than `within`; both are the first of their time.
            Some(first) if t < first => {}
            _ => {
                SEEN.set(out, key, &self.sub, &t);
                out.set_event_timer(key, t.saturating_add(self.within), &self.sub);
            }
        }
        out.pass(&r, OUT);
        Ok(())
    }

    fn timer(&mut self, timer: Record<'_>, out: &mut Out) -> Result {
        let at = timer.event_time().unwrap_or(0);
        if SEEN.get(out, timer.state_key(), timer.sub())?.is_some_and(|t| t.saturating_add(self.within) <= at) {
            SEEN.delete(out, timer.state_key(), timer.sub());
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
        assert_eq!((job.entries("seen").len(), job.timers().len()), (1, 2));
        // The timer of 100 leaves the newer one of 110 alone.
        assert_eq!(shown(&job.run(0, 115_000_000, &[at("k", 111, "6")]).unwrap()), [""; 0]);
        assert_eq!(shown(&job.run(0, 120_000_000, &[at("k", 114, "7"), at("k", 115, "8")]).unwrap()), ["1:7"]);
        assert_eq!((job.entries("seen").len(), job.timers().len()), (0, 0));
        assert_eq!(shown(&job.run(0, 120_000_000, &[at("k", 120, "9")]).unwrap()), ["0:9"]);
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
