#!/usr/bin/env bash
# Rebuilds the committed guests from their sources, always to the same bytes. Installs no toolchain of the system's; says what
# is missing. Zig and AssemblyScript come as packages of pip and npm, in the versions written below.
#   build.sh [OUTDIR]     into this folder, unless told otherwise; packages are kept in $WASMILL_TOOLS, build results in
#                         $CARGO_TARGET_DIR
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
root="$(cd "$here/../../.." && pwd)"
out="${1:-$here}"
tools="${WASMILL_TOOLS:-$root/.ci/.cache/guests}"
target="${CARGO_TARGET_DIR:-$tools/rust}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$tools" "$out/wasm" "$out/debug"
out="$(cd "$out" && pwd)"
cargo="${WASMILL_CARGO:-/usr/bin/cargo}"
zig=0.17.0

missing() {
	echo "build.sh: $1 is missing: $2" >&2
	exit 3
}

debian='Debian: apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32 libc++-19-dev-wasm32 libc++abi-19-dev-wasm32'
command -v clang-19 >/dev/null || missing clang-19 "$debian"
command -v wasm-ld-19 >/dev/null || missing wasm-ld-19 "$debian"
[ -d /usr/include/wasm32-wasi ] || missing wasi-libc "$debian"
[ -x "$cargo" ] || missing "$cargo" 'Debian: apt-get install rustc-web cargo-web rust-web-src lld-19, or set WASMILL_CARGO'
command -v npm >/dev/null || missing npm 'Debian: apt-get install nodejs npm'

# What every C guest is compiled with; bare ones have no C library, and those of wasi have.
flags=(-mbulk-memory -I"$root/abi/sdk/c" -Wl,-z,stack-size=65536)
first=(-Wl,--stack-first)
bare=(--target=wasm32 -nostdlib -std=c11 -O3 -Wall -Wextra -Werror -Wl,--no-entry "${flags[@]}" "${first[@]}")
wasi=(--target=wasm32-wasi -mexec-model=reactor -O2 "${flags[@]}" "${first[@]}" -Wl,--strip-all)

build_c() {
	local name
	for name in scan floats; do clang-19 "${bare[@]}" -Wl,--strip-all -o "$out/wasm/c-$name.wasm" "$here/src/c/$name.c"; done
	for name in simd fields; do clang-19 "${bare[@]}" -msimd128 -Wl,--strip-all -o "$out/wasm/c-$name.wasm" "$here/src/c/$name.c"; done
	clang++-19 "${wasi[@]}" -std=c++17 -fno-exceptions -Wall -Wextra -Werror -o "$out/wasm/cpp-containers.wasm" "$here/src/cpp/containers.cpp"
	# Paths that would say where the sources lie become relative to the repository.
	clang-19 "${bare[@]}" -O1 -g -gdwarf-5 -ffile-prefix-map="$root"=. -ffile-prefix-map=/usr/lib/llvm-19=/llvm -fdebug-compilation-dir=. \
		-o "$out/debug/trap-c.wasm" "$here/debug/trap.c"
}

# QuickJS is C source inside a crate.
build_js() {
	mkdir -p "$work/js"
	cp "$here/src/js/"{Cargo.toml,Cargo.lock} "$work/js/"
	touch "$work/js/lib.rs"
	(cd "$work/js" && "$cargo" vendor --quiet --locked vendor >/dev/null)
	local quickjs="$work/js/vendor/rquickjs-sys/quickjs"
	clang-19 "${wasi[@]}" -std=gnu2x -w -Wl,-z,stack-size=1048576 -I"$quickjs" -ffile-prefix-map="$work"=. -ffile-prefix-map="$root"=. \
		-D_GNU_SOURCE -D_WASI_EMULATED_PROCESS_CLOCKS -D_WASI_EMULATED_SIGNAL -o "$out/wasm/quickjs.wasm" \
		"$here/src/js/shim.c" "$quickjs"/{quickjs,libregexp,libunicode,dtoa}.c -lwasi-emulated-process-clocks -lwasi-emulated-signal
}

