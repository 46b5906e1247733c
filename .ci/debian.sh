#!/usr/bin/env bash
# Installs Debian packages that are missing.   debian.sh [COMMAND]:PACKAGE..
# A package whose command is there already, from wherever, is left alone; without a command dpkg is asked.
set -euo pipefail
missing=()
for want in "$@"; do
  command="${want%%:*}" package="${want#*:}"
  if [ -n "$command" ] && command -v "$command" >/dev/null; then continue; fi
  if dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed'; then continue; fi
  missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0
if ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]} (Debian's names); this machine has no apt-get, so install them by hand" >&2
  exit 3
fi
sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
export DEBIAN_FRONTEND=noninteractive
echo "installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
