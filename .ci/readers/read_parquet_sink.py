#!/usr/bin/env python3
"""Do real readers accept these parquet sinks?   read_parquet_sink.py [--only manifest|duckdb] DIR EXPECTED.jsonl [DIR EXPECTED.jsonl ..]

For each directory:
1. the manifest by Spark's own rules: ids without a gap, .compact where Spark demands it, each listed file there with its exact
   size, none twice, none in the directory that is not listed;
2. DuckDB over exactly the listed files;
3. Spark's batch reader, which goes by DIR/_spark_metadata;
4. Spark's streaming reader: a second query that takes the sink as its source.
EXPECTED.jsonl has one JSON object a row, in any order, in the forms of readers.canon. Exit 1 on any mismatch."""

import argparse
import os
import sys
import tempfile

import readers


def duckdb_rows(files):
    import duckdb

    if not files:
        return
    c = duckdb.connect()
    c.execute("SET TimeZone='UTC'")
    t = c.sql("SELECT * FROM read_parquet($f, hive_partitioning=true, union_by_name=true)", params={"f": files})
    yield from readers.rows_of_arrow(t.to_arrow_table())


def spark_rows(df):
    yield from readers.rows_of_arrow(df.toArrow())


def spark_stream_rows(session, out, schema):
    with tempfile.TemporaryDirectory() as tmp:
        query = (
            session.readStream.schema(schema).parquet("file://" + out).writeStream.format("parquet")
            .option("checkpointLocation", tmp + "/ck").trigger(availableNow=True).start(tmp + "/out")
        )
        query.awaitTermination()
        yield from spark_rows(session.read.schema(schema).parquet(tmp + "/out"))


def spark_checks(session, out, files, want):
    df = session.read.parquet("file://" + out)
    ok = readers.compare("spark batch", spark_rows(df), want)
    read = len(df.inputFiles())
    if read != len(files):
        print(f"  spark batch: read {read} files, the manifest lists {len(files)}: MISMATCH")
        ok = False
    return readers.compare("spark stream", spark_stream_rows(session, out, df.schema), want) and ok


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pairs", nargs="+", metavar="DIR EXPECTED")
    ap.add_argument("--only", choices=["manifest", "duckdb"])
    a = ap.parse_args()
    if len(a.pairs) % 2:
        ap.error("each directory needs its file of expected rows")
    session, good = None, True
    for out, expected in zip(a.pairs[::2], a.pairs[1::2]):
        out = os.path.abspath(out)
        want = list(readers.rows_of_jsonl(expected))
        print(out, flush=True)
        ok, files = readers.check_manifest(out)
        if a.only != "manifest":
            ok &= readers.compare("duckdb", duckdb_rows(files), want)
        if a.only is None:
            session = session or readers.spark_session("read_parquet_sink")
            ok &= spark_checks(session, out, files, want)
        print("PASS" if ok else "FAIL", flush=True)
        good &= ok
    if session:
        session.stop()
    sys.exit(0 if good else 1)


main()
