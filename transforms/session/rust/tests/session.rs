//! Batches of session windows over a store in memory. Times are milliseconds.

use session::{MANIFEST, Session};
use wasmill::testing::{Input, Keyed, Output};

fn job(config: &str) -> Keyed<Session> {
    Keyed::new(MANIFEST, config, Session::new)
}

fn at(key: &str, ms: i64, value: &str) -> Input {
    Input { key: Some(key.into()), event_time: Some(ms * 1000), ..value.into() }
}

fn run(job: &mut Keyed<Session>, watermark: i64, inputs: &[Input]) -> Vec<Output> {
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

const COUNT: &str = r#"{"aggregates":{"n":"count"},"end":"end","gap":"10s","key":"k","start":"start"}"#;

#[test]
fn a_gap_ends_a_session() {
    let mut job = job(COUNT);
    // A gap of exactly ten seconds does not.
    assert!(run(&mut job, 1, &[at("a", 1_000, ""), at("a", 11_000, ""), at("a", 21_001, ""), at("b", 5_000, "")]).is_empty());
    assert_eq!((job.calls(), job.timers().len()), ((1, 1), 2));
    assert_eq!(rows(&run(&mut job, 15_001, &[])), [r#"0 b 15000 {"k":"b","start":5000,"end":15000,"n":1}"#]);
    assert!(run(&mut job, 21_000, &[]).is_empty(), "a record at 21 s could still join");
    assert_eq!(rows(&run(&mut job, 21_001, &[])), [r#"0 a 21000 {"k":"a","start":1000,"end":21000,"n":2}"#]);
    assert_eq!(rows(&run(&mut job, stock::time::MAX, &[])), [r#"0 a 31001 {"k":"a","start":21001,"end":31001,"n":1}"#]);
    assert!(job.entries("sessions").is_empty() && job.timers().is_empty());
}

#[test]
fn a_record_joins_two_sessions() {
    let config = r#"{"aggregates":[{"n":"count"},{"set":{"distinct":"/v"}},{"first":{"first":"/v"}},{"last":{"last":"/v"}},{"sum":{"sum":"/v"}},
        {"about":{"distinct":"/v","approximate":true}}],"end":"e","gap":"10s","start":"s"}"#;
    let mut job = job(config);
    let v = |ms, v: &str| at("k", ms, &format!("{{\"v\":{v}}}"));
    run(&mut job, 1, &[v(1_000, "1"), v(2_000, "2"), v(18_000, "2.0"), v(19_000, "3"), v(40_000, "9")]);
    assert_eq!(job.entries("members").len(), 5);
    run(&mut job, 1, &[v(10_000, "5")]);
    assert_eq!(job.entries("members").len(), 5, "2 was in both");
    let want = [
        r#"0 k 29000 {"s":1000,"e":29000,"n":5,"set":4,"first":1,"last":3,"sum":13.0,"about":4}"#,
        r#"0 k 50000 {"s":40000,"e":50000,"n":1,"set":1,"first":9,"last":9,"sum":9,"about":1}"#,
    ];
    assert_eq!(rows(&run(&mut job, 60_000, &[])), want);
    assert!(job.entries("sessions").is_empty() && job.entries("members").is_empty() && job.timers().is_empty());
}

#[test]
fn a_session_that_grows_moves_its_end() {
    let mut job = job(COUNT);
    run(&mut job, 1_000, &[at("a", 1_000, "")]);
    for s in 2..30 {
        // Each batch's record comes just before the session would end.
        assert!(run(&mut job, s * 1000, &[at("a", s * 1000 + 500, "")]).is_empty(), "{s}");
        assert_eq!(job.timers().len(), 1);
    }
    assert_eq!(rows(&run(&mut job, 39_501, &[])), [r#"0 a 39500 {"k":"a","start":1000,"end":39500,"n":29}"#]);
    assert!(job.timers().is_empty());
    // The watermark passes the end in the batch whose record moves it.
    run(&mut job, 39_501, &[at("b", 40_000, "")]);
    assert!(run(&mut job, 50_001, &[at("b", 50_000, "")]).is_empty());
    assert_eq!(rows(&run(&mut job, 60_001, &[])), [r#"0 b 60000 {"k":"b","start":40000,"end":60000,"n":2}"#]);
}

#[test]
fn late_and_complete_when_it_comes() {
    let mut job = job(COUNT);
    run(&mut job, 20_000, &[at("a", 30_000, "")]);
    // Alone it would be complete since 19.999 s, before this batch; but it joins a session that is open.
    let out = run(&mut job, 25_000, &[at("a", 9_998, ""), at("a", 20_000, ""), at("a", 10_000, ""), at("a", 9_998, "")]);
    assert_eq!(rows(&out), ["1 a 9998 "]);
    // 15 s is not late, but complete at the end of this batch.
    let out = run(&mut job, 25_001, &[at("b", 14_988, ""), at("b", 15_000, ""), at("b", 15_000, "")]);
    assert_eq!(rows(&out), ["1 b 14988 ", r#"0 b 25000 {"k":"b","start":15000,"end":25000,"n":2}"#]);
    assert_eq!(rows(&run(&mut job, 40_001, &[])), [r#"0 a 40000 {"k":"a","start":9998,"end":40000,"n":4}"#]);
    assert!(job.entries("sessions").is_empty() && job.timers().is_empty());
}

#[test]
fn configurations_that_are_refused() {
    let refused = |config: &str| match Session::new(wasmill::Value::parse(config.as_bytes())) {
        Ok(_) => "accepted".into(),
        Err(why) => why.reason().to_owned(),
    };
    for (config, want) in [
        (r#"{"aggregates":{"a":"count"}}"#, "config: gap is missing: how long nothing comes between two sessions, such as 10s"),
        (r#"{"gap":"1s","aggregates":{"a":"count"},"size":"2s"}"#, "config: size is no setting of this transform"),
    ] {
        assert_eq!(refused(config), want, "{config}");
    }
}

/// Random records in random batches against sessions made of all records, sorted.
#[test]
fn any_batches_give_the_same_sessions() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut next = move |n: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % n
    };
    for round in 0..30 {
        let (mut job, mut got, mut all) = (job(COUNT), Vec::new(), std::collections::BTreeMap::<u64, Vec<i64>>::new());
        job.host().chunk = 1 + next(7) as usize;
        if round % 2 > 0 {
            // The watermark goes on while timers that are due wait for the next batch.
            job.timer_limit(1 + next(3) as usize);
        }
        let (mut now, mut watermark) = (20_000i64, 0i64);
        for _ in 0..15 {
            let mut inputs = Vec::new();
            for _ in 0..next(15) {
                now += next(6000) as i64;
                let (ms, key) = ((now - next(9000) as i64).max(watermark).max(1), next(3));
                inputs.push(at(&format!("k{key}"), ms, ""));
                all.entry(key).or_default().push(ms);
            }
            watermark = watermark.max(now - 9000);
            got.extend(run(&mut job, watermark, &inputs));
        }
        while !job.timers().is_empty() {
            got.extend(run(&mut job, stock::time::MAX, &[]));
        }
        let mut want = Vec::new();
        for (key, mut times) in all {
            times.sort_unstable();
            for session in times.chunk_by(|a, b| b - a <= 10_000) {
                let (start, end) = (session[0], session[session.len() - 1] + 10_000);
                want.push(format!(r#"0 k{key} {end} {{"k":"k{key}","start":{start},"end":{end},"n":{}}}"#, session.len()));
            }
        }
        let mut got = rows(&got);
        got.sort();
        want.sort();
        assert_eq!(got, want, "round {round}");
        assert!(job.entries("sessions").is_empty() && job.timers().is_empty());
    }
}

#[test]
fn many_open_sessions_of_a_key() {
    for complete in [false, true] {
        let mut job = job(r#"{"aggregates":{"n":"count"},"gap":"10s","start":"s"}"#);
        let inputs: Vec<Input> = (0..1_500).map(|i| at("k", 1_000 + i * 20_000, "")).collect();
        let mut got = run(&mut job, if complete { stock::time::MAX } else { 1 }, &inputs);
        got.extend(run(&mut job, stock::time::MAX, &[]));
        let want: Vec<String> = (0..1_500).map(|i| format!(r#"0 k {} {{"s":{},"n":1}}"#, 11_000 + i * 20_000, 1_000 + i * 20_000)).collect();
        assert_eq!(rows(&got), want);
        assert!(job.entries("sessions").is_empty() && job.timers().is_empty());
    }
}

#[test]
fn what_does_not_fit_is_set_aside() {
    let mut job = job(r#"{"aggregates":{"s":{"sum":"/v"},"n":"count"},"gap":"10s","start":"from"}"#);
    let v = |s: i64, v: &str| at("k", s * 1000, &format!("{{\"v\":{v}}}"));
    let nines = "9".repeat(38);
    // The third does not fit the first; the fourth would make one session of two whose sums do not fit together.
    let out = run(&mut job, 1, &[v(10, &nines), v(25, &nines), v(11, &nines), v(18, "1"), v(11, "-1")]);
    assert_eq!(rows(&out), vec!["dead 4 with this record a sum could have more than 38 digits"; 2]);
    let out = run(&mut job, stock::time::MAX, &[]);
    let want = [
        format!(r#"0 k 21000 {{"from":10000,"s":{}8,"n":2}}"#, "9".repeat(37)),
        format!(r#"0 k 35000 {{"from":25000,"s":{nines},"n":1}}"#),
    ];
    assert_eq!(rows(&out), want);
    // More sessions than state can hold for a key.
    let mut job = self::job(r#"{"aggregates":{"f":{"first":"/v"}},"gap":"10s","start":"from"}"#);
    let text = format!("\"{}\"", "x".repeat(2000));
    let inputs: Vec<Input> = (0..300).map(|i| v(100 + i * 20, &text)).collect();
    let out = run(&mut job, 1, &inputs);
    assert!(!out.is_empty() && rows(&out).iter().all(|r| r == "dead 4 a key has more than 512 KiB of open sessions"));
    assert_eq!(run(&mut job, stock::time::MAX, &[]).len() + out.len(), 300);
}
