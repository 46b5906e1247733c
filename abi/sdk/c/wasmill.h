/* wasmill.h: write a Wasmill transform in C. ABI 1.
 *
 * The one header to include; wasmill_abi.h lies beside it. C11, no dependencies: neither libc nor any other library is
 * needed, either may be used. README.md in this folder holds a complete example and the build command.
 *
 * Memory: the bytes of an input record are valid until the handlers of its frame have run; everything written with the
 * wm_put functions is copied into a fixed arena that is handed to the host when it is full and at the end of each call.
 * Names with two underscores are the header's own.
 */
#ifndef WASMILL_H
#define WASMILL_H

#include <stdbool.h>

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

#include "wasmill_abi.h"

#ifndef WM_ARENA
#define WM_ARENA 262144 /* bytes of output that are collected before they go to the host */
#endif
#ifndef WM_PENDING
#define WM_PENDING 1024 /* records likewise */
#endif

#define WM__INLINE static inline __attribute__((always_inline))
#define WM__SLOW static __attribute__((noinline, unused))

/* Bytes somewhere. A null key or value has p = NULL. */
typedef struct {
    const char *p;
    uint32_t n;
} wm_slice;

/* A JSON value: its text as it stands in the input, of a string what is between the quotes. */
typedef struct {
    const char *p;
    uint32_t n;
    wm_kind kind;
} wm_value;

/* WM_S("text"): a string literal as a slice. */
#define WM_S(literal) ((wm_slice){"" literal, sizeof(literal) - 1})

/* What a transform consists of. A handler answers 0, or wm_error(..) to fail the whole chunk. All but record may be left out. */
typedef struct {
    int (*init)(wm_slice config);      /* once, with the config as canonical JSON; it stays valid and wm_find may read it */
    int (*record)(const wm_record *r); /* each record, in order */
    int (*timer)(const wm_record *r);  /* each timer that is due; it has no fields */
    int (*prefetch)(const wm_record *r); /* each record and timer of a frame before the first is handled: see wasmill_state.h */
    int (*last)(void);                 /* at the lane's end */
} wm_handlers;

/* WM_TRANSFORM(.record = on_record, .last = on_last); makes the module's exports. Once per module. */
#define WM_TRANSFORM(...)                                                                                                \
    static const wm_handlers wm__handlers = {__VA_ARGS__};                                                               \
    WM_EXPORT("wasmill_alloc") void *wm__export_alloc(uint32_t n) { return wm__alloc(n); }                               \
    WM_EXPORT("wasmill_init") int wm__export_init(const char *p, uint32_t n, uint32_t max_frame) {                       \
        return (void)max_frame, wm__handlers.init ? wm__handlers.init(wm__keep_config(p, n)) : 0;                        \
    }                                                                                                                    \
    WM_EXPORT("wasmill_batch") int wm__export_batch(wm_frame *f, uint32_t n) {                                           \
        return (void)n, wm__run(f, &wm__handlers);                                                                       \
    }                                                                                                                    \
    _Static_assert(1, "")

typedef uint64_t wm__u64 __attribute__((aligned(1), may_alias));
typedef uint32_t wm__u32 __attribute__((aligned(1), may_alias));

static struct {
    wm_frame *frame; /* NULL outside wasmill_batch */
    char *base, *end;
    char *done;  /* end of the bytes of finished records */
    char *at;    /* where the next byte goes */
    char *value; /* where the value of the record under construction begins */
    uint32_t sent, count; /* finished records, and how many of them the host has */
    wm_record *rec;       /* the record under construction: the one behind the finished ones */
} wm__;
static void (*wm__before)(const wm_frame *f); /* set by wasmill_state.h once state is used */
static void (*wm__fetch)(void);
static void (*wm__after)(bool last);
static wm_record wm__pending[WM_PENDING];
static char wm__bytes[WM_ARENA];

WM__INLINE const void *wm__ptr(uint32_t address) { return (const void *)(uintptr_t)address; }
WM__INLINE uint32_t wm__address(const void *p) { return (uint32_t)(uintptr_t)p; }

/* ---- memory ------------------------------------------------------------------------------------------------------- */

WM__SLOW void *wm__grow(uint32_t n) {
    size_t page = __builtin_wasm_memory_grow(0, (n + 65535) / 65536);
    if (page == (size_t)-1) __builtin_trap();
    return (void *)(page * 65536);
}

