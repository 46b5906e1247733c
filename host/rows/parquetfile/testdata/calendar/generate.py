"""Makes the Parquet files of this folder and rows.jsonl, their rows as Spark itself reads them.

Run it with the Python and LAB of .ci/readers, and READERS the path of that folder. Written with Spark 4.2.0.
"""

import datetime
import glob
import json
import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.environ["READERS"])
import readers

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = """id int, d date, t timestamp, n timestamp_ntz, l array<date>, s struct<t: timestamp>, m map<date, timestamp>"""
DAYS = ["0001-01-01", "0099-12-31", "0100-03-01", "0999-12-31", "1500-01-01", "1582-10-04", "1582-10-16", "1899-12-31", "1900-01-01", "2026-11-30"]
FORMS = {  # what is not given is CORRECTED, UTC and TIMESTAMP_MICROS
    "legacy": {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY"},
    "legacy-millis": {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MILLIS"},
    "legacy-int96": {
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.parquet.int96RebaseModeInWrite": "LEGACY",
        "spark.sql.parquet.outputTimestampType": "INT96",
    },
    "legacy-zone": {"spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY", "spark.sql.session.timeZone": "America/Los_Angeles"},
    "corrected": {},
    "corrected-int96": {"spark.sql.parquet.outputTimestampType": "INT96"},
}


def value(v):
    if isinstance(v, datetime.datetime):
        return v.isoformat(timespec="microseconds")
    if isinstance(v, datetime.date):
        return v.isoformat()
    return v


def row(r):
    """A row as Wasmill writes it. Dates and times are text by then, as Python's own types know no zone here."""
    z = lambda t: t and t.replace(" ", "T") + "Z"
    return {
        "id": r.id, "d": r.d, "t": z(r.t), "n": r.n and r.n.replace(" ", "T"), "l": r.l, "s": r.s and {"t": z(r.s.t)},
        "m": None if r.m is None else {k: z(v) for k, v in r.m.items()},
    }


def main():
    spark = readers.spark_session("generate")
    rows = []
    for i, day in enumerate(DAYS):
        rows.append(f"({i}, date'{day}', timestamp'{day} 12:34:56.789 UTC', timestamp_ntz'{day} 12:34:56.789', array(date'{day}', null), "
                    f"named_struct('t', timestamp'{day} 00:00:00 UTC'), map(date'{day}', timestamp'{day} 23:59:59.999 UTC'))")
    rows.append(f"({len(DAYS)}, null, null, null, null, null, null)")
    spark.sql(f"create or replace temp view given as select * from values {', '.join(rows)} as t(id, d, t, n, l, s, m)")
    read = []
    for name, conf in FORMS.items():
        for key in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
            spark.conf.set("spark.sql.parquet." + key, "CORRECTED")
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        for key, v in conf.items():
            spark.conf.set(key, v)
        out = tempfile.mkdtemp()
        spark.table("given").coalesce(1).write.mode("overwrite").parquet("file://" + out)
        [file] = glob.glob(out + "/*.parquet")
        shutil.copy(file, os.path.join(HERE, name + ".parquet"))
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        stamp = "'yyyy-MM-dd HH:mm:ss.SSSSSS'"
        found = spark.read.schema(SCHEMA).parquet("file://" + out).orderBy("id").selectExpr(
            "id", "cast(d as string) d", f"date_format(t, {stamp}) t", f"date_format(n, {stamp}) n", "transform(l, x -> cast(x as string)) l",
            f"if(s is null, null, named_struct('t', date_format(s.t, {stamp}))) s",
            f"transform_values(transform_keys(m, (k, v) -> cast(k as string)), (k, v) -> date_format(v, {stamp})) m").collect()
        read.append([json.dumps(row(r), separators=(",", ":")) for r in found])
        shutil.rmtree(out)
    assert all(r == read[0] for r in read)
    with open(os.path.join(HERE, "rows.jsonl"), "w", encoding="utf-8") as f:
        f.writelines(line + "\n" for line in read[0])


main()
