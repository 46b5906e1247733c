#!/usr/bin/env bash
# Builds the program, installs the peers and runs the benchmarks: see README.md.   bench.sh [throughput] [peers] [latency] [syncs] [start] [tables] [orders]
set -euo pipefail
cd "$(dirname "$0")/../.."
cache="$PWD/.ci/.cache"
mkdir -p "$cache"
case " $* " in
  '  ' | *' peers '* | *' tables '*) python="$(bash .ci/readers/install.sh)" ;;
  *) python=python3 ;;
esac
bash .ci/debian.sh strace:strace
CGO_ENABLED=0 go build -trimpath -o "$cache/wasmill-bench" ./cli/wasmill
exec "$python" .ci/bench/bench.py --program "$cache/wasmill-bench" --work "${WORK:-$cache/bench}" "$@"