/* wm_keep gives n bytes that are never freed, 16-aligned and zero. For init: what a lane takes is gone with the lane. */
WM__SLOW void *wm_keep(uint32_t n) {
    static char *at, *end;
    n = (n + 15) & ~15u;
    if (n > (uint32_t)(end - at)) {
        at = wm__grow(n);
        end = at + ((n + 65535) & ~65535u);
    }
    at += n;
    return at - n;
}

/* The arena for frames; a record that needs more than max_frame gets one of its own. */
WM__SLOW void *wm__alloc(uint32_t n) {
    static char arena[262288 + 16] __attribute__((aligned(16)));
    static char *large;
    static uint32_t large_size;
    if (n <= sizeof arena) return arena;
    if (n > large_size) {
        large = wm__grow(n);
        large_size = (n + 65535) & ~65535u;
    }
    return large;
}

/* wm__copy copies n bytes that do not overlap, reading none beyond them. */
WM__INLINE void wm__copy(char *to, const char *from, uint32_t n) {
    if (n > 32) {
        __builtin_memcpy(to, from, n);
        return;
    }
    if (n >= 8) {
        for (uint32_t i = 0; i + 8 < n; i += 8) *(wm__u64 *)(to + i) = *(const wm__u64 *)(from + i);
        *(wm__u64 *)(to + n - 8) = *(const wm__u64 *)(from + n - 8);
    } else if (n >= 4) {
        uint32_t head = *(const wm__u32 *)from;
        *(wm__u32 *)(to + n - 4) = *(const wm__u32 *)(from + n - 4);
        *(wm__u32 *)to = head;
    } else {
        for (uint32_t i = 0; i < n; i++) to[i] = from[i];
    }
}

WM__INLINE bool wm__same(const char *a, const char *b, uint32_t n) {
    if (n >= 8) {
        for (uint32_t i = 0; i + 8 < n; i += 8)
            if (*(const wm__u64 *)(a + i) != *(const wm__u64 *)(b + i)) return false;
        return *(const wm__u64 *)(a + n - 8) == *(const wm__u64 *)(b + n - 8);
    }
    for (uint32_t i = 0; i < n; i++)
        if (a[i] != b[i]) return false;
    return true;
}

WM__INLINE bool wm_same(wm_slice a, wm_slice b) { return a.n == b.n && wm__same(a.p, b.p, a.n); }

WM__SLOW wm_slice wm__keep_config(const char *p, uint32_t n) {
    char *kept = wm_keep(n + 16); /* the scanner reads over the end */
    __builtin_memcpy(kept, p, n);
    return (wm_slice){kept, n};
}

/* ---- what the host says ------------------------------------------------------------------------------------------- */

/* wm_context is the frame's header: batch, times, watermark, lane. Only inside the handlers record, timer and last. */
WM__INLINE const wm_frame *wm_context(void) { return wm__.frame; }

WM__INLINE void wm_log(int level, wm_slice text) { wm_host_log((uint32_t)level, text.p, text.n); }

/* wm_error says why and answers 1: "return wm_error(WM_S("no such currency"));". The text must outlive the call. */
WM__SLOW int wm_error(wm_slice text) {
    if (!wm__.frame) {
        wm_log(WM_ERROR, text);
        return 1;
    }
    wm__.frame->error_text = wm__address(text.p);
    wm__.frame->error_len = text.n;
    return 1;
}

WM__INLINE wm_slice wm__slice(uint32_t p, int32_t n) {
    return n < 0 ? (wm_slice){0, 0} : (wm_slice){wm__ptr(p), (uint32_t)n};
}
WM__INLINE wm_slice wm_key_of(const wm_record *r) { return wm__slice(r->key, r->key_len); }
WM__INLINE wm_slice wm_value_of(const wm_record *r) { return wm__slice(r->value, r->value_len); }

/* wm_header_of finds the last header of that name; false when there is none. */
WM__SLOW bool wm_header_of(const wm_record *r, wm_slice name, wm_slice *value) {
    const wm_header *h = wm__ptr(r->headers);
    for (uint32_t i = r->header_count; i-- > 0;) {
        if (!wm_same(wm__slice(h[i].name, (int32_t)h[i].name_len), name)) continue;
        *value = wm__slice(h[i].value, h[i].value_len);
        return true;
    }
    return false;
}

