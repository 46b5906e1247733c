#!/usr/bin/env python3
"""Asks DuckDB for what job.yaml puts out, and compares it with golden.json.   oracle.py [--update]

Rows are columns joined by |, sorted; golden.json has how many there are, their sha256, and every 200th. Needs the package duckdb.
"""

import hashlib
import json
import pathlib
import sys

import duckdb

SQL = """
with delays as (
  select carrier, origin, strftime(date_trunc('hour', time_hour), '%Y-%m-%dT%H:%M:%S.000Z') as hour,
    count(*) as flights, sum(dep_delay) as total, max(dep_delay) as worst
  from read_json('{flights}', columns = {{carrier: 'varchar', origin: 'varchar', time_hour: 'timestamp', dep_delay: 'bigint'}})
  where dep_delay is not null
  group by all
), sky as (
  select origin, strftime(time_hour, '%Y-%m-%dT%H:%M:%S.000Z') as hour, temp, wind_speed, precip, visib
  from read_json('{weather}', columns = {{origin: 'varchar', time_hour: 'timestamp', temp: 'varchar', wind_speed: 'varchar', precip: 'varchar',
    visib: 'varchar'}})
), hundredths as (
  select *, sign(total) * ((2 * 100 * abs(total) + flights) // (2 * flights)) as delay from delays
)
select d.carrier, a.name, d.origin, d.hour, d.flights,
  case when d.delay < 0 then '-' else '' end || (abs(d.delay) // 100)::bigint || '.' || lpad((abs(d.delay) % 100)::bigint::varchar, 2, '0'),
  d.worst, s.temp, s.wind_speed, s.precip, s.visib
from hundredths d left join sky s on d.origin = s.origin and d.hour = s.hour
  left join read_csv('{airlines}', header = true, all_varchar = true) a on d.carrier = a.carrier
"""


def main():
    here = pathlib.Path(__file__).parent
    sql = SQL.format(flights=here / "../flights/data/*.jsonl.gz", weather=here / "data/weather.jsonl.gz", airlines=here / "data/airlines.csv")
    rows = duckdb.connect().execute(sql).fetchall()
    lines = sorted("|".join("null" if v is None else str(v) for v in row) for row in rows)
    got = {"rows": len(lines), "sha256": hashlib.sha256("".join(x + "\n" for x in lines).encode()).hexdigest(), "lines": lines[::200]}
    golden = here / "golden.json"
    if "--update" in sys.argv:
        golden.write_text(json.dumps(got, indent=1, ensure_ascii=False) + "\n")
    same = json.loads(golden.read_text()) == got
    print(f"{len(lines)} rows, {'the golden ones' if same else 'not the golden ones'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
