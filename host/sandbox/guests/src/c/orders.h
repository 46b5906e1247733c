/* orders.h: what the C guests of orders share: memory, the loop over a frame, and the output. A guest is this and one
 * function, order, which looks at a value. Only the layouts of the C SDK are used. */
#ifndef ORDERS_H
#define ORDERS_H

#include "wasmill_abi.h"

#define ARENA (512 << 10) /* frames of 1,000 records, and their output */

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

static u8 frame_arena[ARENA + 16] __attribute__((aligned(16)));
static u8 output_arena[ARENA + 16] __attribute__((aligned(16)));
static wm_record pending[1024];

WM_EXPORT("wasmill_alloc") void *guest_alloc(u32 n) { return n <= sizeof frame_arena ? frame_arena : 0; }

WM_EXPORT("wasmill_init") int guest_init(const char *config, u32 n, u32 max_frame) {
    return (void)config, (void)n, (void)max_frame, 0;
}

/* What a scan finds in an order: whether it is to be dropped, the amount in cents, and where the last brace stands. */
typedef struct {
    u32 cancelled, last;
    u64 cents;
} order_t;

/* order scans the n bytes of a value once; 16 bytes behind them may be read. */
static void order(const u8 *v, u32 n, order_t *o);

static inline int same(const u8 *p, u32 n, const char *word, u32 m) {
    if (n != m) return 0;
    for (u32 i = 0; i < m; i++)
        if (p[i] != (u8)word[i]) return 0;
    return 1;
}
#define SAME(p, n, word) same(p, n, word, sizeof(word) - 1)

/* cents reads a number with at most two decimals. */
static inline u64 cents_of(const u8 *p, u32 n) {
    u64 whole = 0;
    u32 i = 0, left = 2;
    for (; i < n && p[i] != '.'; i++) whole = whole * 10 + (u64)(p[i] - '0');
    for (i++; i < n && left; i++, left--) whole = whole * 10 + (u64)(p[i] - '0');
    for (; left; left--) whole *= 10;
    return whole;
}

/* put_eur writes the new member and the brace, and returns the end. */
static inline u8 *put_eur(u8 *to, u64 cents) {
    u64 eur = (cents * 92 + 50) / 100, whole = eur / 100;
    u8 digits[20];
    u32 n = 0;
    __builtin_memcpy(to, ",\"amount_eur\":", 14);
    to += 14;
    do digits[n++] = (u8)('0' + whole % 10);
    while (whole /= 10);
    while (n) *to++ = digits[--n];
    *to++ = '.';
    *to++ = (u8)('0' + eur / 10 % 10);
    *to++ = (u8)('0' + eur % 10);
    *to++ = '}';
    return to;
}

WM_EXPORT("wasmill_batch") int guest_batch(wm_frame *frame, u32 n) {
    (void)n;
    u8 *to = output_arena;
    u32 at = frame->records, kept = 0;
    for (u32 i = 0; i < frame->count; i++, at += frame->stride) {
        const wm_record *r = (const wm_record *)(uintptr_t)at;
        const u8 *v = (const u8 *)(uintptr_t)r->value;
        order_t o;
        frame->progress = r->index;
        order(v, (u32)r->value_len, &o);
        if (o.cancelled) continue;
        if (o.last + 64 > (u32)(output_arena + ARENA - to)) return 1;
        wm_record *out = &pending[kept++];
        *out = *r;
        __builtin_memcpy(to, v, o.last);
        out->value = (u32)(uintptr_t)to;
        u8 *end = put_eur(to + o.last, o.cents);
        out->value_len = (int32_t)(end - to);
        to = end;
    }
    wm_host_emit(pending, kept, sizeof pending[0]);
    return 0;
}

#endif
