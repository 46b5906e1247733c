/* Counts the records of a lane in its memory and emits the count with the lane's last frame. */
#include "guest.h"

static u32 records, frames;

BATCH(f) {
    frames++;
    records += f->count;
    if (f->flags & WM_LAST) {
        put_int(records), put(" records in "), put_int(frames), put(" frames, last holds "), put_int(f->count);
        put(f->flags & WM_FIRST ? ", first" : ""), put(", fields "), put_int(f->nfields), put(", stride ");
        put_int(f->stride), put(", records at "), put_int(f->records - address(f));
        emit_text(WM_NO_INDEX);
    }
    return 0;
}
