/* Counts orders per customer and ten seconds of their event time. Late ones go to a port of their own. */
#include "../wasmill_state.h"

WM_MANIFEST({"abi": 1, "name": "window", "version": "1.0.0", "inputs": [{"name": "orders", "content": "json"}],
             "outputs": [{"name": "counts", "content": "json"}, {"name": "late", "content": "json"}],
             "tables": [{"name": "counts", "type": "i64"}]});

enum { COUNTS, LATE = 1 };
static const int64_t SIZE = 10000000;

static int on_prefetch(const wm_record *r) {
    char buf[8];
    if (r->flags & WM_HAS_EVENT_TIME)
        wm_state_want(COUNTS, wm_key_of(r), r->kind ? wm_value_of(r) : wm_ordered(buf, wm_floor(r->event_time, SIZE)));
    return 0;
}

static int on_record(const wm_record *r) {
    char buf[8];
    if (!(r->flags & WM_HAS_EVENT_TIME)) return wm_dead(r, 1, WM_S("no event time"));
    int64_t start = wm_floor(r->event_time, SIZE);
    if (start + SIZE <= wm_context()->late_watermark) return wm_pass(r, LATE), 0;
    wm_state_add(COUNTS, wm_key_of(r), wm_ordered(buf, start), 1);
    wm_timer_set(WM_EVENT_TIME, start + SIZE, wm_key_of(r), wm_ordered(buf, start));
    return 0;
}

static int on_timer(const wm_record *r) {
    wm_slice key = wm_key_of(r), window = wm_value_of(r);
    wm_begin(r, 0);
    WM_PUT("{");
    WM_MEMBER("customer");
    wm_put_string(key);
    WM_MEMBER("window_start");
    wm_put_int(wm_ordered_of(window) / 1000);
    WM_MEMBER("count");
    wm_put_int(wm_state_add(COUNTS, key, window, 0));
    WM_PUT("}");
    wm_end();
    wm_state_delete(COUNTS, key, window);
    return 0;
}

WM_TRANSFORM(.record = on_record, .timer = on_timer, .prefetch = on_prefetch);
