/* Lets the tests call the functions of wasmill_state.h: the value of a record is operations, a line each, of words between
 * blanks: name, table, sub-key, argument. The record's key is theirs. What they answer comes out, a line each. */
#include "../wasmill_state.h"

WM_MANIFEST({"abi": 1, "name": "state", "version": "1.0.0", "inputs": [{"name": "in"}], "outputs": [{"name": "out"}],
             "tables": [{"name": "a"}, {"name": "b"}, {"name": "n", "type": "i64"}]});

/* word takes the next word of a line, which may be empty. */
static wm_slice word(wm_slice *line) {
    wm_slice w = {line->p, 0};
    while (w.n < line->n && w.p[w.n] != ' ') w.n++;
    uint32_t skip = w.n < line->n ? w.n + 1 : w.n;
    line->p += skip;
    line->n -= skip;
    return w;
}

static int64_t integer(wm_slice s) {
    int64_t v = 0;
    wm_integer((wm_value){s.p, s.n, WM_NUMBER}, &v);
    return v;
}

static bool line_of(wm_slice *text, wm_slice *line) {
    if (!text->n) return false;
    *line = (wm_slice){text->p, 0};
    while (line->n < text->n && text->p[line->n] != '\n') line->n++;
    uint32_t skip = line->n + (line->n < text->n);
    text->p += skip;
    text->n -= skip;
    return true;
}

static void scan(uint16_t table, wm_slice key, wm_slice prefix, bool descending) {
    wm_cursor c = wm_state_scan(table, key, prefix, descending);
    wm_slice sub, value;
    while (wm_state_next(&c, &sub, &value)) {
        wm_put_slice(sub);
        WM_PUT("=");
        wm_put_slice(value);
        WM_PUT(",");
    }
    WM_PUT("\n");
}

static int on_prefetch(const wm_record *r) {
    wm_slice text = wm_value_of(r), line;
    if (r->kind != WM_RECORD) return 0;
    while (line_of(&text, &line)) {
        wm_slice op = word(&line);
        uint16_t table = (uint16_t)integer(word(&line));
        if (wm_same(op, WM_S("get")) || wm_same(op, WM_S("add"))) wm_state_want(table, wm_key_of(r), word(&line));
    }
    return 0;
}

static int on_record(const wm_record *r) {
    wm_slice text = wm_value_of(r), key = wm_key_of(r), line, value;
    wm_begin(r, 0);
    while (line_of(&text, &line)) {
        wm_slice op = word(&line);
#define OP(name) (wm_same(op, WM_S(name)))
        uint16_t table = (uint16_t)integer(word(&line));
        wm_slice sub = word(&line);
        if (OP("put")) wm_state_put(table, key, sub, line);
        else if (OP("until")) wm_state_put_until(table, key, sub, sub, integer(line));
        else if (OP("delete")) wm_state_delete(table, key, sub);
        else if (OP("clear")) wm_state_clear(table, key, sub);
        else if (OP("scan")) scan(table, key, sub, false);
        else if (OP("down")) scan(table, key, sub, true);
        else if (OP("set")) wm_timer_set((uint8_t)table, integer(line), key, sub);
        else if (OP("unset")) wm_timer_delete((uint8_t)table, integer(line), key, sub);
        else if (OP("add")) {
            wm_put_int(wm_state_add(table, key, sub, integer(line)));
            WM_PUT("\n");
        } else if (OP("get")) {
            bool found = wm_state_get(table, key, sub, &value);
            if (found) {
                WM_PUT("=");
                wm_put_slice(value);
            }
            WM_PUT("\n");
        } else return wm_error(WM_S("no such operation"));
    }
    wm_end();
    return 0;
}

static int on_timer(const wm_record *r) {
    wm_begin(r, 0);
    WM_PUT("timer ");
    wm_put_int(r->kind);
    WM_PUT(" ");
    wm_put_int(r->event_time);
    WM_PUT(" ");
    wm_put_slice(wm_value_of(r));
    wm_end();
    return 0;
}

WM_TRANSFORM(.record = on_record, .timer = on_timer, .prefetch = on_prefetch);
