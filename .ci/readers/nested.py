#!/usr/bin/env python3
"""Reads Parquet files of any schema with pyarrow, DuckDB and Spark and compares them with the rows that they must hold; then lets
pyarrow and Spark write the same rows in all their forms, for Wasmill to read.   nested.py DIR [--spark]

DIR holds N.parquet and N.jsonl, one row a line: the rows as Wasmill writes them to jsonl. Written are DIR/N.FORM.parquet."""

import base64
import datetime
import glob
import json
import os
import shutil
import struct
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

EPOCH = datetime.datetime(1970, 1, 1)


def text(t, v):
    """A value as the text that Wasmill writes, for keys of maps and for what JSON has as text."""
    if pa.types.is_timestamp(t):
        return (EPOCH + datetime.timedelta(microseconds=v)).isoformat(timespec="microseconds") + ("Z" if t.tz else "")
    if pa.types.is_date(t):
        return (EPOCH + datetime.timedelta(days=v)).date().isoformat()
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t):
        return base64.b64encode(v).decode()
    if pa.types.is_boolean(t):
        return "true" if v else "false"
    if pa.types.is_decimal(t):
        return format(v, "f")
    return str(v)


def plain(array):
    """The values of an array; times as numbers, since Python's own types are narrower."""
    t = array.type
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in plain(chunk)]
    if pa.types.is_timestamp(t):
        return array.cast(pa.timestamp("us", t.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_date32(t):
        return array.cast(pa.int32()).to_pylist()
    return array.to_pylist()


def canon(array):
    """The values of an array as JSON values."""
    t = array.type
    if isinstance(array, pa.ChunkedArray):
        return [v for chunk in array.chunks for v in canon(chunk)]
    valid = array.is_valid().to_pylist()
    if pa.types.is_struct(t):
        fields = [(f.name, canon(array.field(i))) for i, f in enumerate(t)]
        return [{n: c[i] for n, c in fields} if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_map(t):
        keys, items, ends = plain(array.keys), canon(array.items), array.offsets.to_pylist()
        base = ends[0] if ends else 0
        key = [text(t.key_type, k) for k in keys]
        shift = 0 if len(keys) >= (ends[-1] if ends else 0) else base
        return [{key[k - shift]: items[k - shift] for k in range(ends[i], ends[i + 1])} if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_list(t) or pa.types.is_large_list(t):
        values, ends = canon(array.values), array.offsets.to_pylist()
        return [[values[k] for k in range(ends[i], ends[i + 1])] if ok else None for i, ok in enumerate(valid)]
    if pa.types.is_floating(t) or pa.types.is_integer(t) or pa.types.is_boolean(t) or pa.types.is_string(t) or pa.types.is_large_string(t):
        return array.to_pylist()
    return [None if v is None else (v, t) for v in plain(array)]


def same(got, want):
    if isinstance(got, tuple):
        got = text(got[1], got[0])
        return got == (want if isinstance(want, str) else str(want))
    if isinstance(got, dict):
        return isinstance(want, dict) and got.keys() == want.keys() and all(same(v, want[k]) for k, v in got.items())
    if isinstance(got, list):
        return isinstance(want, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(got, float):
        if want is None:
            return False
        want = float(want.replace("Infinity", "inf")) if isinstance(want, str) else want
        return struct.pack("<d", got) == struct.pack("<d", float(want)) or got != got and want != want or struct.pack("<f", got) == struct.pack("<f", float(want))
    return got == want and type(got) is type(want)


def compare(who, path, table, want):
    if table.num_rows != len(want):
        raise SystemExit(f"{who}, {path}: {table.num_rows} rows, want {len(want)}")
    columns = {name: canon(table.column(i)) for i, name in enumerate(table.column_names)}
    for i, row in enumerate(want):
        for name, value in row.items():
            if not same(columns[name][i], value):
                raise SystemExit(f"{who}, {path}, row {i}, {name}:\n got {columns[name][i]}\nwant {value}")


def numbers(line):
    """JSON whose numbers that are not whole keep their digits, and zero its sign."""
    return json.loads(line, parse_float=str, parse_int=lambda s: s if s == "-0" else int(s))


FORMS = {
    "old": dict(version="1.0", use_compliant_nested_type=False, use_deprecated_int96_timestamps=True, use_dictionary=False, compression="none"),
    "new": dict(version="2.6", data_page_version="2.0", compression="zstd", write_page_index=True),
    "small": dict(version="2.4", data_page_size=64, row_group_size=7, compression="gzip", store_decimal_as_integer=True),
    "delta": dict(version="2.6", use_dictionary=False, column_encoding=None, compression="snappy"),
}


def main():
    top = sys.argv[1]
    paths = sorted(p for p in glob.glob(os.path.join(top, "*.parquet")) if os.path.basename(p).count(".") == 1)
    con = duckdb.connect()
    con.execute("set timezone='UTC'")
    spark = None
    if "--spark" in sys.argv:
        import readers

        spark = readers.spark_session("nested", conf={
            "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED", "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
            "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED", "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
            "spark.sql.caseSensitive": "true", "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        })
    counts = {"pyarrow": 0, "duckdb": 0, "spark": 0, "forms": 0}
    for path in paths:
        with open(path[: -len("parquet")] + "jsonl", encoding="utf-8") as f:
            want = [numbers(line) for line in f.read().split("\n") if line]
        table = pq.ParquetFile(path).read()
        compare("pyarrow", path, table, want)
        counts["pyarrow"] += 1
        got = con.sql("select * from read_parquet(?)", params=[path]).to_arrow_table()
        compare("duckdb", path, got, want)
        counts["duckdb"] += 1
        stem = path[: -len(".parquet")]
        for form, options in FORMS.items():
            options = {k: v for k, v in options.items() if v is not None}
            pq.write_table(table, f"{stem}.{form}.parquet", **options)
            counts["forms"] += 1
        if spark is None:
            continue
        frame = spark.read.parquet(path)
        for form, conf in {"spark": ("false", "TIMESTAMP_MICROS"), "legacy": ("true", "INT96")}.items():
            spark.conf.set("spark.sql.parquet.writeLegacyFormat", conf[0])
            spark.conf.set("spark.sql.parquet.outputTimestampType", conf[1])
            folder = f"{stem}.{form}"
            frame.coalesce(1).write.mode("overwrite").parquet(folder)
            (part,) = glob.glob(os.path.join(folder, "part-*.parquet"))
            os.rename(part, f"{stem}.{form}.parquet")
            shutil.rmtree(folder)
            if form == "spark":
                compare("spark", path, pq.ParquetFile(f"{stem}.{form}.parquet").read(), want)
                counts["spark"] += 1
            counts["forms"] += 1
    print(" ".join(f"{k}={v}" for k, v in counts.items()))


main()
