#!/usr/bin/env bash
# Builds the guest with clang-19 and lld-19. The result is committed.
set -euo pipefail
cd "$(dirname "$0")"
clang-19 --target=wasm32 -std=c11 -O3 -mbulk-memory -msimd128 -nostdlib -Wall -Wextra -Werror \
	-Wl,--no-entry -Wl,--stack-first -Wl,-z,stack-size=65536 -Wl,--strip-all -o changes.wasm changes.c
chmod 644 changes.wasm
