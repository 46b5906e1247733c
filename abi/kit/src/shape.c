/* Emits each record's own struct as text, to check what a host writes. */
#include "guest.h"

BATCH(f) {
    EACH(r, f) {
        put("event "), put_int(r->event_time), put(" offset "), put_int(r->offset), put(" key "), put_int(r->key_len);
        put(" value "), put_int(r->value_len), put(" headers "), put_int(r->header_count), put(" kind ");
        put_int(r->kind), put(" flags "), put_int(r->flags), put(" partition "), put_int(r->partition), put(" port ");
        put_int(r->port), put(" input "), put_int(r->input), put(" index "), put_int((int32_t)r->index), put(" zero ");
        put_int(r->zero);
        emit_text(r->kind == WM_RECORD ? r->index : WM_NO_INDEX);
    }
    return 0;
}
