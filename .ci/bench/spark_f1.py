#!/usr/bin/env python3
"""F1 in Spark, once: JSON files to a parquet or a Delta sink.   spark_f1.py INPUT WORK [parquet|delta [FILES_A_BATCH]]

Everything default but what is named. Prints one JSON object; CPU-seconds are those of the query, of the JVM and of this Python, without
the start of either; batch_ms are the times of the batches, in order."""

import json
import os
import resource
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "readers"))
import readers
from suite import peak_mb

SCHEMA = "id LONG, ts TIMESTAMP, user STRING, session STRING, event STRING, page STRING, amount DOUBLE, qty INT, country STRING, ua STRING"
HZ = os.sysconf("SC_CLK_TCK")


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / HZ


def main():
    source, work = (os.path.abspath(a) for a in sys.argv[1:3])
    kind, files = (sys.argv[3:] + ["parquet", "2"][len(sys.argv) - 3 :])[:2]
    session = readers.spark_session("f1", conf={"spark.sql.streaming.numRecentProgressUpdates": "1000"})
    jvm = session._jvm.java.lang.ProcessHandle.current().pid()
    before, began = cpu(jvm) + cpu(os.getpid()), time.monotonic()
    query = (
        session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", int(files)).json("file://" + source)
        .where("event <> 'view'").selectExpr("*", "cast(round(amount*100) as bigint) as cents")
        .writeStream.format(kind).option("checkpointLocation", "file://" + work + "/ck").trigger(availableNow=True)
        .start("file://" + work + "/out")
    )
    query.awaitTermination()
    wall, used = time.monotonic() - began, cpu(jvm) + cpu(os.getpid()) - before
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    rows = session.read.format(kind).load("file://" + work + "/out").count()
    progress = [json.loads(p.json()) for p in query._jsq.recentProgress()]
    batches = [p["durationMs"]["triggerExecution"] for p in progress if "addBatch" in p["durationMs"]]
    print(json.dumps({"rows": rows, "wall": wall, "cpu": used, "rss_mb": peak_mb(jvm) + own, "batch_ms": batches}))
    session.stop()


main()
