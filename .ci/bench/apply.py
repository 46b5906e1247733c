"""Runs the two jobs of apply.sh at the same time and compares their batches: apply.py PROGRAM FOLDER WARM SECONDS."""

import json
import os
import subprocess
import sys
import time

TARGET = 1.2


def start(program, folder, held):
    env = dict(os.environ, **({"WASMILL_STATE_HELD": "1"} if held else {}))
    log = open(os.path.join(folder, "log"), "wb")
    return subprocess.Popen([program, "run", "--progress", "json", "job.yaml"], cwd=folder, env=env, stdout=log, stderr=log)


def lines(folder):
    """The progress of each batch so far."""
    with open(os.path.join(folder, "log"), "rb") as log:
        for line in log:
            if b'"batchId"' in line and line.endswith(b"\n"):
                yield json.loads(line)


def used(run):
    """CPU-seconds and the most resident MiB of a process that runs."""
    with open(f"/proc/{run.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{run.pid}/status") as f:
        peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), peak // 1024


def main():
    program, work, warm, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
    names = ["held", "real"]
    runs = {n: start(program, os.path.join(work, n), n == "held") for n in names}
    try:
        time.sleep(warm)
        skip = {n: sum(1 for _ in lines(os.path.join(work, n))) for n in names}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(1)
            for n in names:
                if runs[n].poll() is not None:
                    sys.exit(f"{n} ended: see {work}/{n}/log")
        use = {n: used(runs[n]) for n in names}
    finally:
        for run in runs.values():
            run.terminate()
        for run in runs.values():
            run.wait()
    print("| apply | batches | records | p50 ms | p90 ms | p99 ms | p99.9 ms | max ms | state MB | CPU s | RSS MiB |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    tail = {}
    for n in names:
        batches = list(lines(os.path.join(work, n)))[skip[n]:]
        took = sorted(b["wasmill"]["durationUs"]["total"] / 1000 for b in batches)
        rows = sum(b["numInputRows"] for b in batches)
        at = lambda q: took[min(len(took) - 1, int(len(took) * q))]
        size = batches[-1]["stateOperators"][0]["customMetrics"]["storeBytes"] / 1e6
        cells = [f"{at(q):.1f}" for q in (0.5, 0.9, 0.99, 0.999)] + [f"{took[-1]:.1f}", f"{size:.0f}", f"{use[n][0]:.0f}", str(use[n][1])]
        print(f"| {n} | {len(took)} | {rows} | {' | '.join(cells)} |")
        tail[n] = (at(0.5), at(0.99))
    p50, p99 = (tail["real"][i] / tail["held"][i] for i in (0, 1))
    print(f"\nreal to held: p50 {p50:.2f}, p99 {p99:.2f} (target {TARGET})")
    sys.exit(p99 > TARGET)


if __name__ == "__main__":
    main()