/* wm_field is the i-th field that the manifest names. */
WM__INLINE wm_value wm_field(const wm_record *r, uint32_t i) {
    const wm_field_entry *e = (const wm_field_entry *)(r + 1) + i;
    return (wm_value){wm__ptr(e->ptr), e->len_kind & 0x0fffffff, (wm_kind)(e->len_kind >> 28)};
}

/* ---- output ------------------------------------------------------------------------------------------------------- */

/* wm_flush hands over what is finished; the batch's end does it by itself. */
WM__SLOW void wm_flush(void) {
    if (wm__.count > wm__.sent) wm_host_emit(wm__pending + wm__.sent, wm__.count - wm__.sent, sizeof(wm_record));
    wm__.sent = wm__.count;
}

/* wm__slot answers where the next record goes. */
WM__INLINE wm_record *wm__slot(void) {
    if (wm__.count == WM_PENDING) {
        wm_flush();
        wm__.sent = wm__.count = 0;
    }
    return &wm__pending[wm__.count];
}

/* wm__room makes room for n bytes more of the record under construction, whose bytes move to the arena's beginning. */
WM__SLOW void wm__room(uint32_t n) {
    wm_flush();
    char *from = wm__.done, *to = wm__.base;
    uint32_t used = (uint32_t)(wm__.at - from);
    if (n > 0x20000000 || used > 0x20000000) __builtin_trap(); /* far over the host's limit for a record */
    if (used + n > (uint32_t)(wm__.end - to)) {
        uint32_t size = (2 * (used + n) + 65535) & ~65535u;
        to = wm__grow(size);
        wm__.end = to + size;
    }
    __builtin_memmove(to, from, used);
    uint32_t key = wm__.rec->key - wm__address(from);
    if (wm__.rec->key_len > 0 && key < used) wm__.rec->key = wm__address(to) + key;
    wm__.base = wm__.done = to;
    wm__.value = to + (wm__.value - from);
    wm__.at = to + used;
}

/* wm__need answers where n bytes may be written. */
WM__INLINE char *wm__need(uint32_t n) {
    if (n > (uint32_t)(wm__.end - wm__.at)) wm__room(n);
    return wm__.at;
}

/* wm_pass emits an input record as it is, to a port: its position among the manifest's outputs. */
WM__INLINE void wm_pass(const wm_record *r, uint16_t port) {
    wm_record *o = wm__slot();
    *o = *r;
    o->kind = WM_RECORD;
    o->port = port;
    wm__.count++;
}

/* wm_begin starts an output record for a port with key, headers, event time and index of r; r may be NULL. The wm_put
 * functions then write its value and wm_end finishes it. What wm_begin answers may be changed until then; what its
 * addresses point to must stay until the handlers of this frame have run. A record begun is forgotten when another one is
 * begun, passed or judged before its end. */
WM__INLINE wm_record *wm_begin(const wm_record *r, uint16_t port) {
    wm__.at = wm__.value = wm__.done;
    wm_record *o = wm__.rec = wm__slot();
    *o = r ? *r : (wm_record){.key_len = -1, .index = WM_NO_INDEX};
    o->kind = WM_RECORD;
    o->port = port;
    return o;
}

/* wm_as_key makes what was written since wm_begin the record's key. */
WM__INLINE void wm_as_key(void) {
    wm__.rec->key = wm__address(wm__.value);
    wm__.rec->key_len = (int32_t)(wm__.at - wm__.value);
    wm__.value = wm__.at;
}

WM__INLINE void wm_end(void) {
    wm__.rec->value = wm__address(wm__.value);
    wm__.rec->value_len = (int32_t)(wm__.at - wm__.value);
    wm__.done = wm__.at;
    wm__.count++;
}

/* wm_end_null finishes a record whose value is null: a tombstone. */
WM__INLINE void wm_end_null(void) {
    wm__.rec->value_len = -1;
    wm__.done = wm__.at = wm__.value;
    wm__.count++;
}

WM__INLINE void wm_put(const char *p, uint32_t n) {
    wm__copy(wm__need(n), p, n);
    wm__.at += n;
}
WM__INLINE void wm_put_slice(wm_slice s) { wm_put(s.p, s.n); }

/* WM_PUT("text") writes a string literal. */
#define WM_PUT(literal) wm_put("" literal, sizeof(literal) - 1)

