use super::*;
use wasmill::testing::{Input, Keyed, Output};

fn job(config: &str) -> Keyed<Lookup> {
    Keyed::new(MANIFEST, config, Lookup::new)
}

fn table(key: &str, value: &str) -> Input {
    Input { key: Some(key.into()), input: TABLE, ..value.into() }
}

fn stream(key: &str, value: &str) -> Input {
    Input { key: Some(key.into()), input: 1, event_time: Some(7_000_000), ..value.into() }
}

fn shown(out: &[Output]) -> Vec<String> {
    let show = |o: &Output| match &o.reject {
        Some((code, reason, _)) => format!("{code} {reason}"),
        None => String::from_utf8_lossy(o.value.as_deref().unwrap_or(b"-")).into_owned(),
    };
    out.iter().map(show).collect()
}

#[test]
fn the_newest_row_of_the_key() {
    let mut job = job(r#"{"fields":["stream/n","table/name",{"both":"table/name || stream/n"}]}"#);
    let first = [table("AA", r#"{"name":"American"}"#), stream("AA", r#"{"n":1}"#), stream("UA", r#"{"n":2}"#)];
    let out = job.run(0, 0, &first).unwrap();
    assert_eq!(shown(&out), [r#"{"n":1,"name":"American","both":"American1"}"#, r#"{"n":2,"name":null,"both":null}"#]);
    assert_eq!((out[0].key.as_deref(), out[0].event_time, out[0].index), (Some(b"AA" as &[u8]), Some(7_000_000), Some(1)));
    // In a later batch, renewed and removed.
    assert_eq!(shown(&job.run(0, 0, &[stream("AA", r#"{"n":3}"#)]).unwrap()), [r#"{"n":3,"name":"American","both":"American3"}"#]);
    job.run(0, 0, &[table("AA", r#"{"name":"A"}"#)]).unwrap();
    assert_eq!(shown(&job.run(0, 0, &[stream("AA", r#"{"n":4}"#)]).unwrap()), [r#"{"n":4,"name":"A","both":"A4"}"#]);
    let gone = Input { value: None, ..table("AA", "") };
    assert_eq!(shown(&job.run(0, 0, &[gone, stream("AA", r#"{"n":5}"#)]).unwrap()), [r#"{"n":5,"name":null,"both":null}"#]);
    assert!(job.entries("rows").is_empty());
}

#[test]
fn the_row_as_a_member() {
    let rows = [table("k", r#" {"x":1} "#), stream("k", r#"{ "a":1 }"#), stream("k", "{}"), stream("l", r#"{"a":1}"#), stream("k", "[1]")];
    assert_eq!(
        shown(&job("{}").run(0, 0, &rows).unwrap()),
        [r#"{ "a":1,"table":{"x":1}}"#, r#"{"table":{"x":1}}"#, r#"{"a":1,"table":null}"#, "0 the value is not a JSON object"]
    );
    assert_eq!(shown(&job(r#"{"as":"the \"row\""}"#).run(0, 0, &rows[..2]).unwrap()), [r#"{ "a":1,"the \"row\"":{"x":1}}"#]);
}

#[test]
fn keys_that_are_missing() {
    let rows = [stream("k", r#"{"a":1}"#), table("l", "7"), stream("l", r#"{"a":2}"#), stream("l", "xx"), table("l", "xx")];
    let bad = ["1 the value is not JSON", "1 the table's value is not JSON"];
    let out = shown(&job(r#"{"missing":"drop"}"#).run(0, 0, &rows).unwrap());
    assert_eq!(out, [r#"{"a":2,"table":7}"#, bad[0], bad[1]]);
    let out = shown(&job(r#"{"missing":"dead-letter"}"#).run(0, 0, &rows).unwrap());
    assert_eq!(out, ["2 the table does not have the key", r#"{"a":2,"table":7}"#, bad[0], bad[1]]);
}

#[test]
fn records_wait_for_their_row() {
    let mut job = job(r#"{"missing":"wait","timeout":"10s"}"#);
    assert!(job.run(0, 0, &[stream("k", r#"{"a":1}"#), stream("k", r#"{"a":2}"#), stream("l", r#"{"a":3}"#)]).unwrap().is_empty());
    assert!(job.run(4_000_000, 0, &[stream("k", r#"{"a":4}"#)]).unwrap().is_empty());
    // Two have waited long enough; the third finds its row.
    let out = job.run(10_000_000, 0, &[]).unwrap();
    assert_eq!(shown(&out), [r#"{"a":1,"table":null}"#, r#"{"a":2,"table":null}"#, r#"{"a":3,"table":null}"#]);
    assert_eq!((out[0].key.as_deref(), out[0].event_time), (Some(b"k" as &[u8]), Some(7_000_000)));
    let out = job.run(11_000_000, 0, &[table("k", "{}"), stream("k", r#"{"a":5}"#)]).unwrap();
    assert_eq!(shown(&out), [r#"{"a":4,"table":{}}"#, r#"{"a":5,"table":{}}"#]);
    assert!(job.run(99_000_000, 0, &[]).unwrap().is_empty());
    assert!(job.entries("waiting").is_empty() && job.timers().is_empty());
}

#[test]
fn a_timer_of_a_record_that_found_its_row_is_no_other_records() {
    let mut job = job(r#"{"missing":"wait","timeout":"10s"}"#);
    assert!(job.run(0, 0, &[stream("k", r#"{"a":1}"#)]).unwrap().is_empty());
    assert_eq!(shown(&job.run(1_000_000, 0, &[table("k", "7")]).unwrap()), [r#"{"a":1,"table":7}"#]);
    assert!(job.run(2_000_000, 0, &[Input { value: None, ..table("k", "") }]).unwrap().is_empty());
    assert!(job.run(9_000_000, 0, &[stream("k", r#"{"a":2}"#)]).unwrap().is_empty());
    assert!(job.run(10_000_000, 0, &[]).unwrap().is_empty(), "it has waited for a second");
    assert_eq!(shown(&job.run(19_000_000, 0, &[]).unwrap()), [r#"{"a":2,"table":null}"#]);
    assert!(job.entries("waiting").is_empty() && job.timers().is_empty());
}

#[test]
fn records_wait_for_ever() {
    let mut job = job(r#"{"missing":"wait"}"#);
    for i in 0..300 {
        job.run(i, 0, &[stream("k", &format!(r#"{{"a":{i}}}"#))]).unwrap();
    }
    let out = job.run(0, 0, &[table("k", "1")]).unwrap();
    assert_eq!(out.len(), 300);
    assert_eq!(shown(&out)[299], r#"{"a":299,"table":1}"#);
    assert!(job.entries("waiting").is_empty() && job.timers().is_empty());
}

#[test]
fn what_state_cannot_hold_is_set_aside() {
    let large = format!("\"{}\"", "x".repeat(512 << 10));
    let mut job = job(r#"{"missing":"wait"}"#);
    let out = job.run(0, 0, &[table("k", &large), stream("k", &large)]).unwrap();
    assert_eq!(out.iter().map(|o| o.reject.as_ref().unwrap().0).collect::<Vec<_>>(), [TOO_LARGE, TOO_LARGE]);
    assert!(job.entries("rows").is_empty() && job.entries("waiting").is_empty());
    let long = "k".repeat(MAX_KEY + 1);
    let out = job.run(0, 0, &[stream(&long, "{}"), stream(&long[1..], "{}"), table(&long, "1"), stream(&long, "{}")]).unwrap();
    assert_eq!(shown(&out), ["3 the key has more than 4088 bytes, too many for a record to wait", r#"{"table":1}"#]);
}

#[test]
fn refuses_other_configurations() {
    for (config, want) in [
        (r#"{"fields":["/a"]}"#, "config: fields.a, column 1: a pointer begins with stream/ or table/"),
        (r#"{"fields":["stream/a"],"as":"x"}"#, "config: fields makes a new object: as has nothing to add to"),
        (r#"{"timeout":"1s"}"#, "config: timeout says how long a record waits: it goes with missing: wait"),
        (r#"{"missing":"fail"}"#, "config: missing is \"fail\", not one of pass, drop, dead-letter, wait"),
    ] {
        let Err(e) = Lookup::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
        assert_eq!(e.reason(), want, "{config}");
    }
}
