"""F1 into a Delta table, beside the same rows in plain parquet files, DuckDB with delta-rs, and Spark; and what a small batch costs there."""

import os
import shutil
import statistics

import gen_f1
import latency
from suite import F1_SCHEMA, MILLION, head, table
from throughput import inputs, peer, row, spark

# Spark takes seconds for a batch into Delta: so many are enough for a median.
SPARK_BATCHES = 20


def measure(suite):
    source = inputs(suite, "f1", 0)
    sink = {"name": "lake", "from": ["t"], "delta": {"path": "./out/lake", "schema": F1_SCHEMA}}
    # Two files a batch, as its peers take them.
    jobs = {
        "F1 into Delta": (suite.job("f1-delta", source, "f1/f1.wasm", [sink], maxRecords=100_000), "out/lake/_delta_log/00000000000000000000.json"),
        "F1 into parquet files": (suite.job("f1-files", source, "f1/f1.wasm", [table(F1_SCHEMA)], maxRecords=100_000), "out/table/_spark_metadata/0"),
    }
    for folder, first in jobs.values():
        suite.once(folder, first)  # fills the compile cache and the page cache
    got, floor = {name: [] for name in jobs}, []
    for _ in range(suite.runs):
        for name, (folder, first) in jobs.items():
            got[name].append(suite.once(folder, first))
        shutil.rmtree(suite.path("deltars"), ignore_errors=True)
        floor.append(peer(suite, "duckdb_f1.py", "delta", source, suite.path("deltars")))
    head("Delta", "job | runs | records/s, whole process | CPU-seconds a million records | peak RSS, MiB | start to first committed batch")
    cost = {name: row(name, MILLION, runs)[0] for name, runs in got.items()}
    row("F1, DuckDB and delta-rs: no progress kept, no recovery", MILLION, floor)
    row("F1, Spark into Delta: the query alone, without its start", MILLION, [spark(suite, source, "delta")])
    lake = os.path.join(jobs["F1 into Delta"][0], "out", "lake")
    same = peer(suite, "duckdb_f1.py", "same-delta", source, lake)
    print(f"\nOur table, as delta-rs lists it, compared with F1 in DuckDB: {same.out.decode().strip()}")
    suite.target("F1 into Delta: CPU-seconds a million", cost["F1 into Delta"], 3.0, "s")

    latency.batches(suite, sink, into=" into Delta", limit=25)
    few = suite.path("spark-few")
    if not os.path.isdir(few):
        gen_f1.generate(few, SPARK_BATCHES * latency.RECORDS, SPARK_BATCHES)
    ms = spark(suite, few, "delta", "1").batch_ms[1:]
    print(f"\nSpark, a batch of ten records into Delta: p50 {statistics.median(ms):.0f} ms, {min(ms)} to {max(ms)}, {len(ms)} batches")
