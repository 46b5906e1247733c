//! Batches of a tumbling window over a store in memory. Times are milliseconds.

use tumbling::{MANIFEST, Tumbling};
use wasmill::testing::{Input, Keyed, Output};

const S2: &str = r#"{"aggregates":[{"count":"count"},{"sum":{"sum":"/amount"}}],"key":"customer","size":"10s","start":"window_start"}"#;

fn job(config: &str) -> Keyed<Tumbling> {
    Keyed::new(MANIFEST, config, Tumbling::new)
}

fn at(key: &str, ms: i64, value: &str) -> Input {
    Input { key: Some(key.into()), event_time: Some(ms * 1000), ..value.into() }
}

fn run(job: &mut Keyed<Tumbling>, watermark: i64, inputs: &[Input]) -> Vec<Output> {
    job.run(1_000_000_000, watermark * 1000, inputs).expect("a batch")
}

/// Port, key, event time in milliseconds and value of each.
fn rows(out: &[Output]) -> Vec<String> {
    let text = |b: &Option<Vec<u8>>| String::from_utf8(b.clone().unwrap_or_default()).expect("UTF-8");
    let row = |o: &Output| match &o.reject {
        Some((code, why, poison)) => format!("{} {code} {why}", if *poison { "poison" } else { "dead" }),
        None => format!("{} {} {} {}", o.port, text(&o.key), o.event_time.map_or(-1, |t| t / 1000), text(&o.value)),
    };
    out.iter().map(row).collect()
}

