#!/usr/bin/env bash
# A real Kafka broker on the loopback interface, for tests, and its controller in a process of its own.
#   broker.sh install          Java and Maven where they are missing, and the jars
#   broker.sh start            makes empty data folders first if there are none; returns when the broker answers
#   broker.sh stop             SIGTERM to the broker, then to the controller; waits
#   broker.sh kill9            SIGKILL to the broker; its data and the controller stay
#   broker.sh reset            stop, without the data, start
#   broker.sh status           the processes, their memory, the size of the data
#   broker.sh env              what tests want to know of it, as lines NAME=VALUE
# Variables:
#   BROKER_HOME        data, logs, ports and pids of this broker; a second one needs another (default: .ci/.cache/kafka/broker)
#   BROKER_PORT        its port, with the three after it (default: chosen once among those that are free)
#   BROKER_HEAP        default 512m
#   BROKER_PROPERTIES  a file with more properties, which win; the controller takes all but its listener and folder from it too;
#                      @PORT@, @CONTROLLER@, @BEHIND@, @PROXY@ and @HOME@ are filled in
#   BROKER_FORMAT      more arguments for formatting, such as --feature transaction.version=1
#
# Two processes, as a killed node that was both starts from metadata in which it still leads. Kafka 4.4.0 then takes up the ends of
# transactions, and when the controller takes the leaders away meanwhile, it skips their markers there ("these partitions are likely
# deleted already") and calls them complete. Those records are lost, or an aborted one appears, with the producer's next marker.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
cache="$(cd "$here/.." && pwd)/.cache/kafka"
home="${BROKER_HOME:-$cache/broker}"
libs="$cache/libs"
log="$home/broker.log" pidfile="$home/pid"
controller_log="$home/controller.log" controller_pidfile="$home/controller.pid"

install() {
  bash "$here/../debian.sh" java:openjdk-17-jre-headless mvn:maven
  if [ -f "$libs/of" ] && cmp -s "$here/pom.xml" "$libs/of"; then return; fi
  rm -rf "$libs" "$libs.new"
  mkdir -p "$libs.new"
  mvn -q -B -f "$here/pom.xml" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$libs.new" >&2
  cp "$here/pom.xml" "$libs.new/of"
  mv "$libs.new" "$libs"
}

# alive PIDFILE: the process of that file runs.
alive() { [ -f "$1" ] && kill -0 "$(cat "$1")" 2>/dev/null; }
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

# configure FILE..: the properties of a process, from those files.
configure() {
  cat "$@" | sed -e "s|@PORT@|$port|g; s|@CONTROLLER@|$controller|g; s|@BEHIND@|$behind|g; s|@PROXY@|$proxy|g; s|@HOME@|$home|g"
}

# format NAME ARG..: makes the data folder of the broker or the controller.
format() {
  local name="$1"
  shift
  java -Xmx256m -XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile="$here/log4j2.properties" -Dkafka.log="$home/$name-format.log" -cp "$libs/*" \
    kafka.tools.StorageTool format -c "$home/$name.properties" "$@" >"$home/$name-format.out" 2>&1 || { cat "$home/$name-format.out" >&2 && return 1; }
}

# make makes both data folders, unless both are there.
make() {
  if [ -f "$home/data/meta.properties" ] && [ -f "$home/controller/meta.properties" ]; then return; fi
  rm -rf "${home:?}/data" "${home:?}/controller"
  # Any 16 bytes in URL-safe base64 are an id.
  local id other code=0
  id="$(head -c 16 /dev/urandom | base64 | tr '+/' 'AB' | tr -d '=')"
  format broker -t "$id" &
  other=$!
  # shellcheck disable=SC2086
  format controller -t "$id" --standalone ${BROKER_FORMAT:-} || code=1
  wait "$other" || code=1
  return "$code"
}

# launch NAME LOG PIDFILE FLAG..: starts the broker or the controller.
launch() {
  local name="$1" log="$2" pidfile="$3"
  shift 3
  rm -f "$log"
  setsid nohup java "$@" -Djava.awt.headless=true -Dlog4j2.configurationFile="$here/log4j2.properties" \
    -Dkafka.log="$log" -cp "$libs/*" kafka.Kafka "$home/$name.properties" >"$home/$name.out" 2>&1 </dev/null &
  echo $! >"$pidfile"
}

