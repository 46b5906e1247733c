"""What the checkers share: a local Spark session with Delta, one canonical JSON form of rows, and Spark's rules for a file sink's
manifest."""

import base64
import collections
import datetime
import decimal
import json
import math
import os
import sys
import time
import urllib.parse

os.environ["TZ"] = "UTC"
time.tzset()

# The keys of a manifest entry, in Spark's order.
ENTRY_KEYS = ["path", "size", "isDir", "modificationTime", "blockReplication", "blockSize", "action"]


def jars():
    """What Spark needs for Delta, as install.sh has put it beside the Python."""
    folder = os.path.join(os.path.dirname(sys.prefix), "jars")
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".jar")]


def spark_session(name, cores=2, conf=None):
    """A session on this machine alone, in UTC."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.extraClassPath": os.pathsep.join(jars()),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.shuffle.partitions": str(cores),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName(name)
    for key, value in (settings | (conf or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def canon(v):
    """Any value as a JSON value: decimals are text, timestamps ISO with microseconds (and Z when they have a zone), dates ISO,
    bytes base64, NaN and infinities text, maps objects."""
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return v if math.isfinite(v) else str(v)
    if isinstance(v, decimal.Decimal):
        return format(v, "f")
    if isinstance(v, datetime.datetime):
        if v.tzinfo is None:
            return v.isoformat(timespec="microseconds")
        return v.astimezone(datetime.timezone.utc).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    if isinstance(v, datetime.date):
        return v.isoformat()
    if isinstance(v, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(v)).decode()
    if isinstance(v, dict):
        return {str(k): canon(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        if v and all(isinstance(x, tuple) and len(x) == 2 for x in v):  # a map of Arrow
            return {str(canon(k)): canon(x) for k, x in v}
        return [canon(x) for x in v]
    raise TypeError(type(v))


def line(row):
    """A row as one canonical line."""
    return json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def rows_of_arrow(table):
    for batch in table.to_batches(max_chunksize=20000):
        for row in batch.to_pylist():
            yield line({k: canon(v) for k, v in row.items()})


def rows_of_jsonl(path):
    with open(path, encoding="utf-8") as f:
        for text in f:
            if text.strip():
                yield line(json.loads(text))


def compare(name, got, want):
    """Compares multisets of lines, prints a summary with the time that reading took, and the first differences; True when equal."""
    began = time.monotonic()
    got, want = collections.Counter(got), collections.Counter(want)
    took = time.monotonic() - began
    missing, extra = want - got, got - want
    ok = not missing and not extra
    print(f"  {name}: rows={got.total()} expected={want.total()} missing={missing.total()} unexpected={extra.total()} {'OK' if ok else 'MISMATCH'} ({took:.1f} s)", flush=True)
    for label, rows in (("missing", missing), ("unexpected", extra)):
        for text in list(rows)[:3]:
            print(f"    {label} x{rows[text]}: {text[:300]}")
    return ok


def local(uri):
    """The local path of a manifest entry."""
    u = urllib.parse.urlsplit(uri)
    if u.scheme != "file":
        raise SystemExit("not a local path: " + uri)
    return urllib.parse.unquote(u.path)


def manifest(out):
    """Reads _spark_metadata by the rules of Spark 4.2 (a .compact at 9, 19, ..). Returns (entries, latest id); any gap is an error."""
    meta = os.path.join(out, "_spark_metadata")
    names = os.listdir(meta)
    ids = {int(n) for n in names if n.isdigit()} | {int(n[:-8]) for n in names if n.endswith(".compact") and n[:-8].isdigit()}
    last = max(ids, default=-1)
    entries = []
    for i in range(max(0, (last + 1) // 10 * 10 - 1), last + 1):
        name = f"{i}.compact" if (i + 1) % 10 == 0 else str(i)
        path = os.path.join(meta, name)
        if not os.path.exists(path):
            raise SystemExit(f"{path} is missing (the latest is {last})")
        with open(path, encoding="utf-8") as f:
            version, *texts = f.read().split("\n")
        if version != "v1":
            raise SystemExit(f"{path}: the first line is {version!r}")
        entries += [json.loads(t) for t in texts]
    return entries, last


def check_manifest(out):
    """Checks a sink's manifest against its directory. Returns (good, local paths of the listed files)."""
    entries, last = manifest(out)
    files = [local(e["path"]) for e in entries]
    bad = []
    for path, e in zip(files, entries):
        if not os.path.exists(path):
            bad.append(f"{path}: missing")
        elif os.path.getsize(path) != e["size"]:
            bad.append(f"{path}: {os.path.getsize(path)} bytes, the manifest says {e['size']}")
        if list(e) != ENTRY_KEYS or e["isDir"] or e["action"] != "add" or e["blockSize"] <= 0:
            bad.append(f"entry {e}")
    bad += [f"listed {n} times: {path}" for path, n in collections.Counter(files).items() if n > 1]
    present = {
        os.path.join(folder, name)
        for folder, _, names in os.walk(out)
        for name in names
        if not name.startswith((".", "_")) and not os.path.relpath(folder, out).startswith("_")
    }
    # A file that is there but not listed would be an orphan that nobody sweeps.
    bad += [f"not listed: {path}" for path in sorted(present - set(files))]
    print(f"  manifest: latest={last} files={len(files)} bytes={sum(e['size'] for e in entries)} {'OK' if not bad else 'BAD'}", flush=True)
    for text in bad[:5]:
        print("    " + text)
    return not bad, files