#[test]
fn counts_and_sums_by_window() {
    let mut job = job(S2);
    let inputs = [
        at("b", 1, r#"{"amount":12.30}"#),
        at("a", 9_999, r#"{"amount":5}"#),
        at("b", 9_000, r#"{"amount":1.2}"#),
        at("b", 10_000, r#"{"amount":7}"#),
    ];
    assert!(run(&mut job, 7_000, &inputs).is_empty());
    assert_eq!(job.calls(), (1, 1));
    assert!(run(&mut job, 9_999, &[]).is_empty());
    let want =
        [r#"0 a 9999 {"customer":"a","window_start":0,"count":1,"sum":5}"#, r#"0 b 9999 {"customer":"b","window_start":0,"count":2,"sum":13.50}"#];
    assert_eq!(rows(&run(&mut job, 10_000, &[])), want, "closed when the watermark reaches the end, in order of time and key");
    assert_eq!(job.calls(), (1, 1));
    assert_eq!((job.entries("windows").len(), job.timers().len()), (1, 1));
    assert_eq!(rows(&run(&mut job, 20_000, &[])), [r#"0 b 19999 {"customer":"b","window_start":10000,"count":1,"sum":7}"#]);
    assert_eq!((job.entries("windows").len(), job.timers().len()), (0, 0));
}

#[test]
fn what_is_late_and_what_is_complete_when_it_comes() {
    let mut job = job(S2);
    run(&mut job, 5_000, &[at("a", 1, r#"{"amount":1}"#)]);
    // The watermark passes the end in this batch: not late yet.
    let out = run(&mut job, 10_000, &[at("a", 2, r#"{"amount":2}"#), at("c", 3, r#"{"amount":4}"#), at("c", 4, r#"{"amount":4}"#)]);
    let want = [r#"0 a 9999 {"customer":"a","window_start":0,"count":2,"sum":3}"#, r#"0 c 9999 {"customer":"c","window_start":0,"count":2,"sum":8}"#];
    assert_eq!(rows(&out), want, "a window that is opened complete is closed in the same batch");
    assert!(job.entries("windows").is_empty() && job.timers().is_empty());
    let out = run(&mut job, 10_000, &[at("a", 9_999, r#"{"amount":1}"#), at("a", 10_000, r#"{"amount":1}"#), at("z", 5, "not JSON")]);
    assert_eq!(rows(&out), [r#"1 a 9999 {"amount":1}"#, "1 z 5 not JSON"]);
    assert_eq!(job.entries("windows").len(), 1);
}

#[test]
fn the_end_of_time_closes_everything() {
    let mut job = job(S2);
    run(&mut job, 0, &[at("a", stock::time::MAX, r#"{"amount":1}"#), at("b", 0, r#"{"amount":1}"#), at("b", -1, r#"{"amount":2}"#)]);
    let want = [
        r#"0 b -1 {"customer":"b","window_start":-10000,"count":1,"sum":2}"#,
        r#"0 b 9999 {"customer":"b","window_start":0,"count":1,"sum":1}"#,
        r#"0 a 253402300799999 {"customer":"a","window_start":253402300790000,"count":1,"sum":1}"#,
    ];
    assert_eq!(rows(&run(&mut job, stock::time::MAX, &[])), want);
    assert!(job.entries("windows").is_empty() && job.timers().is_empty());
}

#[test]
fn allowed_lateness_keeps_windows_open() {
    let mut job = job(r#"{"aggregates":{"n":"count"},"allowedLateness":"2s","end":"end","offset":"13s","size":"10s","start":"start"}"#);
    run(&mut job, 12_000, &[at("a", 3_000, "{}"), at("a", 12_999, "{}")]);
    assert!(run(&mut job, 14_999, &[at("a", 3_000, "{}")]).is_empty());
    assert_eq!(rows(&run(&mut job, 15_000, &[at("a", 4_000, "")])), [r#"0 a 12999 {"start":3000,"end":13000,"n":4}"#]);
    assert_eq!(rows(&run(&mut job, 15_000, &[at("a", 4_000, "")])), ["1 a 4000 "]);
}

#[test]
fn every_aggregate() {
    let config = r#"{"aggregates":[{"n":"count"},{"c":{"count":"/v"}},{"sum":{"sum":"/n"}},{"avg":{"avg":"/n","digits":3}},
        {"cut":{"avg":"/n","digits":0,"round":"down"}},{"min":{"min":"/v"}},{"max":{"max":"/v"}},{"first":{"first":"/v"}},{"last":{"last":"/v"}},
        {"exact":{"distinct":"/v"}},{"about":{"distinct":"/v","approximate":true}}],"format":"rfc3339","size":"1h","start":"hour"}"#;
    let mut job = job(config);
    let first = [at("k", 5, r#"{"v":7,"n":1}"#), at("k", 3, r#"{"v":"x","n":1e1}"#), at("k", 9, r#"{"v":null}"#), at("e", 1, "{}")];
    run(&mut job, 100, &first);
    let second = [at("k", 9, r#"{"v":7.0,"n":-0.25}"#), at("k", 9, r#"{"v":"\u0078\n"}"#), at("k", 3, r#"{"v":-1.50}"#)];
    run(&mut job, 100, &second);
    let out = run(&mut job, 3_600_000, &[]);
    let want = [
        r#"0 e 3599999 {"hour":"1970-01-01T00:00:00.000Z","n":1,"c":0,"sum":null,"avg":null,"cut":null,"min":null,"max":null,"first":null,"last":null,"exact":0,"about":0}"#,
        r#"0 k 3599999 {"hour":"1970-01-01T00:00:00.000Z","n":6,"c":5,"sum":10.75,"avg":3.583,"cut":3,"min":-1.50,"max":"x\n","first":"x","last":"\u0078\n","exact":4,"about":4}"#,
    ];
    assert_eq!(rows(&out), want);
    assert!(job.entries("members").is_empty() && job.entries("windows").is_empty());
}

#[test]
fn keys() {
    let mut job1 = job(r#"{"aggregates":{"n":"count"},"key":["carrier","origin"],"size":"1s"}"#);
    let inputs = [at(r#"["AA","J\"FK"]"#, 1, ""), at("[1,true]", 1, ""), at("plain", 1, ""), at(r#"["one"]"#, 1, "")];
    let out = run(&mut job1, 0, &inputs);
    assert_eq!(rows(&out), ["dead 3 the key has not 2 parts: plain", r#"dead 3 the key has not 2 parts: ["one"]"#]);
    assert_eq!(
        rows(&run(&mut job1, 1000, &[])),
        [r#"0 ["AA","J\"FK"] 999 {"carrier":"AA","origin":"J\"FK","n":1}"#, r#"0 [1,true] 999 {"carrier":1,"origin":true,"n":1}"#]
    );
    let mut job2 = job(r#"{"aggregates":{"n":"count"},"key":{"k":"json"},"size":"1s"}"#);
    let keys = ["1000", "-0.5e3", "007", "true", "null", "a\"b", r#"[1,"x"]"#, "[1, 2]", "", "{}"];
    run(&mut job2, 0, &keys.map(|k| at(k, 1, "")));
    let mut values: Vec<String> =
        run(&mut job2, 1000, &[]).iter().map(|o| String::from_utf8(o.value.clone().unwrap_or_default()).expect("UTF-8")).collect();
    values.sort();
    let want = [
        r#"{"k":"","n":1}"#,
        r#"{"k":"007","n":1}"#,
        r#"{"k":"[1, 2]","n":1}"#,
        r#"{"k":"a\"b","n":1}"#,
        r#"{"k":"null","n":1}"#,
        r#"{"k":"{}","n":1}"#,
        r#"{"k":-0.5e3,"n":1}"#,
        r#"{"k":1000,"n":1}"#,
        r#"{"k":[1,"x"],"n":1}"#,
        r#"{"k":true,"n":1}"#,
    ];
    assert_eq!(values, want);
}

#[test]
fn updates() {
    let mut job = job(r#"{"aggregates":{"n":"count"},"emit":"update","key":"k","size":"10s","start":"s"}"#);
    let out = run(&mut job, 0, &[at("b", 1, ""), at("a", 2, ""), at("b", 3, ""), at("b", 11_000, "")]);
    let want =
        [r#"2 ["b",0] 9999 {"k":"b","s":0,"n":2}"#, r#"2 ["a",0] 9999 {"k":"a","s":0,"n":1}"#, r#"2 ["b",10000] 19999 {"k":"b","s":10000,"n":1}"#];
    assert_eq!(rows(&out), want);
    assert!(run(&mut job, 5_000, &[]).is_empty());
    // The last change comes with the batch that closes the window, once; an unchanged window closes in silence.
    let out = run(&mut job, 10_000, &[at("a", 5, ""), at("c", 5, "")]);
    assert_eq!(rows(&out), [r#"2 ["a",0] 9999 {"k":"a","s":0,"n":2}"#, r#"2 ["c",0] 9999 {"k":"c","s":0,"n":1}"#]);
    assert_eq!(job.entries("windows").len(), 1);
}

#[test]
fn processing_time() {
    let config = r#"{"aggregates":{"n":"count"},"size":"10s","start":"s","time":"processing"}"#;
    let mut job = job(config);
    let mut batch = |ms: i64, watermark: i64, n: usize| {
        let inputs = vec![Input { key: Some(b"k".to_vec()), ..Input::default() }; n];
        let out = job.run(ms * 1000, watermark * 1000, &inputs).expect("a batch");
        (rows(&out), job.timers().len())
    };
    assert_eq!(batch(5_000, 0, 2), (vec![], 2));
    assert_eq!(batch(9_999, 0, 1), (vec![], 2));
    assert_eq!(batch(10_000, 0, 1), (vec![r#"0 k 9999 {"s":0,"n":3}"#.into()], 2));
    // All input is complete: what is open is written, whatever the clock says.
    assert_eq!(batch(11_000, stock::time::MAX, 0), (vec![r#"0 k 19999 {"s":10000,"n":1}"#.into()], 0));
    assert_eq!(batch(30_000, stock::time::MAX, 0), (vec![], 0));
}

#[test]
fn what_is_set_aside() {
    let mut job = job(r#"{"aggregates":{"d":{"distinct":"/d"},"s":{"sum":"/s"},"x":{"max":"/x"}},"size":"1s"}"#);
    let big = "9".repeat(38);
    let long = format!(r#"{{"d":"{}"}}"#, "x".repeat(3000));
    let inputs = [
        Input { event_time: None, ..at("k", 0, "{}") },
        at("k", 1, "no JSON"),
        at("k", 1, r#"{"s":"1"}"#),
        at("k", 1, r#"{"s":1e60}"#),
        at("k", 1, r#"{"x":{}}"#),
        at("k", 1, &long),
        at("k", 1, &format!(r#"{{"s":{big}}}"#)),
        at("k", 1, &format!(r#"{{"s":{big}}}"#)),
    ];
    let want = [
        "dead 2 the record has no event time",
        "dead 1 the value is not JSON",
        "dead 0 /s is not a number: 1",
        "dead 0 /s is not a number of at most 38 digits: 1e60",
        "dead 0 /x is not a number or a string: {}",
        "dead 4 /d has more than 2048 bytes",
        "dead 4 with this record a sum could have more than 38 digits",
    ];
    assert_eq!(rows(&run(&mut job, 0, &inputs)), want);
}

#[test]
fn other_aggregates_do_not_read_the_state() {
    let mut old = job(S2);
    run(&mut old, 1, &[at("a", 1, r#"{"amount":1}"#)]);
    old.configure(&S2.replace("/amount", "/cents"));
    let failed = old.run(0, 10_000_000, &[]).expect_err("other aggregates");
    assert!(failed.contains("the state was made by other aggregates"), "{failed}");
    let out = run(&mut old, 1, &[at("a", 1, r#"{"cents":1}"#)]);
    assert!(rows(&out)[0].starts_with("poison 5"));
    // What does not change what is stored is no hindrance.
    old.configure(&S2.replace("customer", "who"));
    assert_eq!(rows(&run(&mut old, 10_000, &[])), [r#"0 a 9999 {"who":"a","window_start":0,"count":1,"sum":1}"#]);
}

#[test]
fn keys_that_are_too_long_beside_a_start() {
    let mut job = job(r#"{"aggregates":{"n":"count"},"size":"10s"}"#);
    let out = run(&mut job, 1, &[at(&"k".repeat(4088), 1_000, ""), at(&"k".repeat(4089), 1_000, "")]);
    assert_eq!(rows(&out), ["dead 3 the key has more than 4088 bytes"]);
    assert_eq!(run(&mut job, 20_000, &[]).len(), 1);
}

#[test]
fn fields_of_one_name_are_refused() {
    for config in [
        r#"{"aggregates":{"s":"count"},"size":"1s","start":"s"}"#,
        r#"{"aggregates":{"s":"count"},"size":"1s","key":["a","s"]}"#,
        r#"{"aggregates":{"n":"count"},"size":"1s","start":"s","end":"s"}"#,
    ] {
        let Err(why) = Tumbling::new(wasmill::Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
        assert_eq!(why.reason(), "config: \"s\" is the name of two fields: those of key, start, end and aggregates have to differ");
    }
}

#[test]
fn configurations_that_are_refused() {
    let refused = |config: &str| match Tumbling::new(wasmill::Value::parse(config.as_bytes())) {
        Ok(_) => "accepted".into(),
        Err(why) => why.reason().to_owned(),
    };
    for (config, want) in [
        ("{}", "config: size is missing: how long a window is, such as 10s"),
        (r#"{"size":10}"#, "config: size is not a duration such as 500ms, 10s, 15m, 2h or 1d"),
        (r#"{"size":"0"}"#, "config: size is missing: how long a window is, such as 10s"),
        (r#"{"size":"1s"}"#, "config: aggregates is missing"),
        (r#"{"size":"1s","aggregates":{}}"#, "config: aggregates has 0 aggregates, not 1 to 64"),
        (r#"{"size":"1s","aggregates":[{"a":"count"},{"a":"count"}]}"#, "config: aggregates.a is there twice"),
        (r#"{"size":"1s","aggregates":[{"a":"count","b":"count"}]}"#, "config: an element of aggregates has not one name"),
        (r#"{"size":"1s","aggregates":{"a":"sum"}}"#, r#"config: aggregates.a is "sum"; it is "count" or an object such as {"sum": "/amount"}"#),
        (
            r#"{"size":"1s","aggregates":{"a":{"median":"/x"}}}"#,
            "config: aggregates.a names none of count, sum, avg, distinct, min, max, first, last",
        ),
        (r#"{"size":"1s","aggregates":{"a":{"sum":"/x","max":"/x"}}}"#, "config: aggregates.a names two functions"),
        (r#"{"size":"1s","aggregates":{"a":{"sum":"/x","digits":2}}}"#, "config: aggregates.a.digits is no setting of this transform"),
        (r#"{"size":"1s","aggregates":{"a":{"sum":"x"}}}"#, r#"config: aggregates.a: "x" is no JSON pointer: it does not begin with /"#),
        (r#"{"size":"1s","aggregates":{"a":{"avg":"/x","digits":19}}}"#, "config: aggregates.a.digits is not an integer from 0 to 18"),
        (r#"{"size":"1s","aggregates":{"a":"count"},"sise":"2s"}"#, "config: sise is no setting of this transform"),
        (r#"{"size":"1s","aggregates":{"a":"count"},"key":{"k":"number"}}"#, r#"config: key.k is neither "string" nor "json""#),
        (r#"{"size":"1s","aggregates":{"a":"count"},"key":[1]}"#, "config: key is not a list of names"),
        (
            r#"{"size":"1s","aggregates":{"a":"count"},"time":"processing","allowedLateness":"1s"}"#,
            "config: allowedLateness is for event time: in processing time nothing is late",
        ),
    ] {
        assert_eq!(refused(config), want, "{config}");
    }
}

/// Random records in random batches, of random frames, against sums that are made in one go.
#[test]
fn any_batches_give_the_same_windows() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for round in 0..20 {
        let mut want = std::collections::BTreeMap::<(i64, String), (i64, i64)>::new();
        let (mut job, mut got) = (job(S2), Vec::new());
        job.host().chunk = 1 + next(7) as usize;
        if round % 2 > 0 {
            // The watermark goes on while timers that are due wait for the next batch.
            job.timer_limit(1 + next(3) as usize);
        }
        let (mut now, mut watermark) = (0i64, 0i64);
        for _ in 0..10 {
            let mut inputs = Vec::new();
            for _ in 0..next(40) {
                now += next(900) as i64;
                // As late as what has not been passed by the watermark of the batch before.
                let ms = (now - next(3000) as i64).max(watermark);
                let (key, cents) = (format!("k{}", next(5)), next(10_000) as i64);
                let w = want.entry((ms - ms.rem_euclid(10_000), key.clone())).or_default();
                *w = (w.0 + 1, w.1 + cents);
                inputs.push(at(&key, ms, &format!(r#"{{"amount":{}.{:02}}}"#, cents / 100, cents % 100)));
            }
            let late = watermark;
            watermark = watermark.max(now - 2000);
            got.extend(run(&mut job, watermark, &inputs));
            assert!(watermark >= late);
        }
        while !job.timers().is_empty() {
            got.extend(run(&mut job, stock::time::MAX, &[]));
        }
        let mut got: Vec<String> = got.iter().map(|o| String::from_utf8(o.value.clone().unwrap_or_default()).expect("UTF-8")).collect();
        got.sort();
        let row = |((start, key), (n, cents)): ((i64, String), (i64, i64))| {
            format!(r#"{{"customer":"{key}","window_start":{start},"count":{n},"sum":{}.{:02}}}"#, cents / 100, cents % 100)
        };
        let mut all: Vec<String> = want.into_iter().map(row).collect();
        all.sort();
        assert_eq!(got, all, "round {round}");
        assert!(job.entries("windows").is_empty() && job.timers().is_empty());
    }
}
