/* Keeps the records of odd index, one emit call each, each followed by a call that emits nothing from nowhere. */
#include "guest.h"

BATCH(f) {
    EACH(r, f) {
        if (r->index % 2) wm_host_emit(r, 1, sizeof *r);
        wm_host_emit(at(0xfffffff0u), 0, sizeof *r);
    }
    return 0;
}
