#!/usr/bin/env bash
# Runs a command beside a new, empty broker, with the variables that tests find it by, and stops the broker afterwards.
#   with-broker.sh CMD..      BROKER_FORMAT, BROKER_HEAP and BROKER_PROPERTIES: see broker.sh
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
home="$(mktemp -d)"
export BROKER_HOME="$home"
trap 'bash "$here/broker.sh" stop || true; rm -rf "$home"' EXIT
bash "$here/broker.sh" start
while IFS= read -r variable; do export "${variable?}"; done < <(bash "$here/broker.sh" env)
code=0
"$@" || code=$?
bash "$here/broker.sh" status
exit "$code"
