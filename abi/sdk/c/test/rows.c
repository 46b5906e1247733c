/* Writes the rows of abi/vectors/rows.json: the record's key says which, "text" writes the value as a string in a row. Those of
 * abi/vectors/cells.json are the name of a type, and a number as text: that number, a key of it, null as a key. */
#include "../wasmill_rows.h"

WM_MANIFEST({"abi": 1, "name": "rows", "version": "1.0.0", "inputs": [{"name": "in", "fields": ["/s"]}],
             "outputs": [{"name": "out", "rows": 1, "columns": "a: string, t: timestamp(ms) not null"}]});

static void every(void) {
    wm_row(wm_columns(WM_S("id: int64, small: int8, short: int16, n: int32, ok: boolean, f: float, d: double, day: date, at: timestamp, s: string, b: binary, "
                           "p: decimal(9,2), q: decimal(18,4), w: decimal(38,10)")));
    wm_row_int64(-1);
    wm_row_int8(-128);
    wm_row_int16(300);
    wm_row_int32(-2147483647 - 1);
    wm_row_bool(true);
    wm_row_float(1.5f);
    wm_row_double(-0.25);
    wm_row_int32(19000);
    wm_row_int64(1700000000123456);
    wm_row_bytes(WM_S("\xc3\xa9\n"));
    wm_row_bytes((wm_slice){"\0\xff", 2});
    wm_row_int32(12345);
    wm_row_int64(5);
    wm_row_int128(1);
}

static void nested(void) {
    wm_row(wm_columns(WM_S("tags: list<string>, by: map<string, int32>, place: struct<lat: double, names: list<struct<lang: string, text: string>>>")));
    wm_row_count(3);
    wm_row_bytes(WM_S("x"));
    wm_row_null();
    wm_row_bytes(WM_S(""));
    wm_row_count(2);
    uint32_t mark = wm_row_mark();
    wm_row_bytes(WM_S("a"));
    wm_row_key(mark);
    wm_row_int32(1);
    mark = wm_row_mark();
    wm_row_bytes(WM_S("b"));
    wm_row_key(mark);
    wm_row_null();
    wm_row_struct();
    wm_row_double(52.5);
    wm_row_count(2);
    wm_row_struct();
    wm_row_bytes(WM_S("de"));
    wm_row_bytes(WM_S("Berlin"));
    wm_row_null();
}

static int64_t number(wm_slice s) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < s.n; i++)
        if (s.p[i] != '-') n = n * 10 + (uint64_t)(s.p[i] - '0');
    return (int64_t)(s.n > 0 && s.p[0] == '-' ? -n : n);
}

static double large(wm_slice s) {
    double f = wm_same(s, WM_S("3.4028235e38")) ? 3.4028235e38 : wm_same(s, WM_S("-3.5e38")) ? -3.5e38 : 1.0 / 3;
    return wm_same(s, WM_S("Infinity")) ? 1.0 / 0.0 : f;
}

static const wm_slice types[] = {{"int8", 4}, {"int16", 5}, {"int32", 5}, {"int64", 5}, {"int128", 6}, {"count", 5}, {"float", 5}};

static bool is_type(wm_slice op) {
    for (uint32_t i = 0; i < sizeof types / sizeof *types; i++)
        if (wm_same(op, types[i])) return true;
    return false;
}

static void number_as(wm_slice type, wm_slice text) {
    int64_t n = number(text);
    if (wm_same(type, WM_S("int8"))) wm_row_int8(n);
    if (wm_same(type, WM_S("int16"))) wm_row_int16(n);
    if (wm_same(type, WM_S("int32"))) wm_row_int32(n);
    if (wm_same(type, WM_S("int64"))) wm_row_int64(n);
    if (wm_same(type, WM_S("int128"))) wm_row_int128(n);
    if (wm_same(type, WM_S("count"))) wm_row_count(n);
    if (wm_same(type, WM_S("float"))) wm_row_float(large(text));
}

static void cells(wm_slice type, wm_slice text) {
    wm_row(0);
    number_as(type, text);
    uint32_t mark = wm_row_mark();
    number_as(type, text);
    wm_row_key(mark);
    mark = wm_row_mark();
    wm_row_null();
    wm_row_key(mark);
}

static int on_record(const wm_record *r) {
    wm_slice op = wm_key_of(r);
    wm_begin(r, 0);
    if (wm_same(op, WM_S("every type"))) every();
    else if (wm_same(op, WM_S("nested"))) nested();
    else if (is_type(op)) cells(op, wm_text(wm_field(r, 0)));
    else {
        wm_row(wm_columns(WM_S("a: string, t: timestamp")));
        wm_row_text(wm_field(r, 0));
        wm_row_int64(7);
    }
    wm_end();
    return 0;
}

WM_TRANSFORM(.record = on_record);
