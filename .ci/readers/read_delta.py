#!/usr/bin/env python3
"""Do real readers accept these Delta tables?   read_delta.py DIR EXPECTED.jsonl [--txn APPID=VERSION ..]
                                                read_delta.py --list FILE

FILE has a line for each table: DIR, EXPECTED and the APPID=VERSION, separated by tabs. For each table:
1. the log, replayed here: no gap, and the txn versions that are demanded;
2. delta-rs: the rows and the txn versions;
3. DuckDB over exactly the files that the log lists: its own Delta reader is a download apart;
4. Spark: the rows and the txn versions.
EXPECTED.jsonl has one JSON object a row, in any order, in the forms of readers.canon. Exit 1 on any mismatch."""

import argparse
import json
import os
import sys
import urllib.parse

import readers


def log_txns(folder):
    """The txn versions and the newest version, from the newest checkpoint in one file and the entries behind it."""
    import pyarrow.parquet as pq

    log = os.path.join(folder, "_delta_log")
    names = os.listdir(log)
    versions = sorted(int(n[:20]) for n in names if len(n) == 25 and n.endswith(".json"))
    base, txns = -1, {}
    for name in sorted(n for n in names if len(n) == 39 and n.endswith(".checkpoint.parquet"))[-1:]:
        base = int(name[:20])
        for row in pq.read_table(os.path.join(log, name), columns=["txn"]).to_pylist():
            if row["txn"] and row["txn"]["appId"] is not None:
                txns[row["txn"]["appId"]] = row["txn"]["version"]
    versions = [v for v in versions if v > base]
    if versions != list(range(base + 1, base + 1 + len(versions))):
        raise SystemExit(f"{log}: a gap behind version {base}: {versions}")
    for v in versions:
        with open(os.path.join(log, f"{v:020d}.json"), encoding="utf-8") as f:
            for text in f:
                action = json.loads(text)
                if "txn" in action:
                    txns[action["txn"]["appId"]] = action["txn"]["version"]
    return txns, base + len(versions)


def same_txns(name, got, want):
    bad = {app: (got.get(app), version) for app, version in want.items() if got.get(app) != version}
    for app, (have, version) in bad.items():
        print(f"  {name}: txn {app} is {have}, expected {version}: MISMATCH")
    return not bad


def delta_rs(folder, want, txns):
    from deltalake import DeltaTable, QueryBuilder

    table = DeltaTable(folder)
    ok = same_txns("delta-rs", {app: table.transaction_version(app) for app in txns}, txns)
    rows = QueryBuilder().register("t", table).execute("select * from t").read_all()
    import pyarrow as pa

    return readers.compare("delta-rs", readers.rows_of_arrow(pa.table(rows)), want) and ok, table


def duckdb_rows(folder, table):
    import duckdb
    import pyarrow as pa

    c = duckdb.connect()
    c.execute("SET TimeZone='UTC'")
    for file in pa.table(table.get_add_actions(flatten=False)).to_pylist():
        path = os.path.join(folder, file["path"])
        if not os.path.exists(path):
            path = os.path.join(folder, urllib.parse.unquote(file["path"]))
        values = {k: readers.canon(v) for k, v in (file.get("partition_values") or file.get("partition") or {}).items()}
        read = c.sql("SELECT * FROM read_parquet($f, hive_partitioning=false)", params={"f": [path]}).to_arrow_table()
        for text in readers.rows_of_arrow(read):
            yield readers.line(json.loads(text) | values)


def spark(session, folder, want, txns):
    ok = readers.compare("spark", readers.rows_of_arrow(session.read.format("delta").load("file://" + folder).toArrow()), want)
    jvm = session._jvm
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session._jsparkSession, "file://" + folder)
    found = log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty()).setTransactions()
    got = {found.apply(i).appId(): found.apply(i).version() for i in range(found.size())}
    return same_txns("spark", got, txns) and ok


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("pair", nargs="*", metavar="DIR EXPECTED")
    ap.add_argument("--txn", action="append", default=[])
    ap.add_argument("--list")
    a = ap.parse_args()
    if (len(a.pair) == 2) == bool(a.list):
        ap.error("one directory and its file of expected rows, or a list")
    tables = [a.pair + a.txn] if a.pair else []
    if a.list:
        with open(a.list, encoding="utf-8") as f:
            tables = [text.rstrip("\n").split("\t") for text in f]
    if not tables:
        raise SystemExit("no table to read")
    session, good = None, True
    for folder, expected, *demanded in tables:
        folder = os.path.abspath(folder)
        want = list(readers.rows_of_jsonl(expected))
        txns, version = log_txns(folder)
        print(f"{folder}: version {version}, {len(txns)} txn", flush=True)
        ok = same_txns("log", txns, {app: int(v) for app, v in (t.rsplit("=", 1) for t in demanded)})
        read, table = delta_rs(folder, want, txns)
        ok &= read
        ok &= readers.compare("duckdb", duckdb_rows(folder, table), want)
        session = session or readers.spark_session("read_delta")
        ok &= spark(session, folder, want, txns)
        print("PASS" if ok else "FAIL", flush=True)
        good &= ok
    session.stop()
    sys.exit(0 if good else 1)


main()
