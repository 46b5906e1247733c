"""Makes the Delta tables of this folder, with dates and times by Spark's old calendar, and rows.jsonl, their rows as Spark reads
them.

Run it with the Python and LAB of .ci/readers, and READERS the path of that folder. Written with Spark 4.2.0 and delta-spark 4.4.0.
"""

import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, os.environ["READERS"])
import readers

HERE = pathlib.Path(__file__).resolve().parent
DAYS = ["0001-01-01", "1500-01-01", "1899-12-31", "2026-11-30"]


def main():
    spark = readers.spark_session("generate")
    rows = ", ".join(f"({i}, date'{day}', timestamp'{day} 12:34:56.789 UTC')" for i, day in enumerate(DAYS))
    spark.sql(f"create or replace temp view given as select * from values {rows} as t(id, d, t)")
    read = []
    for name, zone, kind in ("utc", "UTC", "TIMESTAMP_MICROS"), ("int96", "UTC", "INT96"), ("zone", "America/Los_Angeles", "TIMESTAMP_MICROS"):
        for key, value in (("datetimeRebaseModeInWrite", "LEGACY"), ("int96RebaseModeInWrite", "LEGACY"), ("outputTimestampType", kind)):
            spark.conf.set("spark.sql.parquet." + key, value)
        spark.conf.set("spark.sql.session.timeZone", zone)
        path = HERE / name
        shutil.rmtree(path, ignore_errors=True)
        spark.table("given").coalesce(1).write.format("delta").save(f"file://{path}")
        for crc in path.rglob("*.crc"):
            crc.unlink()
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        found = spark.read.format("delta").load(f"file://{path}").orderBy("id").selectExpr(
            "id", "cast(d as string) d", "date_format(t, 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSX') t").collect()
        read.append([json.dumps(r.asDict(), separators=(",", ":")) for r in found])
    assert all(r == read[0] for r in read)
    (HERE / "rows.jsonl").write_text("".join(line + "\n" for line in read[0]))


main()
