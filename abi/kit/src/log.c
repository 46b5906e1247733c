/* Logs LINES lines of different levels, in init too, and emits its input. Level 9 counts as an error. */
#define OWN_INIT
#include "guest.h"

static void say(int32_t level, const char *s) {
    u32 n = 0;
    while (s[n]) n++;
    wm_host_log((u32)level, s, n);
}

WM_EXPORT("wasmill_init") int32_t init(u32 p, u32 len, u32 max_frame) {
    say(WM_INFO, "init here");
    return 0;
}

BATCH(f) {
    static char xs[5000];
    for (u32 i = 0; i < sizeof xs; i++) xs[i] = 'x';
    for (int i = 0; i < LINES; i += 5) {
        say(WM_DEBUG, "debug"), say(WM_INFO, "info"), say(WM_WARN, "warn"), say(9, "nine");
        wm_host_log(WM_INFO, xs, sizeof xs);
    }
    wm_host_emit(at(f->records), f->count, f->stride);
    return 0;
}
