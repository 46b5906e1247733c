//! State, timers and the batches of a keyed stage, natively.

use std::collections::BTreeMap;
use wasmill::state::{Codec, Counter, List, Map, Value, Want};
use wasmill::testing::{Input, Keyed, Output, Timer};
use wasmill::{Out, Port, Record, Result, Transform, dead_letter};

#[allow(dead_code)]
#[path = "../examples/windowed_count.rs"]
mod windowed_count;

const MANIFEST: &str = r#"{"abi": 1, "name": "t", "version": "1", "inputs": [{"name": "in", "content": "json"}],
 "outputs": [{"name": "out"}], "tables": [{"name": "values"}, {"name": "counts", "type": "i64"}, {"name": "map"}, {"name": "list"}]}"#;
const OUT: Port = Port::of(MANIFEST, "out");
const VALUES: Value<String> = Value::of(MANIFEST, "values");
const COUNTS: Counter = Counter::of(MANIFEST, "counts");
const MAP: Map<str, Vec<u8>> = Map::of(MANIFEST, "map");
const LIST: List<String> = List::of(MANIFEST, "list");

fn input(key: &str, value: &str) -> Input {
    Input { key: Some(key.into()), ..value.into() }
}

fn at(key: &str, ms: i64, value: &str) -> Input {
    Input { event_time: Some(ms * 1000), ..input(key, value) }
}

fn texts(out: &[Output]) -> Vec<String> {
    out.iter().map(|o| String::from_utf8(o.value.clone().unwrap_or_default()).expect("UTF-8")).collect()
}

fn emit(out: &mut Out, key: &[u8], text: &str) {
    out.blank().key(key).value(Some(text.as_bytes()), OUT);
}

/// A stage of a function of a record.
fn stage(f: fn(Record<'_>, &mut Out) -> Result) -> Keyed<fn(Record<'_>, &mut Out) -> Result> {
    FUNCTION.set(Some(f));
    Keyed::new(MANIFEST, "{}", |_| Ok(FUNCTION.get().expect("a function")))
}

type Function = fn(Record<'_>, &mut Out) -> Result;
thread_local! {
    static FUNCTION: std::cell::Cell<Option<Function>> = const { std::cell::Cell::new(None) };
}

#[test]
fn a_counter_is_read_and_written_once_a_batch() {
    let mut job = stage(|r, out| {
        let n = COUNTS.add(out, r.state_key(), 1)?;
        emit(out, r.state_key(), &n.to_string());
        Ok(())
    });
    let inputs: Vec<Input> = (0..3000).map(|i| input(["a", "b", "c"][i % 3], "")).collect();
    let out = job.run(0, 0, &inputs).expect("a batch");
    assert_eq!((out.len(), texts(&out)[2999].as_str()), (3000, "1000"));
    assert_eq!(job.calls(), (1, 1), "one read for the frame that first needs it, one write");
    assert_eq!(job.get("counts", b"b", b""), Some(&1000i64.to_le_bytes()[..]));
    assert_eq!(texts(&job.run(0, 0, &[input("b", ""), input("new", "")]).expect("a batch")), ["1001", "1"]);
    assert_eq!(job.calls(), (1, 1));
    job.run(0, 0, &[]).expect("an empty batch");
    assert_eq!(job.calls(), (0, 0));
}

#[test]
fn what_a_failed_batch_did_is_forgotten() {
    let mut job = stage(|r, out| {
        VALUES.set(out, r.state_key(), &"x".into());
        out.set_event_timer(b"k", 1000, b"");
        match r.index() {
            Some(1) => panic!("at the second"),
            _ => Ok(()),
        }
    });
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.run(0, 0, &[input("a", ""), input("b", "")])));
    assert!(failed.is_err() && job.entries("values").is_empty() && job.timers().is_empty());
    assert_eq!(job.run(0, 0, &[input("a", "")]), Ok(vec![]));
    assert_eq!(job.get("values", b"a", b""), Some(b"x" as &[u8]));
}

