#!/usr/bin/env bash
# A real Kafka broker of one node on the loopback interface, for tests.
#   broker.sh install          Java and Maven where they are missing, and the jars
#   broker.sh start            makes an empty data folder first if there is none; returns when the broker answers
#   broker.sh stop             SIGTERM, then waits
#   broker.sh kill9            SIGKILL; the data stays
#   broker.sh reset            stop, without the data, start
#   broker.sh status           the process, its memory, the size of the data
#   broker.sh env              what tests want to know of it, as lines NAME=VALUE
# Variables:
#   BROKER_HOME        data, logs, ports and pid of this broker; a second one needs another (default: .ci/.cache/kafka/broker)
#   BROKER_PORT        its port, with the three after it (default: chosen once among those that are free)
#   BROKER_HEAP        default 512m
#   BROKER_PROPERTIES  a file with more properties, which win; @PORT@, @CONTROLLER@, @BEHIND@, @PROXY@ and @HOME@ are filled in
#   BROKER_FORMAT      more arguments for formatting, such as --feature transaction.version=1
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="$(cd "$here/.." && pwd)/.cache/kafka"
home="${BROKER_HOME:-$cache/broker}"
libs="$cache/libs"
conf="$home/broker.properties" log="$home/broker.log" pidfile="$home/pid"

install() {
  bash "$here/../debian.sh" java:openjdk-17-jre-headless mvn:maven
  if [ -f "$libs/of" ] && cmp -s "$here/pom.xml" "$libs/of"; then return; fi
  rm -rf "$libs" "$libs.new"
  mkdir -p "$libs.new"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs.new" >&2
  cp "$here/pom.xml" "$libs.new/of"
  mv "$libs.new" "$libs"
}

alive() { [ -f "$pidfile" ] && kill -0 "$(cat "$pidfile")" 2>/dev/null; }
answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# ports sets port, controller, behind and proxy: those of this home, for good.
ports() {
  local try i
  mkdir -p "$home"
  if [ -n "${BROKER_PORT:-}" ]; then echo "$BROKER_PORT" >"$home/port"; fi
  for try in $(seq 100); do
    [ ! -f "$home/port" ] || break
    port=$((12000 + (RANDOM + try) % 15000))
    for i in 0 1 2 3; do answers $((port + i)) && continue 2; done
    echo "$port" >"$home/port"
  done
  port="$(cat "$home/port")"
  controller=$((port + 1)) behind=$((port + 2)) proxy=$((port + 3))
}

java_quiet() { java -Xmx256m -Dlog4j2.configurationFile="$here/log4j2.properties" -Dkafka.log="$home/format.log" -cp "$libs/*" "$@"; }

configure() {
  cat "$here/broker.properties" ${BROKER_PROPERTIES:+"$BROKER_PROPERTIES"} |
    sed -e "s|@PORT@|$port|g; s|@CONTROLLER@|$controller|g; s|@BEHIND@|$behind|g; s|@PROXY@|$proxy|g; s|@DATA@|$home/data|g; s|@HOME@|$home|g" >"$conf"
  [ ! -f "$home/data/meta.properties" ] || return 0
  # Any 16 bytes in URL-safe base64 are an id.
  # shellcheck disable=SC2086
  java_quiet kafka.tools.StorageTool format --standalone -t "$(head -c 16 /dev/urandom | base64 | tr '+/' 'AB' | tr -d '=')" -c "$conf" ${BROKER_FORMAT:-} >"$home/format.out" 2>&1 ||
    { cat "$home/format.out" >&2 && return 1; }
}

start() {
  if alive; then echo "it runs already, as $(cat "$pidfile")" >&2 && return 1; fi
  [ -d "$libs" ] || install
  ports
  configure
  rm -f "$log"
  local heap="${BROKER_HEAP:-512m}" from=$SECONDS
  setsid nohup java "-Xms$heap" "-Xmx$heap" -XX:+UseG1GC -Djava.awt.headless=true -Dlog4j2.configurationFile="$here/log4j2.properties" \
    -Dkafka.log="$log" -cp "$libs/*" kafka.Kafka "$conf" >"$home/broker.out" 2>&1 </dev/null &
  echo $! >"$pidfile"
  until grep -q 'Kafka Server started' "$log" 2>/dev/null && answers "$port"; do
    if ! alive || [ $((SECONDS - from)) -gt 90 ]; then
      echo "the broker does not start:" >&2
      tail -n 20 "$log" "$home/broker.out" >&2
      return 1
    fi
    sleep 0.1
  done
  echo "a broker at 127.0.0.1:$port after $((SECONDS - from)) s"
}

# end SIGNAL: ends the broker and waits for that.
end() {
  alive || { rm -f "$pidfile" && return; }
  local pid from=$SECONDS
  pid="$(cat "$pidfile")"
  kill "-$1" "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    if [ $((SECONDS - from)) -gt 30 ]; then kill -KILL "$pid"; fi
    sleep 0.05
  done
  rm -f "$pidfile"
}

status() {
  alive || { echo "no broker runs" && return; }
  local pid
  pid="$(cat "$pidfile")"
  printf 'process %s, port %s, %s, %s of data\n' "$pid" "$(cat "$home/port")" "$(awk '/VmRSS/ {printf "%d MiB resident", $2 / 1024}' "/proc/$pid/status")" \
    "$(du -sh "$home/data" | cut -f 1)"
}

case "${1:-}" in
  install) install ;;
  start) start ;;
  stop) end TERM ;;
  kill9) end KILL ;;
  reset) end TERM && rm -rf "${home:?}/data" && start ;;
  status) status ;;
  env)
    ports
    printf 'WASMILL_KAFKA=127.0.0.1:%s\nWASMILL_KAFKA_PROXY=127.0.0.1:%s,127.0.0.1:%s\nWASMILL_KAFKA_SCRIPT=%s\nBROKER_HOME=%s\n' \
      "$port" "$proxy" "$behind" "$here/broker.sh" "$home"
    ;;
  *) sed -n '2,16p' "$0" >&2 && exit 2 ;;
esac
