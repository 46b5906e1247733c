//! Batches of running aggregates over a store in memory. Times are milliseconds.

use aggregate::{Aggregate, MANIFEST};
use wasmill::testing::{Input, Keyed, Output};

fn job(config: &str) -> Keyed<Aggregate> {
    Keyed::new(MANIFEST, config, Aggregate::new)
}

fn at(key: &str, ms: i64, value: &str) -> Input {
    Input { key: Some(key.into()), event_time: Some(ms * 1000), ..value.into() }
}

fn run(job: &mut Keyed<Aggregate>, watermark: i64, inputs: &[Input]) -> Vec<Output> {
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

fn now(job: &mut Keyed<Aggregate>, inputs: &[(&str, &str)]) -> Vec<String> {
    let inputs: Vec<Input> = inputs.iter().map(|(k, v)| at(k, 1, v)).collect();
    rows(&run(job, 0, &inputs))
}

#[test]
fn each_changed_key_once_a_batch() {
    let mut job = job(r#"{"aggregates":[{"n":"count"},{"sum":{"sum":"/v"}},{"max":{"max":"/v"}},{"set":{"distinct":"/v"}}],"key":"k"}"#);
    let out = now(&mut job, &[("b", r#"{"v":1}"#), ("a", r#"{"v":"x","w":1}"#), ("b", r#"{"v":2.5}"#)]);
    assert_eq!(out, ["dead 0 /v is not a number: x", r#"0 b -1 {"k":"b","n":2,"sum":3.5,"max":2.5,"set":2}"#]);
    assert_eq!(job.calls(), (1, 1));
    let out = now(&mut job, &[("a", r#"{"v":7}"#), ("b", r#"{"v":2.50}"#), ("a", "{}")]);
    assert_eq!(out, [r#"0 a -1 {"k":"a","n":2,"sum":7,"max":7,"set":1}"#, r#"0 b -1 {"k":"b","n":3,"sum":6.00,"max":2.5,"set":2}"#]);
    assert!(now(&mut job, &[]).is_empty());
}

#[test]
fn updates_replace_what_they_added() {
    // The average of the greatest price of each auction, by category.
    let config = r#"{"aggregates":[{"avg":{"avg":"/max","digits":0,"round":"down"}},{"n":"count"},{"known":{"count":"/max"}}],
        "id":"/auction","input":"updates","key":{"category":"json"}}"#;
    let mut job = job(config);
    let out = now(&mut job, &[("10", r#"{"auction":1,"max":100}"#), ("10", r#"{"auction":2,"max":51}"#), ("11", r#"{"auction":3,"max":null}"#)]);
    assert_eq!(out, [r#"0 10 -1 {"category":10,"avg":75,"n":2,"known":2}"#, r#"0 11 -1 {"category":11,"avg":null,"n":1,"known":0}"#]);
    let out = now(&mut job, &[("10", r#"{"auction":2,"max":60}"#), ("11", r#"{"auction":3,"max":7}"#), ("10", r#"{"auction":2,"max":61}"#)]);
    assert_eq!(out, [r#"0 10 -1 {"category":10,"avg":80,"n":2,"known":2}"#, r#"0 11 -1 {"category":11,"avg":7,"n":1,"known":1}"#]);
    assert_eq!(job.entries("contributions").len(), 3);
    assert_eq!(now(&mut job, &[("10", r#"{"max":1}"#)]), ["dead 0 /auction is no id: it is neither text nor a number"]);
}

#[test]
fn ids_of_several_parts() {
    let mut job = job(r#"{"aggregates":{"n":"count","s":{"sum":"/v"}},"id":["/a","/b"],"input":"updates"}"#);
    let inputs = [r#"{"a":"x","b":"y,","v":1}"#, r#"{"a":"x","b":"\u0079,","v":2}"#, r#"{"a":"x\",\"y","b":"","v":4}"#];
    assert_eq!(now(&mut job, &inputs.map(|v| ("k", v))), [r#"0 k -1 {"n":2,"s":6}"#]);
}

#[test]
fn configurations_that_are_refused() {
    let refused = |config: &str| match Aggregate::new(wasmill::Value::parse(config.as_bytes())) {
        Ok(_) => "accepted".into(),
        Err(why) => why.reason().to_owned(),
    };
    let together = "config: input: updates and id belong together: id says which record an update replaces";
    for (config, want) in [
        (r#"{"aggregates":{"n":"count"},"input":"updates"}"#, together),
        (r#"{"aggregates":{"n":"count"},"id":"/x"}"#, together),
        (
            r#"{"aggregates":{"m":{"max":"/x"}},"id":"/x","input":"updates"}"#,
            "config: aggregates.m cannot be taken back when an input is updated: only count, sum and avg can",
        ),
        (r#"{"aggregates":{"n":"count"},"size":"1s"}"#, "config: size is no setting of this transform"),
    ] {
        assert_eq!(refused(config), want, "{config}");
    }
}

#[test]
fn a_key_that_changes_always_is_stored_once_a_batch() {
    let mut job = job(r#"{"aggregates":{"n":"count"}}"#);
    for batch in 1..=3 {
        let out = now(&mut job, &[("hot", ""); 5000]);
        assert_eq!(out, [format!(r#"0 hot -1 {{"n":{}}}"#, batch * 5000)]);
        assert_eq!(job.calls(), (1, 1));
    }
}
