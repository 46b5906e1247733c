/* Keeps its config in init and emits it for each record; says what init was told. */
#define OWN_INIT
#include "guest.h"

static char config[4096];
static u32 config_len, max;

WM_EXPORT("wasmill_init") int32_t init(u32 p, u32 len, u32 max_frame) {
    for (config_len = 0; config_len < len && config_len < sizeof config; config_len++)
        config[config_len] = ((char *)at(p))[config_len];
    max = max_frame;
    static const char line[] = "configured";
    wm_host_log(WM_INFO, line, sizeof line - 1);
    return 0;
}

BATCH(f) {
    EACH(r, f) {
        put("max_frame "), put_int(max), put(", config "), put_bytes(address(config), config_len);
        emit_text(r->index);
    }
    return 0;
}
