/* Keeps a ledger a key, in all the ways that state can be used: a running sum, windows that are closed by event time, a list
 * of what a window holds, an entry that expires, and a timer in processing time. Whatever it does comes out, with the batch
 * that did it, so that a test can tell what must have come out. */
#include "../../abi/sdk/c/wasmill_state.h"

WM_MANIFEST({"abi": 1, "name": "ledger", "version": "1.0.0",
             "inputs": [{"name": "in", "content": "json", "fields": ["/i", "/n"]}],
             "outputs": [{"name": "out", "content": "json"}],
             "tables": [{"name": "sums", "type": "i64"}, {"name": "windows", "type": "i64"}, {"name": "items"}, {"name": "seen"}]});

enum { I, N };
enum { SUMS, WINDOWS, ITEMS, SEEN };

static const int64_t WINDOW = 10000000; /* of event time */
static const int64_t SEEN_FOR = 40000;  /* of batch time */
static const int64_t ALARM = 25000;     /* after the batch */

static void open(const wm_record *r) {
    wm_begin(r, 0);
    WM_PUT("{");
    WM_MEMBER("batch");
    wm_put_int((int64_t)wm_context()->batch);
    WM_MEMBER("key");
    wm_put_string(wm_key_of(r));
}

static int close(void) {
    WM_PUT("}");
    wm_end();
    return 0;
}

static int on_prefetch(const wm_record *r) {
    char buf[8];
    wm_slice key = wm_key_of(r), window = wm_ordered(buf, wm_floor(r->event_time - (r->kind ? WINDOW : 0), WINDOW));
    if (r->kind == WM_PROCESSING_TIMER) return 0;
    wm_state_want(WINDOWS, key, window);
    if (r->kind) return 0;
    wm_state_want(SUMS, key, WM_S(""));
    wm_state_want(SEEN, key, WM_S(""));
    return 0;
}

static int on_record(const wm_record *r) {
    char buf[16];
    wm_slice key = wm_key_of(r), last;
    int64_t n, i;
    if (!(r->flags & WM_HAS_EVENT_TIME) || !wm_integer(wm_field(r, N), &n) || !wm_integer(wm_field(r, I), &i))
        return wm_dead(r, 1, WM_S("no entry of a ledger"));
    int64_t start = wm_floor(r->event_time, WINDOW);
    open(r);
    WM_MEMBER("i");
    wm_put_int(i);
    if (start + WINDOW <= wm_context()->late_watermark) {
        WM_MEMBER("late");
        WM_PUT("true");
        return close();
    }
    WM_MEMBER("sum");
    wm_put_int(wm_state_add(SUMS, key, WM_S(""), n));
    WM_MEMBER("seen");
    if (wm_state_get(SEEN, key, WM_S(""), &last)) wm_put_slice(last);
    else WM_PUT("null");
    int64_t count = wm_state_add(WINDOWS, key, wm_ordered(buf, start), 1);
    wm_ordered(buf + 8, count);
    wm_value text = wm_field(r, I);
    wm_state_put(ITEMS, key, (wm_slice){buf, 16}, wm_text(text));
    wm_state_put_until(SEEN, key, WM_S(""), wm_text(text), wm_context()->batch_time + SEEN_FOR);
    wm_timer_set(WM_EVENT_TIME, start + WINDOW, key, WM_S(""));
    if (n % 3 == 0) wm_timer_set(WM_PROCESSING_TIME, wm_context()->batch_time + ALARM, key, WM_S("alarm"));
    return close();
}

static int on_timer(const wm_record *r) {
    char buf[8];
    wm_slice key = wm_key_of(r), sub, value;
    open(r);
    if (r->kind == WM_PROCESSING_TIMER) {
        WM_MEMBER("alarm");
        wm_put_int(r->event_time / 1000);
        return close();
    }
    wm_slice window = wm_ordered(buf, r->event_time - WINDOW);
    WM_MEMBER("window");
    wm_put_int((r->event_time - WINDOW) / 1000);
    WM_MEMBER("count");
    wm_put_int(wm_state_add(WINDOWS, key, window, 0));
    WM_MEMBER("items");
    WM_PUT("[");
    bool more = false;
    for (wm_cursor c = wm_state_scan(ITEMS, key, window, false); wm_state_next(&c, &sub, &value); more = true) {
        if (more) WM_PUT(",");
        wm_put_slice(value);
    }
    WM_PUT("]");
    wm_state_clear(ITEMS, key, window);
    wm_state_delete(WINDOWS, key, window);
    return close();
}

WM_TRANSFORM(.record = on_record, .timer = on_timer, .prefetch = on_prefetch);
