/* Emits for each record what it got as located fields: "<kind>:<text>;" for each of the seven. */
#include "guest.h"

WM_MANIFEST({"abi": 1, "name": "fields", "version": "1.0.0", "inputs": [{"name": "in", "content": "json",
             "fields": ["/a", "/a/b", "/n", "/list/1", "/~1~0", "/", "/\u00e9"]}], "outputs": [{"name": "out"}]});

BATCH(f) {
    EACH(r, f) {
        wm_field_entry *e = (wm_field_entry *)(r + 1);
        for (u32 i = 0; i < f->nfields; i++) {
            put_int(e[i].len_kind >> 28);
            put(":");
            put_bytes(e[i].ptr, e[i].len_kind & 0x0fffffff);
            put(";");
        }
        put(r->flags & WM_NOT_JSON ? "not json" : "json");
        emit_text(r->index);
    }
    return 0;
}
