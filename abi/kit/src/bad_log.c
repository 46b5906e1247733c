/* Breaches the rules of log: a wild text; a text that is wild only beyond the part that would be shown. */
#include "guest.h"

BATCH(f) {
#ifdef TAIL
    u32 p = (u32)__builtin_wasm_memory_size(0) * 65536 - 2048;
    wm_host_log(WM_INFO, at(p), 4096);
#else
    wm_host_log(WM_INFO, at(0xfffffff0u), 64);
#endif
    wm_host_emit(at(f->records), f->count, f->stride);
    return 0;
}
