use super::*;
use wasmill::testing::{Input, Keyed, Output};

fn job(config: &str) -> Keyed<Top> {
    Keyed::new(MANIFEST, config, Top::new)
}

fn at(key: &str, second: i64, value: &str) -> Input {
    Input { key: Some(key.into()), event_time: Some(second * 1_000_000), ..value.into() }
}

fn price(p: i64) -> Input {
    at("a", p, &format!(r#"{{"p":{p}}}"#))
}

/// Key and value of what came out, by port.
fn shown(out: &[Output]) -> Vec<String> {
    let text = |b: &Option<Vec<u8>>| b.as_ref().map_or("null".into(), |b| String::from_utf8_lossy(b).into_owned());
    let show = |o: &Output| match &o.reject {
        Some((code, reason, _)) => format!("{code} {reason}"),
        None => format!("{} {}={}", o.port, text(&o.key), text(&o.value)),
    };
    out.iter().map(show).collect()
}

#[test]
fn updates_are_addressed_by_place() {
    let mut job = job(r#"{"n":3,"order":"/p desc","rank":"rank"}"#);
    let out = job.run(0, 0, &[price(5), price(7), at("b", 1, r#"{"p":1}"#)]).unwrap();
    assert_eq!(shown(&out), [r#"0 ["a",1]={"p":7,"rank":1}"#, r#"0 ["a",2]={"p":5,"rank":2}"#, r#"0 ["b",1]={"p":1,"rank":1}"#]);
    assert_eq!((out[0].event_time, out[0].index), (Some(7_000_000), None));
    // Only the places that change come out again, and once a batch.
    let out = job.run(0, 0, &[price(4), price(6), price(3)]).unwrap();
    assert_eq!(shown(&out), [r#"0 ["a",2]={"p":6,"rank":2}"#, r#"0 ["a",3]={"p":5,"rank":3}"#]);
    assert!(job.run(0, 0, &[price(5), price(1)]).unwrap().is_empty());
    assert_eq!(shown(&job.run(0, 0, &[at(r#"["x","y"]"#, 0, "{}")]).unwrap()), [r#"0 ["x","y",1]={"rank":1}"#]);
}

#[test]
fn the_newest_of_a_key_replaces_it() {
    let mut job = job(r#"{"order":["/at desc"],"ties":"last"}"#);
    let out = job.run(0, 0, &[at("k", 0, r#"{"at":5,"v":1}"#), at("k", 0, r#"{"at":5,"v":2}"#), at("k", 0, r#"{"at":4,"v":3}"#)]).unwrap();
    assert_eq!(shown(&out), [r#"0 k={"at":5,"v":2}"#]);
    assert_eq!(shown(&job.run(0, 0, &[at("k", 0, r#"{"at":5,"v":4}"#)]).unwrap()), [r#"0 k={"at":5,"v":4}"#]);
    assert!(job.run(0, 0, &[at("k", 0, r#"{"v":5}"#)]).unwrap().is_empty(), "null is the last");
}

#[test]
fn equal_records() {
    let rows = [at("k", 0, r#"{"p":1,"v":1}"#), at("k", 0, r#"{"p":1.0,"v":2}"#), at("k", 0, r#"{"p":1,"v":3}"#)];
    for (ties, want) in [("first", vec!["v\":1", "v\":2"]), ("last", vec!["v\":3", "v\":2"]), ("all", vec!["v\":1", "v\":2", "v\":3"])] {
        let out = job(&format!(r#"{{"n":2,"order":"/p","ties":"{ties}"}}"#)).run(0, 0, &rows).unwrap();
        assert_eq!(out.len(), want.len(), "{ties}");
        for (o, w) in shown(&out).iter().zip(&want) {
            assert!(o.contains(w), "{ties}: {o}");
        }
    }
    let mut job = job(r#"{"order":"/p desc","ties":"all","rank":"r"}"#);
    assert_eq!(shown(&job.run(0, 0, &rows[..2]).unwrap()), [r#"0 ["k",1]={"p":1,"v":1,"r":1}"#, r#"0 ["k",2]={"p":1.0,"v":2,"r":1}"#]);
    assert_eq!(shown(&job.run(0, 0, &[at("k", 0, r#"{"p":2}"#)]).unwrap()), [r#"0 ["k",1]={"p":2,"r":1}"#, r#"0 ["k",2]=null"#]);
}

#[test]
fn once_when_their_time_is_over() {
    let mut job = job(r#"{"order":"/num desc","ties":"all","final":true}"#);
    let row = |auction: i64, num: i64| at("w", 10, &format!(r#"{{"auction":{auction},"num":{num}}}"#));
    assert!(job.run(0, 9_000_000, &[row(1, 5), row(2, 7)]).unwrap().is_empty());
    assert_eq!(job.timers().len(), 1);
    let out = job.run(0, 10_001_000, &[row(3, 7)]).unwrap();
    assert_eq!(shown(&out), [r#"1 w={"auction":2,"num":7}"#, r#"1 w={"auction":3,"num":7}"#]);
    assert_eq!(out[0].event_time, Some(10_000_000));
    assert!(job.entries("groups").is_empty() && job.timers().is_empty());
    // Results of windows that the watermark of this very batch has closed: not late, and over at once.
    let out = job.run(0, 20_001_000, &[at("x", 20, r#"{"num":1}"#), at("x", 20, r#"{"num":2}"#), row(4, 9)]).unwrap();
    assert_eq!(shown(&out), [r#"2 w={"auction":4,"num":9}"#, r#"1 x={"num":2}"#]);
    assert!(job.entries("groups").is_empty() && job.timers().is_empty());
}

#[test]
fn a_group_lasts_until_its_last_record() {
    let mut job = job(r#"{"order":"/p","final":true}"#);
    assert!(job.run(0, 0, &[at("k", 5, r#"{"p":1}"#), at("k", 8, r#"{"p":2}"#)]).unwrap().is_empty());
    assert!(job.run(0, 7_000_000, &[]).unwrap().is_empty());
    assert_eq!(shown(&job.run(0, 8_001_000, &[]).unwrap()), [r#"1 k={"p":1}"#]);
}

#[test]
fn what_it_cannot_rank_is_set_aside() {
    let out = job(r#"{"order":"/p","rank":"r","final":true}"#)
        .run(0, 0, &[at("k", 0, "[1]"), at("k", 0, "{"), Input { event_time: None, ..price(1) }])
        .unwrap();
    assert_eq!(out.iter().map(|o| o.reject.as_ref().unwrap().0).collect::<Vec<_>>(), [0, 1, NO_EVENT_TIME]);
    let large = format!(r#"{{"p":1,"x":"{}"}}"#, "x".repeat(200 << 10));
    let mut job = job(r#"{"n":3,"order":"/p"}"#);
    let out = job.run(0, 0, &[at("k", 0, &large), at("k", 0, &large), at("k", 0, &large)]).unwrap();
    assert_eq!(out.iter().map(|o| o.reject.is_some()).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(out[0].reject.as_ref().unwrap().0, TOO_LARGE);
    let huge = format!(r#"{{"p":"{}"}}"#, "x".repeat(512 << 10));
    assert_eq!(shown(&job.run(0, 0, &[at("l", 0, &huge)]).unwrap()), ["3 the value has more than 512 KiB"]);
}

#[test]
fn refuses_other_configurations() {
    for (config, want) in [
        ("{}", "config: order is missing"),
        (r#"{"order":"/a","n":0}"#, "config: n is not an integer from 1 to 1000"),
        (r#"{"order":["/a down"]}"#, "config: order[0], column 4: there is down, where an operator or the end was expected"),
        (r#"{"order":"/a","ties":"none"}"#, "config: ties is \"none\", not one of first, last, all"),
        (r#"{"order":"/a","by":1}"#, "config: by is no setting of this transform"),
    ] {
        let Err(e) = Top::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
        assert_eq!(e.reason(), want, "{config}");
    }
}

/// Random records in random batches: what the updates come to is the sorted list.
#[test]
fn updates_come_to_the_sorted_list() {
    let mut seed = 3u64;
    let mut random = |n: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % n
    };
    for round in 0..90 {
        let (n, ties) = (random(4) as usize + 1, ["first", "last", "all"][round % 3]);
        let mut job = job(&format!(r#"{{"n":{n},"order":["/p desc","/q"],"ties":"{ties}"}}"#));
        let (mut seen, mut table) = (Vec::new(), BTreeMap::new());
        for _ in 0..random(9) + 1 {
            let mut batch = Vec::new();
            for _ in 0..random(9) {
                let (key, p, q) = (random(2), random(4), random(2));
                let value = format!(r#"{{"p":{p},"q":{q},"i":{}}}"#, seen.len());
                batch.push(at(&key.to_string(), 0, &value));
                seen.push((key, std::cmp::Reverse(p), q, seen.len(), value));
            }
            for o in job.run(0, 0, &batch).unwrap() {
                match o.value {
                    Some(v) => table.insert(o.key.unwrap(), String::from_utf8(v).unwrap()),
                    None => table.remove(&o.key.unwrap()),
                };
            }
        }
        let mut got: Vec<String> = table.into_values().collect();
        got.sort();
        let mut want = Vec::new();
        for key in 0..2 {
            let mut rows: Vec<_> = seen.iter().filter(|r| r.0 == key).collect();
            rows.sort_by_key(|r| (r.1, r.2, if ties == "last" { usize::MAX - r.3 } else { r.3 }));
            let nth = rows.get(n - 1).map(|r| (r.1, r.2));
            want.extend(rows.iter().enumerate().filter(|(i, r)| *i < n || ties == "all" && Some((r.1, r.2)) == nth).map(|(_, r)| r.4.clone()));
        }
        want.sort();
        assert_eq!(got, want, "round {round}: {n} {ties}");
    }
}
