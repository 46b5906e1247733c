/* One bad end of wasmill_batch each. POISON does it only at a record whose value starts with "poison". */
#include "guest.h"

WM_IMPORT("wasi_snapshot_preview1", "proc_exit") _Noreturn void proc_exit(int32_t code);
WM_IMPORT("env", "abort") void env_abort(u32 message, u32 file, u32 line, u32 column);

typedef void (*nothing)(void);
typedef int64_t (*other)(int64_t, int64_t);

static volatile int32_t zero, one = 1, minus = -1;
static volatile float large = 1e30f;
static int32_t one_argument(int32_t a) { return a + 1; }
static int32_t (*volatile known)(int32_t) = one_argument;

__attribute__((noinline)) static int32_t recurse(int32_t n) { return zero ? n : recurse(n + 1) ^ recurse(n + 2); }

static int32_t end(wm_frame *f) {
    static const char why[] = "no such currency";
#if defined STATUS
    return STATUS;
#elif defined STATUS_TEXT
    f->error_text = address(why), f->error_len = sizeof why - 1;
    return 7;
#elif defined STATUS_WILD_TEXT
    f->error_text = 0xfffffff0u, f->error_len = 4096;
    return 7;
#elif defined STATUS_LONG_TEXT
    static char xs[5000];
    for (u32 i = 0; i < sizeof xs; i++) xs[i] = 'x';
    f->error_text = address(xs), f->error_len = sizeof xs;
    return 7;
#elif defined UNREACHABLE
    __builtin_trap();
#elif defined MEMORY
    return *(volatile int32_t *)at(0xfffffff0u);
#elif defined DIVIDE
    return one / zero;
#elif defined REMAINDER
    return one % zero;
#elif defined INTEGER_OVERFLOW
    return (INT32_MIN + zero) / minus;
#elif defined CONVERSION
    return __builtin_wasm_trunc_s_i32_f32(large);
#elif defined CONVERSION_NAN
    return __builtin_wasm_trunc_s_i32_f32(large * 1e30f - large * 1e30f);
#elif defined INDIRECT_TYPE
    return (int32_t)((other)(uintptr_t)known)(1, 2);
#elif defined INDIRECT_NULL
    ((nothing)(uintptr_t)(u32)zero)();
#elif defined TABLE
    ((nothing)(uintptr_t)(u32)(zero + 100000))();
#elif defined DEPTH
    return recurse(zero);
#elif defined LOOP
    for (;;) __asm__ volatile("");
#elif defined EXIT
    proc_exit(EXIT);
#elif defined ABORT
    env_abort(0, 0, 12, 34);
#else
#error which end?
#endif
    return 0;
}

BATCH(f) {
    wm_host_emit(at(f->records), f->count, f->stride);
#ifdef POISON
    EACH(r, f) {
#ifdef PROGRESS
        f->progress = PROGRESS;
#endif
        if (starts(r, "poison")) return end(f);
    }
    return 0;
#else
    return end(f);
#endif
}
