/* For each input record, whatever it is: null key and value, empty key and value, two headers (a null and an empty value).
 * Where a length is 0 or -1 the pointer is wild on purpose. */
#include "guest.h"

BATCH(f) {
    static wm_header h[2] = {{.name_len = 1, .value = 0xfffffffc, .value_len = -1},
                             {.name = 0xfffffffc, .name_len = 0, .value = 0xfffffffc, .value_len = 0}};
    h[0].name = address("h");
    EACH(r, f) {
        wm_record o[3] = {blank(), blank(), blank()};
        for (int i = 0; i < 3; i++) o[i].index = r->index, o[i].key = o[i].value = o[i].headers = 0xfffffff4;
        o[1].key_len = o[1].value_len = 0;
        o[2].headers = address(h), o[2].header_count = 2;
        wm_host_emit(o, 3, sizeof *o);
    }
    return 0;
}
