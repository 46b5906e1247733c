use super::*;
use wasmill::testing::{Input, Keyed, Output};

const END: i64 = stock::time::MAX * 1000;

fn job(config: &str) -> Keyed<Join> {
    Keyed::new(MANIFEST, config, Join::new)
}

fn row(side: u16, key: &str, second: i64, value: &str) -> Input {
    Input { key: Some(key.into()), input: side, event_time: Some(second * 1_000_000), ..value.into() }
}

fn left(second: i64, value: &str) -> Input {
    row(0, "k", second, value)
}

fn right(second: i64, value: &str) -> Input {
    row(1, "k", second, value)
}

fn shown(out: &[Output]) -> Vec<String> {
    let show = |o: &Output| match &o.reject {
        Some((code, reason, poison)) => format!("{code} {reason}{}", if *poison { " (poison)" } else { "" }),
        None => format!("{}{}", if o.port == 1 { "late " } else { "" }, String::from_utf8_lossy(o.value.as_deref().unwrap_or(b"-"))),
    };
    out.iter().map(show).collect()
}

#[test]
fn pairs_within_bounds_across_batches() {
    let mut job = job(r#"{"within":{"before":"10s","after":"5s"}}"#);
    let out = job.run(0, 0, &[left(100, "1"), right(90, "2"), right(105, "3"), right(106, "4"), row(1, "l", 100, "5")]).unwrap();
    assert_eq!(shown(&out), [r#"{"left":1,"right":2}"#, r#"{"left":1,"right":3}"#]);
    assert_eq!((out[1].key.as_deref(), out[1].event_time, out[1].index), (Some(b"k" as &[u8]), Some(105_000_000), Some(2)));
    let out = job.run(0, 0, &[left(101, " 6 "), left(84, "7")]).unwrap();
    assert_eq!(shown(&out), [r#"{"left":6,"right":3}"#, r#"{"left":6,"right":4}"#]);
}

#[test]
fn forgets_what_can_match_no_more() {
    let mut job = job(r#"{"within":{"before":"10s","after":"5s"}}"#);
    // Buckets of 15 s.
    job.run(0, 0, &[left(100, "1"), right(100, "2")]).unwrap();
    job.run(0, 110_000_000 - 1, &[]).unwrap();
    assert_eq!((job.entries("left").len(), job.entries("right").len()), (1, 1));
    job.run(0, 110_000_000, &[]).unwrap();
    assert_eq!((job.entries("left").len(), job.entries("right").len()), (0, 1));
    // 109 is late by now, 110 is not, and finds 100.
    assert_eq!(shown(&job.run(0, 115_000_000, &[left(109, "3"), left(110, "4")]).unwrap()), ["late 3", r#"{"left":4,"right":2}"#]);
    job.run(0, 135_000_000, &[]).unwrap();
    assert!(job.entries("left").is_empty() && job.entries("right").is_empty() && job.timers().is_empty());
}

#[test]
fn records_alone_come_out_when_nothing_can_match_them_any_more() {
    let inputs = [left(100, "1"), left(101, "2"), right(101, "3"), right(109, "4")];
    for (kind, pairs, after) in [
        ("inner", 1, vec![]),
        ("left", 1, vec![r#"{"left":1,"right":null}"#]),
        ("right", 1, vec![r#"{"left":null,"right":4}"#]),
        ("full", 1, vec![r#"{"left":1,"right":null}"#, r#"{"left":null,"right":4}"#]),
        ("anti", 0, vec!["1"]),
    ] {
        let mut job = job(&format!(r#"{{"type":"{kind}","within":{{"before":"0","after":"0"}}}}"#));
        assert_eq!(job.run(0, 0, &inputs).unwrap().len(), pairs, "{kind}");
        let out = job.run(0, 200_000_000, &[]).unwrap();
        assert_eq!(shown(&out), after, "{kind}");
        if kind == "left" {
            assert_eq!((out[0].key.as_deref(), out[0].event_time, out[0].index), (Some(b"k" as &[u8]), Some(100_000_000), None));
        }
        assert!(job.entries("left").is_empty() && job.entries("right").is_empty() && job.timers().is_empty());
    }
}

#[test]
fn those_of_a_window_that_have_a_match_once() {
    let mut job = job(r#"{"type":"semi","window":"10s","fields":["left/id","left/name",{"start":"floor_time(event_time(), '10s')"}]}"#);
    let person = r#"{"id":7,"name":"Kate"}"#;
    assert!(job.run(0, 0, &[left(12, person), right(21, "{}"), right(9, "{}")]).unwrap().is_empty());
    let one = [r#"{"id":7,"name":"Kate","start":10000}"#];
    assert_eq!(shown(&job.run(0, 0, &[right(19, "{}"), right(11, "{}")]).unwrap()), one);
    assert_eq!(shown(&job.run(0, 0, &[right(15, "{}"), left(29, person)]).unwrap()), [r#"{"id":7,"name":"Kate","start":20000}"#]);
    // The window of 10 is over, that of 20 is not.
    job.run(0, 20_000_000, &[]).unwrap();
    assert_eq!(shown(&job.run(0, 20_000_000, &[right(19, "{}"), right(20, "{}")]).unwrap()), ["late {}"]);
    job.run(0, 30_000_000, &[]).unwrap();
    assert!(job.entries("left").is_empty() && job.entries("right").is_empty());
}

#[test]
fn for_ever_without_event_time() {
    let mut job = job(r#"{"where":"left/category = 10","fields":["right/name",{"id":"left/id"}]}"#);
    let no_time = |mut i: Input| {
        i.event_time = None;
        i
    };
    let person = no_time(right(0, r#"{"name":"Kate"}"#));
    assert!(job.run(0, 0, &[person]).unwrap().is_empty());
    let out = job.run(0, END, &[no_time(left(0, r#"{"id":1,"category":10}"#)), no_time(left(0, r#"{"id":2,"category":11}"#))]).unwrap();
    assert_eq!(shown(&out), [r#"{"name":"Kate","id":1}"#]);
    assert_eq!((out[0].event_time, job.timers().len()), (None, 0));
    assert_eq!(shown(&job.run(0, END, &[right(3, r#"{"name":"Paul"}"#)]).unwrap()), [r#"{"name":"Paul","id":1}"#]);
}

#[test]
fn for_ever_ends_with_time() {
    let mut job = job(r#"{"type":"full"}"#);
    job.run(0, 0, &[left(1, "1"), row(1, "l", 2, "2")]).unwrap();
    assert_eq!(shown(&job.run(0, END, &[]).unwrap()), [r#"{"left":1,"right":null}"#, r#"{"left":null,"right":2}"#]);
    assert!(job.entries("left").is_empty() && job.entries("right").is_empty());
}

#[test]
fn a_key_with_many_rows_and_large_ones() {
    let mut job = job(r#"{"type":"left","within":{"before":"1h","after":"1h"}}"#);
    let large = format!("\"{}\"", "x".repeat(100_000));
    let many: Vec<Input> = (0..3000).map(|i| if i % 500 == 7 { left(i % 60, &large) } else { left(i % 60, &format!("{i}")) }).collect();
    for part in many.chunks(700) {
        assert!(job.run(0, 0, part).unwrap().is_empty());
    }
    assert!(job.entries("left").iter().all(|(_, _, v)| v.len() < 140_000) && job.entries("left").len() > 5);
    let out = job.run(0, 0, &[right(0, "0")]).unwrap();
    assert_eq!(out.len(), 3000);
    assert_eq!(shown(&out[2998..]), [r#"{"left":2998,"right":0}"#, r#"{"left":2999,"right":0}"#]);
    assert!(job.run(0, END, &[]).unwrap().is_empty());
    assert!(job.entries("left").is_empty());
}

#[test]
fn keeps_what_is_read() {
    let mut fields = job(r#"{"where":"left/w > 0","fields":["left/a","left/o/x","right/b"]}"#);
    let l = r#"{"\u0061":1,"o":{"x":2,"y":3},"w":1,"z":"not read"}"#;
    fields.run(0, 0, &[left(0, l), left(0, "7"), row(1, "l", 0, r#"{"c":1}"#)]).unwrap();
    let kept =
        |job: &Keyed<Join>, table: &str| job.entries(table).iter().map(|(_, _, v)| String::from_utf8_lossy(v).into_owned()).collect::<String>();
    assert!(kept(&fields, "left").contains(r#"{"\u0061":1,"o":{"x":2,"y":3},"w":1}"#) && kept(&fields, "left").ends_with('7'));
    assert!(kept(&fields, "right").ends_with("{}"));
    assert_eq!(shown(&fields.run(0, 0, &[right(0, r#"{"b":4}"#)]).unwrap()), [r#"{"a":1,"x":2,"b":4}"#]);
    let mut whole = job(r#"{"type":"semi"}"#);
    whole.run(0, 0, &[left(0, l), row(1, "l", 0, l)]).unwrap();
    assert!(kept(&whole, "left").ends_with(l) && kept(&whole, "right").ends_with("{}"));
}

#[test]
fn what_it_cannot_join_is_set_aside() {
    let mut job1 = job(r#"{"within":{"after":"1s"}}"#);
    let inputs = [
        left(0, "{"),
        Input { event_time: None, ..left(0, "1") },
        left(0, &format!("\"{}\"", "x".repeat(512 << 10))),
        row(0, &"k".repeat(4090), 0, "1"),
    ];
    let codes: Vec<_> = job1.run(0, 0, &inputs).unwrap().iter().map(|o| o.reject.as_ref().unwrap().0).collect();
    assert_eq!(codes, [NOT_JSON, NO_EVENT_TIME, TOO_LARGE, TOO_LARGE]);
    // A record that can never be written alone is refused at once; one that spoils a pair after another went out is poison.
    let mut job2 = job(r#"{"type":"left","fields":[{"sum":"left/a + coalesce(right/b, 0)"}]}"#);
    let out = job2.run(0, 0, &[left(0, r#"{"a":"x"}"#), left(0, r#"{"a":1}"#), right(0, r#"{"b":"y"}"#), right(0, r#"{"b":2}"#)]).unwrap();
    let wrong = |side: &str, v: &str, column| format!("0 fields.sum, column {column}: {side} is \"{v}\", where a number is needed");
    assert_eq!(
        shown(&out),
        [
            wrong("left/a", "x", 1),
            wrong("right/b", "y", 19).replace("right/b is", "this is").replace("column 19", "column 10"),
            r#"{"sum":3}"#.into()
        ]
    );
    let mut job3 = job(r#"{"fields":[{"sum":"left/a + right/b"}]}"#);
    let out = job3.run(0, 0, &[left(0, r#"{"a":1}"#), left(0, r#"{"a":"x"}"#), right(0, r#"{"b":2}"#)]).unwrap();
    assert_eq!(shown(&out), [r#"{"sum":3}"#.to_owned(), format!("{} (poison)", wrong("left/a", "x", 1))]);
}

#[test]
fn refuses_other_configurations() {
    for (config, want) in [
        (r#"{"type":"cross"}"#, "config: type is \"cross\", not one of inner, left, right, full, semi, anti"),
        (r#"{"within":{"after":"1s"},"window":"1s"}"#, "config: window and within do not go together"),
        (r#"{"within":{"around":"1s"}}"#, "config: within.around is no setting of this transform"),
        (r#"{"within":{"after":1}}"#, "config: within.after is not a duration such as 500ms, 10s, 15m, 2h or 1d"),
        (r#"{"window":"0"}"#, "config: window is no time"),
        (r#"{"fields":["/a"]}"#, "config: fields.a, column 1: a pointer begins with left/ or right/"),
        (r#"{"where":"left/a + 1"}"#, "config: where, column 8: this is a number, where true or false is needed"),
    ] {
        let Err(e) = Join::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
        assert_eq!(e.reason(), want, "{config}");
    }
}

/// Random streams, cut into batches of any size, against two nested loops.
#[test]
fn random_streams_against_two_loops() {
    let mut seed = 7u64;
    let mut random = |n: i64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as i64 % n
    };
    for round in 0..240 {
        let kind = ["inner", "left", "right", "full", "semi", "anti"][round % 6];
        let (before, after, window) = (random(8), random(8), random(9) + 1);
        let timing = match round / 6 % 3 {
            0 => format!(r#","within":{{"before":"{before}s","after":"{after}s"}}"#),
            1 => format!(r#","window":"{window}s""#),
            _ => String::new(),
        };
        let matches = |l: i64, r: i64| match round / 6 % 3 {
            0 => l - before <= r && r <= l + after,
            1 => l / window == r / window,
            _ => true,
        };
        let mut job = job(&format!(r#"{{"type":"{kind}","where":"left/n % 3 != right/n % 3"{timing}}}"#));
        let (mut kept, mut got, mut newest, mut late) = ([Vec::new(), Vec::new()], Vec::new(), 0, 0);
        let mut take = |out: Vec<Output>| {
            let lates = out.iter().filter(|o| o.port == 1).count();
            got.extend(shown(&out.into_iter().filter(|o| o.port == 0).collect::<Vec<_>>()));
            lates
        };
        let (mut n, mut watermark) = (0, 0);
        for _ in 0..random(12) + 1 {
            let mut batch = Vec::new();
            for _ in 0..random(12) {
                let (side, key, at) = (random(2) as usize, random(2), (newest + random(9) - 4).max(0));
                newest = newest.max(at);
                let value = format!(r#"{{"n":{n},"k":{key}}}"#);
                batch.push((side, key, at, n, value));
                n += 1;
            }
            batch.sort_by_key(|b| b.0);
            let inputs: Vec<Input> = batch.iter().map(|(side, key, at, _, v)| row(*side as u16, &key.to_string(), *at, v)).collect();
            let late_watermark = watermark;
            watermark = watermark.max((newest - 3) * 1_000_000);
            late += take(job.run(0, watermark, &inputs).unwrap());
            let timing = Settings::read(Value::parse(format!(r#"{{"type":"inner"{timing}}}"#).as_bytes()), &mut Program::over("left", "right"))
                .unwrap()
                .timing;
            for b in batch {
                if timing.late(b.2 * 1_000_000, late_watermark) {
                    late -= 1;
                } else {
                    kept[b.0].push(b);
                }
            }
        }
        take(job.run(0, END, &[]).unwrap());
        assert_eq!(late, 0);
        let pair = |l: &(usize, i64, i64, i64, String), r: &(usize, i64, i64, i64, String)| l.1 == r.1 && l.3 % 3 != r.3 % 3 && matches(l.2, r.2);
        let mut want = Vec::new();
        for l in &kept[0] {
            let found = kept[1].iter().filter(|r| pair(l, r));
            match kind {
                "semi" => want.extend(found.take(1).map(|_| l.4.clone())),
                "anti" => want.extend(if found.count() == 0 { Some(l.4.clone()) } else { None }),
                _ => {
                    let before = want.len();
                    want.extend(found.map(|r| format!(r#"{{"left":{},"right":{}}}"#, l.4, r.4)));
                    if want.len() == before && matches!(kind, "left" | "full") {
                        want.push(format!(r#"{{"left":{},"right":null}}"#, l.4));
                    }
                }
            }
        }
        for r in kept[1].iter().filter(|_| matches!(kind, "right" | "full")) {
            if !kept[0].iter().any(|l| pair(l, r)) {
                want.push(format!(r#"{{"left":null,"right":{}}}"#, r.4));
            }
        }
        want.sort();
        got.sort();
        assert_eq!(got, want, "round {round}: {kind}{timing}");
        assert!(job.timers().is_empty());
        assert!(round / 6 % 3 == 2 || job.entries("left").is_empty() && job.entries("right").is_empty());
    }
}
