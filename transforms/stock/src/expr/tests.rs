use super::{Program, Type, Work};
use wasmill::Value;

/// The value of an expression over a JSON text, as JSON; or the error.
fn value(text: &str, json: &str) -> String {
    let mut p = Program::new();
    let e = match p.compile("where", text, Type::Any) {
        Ok(e) => e,
        Err(e) => return format!("refused: {}", e.reason()),
    };
    let (mut work, mut to) = (Work::default(), Vec::new());
    assert_ne!(Value::parse(json.as_bytes()).kind(), wasmill::Kind::Absent, "{json}");
    match p.rows(&mut work, [Some(json.as_bytes()), None], Default::default()).write(e, &mut to) {
        Ok(()) => String::from_utf8(to).unwrap(),
        Err(e) => format!("dead: {}", e.reason()),
    }
}

#[test]
fn values() {
    let record = r#"{"n":12.50,"big":1e3,"s":"Grün & \"Blau\"","plain":"hello world","t":true,"z":null,"o":{"a":[1,{"b":"x"}]},
        "url":"https://www.nexmark.com/a/bc/d/item.htm?query=1&channel_id=77&x=2","ms":1700000000123,"at":"2026-07-16T13:47:12.345Z","we ird":5,"neg":-7}"#;
    for (text, want) in [
        ("/n", "12.50"),
        ("/n + 1", "13.50"),
        ("/n * 2 - 1", "24.00"),
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("-/n", "-12.50"),
        ("- -3", "3"),
        ("10 % 4 + /neg % 4", "-1"),
        ("0.908 * 100", "90.800"),
        ("/big + 0", "1000"),
        ("div(/neg, 2)", "-3"),
        ("div(1, 3, 4)", "0.3333"),
        ("div(/neg, 8, 2)", "-0.88"),
        ("round(/n)", "13"),
        ("round(2.345, 2)", "2.35"),
        ("floor(/neg) + ceil(0.5) + abs(/neg)", "1"),
        ("/z + 1", "null"),
        ("/nothing", "null"),
        ("/o/a/1/b", "\"x\""),
        ("/o", r#"{"a":[1,{"b":"x"}]}"#),
        ("\"/we ird\" + 1", "6"),
        ("/s", r#""Grün & \"Blau\"""#),
        ("lower(/s)", r#""grün & \"blau\"""#),
        ("upper(/s)", r#""GRÜN & \"BLAU\"""#),
        ("upper(/plain)", r#""HELLO WORLD""#),
        ("length(/s)", "13"),
        ("substring(/s, 3, 2)", "\"ün\""),
        ("substring(/plain, 7)", "\"world\""),
        ("substring(/plain, 0, 3)", "\"he\""),
        ("substring(/plain, 50, 3)", "\"\""),
        ("split(/url, '/', 3)", "\"a\""),
        ("split(/url, '/', 4)", "\"bc\""),
        ("split(/url, '/', 99)", "null"),
        ("before(after(/url, 'channel_id='), '&')", "\"77\""),
        ("after(/url, 'nothing')", "null"),
        ("count(/plain, 'o')", "2"),
        ("count('aaaa', 'aa')", "2"),
        ("position(/s, '&')", "6"),
        ("position(/s, 'x')", "0"),
        ("contains(/plain, 'lo w') and starts(/plain, 'hell') and ends(/plain, 'ld')", "true"),
        ("replace(/plain, 'o', '00')", "\"hell00 w00rld\""),
        ("trim('  x ') || '|' || /n", "\"x|12.50\""),
        ("concat(/plain, '-', 1, true)", "\"hello world-1true\""),
        ("/plain || /z", "null"),
        ("'it''s'", "\"it's\""),
        ("text(/n) = '12.50'", "true"),
        ("number('12.5') + 1", "13.5"),
        ("number('x')", "null"),
        ("least(3, /n, 5)", "3"),
        ("greatest('a', /plain)", "\"hello world\""),
        ("coalesce(/nothing, /z, 7)", "7"),
        ("hour(/ms) * 100 + minute(/ms)", "2213"),
        ("second(/ms)", "20"),
        ("weekday(/at)", "4"),
        ("year(/at) * 10000 + month(/at) * 100 + day(/at)", "20260716"),
        ("time(/at)", "1784209632345"),
        ("rfc3339(/ms)", "\"2023-11-14T22:13:20.123Z\""),
        ("date(/ms)", "\"2023-11-14\""),
        ("floor_time(/ms, '10s')", "1700000000000"),
        ("rfc3339(floor_time(/at, 'month'))", "\"2026-07-01T00:00:00.000Z\""),
        ("case when /n > 100 then 'much' when /n > 10 then 'some' else 'few' end", "\"some\""),
        ("case when /n > 100 then 1 end", "null"),
        ("CASE WHEN /T IS NULL THEN 1 ELSE 2 END", "1"),
    ] {
        assert_eq!(value(text, record), want, "{text}");
    }
}

#[test]
fn conditions() {
    let record = r#"{"n":5,"s":"a","t":true,"f":false,"z":null}"#;
    for (text, want) in [
        ("/n = 5.0", "true"),
        ("/n != 5", "false"),
        ("/n <> 4 and /n == 5", "true"),
        ("/n between 5 and 6", "true"),
        ("/n not between 5 and 6", "false"),
        ("/s in ('a', 'b')", "true"),
        ("/s not in ('a', 'b')", "false"),
        ("/n in (1, 2, /z)", "null"),
        ("/n in (5, /z)", "true"),
        ("/n not in ()", "true"),
        ("/z > 1", "null"),
        ("/z > 1 or true", "true"),
        ("/z > 1 and true", "null"),
        ("/z > 1 and false", "false"),
        ("not /z", "null"),
        ("not /f and /t", "true"),
        ("/z is null and /nothing is null", "true"),
        ("/z is absent", "false"),
        ("/z is not absent and /nothing is absent", "true"),
        ("/n + /z is not null", "false"),
        ("/t = true", "true"),
        ("'B' < 'a'", "true"),
        ("not not true", "true"),
        ("false and /s > 1", "false"),
    ] {
        assert_eq!(value(text, record), want, "{text}");
    }
}

#[test]
fn mistakes_of_expressions_are_named_with_their_place() {
    for (text, want) in [
        ("", "column 1: the text ends, where a value was expected"),
        ("/a >", "column 5: the text ends, where a value was expected"),
        ("/a / 2", "column 4: / is a pointer (to divide, write div(a, b) or div(a, b, digits)), where an operator or the end was expected"),
        ("amount > 5", "column 1: amount is no function; a field is a JSON pointer (/amount), a string stands in '..'"),
        ("lowr(/a)", "column 1: there is no function lowr; did you mean lower?"),
        ("lower(/a, 2)", "column 1: lower takes 1 arguments, not 2"),
        ("lower(5)", "column 7: this is a number, where a string is needed"),
        ("'a' + 1", "column 1: this is a string, where a number is needed"),
        ("/a = 'x", "column 6: a closing ' is missing"),
        ("/a and 5", "column 8: this is a number, where true or false is needed"),
        ("/a = null", "column 4: nothing compares with null: write is null, or is not null"),
        ("/a < true", "column 4: true and false are only equal or not"),
        ("'a' = 5", "column 7: this is a number, where a string is needed"),
        ("/a+1 is absent", "column 6: only a pointer is absent; is null takes any expression"),
        ("(/a", "column 4: the text ends, where ) was expected"),
        ("/a ~ 2", "column 4: '~' means nothing here"),
        ("/a~2", "column 1: \"/a~2\" is no JSON pointer: ~ stands only in ~0 and ~1"),
        ("left/a", "column 1: left/a: a pointer has nothing before its /"),
        ("1e99", "column 1: 1e99 is no number of at most 38 digits"),
        ("floor_time(/a, 'decade')", "column 16: a unit is 'second', 'minute', 'hour', 'day', 'week', 'month', 'year' or a duration such as '15m'"),
        ("round(/a, 19)", "column 11: the number of digits is a constant from 0 to 18"),
        ("case else 1 end", "column 6: there is else, where when was expected"),
        ("/a not 5", "column 8: there is a number, where in or between was expected"),
    ] {
        let got = value(text, "{}");
        assert_eq!(got.strip_prefix("refused: config: where, "), Some(want), "{text}");
    }
    let deep = format!("{}1{}", "(".repeat(65), ")".repeat(65));
    assert!(value(&deep, "{}").contains("at most 64 deep"));
    assert!(value(&"1 + ".repeat(5000), "{}").contains("at most 16 KiB"));
}

#[test]
fn mistakes_of_records_are_named_with_pointer_and_place() {
    for (text, json, want) in [
        ("/a > 10", r#"{"a":"x"}"#, "column 1: /a is \"x\", where a number is needed"),
        ("1 + /a", r#"{"a":[1]}"#, "column 5: /a is [1], where a number is needed"),
        ("/a = 'x'", r#"{"a":5}"#, "column 1: /a is 5, where a string is needed"),
        ("/a = /b", r#"{"a":{},"b":1}"#, "column 1: /a is {}, where a number is needed"),
        ("not /a", r#"{"a":1}"#, "column 5: /a is 1, where true or false is needed"),
        ("/a < /b", r#"{"a":true,"b":false}"#, "column 4: true and false are only equal or not"),
        ("5 % /a", r#"{"a":0}"#, "column 5: a division by zero"),
        ("/a * /a", r#"{"a":12345678901234567890123}"#, "column 4: the result needs more than 38 digits"),
        ("/a + 1", r#"{"a":1e400}"#, "column 1: /a is 1e400, where a number of at most 38 digits is needed"),
        ("hour(/a)", r#"{"a":"noon"}"#, "column 6: /a is \"noon\", where a time (milliseconds since 1970, or RFC 3339) is needed"),
        ("substring('a', /a)", r#"{"a":1.5}"#, "column 16: /a is 1.5, where an integer of 64 bits is needed"),
        ("lower(/a)", r#"{"a":1}"#, "column 7: /a is 1, where a string is needed"),
    ] {
        assert_eq!(value(text, json), format!("dead: where, {want}"), "{text}");
    }
}

#[test]
fn two_values_are_told_apart_by_name() {
    let mut p = Program::over("left", "right");
    let sum = p.compile("fields.sum", "left/a + coalesce(right/a, 0)", Type::Number).unwrap();
    let mut work = Work::default();
    for (right, want) in [(Some(&b"{\"a\":2}"[..]), "3"), (None, "1")] {
        let mut to = Vec::new();
        p.rows(&mut work, [Some(b"{\"a\":1}"), right], Default::default()).write(sum, &mut to).unwrap();
        assert_eq!(to, want.as_bytes());
    }
    let wrong = p.compile("on", "/a = 1", Type::Bool).unwrap_err();
    assert_eq!(wrong.reason(), "config: on, column 1: a pointer begins with left/ or right/");
}

#[test]
fn equal_values_give_equal_bytes() {
    let mut p = Program::new();
    let e = p.compile("key", "/a", Type::Any).unwrap();
    let mut work = Work::default();
    let mut bytes = |json: &str| {
        let mut to = Vec::new();
        let there = p.rows(&mut work, [Some(json.as_bytes()), None], Default::default()).write_equal(e, &mut to).unwrap();
        there.then(|| String::from_utf8(to).unwrap())
    };
    assert_eq!(bytes(r#"{"a":1.50}"#), bytes(r#"{"a":15e-1}"#));
    assert_eq!(bytes(r#"{"a":"\u0061"}"#), bytes(r#"{"a":"a"}"#));
    assert_ne!(bytes(r#"{"a":"1"}"#), bytes(r#"{"a":1}"#));
    assert_eq!(bytes(r#"{"a":null}"#), None);
}

#[test]
fn no_text_hurts() {
    let pieces = [
        "/a", "'x'", "(", ")", "not", "and", "case", "when", "then", "end", "in", "between", "is", "null", "-", "5", ",", "lower(", "||", "%", "\"",
        "é",
    ];
    let mut seed = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..seed % 9 + 1 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            text += pieces[(seed >> 33) as usize % pieces.len()];
            text.push(' ');
        }
        let _ = value(&text, r#"{"a":1}"#);
    }
}
