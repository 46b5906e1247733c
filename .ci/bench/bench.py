#!/usr/bin/env python3
"""Measures Wasmill against its targets. See README.md; bench.sh builds the program and calls this.

CPU-seconds (user and system, of the whole process) are the figure to trust on a busy machine; wall times are not. Medians. Prints
tables in Markdown; exits 1 when a target is missed."""

import argparse
import os
import shutil
import sys

import latency
import orders
import tables
import throughput
from suite import Suite, head

PARTS = ["latency", "syncs", "start", "throughput", "peers"]
# Parts that need more than this machine, or minutes of Spark: only when they are named.
MORE = ["orders", "tables"]


def load():
    with open("/proc/loadavg") as f:
        return f.read().split()[0]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all without any; peers adds DuckDB and Spark to throughput; "
                    "tables is Delta beside delta-rs and Spark; orders needs a broker (KAFKA) and its harness (HARNESS)")
    ap.add_argument("--program", required=True)
    ap.add_argument("--work", required=True, help="folder for inputs and outputs, about 1 GB")
    ap.add_argument("--runs", type=int, default=int(os.environ.get("RUNS", "3")))
    args = ap.parse_args()
    parts = args.parts or PARTS
    if unknown := set(parts) - set(PARTS + MORE):
        ap.error(f"unknown: {', '.join(sorted(unknown))}")
    suite = Suite(args.program, args.work, args.runs)
    print(f"{os.cpu_count()} cores; load average {load()} at the start", flush=True)
    if "latency" in parts:
        latency.batches(suite)
    if "syncs" in parts:
        latency.syncs(suite)
    if "start" in parts:
        latency.start(suite)
    if "throughput" in parts or "peers" in parts:
        throughput.measure(suite, "peers" in parts)
    if "tables" in parts:
        tables.measure(suite)
    if "orders" in parts:
        orders.measure(suite)
    head("Targets", "target | measured | limit | ")
    for name, value, limit, unit in suite.targets:
        print(f"| {name} | {value:.2f} {unit} | {limit} {unit} | {'met' if value <= limit else 'MISSED'} |")
    print(f"\nload average {load()} at the end")
    shutil.rmtree(suite.path("trash"), ignore_errors=True)
    sys.exit(any(value > limit for _, value, limit, _ in suite.targets))


main()
