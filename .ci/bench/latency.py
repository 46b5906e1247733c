"""What a small batch costs: ten records each, back to back, unpartitioned; its calls of fsync; and the start of a process."""

import json
import os
import re
import signal
import statistics
import subprocess
import threading
import time

import gen_f1
from suite import F1_SCHEMA, head, table

BATCHES = 200
RECORDS = 10
GAP = 0.05  # seconds from one new file to the next


def batches(suite, sink=None, into="", limit=10):
    """A job without an end gets a new file of ten records every 50 ms. limit is the most that p50 may be, in ms; into names the table in titles."""
    suite.clear(suite.work, ["trickle"])
    source = suite.path("trickle")
    os.makedirs(source)
    folder = suite.job("trickle", source, "f1/f1.wasm", [sink or table(F1_SCHEMA)], trigger={"interval": "0s"}, files={"settle": "0s"})
    command = [suite.program, "run", "--progress", "json", "--log-level", "warn", os.path.join(folder, "job.yaml")]
    p = subprocess.Popen(command, env=suite.env, stdout=subprocess.PIPE, text=True)
    seen = []
    reader = threading.Thread(target=lambda: seen.extend((time.monotonic(), json.loads(text)) for text in p.stdout), daemon=True)
    reader.start()
    time.sleep(1)
    os.sync()  # what earlier parts left to write back
    written, disk = [], []
    for i in range(BATCHES):
        path = os.path.join(source, f"{i:05d}.jsonl")
        with open(path + ".tmp", "w") as f:
            f.writelines(gen_f1.lines(i * RECORDS, RECORDS))
        written.append(time.monotonic())
        os.rename(path + ".tmp", path)
        time.sleep(GAP * 0.7)
        disk.append(flush(suite.path("fsync")))  # in between, so that the disk is as busy as it was for the batches
        time.sleep(GAP * 0.3)
    time.sleep(1)
    p.send_signal(signal.SIGTERM)
    if p.wait() != 0:
        raise SystemExit(f"the job ended with {p.returncode}")
    reader.join()
    report(suite, written, seen, disk, into, limit)


def report(suite, written, seen, disk, into, limit):
    records = [progress["numInputRows"] for _, progress in seen]
    if sum(records) != BATCHES * RECORDS:
        raise SystemExit(f"{sum(records)} records of {BATCHES * RECORDS} came through")
    # The first batch with a file's records is that of its number, unless a batch took several.
    arrived, n = [], 0
    for at, progress in seen:
        for _ in range(progress["numInputRows"] // RECORDS):
            arrived.append((at - written[n]) * 1000)
            n += 1
    took = [progress["wasmill"]["durationUs"]["total"] / 1000 for _, progress in seen[1:]]
    head("Small batches" + into, "figure | n | p50, ms | p99, ms | max, ms")
    line("a batch of ten records", took)
    for part in sorted(seen[-1][1]["wasmill"]["durationUs"]):
        line(f"... {part}", [progress["wasmill"]["durationUs"].get(part, 0) / 1000 for _, progress in seen[1:]])
    line("from the file's appearance to the report of its batch", arrived)
    line("the disk's own fsync of a file of 4 KiB, in between", disk)
    suite.target(f"a batch of ten records{into}, p50", statistics.median(took), limit, "ms")


def line(name, ms):
    ms = sorted(ms)
    print(f"| {name} | {len(ms)} | {statistics.median(ms):.2f} | {ms[len(ms) * 99 // 100]:.2f} | {ms[-1]:.2f} |", flush=True)


def flush(path):
    """Milliseconds for a file of 4 KiB to get to the disk."""
    with open(path, "wb") as f:
        f.write(b"x" * 4096)
        f.flush()
        began = time.monotonic()
        os.fsync(f.fileno())
        return (time.monotonic() - began) * 1000


CALLS = "fsync,fdatasync,sync,syncfs,sync_file_range,msync"


def syncs(suite):
    """Counts the system calls that force data to disk, batch by batch, and the CPU of a batch beyond the start of the process."""
    few, many = 20, 120
    used = {}
    for n in (few, many):
        source = suite.path(f"syncs-{n}")
        if not os.path.isdir(source):
            gen_f1.generate(source, n * RECORDS, n)
        folder = suite.job(f"syncs-{n}", source, "f1/f1.wasm", [table(F1_SCHEMA)], maxRecords=RECORDS)
        suite.once(folder)
        used[n] = min((suite.once(folder) for _ in range(suite.runs)), key=lambda run: run.cpu)
    suite.clear(folder)
    log = os.path.join(folder, "strace")
    command = ["strace", "-f", "-y", "-qq", "-e", "trace=" + CALLS, "-e", "signal=none", "-o", log]
    command += [suite.program, "run", "--progress", "none", os.path.join(folder, "job.yaml")]
    subprocess.run(command, env=suite.env, check=True, stderr=subprocess.DEVNULL)
    with open(log) as f:
        calls = [text for text in f if re.match(rf"\d+ +({CALLS.replace(',', '|')})\(", text)]
    # A batch begins with its plan.
    plans = [i for i, text in enumerate(calls) if "/checkpoint/offsets/." in text]
    if len(plans) != many:
        raise SystemExit(f"{len(plans)} plans were synced, {many} batches ran")
    each = [b - a for a, b in zip(plans, plans[1:])]
    head("Calls of fsync and its like in a batch of ten records, and its CPU", "figure | n | p50 | mean | max")
    print(f"| calls a batch (every tenth compacts) | {len(each)} | {statistics.median(each):.0f} | {statistics.mean(each):.2f} | {max(each)} |")
    for part in ("cpu", "user"):
        ms = (getattr(used[many], part) - getattr(used[few], part)) / (many - few) * 1000
        print(f"| {'CPU' if part == 'cpu' else '... in user mode'}, ms a batch | {many - few} | | {ms:.2f} | |")
    suite.target("calls of fsync, a batch that does not compact", statistics.median(each), 8, "")


def start(suite):
    """From the start of the process to the first published batch, of ten records, with a warm compile cache."""
    head("Start to first committed batch, warm compile cache", "figure | n | p50, ms | p99, ms | max, ms")
    source = suite.path("ten")
    gen_f1.generate(source, RECORDS, 1)
    for name, module in (("Rust", "f1/f1.wasm"), ("Go", "f1/f1-go.wasm")):
        folder = suite.job("start-" + name.lower(), source, module, [table(F1_SCHEMA)])
        suite.once(folder)
        runs = [suite.once(folder) for _ in range(20)]
        ms = [run.first * 1000 for run in runs]
        line(f"{name} guest, ten records", ms)
        line("... CPU of the whole process", [run.cpu * 1000 for run in runs])
        if name == "Rust":
            suite.target("start to first committed batch, Rust guest, p50", statistics.median(ms), 300, "ms")
