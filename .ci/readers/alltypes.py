"""Rows of every column type, with the values at the edges of each, and with partition values that are hard to put in a path."""

import json

SCHEMA = {
    "id": "int64", "place": "string", "day": "date", "text": "string", "flag": "boolean", "small": "int32", "big": "int64",
    "single": "float", "real": "double", "price": "decimal(9,2)", "money": "decimal(18,4)", "wide": "decimal(38,10)",
    "at": "timestamp", "wall": "timestamp_ntz", "born": "date", "raw": "binary",
}

PLACES = ["EWR", "ü", "a b", " ", "x/y", "k=v", "%", "%20", "q:r%20", "", None, "..", ".hidden", "_under", "a+b&c?d#e", "{[^]}", "<|>\"'\\", "日本 🚂", "tab\there", "'"]

EDGES = {
    "text": ["", "plain", "ü 🚂 \u0001 \"quoted\" \\ \n", "null", "x" * 3000, None],
    "flag": [True, False, None],
    "small": [0, -1, 2**31 - 1, -(2**31), None],
    "big": [0, 2**63 - 1, -(2**63), 9007199254740993, None],
    "single": [0.0, 1.5, -3.4028234663852886e38, 1.401298464324817e-45, "nan", "inf", "-inf", None],
    "real": [0.0, -0.1, 1.7976931348623157e308, 5e-324, "nan", "inf", "-inf", None],
    "price": ["0.00", "-9999999.99", "9999999.99", "0.01", None],
    "money": ["0.0000", "99999999999999.9999", "-99999999999999.9999", None],
    "wide": ["0.0000000000", "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", None],
    "at": ["1970-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", "1582-10-10T01:02:03.000004Z", None],
    "wall": ["1970-01-01T00:00:00.000000", "1969-12-31T23:59:59.999999", "0001-01-01T00:00:00.000000", "9999-12-31T23:59:59.999999", "2026-03-29T02:30:00.500000", None],
    "born": ["1970-01-01", "0001-01-01", "9999-12-31", "1582-10-10", "2024-02-29", None],
    "raw": ["", "AAEC/w==", "AA==", None],
}

SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def rows(n):
    """Returns (input lines, expected rows). Each edge value occurs many times; every 13th row has nothing but its id."""
    lines, want = [], []
    for i in range(n):
        row = {"id": i, "place": PLACES[i // 7 % len(PLACES)], "day": f"2026-0{1 + i // 300 % 2}-28"}
        for k, (name, values) in enumerate(EDGES.items()):
            row[name] = None if i % 13 == 7 else values[(i + i // 60 * k) % len(values)]
        lines.append(json.dumps({k: SPECIAL.get(v, v) if k in ("single", "real") else v for k, v in row.items()} | {"unknown": [{"a": 1}]}, ensure_ascii=i % 2 == 0))
        want.append(row)
    return lines, want
