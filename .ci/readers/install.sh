#!/usr/bin/env bash
# Installs what the readers need: Java (17 or newer), Python packages in a folder of their own, Spark's jars for Delta. Quick when
# all is there.
#   install.sh      prints the Python to run the checkers with; LAB=DIR names the folder (about 1 GB)
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
LAB="${LAB:-$HOME/.cache/wasmill-readers}"
bash "$here/../debian.sh" java:openjdk-17-jre-headless python3:python3 >&2
if [ ! -x "$LAB/venv/bin/python" ]; then
  python3 -c 'import ensurepip' 2>/dev/null || bash "$here/../debian.sh" :python3-venv >&2
  mkdir -p "$LAB"
  python3 -m venv "$LAB/venv"
fi
"$LAB/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >&2
# Spark resolves the jars by itself; that there is no application to run then is expected. What it ships already is left out.
if [ ! -e "$LAB/jars/.done" ]; then
  mkdir -p "$LAB/jars"
  PATH="$LAB/venv/bin:$PATH" "$LAB/venv/bin/spark-submit" --master 'local[1]' --conf spark.jars.ivy="$LAB/ivy" --conf spark.ui.enabled=false \
    --packages io.delta:delta-spark_4.2_2.13:4.4.0 --class none.None /dev/null >"$LAB/ivy.log" 2>&1 || true
  for jars in io.delta_ io.unitycatalog_; do
    cp "$LAB/ivy/jars/$jars"*.jar "$LAB/jars/" || { tail -n 40 "$LAB/ivy.log" >&2 && exit 1; }
  done
  touch "$LAB/jars/.done"
fi
"$LAB/venv/bin/python" - >&2 <<'P'
import deltalake, duckdb, pyarrow, pyspark
print("pyspark", pyspark.__version__, " deltalake", deltalake.__version__, " duckdb", duckdb.__version__, " pyarrow", pyarrow.__version__)
P
printf '%s\n' "$LAB/venv/bin/python"
