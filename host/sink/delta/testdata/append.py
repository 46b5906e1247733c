#!/usr/bin/env python3
"""Appends rows to a Delta table, one commit each, as another program at work on it.   append.py ENGINE DIR WHO COUNT [GO]
ENGINE is spark or delta-rs. The rows are {"who": WHO, "n": 0..COUNT-1}. With GO, a file, it says "ready" and waits until the file is there.
Needs the Python and LAB of .ci/readers. A commit that fails is tried again only if the table does not have its row."""
import os, sys, time
engine, table, who, count = sys.argv[1], os.path.abspath(sys.argv[2]), sys.argv[3], int(sys.argv[4])
go = sys.argv[5] if len(sys.argv) > 5 else None


def delta_rs():
    import pyarrow as pa
    from deltalake import write_deltalake, DeltaTable

    def one(n):
        rows = pa.table({"who": pa.array([who]), "n": pa.array([n], pa.int64())})
        for attempt in range(100):
            try:
                return write_deltalake(table, rows, mode="append")
            except Exception as e:
                print("again:", str(e)[:200], file=sys.stderr)
                have = DeltaTable(table).to_pyarrow_table()
                if any(r == {"who": who, "n": n} for r in have.select(["who", "n"]).to_pylist()):
                    return
                time.sleep(0.01 * attempt)
        sys.exit("could not append")
    return one


def spark():
    sys.path.insert(0, os.environ["READERS"])
    import readers
    s = readers.spark_session("append")

    def one(n):
        for attempt in range(100):
            try:
                return s.createDataFrame([(who, n)], "who string, n bigint").coalesce(1).write.format("delta").mode("append").save("file://" + table)
            except Exception as e:  # as DELTA_VERSIONS_NOT_CONTIGUOUS: Spark lists the log while others write to it
                print("again:", str(e)[:200], file=sys.stderr)
                if s.read.format("delta").load("file://" + table).where(f"who = '{who}' and n = {n}").count():
                    return
                time.sleep(0.01 * attempt)
        sys.exit("could not append")
    return one


one = {"spark": spark, "delta-rs": delta_rs}[engine]()
if go:
    print("ready", flush=True)
    while not os.path.exists(go):
        time.sleep(0.01)
for n in range(count):
    one(n)
