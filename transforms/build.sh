#!/bin/sh
# Rebuilds every committed module from its source, always to the same bytes. Installs nothing; says what is missing.
#   build.sh [go|rust] [OUTDIR]     both languages, into this folder, unless told otherwise
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
lang=${1:-all}
out=${2:-$here}

missing() {
	echo "build.sh: $1 is missing: $2" >&2
	exit 3
}

build_go() {
	command -v go >/dev/null || missing go "install Go 1.26"
	for t in clean f1; do
		mkdir -p "$out/$t"
		(cd "$here/$t/go" && GOFLAGS= GOWORK=off GOOS=wasip1 GOARCH=wasm GOWASM= go build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o "$out/$t/$t-go.wasm" .)
		cp "$here/$t/go/manifest.json" "$out/$t/$t-go.wasm.json"
	done
}

build_rust() {
	cargo=${WASMILL_CARGO:-/usr/bin/cargo}
	linker=${WASMILL_WASM_LD:-wasm-ld-19}
	[ -x "$cargo" ] || missing "$cargo" "Debian: apt-get install rustc-web cargo-web rust-web-src lld-19, or set WASMILL_CARGO"
	command -v "$linker" >/dev/null || missing "$linker" "Debian: apt-get install lld-19, or set WASMILL_WASM_LD"
	bin=$(dirname "$cargo")
	std=$("$bin/rustc" --print sysroot)/lib/rustlib/src/rust
	[ -d "$std/library" ] || missing "the source of Rust's standard library" "Debian: apt-get install rust-web-src"
	target=${CARGO_TARGET_DIR:-$root/abi/sdk/rust/target}
	for t in clean f1; do
		mkdir -p "$out/$t"
		(
			cd "$here/$t/rust"
			PATH="$bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
				RUSTFLAGS="--remap-path-prefix=$root=/wasmill --remap-path-prefix=$(readlink -f "$std")=/rust --remap-path-prefix=$std=/rust" \
				"$cargo" build --quiet --offline --release --config 'source.crates-io.replace-with="std"' --config "source.std.directory=\"$std/library/vendor\"" \
				 --target wasm32-unknown-unknown -Z build-std=std,panic_abort
		)
		cp "$target/wasm32-unknown-unknown/release/$t.wasm" "$out/$t/$t.wasm"
	done
}

case $lang in
go) build_go ;;
rust) build_rust ;;
all) build_go && build_rust ;;
*) echo "usage: build.sh [go|rust] [OUTDIR]" >&2 && exit 2 ;;
esac
