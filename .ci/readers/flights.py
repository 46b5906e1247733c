"""The oracle of examples/flights, from the raw data and with none of the program's code: the words of that folder's README."""

import glob
import gzip
import json
import os


def oracle(data):
    """Returns (rows of the flights table, lines of the cancelled flights), in the forms of readers.canon."""
    rows, cancelled = [], []
    for path in sorted(glob.glob(os.path.join(data, "*.jsonl.gz"))):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            for text in f:
                flight = json.loads(text)
                if flight["dep_time"] is None:
                    cancelled.append(text.rstrip("\n"))
                else:
                    rows.append(row(flight))
    return rows, cancelled


def row(f):
    dep, arr, air = f["dep_delay"], f["arr_delay"], f["air_time"]
    mph = None
    if air:
        # distance * 60 / air_time, to one decimal, half up: in tenths, so 600, and plus one half before the floor
        tenths = (f["distance"] * 600 * 2 + air) // (2 * air)
        mph = f"{tenths // 10}.{tenths % 10}"
    kept = {k: f[k] for k in ("carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay")}
    return kept | {
        "time_hour": f["time_hour"].replace("Z", ".000000Z"),
        "gain": None if dep is None or arr is None else dep - arr,
        "mph": mph,
        "late": None if arr is None else arr >= 15,
    }
