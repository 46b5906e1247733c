/* Emits the frame's header as text, for every frame. */
#include "guest.h"

BATCH(f) {
    put("magic "), put_hex(f->magic, 8), put(" version "), put_int(f->version), put(" flags "), put_int(f->flags);
    put(" header "), put_int(f->header_len), put(" total "), put_int((int64_t)f->total - len), put(" count ");
    put_int(f->count), put(" records "), put_int(f->records - address(f)), put(" stride "), put_int(f->stride);
    put(" nfields "), put_int(f->nfields), put(" batch "), put_int((int64_t)f->batch), put(" time ");
    put_int(f->batch_time), put(" late "), put_int(f->late_watermark), put(" watermark "), put_int(f->watermark);
    put(" seed "), put_hex(f->seed[0], 16), put(" "), put_hex(f->seed[1], 16), put(" lane "), put_int(f->lane);
    put(" chunk "), put_int(f->chunk), put(" progress "), put_hex(f->progress, 8), put(" zero ");
    put_int(f->zero[0] | f->zero[1] | f->zero[2] | f->zero[3] | f->zero[4] | f->error_text | f->error_len);
    uint64_t tail = 0;
    for (int i = 0; i < 16; i++) tail |= ((uint8_t *)f)[f->total + i];
    put(" tail "), put_int((int64_t)tail), put(" aligned "), put_int(address(f) % 16 == 0);
    emit_text(WM_NO_INDEX);
    return 0;
}
