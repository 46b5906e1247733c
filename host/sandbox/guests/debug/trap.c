/* Traps on demand: the value of a record says how. Built with debug information and names, to show what a message of a
 * trap can say. Any other record is emitted as it lies. */
#include "wasmill_abi.h"

#define NOINLINE __attribute__((noinline))

static unsigned char arena[262288 + 16] __attribute__((aligned(16)));
static volatile int zero, least = -2147483647 - 1, minus = -1;
static volatile float large = 3e38f;
static volatile uint32_t wild = 0xfffffff0;

WM_EXPORT("wasmill_alloc") void *guest_alloc(uint32_t n) { return n <= sizeof arena ? arena : 0; }

WM_EXPORT("wasmill_init") int guest_init(const char *config, uint32_t n, uint32_t max_frame) {
    return (void)config, (void)n, (void)max_frame, 0;
}

NOINLINE static int divide(int a) {
    return a / zero;
}

NOINLINE static int overflow(void) {
    return least / minus;
}

NOINLINE static int convert(void) {
    return __builtin_wasm_trunc_s_i32_f32(large);
}

NOINLINE static int wild_load(void) {
    return *(volatile int *)(uintptr_t)wild;
}

static void (*volatile target)(int);

NOINLINE static void indirect(void) {
    target(1); /* a null pointer: element 0 of the table */
}

NOINLINE static int deeper(int n) {
    volatile int kept = n;
    return kept < 0 ? 0 : deeper(n + 1) + kept;
}

NOINLINE static void spin(void) {
    for (volatile uint32_t i = 0;; i++) {
    }
}

/* inlined is to appear in messages as a frame of its own, although it is part of its caller. */
__attribute__((always_inline)) static inline int inlined(int a) {
    int b = a + 1;
    return divide(b);
}

static int is(const wm_record *r, const char *word) {
    const char *value = (const char *)(uintptr_t)r->value;
    int32_t i = 0;
    for (; word[i]; i++)
        if (i >= r->value_len || value[i] != word[i]) return 0;
    return i == r->value_len;
}

NOINLINE static int on_record(const wm_record *r) {
    if (is(r, "unreachable"))
        __builtin_trap();
    if (is(r, "divide"))
        return divide(7);
    if (is(r, "inlined"))
        return inlined(7) + 1;
    if (is(r, "overflow"))
        return overflow();
    if (is(r, "conversion"))
        return convert();
    if (is(r, "memory"))
        return wild_load();
    if (is(r, "indirect"))
        indirect();
    if (is(r, "depth"))
        return deeper(0);
    if (is(r, "fuel"))
        spin();
    wm_host_emit(r, 1, sizeof *r);
    return 0;
}

WM_EXPORT("wasmill_batch") int guest_batch(wm_frame *frame, uint32_t n) {
    (void)n;
    uint32_t at = frame->records;
    int sum = 0;
    for (uint32_t i = 0; i < frame->count; i++, at += frame->stride) {
        const wm_record *r = (const wm_record *)(uintptr_t)at;
        frame->progress = r->index;
        sum += on_record(r);
    }
    return sum;
}