build_zig() {
	if [ ! -x "$tools/zig-$zig/bin/python" ]; then
		python3 -m venv "$tools/zig-$zig"
		"$tools/zig-$zig/bin/pip" install --quiet "ziglang==$zig"
	fi
	export ZIG_GLOBAL_CACHE_DIR="$tools/zig-cache" ZIG_LOCAL_CACHE_DIR="$tools/zig-cache"
	local run=("$tools/zig-$zig/bin/python" -m ziglang) name
	for name in scan simd; do
		"${run[@]}" cc -target wasm32-freestanding -nostdlib -std=c11 -O3 -msimd128 "${flags[@]}" -Wl,--no-entry -s -o "$out/wasm/zigcc-$name.wasm" "$here/src/c/$name.c"
	done
	(
		cd "$here/src/zig"
		"${run[@]}" build-exe scan.zig -target wasm32-freestanding -fno-entry -rdynamic -fstrip -O ReleaseFast --stack 65536 -femit-bin="$work/zig.wasm"
		"${run[@]}" build-exe scan.zig -target wasm32-freestanding -fno-entry -rdynamic -fstrip -O ReleaseSafe --stack 65536 -femit-bin="$work/zigsafe.wasm"
	)
	cp "$work/zig.wasm" "$out/wasm/zig-scan.wasm"
	cp "$work/zigsafe.wasm" "$out/wasm/zig-safe.wasm"
}

build_as() {
	mkdir -p "$tools/as"
	cp "$here/src/as/"* "$tools/as/"
	(
		cd "$tools/as"
		npm ci --silent --no-fund --no-audit
		for name in scan floats; do npx asc $name.ts -o "$out/wasm/as-$name.wasm" -O3 --runtime stub --noAssert --use abort=; done
		npx asc json.ts -o "$out/wasm/as-json.wasm" -O3 --runtime minimal --noAssert --enable simd --use abort= --transform json-as
	)
}

build_rust() {
	local linker="${WASMILL_WASM_LD:-wasm-ld-19}" bin std crate
	bin="$(dirname "$cargo")"
	std="$("$bin/rustc" --print sysroot)/lib/rustlib/src/rust"
	[ -d "$std/library/vendor" ] || missing "the source of Rust's standard library" 'Debian: apt-get install rust-web-src'
	# One workspace in a folder of its own: cargo hashes where crates lie, and the hashes order the functions of a module.
	local copy="$work/rust"
	for crate in abi/sdk/rust host/sandbox/guests/src/rust; do
		mkdir -p "$copy/$crate"
		(cd "$root/$crate" && tar -c --exclude=target .) | tar -x -C "$copy/$crate"
	done
	cp -r "$here/debug/rust" "$copy/trap"
	mv "$copy/host/sandbox/guests/src/rust/"Cargo.* "$copy/"
	(
		cd "$copy"
		PATH="$bin:$PATH" RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$target" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$linker" \
			RUSTFLAGS="--remap-path-prefix=$(readlink -f "$std")=/rust --remap-path-prefix=$std=/rust --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=/crates" \
			"$cargo" build --quiet --release --workspace --target wasm32-unknown-unknown -Z build-std=std,panic_abort ${WASMILL_LOCKED---locked}
		[ -n "${WASMILL_LOCKED---locked}" ] || cp Cargo.lock "$here/src/rust/"
	)
	for crate in scan serde fields floats hashmap; do cp "$target/wasm32-unknown-unknown/release/rust_$crate.wasm" "$out/wasm/rust-$crate.wasm"; done
	cp "$target/wasm32-unknown-unknown/release/trap.wasm" "$out/debug/trap-rust.wasm"
}

build_c
build_js
build_zig
build_as
build_rust
chmod 644 "$out"/{wasm,debug}/*.wasm
(cd "$out" && sha256sum wasm/*.wasm debug/*.wasm >SHA256SUMS)