# started LOG: a process says so when it is at work; a broker is then unfenced.
started() { grep -q 'Kafka Server started' "$1" 2>/dev/null; }

# fenced: the controller knows that the broker is away, and its partitions have no leader. It logs what it knows of it.
fenced() {
  started "$controller_log" || return 1
  local last
  last="$(tac "$controller_log" | grep -m 1 -oE 'Replayed .*(RegisterBrokerRecord|BrokerRegistrationChangeRecord)\(brokerId=1,.* fenced=(true|false|1|-1),')" || true
  case "$last" in *fenced=false, | *fenced=-1,) return 1 ;; esac
}

# await PIDFILE CONDITION..: until it is so, while the process lives.
await() {
  local pidfile="$1" from=$SECONDS
  shift
  until "$@"; do
    if ! alive "$pidfile" || [ $((SECONDS - from)) -gt 90 ]; then
      echo "the broker does not start:" >&2
      tail -n 20 "$controller_log" "$home/controller.out" "$log" "$home/broker.out" >&2 || true
      return 1
    fi
    sleep 0.1
  done
}

up() { started "$log" && answers "$port"; }

start() {
  if alive "$pidfile"; then echo "it runs already, as $(cat "$pidfile")" >&2 && return 1; fi
  [ -d "$libs" ] || install
  local heap="${BROKER_HEAP:-512m}" from=$SECONDS
  ports
  configure "$here/broker.properties" ${BROKER_PROPERTIES:+"$BROKER_PROPERTIES"} >"$home/broker.properties"
  configure "$here/broker.properties" ${BROKER_PROPERTIES:+"$BROKER_PROPERTIES"} "$here/controller.properties" >"$home/controller.properties"
  make
  alive "$controller_pidfile" || launch controller "$controller_log" "$controller_pidfile" -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1
  # One that was not shut down may still pass for alive.
  if [ -d "$home/data/__cluster_metadata-0" ] && [ ! -f "$home/data/.kafka_cleanshutdown" ]; then await "$controller_pidfile" fenced; fi
  launch broker "$log" "$pidfile" "-Xms$heap" "-Xmx$heap" -XX:+UseG1GC
  await "$pidfile" up
  echo "a broker at 127.0.0.1:$port after $((SECONDS - from)) s"
}

# end SIGNAL PIDFILE: ends the process and waits for that.
end() {
  alive "$2" || { rm -f "$2" && return; }
  local pid from=$SECONDS
  pid="$(cat "$2")"
  kill "-$1" "$pid"
  while kill -0 "$pid" 2>/dev/null; do
    if [ $((SECONDS - from)) -gt 30 ]; then kill -KILL "$pid"; fi
    sleep 0.05
  done
  rm -f "$2"
}

# The broker goes first: it asks the controller for leave.
stop() { end TERM "$pidfile" && end TERM "$controller_pidfile"; }

resident() { awk '/VmRSS/ {printf "%d MiB resident", $2 / 1024}' "/proc/$1/status"; }

status() {
  if alive "$controller_pidfile"; then printf 'controller %s, %s\n' "$(cat "$controller_pidfile")" "$(resident "$(cat "$controller_pidfile")")"; fi
  alive "$pidfile" || { echo "no broker runs" && return; }
  local pid
  pid="$(cat "$pidfile")"
  printf 'process %s, port %s, %s, %s of data\n' "$pid" "$(cat "$home/port")" "$(resident "$pid")" "$(du -sh "$home/data" | cut -f 1)"
}

case "${1:-}" in
  install) install ;;
  start) start ;;
  stop) stop ;;
  kill9) end KILL "$pidfile" ;;
  reset) stop && rm -rf "${home:?}/data" "${home:?}/controller" && start ;;
  status) status ;;
  env)
    ports
    printf 'WASMILL_KAFKA=127.0.0.1:%s\nWASMILL_KAFKA_PROXY=127.0.0.1:%s,127.0.0.1:%s\nWASMILL_KAFKA_SCRIPT=%s\nBROKER_HOME=%s\n' \
      "$port" "$proxy" "$behind" "$here/broker.sh" "$home"
    ;;
  *) sed -n '2,16p' "$0" >&2 && exit 2 ;;
esac
