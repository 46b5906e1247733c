#!/usr/bin/env bash
# Builds every guest of the kit into wasm/ from src/ and from the tables below. Needs clang-19 and lld-19 (C guests) and
# wabt's wat2wasm (WAT guests). The results are committed: who only runs the kit needs none of these. Writes
# the digests to SHA256SUMS.
set -euo pipefail
cd "$(dirname "$0")"
rm -rf wasm && mkdir wasm

CFLAGS=(--target=wasm32 -std=c11 -Os -mbulk-memory -fno-builtin -nostdlib -Wall -Werror -Wno-unused
	-Wl,--no-entry -Wl,--stack-first -Wl,-z,stack-size=65536 -Wl,--strip-all)

# c NAME SOURCE [FLAG...]
c() { clang-19 "${CFLAGS[@]}" "${@:3}" -o "wasm/$1.wasm" "src/$2.c"; }

# wat NAME SOURCE
wat() { wat2wasm -o "wasm/$1.wasm" "src/$2.wat"; }

# leb N: N as unsigned LEB128
leb() {
	local n=$1
	while ((n > 127)); do
		printf "\\x$(printf %02x $((n & 127 | 128)))"
		n=$((n >> 7))
	done
	printf "\\x$(printf %02x "$n")"
}

# custom TITLE TEXT: a custom section
custom() {
	local LC_ALL=C
	printf '\x00'
	leb $((1 + ${#1} + ${#2}))
	leb ${#1}
	printf '%s%s' "$1" "$2"
}

# section NAME BASE TEXT...: module BASE with one custom section "wasmill" for each text
section() {
	cp "wasm/$2.wasm" "wasm/$1.wasm"
	local text
	for text in "${@:3}"; do custom wasmill "$text" >>"wasm/$1.wasm"; done
}

FEATURES=()
# shape NAME [PART=TEXT...]: a module that would be good, with some parts replaced
shape() {
	local IMPORTS='' MEMORY='(memory (export "memory") 8)' REST=''
	local ALLOC='(func (export "wasmill_alloc") (param i32) (result i32) (i32.const 65536))'
	local INIT='(func (export "wasmill_init") (param i32 i32 i32) (result i32) (i32.const 0))'
	local BATCH='(func (export "wasmill_batch") (param i32 i32) (result i32) (i32.const 0))'
	local EMIT='(import "wasmill_1" "emit" (func (param i32 i32 i32)))'
	local part
	for part in "${@:2}"; do declare "${part%%=*}=${part#*=}"; done
	printf '(module\n%s\n%s\n%s\n%s\n%s\n%s\n%s)\n' "$EMIT" "$IMPORTS" "$MEMORY" "$ALLOC" "$INIT" "$BATCH" "$REST" |
		wat2wasm "${FEATURES[@]}" -o "wasm/$1.wasm" -
}

# Good guests.
for name in echo ports fields nulls ignored times dead count config context wasi silent; do c $name $name; done
c echo-copy echo_copy
c odd odd
c ports-bare ports -DBARE
c frame-shape shape
c virtual virtual
c virtual-init virtual -DINIT
c grow grow
c grow-until grow -DUNTIL
c big big -DSIZE=1048576 -DTIMES=1
c stdio stdio -DLINES=2
c stdio-flood stdio -DLINES=10000
c log log -DLINES=5
c log-flood log -DLINES=10000
c log-tail bad_log -DTAIL
c log-million log -DLINES=1000000
{ cat wasm/echo.wasm && custom name $'\x01\x05\xff\xff\xff\xff\xff' && custom .debug_info $'\xff'; } >wasm/custom-sections.wasm
c alloc-small small_alloc
c alloc-small-trap small_alloc -DTRAP
wat order order
wat image image
shape log-unused 'IMPORTS=(import "wasmill_1" "log" (func (param i32 i32 i32)))'
shape state-read 'IMPORTS=(import "wasmill_1" "state_read" (func (param i32 i32 i32 i32 i32) (result i32)))'
shape state-write 'IMPORTS=(import "wasmill_1" "state_write" (func (param i32 i32)))'
shape data-count 'REST=(data $d "x") (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1)))'

# Refused before anything runs: shape.
shape no-memory MEMORY=
shape memory-not-exported 'MEMORY=(memory 8)'
shape memory-other-name 'MEMORY=(memory (export "mem") 8)'
shape no-alloc ALLOC=
shape no-init INIT=
shape no-batch BATCH=
shape batch-not-function 'BATCH=(global (export "wasmill_batch") i32 (i32.const 0))'
shape alloc-type 'ALLOC=(func (export "wasmill_alloc") (param i64) (result i32) (i32.const 65536))'
shape init-type 'INIT=(func (export "wasmill_init") (param i32 i32) (result i32) (i32.const 0))'
shape batch-type 'BATCH=(func (export "wasmill_batch") (param i32 i32))'
shape initialize-type 'REST=(func (export "_initialize") (param i32))'
shape import-module 'IMPORTS=(import "host" "now" (func (result i64)))'
shape import-name 'IMPORTS=(import "wasmill_1" "teleport" (func (param i32)))'
shape import-type 'IMPORTS=(import "wasmill_1" "log" (func (param i32 i32)))'
shape import-env 'IMPORTS=(import "env" "seed" (func (result f64)))'
shape import-abort-type 'IMPORTS=(import "env" "abort" (func (param i32)))'
shape import-wasi-type 'IMPORTS=(import "wasi_snapshot_preview1" "random_get" (func (param i64 i32) (result i32)))'
shape import-wasi-result 'IMPORTS=(import "wasi_snapshot_preview1" "no_such_call" (func (param i32) (result i64)))'
shape import-wasi-unstable 'IMPORTS=(import "wasi_unstable" "fd_write" (func (param i32 i32 i32 i32) (result i32)))'
shape import-memory 'MEMORY=(import "env" "memory" (memory 8)) (export "memory" (memory 0))'
shape import-table 'IMPORTS=(import "env" "table" (table 1 funcref))'
shape import-global 'IMPORTS=(import "env" "base" (global i32))'
shape import-global-abi 'IMPORTS=(import "wasmill_1" "emit" (global i32))' EMIT=
shape import-state-type 'IMPORTS=(import "wasmill_1" "state_read" (func (param i32 i32 i32 i32) (result i32)))'
shape abi-2 'EMIT=(import "wasmill_2" "emit" (func (param i32 i32 i32)))'
shape abi-both 'IMPORTS=(import "wasmill_2" "emit" (func (param i32 i32 i32)))'
shape memory-too-large 'MEMORY=(memory (export "memory") 1025)'
shape memory-4g 'MEMORY=(memory (export "memory") 65536)'
c abi-none silent -DBARE

# Refused before anything runs: manifest. Each is a good one but for one thing.
head='{"abi": 1, "name": "x", "version": "1.0.0"'
inputs='"inputs": [{"name": "in"}]'
outputs='"outputs": [{"name": "out"}]'
good="$head, $inputs, $outputs}"
section manifest-good echo "$good"
section manifest-broken echo "$head, $inputs, $outputs"
section manifest-trailing echo "$good {}"
section manifest-not-object echo "[$good]"
section manifest-empty echo ''
section manifest-duplicate echo "$head, \"name\": \"y\", $inputs, $outputs}"
section manifest-unknown echo "$head, \"colour\": \"red\", $inputs, $outputs}"
section manifest-utf8 echo "${good/1.0.0/$'\xff'}"
section manifest-two echo "$good" "$good"
section manifest-64k echo "$good$(printf '%65536s' '')"
section manifest-name echo "${good/'"x"'/'"Not Good"'}"
section manifest-port-twice echo "$head, $inputs, \"outputs\": [{\"name\": \"a\"}, {\"name\": \"a\"}]}"
section manifest-17-ports echo "$head, $inputs, \"outputs\": [$(printf '{"name": "p%d"},' {1..16}){\"name\": \"p17\"}]}"
section manifest-65-fields echo "$head, \"inputs\": [{\"name\": \"in\", \"fields\": [$(printf '"/f%d",' {1..64})\"/f65\"]}], $outputs}"
section manifest-pointer echo "$head, \"inputs\": [{\"name\": \"in\", \"fields\": [\"amount\"]}], $outputs}"
section manifest-table-type echo "$head, $inputs, $outputs, \"tables\": [{\"name\": \"t\", \"type\": \"text\"}]}"
section manifest-updates echo "$head, $inputs, \"outputs\": [{\"name\": \"out\", \"updates\": \"yes\"}]}"
section manifest-abi-2 echo "${good/1/2}"
section manifest-abi-2-silent abi-none "${good/1/2}"

# Refused before anything runs: no module at all.
printf 'hello, I am a text\n' >wasm/text.wasm
printf '(module (memory (export "memory") 1))\n' >wasm/wat-text.wasm
: >wasm/empty.wasm
printf '\x00asm' >wasm/magic-only.wasm
printf '\x00asm\x0d\x00\x01\x00' >wasm/component.wasm
printf '\x00asm\x02\x00\x00\x00' >wasm/version-2.wasm
printf '\x7fELF\x02\x01\x01%057d' 0 >wasm/elf.wasm
gzip -9 -n -c wasm/echo.wasm >wasm/gzip.wasm
head -c 200 wasm/ports.wasm >wasm/truncated.wasm
{
	cat wasm/echo.wasm
	printf 'and then some'
} >wasm/trailing.wasm
# A function with 2^32-1 locals: 38 bytes that cost a careless compiler gigabytes.
{
	printf '\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00'
	printf '\x0a\x0a\x01\x08\x01\xff\xff\xff\xff\x0f\x7f\x0b'
} >wasm/locals.wasm

# Refused for what they would cost, or for what WebAssembly 2.0 has not.
shape table-huge 'REST=(table 134217728 funcref)'
FEATURES=(--enable-threads)
shape feature-threads 'MEMORY=(memory (export "memory") 8 16 shared)'
FEATURES=(--enable-memory64)
shape feature-memory64 'MEMORY=(memory (export "memory") i64 8)'
FEATURES=(--enable-multi-memory)
shape feature-two-memories 'REST=(memory 1)'
FEATURES=(--enable-tail-call)
shape feature-tail-call 'REST=(func $f (return_call $f))'
FEATURES=(--enable-exceptions)
shape feature-exceptions 'REST=(tag $t) (func (throw $t))'
FEATURES=()

# Refused at start.
first=-DFROM_CALL=1
second=-DFROM_CALL=2
for kind in 0 misaligned end outside overflow trap emit loop; do
	flag=-DALLOC_$(tr a-z A-Z <<<$kind)
	c start-alloc-$kind bad_start $first "$flag"
	c batch-alloc-$kind bad_start $second "$flag"
done
c batch-alloc-state bad_start $second -DALLOC_STATE
for kind in nonzero trap emit exit loop; do
	c start-init-$kind bad_start $first "-DINIT_$(tr a-z A-Z <<<$kind)"
done
shape start-section-trap 'REST=(func $s unreachable) (start $s)'
shape start-initialize-trap 'REST=(func (export "_initialize") unreachable)'
shape start-section-loop 'REST=(func $s (loop $l (br $l))) (start $s)'
shape start-data-outside 'REST=(data (i32.const 0x7fffffff) "x")'
shape start-elem-outside 'REST=(table 1 funcref) (func $f) (elem (i32.const 5) $f)'

# Bad output.
for kind in wild-records end-of-memory count-lie count-overflow stride-48 stride-60 stride-0 misaligned wild-value \
	value-overflow value-2g value-minus-2 key-minus-2 wild-key port kind kind-timer flags reserved headers-65 \
	headers-wild headers-misaligned header-wild-name header-wild-value header-minus-2 index-foreign index-gap \
	time-early time-late dead-foreign dead-nowhere dead-twice dead-and-fail dead-code dead-port dead-key \
	dead-headers fail-foreign; do
	c emit-$kind bad_emit "-D$(tr a-z- A-Z_ <<<$kind)"
done
c output-quota big -DSIZE=65536 -DTIMES=17
c output-record-over-16m big -DSIZE=16777216 -DTIMES=1
c log-wild bad_log

# State.
c state state
c state-count state_count
c state-limit bad_state -DAT_LIMIT
for call in read=1 write=3; do
	what=-D$(tr a-z A-Z <<<$call)
	c state-${call%=*}-none bad_state "$what" -DOPS_NONE
	c state-${call%=*}-init bad_state "$what" -DIN_INIT
	for kind in ops-misaligned ops-wild ops-count ops-overflow flags table key-wild key-null key-long sub-wild; do
		c state-${call%=*}-$kind bad_state "$what" "-D$(tr a-z- A-Z_ <<<$kind)"
	done
done
for kind in buf-misaligned buf-wild buf-over-ops need-misaligned need-wild need-in-ops need-in-buf second; do
	c state-read-$kind bad_state -DREAD=1 "-D$(tr a-z- A-Z_ <<<$kind)"
done
for kind in time-early time-late value-none value-wild value-long value-minus-2; do
	c state-put-$kind bad_state -DWRITE=3 "-D$(tr a-z- A-Z_ <<<$kind)"
done
for kind in time-early time-late timer-table timer-domain; do
	c state-timer-$kind bad_state -DWRITE=6 "-D$(tr a-z- A-Z_ <<<$kind)"
done
c state-scan-minus-2 bad_state -DREAD=2 -DVALUE_MINUS_2
c state-delete-prefix-minus-2 bad_state -DWRITE=5 -DVALUE_MINUS_2
c state-read-0 bad_state -DREAD=0
c state-read-put bad_state -DREAD=3
c state-write-get bad_state -DWRITE=1
c state-write-8 bad_state -DWRITE=8
c state-get bad_state -DREAD=1
c state-put bad_state -DWRITE=3

# Bad ends.
c status-7 bad_end -DSTATUS=7
c status-minus-5 bad_end -DSTATUS=-5
for kind in status-text status-wild-text status-long-text unreachable memory divide remainder integer-overflow conversion \
	conversion-nan indirect-type indirect-null table depth loop abort; do
	c end-$kind bad_end "-D$(tr a-z- A-Z_ <<<$kind)"
done
c exit-0 bad_end -DEXIT=0
c exit-1 bad_end -DEXIT=1
c poison bad_end -DPOISON -DUNREACHABLE
c poison-progress bad_end -DPOISON -DUNREACHABLE -DPROGRESS=r-\>index
c poison-wild-progress bad_end -DPOISON -DUNREACHABLE -DPROGRESS=123456
c poison-status bad_end -DPOISON -DSTATUS_TEXT -DPROGRESS=r-\>index

chmod 644 wasm/*.wasm
sha256sum wasm/*.wasm >SHA256SUMS
printf '%s files, %s bytes\n' "$(ls wasm | wc -l)" "$(cat wasm/* | wc -c)"