WM__SLOW int wm__verdict(const wm_record *r, uint8_t kind, int32_t code, wm_slice reason) {
    wm_record *o = wm_begin(NULL, 0);
    o->kind = kind;
    o->partition = code;
    o->index = r->index;
    wm_put_slice(reason);
    wm_end();
    return 0;
}

/* wm_dead sends an input to the dead letters, wm_fail makes it fail by the job's error policy. A code >= 0 of your own and
 * a reason for people. They answer 0: "return wm_dead(r, 1, WM_S("no amount"));". */
WM__INLINE int wm_dead(const wm_record *r, int32_t code, wm_slice reason) {
    return wm__verdict(r, WM_DEAD_LETTER, code, reason);
}
WM__INLINE int wm_fail(const wm_record *r, int32_t code, wm_slice reason) {
    return wm__verdict(r, WM_FAIL, code, reason);
}

WM__INLINE int wm__run(wm_frame *f, const wm_handlers *h) {
    wm__.frame = f;
    if (!wm__.base) {
        wm__.base = wm__bytes;
        wm__.end = wm__bytes + sizeof wm__bytes;
    }
    wm__.at = wm__.value = wm__.done = wm__.base;
    wm__.sent = wm__.count = 0;
    int status = 0;
    uint32_t at = f->records, stride = f->stride;
    if (wm__before) wm__before(f);
    if (h->prefetch) {
        for (uint32_t left = f->count; left && !status; left--, at += stride) {
            const wm_record *r = wm__ptr(at);
            f->progress = r->index;
            status = h->prefetch(r);
        }
        f->progress = status ? f->progress : WM_NO_INDEX;
        if (wm__fetch) wm__fetch();
        at = f->records;
    }
    for (uint32_t left = f->count; left && !status; left--, at += stride) {
        const wm_record *r = wm__ptr(at);
        f->progress = r->index;
        if (r->kind == WM_RECORD) status = h->record(r);
        else if (h->timer) status = h->timer(r);
    }
    if (!status && f->flags & WM_LAST && h->last) status = h->last();
    if (!status && wm__after) wm__after(f->flags & WM_LAST);
    if (!status) wm_flush();
    wm__.frame = NULL;
    return status;
}

/* ---- numbers ------------------------------------------------------------------------------------------------------ */

/* wm_div_round is a / b rounded half away from zero. b is not 0, and the result fits. */
WM__INLINE int64_t wm_div_round(int64_t a, int64_t b) {
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    uint64_t q = x / y, rest = x % y;
    if (rest >= y - rest) q++;
    return (int64_t)((a < 0) != (b < 0) ? 0 - q : q);
}

/* wm__decimal_any reads any decimal text; the ordinary ones take the short way in wm__decimal. */
WM__SLOW bool wm__decimal_any(const char *p, uint32_t n, int32_t scale, int64_t *out, bool *exact) {
    bool negative = n && *p == '-', point = false;
    p += negative, n -= negative;
    uint32_t m = 0, whole = 0, digits = 0;
    for (; m < n && (p[m] | 32) != 'e'; m++) {
        if (p[m] == '.') {
            if (point || !digits) return false;
            point = true;
            continue;
        }
        if ((uint8_t)(p[m] - '0') > 9) return false;
        digits++, whole += !point;
    }
    if (!digits || p[m - 1] == '.') return false;
    int64_t exponent = 0;
    if (m < n) {
        uint32_t i = m + 1;
        bool minus = i < n && p[i] == '-';
        if (i < n && (p[i] == '-' || p[i] == '+')) i++;
        if (i == n) return false;
        for (; i < n; i++) {
            uint8_t d = (uint8_t)(p[i] - '0');
            if (d > 9) return false;
            if (exponent < 1000000000) exponent = exponent * 10 + d;
        }
        if (minus) exponent = -exponent;
    }
    int64_t keep = (int64_t)whole + scale + exponent, seen = 0;
    uint64_t v = 0;
    bool up = false;
    *exact = true;
    for (uint32_t i = 0; i < m; i++) {
        if (p[i] == '.') continue;
        uint8_t d = (uint8_t)(p[i] - '0');
        if (seen < keep) {
            if (v > (UINT64_MAX - d) / 10) return false;
            v = v * 10 + d;
        } else {
            if (seen == keep) up = d >= 5;
            if (d) *exact = false;
        }
        seen++;
    }
    for (; v && seen < keep; seen++) {
        if (v > UINT64_MAX / 10) return false;
        v *= 10;
    }
    v += up;
    if (up && !v) return false;
    if (v > (uint64_t)INT64_MAX + negative) return false;
    *out = (int64_t)(negative ? 0 - v : v);
    return true;
}

