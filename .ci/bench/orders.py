"""S1: orders from topic to topic, exactly once, beside a floor written by hand in Go. Needs a broker and the harness: see README.md."""

import json
import os
import statistics
import subprocess
import sys
import time

from suite import MILLION, ROOT, head

RECORDS = 5 * MILLION
# Nine orders in ten come out; the run ends when nothing more is committed after so many.
KEPT = int(RECORDS * 0.899)
IN, OUT = "bench-orders", "bench-out"


class Harness:
    """kbench and the floor, built from the folder that HARNESS names, against the broker that KAFKA names."""

    def __init__(self, suite):
        brokers, folder = os.environ.get("KAFKA"), os.environ.get("HARNESS")
        if not brokers or not folder:
            raise SystemExit("orders: KAFKA names a broker, and HARNESS the folder with harness/ and peers/floor-go/")
        self.suite = suite
        self.env = suite.env | {"KAFKA_BROKERS": brokers, "IN": IN, "OUT": OUT, "MODE": "s1", "COMMIT_MS": "100"}
        self.kbench, self.floor = suite.path("kbench"), suite.path("floor")
        for program, source in ((self.kbench, "harness"), (self.floor, "peers/floor-go")):
            subprocess.run(["go", "build", "-o", program, "."], cwd=os.path.join(folder, source), check=True)
        self.call("load", "-topic", IN, "-n", str(RECORDS))

    def call(self, *args, env=None):
        """Runs kbench and returns what it reports."""
        p = subprocess.run([self.kbench, *args], env=env or self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if p.returncode:
            sys.stderr.write(p.stderr.decode())
            raise SystemExit(f"kbench {' '.join(args)}: status {p.returncode}: {p.stdout.decode()}")
        return json.loads(p.stdout)

    def run(self, command, **env):
        """Runs one system over the whole topic from nothing, and checks that every order came out once."""
        got = self.call("run", "-name", "s1", "-n", str(RECORDS), "-out", OUT, "-expect", str(KEPT), "--", *command, env=self.env | env)
        self.call("drain", "-n", str(RECORDS), "-topic", OUT)
        return got

    def wasmill(self, guest):
        checkpoint = self.suite.path("orders", str(time.monotonic_ns()))
        job = os.path.join(ROOT, "examples/orders/job.yaml")
        command = [self.suite.program, "run", "--progress", "none", "--log-level", "error", job]
        got = self.run(command, GUEST=guest, CHECKPOINT=checkpoint)
        self.suite.clear(self.suite.path("orders"), [os.path.basename(checkpoint)])
        return got


def measure(suite):
    h = Harness(suite)
    kinds = {
        "floor in Go, without WebAssembly": lambda: h.run([h.floor], APP_ID=f"floor-{time.time_ns()}"),
        "Wasmill, Rust guest": lambda: h.wasmill("rust"),
        "Wasmill, Go guest": lambda: h.wasmill("go"),
    }
    got = {name: [] for name in kinds}
    for _ in range(suite.runs):  # interleaved, so that a busy neighbour meets all of them
        for name, run in kinds.items():
            got[name].append(run())
    head("Orders, topic to topic", "system | runs | records/s from the start | CPU-seconds a million records | over the floor | peak RSS, MiB | start to first commit | commits")
    floor = [r["cpu_s_per_m"] for r in got["floor in Go, without WebAssembly"]]
    ratio = {name: row(name, runs, floor) for name, runs in got.items()}
    ours = got["Wasmill, Rust guest"] + got["Wasmill, Go guest"]
    suite.target("orders: CPU over the floor, Rust guest", ratio["Wasmill, Rust guest"], 1.4, "x")
    suite.target("orders: CPU over the floor, Go guest", ratio["Wasmill, Go guest"], 1.7, "x")
    suite.target("orders: peak RSS", max(r["peak_rss_mib"] for r in ours), 150, "MiB")
    suite.target("orders: start to first commit", statistics.median(r["first_commit_s"] for r in ours), 0.5, "s")


def row(name, runs, floor):
    """Prints a system's line; returns the median of its CPU over the floor's, round by round."""
    cpus = [r["cpu_s_per_m"] for r in runs]
    ratio = statistics.median(c / f for c, f in zip(cpus, floor))
    rate = statistics.median(r["rec_per_s_from_start"] for r in runs)
    first = statistics.median(r["first_commit_s"] for r in runs)
    rss, steps = max(r["peak_rss_mib"] for r in runs), statistics.median(r["lso_steps"] for r in runs)
    print(f"| {name} | {len(runs)} | {rate:,.0f} | {statistics.median(cpus):.2f} ({min(cpus):.2f}-{max(cpus):.2f}) | {ratio:.2f} | {rss:.0f} | {first * 1000:,.0f} ms | {steps:.0f} |", flush=True)
    return ratio
