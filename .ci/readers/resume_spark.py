#!/usr/bin/env python3
"""Does real Spark go on from our checkpoint and table?   resume_spark.py CHECKPOINT TABLE EXPECTED.jsonl SOURCE

SOURCE is the directory of JSON lines that the finished job has read into TABLE. A file with two records is added to it; Spark must
keep the query id, run one batch with the next id and read those two records alone; afterwards it must see the expected rows and the
two. All three directories are changed: the manifest names files by their absolute paths, so a copy of a table is none."""

import json
import os
import sys

import readers

SCHEMA = "id LONG, text STRING"
NEW = [{"id": -1, "text": "one"}, {"id": -2, "text": "two"}]


def ids(folder):
    return sorted(int(n) for n in os.listdir(folder) if n.isdigit())


def query_id(checkpoint):
    with open(os.path.join(checkpoint, "metadata"), encoding="utf-8") as f:
        return json.load(f)["id"]


def resume(checkpoint, source, out):
    """Runs the query until nothing is new; returns the rows of its table."""
    session = readers.spark_session("resume_spark")
    try:
        query = (
            session.readStream.schema(SCHEMA).json("file://" + source).writeStream.format("parquet")
            .option("checkpointLocation", "file://" + checkpoint).trigger(availableNow=True).start("file://" + out)
        )
        query.awaitTermination()
        return list(readers.rows_of_arrow(session.read.schema(SCHEMA).parquet("file://" + out).toArrow()))
    finally:
        session.stop()


def main():
    checkpoint, table, expected, source = (os.path.abspath(a) for a in sys.argv[1:5])
    with open(expected, encoding="utf-8") as f:
        want = [{k: row[k] for k in ("id", "text")} for row in map(json.loads, f)] + NEW
    before = {name: ids(os.path.join(checkpoint, name)) for name in ("offsets", "commits")}
    query = query_id(checkpoint)
    with open(os.path.join(source, "~added.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(json.dumps(r) + "\n" for r in NEW)
    ok = readers.compare("rows after Spark went on", resume(checkpoint, source, table), [readers.line(r) for r in want])
    for name, old in before.items():
        new = ids(os.path.join(checkpoint, name))
        same = new == old + [old[-1] + 1]
        print(f"  {name}: last {old[-1]} before, {new[-1]} after: {'OK' if same else 'MISMATCH'}")
        ok &= same
    same = query_id(checkpoint) == query
    print(f"  query id: {'kept: OK' if same else 'changed: MISMATCH'}")
    ok &= same
    print("PASS" if ok else "FAIL")
    sys.exit(0 if ok else 1)


main()
