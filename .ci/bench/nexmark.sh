#!/usr/bin/env bash
# Nexmark: events per CPU-second (user and system, of the whole process) of each query over a million generated events, into files.
#   nexmark.sh [QUERY..]     RUNS=3 the best of so many; exits 1 when a target is missed
set -euo pipefail
cd "$(dirname "$0")/../.."
root="$PWD" cache="$PWD/.ci/.cache" work="${WORK:-$PWD/.ci/.cache/bench/nexmark}"
declare -A target=([q3]=250000 [q4]=40000 [q5]=40000 [q7]=100000 [q8]=250000 [q11]=60000 [q12]=150000)
queries=("$@")
[ $# -gt 0 ] || queries=(q0 q1 q2 q3 q4 q5 q7 q8 q11 q12 q14 q18 q19 q20)
mkdir -p "$cache" "$work"
CGO_ENABLED=0 go build -trimpath -o "$cache/wasmill-bench" ./cli/wasmill
missed=0

# once QUERY: runs it over a million events at the benchmark's own rate; prints CPU-seconds, seconds and KiB.
once() {
  local dir="$work/$1"
  rm -rf "$dir" && mkdir -p "$dir"
  sed -e "s#\./modules/#$root/examples/nexmark/modules/#" -e 's/records: 100000/records: 1000000/; s/eventRate: 2000/eventRate: 10000/' \
    -e 's/maxRecords: 20000/maxRecords: 92000/; s/maxRecords: 18400/maxRecords: 92000/; s/maxRecords: 1200/maxRecords: 6000/' \
    "examples/nexmark/$1.yaml" >"$dir/job.yaml"
  (cd "$dir" && python3 - "$cache/wasmill-bench" <<'P'
import os, resource, subprocess, sys, time
start = time.monotonic()
with open("log", "wb") as log:
    code = subprocess.call([sys.argv[1], "run", "job.yaml"], stdout=log, stderr=log)
use = resource.getrusage(resource.RUSAGE_CHILDREN)
if code:
    sys.exit(open("log").read())
print(f"{use.ru_utime + use.ru_stime:.2f} {time.monotonic() - start:.2f} {use.ru_maxrss}")
P
  )
  rm -rf "$dir"
}

echo '| query | events per CPU-second | target | CPU s a million | s | RSS MiB |'
echo '|---|---|---|---|---|---|'
for q in "${queries[@]}"; do
  best="$(for _ in $(seq "${RUNS:-3}"); do once "$q"; done | sort -n | head -1)"
  read -r cpu wall rss <<<"$best"
  rate="$(awk -v c="$cpu" 'BEGIN {printf "%d", 1000000 / c}')"
  echo "| $q | $rate | ${target[$q]:--} | $cpu | $wall | $((rss / 1024)) |"
  [ "$rate" -ge "${target[$q]:-0}" ] || missed=1
done
exit "$missed"
