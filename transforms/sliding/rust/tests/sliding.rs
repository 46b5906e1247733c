//! Batches of sliding windows over a store in memory. Times are milliseconds.

use sliding::{MANIFEST, Sliding};
use wasmill::testing::{Input, Keyed, Output};

fn job(config: &str) -> Keyed<Sliding> {
    Keyed::new(MANIFEST, config, Sliding::new)
}

fn at(key: &str, ms: i64, value: &str) -> Input {
    Input { key: Some(key.into()), event_time: Some(ms * 1000), ..value.into() }
}

fn run(job: &mut Keyed<Sliding>, watermark: i64, inputs: &[Input]) -> Vec<Output> {
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

const COUNT: &str = r#"{"aggregates":{"n":"count"},"end":"end","size":"10s","slide":"4s","start":"start"}"#;

#[test]
fn windows_overlap() {
    let mut job = job(COUNT);
    assert!(run(&mut job, 1, &[at("k", 9_000, ""), at("k", 12_000, ""), at("j", 9_999, "")]).is_empty());
    assert_eq!((job.calls(), job.entries("slices").len(), job.timers().len()), ((1, 1), 3, 2));
    let want = [r#"0 j 9999 {"start":0,"end":10000,"n":1}"#, r#"0 k 9999 {"start":0,"end":10000,"n":1}"#];
    assert_eq!(rows(&run(&mut job, 13_000, &[])), want);
    let want = [r#"0 j 13999 {"start":4000,"end":14000,"n":1}"#, r#"0 k 13999 {"start":4000,"end":14000,"n":2}"#];
    assert_eq!(rows(&run(&mut job, 14_000, &[])), want);
    // A jump over several ends: each window once, in order.
    let want = [
        r#"0 j 17999 {"start":8000,"end":18000,"n":1}"#,
        r#"0 k 17999 {"start":8000,"end":18000,"n":2}"#,
        r#"0 k 21999 {"start":12000,"end":22000,"n":1}"#,
    ];
    assert_eq!(rows(&run(&mut job, stock::time::MAX, &[])), want);
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty() && job.timers().is_empty());
}

#[test]
fn late_for_some_windows_and_for_all() {
    let mut job = job(COUNT);
    run(&mut job, 14_000, &[at("k", 13_000, "")]);
    // Complete are 0 to 10 s and 4 to 14 s: 9 s belongs to those, and to 8 to 18 s, which is open.
    assert!(run(&mut job, 14_000, &[at("k", 9_000, ""), at("new", 9_000, "")]).is_empty());
    assert_eq!(rows(&run(&mut job, 14_000, &[at("k", 7_999, "")])), ["1 k 7999 "]);
    let want = [r#"0 k 17999 {"start":8000,"end":18000,"n":2}"#, r#"0 new 17999 {"start":8000,"end":18000,"n":1}"#];
    assert_eq!(rows(&run(&mut job, 18_000, &[])), want);
}

#[test]
fn what_is_complete_when_it_comes_is_written_in_the_same_batch() {
    let mut job = job(COUNT);
    run(&mut job, 1_000, &[at("due", 9_000, "")]);
    let out = run(&mut job, 14_000, &[at("due", 9_000, ""), at("new", 9_000, ""), at("new", 9_001, ""), at("new", 13_000, "")]);
    let want = [
        r#"0 due 9999 {"start":0,"end":10000,"n":2}"#,
        r#"0 due 13999 {"start":4000,"end":14000,"n":2}"#,
        r#"0 new 9999 {"start":0,"end":10000,"n":2}"#,
        r#"0 new 13999 {"start":4000,"end":14000,"n":3}"#,
    ];
    assert_eq!(rows(&out), want);
    let want = [r#"0 due 17999 {"start":8000,"end":18000,"n":2}"#, r#"0 new 17999 {"start":8000,"end":18000,"n":3}"#];
    assert_eq!(rows(&run(&mut job, 18_000, &[])), want);
}

#[test]
fn sets_and_other_aggregates_of_panes() {
    let config = r#"{"aggregates":[{"set":{"distinct":"/v"}},{"about":{"distinct":"/v","approximate":true}},{"first":{"first":"/v"}},
        {"last":{"last":"/v"}},{"max":{"max":"/v"}},{"min":{"min":"/v"}},{"avg":{"avg":"/v","digits":2}}],"size":"4s","slide":"2s","start":"s"}"#;
    let mut job = job(config);
    let v = |ms, v: &str| at("k", ms, &format!("{{\"v\":{v}}}"));
    run(&mut job, 1, &[v(3_000, "5"), v(1_000, "7"), v(2_000, "5.0"), v(2_500, "null"), v(4_000, "-1"), v(5_000, "9")]);
    let want = [
        r#"0 k 1999 {"s":-2000,"set":1,"about":1,"first":7,"last":7,"max":7,"min":7,"avg":7.00}"#,
        r#"0 k 3999 {"s":0,"set":2,"about":2,"first":7,"last":5,"max":7,"min":5,"avg":5.67}"#,
        r#"0 k 5999 {"s":2000,"set":3,"about":3,"first":5.0,"last":9,"max":9,"min":-1,"avg":4.50}"#,
        r#"0 k 7999 {"s":4000,"set":2,"about":2,"first":-1,"last":9,"max":9,"min":-1,"avg":4.00}"#,
    ];
    assert_eq!(rows(&run(&mut job, 100_000, &[])), want);
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty() && job.entries("members").is_empty());
}

#[test]
fn processing_time() {
    let mut job = job(r#"{"aggregates":{"n":"count"},"size":"4s","slide":"2s","start":"s","time":"processing"}"#);
    let mut batch = |ms: i64, watermark: i64, n: usize| {
        let inputs = vec![Input { key: Some(b"k".to_vec()), ..Input::default() }; n];
        let out = job.run(ms * 1000, watermark * 1000, &inputs).expect("a batch");
        (rows(&out), job.timers().len())
    };
    assert_eq!(batch(5_000, 0, 2), (vec![], 2));
    assert_eq!(batch(6_000, 0, 1), (vec![r#"0 k 5999 {"s":2000,"n":2}"#.into()], 2));
    assert_eq!(batch(7_000, stock::time::MAX, 0).0, [r#"0 k 7999 {"s":4000,"n":3}"#, r#"0 k 9999 {"s":6000,"n":1}"#]);
    assert_eq!(batch(100_000, stock::time::MAX, 0), (vec![], 0));
}

#[test]
fn configurations_that_are_refused() {
    let refused = |config: &str| match Sliding::new(wasmill::Value::parse(config.as_bytes())) {
        Ok(_) => "accepted".into(),
        Err(why) => why.reason().to_owned(),
    };
    for (config, want) in [
        (r#"{"size":"1s","aggregates":{"a":"count"}}"#, "config: slide is missing: how far it is from one window to the next, such as 10s"),
        (
            r#"{"size":"1s","slide":"2s","aggregates":{"a":"count"}}"#,
            "config: slide is longer than size: there would be records that belong to no window",
        ),
        (
            r#"{"size":"1h","slide":"1s","aggregates":{"a":"count"}}"#,
            "config: size and slide divide a window into 3600 parts, at most 1000 are possible",
        ),
        (r#"{"size":"1s","slide":"1s","aggregates":{"a":"count"},"emit":"update"}"#, "config: emit is no setting of this transform"),
    ] {
        assert_eq!(refused(config), want, "{config}");
    }
}

/// Random records in random batches against windows that are counted one by one.
#[test]
fn any_batches_give_the_same_windows() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for round in 0..60 {
        let (size, slide, offset) = [(10, 4, 0), (9, 3, 1), (10, 10, 7), (7, 2, 0), (12, 5, 3)][round % 5];
        let config = format!(
            r#"{{"aggregates":{{"d":{{"distinct":"/n"}},"n":{{"sum":"/n"}}}},"key":"k","offset":"{offset}s","size":"{size}s","slide":"{slide}s","start":"s"}}"#
        );
        let (size, slide, offset) = (size * 1000, slide * 1000, offset * 1000);
        let (mut job, mut got, mut all) = (job(&config), Vec::new(), std::collections::BTreeMap::<(i64, u64), Vec<i64>>::new());
        job.host().chunk = 1 + next(7) as usize;
        if round % 2 > 0 {
            // The watermark goes on while timers that are due wait for the next batch.
            job.timer_limit(1 + next(3) as usize);
        }
        // Far behind, keys have more panes than those that are known to be there or not.
        let (spread, lag) = [(12_000, 5_000), (12_000, 5_000), (400_000, 390_000)][round % 3];
        let (mut now, mut watermark) = (20_000i64, 0i64);
        for _ in 0..12 {
            let mut inputs = Vec::new();
            for _ in 0..next(30) {
                now += next(if lag > 5_000 { 8_000 } else { 1_200 }) as i64;
                let (ms, key, n) = ((now - next(spread) as i64).max(1), next(4), next(10) as i64);
                inputs.push(at(&format!("k{key}"), ms, &format!(r#"{{"n":{n}}}"#)));
                let mut start = offset + (ms - offset).div_euclid(slide) * slide;
                while start + size > ms {
                    // Only what was not complete before this batch.
                    if watermark == 0 || start + size > watermark {
                        all.entry((start, key)).or_default().push(n);
                    }
                    start -= slide;
                }
            }
            watermark = watermark.max(now - lag);
            got.extend(run(&mut job, watermark, &inputs));
        }
        while !job.timers().is_empty() {
            got.extend(run(&mut job, stock::time::MAX, &[]));
        }
        let mut got: Vec<String> =
            got.iter().filter(|o| o.port == 0).map(|o| String::from_utf8(o.value.clone().unwrap_or_default()).expect("UTF-8")).collect();
        got.sort();
        let row = |((s, k), n): ((i64, u64), Vec<i64>)| {
            let (d, n) = (std::collections::BTreeSet::from_iter(&n).len(), n.iter().sum::<i64>());
            format!(r#"{{"k":"k{k}","s":{s},"d":{d},"n":{n}}}"#)
        };
        let mut want: Vec<String> = all.into_iter().map(row).collect();
        want.sort();
        assert_eq!(got, want, "round {round}");
        assert!(job.entries("members").is_empty());
        assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty() && job.timers().is_empty());
    }
}

#[test]
fn windows_at_the_end_of_time_are_all_written() {
    let end = stock::time::MAX;
    let mut job = job(r#"{"aggregates":{"n":"count"},"size":"10s","slide":"3s","start":"s"}"#);
    let times = [end - 20_000, end - 9_000, end - 4_000, end - 1_000, end];
    run(&mut job, 1, &times.map(|t| at("k", t, "")));
    let out = run(&mut job, end, &[]);
    let mut want = Vec::new();
    for start in (end - 40_000..=end).filter(|s| s.rem_euclid(3_000) == 0) {
        let n = times.iter().filter(|t| (start..start + 10_000).contains(*t)).count();
        if n > 0 {
            want.push(format!(r#"0 k {} {{"s":{start},"n":{n}}}"#, (start + 9_999).min(end)));
        }
    }
    assert!(want.len() > 8);
    assert_eq!(rows(&out), want);
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty() && job.timers().is_empty());
}

#[test]
fn a_record_whose_windows_could_not_be_summed_is_set_aside() {
    let sum = r#"{"aggregates":{"s":{"sum":"/v"}},"size":"10s","slide":"2s","start":"start"}"#;
    let (large, small) = (r#"{"v":99999999999999999999999.5}"#, r#"{"v":0.00000000000000000001}"#);
    for (first, second) in [(large, small), (small, large)] {
        let mut job = job(sum);
        assert!(run(&mut job, 1, &[at("k", 1_000, first)]).is_empty());
        let out = run(&mut job, 1, &[at("k", 3_000, second), at("other", 3_000, second), at("k", 13_000, second)]);
        assert_eq!(rows(&out), ["dead 4 with this record a sum could have more than 38 digits"]);
        // Those that are left come out, in every window.
        assert_eq!(run(&mut job, stock::time::MAX, &[]).len(), 15);
        assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty());
    }
}

#[test]
fn many_panes_of_a_key_in_one_batch() {
    // With windows of few panes, which are read one by one, and of more than the end of a lane puts together.
    for (size, slide, panes, complete) in [(6i64, 1i64, 2_000i64, false), (6, 1, 2_000, true), (500, 1, 440, true)] {
        let mut job = job(&format!(r#"{{"aggregates":{{"n":"count"}},"size":"{size}s","slide":"{slide}s","start":"s"}}"#));
        let inputs: Vec<Input> = (0..panes).map(|i| at("k", 1_000_000 + i * 1000, "")).collect();
        let mut got = run(&mut job, if complete { stock::time::MAX } else { 1 }, &inputs);
        assert!(complete || got.is_empty());
        while !job.timers().is_empty() {
            got.extend(run(&mut job, stock::time::MAX, &[]));
        }
        let n = |s: i64| (s.max(1_000)..s + size).filter(|t| *t < 1_000 + panes).count();
        let want: Vec<String> =
            (1_001 - size..1_000 + panes).map(|s| format!(r#"0 k {} {{"s":{},"n":{}}}"#, (s + size) * 1000 - 1, s * 1000, n(s))).collect();
        assert_eq!(rows(&got), want, "{size} {complete}");
        assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty());
    }
}

#[test]
fn a_key_has_one_timer_that_looks_past_gaps() {
    let mut job = job(COUNT);
    let (near, far) = (at("k", 1_000, ""), at("k", 4_000_000, ""));
    run(&mut job, 500, &[near, far]);
    assert_eq!(job.timers().len(), 1);
    assert_eq!(run(&mut job, 14_000, &[]).len(), 3);
    // From the last window of one pane to the first of the next.
    let close = |job: &Keyed<Sliding>| job.timers().iter().map(|t| t.at / 1_000_000).collect::<Vec<i64>>();
    assert_eq!(close(&job), [4_002]);
    // What comes before it moves the timer; the one that was set is there, too, until its time.
    run(&mut job, 14_000, &[at("k", 2_000_000, "")]);
    assert_eq!(close(&job), [2_002, 4_002]);
    assert_eq!(run(&mut job, 2_006_000, &[]).len(), 2);
    assert_eq!(close(&job), [2_010, 4_002]);
    assert_eq!((run(&mut job, 4_003_000, &[]).len(), job.timers().len()), (2, 1));
    assert_eq!(run(&mut job, stock::time::MAX, &[]).len(), 2);
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty() && job.timers().is_empty());
}

#[test]
fn panes_that_were_there_are_read_with_the_timer() {
    let mut job = job(COUNT);
    run(&mut job, 1_000, &[at("a", 9_000, ""), at("b", 2_000, ""), at("b", 7_000, ""), at("c", 4_000, "")]);
    for (watermark, rows) in [(6_000, 2), (10_000, 3)] {
        assert_eq!(run(&mut job, watermark, &[]).len(), rows);
        assert_eq!(job.calls(), (1, 1), "{watermark}");
    }
    // One of its panes came after its timer was set.
    run(&mut job, 11_000, &[at("b", 10_500, "")]);
    assert_eq!(run(&mut job, 14_000, &[]).len(), 3);
}

#[test]
fn more_keys_than_wait_for_the_end_of_a_batch() {
    let mut job = job(r#"{"aggregates":{"n":"count"},"size":"2s","slide":"2s"}"#);
    job.host().max_frame = 32 << 20;
    let inputs: Vec<Input> = (0..5_000).map(|i| at(&format!("{i:04000}"), 2_000, "")).collect();
    let first = run(&mut job, 4_000, &inputs).len();
    assert!((4_000..5_000).contains(&first), "{first}");
    assert_eq!((first + run(&mut job, 4_000, &[]).len(), job.timers().len()), (5_000, 0));
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty());
}

#[test]
fn large_sums_beside_small_ones() {
    let mut job = job(r#"{"aggregates":{"s":{"sum":"/v"},"a":{"avg":"/v"}},"size":"10s","slide":"2s","start":"start"}"#);
    let v = |s: i64, v: &str| at("k", s * 1000, &format!("{{\"v\":{v}}}"));
    let nines = "9".repeat(38);
    // The second of these does not fit beside the first, nor does 10^37 beside both that do.
    let out =
        run(&mut job, 1, &[v(20, &nines), v(22, &nines), v(18, "1"), v(21, "70000000000000000000000000000000000000"), v(29, "1e37"), v(30, "1e38")]);
    assert_eq!(rows(&out), vec!["dead 4 with this record a sum could have more than 38 digits"; 2]);
    let out = run(&mut job, 1, &[v(24, "1e-19"), v(40, "1e-19"), v(40, &nines)]);
    assert_eq!(rows(&out), vec!["dead 4 with this record a sum could have more than 38 digits"; 2]);
    while !job.timers().is_empty() {
        assert!(run(&mut job, stock::time::MAX, &[]).iter().all(|o| o.reject.is_none()));
    }
    assert!(job.entries("slices").is_empty() && job.entries("heads").is_empty());
}

#[test]
fn keys_that_are_too_long_for_timers() {
    let mut job = job(COUNT);
    let out = run(&mut job, 1, &[at(&"k".repeat(4088), 1_000, ""), at(&"k".repeat(4089), 1_000, "")]);
    assert_eq!(rows(&out), ["dead 3 the key has more than 4088 bytes"]);
    assert_eq!(run(&mut job, stock::time::MAX, &[]).len(), 3);
}
