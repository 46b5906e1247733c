#!/usr/bin/env bash
# Runs a command beside a new, empty PostgreSQL server, with the variables that tests find it by, and stops it afterwards.
#   with-postgres.sh CMD..      POSTGRES_SETTINGS: see postgres.sh
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
home="$(mktemp -d)"
chmod 755 "$home"
export POSTGRES_HOME="$home"
trap 'bash "$here/postgres.sh" stop || true; rm -rf "$home"' EXIT
bash "$here/postgres.sh" start
while IFS= read -r variable; do export "${variable?}"; done < <(bash "$here/postgres.sh" env)
code=0
"$@" || code=$?
bash "$here/postgres.sh" status
exit "$code"
