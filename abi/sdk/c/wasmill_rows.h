/* Binary rows for transforms in C: what an output with "rows": 1 emits instead of JSON. See abi/README.md, section 16.
 *
 *     static uint32_t columns; // in on_init: columns = wm_columns(WM_S("id: int64, name: string, tags: list<string>"));
 *
 *     wm_begin(r, 0);
 *     wm_row(columns);
 *     wm_row_int64(7);
 *     wm_row_bytes(WM_S("seven"));
 *     wm_row_count(1);
 *     wm_row_bytes(WM_S("odd"));
 *     wm_end();
 *
 * Values are written in the order of the columns. Nothing is cut: a number that its function has no room for is marked, and the
 * host sets the record aside, code range, as it does with all else that does not fit its column. Nothing here knows a column. */
#ifndef WASMILL_ROWS_H
#define WASMILL_ROWS_H

#include "wasmill.h"

/* What stands for a value in a row. */
enum {
    WM__ROW_NULL = 0,
    WM__ROW_VALUE = 1,  /* it follows */
    WM__ROW_UNFIT = 2,  /* it does not fit its column */
    WM__ROW_NO_KEY = 3, /* behind a map's key: that was none */
};

/* wm_columns is the mark of a row's columns: a hash of their text as in the manifest, but without "not null" and units. */
WM__SLOW uint32_t wm_columns(wm_slice text) {
    uint32_t h = 2166136261u;
    for (uint32_t i = 0; i < text.n; i++) h = (h ^ (uint8_t)text.p[i]) * 16777619u;
    return h;
}

/* wm_row begins a row as the value of the record that wm_begin began. */
WM__INLINE void wm_row(uint32_t columns) {
    char *to = wm__need(5);
    to[0] = 1;
    *(wm__u32 *)(to + 1) = columns;
    wm__.at += 5;
}

WM__INLINE void wm__row_mark(char c) {
    *wm__need(1) = c;
    wm__.at++;
}

/* wm_row_null writes null. */
WM__INLINE void wm_row_null(void) { wm__row_mark(WM__ROW_NULL); }

/* wm_row_struct begins a struct: the values of its fields come next. */
WM__INLINE void wm_row_struct(void) { wm__row_mark(WM__ROW_VALUE); }

WM__INLINE void wm__row_put(uint64_t v, uint32_t n) {
    char *to = wm__need(24);
    to[0] = WM__ROW_VALUE;
    *(wm__u64 *)(to + 1) = v;
    wm__.at += 1 + n;
}

/* wm__row_int writes v in n bytes, in which it is cut. */
WM__INLINE void wm__row_int(int64_t v, int64_t cut, uint32_t n) {
    if (v == cut) wm__row_put((uint64_t)v, n);
    else wm__row_mark(WM__ROW_UNFIT);
}

WM__INLINE void wm_row_bool(bool v) { wm__row_put(v, 1); }
/* They take any number of 64 bits; one that does not fit makes the row a misfit. */
WM__INLINE void wm_row_int8(int64_t v) { wm__row_int(v, (int8_t)v, 1); }
WM__INLINE void wm_row_int16(int64_t v) { wm__row_int(v, (int16_t)v, 2); }
/* wm_row_int32 writes an int32, a date as days since 1970, or a decimal of up to 9 digits times ten to the power of its scale. */
WM__INLINE void wm_row_int32(int64_t v) { wm__row_int(v, (int32_t)v, 4); }
/* wm_row_int64 writes an int64, a timestamp as microseconds since 1970, or a decimal of 10 to 18 digits, as above. */
WM__INLINE void wm_row_int64(int64_t v) { wm__row_put((uint64_t)v, 8); }
/* wm_row_int128 writes a decimal of more than 18 digits, as above. */
WM__INLINE void wm_row_int128(__int128 v) {
    wm__row_put((uint64_t)v, 16);
    *(wm__u64 *)(wm__.at - 8) = (uint64_t)(v >> 64);
}
/* wm_row_float writes the nearest float. A finite number that is too large for one does not fit. */
WM__INLINE void wm_row_float(double v) {
    float f = (float)v;
    uint32_t bits;
    if (f - f != 0 && v - v == 0) {
        wm__row_mark(WM__ROW_UNFIT);
        return;
    }
    __builtin_memcpy(&bits, &f, 4);
    wm__row_put(bits, 4);
}
WM__INLINE void wm_row_double(double v) {
    uint64_t bits;
    __builtin_memcpy(&bits, &v, 8);
    wm__row_put(bits, 8);
}

/* wm_row_count begins a list of n elements, or a map of n entries, each a key (see wm_row_key) and a value. */
WM__INLINE void wm_row_count(int64_t n) { wm__row_int(n, (uint32_t)n, 4); }

/* wm_row_bytes writes a string, of UTF-8, or a binary. */
WM__INLINE void wm_row_bytes(wm_slice s) {
    wm__row_put(s.n, 4);
    wm_put_slice(s);
}

/* wm_row_text writes the characters of a string of the input; what is no string is null. */
WM__SLOW void wm_row_text(wm_value v) {
    if (v.kind != WM_STRING && v.kind != WM_ESCAPED) {
        wm_row_null();
        return;
    }
    uint32_t head = (uint32_t)(wm__.at - wm__.value);
    wm__row_put(0, 4);
    wm_put_text(v);
    *(wm__u32 *)(wm__.value + head + 1) = (uint32_t)(wm__.at - wm__.value) - head - 5;
}

/* wm_row_mark and wm_row_key stand around the writing of a map's key, as in a row a key has another form than that value alone:
 * "uint32_t mark = wm_row_mark(); wm_row_bytes(name); wm_row_key(mark);". Null is no key, nor is what does not fit: it makes the
 * row a misfit. */
WM__INLINE uint32_t wm_row_mark(void) { return (uint32_t)(wm__.at - wm__.value); }
WM__INLINE void wm_row_key(uint32_t mark) {
    char *from = wm__.value + mark;
    if (from == wm__.at || *from != WM__ROW_VALUE) {
        wm__.at = from;
        __builtin_memset(wm__need(17), WM__ROW_NO_KEY, 17); /* one of them stands behind the key, whatever its type */
        wm__.at += 17;
        return;
    }
    __builtin_memmove(from, from + 1, (uint32_t)(wm__.at - from) - 1);
    wm__.at--;
}

#endif /* WASMILL_ROWS_H */
