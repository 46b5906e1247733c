#!/usr/bin/env python3
"""Makes tables with the real program.   make_tables.py WASMILL REPOSITORY DIR [KILLS]

Each table gets a folder below DIR with its job, `out/table`, and `expected.jsonl`, computed here from the raw data. The jobs have
at least 25 batches. Tables named `killed-..` are made by a program that is killed (SIGKILL) KILLS times at random instants and
started again. Line sinks are compared here; checkpoints are verified by the program itself. Prints the pairs for
read_parquet_sink.py into DIR/pairs."""

import json
import os
import random
import shutil
import subprocess
import sys
import time

import alltypes
import flights
import readers

MIN_BATCHES = 25

FLIGHTS_SCHEMA = {
    "carrier": "string", "flight": "int32", "tailnum": "string", "origin": "string", "dest": "string", "time_hour": "timestamp",
    "dep_delay": "int32", "arr_delay": "int32", "gain": "int32", "mph": "decimal(6,1)", "late": "boolean",
}


class Lane:
    def __init__(self, program, repository, top, kills):
        self.program, self.repository, self.top, self.kills = program, repository, top, kills
        seed = int(os.environ.get("WASMILL_SEED") or random.randrange(1 << 32))
        print(f"random instants from seed {seed} (WASMILL_SEED)")
        self.rng = random.Random(seed)
        self.pairs = []

    def job(self, name, source, batch, transform, sinks, errors=None):
        """Writes a job; YAML is a superset of JSON."""
        folder = os.path.join(self.top, name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        spec = {
            "checkpoint": "./checkpoint", "trigger": {"availableNow": True},
            "sources": [{"name": "in", "files": {"path": source, "format": "jsonl"}, "batch": {"maxRecords": batch}}],
            "transforms": [{"name": "t", "from": ["in"], "module": os.path.join(self.repository, transform)}],
            "sinks": sinks,
        }
        if errors:
            spec["errors"] = errors
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "wasmill/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}, f, indent=1)
        return folder

    def run(self, folder):
        """Runs a job to its end, through kills when the table's name says so."""
        command = [self.program, "run", "--progress", "none", "--log-level", "warn", os.path.join(folder, "job.yaml")]
        places = self.slaughter(command, folder) if os.path.basename(folder).startswith("killed-") else []
        if subprocess.call(command) != 0:
            raise SystemExit(f"{folder}: the last run failed")
        n = self.batches(folder)
        text = f", killed {len(places)} times, with so many batches decided: {' '.join(map(str, places))}" if places else ""
        print(f"{os.path.basename(folder)}: {n} batches{text}", flush=True)
        if n < MIN_BATCHES:
            raise SystemExit(f"{folder}: {n} batches, {MIN_BATCHES} are needed")
        self.verify(folder)

    def slaughter(self, command, folder):
        """Kills the program at random instants, spread over its batches. Returns how many batches were decided each time."""
        places, tries = [], 0
        while len(places) < self.kills:
            tries += 1
            if tries > 5 * self.kills:
                raise SystemExit(f"{folder}: killed only {len(places)} times in {tries} runs")
            now = self.batches(folder)
            until = now + self.rng.uniform(0, 2 * (MIN_BATCHES - now) / (self.kills - len(places) + 1))
            p = subprocess.Popen(command)
            while p.poll() is None and self.batches(folder) < until:
                time.sleep(0.001)
            try:
                code = p.wait(self.rng.uniform(0, 0.05))
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                places.append(self.batches(folder))
                continue
            if code != 0:
                raise SystemExit(f"{folder}: the program ended with {code}")
            # It was done before its kills: once more from the start.
            shutil.rmtree(os.path.join(folder, "checkpoint"))
            shutil.rmtree(os.path.join(folder, "out"))
        return places

    def verify(self, folder):
        """The program's own look at its checkpoint."""
        checkpoint = os.path.join(folder, "checkpoint")
        for verb in ("show", "verify"):
            p = subprocess.run([self.program, "checkpoint", verb, checkpoint], capture_output=True, text=True)
            if p.returncode != 0:
                raise SystemExit(f"{folder}: checkpoint {verb} ended with {p.returncode}:\n{p.stdout}{p.stderr}")

    @staticmethod
    def batches(folder):
        try:
            return sum(name.isdigit() for name in os.listdir(os.path.join(folder, "checkpoint", "commits")))
        except FileNotFoundError:
            return 0

    def expect(self, folder, rows):
        path = os.path.join(folder, "expected.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(readers.line(r) + "\n" for r in rows)
        self.pairs += [os.path.join(folder, "out", "table"), path]

    def flights(self, name, partition):
        data = os.path.join(self.repository, "examples/flights/data")
        sinks = [
            {"name": "table", "from": ["t.flights"], "files": {"path": "./out/table", "format": "parquet", "schema": FLIGHTS_SCHEMA} | ({"partitionBy": partition} if partition else {})},
            {"name": "cancelled", "from": ["t.cancelled"], "files": {"path": "./out/cancelled", "format": "jsonl"}},
            {"name": "dead", "files": {"path": "./out/dead", "format": "jsonl"}},
        ]
        folder = self.job(name, data, 1000, "transforms/clean/clean.wasm", sinks, {"policy": "dead-letter", "deadLetters": "dead"})
        self.run(folder)
        rows, cancelled = flights.oracle(data)
        self.expect(folder, rows)
        good = True
        for sink, want in (("cancelled", cancelled), ("dead", [])):
            ok, files = readers.check_manifest(os.path.join(folder, "out", sink))
            got = [text for path in files for text in open(path, encoding="utf-8").read().splitlines()]
            good &= ok and readers.compare(sink, got, want)
        if not good:
            raise SystemExit(1)

    def types(self, name, partition):
        lines, want = alltypes.rows(1500)
        source = os.path.join(self.top, name + "-input")
        shutil.rmtree(source, ignore_errors=True)
        os.makedirs(source)
        for i in range(0, len(lines), 300):
            with open(os.path.join(source, f"{i:05d}.jsonl"), "w", encoding="utf-8") as f:
                f.writelines(text + "\n" for text in lines[i : i + 300])
        table = {"path": "./out/table", "format": "parquet", "schema": alltypes.SCHEMA} | ({"partitionBy": partition} if partition else {})
        sinks = [{"name": "table", "from": ["t"], "files": table}, {"name": "dead", "files": {"path": "./out/dead", "format": "jsonl"}}]
        folder = self.job(name, source, 55, "abi/kit/wasm/echo.wasm", sinks, {"policy": "dead-letter", "deadLetters": "dead"})
        self.run(folder)
        # Readers take an empty text as a partition value for null, so such a row is set aside.
        refused = [text for row, text in zip(want, lines) if partition and row["place"] == ""]
        self.expect(folder, [row for row in want if not partition or row["place"] != ""])
        ok, files = readers.check_manifest(os.path.join(folder, "out", "dead"))
        got = [json.loads(text)["value"] for path in files for text in open(path, encoding="utf-8").read().splitlines()]
        if not (readers.compare("dead", got, refused) and ok):
            raise SystemExit(1)


def main():
    program, repository, top = (os.path.abspath(a) for a in sys.argv[1:4])
    lane = Lane(program, repository, top, int(sys.argv[4]) if len(sys.argv) > 4 else 12)
    began = time.monotonic()
    lane.flights("flights", ["origin"])
    lane.flights("killed-flights", ["origin"])
    lane.flights("killed-flights-unpartitioned", None)
    lane.types("types", None)
    lane.types("killed-types-partitioned", ["place", "day"])
    with open(os.path.join(top, "pairs"), "w", encoding="utf-8") as f:
        f.writelines(p + "\n" for p in lane.pairs)
    print(f"made {len(lane.pairs) // 2} tables in {time.monotonic() - began:.0f} s")


main()