#[test]
fn values() {
    let mut job = stage(|r, out| {
        let key = r.state_key();
        match r.value().unwrap_or_default() {
            b"delete" => VALUES.delete(out, key),
            b"twice" => VALUES.update(out, key, |v| v.unwrap_or_default().repeat(2))?,
            b"soon" => VALUES.set_until(out, key, &"gone".into(), 5000),
            b"get" => {}
            v => VALUES.set(out, key, &String::from_utf8_lossy(v).into_owned()),
        }
        let text = VALUES.get(out, key)?;
        emit(out, key, text.as_deref().unwrap_or("none"));
        Ok(())
    });
    let mut run = |time, values: &[&str]| {
        let inputs: Vec<Input> = values.iter().map(|v| input("k", v)).collect();
        texts(&job.run(time, 0, &inputs).expect("a batch"))
    };
    assert_eq!(run(0, &["get", "v", "twice", "get"]), ["none", "v", "vv", "vv"]);
    assert_eq!(run(0, &["get", "delete", "twice", "get", "w"]), ["vv", "none", "", "", "w"]);
    assert_eq!(run(0, &["delete"]), ["none"]);
    assert_eq!(run(0, &["get", "soon"]), ["none", "gone"]);
    assert_eq!(run(4999, &["get"]), ["gone"]);
    assert_eq!(run(5000, &["get"]), ["none"]);
}

#[test]
fn a_value_that_is_not_what_the_type_says_fails_the_record() {
    let mut job = stage(|r, out| {
        if r.value() == Some(b"spoil") {
            VALUES.entry(out, r.state_key()).set(b"\xff");
            return Ok(());
        }
        VALUES.get(out, r.state_key()).map(|_| ())
    });
    job.run(0, 0, &[input("k", "spoil")]).expect("a batch");
    let out = job.run(0, 0, &[input("k", "")]).expect("a batch");
    let want = (0, "table 0 of the manifest holds something that this module cannot read".to_string(), true);
    assert_eq!(out[0].reject, Some(want));
}

