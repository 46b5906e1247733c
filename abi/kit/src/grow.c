/* Grows its memory: by 16 pages a frame and uses them, or (UNTIL) as far as it gets. */
#include "guest.h"

BATCH(f) {
#ifdef UNTIL
    while (__builtin_wasm_memory_grow(0, 1) != (size_t)-1) {}
#else
    size_t page = __builtin_wasm_memory_grow(0, 16);
    for (u32 i = 0; i < 16 * 65536; i += 4096) *(volatile uint8_t *)at((u32)page * 65536 + i) = 1;
#endif
    put_int((int64_t)__builtin_wasm_memory_size(0)), put(" pages");
    emit_text(WM_NO_INDEX);
    return 0;
}