WM__INLINE bool wm__decimal(const char *p, uint32_t n, int32_t scale, int64_t *out, bool *exact) {
    if (n > 18 || scale < 0 || n + (uint32_t)scale > 18) return wm__decimal_any(p, n, scale, out, exact);
    uint32_t i = n && *p == '-', first = i;
    uint64_t v = 0;
    uint8_t d;
    for (; i < n && (d = (uint8_t)(p[i] - '0')) <= 9; i++) v = v * 10 + d;
    if (i == first) return false;
    int32_t left = scale;
    bool up = false, all = true;
    if (i < n && p[i] == '.') {
        if (++i == n) return false;
        for (; i < n && left && (d = (uint8_t)(p[i] - '0')) <= 9; i++, left--) v = v * 10 + d;
        if (i < n && (d = (uint8_t)(p[i] - '0')) <= 9) {
            up = d >= 5;
            for (; i < n && (d = (uint8_t)(p[i] - '0')) <= 9; i++) all = all && !d;
        }
    }
    if (i != n) return wm__decimal_any(p, n, scale, out, exact);
    for (; left; left--) v *= 10;
    v += up;
    *exact = all;
    *out = first ? -(int64_t)v : (int64_t)v;
    return true;
}

/* wm_scaled is a JSON number times 10^scale, exactly from its text, rounded half away from zero: 1.005 with scale 2 is 101.
 * False when v is no number or the result does not fit 64 bits. */
WM__INLINE bool wm_scaled(wm_value v, int32_t scale, int64_t *out) {
    bool exact;
    return v.kind == WM_NUMBER && wm__decimal(v.p, v.n, scale, out, &exact);
}

/* wm_integer is a JSON number that is whole, as 12, 1.20e1 and 12.0 are. False for anything else. */
WM__INLINE bool wm_integer(wm_value v, int64_t *out) {
    bool exact;
    return v.kind == WM_NUMBER && wm__decimal(v.p, v.n, 0, out, &exact) && exact;
}

/* wm__length is how many decimal digits v has. */
WM__INLINE uint32_t wm__length(uint64_t v) {
    uint32_t n = 1;
    for (; v > UINT32_MAX; v /= 1000000000) n += 9;
    uint32_t w = (uint32_t)v;
    return n + (w >= 10) + (w >= 100) + (w >= 1000) + (w >= 10000) + (w >= 100000) + (w >= 1000000) + (w >= 10000000) +
           (w >= 100000000) + (w >= 1000000000);
}

/* wm__digits writes the last n digits of v before end and answers what is left of v. */
WM__INLINE uint64_t wm__digits(char *end, uint64_t v, uint32_t n) {
    for (; n && v > UINT32_MAX; n--) {
        uint64_t q = v / 10;
        *--end = (char)('0' + (v - q * 10));
        v = q;
    }
    uint32_t w = (uint32_t)v;
    if (!n) return v;
    for (; n; n--) {
        uint32_t q = (uint32_t)((uint64_t)w * 0xcccccccdu >> 35); /* w / 10 */
        *--end = (char)('0' + (w - q * 10));
        w = q;
    }
    return w;
}

/* wm_put_scaled writes v / 10^scale with exactly scale digits behind the point: 5 with scale 2 is 0.05. scale is 0 to 18. */
WM__INLINE void wm_put_scaled(int64_t v, uint32_t scale) {
    char *to = wm__need(24);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    uint32_t n = wm__length(u);
    if (v < 0) *to++ = '-';
    if (n <= scale) n = scale + 1;
    if (scale) {
        u = wm__digits(to + n + 1, u, scale);
        to[n - scale] = '.';
    }
    wm__digits(to + n - scale, u, n - scale);
    wm__.at = to + n + (scale > 0);
}

/* wm_put_int writes an integer. */
WM__INLINE void wm_put_int(int64_t v) { wm_put_scaled(v, 0); }

/* ---- reading JSON ------------------------------------------------------------------------------------------------- */

/* The scanner wants JSON, which a record has whose flag WM_NOT_JSON is not set, and 16 readable bytes behind it. Of other
 * text it makes no sense, but it ends and stays inside. */

