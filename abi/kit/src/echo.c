#include "guest.h"

BATCH(f) {
    wm_host_emit(at(f->records), f->count, f->stride);
    return 0;
}