#[test]
fn lists() {
    let mut job = stage(|r, out| {
        let (key, text) = (r.state_key(), String::from_utf8_lossy(r.value().unwrap_or_default()).into_owned());
        if text == "clear" {
            LIST.clear(out, key);
        } else if !text.is_empty() {
            LIST.push(out, key, &text)?;
        }
        let all = LIST.all(out, key)?;
        assert_eq!((LIST.len(out, key)?, LIST.is_empty(out, key)?), (all.len() as u64, all.is_empty()));
        assert_eq!(LIST.get(out, key, 0)?, all.first().cloned());
        emit(out, key, &all.join(","));
        Ok(())
    });
    let mut run = |values: &[&str]| {
        let inputs: Vec<Input> = values.iter().map(|v| input("k", v)).collect();
        texts(&job.run(0, 0, &inputs).expect("a batch"))
    };
    assert_eq!(run(&["", "a", "b"]), ["", "a", "a,b"]);
    assert_eq!(run(&["c", "clear", "d"]), ["a,b,c", "", "d"]);
    let many: Vec<String> = (0..300).map(|i| i.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(run(&many).last().map(|t| t.split(',').count()), Some(301));
    assert_eq!(job.get("list", b"k", b""), Some(b"301" as &[u8]));
}

#[test]
fn timers() {
    struct Timers;
    impl Transform for Timers {
        fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
            let (key, at) = (r.state_key(), r.event_time().unwrap_or(0));
            match r.value().unwrap_or_default() {
                b"delete" => out.delete_event_timer(key, at, b"sub"),
                b"processing" => out.set_processing_timer(key, at, b""),
                _ => out.set_event_timer(key, at, b"sub"),
            }
            Ok(())
        }

        fn timer(&mut self, t: Record<'_>, out: &mut Out) -> Result {
            let text = format!("{:?} {} {}", t.kind(), t.event_time().unwrap_or(0), String::from_utf8_lossy(t.sub()));
            emit(out, t.state_key(), &text);
            // Not in this batch again.
            out.set_event_timer(t.state_key(), 1, b"again");
            Ok(())
        }
    }
    let mut job = Keyed::new(MANIFEST, "{}", |_| Ok(Timers));
    let set = [at("b", 2, ""), at("a", 2, ""), at("a", 1, ""), at("a", 1, ""), at("c", 9, ""), at("p", 5, "processing")];
    assert_eq!(job.run(9_000, 9_000, &set), Ok(vec![]), "a timer fires in a later batch");
    assert_eq!(job.timers().len(), 5);
    let out = job.run(9_000, 2_000, &[at("c", 9, "delete")]).expect("a batch");
    assert_eq!(texts(&out), ["EventTimer 1000 sub", "EventTimer 2000 sub", "EventTimer 2000 sub", "ProcessingTimer 5000 "]);
    assert_eq!(out.iter().map(|o| o.key.clone().unwrap_or_default()).collect::<Vec<_>>().concat(), b"aabp");
    let again = |key: &str| Timer { domain: 0, at: 0, key: key.into(), sub: b"again".to_vec() };
    assert_eq!(job.timers(), [again("a"), again("b"), again("p")]);
    // Set, deleted and set again in one frame; and set after it was deleted.
    let both = [at("x", 20, ""), at("x", 20, "delete"), at("y", 20, "delete"), at("y", 20, ""), at("x", 20, "")];
    job.run(0, 0, &both).expect("a batch");
    assert_eq!(job.timers().iter().filter(|t| t.at == 20_000).count(), 2);
    // One that is there already and is set again fires, once; deleted before, it fires a batch later.
    job.run(0, 20_000, &[at("x", 20, ""), at("y", 20, "delete"), at("y", 20, "")]).expect("a batch");
    let keys = |job: &Keyed<Timers>| job.timers().iter().filter(|t| t.at == 20_000).map(|t| t.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&job), [b"y"]);
    let out = job.run(0, 20_000, &[at("z", 20, ""), at("z", 20, "delete")]).expect("a batch");
    assert!(texts(&out).contains(&"EventTimer 20000 sub".to_string()));
    assert!(keys(&job).is_empty());
}

#[test]
fn a_hook_reads_ahead_what_it_names() {
    struct Ahead;
    impl Transform for Ahead {
        fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
            MAP.want(want, r.state_key(), "sub");
        }

        fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
            MAP.update(out, r.state_key(), "sub", |v| [v.unwrap_or_default(), b"x".to_vec()].concat())
        }
    }
    let mut job = Keyed::new(MANIFEST, "{}", |_| Ok(Ahead));
    job.host().chunk = 100;
    let inputs: Vec<Input> = (0..250).map(|i| input(&format!("key-{i}"), "")).collect();
    for _ in 0..3 {
        job.run(0, 0, &inputs).expect("a batch");
        assert_eq!(job.calls(), (3, 1), "a read for each frame");
    }
    assert_eq!(job.get("map", b"key-249", b"sub"), Some(b"xxx" as &[u8]));
}

#[test]
fn large_values_are_read_and_written_in_parts() {
    struct Large;
    impl Transform for Large {
        fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
            MAP.want(want, r.state_key(), "");
        }

        fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
            let key = r.state_key();
            let mut e = MAP.entry(out, key, "");
            let n = e.get().map_or(0, |v| v.len() / 400_000);
            let value = vec![key[0]; 400_000 * (n + 1).min(1) + n];
            e.set(&value);
            Ok(())
        }
    }
    let mut job = Keyed::new(MANIFEST, "{}", |_| Ok(Large));
    let inputs: Vec<Input> = (0..60u8).map(|i| input(&char::from(b'0' + i).to_string(), "")).collect();
    for batch in 0..3 {
        job.run(0, 0, &inputs).expect("a batch");
        assert!(job.calls().1 > 1, "written as memory fills");
        assert_eq!(job.entries("map").len(), 60);
        for (key, _, value) in job.entries("map") {
            assert!(value.len() == 400_000 + usize::from(batch > 0) && value.iter().all(|c| *c == key[0]));
        }
    }
}