#ifdef __wasm_simd128__
#define WM__STEP 16
#define WM__EACH(c) wasm_i8x16_splat(c)
typedef v128_t wm__block;
typedef uint32_t wm__mask;
WM__INLINE wm__block wm__load(const char *p) { return wasm_v128_load(p); }
WM__INLINE wm__block wm__is(wm__block b, char c) { return wasm_i8x16_eq(b, WM__EACH(c)); }
WM__INLINE wm__block wm__or(wm__block a, wm__block b) { return wasm_v128_or(a, b); }
WM__INLINE wm__block wm__below_space(wm__block b) { return wasm_u8x16_lt(b, WM__EACH(' ')); }
WM__INLINE wm__mask wm__hits(wm__block b) { return wasm_i8x16_bitmask(b); }
WM__INLINE uint32_t wm__first(wm__mask m) { return (uint32_t)__builtin_ctz(m); }
#else
/* 8 bytes a step: a hit sets the top bit of its byte; bits above the first hit may be wrong, which nobody looks at. */
#define WM__STEP 8
#define WM__EACH(c) (0x0101010101010101u * (uint8_t)(c))
typedef uint64_t wm__block;
typedef uint64_t wm__mask;
WM__INLINE wm__block wm__load(const char *p) { return *(const wm__u64 *)p; }
WM__INLINE wm__block wm__zero(wm__block x) { return (x - WM__EACH(1)) & ~x & WM__EACH(0x80); }
WM__INLINE wm__block wm__is(wm__block b, char c) { return wm__zero(b ^ WM__EACH(c)); }
WM__INLINE wm__block wm__or(wm__block a, wm__block b) { return a | b; }
WM__INLINE wm__block wm__below_space(wm__block b) { return (b - WM__EACH(' ')) & ~b & WM__EACH(0x80); }
WM__INLINE wm__mask wm__hits(wm__block b) { return b; }
WM__INLINE uint32_t wm__first(wm__mask m) { return (uint32_t)__builtin_ctzll(m) / 8; }
#endif

WM__INLINE const char *wm__blanks(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r')) p++;
    return p;
}

/* wm__quote finds the quote that ends the string at p, end when there is none. */
WM__INLINE const char *wm__quote(const char *p, const char *end, wm_kind *kind) {
    *kind = WM_STRING;
    while (p < end) {
        wm__block b = wm__load(p);
        wm__mask m = wm__hits(wm__or(wm__is(b, '"'), wm__is(b, '\\')));
        if (!m) {
            p += WM__STEP;
            continue;
        }
        p += wm__first(m);
        if (p >= end) break;
        if (*p == '"') return p;
        *kind = WM_ESCAPED;
        p += 2;
    }
    return end;
}

/* wm__close finds the end of the object or array at p, NULL when there is none. */
WM__SLOW const char *wm__close(const char *p, const char *end) {
    uint32_t depth = 0;
    while (p < end) {
        wm__block b = wm__load(p), low = wm__or(b, WM__EACH(0x20)); /* [ and { differ in this bit, as do ] and } */
        wm__mask m = wm__hits(wm__or(wm__is(b, '"'), wm__or(wm__is(low, '{'), wm__is(low, '}'))));
        if (!m) {
            p += WM__STEP;
            continue;
        }
        p += wm__first(m);
        if (p >= end) break;
        char c = *p++;
        if (c == '"') {
            wm_kind kind;
            p = wm__quote(p, end, &kind) + 1;
        } else if ((c | 0x20) == '{') {
            depth++;
        } else if (--depth == 0) {
            return p;
        }
    }
    return NULL;
}

/* wm__any reads the value at p and answers what follows it, NULL when there is none. */
WM__INLINE const char *wm__any(const char *p, const char *end, wm_value *v) {
    if (p >= end) return NULL;
    char c = *p;
    if (c == '"') {
        v->p = p + 1;
        const char *quote = wm__quote(v->p, end, &v->kind);
        if (quote >= end) return NULL;
        v->n = (uint32_t)(quote - v->p);
        return quote + 1;
    }
    const char *from = p;
    if (c == '{' || c == '[') {
        v->kind = c == '{' ? WM_OBJECT : WM_ARRAY;
        p = wm__close(p, end);
        if (!p) return NULL;
    } else {
        v->kind = c == 't' ? WM_TRUE : c == 'f' ? WM_FALSE : c == 'n' ? WM_NULL : WM_NUMBER;
        if (v->kind == WM_NUMBER && c != '-' && (uint8_t)(c - '0') > 9) return NULL;
        while (p < end && *p != ',' && *p != '}' && *p != ']' && (uint8_t)*p > ' ') p++;
    }
    v->p = from;
    v->n = (uint32_t)(p - from);
    return p;
}

