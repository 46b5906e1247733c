#!/usr/bin/env bash
# Builds the example and the test guests with clang-19 and lld-19. The results are committed.
set -euo pipefail
cd "$(dirname "$0")"

build() {
	clang-19 --target=wasm32 -std=c11 -O3 -mbulk-memory -nostdlib -Wall -Wextra -Werror \
		-Wl,--no-entry -Wl,--stack-first -Wl,-z,stack-size=65536 -Wl,--strip-all "${@:3}" -o "$1" "$2"
	chmod 644 "$1"
}

build example/f1.wasm example/f1.c -msimd128
build example/window.wasm example/window.c -msimd128
build test/f1-swar.wasm example/f1.c
build test/probe.wasm test/probe.c -msimd128
build test/probe-swar.wasm test/probe.c
build test/probe-tiny.wasm test/probe.c -msimd128 -DWM_ARENA=64 -DWM_PENDING=3
build test/state.wasm test/state.c
build test/state-tiny.wasm test/state.c -DWM_STATE_CACHE=0
build test/rows.wasm test/rows.c
build test/rows-tiny.wasm test/rows.c -DWM_ARENA=64 -DWM_PENDING=3