/// The random operations of one record: each a letter and a digit for the sub-key.
fn model_step(r: Record<'_>, out: &mut Out) -> Result {
    let (key, value) = (r.state_key(), r.value().unwrap_or_default());
    for step in value.chunks_exact(2) {
        let sub = format!("{}{}", char::from(step[1] & 3 | b'a'), char::from(step[1]));
        let found = match step[0] {
            b'p' => {
                MAP.set(out, key, &sub, &sub.repeat(usize::from(step[1] - b'0')).into_bytes());
                String::new()
            }
            b'd' => {
                MAP.delete(out, key, &sub);
                String::new()
            }
            b'c' => {
                MAP.clear_prefix(out, key, &sub.as_bytes()[..1]);
                String::new()
            }
            b'x' => {
                MAP.clear_range(out, key, "b", &sub);
                String::new()
            }
            b'g' => format!("{:?}", MAP.get(out, key, &sub)?),
            b's' => list(MAP.scan(out, key).after(&sub).limit(3).rows().raw()),
            b'r' => list(MAP.scan(out, key).prefix(&sub.as_bytes()[..1]).reverse().rows().raw()),
            _ => return Err(dead_letter(1, "no step")),
        };
        emit(out, key, &found);
    }
    Ok(())
}

fn list<'a>(rows: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> String {
    rows.map(|(k, v)| format!("{}={};", String::from_utf8_lossy(k), v.len())).collect()
}

/// The same over a map of the standard library.
fn model(state: &mut BTreeMap<(String, String), Vec<u8>>, key: &str, value: &[u8], want: &mut Vec<String>) {
    for step in value.chunks_exact(2) {
        let sub = format!("{}{}", char::from(step[1] & 3 | b'a'), char::from(step[1]));
        let all: Vec<_> = state.iter().filter(|(k, _)| k.0 == key).map(|(k, v)| (k.1.clone(), v.clone())).collect();
        let view = |rows: Vec<&(String, Vec<u8>)>| list(rows.into_iter().map(|(k, v)| (k.as_bytes(), v.as_slice())));
        let mut found = String::new();
        match step[0] {
            b'p' => drop(state.insert((key.into(), sub.clone()), sub.repeat(usize::from(step[1] - b'0')).into_bytes())),
            b'd' => drop(state.remove(&(key.into(), sub))),
            b'c' => state.retain(|k, _| k.0 != key || !k.1.starts_with(&sub[..1])),
            b'x' => state.retain(|k, _| k.0 != key || k.1.as_str() < "b" || k.1 >= sub),
            b'g' => found = format!("{:?}", state.get(&(key.into(), sub))),
            b's' => found = view(all.iter().filter(|(k, _)| *k > sub).take(3).collect()),
            _ => found = view(all.iter().rev().filter(|(k, _)| k.starts_with(&sub[..1])).collect()),
        }
        want.push(found);
    }
}

