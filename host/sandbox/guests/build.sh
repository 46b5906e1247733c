#!/usr/bin/env bash
# Rebuilds every committed guest from its source, always to the same bytes. Installs nothing; says what is missing.
#   build.sh [OUTDIR]     into this folder, unless told otherwise
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
out="${1:-$here}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$out/wasm" "$out/debug"

missing() {
	echo "build.sh: $1 is missing: $2" >&2
	exit 3
}

# Paths that would say where the sources lay become relative to the repository, and those of the compiler short.
maps=(-ffile-prefix-map="$root"=. -ffile-prefix-map=/usr/lib/llvm-19=/llvm -fdebug-compilation-dir=.)
bare=(--target=wasm32 -mbulk-memory -nostdlib -Wall -Wextra -Werror -I"$root/abi/sdk/c"
	-Wl,--no-entry -Wl,--stack-first -Wl,-z,stack-size=65536)

build_debug_c() {
	command -v clang-19 >/dev/null || missing clang-19 "Debian: apt-get install clang-19 lld-19"
	clang-19 -std=c11 -O1 -g -gdwarf-5 "${bare[@]}" "${maps[@]}" -o "$out/debug/trap-c.wasm" "$here/debug/trap.c"
}

build_rust() {
	local cargo="${WASMILL_CARGO:-/usr/bin/cargo}" linker="${WASMILL_WASM_LD:-wasm-ld-19}"
	[ -x "$cargo" ] || missing "$cargo" "Debian: apt-get install rustc-web cargo-web rust-web-src lld-19, or set WASMILL_CARGO"
	local bin std
	bin="$(dirname "$cargo")"
	std="$("$bin/rustc" --print sysroot)/lib/rustlib/src/rust"
	[ -d "$std/library/vendor" ] || missing "the source of Rust's standard library" "Debian: apt-get install rust-web-src"
	local target="${CARGO_TARGET_DIR:-$root/.ci/.cache/rust-guests}"
	# One workspace in a folder of its own: cargo hashes where crates lie, and the hashes order the functions of a module.
	mkdir -p "$work/rust"
	cp -r "$here/debug/rust" "$work/rust/trap"
	cat >"$work/rust/Cargo.toml" <<-END
		[workspace]
		resolver = "3"
		members = ["*"]
		[profile.release]
		panic = "abort"
		lto = true
		codegen-units = 1
		opt-level = 3
		strip = true
		[profile.release.package.trap]
		opt-level = 2
		debug = 2
		strip = "none"
	END
	(
		cd "$work/rust"
		PATH="$bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
			RUSTFLAGS="--remap-path-prefix=$(readlink -f "$std")=/rust --remap-path-prefix=$std=/rust --remap-path-prefix=$PWD=." \
			"$cargo" build --quiet --release --workspace --target wasm32-unknown-unknown -Z build-std=std,panic_abort
	)
	cp "$target/wasm32-unknown-unknown/release/trap.wasm" "$out/debug/trap-rust.wasm"
}

build_debug_c
build_rust
