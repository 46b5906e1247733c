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
 * Values are written in the order of the columns; the host finds what does not fit and sets the record aside. Nothing here
 * knows a column. */
#ifndef WASMILL_ROWS_H
#define WASMILL_ROWS_H

#include "wasmill.h"

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

/* wm_row_null writes null. */
WM__INLINE void wm_row_null(void) {
    *wm__need(1) = 0;
    wm__.at++;
}

/* wm_row_struct begins a struct: the values of its fields come next. */
WM__INLINE void wm_row_struct(void) {
    *wm__need(1) = 1;
    wm__.at++;
}

WM__INLINE void wm__row_put(uint64_t v, uint32_t n) {
    char *to = wm__need(24);
    to[0] = 1;
    *(wm__u64 *)(to + 1) = v;
    wm__.at += 1 + n;
}

WM__INLINE void wm_row_bool(bool v) { wm__row_put(v, 1); }
WM__INLINE void wm_row_int8(int8_t v) { wm__row_put((uint64_t)v, 1); }
WM__INLINE void wm_row_int16(int16_t v) { wm__row_put((uint64_t)v, 2); }
/* wm_row_int32 writes an int32, a date as days since 1970, or a decimal of up to 9 digits times ten to the power of its scale. */
WM__INLINE void wm_row_int32(int32_t v) { wm__row_put((uint64_t)v, 4); }
/* wm_row_int64 writes an int64, a timestamp as microseconds since 1970, or a decimal of 10 to 18 digits, as above. */
WM__INLINE void wm_row_int64(int64_t v) { wm__row_put((uint64_t)v, 8); }
/* wm_row_int128 writes a decimal of more than 18 digits, as above. */
WM__INLINE void wm_row_int128(__int128 v) {
    wm__row_put((uint64_t)v, 16);
    *(wm__u64 *)(wm__.at - 8) = (uint64_t)(v >> 64);
}
WM__INLINE void wm_row_float(float v) {
    uint32_t bits;
    __builtin_memcpy(&bits, &v, 4);
    wm__row_put(bits, 4);
}
WM__INLINE void wm_row_double(double v) {
    uint64_t bits;
    __builtin_memcpy(&bits, &v, 8);
    wm__row_put(bits, 8);
}

/* wm_row_count begins a list of n elements, or a map of n entries, each a key (see wm_row_key) and a value. */
WM__INLINE void wm_row_count(uint32_t n) { wm__row_put(n, 4); }

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

/* wm_row_mark and wm_row_key stand around the writing of a map's key, which has no byte that says that it is there:
 * "uint32_t mark = wm_row_mark(); wm_row_bytes(name); wm_row_key(mark);". */
WM__INLINE uint32_t wm_row_mark(void) { return (uint32_t)(wm__.at - wm__.value); }
WM__INLINE void wm_row_key(uint32_t mark) {
    char *from = wm__.value + mark;
    __builtin_memmove(from, from + 1, (uint32_t)(wm__.at - from) - 1);
    wm__.at--;
}

#endif /* WASMILL_ROWS_H */