/* A walk over the members of an object or the items of an array. */
typedef struct {
    const char *p, *end;
} wm_scan;

/* wm_scan_open starts a walk over the object or array in text; over nothing when there is none. */
WM__INLINE wm_scan wm_scan_open(wm_slice text) {
    const char *end = text.p + text.n, *p = wm__blanks(text.p, end);
    if (p >= end || (*p | 0x20) != '{') return (wm_scan){end, end};
    return (wm_scan){wm__blanks(p + 1, end), end};
}

/* wm_scan_item takes the next item of an array; false at the end. */
WM__INLINE bool wm_scan_item(wm_scan *s, wm_value *item) {
    const char *p = wm__any(s->p, s->end, item);
    if (!p) return s->p = s->end, false;
    p = wm__blanks(p, s->end);
    if (p < s->end && *p == ',') p = wm__blanks(p + 1, s->end);
    s->p = p;
    return true;
}

/* wm_scan_member takes the next member of an object; false at the end. */
WM__INLINE bool wm_scan_member(wm_scan *s, wm_value *name, wm_value *value) {
    if (s->p >= s->end || *s->p != '"') return s->p = s->end, false;
    const char *p = wm__any(s->p, s->end, name);
    if (p) p = wm__blanks(p, s->end);
    if (!p || p >= s->end || *p != ':') return s->p = s->end, false;
    s->p = wm__blanks(p + 1, s->end);
    return wm_scan_item(s, value);
}

WM__INLINE uint32_t wm__hex4(const char *p) {
    uint32_t v = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = (uint8_t)p[i], letter = (uint8_t)((c | 32) - 'a');
        v = v << 4 | (c <= '9' ? c - '0' : letter + 10u);
    }
    return v;
}

/* wm__unescape takes one character of an escaped string and writes its bytes; it answers how many. */
WM__SLOW uint32_t wm__unescape(const char **at, const char *end, char out[4]) {
    const char *p = *at;
    if (*p != '\\' || p + 1 >= end) return *at = p + 1, out[0] = *p, 1;
    char c = p[1];
    *at = p + 2;
    switch (c) {
    case 'b': return out[0] = '\b', 1;
    case 'f': return out[0] = '\f', 1;
    case 'n': return out[0] = '\n', 1;
    case 'r': return out[0] = '\r', 1;
    case 't': return out[0] = '\t', 1;
    case 'u': break;
    default: return out[0] = c, 1;
    }
    if (end - p < 6) return *at = end, out[0] = '?', 1;
    uint32_t u = wm__hex4(p + 2) & 0xffff;
    *at = p + 6;
    if (u >= 0xd800 && u < 0xe000) {
        uint32_t low = u < 0xdc00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? wm__hex4(p + 8) : 0;
        bool pair = low >= 0xdc00 && low < 0xe000;
        u = pair ? 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00) : 0xfffd;
        if (pair) *at = p + 12;
    }
    if (u < 0x80) return out[0] = (char)u, 1;
    uint32_t n = u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (uint32_t i = n; i-- > 1; u >>= 6) out[i] = (char)(0x80 | (u & 0x3f));
    out[0] = (char)(0xf00 >> n | u);
    return n;
}

WM__SLOW bool wm__is_escaped(wm_value v, wm_slice s) {
    uint32_t at = 0;
    for (const char *p = v.p, *end = v.p + v.n; p < end;) {
        char c[4];
        uint32_t n = wm__unescape(&p, end, c);
        if (n > s.n - at || !wm__same(c, s.p + at, n)) return false;
        at += n;
    }
    return at == s.n;
}

/* wm_is says whether v is the string s; escapes in v are understood. */
WM__INLINE bool wm_is(wm_value v, wm_slice s) {
    if (v.kind == WM_STRING) return v.n == s.n && wm__same(v.p, s.p, s.n);
    return v.kind == WM_ESCAPED && wm__is_escaped(v, s);
}

