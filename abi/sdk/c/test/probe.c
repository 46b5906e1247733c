/* Lets the tests call the functions of wasmill.h: the key names one, the value is its argument, the header "arg" another. */
#include "../wasmill.h"

WM_MANIFEST({"abi": 1, "name": "probe", "version": "1.0.0", "inputs": [{"name": "in"}],
             "outputs": [{"name": "out"}, {"name": "more"}], "config": {"type": "object"}});

static wm_slice config_name;
static uint32_t records;

static wm_value number(wm_slice s) { return (wm_value){s.p, s.n, WM_NUMBER}; }

static int64_t integer(wm_slice s) {
    int64_t v = 0;
    wm_integer(number(s), &v);
    return v;
}

static void answer(bool ok, int64_t v) {
    if (ok) wm_put_int(v);
    else WM_PUT("no");
}

/* walk writes a value again without blanks. */
static void walk(wm_value v) {
    if (v.kind != WM_OBJECT && v.kind != WM_ARRAY) {
        wm_put_value(v);
        return;
    }
    wm_scan s = wm_scan_open(wm_text(v));
    wm_value name, item;
    wm_put(v.kind == WM_OBJECT ? "{" : "[", 1);
    for (bool more = false; v.kind == WM_OBJECT ? wm_scan_member(&s, &name, &item) : wm_scan_item(&s, &item); more = true) {
        if (more) WM_PUT(",");
        if (v.kind == WM_OBJECT) {
            wm_put_value(name);
            WM_PUT(":");
        }
        walk(item);
    }
    wm_put(v.kind == WM_OBJECT ? "}" : "]", 1);
}

/* any is the single value in a text. */
static wm_value any(wm_slice s) {
    const char *end = s.p + s.n;
    wm_value v = {0, 0, WM_ABSENT};
    if (!wm__any(wm__blanks(s.p, end), end, &v)) v.kind = WM_ABSENT;
    return v;
}

static int on_init(wm_slice config) {
    wm_value name = wm_find(config, WM_S("name"));
    if (name.kind == WM_NUMBER) return wm_error(WM_S("name is a number"));
    config_name = wm_text(name);
    return 0;
}

static int on_record(const wm_record *r) {
    records++;
    wm_slice op = wm_key_of(r), value = wm_value_of(r), arg = {0, 0};
    wm_header_of(r, WM_S("arg"), &arg);
#define OP(name) (wm_same(op, WM_S(name)))
    int64_t v = 0;
    if (OP("pass")) return wm_pass(r, 1), 0;
    if (OP("drop")) return 0;
    if (OP("dead")) return wm_dead(r, 3, value);
    if (OP("fail")) return wm_fail(r, 4, value);
    if (OP("error")) return wm_error(WM_S("it went wrong"));
    wm_record *o = wm_begin(r, 0);
    o->header_count = 0;
    if (OP("scaled")) answer(wm_scaled(number(value), (int32_t)integer(arg), &v), v);
    else if (OP("integer")) answer(wm_integer(number(value), &v), v);
    else if (OP("put-int")) wm_put_int(integer(value));
    else if (OP("put-scaled")) wm_put_scaled(integer(value), (uint32_t)integer(arg));
    else if (OP("div")) wm_put_int(wm_div_round(integer(value), integer(arg)));
    else if (OP("walk")) walk(any(value));
    else if (OP("string")) wm_put_string(value);
    else if (OP("text")) wm_put_text(any(value));
    else if (OP("is")) wm_put(wm_is(any(value), arg) ? "yes" : "no", wm_is(any(value), arg) ? 3 : 2);
    else if (OP("find")) wm_put_value(wm_find(value, arg));
    else if (OP("head")) {
        wm_put_head(value);
        WM_MEMBER("one");
        WM_PUT("1");
        WM_MEMBER("two");
        WM_PUT("2}");
    } else if (OP("repeat")) {
        for (int64_t n = integer(arg); n > 0; n--) wm_put_slice(value);
    } else if (OP("as-key")) {
        WM_PUT("key ");
        wm_put_slice(value);
        wm_as_key();
        for (int64_t n = integer(arg); n > 0; n--) wm_put_slice(value);
    } else if (OP("null")) {
        WM_PUT("k");
        wm_as_key();
        return wm_end_null(), 0;
    } else if (OP("config")) wm_put_slice(config_name);
    else if (OP("lane")) wm_put_int(wm_context()->lane);
    else if (OP("forget")) {
        WM_PUT("never seen");
        wm_begin(r, 1);
        WM_PUT("seen");
    } else return wm_error(WM_S("no such function"));
    wm_end();
    return 0;
}

static int on_last(void) {
    wm_begin(NULL, 1);
    wm_put_int(records);
    wm_end();
    return 0;
}

static int on_timer(const wm_record *r) {
    wm_pass(r, 1);
    return 0;
}

WM_TRANSFORM(.init = on_init, .record = on_record, .timer = on_timer, .last = on_last);
