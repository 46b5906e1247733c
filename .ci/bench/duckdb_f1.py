#!/usr/bin/env python3
"""F1 in DuckDB: a floor, not an equal, as it keeps no track of its input and survives no crash.

duckdb_f1.py run INPUT OUT           ten statements of two files each, one parquet file a statement, two threads
duckdb_f1.py delta INPUT OUT         the same into a Delta table, by delta-rs: ten commits, each with a transaction identifier
duckdb_f1.py same INPUT TABLE        prints how many rows of TABLE's manifest differ from what F1 must give
duckdb_f1.py same-delta INPUT TABLE  the same of a Delta table, whose files delta-rs names"""

import glob
import os
import sys
import time

import duckdb

COLUMNS = "{'id':'BIGINT','ts':'TIMESTAMPTZ','user':'VARCHAR','session':'VARCHAR','event':'VARCHAR','page':'VARCHAR','amount':'DOUBLE','qty':'INTEGER','country':'VARCHAR','ua':'VARCHAR'}"


def select(files):
    return f"SELECT *, CAST(round(amount*100) AS BIGINT) AS cents FROM read_json({files!r}, format='newline_delimited', columns={COLUMNS}) WHERE event <> 'view'"


def delta(c, files, out):
    from deltalake import CommitProperties, Transaction, write_deltalake

    for k in range(0, len(files), 2):
        rows = c.sql(select(files[k : k + 2])).to_arrow_reader(100_000)
        marks = CommitProperties(app_transactions=[Transaction("bench", k // 2, int(time.time() * 1000))])
        write_deltalake(out, rows, mode="append", commit_properties=marks)


def listed(table, is_delta):
    """The table's files, as its own log has them."""
    if is_delta:
        from deltalake import DeltaTable

        return DeltaTable(table).file_uris()
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "readers"))
    import readers

    return [readers.local(e["path"]) for e in readers.manifest(table)[0]]


def main():
    verb, source, out = sys.argv[1:4]
    files = sorted(glob.glob(source + "/*.json"))
    c = duckdb.connect()
    c.execute("SET threads=2; SET TimeZone='UTC'")
    if verb == "run":
        os.makedirs(out)
        for k in range(0, len(files), 2):
            c.execute(f"COPY ({select(files[k : k + 2])}) TO '{out}/part-{k:05d}.parquet' (FORMAT parquet, COMPRESSION zstd)")
        return
    if verb == "delta":
        delta(c, files, out)
        return
    parts = listed(out, verb == "same-delta")
    c.execute(f"CREATE TABLE want AS {select(files)}")
    c.execute(f"CREATE TABLE got AS SELECT * FROM read_parquet({parts!r})")
    missing = c.execute("SELECT count(*) FROM (FROM want EXCEPT ALL FROM got)").fetchone()[0]
    extra = c.execute("SELECT count(*) FROM (FROM got EXCEPT ALL FROM want)").fetchone()[0]
    rows = c.execute("SELECT count(*) FROM got").fetchone()[0]
    print(f"{rows} rows, {missing} missing, {extra} unexpected")
    sys.exit(0 if missing == extra == 0 and rows else 1)


main()
