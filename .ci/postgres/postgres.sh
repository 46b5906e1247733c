#!/usr/bin/env bash
# A real PostgreSQL server on the loopback interface, for tests. It runs as an unprivileged user, as it refuses root. Without fsync:
# what it has written survives a kill, though not the end of the machine.
#   postgres.sh install          Debian's server where there is none
#   postgres.sh start            makes an empty cluster first if there is none; returns when the server answers
#   postgres.sh stop             a fast shutdown, then waits
#   postgres.sh kill9            SIGKILL to the server and all its processes; the data stays
#   postgres.sh status           the process, the version, the size of the data
#   postgres.sh env              what tests want to know of it, as lines NAME=VALUE
# Variables:
#   POSTGRES_HOME      data, log and port of this server; a second one needs another (default: .ci/.cache/postgres/server)
#   POSTGRES_SETTINGS  more lines for postgresql.conf
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
home="${POSTGRES_HOME:-$(cd "$here/.." && pwd)/.cache/postgres/server}"
data="$home/data"

# programs sets bin, the folder of the server's programs.
programs() {
  local at
  bin=""
  for at in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV); do
    if [ -x "$at/initdb" ]; then bin="$at" && return; fi
  done
  if at="$(command -v initdb)"; then bin="$(dirname "$(readlink -f "$at")")"; fi
}

install() {
  programs
  [ -n "$bin" ] || bash "$here/../debian.sh" :postgresql
  programs
  [ -n "$bin" ] || { echo "no initdb is to be found" >&2 && return 3; }
}

# as runs a command as the user of the server.
as() {
  if [ "$(id -u)" != 0 ]; then "$@" && return; fi
  setpriv --reuid=postgres --regid=postgres --clear-groups "$@"
}

alive() { [ -f "$data/postmaster.pid" ] && kill -0 "$(head -1 "$data/postmaster.pid")" 2>/dev/null; }

port() {
  local try p
  mkdir -p "$home"
  for try in $(seq 100); do
    [ ! -f "$home/port" ] || break
    p=$((27000 + (RANDOM + try) % 5000))
    (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || echo "$p" >"$home/port"
  done
  cat "$home/port"
}

make() {
  [ ! -f "$data/PG_VERSION" ] || return 0
  mkdir -p "$data"
  if [ "$(id -u)" = 0 ]; then chown postgres:postgres "$home" "$data"; fi
  as "$bin/initdb" -D "$data" -U wasmill -A trust -E UTF8 --no-locale --no-sync >"$home/initdb.out" 2>&1 || { cat "$home/initdb.out" >&2 && return 1; }
  # The role of tests of passwords needs one.
  cat >"$data/pg_hba.conf" <<-HBA
	local all all trust
	host all "pw_user" 127.0.0.1/32 scram-sha-256
	host all all 127.0.0.1/32 trust
	HBA
  cat >>"$data/postgresql.conf" <<-CONF
	listen_addresses = '127.0.0.1'
	port = $(port)
	unix_socket_directories = ''
	max_connections = 60
	shared_buffers = 128MB
	max_wal_size = 1GB
	fsync = off
	${POSTGRES_SETTINGS:-}
	CONF
  if [ "$(id -u)" = 0 ]; then chown -R postgres:postgres "$data"; fi
}

start() {
  if alive; then echo "it runs already" >&2 && return 1; fi
  install
  make
  as "$bin/pg_ctl" -D "$data" -l "$data/server.log" -w -t 60 start >"$home/start.out" 2>&1 ||
    { cat "$home/start.out" >&2 && tail -n 20 "$data/server.log" >&2 && return 1; }
  echo "a server at 127.0.0.1:$(port)"
}

stop() {
  alive || return 0
  install
  as "$bin/pg_ctl" -D "$data" -m fast -w stop >/dev/null
}

kill9() {
  alive || return 0
  local pid child
  pid="$(head -1 "$data/postmaster.pid")"
  child="$(pgrep -P "$pid" || true)"
  # shellcheck disable=SC2086
  kill -KILL "$pid" $child 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
  # The next server waits for the shared memory of the one before.
  for pid in $child; do while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done; done
}

status() {
  alive || { echo "no server runs" && return; }
  printf 'process %s, port %s, version %s, %s of data\n' "$(head -1 "$data/postmaster.pid")" "$(port)" "$(cat "$data/PG_VERSION")" "$(du -sh "$data" | cut -f 1)"
}

case "${1:-}" in
  install) install ;;
  start) start ;;
  stop) stop ;;
  kill9) kill9 ;;
  status) status ;;
  env)
    printf 'WASMILL_POSTGRES=postgres://wasmill@127.0.0.1:%s/postgres?sslmode=disable\nWASMILL_POSTGRES_SCRIPT=%s\nPOSTGRES_HOME=%s\n' \
      "$(port)" "$here/postgres.sh" "$home"
    ;;
  *) sed -n '2,13p' "$0" >&2 && exit 2 ;;
esac
