"""F1, the gzipped flights and 64 open partitions: CPU-seconds a million records, peak memory, time to the first batch."""

import glob
import gzip
import json
import os
import shutil
import statistics
import sys

import gen_f1
from suite import F1_SCHEMA, HERE, MILLION, ROOT, Run, head, table

FLIGHTS_SCHEMA = {
    "carrier": "string", "flight": "int32", "tailnum": "string", "origin": "string", "dest": "string", "time_hour": "timestamp",
    "dep_delay": "int32", "arr_delay": "int32", "gain": "int32", "mph": "decimal(6,1)", "late": "boolean",
}
# Each day of the example so many times over: about a million records.
DAYS = 37


def measure(suite, peers):
    source = inputs(suite, "f1", 0)
    data, flights = flights_input(suite)
    rust = suite.job("f1-rust", source, "f1/f1.wasm", [table(F1_SCHEMA)])
    go = suite.job("f1-go", source, "f1/f1-go.wasm", [table(F1_SCHEMA)])
    wide = suite.job("f1-64", inputs(suite, "f1-64", 64), "f1/f1.wasm", [table(F1_SCHEMA | {"part": "string"}, partitionBy=["part"])])
    kinds = {
        "F1, Rust guest": (rust, MILLION), "F1, Go guest": (go, MILLION), "F1, Rust guest, 64 partitions": (wide, MILLION),
        "gzipped flights, Rust guest": (flights_job(suite, data), flights),
    }
    for folder, _ in kinds.values():
        suite.once(folder)  # fills the compile cache and the page cache
    got, floor = {name: [] for name in kinds}, []
    for _ in range(suite.runs):  # interleaved, so that a busy neighbour meets all of them
        for name, (folder, _) in kinds.items():
            got[name].append(suite.once(folder))
        if peers:
            floor.append(duckdb(suite, source))
    head("Throughput", "job | runs | records/s, whole process | CPU-seconds a million records | peak RSS, MiB | start to first committed batch")
    result = {name: row(name, kinds[name][1], runs) for name, runs in got.items()}
    if peers:
        row("F1, DuckDB: no progress kept, no recovery", MILLION, floor)
        row("F1, Spark: the query alone, without its start", MILLION, [spark(suite, source)])
        for name, folder in (("Rust", rust), ("Go", go)):
            same = peer(suite, "duckdb_f1.py", "same", source, os.path.join(folder, "out", "table"))
            print(f"\nF1's table, {name} guest, compared with DuckDB's: {same.out.decode().strip()}")
    cost = {name: cpu for name, (cpu, _) in result.items()}
    suite.target("F1, Rust guest: CPU-seconds a million", cost["F1, Rust guest"], 2.0, "s")
    suite.target("F1: CPU of the Go guest's job over the Rust guest's", cost["F1, Go guest"] / cost["F1, Rust guest"], 1.5, "x")
    suite.target("gzipped flights: CPU-seconds a million", cost["gzipped flights, Rust guest"], 3.0, "s")
    suite.target("peak RSS of any job", max(rss for _, rss in result.values()), 200, "MiB")


def row(name, records, runs):
    """Prints a job's line; returns its median CPU-seconds a million and its largest resident size."""
    cpus = [r.cpu / records * MILLION for r in runs]
    cpu, rss = statistics.median(cpus), max(r.rss_mb for r in runs)
    rate = statistics.median(records / r.wall for r in runs)
    firsts = [r.first for r in runs if r.first is not None]
    first = f"{statistics.median(firsts) * 1000:,.0f} ms" if firsts else ""
    print(f"| {name} | {len(runs)} | {rate:,.0f} | {cpu:.2f} ({min(cpus):.2f}-{max(cpus):.2f}) | {rss:.0f} | {first} |", flush=True)
    return cpu, rss


def inputs(suite, name, partitions):
    if not os.path.exists(suite.path(name, "in-00019.json")):
        gen_f1.generate(suite.path(name), partitions=partitions)
    return suite.path(name)


def flights_input(suite):
    """The example's daily files, each DAYS times over and compressed anew. Returns the folder and the number of records."""
    folder, records = suite.path("flights-data"), 0
    os.makedirs(folder, exist_ok=True)
    for path in sorted(glob.glob(os.path.join(ROOT, "examples/flights/data/*.jsonl.gz"))):
        with gzip.open(path) as f:
            day = f.read()
        records += DAYS * day.count(b"\n")
        out = os.path.join(folder, os.path.basename(path))
        if not os.path.exists(out):
            with gzip.open(out, "wb", compresslevel=6) as f:
                f.write(day * DAYS)
    return folder, records


def flights_job(suite, data):
    sinks = [
        table(FLIGHTS_SCHEMA, partitionBy=["origin"]) | {"from": ["t.flights"]},
        {"name": "cancelled", "from": ["t.cancelled"], "files": {"path": "./out/cancelled", "format": "jsonl"}},
        {"name": "dead", "files": {"path": "./out/dead", "format": "jsonl"}},
    ]
    return suite.job("flights", data, "clean/clean.wasm", sinks, errors={"policy": "dead-letter", "deadLetters": "dead"})


def peer(suite, script, *args):
    return Run([sys.executable, os.path.join(HERE, script), *args], suite.env)


def duckdb(suite, source):
    shutil.rmtree(suite.path("duckdb"), ignore_errors=True)
    return peer(suite, "duckdb_f1.py", "run", source, suite.path("duckdb"))


def spark(suite, source, *how):
    """The query in Spark; how is what spark_f1.py takes after its folders."""
    shutil.rmtree(suite.path("spark"), ignore_errors=True)
    run = peer(suite, "spark_f1.py", source, suite.path("spark"), *how)
    seen = json.loads(run.out.decode().strip().split("\n")[-1])
    run.cpu, run.wall, run.rss_mb, run.batch_ms = seen["cpu"], seen["wall"], seen["rss_mb"], seen["batch_ms"]
    return run
