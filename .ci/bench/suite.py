"""What the benchmarks share: measured processes, jobs in folders of their own, and targets."""

import json
import os
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MILLION = 1_000_000

F1_SCHEMA = {
    "id": "int64", "ts": "timestamp", "user": "string", "session": "string", "event": "string", "page": "string", "amount": "double",
    "qty": "int32", "country": "string", "ua": "string", "cents": "int64",
}


class Run:
    """One measured process: wall and CPU-seconds, peak resident MiB, and when a path appeared (the first committed batch)."""

    def __init__(self, command, env, appears=None):
        self.first, self.rss_mb, self.code = None, 0, None
        began = time.monotonic()
        with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as p:
            watcher = threading.Thread(target=self.watch, args=(p.pid, appears, began))
            watcher.start()
            self.out = p.stdout.read()
            _, p.returncode, used = os.wait4(p.pid, 0)
            self.code = p.returncode
        self.wall = time.monotonic() - began
        watcher.join()
        self.cpu, self.user = used.ru_utime + used.ru_stime, used.ru_utime
        if self.code:
            raise SystemExit(f"{command}: status {self.code}")
        if appears and self.first is None and os.path.exists(appears):
            self.first = self.wall  # the watcher was too slow: it was there before the end

    def watch(self, pid, appears, began):
        """Polls: the resource usage that a parent gets counts the parent's own memory at the fork."""
        while self.code is None:
            if appears and self.first is None and os.path.exists(appears):
                self.first = time.monotonic() - began
            try:
                self.rss_mb = max(self.rss_mb, peak_mb(pid))
            except (OSError, StopIteration):
                pass  # it is gone
            time.sleep(0.002)


def peak_mb(pid):
    """The most memory that a process has had resident, in MiB."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(text.split()[1]) for text in f if text.startswith("VmHWM")) / 1024


class Suite:
    """The program under test, a folder to work in, and the targets met or missed so far."""

    def __init__(self, program, work, runs):
        self.program, self.work, self.runs = os.path.abspath(program), os.path.abspath(work), runs
        self.env = os.environ | {"XDG_CACHE_HOME": os.path.join(self.work, "cache")}
        self.targets = []
        os.makedirs(self.work, exist_ok=True)

    def path(self, *parts):
        return os.path.join(self.work, *parts)

    def target(self, name, value, limit, unit):
        """Notes a figure and the most that it may be."""
        self.targets.append((name, value, limit, unit))

    def job(self, name, source, module, sinks, trigger=None, errors=None, files=None, **batch):
        """Writes a job into a folder of its own; YAML is a superset of JSON."""
        folder = self.path("jobs", name)
        os.makedirs(folder, exist_ok=True)
        self.clear(folder)
        spec = {
            "checkpoint": "./checkpoint", "trigger": trigger or {"availableNow": True},
            "sources": [{"name": "in", "files": {"path": source, "format": "jsonl"} | (files or {})} | ({"batch": batch} if batch else {})],
            "transforms": [{"name": "t", "from": ["in"], "module": os.path.join(ROOT, "transforms", module)}],
            "sinks": sinks,
        }
        if errors:
            spec["errors"] = errors
        with open(os.path.join(folder, "job.yaml"), "w", encoding="utf-8") as f:
            json.dump({"apiVersion": "wasmill/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}, f, indent=1)
        return folder

    def clear(self, folder, names=("checkpoint", "out")):
        """Puts a job's progress and output, or what is named, out of the way. They are deleted at the end: for seconds after a deletion ext4 looks
        long for an inode that it may use, which would be measured too."""
        trash = self.path("trash", str(time.monotonic_ns()))
        os.makedirs(trash)
        for d in names:
            if os.path.exists(os.path.join(folder, d)):
                os.rename(os.path.join(folder, d), os.path.join(trash, d))

    def once(self, folder, first="out/table/_spark_metadata/0"):
        """Runs a job from nothing. The file `first` appears with its first batch."""
        self.clear(folder)
        command = [self.program, "run", "--progress", "none", "--log-level", "warn", os.path.join(folder, "job.yaml")]
        return Run(command, self.env, os.path.join(folder, first))


def table(schema, **more):
    """A sink that writes a parquet table."""
    return {"name": "table", "from": ["t"], "files": {"path": "./out/table", "format": "parquet", "schema": schema} | more}


def head(title, columns):
    names = columns.split(" | ")
    print(f"\n## {title}\n\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
