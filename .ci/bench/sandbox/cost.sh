#!/usr/bin/env bash
# Compares every guest in the sandbox with itself on plain wazero and with native Go, in one run, in turn; prints a table and which
# targets are met.   cost.sh [ROUNDS [GUEST,..]]   40 rounds of all guests take about four minutes
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
go version
grep -m1 'model name' /proc/cpuinfo || true
printf 'load %s\n\n' "$(cut -d' ' -f1-3 /proc/loadavg)"
go test -c -o "$work/guests.test" ./host/sandbox/guests
cd host/sandbox/guests
"$work/guests.test" -test.run '^TestCost$' -test.timeout 60m -cost "${1:-40}" -only "${2:-}"
