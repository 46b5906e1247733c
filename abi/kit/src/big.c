/* Emits one record of SIZE bytes for each input, TIMES times a frame. */
#include "guest.h"

static uint8_t zs[SIZE];

BATCH(f) {
    __builtin_memset(zs, 'z', SIZE); /* one instruction: a loop over them would use up the fuel */
    wm_record o = blank();
    o.value = address(zs), o.value_len = SIZE;
    for (int i = 0; i < TIMES; i++) wm_host_emit(&o, 1, sizeof o);
    return 0;
}
