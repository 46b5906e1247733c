/* Sets event times: kept, floored to whole milliseconds (also before 1970), the first and the last that are allowed. */
#include "guest.h"

BATCH(f) {
    static const int64_t at_us[] = {1700000000123000, 1700000000123999, -1, 0, -62135596800000000, 253402300799999999};
    EACH(r, f)
    for (u32 i = 0; i < 6; i++) {
        wm_record o = blank();
        o.index = r->index, o.event_time = at_us[i], o.flags = WM_HAS_EVENT_TIME;
        wm_host_emit(&o, 1, sizeof o);
    }
    return 0;
}
