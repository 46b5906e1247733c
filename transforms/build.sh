#!/bin/sh
# Rebuilds every committed module from its source, always to the same bytes. Installs nothing; says what is missing.
#   build.sh [go|rust] [OUTDIR]     both languages, into this folder, unless told otherwise
#   build.sh test                   runs the tests that stand beside the sources in Rust, without WebAssembly
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/.." && pwd)
lang=${1:-all}
out=${2:-$here}
all='clean convert f1'
# Stock transforms: from Rust alone, on a crate they share.
stock='aggregate dedup filter join lookup map session sliding top tumbling'

missing() {
	echo "build.sh: $1 is missing: $2" >&2
	exit 3
}

build_go() {
	command -v go >/dev/null || missing go "install Go 1.26"
	for t in $all; do
		mkdir -p "$out/$t"
		(cd "$here/$t/go" && GOFLAGS= GOWORK=off GOOS=wasip1 GOARCH=wasm GOWASM= go build -buildmode=c-shared -trimpath -buildvcs=false -ldflags='-s -w -buildid=' -o "$out/$t/$t-go.wasm" .)
		cp "$here/$t/go/manifest.json" "$out/$t/$t-go.wasm.json"
	done
}

# toolchain finds the tools for Rust and makes one workspace of all crates, in a folder of its own: cargo hashes where crates
# lie outside of the workspace, and the hashes order the functions of a module.
toolchain() {
	cargo=${WASMILL_CARGO:-/usr/bin/cargo}
	linker=${WASMILL_WASM_LD:-wasm-ld-19}
	[ -x "$cargo" ] || missing "$cargo" "Debian: apt-get install rustc-web cargo-web rust-web-src lld-19, or set WASMILL_CARGO"
	bin=$(dirname "$cargo")
	target=${CARGO_TARGET_DIR:-$root/abi/sdk/rust/target}
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	copy abi/sdk/rust
	copy transforms/stock
	rust=$all
	for t in $stock; do if [ -d "$here/$t/rust" ]; then rust="$rust $t"; fi; done
	for t in $rust; do copy "transforms/$t/rust"; done
	cat >"$work/Cargo.toml" <<-EOF
		[workspace]
		resolver = "3"
		members = ["abi/sdk/rust", "transforms/stock", "transforms/*/rust"]
		$(sed -n '/^\[profile.release\]/,$p' "$here/clean/rust/Cargo.toml")
	EOF
}

build_rust() {
	toolchain
	command -v "$linker" >/dev/null || missing "$linker" "Debian: apt-get install lld-19, or set WASMILL_WASM_LD"
	std=$("$bin/rustc" --print sysroot)/lib/rustlib/src/rust
	[ -d "$std/library/vendor" ] || missing "the source of Rust's standard library" "Debian: apt-get install rust-web-src"
	# A library for tests beside a module would have cargo compile everything in another way, for all modules.
	for t in $rust; do sed -i 's/^crate-type = .*/crate-type = ["cdylib"]/' "$work/transforms/$t/rust/Cargo.toml"; done
	(
		cd "$work"
		PATH="$bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
			RUSTFLAGS="--remap-path-prefix=$(readlink -f "$std")=/rust --remap-path-prefix=$std=/rust" \
			"$cargo" build --quiet --offline --release --workspace --target wasm32-unknown-unknown -Z build-std=std,panic_abort \
			--config 'source.crates-io.replace-with="std"' --config "source.std.directory=\"$std/library/vendor\""
	)
	for t in $rust; do
		mkdir -p "$out/$t"
		cp "$target/wasm32-unknown-unknown/release/$t.wasm" "$out/$t/$(rust_module "$t")"
	done
}

test_rust() {
	toolchain
	cd "$work"
	PATH="$bin:$PATH" CARGO_TARGET_DIR="$target" "$cargo" test --quiet --offline --workspace --lib --tests
}

# rust_module is the name of a module from Rust. A job that takes either language by a variable has to name both.
rust_module() {
	case $1 in
	convert) echo convert-rust.wasm ;;
	*) echo "$1.wasm" ;;
	esac
}

# copy brings a crate into the workspace: its manifests, words and sources.
copy() {
	mkdir -p "$work/$1"
	for f in Cargo.toml README.md manifest.json src examples tests; do
		if [ -e "$root/$1/$f" ]; then cp -R "$root/$1/$f" "$work/$1/"; fi
	done
}

case $lang in
go) build_go ;;
rust) build_rust ;;
test) test_rust ;;
all) build_go && build_rust ;;
*) echo "usage: build.sh [go|rust] [OUTDIR], or build.sh test" >&2 && exit 2 ;;
esac
