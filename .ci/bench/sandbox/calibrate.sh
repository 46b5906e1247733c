#!/usr/bin/env bash
# Prints how large real modules are, by each measure that a limit of the reader bounds, and what modules made to be dear cost.
#   calibrate.sh [MODULE..]            the guests, what the repository ships, and these modules
#   calibrate.sh --worst CASE[,CASE]   cases of host/sandbox/guests/worst_test.go as name:n:k, each compiled in a child
# The reader is built with its limits raised, for else it would refuse what it is to measure.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
limits="$root/host/sandbox/binary/doc.go"
sed -E 's/^(\tMax[A-Za-z]+ +=) ([0-9_]+)( << 20)?( |$)/\1 1000 * \2\3\4/; s/^(\tMaxModule +=) .*/\1 64 << 20/; s/^(\tMax(Table|Pages) +=) 1000 \* /\1 /' "$limits" >"$work/doc.go"
printf '{"Replace": {"%s": "%s"}}\n' "$limits" "$work/doc.go" >"$work/overlay.json"
cd "$root/host/sandbox/guests"
go test -overlay "$work/overlay.json" -c -o "$work/guests.test" .
if [ "${1:-}" = --worst ]; then
	"$work/guests.test" -test.run '^TestWorst$' -worst "$2"
else
	files="$(printf '%s,' "$@")"
	"$work/guests.test" -test.run '^TestCalibration$' -calibrate "${files:--}"
fi
