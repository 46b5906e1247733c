#!/usr/bin/env python3
"""Answers the queries of queries.sql in SQL, over the events that a job was given, to judge the jobs by.

  oracle.py EVENTS [--engine duckdb|sqlite|both] [--check GOLDEN --name NAME] [--update] [--out DIR]

EVENTS is a folder of jsonl files with events as they are sent (`event_type` and three members), in the order of their names and
lines. Of each query's rows, written as columns joined by |, it prints how many there are and the sha256 of the sorted lines.
--check compares that with what a file of golden results has under NAME, --update writes it there; --out keeps the rows.
With both engines they must agree. SQLite comes with Python; DuckDB is the package duckdb.
"""

import argparse
import hashlib
import json
import pathlib
import re
import sqlite3
import sys

TABLES = {
    "person": ["id", "name", "emailAddress", "creditCard", "city", "state", "dateTime", "extra"],
    "auction": ["id", "itemName", "description", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "extra"],
    "bid": ["auction", "bidder", "price", "channel", "url", "dateTime", "extra"],
}
NUMBERS = {"id", "initialBid", "reserve", "dateTime", "expires", "seller", "category", "auction", "bidder", "price"}


def events(folder):
    """Yields the lines of all events in order."""
    for name in sorted(pathlib.Path(folder).glob("*.jsonl")):
        with open(name, encoding="utf-8") as f:
            yield from f


def queries():
    """Returns the statements by name."""
    text = (pathlib.Path(__file__).parent / "queries.sql").read_text()
    found = re.findall(r"^-- (q\d+):[^\n]*\n(.*?);$", text, re.M | re.S)
    return {name: sql for name, sql in found}


def sqlite(folder):
    """Loads SQLite; returns a function of a statement that gives its rows."""
    db = sqlite3.connect(":memory:")
    for table, columns in TABLES.items():
        kinds = ", ".join(f"{c} {'integer' if c in NUMBERS else 'text'}" for c in columns)
        db.execute(f"create table {table} (n integer, {kinds})")
    kinds = list(TABLES)
    rows = {k: [] for k in kinds}
    for n, line in enumerate(events(folder)):
        event = json.loads(line)
        kind = kinds[event["event_type"]]
        rows[kind].append((n, *(event[kind][c] for c in TABLES[kind])))
    for kind in kinds:
        db.executemany(f"insert into {kind} values ({', '.join('?' * (len(TABLES[kind]) + 1))})", rows[kind])
    db.execute("create index auction_id on auction (id)")
    db.execute("create index person_id on person (id)")
    db.execute("create index bid_auction on bid (auction)")
    return lambda sql: db.execute(sql)


def duckdb(folder):
    """Loads DuckDB; returns a function of a statement that gives its rows."""
    import duckdb as duck

    db = duck.connect(":memory:")
    db.execute("set preserve_insertion_order = true")
    names = sorted(str(p) for p in pathlib.Path(folder).glob("*.jsonl"))
    db.execute(
        "create table events as select row_number() over () - 1 as n, * from read_json(?, format = 'newline_delimited', columns = {event_type: 'int', "
        + ", ".join(f"{t}: 'struct({', '.join(f'{c} ' + ('bigint' if c in NUMBERS else 'varchar') for c in cs)})'" for t, cs in TABLES.items())
        + "})",
        [names],
    )
    for i, table in enumerate(TABLES):
        db.execute(f"create table {table} as select n, unnest({table}) from events where event_type = {i}")
    return lambda sql: db.execute(sql).fetchall()


def answer(rows):
    """Returns the sorted lines of a result."""
    return sorted("|".join(str(v) for v in row) for row in rows)


def digest(lines):
    """Returns what stands for a result in the file of golden results: all of a short one, too."""
    sha = hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()
    result = {"rows": len(lines), "sha256": sha}
    if len(lines) <= 60:
        result["lines"] = lines
    return result


def main():
    args = argparse.ArgumentParser()
    args.add_argument("events")
    args.add_argument("--engine", choices=["duckdb", "sqlite", "both"], default="both")
    args.add_argument("--check", metavar="GOLDEN")
    args.add_argument("--name", help="which of the golden results")
    args.add_argument("--update", action="store_true")
    args.add_argument("--out")
    args = args.parse_args()
    engines = {"duckdb": duckdb, "sqlite": sqlite}
    asked = list(engines) if args.engine == "both" else [args.engine]
    ask = {name: engines[name](args.events) for name in asked}
    bad = 0
    results = {}
    for query, sql in queries().items():
        for name in asked:
            lines = answer(ask[name](sql))
            got = digest(lines)
            if results.setdefault(query, got) != got:
                bad += 1
                print(f"{query}: {name} and {asked[0]} disagree: {got['rows']} and {results[query]['rows']} rows", file=sys.stderr)
        print(f"{query} {got['rows']} {got['sha256']}")
        if args.out:
            pathlib.Path(args.out).mkdir(parents=True, exist_ok=True)
            (pathlib.Path(args.out) / f"{query}.txt").write_text("".join(line + "\n" for line in lines))
    if args.check:
        path = pathlib.Path(args.check)
        golden = json.loads(path.read_text()) if path.exists() else {}
        if args.update:
            golden[args.name] = results
            path.write_text(json.dumps(golden, indent=1) + "\n")
        for query in sorted(results.keys() | golden[args.name].keys()):
            if results.get(query) != golden[args.name].get(query):
                bad += 1
                print(f"{query}: the golden result is another one", file=sys.stderr)
    print(f"{len(results)} queries, {' and '.join(asked)}: {'the same' if not bad else f'{bad} differ'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
