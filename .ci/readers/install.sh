#!/usr/bin/env bash
# Installs what the readers need: Java (17 or newer), Python packages in a folder of their own. Quick when all is there.
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
"$LAB/venv/bin/python" - >&2 <<'P'
import duckdb, pyarrow, pyspark
print("pyspark", pyspark.__version__, " duckdb", duckdb.__version__, " pyarrow", pyarrow.__version__)
P
printf '%s\n' "$LAB/venv/bin/python"
