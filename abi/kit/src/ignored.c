/* Emits each input with a stride of 72 and nonsense in everything that a host does not look at. */
#include "guest.h"

BATCH(f) {
    static struct {
        wm_record r;
        uint8_t more[16];
    } out[1024];
    u32 n = 0;
    EACH(r, f) {
        for (int i = 0; i < 16; i++) out[n].more[i] = 0xff;
        wm_record *o = &out[n++].r;
        *o = *r;
        o->offset = -77, o->input = 999, o->partition = -5, o->flags = WM_NOT_JSON, o->event_time = INT64_MIN;
    }
    wm_host_emit(out, n, sizeof out[0]);
    return 0;
}
