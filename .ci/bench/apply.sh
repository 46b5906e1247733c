#!/usr/bin/env bash
# What the background apply of the state costs the batches beside it: one windowed count runs twice SIDE BY SIDE, so that both suffer the
# same machine, once as it is and once with the apply held back (a store in memory, in the build with -tags failpoints).
#   apply.sh     SECONDS_RUN=600 the time to measure, after WARM=120; RATE=10000 records a second for each; exits 1 when p99 is missed
set -euo pipefail
cd "$(dirname "$0")/../.."
cache="$PWD/.ci/.cache" work="${WORK:-$PWD/.ci/.cache/bench/apply}"
mkdir -p "$cache"
CGO_ENABLED=0 go build -trimpath -tags failpoints -o "$cache/wasmill-failpoints" ./cli/wasmill
rm -rf "$work"
for run in real held; do
  mkdir -p "$work/$run"
  # An order comes every millisecond of event time, and windows stay open for 1000 s of it: a million orders are in some 630,000 windows,
  # each with a timer, about 100 MB. Each window is written, read again when it ends and most last values are forgotten, and removed.
  cat >"$work/$run/job.yaml" <<Y
apiVersion: wasmill/v1
kind: Job
metadata: {name: windows}
spec:
  checkpoint: ./ck
  trigger: {interval: 0s}
  sources:
    - name: orders
      generator: {kind: orders, rate: ${RATE:-10000}}
      eventTime: {json: /created_at, lateness: 1000s}
      batch: {maxRecords: 40000}
  transforms:
    - name: windows
      from: [{input: orders, keyBy: {json: /customer}}]
      module: stock:tumbling
      config:
        size: 10s
        key: customer
        start: window_start
        format: ms
        aggregates: [{count: count}, {sum: {sum: /amount}}]
  sinks:
    - name: out
      from: [windows]
      files: {path: ./out, format: jsonl}
Y
done
exec python3 .ci/bench/apply.py "$cache/wasmill-failpoints" "$work" "${WARM:-120}" "${SECONDS_RUN:-600}"
