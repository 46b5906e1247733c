/* Dead-letters values that start with "bad" (code 3), fails those that start with "fail" (code 9), emits the rest. Reasons:
 * "long" 2,000 times x; "raw" a byte that is not UTF-8; otherwise plain text. */
#include "guest.h"

static char xs[2000];

BATCH(f) {
    EACH(r, f) {
        bool bad = starts(r, "bad");
        if (!bad && !starts(r, "fail")) {
            wm_host_emit(r, 1, sizeof *r);
            continue;
        }
        wm_record o = blank();
        o.index = r->index, o.kind = bad ? WM_DEAD_LETTER : WM_FAIL, o.partition = bad ? 3 : 9;
        const char *why = "not wanted";
        o.value_len = 10;
        if (starts(r, "bad long")) {
            for (u32 i = 0; i < sizeof xs; i++) xs[i] = 'x';
            why = xs, o.value_len = sizeof xs;
        }
        if (starts(r, "bad raw")) why = "a\xff" "b", o.value_len = 3;
        if (starts(r, "bad null")) why = 0, o.value_len = -1;
        o.value = address(why);
        wm_host_emit(&o, 1, sizeof o);
    }
    return 0;
}
