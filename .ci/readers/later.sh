#!/usr/bin/env bash
# Puts a table aside for `read_delta.py --list`, as a start of Spark takes longer than many tables.
#   later.sh FOLDER DIR EXPECTED.jsonl [--txn APPID=VERSION ..]      the list is FOLDER/tables
set -euo pipefail
folder="$1" dir="$2" expected="$3"
shift 3
mkdir -p "$folder"
to="$(mktemp -d "$folder/XXXXXX")"
cp -r "$dir" "$to/"
cp "$expected" "$to/expected.jsonl"
line="$to/$(basename "$dir")"$'\t'"$to/expected.jsonl"
while [ $# -gt 0 ]; do
  [ "$1" = --txn ]
  line+=$'\t'"$2"
  shift 2
done
printf '%s\n' "$line" >>"$folder/tables"
echo "put aside: $line"