/* wm_find_all finds members of an object by name, in one scan; of members with the same name the last one counts. */
WM__INLINE void wm_find_all(wm_slice object, const wm_slice names[], uint32_t n, wm_value found[]) {
    for (uint32_t i = 0; i < n; i++) found[i] = (wm_value){0, 0, WM_ABSENT};
    wm_scan s = wm_scan_open(object);
    for (wm_value name, value; wm_scan_member(&s, &name, &value);)
        for (uint32_t i = 0; i < n; i++)
            if (wm_is(name, names[i])) {
                found[i] = value;
                break;
            }
}

/* wm_find finds one member of an object. */
WM__INLINE wm_value wm_find(wm_slice object, wm_slice name) {
    wm_value found;
    wm_find_all(object, &name, 1, &found);
    return found;
}

/* wm_text is a value's text as a slice, for wm_find and wm_scan_open on objects and arrays, and for wm_log. */
WM__INLINE wm_slice wm_text(wm_value v) { return (wm_slice){v.p, v.n}; }

/* ---- writing JSON ------------------------------------------------------------------------------------------------- */

/* wm_put_text writes what a string says, without quotes and escapes: for keys. Of another value its text. */
WM__INLINE void wm_put_text(wm_value v) {
    if (v.kind != WM_ESCAPED) {
        wm_put(v.p, v.n);
        return;
    }
    for (const char *p = v.p, *end = v.p + v.n; p < end;) {
        char c[4];
        uint32_t n = wm__unescape(&p, end, c);
        wm_put(c, n);
    }
}

/* wm_put_value writes a value as it stood in the input; null for an absent one. */
WM__INLINE void wm_put_value(wm_value v) {
    bool quotes = v.kind == WM_STRING || v.kind == WM_ESCAPED;
    if (v.kind == WM_ABSENT) {
        WM_PUT("null");
        return;
    }
    if (quotes) WM_PUT("\"");
    wm_put(v.p, v.n);
    if (quotes) WM_PUT("\"");
}

WM__SLOW void wm__put_escape(uint8_t c) {
    char *to = wm__need(6);
    char letter = c == '"' || c == '\\' ? (char)c : c == '\b' ? 'b' : c == '\f' ? 'f' : c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : 0;
    to[0] = '\\';
    to[1] = letter ? letter : 'u';
    to[2] = to[3] = '0';
    to[4] = (char)('0' + (c >> 4));
    to[5] = "0123456789abcdef"[c & 15];
    wm__.at += letter ? 2 : 6;
}

/* wm_put_string writes UTF-8 bytes as a JSON string, with quotes and the shortest escapes. */
WM__SLOW void wm_put_string(wm_slice s) {
    WM_PUT("\"");
    const char *p = s.p, *from = p, *end = s.p + s.n;
    while (p < end) {
        if (end - p >= WM__STEP) {
            wm__block b = wm__load(p);
            wm__mask m = wm__hits(wm__or(wm__below_space(b), wm__or(wm__is(b, '"'), wm__is(b, '\\'))));
            if (!m) {
                p += WM__STEP;
                continue;
            }
            p += wm__first(m);
        }
        if ((uint8_t)*p < ' ' || *p == '"' || *p == '\\') {
            wm_put(from, (uint32_t)(p - from));
            wm__put_escape((uint8_t)*p);
            from = p + 1;
        }
        p++;
    }
    wm_put(from, (uint32_t)(end - from));
    WM_PUT("\"");
}

/* wm_put_head writes an object without its closing brace, so that WM_MEMBER can go on. */
WM__INLINE void wm_put_head(wm_slice object) {
    const char *end = object.p + object.n;
    while (end > object.p && (uint8_t)end[-1] <= ' ') end--;
    if (end > object.p) end--;
    while (end > object.p && (uint8_t)end[-1] <= ' ') end--;
    wm_put(object.p, (uint32_t)(end - object.p));
}

/* WM_MEMBER("name") writes a member's name, after a comma unless it is the first; its value is yours to write next. The
 * name is written as it is: without quotes, backslashes and control characters. */
#define WM_MEMBER(name) wm__member(",\"" name "\":", sizeof(name) + 3)
WM__INLINE void wm__member(const char *text, uint32_t n) {
    uint32_t skip = wm__.at > wm__.value && wm__.at[-1] == '{';
    wm_put(text + skip, n - skip);
}

#endif /* WASMILL_H */
