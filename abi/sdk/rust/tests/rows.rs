//! Binary rows, natively: those of the golden vectors, and what strings of the input become.

use wasmill::testing::run;
use wasmill::{Columns, Field, Out, Port, Record, Row};

const MANIFEST: &str = r#"{"abi": 1, "name": "t", "version": "1", "inputs": [{"name": "in", "fields": ["/s"]}],
 "outputs": [{"name": "every", "rows": 1, "columns": "id: int64 not null, small: int8, short: int16, n: int32, ok: boolean, f: float, d: double, day: date, at: timestamp(ms), s: string, b: binary, p: decimal(9,2), q: decimal(18,4), w: decimal(38,10)"},
  {"columns": "tags: list<string>, by: map<string, int32>, place: struct<lat: double, names: list<struct<lang: string not null, text: string>>>", "rows": 1, "name": "nested"},
  {"name": "nulls", "rows": 1, "columns": "a: int8, b: string"}, {"name": "quoted", "rows": 1, "columns": "\"a b\": string"}]}"#;
const S: Field = Field::of(MANIFEST, "/s");

fn rows(output: &str, fill: impl Fn(&Record<'_>, &mut Row<'_>), values: &[&str]) -> Vec<String> {
    let (columns, port) = (Columns::of(MANIFEST, output), Port::of(MANIFEST, output));
    let write = |r: Record<'_>, out: &mut Out| {
        let mut row = out.row(&r, columns);
        fill(&r, &mut row);
        row.emit(port);
        Ok(())
    };
    let inputs: Vec<_> = values.iter().map(|v| (*v).into()).collect();
    let out = run(MANIFEST, write, &inputs).expect("a run");
    out.iter().map(|o| o.value.as_deref().expect("a value").iter().map(|b| format!("{b:02x}")).collect()).collect()
}

/// The bytes of a golden vector.
fn vector(doc: &str) -> String {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/rows.json")).expect("the vectors");
    let at = text.find(&format!("\"doc\": \"{doc}\"")).expect("a vector");
    text[at..].split("\"hex\": \"").nth(1).expect("hex").split('"').next().expect("hex").into()
}

#[test]
fn every_type() {
    let fill = |_: &Record<'_>, r: &mut Row<'_>| {
        r.push(-1i64).push(-128i8).push(300i16).push(i32::MIN).push(true).push(1.5f32).push(-0.25f64).push(19000i32);
        r.push(1_700_000_000_123_456i64).push("é\n").push(&[0u8, 255][..]).push(12345i32).push(Some(5i64)).push(1i128);
    };
    assert_eq!(rows("every", fill, &["{}"]), [vector("every type")]);
}

#[test]
fn nested() {
    let fill = |_: &Record<'_>, r: &mut Row<'_>| {
        r.count(3).push("x").null().push("").count(2).key("a").push(1i32).key("b").push(None::<i32>);
        r.structure().push(52.5f64).count(2).structure().push("de").push("Berlin").null();
    };
    assert_eq!(rows("nested", fill, &["{}"]), [vector("nested")]);
    let nulls = |_: &Record<'_>, r: &mut Row<'_>| {
        r.null().push(None::<&str>);
    };
    assert_eq!(rows("nulls", nulls, &["{}"]), [vector("nulls")]);
}

/// What follows each `"name": "` in a text.
fn members<'t>(text: &'t str, name: &str) -> Vec<&'t str> {
    text.split(&format!("\"{name}\": \"")).skip(1).map(|s| s.split('"').next().expect("a string")).collect()
}

/// The numbers of the golden vectors, each as a value and as a key, and a key that is null: what does not fit is never cut.
#[test]
fn cells() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/cells.json")).expect("the vectors");
    let (kinds, texts, cells) = (members(&text, "type"), members(&text, "text"), members(&text, "hex"));
    assert!(kinds.len() > 100 && kinds.len() == texts.len() && texts.len() == cells.len());
    let none = "03".repeat(17);
    for ((kind, text), cell) in kinds.iter().zip(texts).zip(cells) {
        if *kind == "float" {
            continue; // an f32 is one already
        }
        let n: i64 = text.parse().expect("a number");
        let fill = |_: &Record<'_>, r: &mut Row<'_>| {
            match *kind {
                "int8" => r.push(i8::try_from(n)).key(i8::try_from(n)),
                "int16" => r.push(Some(i16::try_from(n))).key(i16::try_from(n)),
                "int32" => r.push(i32::try_from(n)).key(i32::try_from(n)),
                "int64" => r.push(n).key(n),
                "int128" => r.push(i128::from(n)).key(i128::from(n)),
                _ => r.count(n as usize).key(u32::try_from(n).map(|n| n as i32)),
            };
            r.key(None::<i8>);
        };
        let key = cell.strip_prefix("01").unwrap_or(&none);
        let got = rows("nulls", fill, &["{}"]);
        assert_eq!(&got[0][10..], format!("{cell}{key}{none}"), "{kind} {n}");
    }
}

/// The row of the README.
#[test]
fn readme() {
    let fill = |_: &Record<'_>, row: &mut Row<'_>| {
        let cents = Some(1234i64).map(i32::try_from);
        row.push("c").push(cents);
        row.count(2).push("new").null();
        row.count(1).key("de").push(100i64);
        row.structure().push(52.5).push(None::<&str>);
    };
    let want = "01010000006301d2040000010200000001030000006e657700010100000002000000646501640000000000000001010000000000404a4000";
    assert_eq!(&rows("nulls", fill, &["{}"])[0][10..], want);
}

#[test]
fn strings_of_the_input() {
    let long = "0123456789".repeat(100_000);
    let values = [r#"{"s":"x"}"#, r#"{"s":"\u00e9"}"#, r#"{"s":1}"#, "{}", &format!("{{\"s\":\"{long}\"}}")];
    let fill = |r: &Record<'_>, row: &mut Row<'_>| {
        row.push(r.get(S));
    };
    let got = rows("quoted", fill, &values);
    let hex: String = long.bytes().map(|b| format!("{b:02x}")).collect();
    let want = ["010100000078", "0102000000c3a9", "00", "00", &format!("0140420f00{hex}")];
    for (g, w) in got.iter().zip(want) {
        // FNV-1a of `"a b": string`
        assert_eq!(&g[..10], "0193a33942");
        assert_eq!(&g[10..], w);
    }
    assert_eq!(got.len(), want.len());
}