#[test]
fn random_operations_do_what_a_map_does() {
    let mut seed = 0x1234_5678_9abc_def1u64;
    let mut next = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for round in 0..40 {
        let (mut job, mut state) = (stage(model_step), BTreeMap::new());
        job.host().chunk = 1 + next(8) as usize;
        job.scan_limit(next(4) as usize);
        for batch in 0..6 {
            let (mut inputs, mut want) = (Vec::new(), Vec::new());
            for _ in 0..next(30) {
                let steps = b"pppdgggscxr";
                let value: Vec<u8> = (0..1 + next(4)).flat_map(|_| [steps[next(steps.len() as u64) as usize], b'0' + next(10) as u8]).collect();
                let key = ["k", "l", "a longer key"][next(3) as usize];
                model(&mut state, key, &value, &mut want);
                inputs.push(Input { key: Some(key.into()), value: Some(value), ..Input::default() });
            }
            assert_eq!(texts(&job.run(0, 0, &inputs).expect("a batch")), want, "round {round}, batch {batch}");
            let stored: Vec<_> = job.entries("map").into_iter().map(|(k, s, v)| ((text(k), text(s)), v)).collect();
            assert_eq!(stored, state.clone().into_iter().collect::<Vec<_>>(), "round {round}, batch {batch}");
        }
    }
}

fn text(b: Vec<u8>) -> String {
    String::from_utf8(b).expect("UTF-8")
}

#[test]
fn the_same_batch_twice_does_the_same_calls() {
    let run = || {
        let mut job = stage(model_step);
        let inputs: Vec<Input> = (0..500).map(|i| input(&format!("k{}", i % 37), "p1g1p2r2")).collect();
        let out = job.run(0, 0, &inputs).expect("a batch");
        (out, job.calls(), job.entries("map"))
    };
    assert_eq!(run(), run());
}

#[test]
fn integers_as_sub_keys_keep_their_order() {
    use wasmill::state::Sub;
    let ordered = [i64::MIN, -5, -1, 0, 1, 300, i64::MAX];
    let bytes: Vec<Vec<u8>> = ordered.iter().map(|n| n.with(<[u8]>::to_vec)).collect();
    assert!(bytes.is_sorted());
    assert_eq!(bytes.iter().map(|b| <i64 as Sub>::parse(b)).collect::<Vec<_>>(), ordered.map(Some));
    assert_eq!(300u64.with(<u64 as Sub>::parse), Some(300));
    assert_eq!(<i64 as Sub>::parse(b"short"), None);
    assert_eq!(<i64 as Codec>::read(b"short"), None);
}

#[test]
fn windowed_counts() {
    let mut job = Keyed::new(windowed_count::MANIFEST, "{}", |_| Ok(windowed_count::Windows));
    let amount = |key, ms, amount: &str| at(key, ms, &format!("{{\"amount\":{amount}}}"));
    let out = job.run(0, 9_000_000, &[amount("a", 1, "12.30"), amount("b", 9_999, "1"), amount("a", 10_000, "7"), amount("a", 9_000, "1.2")]);
    assert_eq!(out, Ok(vec![]));
    let late = [amount("a", 5, "0.5"), amount("c", 3, "2")];
    let want = [r#"{"key":"a","start":0,"count":3,"sum":14.00}"#, r#"{"key":"b","start":0,"count":1,"sum":1.00}"#];
    // Not late yet: the watermark passes the end in this batch. Its own window of c is set in it, and closes in the next.
    assert_eq!(texts(&job.run(0, 10_000_000, &late).expect("a batch")), want);
    let out = job.run(0, 10_000_000, &[amount("a", 6, "9")]).expect("a batch");
    assert_eq!(texts(&out), [r#"{"amount":9}"#, r#"{"key":"c","start":0,"count":1,"sum":2.00}"#]);
    assert_eq!((out[0].port, out[0].index, out[1].port), (1, Some(0), 0));
    assert_eq!(texts(&job.run(0, i64::MAX, &[]).expect("a batch")), [r#"{"key":"a","start":10000,"count":1,"sum":7.00}"#]);
    assert!(job.entries("windows").is_empty() && job.timers().is_empty());
    let mut job = Keyed::new(windowed_count::MANIFEST, "{}", |_| Ok(windowed_count::Windows));
    let out = job.run(0, 0, &[at("a", 5, "{}")]).expect("a batch");
    assert_eq!(out[0].reject, Some((1, "amount is missing".into(), false)));
    assert!(job.entries("windows").is_empty() && job.timers().is_empty());
}
