/* Copies every part of a record to memory of its own and overwrites the frame before it emits. */
#include "guest.h"

static uint8_t copy[1 << 20];
static u32 used;

static u32 keep(u32 p, int32_t n) {
    u32 to = used;
    for (int32_t i = 0; i < n; i++) copy[used++] = ((uint8_t *)at(p))[i];
    return address(copy + to);
}

BATCH(f) {
    static wm_record out[1024];
    static wm_header headers[4096];
    u32 count = f->count, n = 0, h = 0;
    used = 0;
    EACH(r, f) {
        wm_record *o = &out[n++];
        *o = *r;
        o->key = keep(r->key, r->key_len);
        o->value = keep(r->value, r->value_len);
        o->headers = address(headers + h);
        for (u32 i = 0; i < r->header_count; i++, h++) {
            headers[h] = ((wm_header *)at(r->headers))[i];
            headers[h].name = keep(headers[h].name, (int32_t)headers[h].name_len);
            headers[h].value = keep(headers[h].value, headers[h].value_len);
        }
    }
    u32 total = f->total;
    for (u32 i = 0; i < total; i++) ((volatile uint8_t *)f)[i] = 0xee;
    wm_host_emit(out, count, sizeof(wm_record));
    return 0;
}
