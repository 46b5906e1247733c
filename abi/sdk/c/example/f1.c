/* Keeps every event but views and adds "cents": the amount times 100, rounded half up, exactly. */
#include "../wasmill.h"

WM_MANIFEST({"abi": 1, "name": "f1", "version": "1.0.0",
             "inputs": [{"name": "events", "content": "json", "fields": ["/event", "/amount"]}],
             "outputs": [{"name": "events", "content": "json"}]});

enum { EVENT, AMOUNT };

static int on_record(const wm_record *r) {
    if (wm_is(wm_field(r, EVENT), WM_S("view"))) return 0;
    if (r->flags & WM_NOT_JSON) return wm_dead(r, 1, WM_S("not JSON"));
    int64_t cents;
    if (!wm_scaled(wm_field(r, AMOUNT), 2, &cents)) return wm_dead(r, 2, WM_S("amount is not a number"));
    wm_begin(r, 0);
    wm_put_head(wm_value_of(r));
    WM_MEMBER("cents");
    wm_put_int(cents);
    WM_PUT("}");
    wm_end();
    return 0;
}

WM_TRANSFORM(.record = on_record);
