/* One bad start each, at the beginning (AT_START) or only once a frame is asked for or run. */
#define OWN_ALLOC
#define OWN_INIT
#include "guest.h"

static uint8_t arena[262288 + 32] __attribute__((aligned(16)));
static u32 calls;

#if defined ALLOC_STATE
WM_IMPORT("wasmill_1", "state_write") void host_write(void *ops, u32 count);
#endif
WM_IMPORT("wasi_snapshot_preview1", "proc_exit") _Noreturn void proc_exit(int32_t code);

static void emit_one(void) {
    static wm_record r;
    r = blank();
    wm_host_emit(&r, 1, sizeof r);
}

static void loop(void) {
    for (;;) __asm__ volatile("");
}

WM_EXPORT("wasmill_alloc") u32 alloc(u32 len) {
    calls++;
    if (calls >= FROM_CALL) {
#if defined ALLOC_0
        return 0;
#elif defined ALLOC_MISALIGNED
        return address(arena) + 8;
#elif defined ALLOC_END /* n bytes from here end one byte outside memory, up to alignment */
        return (u32)__builtin_wasm_memory_size(0) * 65536 - (len & ~15u) + (len % 16 ? 0 : 16);
#elif defined ALLOC_OUTSIDE
        return 0x7ffffff0;
#elif defined ALLOC_OVERFLOW /* ptr + n wraps round to a small number */
        return 0xfffffff0u;
#elif defined ALLOC_TRAP
        __builtin_trap();
#elif defined ALLOC_EMIT
        emit_one();
#elif defined ALLOC_STATE
        host_write(0, 0);
#elif defined ALLOC_LOOP
        loop();
#endif
    }
    return address(arena);
}

WM_EXPORT("wasmill_init") int32_t init(u32 config, u32 len, u32 max_frame) {
    static const char one[] = "looking at the config", two[] = "config: rate is missing";
#if defined INIT_NONZERO
    wm_host_log(WM_INFO, one, sizeof one - 1);
    wm_host_log(WM_ERROR, two, sizeof two - 1);
    return 3;
#elif defined INIT_TRAP
    wm_host_log(WM_ERROR, two, sizeof two - 1);
    __builtin_trap();
#elif defined INIT_EMIT
    emit_one();
#elif defined INIT_EXIT
    proc_exit(0);
#elif defined INIT_LOOP
    loop();
#endif
    return 0;
}

BATCH(f) {
    wm_host_emit(at(f->records), f->count, f->stride);
    return 0;
}
