/* Records of even index go to port 0, those of odd index to port 1. */
#include "guest.h"

#ifndef BARE
WM_MANIFEST({"abi": 1, "name": "ports", "version": "1.2.3", "inputs": [{"name": "in"}],
             "outputs": [{"name": "even"}, {"name": "odd"}]});
#endif

BATCH(f) {
    EACH(r, f) r->port = r->index % 2;
    wm_host_emit(at(f->records), f->count, f->stride);
    return 0;
}
