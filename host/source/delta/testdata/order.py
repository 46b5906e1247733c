"""Writes order.json: the column id of each table in expected/ in the order of a stream, by pyarrow and the log alone.

Usage: python order.py (with pyarrow)
"""
import json
import pathlib
import urllib.parse

import pyarrow.parquet as pq

here = pathlib.Path(__file__).parent


def ids(table, adds):
    out = []
    for a in adds:
        file = table / urllib.parse.unquote(a["path"])
        out += pq.ParquetFile(file).read(columns=["id"])["id"].to_pylist()
    return out


def order(table):
    live, versions = {}, []
    for entry in sorted((table / "_delta_log").glob("*.json")):
        for line in entry.read_text().splitlines():
            action = json.loads(line)
            if r := action.get("remove"):
                live.pop(r["path"])
            if a := action.get("add"):
                live[a["path"]] = a
                if a["dataChange"]:
                    versions.append(a)
    snapshot = sorted(live.values(), key=lambda a: (a["modificationTime"], a["path"]))
    return {"snapshot": ids(table, snapshot), "versions": ids(table, versions)}


tables = sorted(p.stem for p in (here / "expected").iterdir())
text = ",\n".join(f"  {json.dumps(t)}: {json.dumps(order(here / 'spark' / t))}" for t in tables)
(here / "order.json").write_text("{\n" + text + "\n}\n")
