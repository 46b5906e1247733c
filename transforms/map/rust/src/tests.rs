use super::*;
use wasmill::testing::{Input, Output, run};

fn map(config: &str, values: &[&str]) -> Vec<Output> {
    let map = Map::new(Value::parse(config.as_bytes())).unwrap_or_else(|e| panic!("{config}: {}", e.reason()));
    let inputs: Vec<Input> = values.iter().map(|v| Input { key: Some(b"k".to_vec()), ..(*v).into() }).collect();
    run(MANIFEST, map, &inputs).unwrap()
}

/// The one value that comes out, or why none does.
fn one(config: &str, value: &str) -> String {
    let out = map(config, &[value]);
    assert_eq!(out.len(), 1, "{config}");
    match &out[0].reject {
        Some((code, reason, _)) => format!("{code} {reason}"),
        None => String::from_utf8(out[0].value.clone().unwrap()).unwrap(),
    }
}

#[test]
fn edits_objects_in_place() {
    let record = r#"{ "a" : 1, "b":{"c":"x","d":[1, 2]}, "e":null }"#;
    for (config, want) in [
        (r#"{"set":{"/f":"/a + 1"}}"#, r#"{"a":1,"b":{"c":"x","d":[1, 2]},"e":null,"f":2}"#),
        (r#"{"set":{"/a":"'y'"}}"#, r#"{"a":"y","b":{"c":"x","d":[1, 2]},"e":null}"#),
        (r#"{"set":{"/a":"/a * 2","/g":"/a"}}"#, r#"{"a":2,"b":{"c":"x","d":[1, 2]},"e":null,"g":1}"#),
        (r#"{"set":{"/b/c":"upper(/b/c)","/b/n":"null"}}"#, r#"{"a":1,"b":{"c":"X","d":[1, 2],"n":null},"e":null}"#),
        (r#"{"set":{"/x/y/z":"1"}}"#, r#"{"a":1,"b":{"c":"x","d":[1, 2]},"e":null,"x":{"y":{"z":1}}}"#),
        (r#"{"set":{"/e/f":"1"}}"#, r#"{"a":1,"b":{"c":"x","d":[1, 2]},"e":{"f":1}}"#),
        (r#"{"drop":["/a","/b/c","/no"]}"#, r#"{"b":{"d":[1, 2]},"e":null}"#),
        (r#"{"drop":["/a","/b","/e"]}"#, "{}"),
        (r#"{"keep":"/b/d"}"#, r#"{"b":{"d":[1, 2]}}"#),
        (r#"{"keep":["/e","/a"],"set":{"/n":"/b/c"}}"#, r#"{"a":1,"e":null,"n":"x"}"#),
        (r#"{"keep":["/b"],"set":{"/b/c":"7"}}"#, r#"{"b":{"c":7,"d":[1, 2]}}"#),
        (r#"{"keep":["/a/deep"]}"#, "{}"),
        (r#"{"set":{"/a/deep":"1"}}"#, "0 a is no object: nothing can be set in it"),
    ] {
        assert_eq!(one(config, record), want, "{config}");
    }
}

#[test]
fn names_keep_their_escapes_and_duplicates_their_first_place() {
    assert_eq!(one(r#"{"set":{"/a\"":"1"}}"#, r#"{"a\"":0,"\u0062":2}"#), r#"{"a\"":1,"\u0062":2}"#);
    assert_eq!(one(r#"{"set":{"/a":"/a"}}"#, r#"{"a":1,"b":2,"a":3}"#), r#"{"a":3,"b":2}"#);
    assert_eq!(one(r#"{"drop":"/b"}"#, r#"{"\u0062":2}"#), "{}");
}

#[test]
fn only_objects_are_edited() {
    assert_eq!(one(r#"{"drop":"/a"}"#, "[1]"), "0 the value is not a JSON object");
    assert_eq!(one(r#"{"drop":"/a"}"#, "[1"), "1 the value is not JSON");
    assert_eq!(one(r#"{"fields":["/0"]}"#, "[1]"), r#"{"0":1}"#);
}

#[test]
fn projects_filters_and_sets_keys() {
    let values = [r#"{"auction":123,"price":7}"#, r#"{"auction":124,"price":8}"#, r#"{"auction":null,"price":9}"#];
    let out = map(r#"{"where":"/price < 9","fields":["/price",{"mod":"/auction % 123"}],"key":"/auction"}"#, &values);
    let got: Vec<_> = out.iter().map(|o| (o.key.clone().unwrap(), o.value.clone().unwrap(), o.index)).collect();
    assert_eq!(
        got,
        [(b"123".to_vec(), br#"{"price":7,"mod":0}"#.to_vec(), Some(0)), (b"124".to_vec(), br#"{"price":8,"mod":1}"#.to_vec(), Some(1)),]
    );
    let out = map(r#"{"key":"/auction"}"#, &values);
    assert_eq!((out[2].key.as_deref(), out[2].value.as_deref()), (None, Some(values[2].as_bytes())));
    assert_eq!(map(r#"{"fields":["/price"]}"#, &values)[0].key.as_deref(), Some(b"k" as &[u8]));
}

#[test]
fn the_stateless_queries_of_nexmark() {
    let bid = r#"{"event_type":2,"auction":1230,"bidder":1001,"price":2000000,"channel":"channel-77","url":"https://www.nexmark.com/aaa/bb/c/item.htm?query=1&channel_id=77","dateTime":1700000000123,"extra":"cacc"}"#;
    for (config, want) in [
        (
            r#"{"where":"/event_type = 2","fields":["/auction","/bidder",{"price":"0.908 * /price"},"/dateTime","/extra"]}"#,
            r#"{"auction":1230,"bidder":1001,"price":1816000.000,"dateTime":1700000000123,"extra":"cacc"}"#,
        ),
        (r#"{"where":"/event_type = 2 and /auction % 123 = 0","fields":["/auction","/price"]}"#, r#"{"auction":1230,"price":2000000}"#),
        (
            r#"{"where":"0.908 * /price > 1000000 and 0.908 * /price < 50000000","fields":["/auction",
                {"bidTimeType":"case when hour(/dateTime) between 8 and 18 then 'dayTime' when hour(/dateTime) <= 6 or hour(/dateTime) >= 20 then 'nightTime' else 'otherTime' end"},
                {"c_counts":"count(/extra, 'c')"}]}"#,
            r#"{"auction":1230,"bidTimeType":"nightTime","c_counts":3}"#,
        ),
        (
            r#"{"where":"contains(/url, 'channel_id=') or lower(/channel) in ('apple', 'google', 'facebook', 'baidu')","fields":["/channel",
                {"channel_id":"case when lower(/channel) = 'apple' then '0' when lower(/channel) = 'google' then '1' when lower(/channel) = 'facebook' then '2' when lower(/channel) = 'baidu' then '3' else split(after(/url, 'channel_id='), '&', 0) end"}]}"#,
            r#"{"channel":"channel-77","channel_id":"77"}"#,
        ),
        (
            r#"{"fields":[{"dir1":"split(/url, '/', 3)"},{"dir2":"split(/url, '/', 4)"},{"dir3":"split(/url, '/', 5)"}]}"#,
            r#"{"dir1":"aaa","dir2":"bb","dir3":"c"}"#,
        ),
    ] {
        assert_eq!(one(config, bid), want, "{config}");
    }
}

#[test]
fn refuses_other_configurations() {
    for (config, want) in [
        ("{}", "config: fields, set, drop, keep or key is needed (to only drop records, use filter)"),
        (r#"{"fields":["/a"],"drop":"/a"}"#, "config: fields makes a new object: set, drop and keep have nothing to work on"),
        (r#"{"set":{"/a":"1"},"drop":["/a"]}"#, "config: /a lies in what is set or dropped already"),
        (r#"{"set":{"/a/b":"1","/a":"2"}}"#, "config: /a is kept, set or dropped twice, or something in it is"),
        (r#"{"drop":["a"]}"#, "config: \"a\" is no JSON pointer: it does not begin with /"),
        (r#"{"drop":[""]}"#, "config: the pointer \"\" is the whole value: name its members, or use fields"),
        (r#"{"set":{"/a":1}}"#, "config: set./a is not a string with an expression"),
        (r#"{"set":{"/a":"/b +"}}"#, "config: set./a, column 5: the text ends, where a value was expected"),
        (r#"{"add":{}}"#, "config: add is no setting of this transform"),
    ] {
        let Err(e) = Map::new(Value::parse(config.as_bytes())) else { panic!("{config} is taken") };
        assert_eq!(e.reason(), want, "{config}");
    }
}
