#!/usr/bin/env python3
"""Does real Spark go on from our checkpoint?   resume_spark.py CHECKPOINT SOURCE

SOURCE is the directory of JSON lines that the finished job has read. A file with two records is added to it; Spark, on a copy of the
checkpoint and with an output of its own, must keep the query id, run one batch with the next id, and read those two records alone."""

import json
import os
import shutil
import sys
import tempfile

import readers

SCHEMA = "id LONG, text STRING"
NEW = [{"id": -1, "text": "one"}, {"id": -2, "text": "two"}]


def ids(folder):
    return sorted(int(n) for n in os.listdir(folder) if n.isdigit())


def query_id(checkpoint):
    with open(os.path.join(checkpoint, "metadata"), encoding="utf-8") as f:
        return json.load(f)["id"]


def resume(checkpoint, source, out):
    """Runs the query until nothing is new; returns the rows of its output."""
    session = readers.spark_session("resume_spark")
    try:
        query = (
            session.readStream.schema(SCHEMA).json("file://" + source).writeStream.format("parquet")
            .option("checkpointLocation", "file://" + checkpoint).trigger(availableNow=True).start("file://" + out)
        )
        query.awaitTermination()
        return list(readers.rows_of_arrow(session.read.parquet("file://" + out).toArrow()))
    finally:
        session.stop()


def main():
    checkpoint, source = (os.path.abspath(a) for a in sys.argv[1:3])
    added = os.path.join(source, "~added.jsonl")
    with tempfile.TemporaryDirectory() as tmp:
        copy = shutil.copytree(checkpoint, os.path.join(tmp, "checkpoint"))
        with open(added, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r) + "\n" for r in NEW)
        try:
            rows = resume(copy, source, os.path.join(tmp, "out"))
        finally:
            os.remove(added)
        ok = readers.compare("rows after Spark went on", rows, [readers.line(r) for r in NEW])
        for name in ("offsets", "commits"):
            before, after = ids(os.path.join(checkpoint, name)), ids(os.path.join(copy, name))
            same = after == before + [before[-1] + 1]
            print(f"  {name}: last {before[-1]} before, {after[-1]} after: {'OK' if same else 'MISMATCH'}")
            ok &= same
        same = query_id(checkpoint) == query_id(copy)
        print(f"  query id: {'kept: OK' if same else 'changed: MISMATCH'}")
        ok &= same
    print("PASS" if ok else "FAIL")
    sys.exit(0 if ok else 1)


main()
