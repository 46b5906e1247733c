#!/usr/bin/env python3
"""Makes the input of the benchmark F1.   gen_f1.py DIR [RECORDS=1000000] [FILES=20] [PARTITIONS=0]

JSON lines of about 230 bytes, the same bytes on every machine: an LCG of its own, no clock, no random module. Modification times are
set so that their order is that of the names. With PARTITIONS each record has a field `part` of so many values."""

import hashlib
import os
import sys

EVENTS = ["view", "click", "view", "add_to_cart", "purchase"]
COUNTRIES = ["DE", "US", "JP", "BR", "IN", "FR", "NG", "GB"]
AGENTS = [
    "Mozilla/5.0 (X11; Linux x86_64) Firefox/131.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0) Safari/605",
    "okhttp/4.12.0 (Android 15; build 7781)",
]


def lines(first, count, partitions=0):
    x = 88172645463325252 ^ (first * 2654435761 & 0xFFFFFFFF)
    for i in range(first, first + count):
        x = (x * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        r = x >> 16
        s, ms = divmod(i * 83 + (r & 1023), 1000)
        ts = f"2026-01-{2 + s // 86400:02d}T{s // 3600 % 24:02d}:{s // 60 % 60:02d}:{s % 60:02d}.{ms:03d}Z"
        part = f',"part":"p{r % partitions:02d}"' if partitions else ""
        yield (
            f'{{"id":{i},"ts":"{ts}","user":"user-{r % 50021:06d}","session":"{x & 0xFFFFFFFFFFFF:012x}","event":"{EVENTS[r % 5]}",'
            f'"page":"/products/{r % 9973}?ref={r % 97}","amount":{(r % 1000000) / 100:.2f},"qty":{r % 7},"country":"{COUNTRIES[r % 8]}","ua":"{AGENTS[r % 3]}"{part}}}\n'
        )


def generate(folder, records=1_000_000, files=20, partitions=0):
    """Writes the files; returns the sha256 of all their bytes."""
    os.makedirs(folder, exist_ok=True)
    per = records // files
    digest = hashlib.sha256()
    for f in range(files):
        content = "".join(lines(f * per, per, partitions)).encode()
        path = os.path.join(folder, f"in-{f:05d}.json")
        with open(path, "wb") as out:
            out.write(content)
        os.utime(path, (1767400000 + f, 1767400000 + f))
        digest.update(content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(generate(sys.argv[1], *map(int, sys.argv[2:])))
