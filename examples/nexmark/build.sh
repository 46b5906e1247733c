#!/bin/sh
# Rebuilds the queries' own transforms, always to the same bytes. Installs nothing; says what is missing.   build.sh [OUTDIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:-$here/modules}
cargo=${WASMILL_CARGO:-/usr/bin/cargo}
linker=${WASMILL_WASM_LD:-wasm-ld-19}

missing() {
	echo "build.sh: $1 is missing: $2" >&2
	exit 3
}

[ -x "$cargo" ] || missing "$cargo" "Debian: apt-get install rustc-web cargo-web rust-web-src lld-19, or set WASMILL_CARGO"
command -v "$linker" >/dev/null || missing "$linker" "Debian: apt-get install lld-19, or set WASMILL_WASM_LD"
bin=$(dirname "$cargo")
std=$("$bin/rustc" --print sysroot)/lib/rustlib/src/rust
[ -d "$std/library/vendor" ] || missing "the source of Rust's standard library" "Debian: apt-get install rust-web-src"
target=${CARGO_TARGET_DIR:-$root/abi/sdk/rust/target}
# One workspace in a folder of its own: cargo hashes where crates lie outside of the workspace, and the hashes order the
# functions of a module.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/abi/sdk/rust" "$work/examples/nexmark/guests"
for f in Cargo.toml README.md src examples; do cp -R "$root/abi/sdk/rust/$f" "$work/abi/sdk/rust/"; done
for guest in "$here"/guests/*/; do cp -R "$guest" "$work/examples/nexmark/guests/"; done
rm -rf "$work/examples/nexmark/guests/target"
cat >"$work/Cargo.toml" <<-EOF
	[workspace]
	resolver = "3"
	members = ["abi/sdk/rust", "examples/nexmark/guests/*"]
	$(sed -n '/^\[profile.release\]/,$p' "$here/guests/Cargo.toml")
EOF
(
	cd "$work"
	PATH="$bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
		RUSTFLAGS="--remap-path-prefix=$(readlink -f "$std")=/rust --remap-path-prefix=$std=/rust" \
		"$cargo" build --quiet --offline --release --workspace --target wasm32-unknown-unknown -Z build-std=std,panic_abort \
		--config 'source.crates-io.replace-with="std"' --config "source.std.directory=\"$std/library/vendor\""
)
mkdir -p "$out"
for guest in "$work"/examples/nexmark/guests/*/; do
	guest=$(basename "$guest")
	cp "$target/wasm32-unknown-unknown/release/$guest.wasm" "$out/"
done
