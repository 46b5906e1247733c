/* Shows the pinned clock and the seeded random numbers: whole seconds of the wall clock, whether clocks run forwards, then
 * 40 random bytes in two calls. INIT draws the bytes in init. */
#define OWN_INIT
#include "guest.h"

WM_IMPORT("wasi_snapshot_preview1", "clock_time_get") int32_t clock_time_get(int32_t id, int64_t precision, uint64_t *t);
WM_IMPORT("wasi_snapshot_preview1", "random_get") int32_t random_get(uint8_t *p, u32 n);

static uint8_t bytes[40];
static uint64_t at_init;

static void draw(void) {
    for (u32 i = 0; i < sizeof bytes; i++) bytes[i] = 0;
    random_get(bytes, 24);
    random_get(bytes + 24, 16);
}

WM_EXPORT("wasmill_init") int32_t init(u32 p, u32 len, u32 max_frame) {
    clock_time_get(0, 1, &at_init);
    draw();
    return 0;
}

BATCH(f) {
    uint64_t wall = 0, wall2 = 0, mono = 0, mono2 = 0;
    int32_t rc = clock_time_get(0, 1, &wall) | clock_time_get(0, 1, &wall2) | clock_time_get(1, 1, &mono) |
                 clock_time_get(1, 1, &mono2);
#ifndef INIT
    draw();
#endif
    put("errno "), put_int(rc), put(" init "), put_int((int64_t)(at_init / 1000000000)), put(" wall ");
    put_int((int64_t)(wall / 1000000000)), put(wall2 >= wall && mono2 >= mono && mono ? " forwards" : " backwards");
    put(" random ");
    for (u32 i = 0; i < sizeof bytes; i++) put_hex(bytes[i], 2);
    emit_text(WM_NO_INDEX);
    return 0;
}
