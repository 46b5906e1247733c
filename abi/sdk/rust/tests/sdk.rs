//! The whole SDK, natively.

use wasmill::testing::{Host, Input, Output, log, run};
use wasmill::{Decimal, Field, Kind, Level, Out, Port, Record, Result, Transform, Value, dead_letter, div_round, fail, parse_int, parse_scaled};

const MANIFEST: &str = r#"{"abi": 1, "name": "t", "version": "1",
 "inputs": [{"name": "in", "fields": ["/s", "/n", "/b", "/x~1y", "/list/1"]}, {"fields": ["/second"], "name": "more"}],
 "outputs": [{"name": "out"}, {"content": "json", "name": "other"}]}"#;
const OUT: Port = Port::of(MANIFEST, "out");
const OTHER: Port = Port::of(MANIFEST, "other");
const S: Field = Field::of(MANIFEST, "/s");
wasmill::fields! { MANIFEST, N = "/n", B = "/b" }
const SLASH: Field = Field::of(MANIFEST, "/x~1y");
const ELEMENT: Field = Field::of(MANIFEST, "/list/1");
const SECOND: Field = Field::of_input(MANIFEST, 1, "/second");

fn one(f: impl FnMut(Record<'_>, &mut Out) -> Result, value: &str) -> Output {
    let out = run(MANIFEST, f, &[value.into()]).expect("a run");
    assert_eq!(out.len(), 1, "{value}: {out:?}");
    out.into_iter().next().expect("an output")
}

fn text(o: &Output) -> &str {
    std::str::from_utf8(o.value.as_deref().expect("a value")).expect("UTF-8")
}

#[test]
fn objects() {
    let o = one(
        |r, out| {
            let mut o = out.object(&r);
            o.set("s", r.get(S).text()?).set("n", r.get(N).int()?).set("b", r.get(B).bool()?);
            o.set("slash", r.get(SLASH)).set("element", r.get(ELEMENT)).set("absent", None::<Value>);
            o.set("min", i64::MIN).set("d", Decimal { unscaled: 5, scale: 1 }).set("e", Decimal { unscaled: -5, scale: 3 });
            o.set("z", Decimal { unscaled: 7, scale: 0 })
                .set("none", None::<i64>)
                .set("q\"\n", "tab\t\u{1}\\\"€")
                .set("plain", "longer than sixteen bytes");
            o.object("open", |o| {
                o.array("list", |l| {
                    l.push(1).object(|_| {}).push("x").array(|_| {});
                });
            });
            o.set("last", 12345u32);
            o.emit(OTHER);
            Ok(())
        },
        r#"{"s":"a \u0041 longer string, of more than 64 bytes, to reach the copy by a call","n":-12,"b":true,"x/y":{"z":[1, 2]},"list":[0,"e"]}"#,
    );
    let want = concat!(
        r#"{"s":"a \u0041 longer string, of more than 64 bytes, to reach the copy by a call","n":-12,"b":true,"slash":{"z":[1, 2]},"element":"e","absent":null,"#,
        r#""min":-9223372036854775808,"d":0.5,"e":-0.005,"z":7,"none":null,"q\"\n":"tab\t\u0001\\\"€","plain":"longer than sixteen bytes","#,
        r#""open":{"list":[1,{},"x",[]]},"last":12345}"#
    );
    assert_eq!(text(&o), want);
    assert_eq!((o.port, o.index), (1, Some(0)));
}

#[test]
fn names_of_a_second_input() {
    assert_ne!(SECOND, S);
    assert_eq!(SECOND, Field::of_input(MANIFEST, 1, "/second"));
}

#[test]
fn extend() {
    let f = |r: Record<'_>, out: &mut Out| {
        let mut o = out.extend(&r)?;
        o.set("c", 1);
        o.emit(OUT);
        Ok(())
    };
    for (value, want) in
        [(r#"{"a":1}"#, r#"{"a":1,"c":1}"#), (" {\"a\": {} \n }\r\n ", "{\"a\": {},\"c\":1}"), ("{}", r#"{"c":1}"#), (" { } ", r#"{"c":1}"#)]
    {
        assert_eq!(text(&one(f, value)), want);
    }
    for value in ["", "[]", "\"{}\"", "7", "{"] {
        assert_eq!(one(f, value).reject, Some((0, "the value is not a JSON object".into(), false)), "{value}");
    }
}

#[test]
fn fields() {
    let reason = |f: fn(Record<'_>) -> Result, value: &str| {
        let out = run(MANIFEST, |r: Record<'_>, _: &mut Out| f(r), &[value.into()]).expect("a run");
        out.first().and_then(|o| o.reject.clone()).map(|r| r.1)
    };
    macro_rules! holds {
        ($value:expr, |$r:ident| $e:expr) => {
            assert_eq!(reason(|$r| if $e { Ok(()) } else { Err(dead_letter(9, "no")) }, $value), None, "{}", $value);
        };
    }
    holds!(r#"{"n":12345678901}"#, |r| r.get(N).int()? == Some(12345678901));
    holds!(r#"{"n":null}"#, |r| r.get(N).int()?.is_none() && r.get(N).is_null());
    holds!(r#"{}"#, |r| r.get(N).int()?.is_none() && r.get(N).kind() == Kind::Absent);
    holds!(r#"{"n":1.005}"#, |r| r.get(N).scaled(2)? == Some(101));
    holds!(r#"{"b":false}"#, |r| r.get(B).bool()? == Some(false));
    holds!(r#"{"s":"\u0041\ud83d\ude00"}"#, |r| r.get(S).str()?.as_deref() == Some("A😀"));
    holds!(r#"{"s":"vi\u0065w"}"#, |r| r.get(S).is("view") && !r.get(S).is("views"));
    holds!(r#"{"s":"view"}"#, |r| r.get(S).is("view") && !r.get(S).is("vie"));
    holds!(r#"{"s":"a","s":"b"}"#, |r| r.get(S).raw() == b"b");
    holds!("not JSON", |r| !r.is_json() && r.get(S).is_null() && r.json().kind() == Kind::Absent);
    holds!(r#"{"q":{"r":[1,true]}}"#, |r| r.json().get("q").get("r").elements().count() == 2);
    holds!(r#"{"q":7,"w":8}"#, |r| r.json().members().map(|(_, v)| v.int().ok().flatten().unwrap_or(0)).sum::<i64>() == 15);
    let is = |f, value, want: &str| assert_eq!(reason(f, value).as_deref(), Some(want));
    is(|r| r.get(N).int().map(|_| ()), r#"{"n":1.5}"#, "/n is not a 64-bit integer: 1.5");
    is(|r| r.get(N).int().map(|_| ()), r#"{"n":"1"}"#, "/n is not a 64-bit integer: 1");
    is(|r| r.get(N).scaled(2).map(|_| ()), r#"{"n":1e30}"#, "/n is not a number in range: 1e30");
    is(|r| r.get(B).bool().map(|_| ()), r#"{"b":0}"#, "/b is not a boolean: 0");
    is(|r| r.get(S).text().map(|_| ()), r#"{"s":[1]}"#, "/s is not a string: [1]");
}

#[test]
fn drafts() {
    let headers = vec![("a".to_string(), Some(b"1".to_vec())), ("n".into(), None), ("a".into(), Some(b"2".to_vec()))];
    let input = Input {
        key: Some(b"k".to_vec()),
        value: Some(b"{\"s\":\"x\"}".to_vec()),
        headers: headers.clone(),
        event_time: Some(5000),
        offset: 9,
        partition: 3,
        input: 1,
    };
    let out = run(
        MANIFEST,
        |r: Record<'_>, out: &mut Out| {
            assert_eq!((r.event_time(), r.key(), r.offset(), r.partition(), r.input()), (Some(5000), Some(b"k" as &[u8]), 9, 3, 1));
            assert_eq!((r.header("a"), r.header("n"), r.index()), (Some(b"2" as &[u8]), None, Some(0)));
            let mut o = out.from(&r).key(b"key").header("h", Some(b"v")).header("null", None).event_time(7000).object();
            o.set("s", r.get(S));
            o.emit(OUT);
            out.from(&r).no_key().no_headers().value(None, OTHER);
            out.from(&r).header("h", Some(b"")).value(None, OTHER);
            out.blank().key(b"").value(Some(b"new"), OUT);
            let _ = out.object(&r);
            out.pass(&r, OTHER);
            Ok(())
        },
        std::slice::from_ref(&input),
    )
    .expect("a run");
    let with = |more: &[(&str, Option<&[u8]>)]| {
        headers.iter().cloned().chain(more.iter().map(|(n, v)| (n.to_string(), v.map(<[u8]>::to_vec)))).collect::<Vec<_>>()
    };
    let base = Output { index: Some(0), event_time: Some(5000), ..Output::default() };
    let want = [
        Output {
            key: Some(b"key".to_vec()),
            value: input.value.clone(),
            event_time: Some(7000),
            headers: with(&[("h", Some(b"v")), ("null", None)]),
            ..base.clone()
        },
        Output { port: 1, ..base.clone() },
        Output { port: 1, key: input.key.clone(), headers: with(&[("h", Some(b""))]), ..base.clone() },
        Output { key: Some(vec![]), value: Some(b"new".to_vec()), index: None, event_time: None, ..base.clone() },
        Output { port: 1, key: input.key.clone(), value: input.value, headers, ..base },
    ];
    assert_eq!(out, want);
}

#[test]
fn large_outputs() {
    for size in [10, 700, 5000, 100_000, 3 << 20] {
        let body = "x".repeat(size);
        let value = format!("{{\"s\":\"{body}\"}}");
        let records = if size > 10 { 5 } else { 3000 };
        let inputs: Vec<Input> = (0..records).map(|i: u32| Input { key: Some(i.to_string().into_bytes()), ..value.as_str().into() }).collect();
        let host = Host { max_frame: 4096, chunk: 2000, ..Host::new(MANIFEST) };
        let f = |r: Record<'_>, out: &mut Out| {
            let key = [b"new-", r.key().unwrap_or_default()].concat();
            let mut o = out.from(&r).key(&key).header("h", r.key()).object();
            o.set("a", r.get(S)).set("b", r.get(S).str()?).set("c", r.json());
            o.emit(OUT);
            Ok(())
        };
        let out = host.run(f, &inputs).expect("a run");
        assert_eq!(out.len(), records as usize);
        for (i, o) in out.iter().enumerate() {
            let key = i.to_string().into_bytes();
            assert_eq!(o.key, Some([b"new-", key.as_slice()].concat()), "size {size}");
            assert_eq!(o.headers, [("h".to_string(), Some(key))]);
            assert!(text(o) == format!("{{\"a\":\"{body}\",\"b\":\"{body}\",\"c\":{value}}}"), "size {size}, output {i}");
        }
    }
}

#[test]
fn rejects() {
    let long = "é".repeat(1000);
    let out = run(
        MANIFEST,
        |r: Record<'_>, _: &mut Out| match r.index() {
            Some(0) => Err(dead_letter(7, "seven")),
            _ => Err(fail(u16::MAX, long.clone())),
        },
        &["a".into(), "b".into()],
    )
    .expect("a run");
    assert_eq!(out[0].reject, Some((7, "seven".into(), false)));
    assert_eq!(out[1].reject, Some((65535, "é".repeat(512), true)));
}

/// Counts the records of its lane.
struct Counter(i64);

impl Transform for Counter {
    fn record(&mut self, _: Record<'_>, out: &mut Out) -> Result {
        self.0 += 1;
        assert!(out.batch().id == 4 && out.batch().first == (self.0 <= 2));
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        if self.0 == 0 {
            return Err(fail(1, "nothing to count"));
        }
        wasmill::log(Level::Info, "done");
        let mut o = out.blank().key(b"total").object();
        o.set("n", self.0);
        o.emit(OUT);
        Ok(())
    }
}

#[test]
fn life_of_a_lane() {
    let mut host = Host { chunk: 2, ..Host::new(MANIFEST) };
    host.batch.id = 4;
    let out = host.run(Counter(0), &["1".into(), "2".into(), "3".into()]).expect("a run");
    assert_eq!((out.len(), text(&out[0]), out[0].index), (1, r#"{"n":3}"#, None));
    assert_eq!(log(), ["done"]);
    assert_eq!(host.run(Counter(0), &[]), Err("status 1: nothing to count".into()));
}

#[test]
fn numbers() {
    for (text, want) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("9223372036854775808", None),
        ("99999999999999999999999", None),
        ("", None),
        ("-", None),
        ("1.0", None),
        ("1e3", None),
        (" 1", None),
    ] {
        assert_eq!(parse_int(text.as_bytes()), want, "{text}");
    }
    for (text, scale, want) in [
        ("12.34", 2, Some(1234)),
        ("12", 2, Some(1200)),
        ("1.005", 2, Some(101)),
        ("1.004999", 2, Some(100)),
        ("-1.005", 2, Some(-101)),
        ("0.5", 0, Some(1)),
        ("0.49999999999999999999", 0, Some(0)),
        ("1e2", 2, Some(10000)),
        ("125e-3", 2, Some(13)),
        ("1e-400", 2, Some(0)),
        ("0e999999999999", 2, Some(0)),
        ("1e999999999999", 0, None),
        ("92233720368547758.07", 2, Some(i64::MAX)),
        ("92233720368547758.08", 2, None),
        ("18446744073709551615.5", 0, None),
        ("5", 18, Some(5_000_000_000_000_000_000)),
        ("", 2, None),
        (".5", 2, None),
        ("5.", 2, None),
        ("1.2.3", 2, None),
        ("1e", 2, None),
        ("1x", 2, None),
    ] {
        assert_eq!(parse_scaled(text.as_bytes(), scale), want, "{text}");
    }
    for (a, b, want) in [
        (7, 2, Some(4)),
        (-7, 2, Some(-4)),
        (7, -2, Some(-4)),
        (1, 3, Some(0)),
        (1, 0, None),
        (i64::MIN, -1, None),
        (i64::MIN, i64::MIN, Some(1)),
        (i64::MAX, 2, Some(1 << 62)),
    ] {
        assert_eq!(div_round(a, b), want, "{a} / {b}");
    }
}

#[test]
fn what_is_no_json_ends() {
    for text in ["", " ", "{", "[", "\"", "\"a\\", "{\"a\"", "{\"a\":", "{\"a\":1", "[1,", "1 2", "{}{}", "]", ",", "abc", "{\"a\":\"b}"] {
        assert_eq!(Value::parse(text.as_bytes()).kind(), Kind::Absent, "{text}");
    }
    for text in ["{\"a\" 1}", "{1:2}", "[1,,2]", "[1 2]", "{,}"] {
        let v = Value::parse(text.as_bytes());
        assert!(v.members().count() + v.elements().count() < 3, "{text}");
    }
}
