/* Orders, 16 bytes at a time. */
#include "orders.h"

#include <wasm_simd128.h>

/* end_of_string is the place of the quote that ends the string that begins at i. */
static inline u32 end_of_string(const u8 *v, u32 n, u32 i) {
    const v128_t quote = wasm_i8x16_splat('"'), backslash = wasm_i8x16_splat('\\');
    while (i < n) {
        v128_t b = wasm_v128_load(v + i);
        u32 hits = wasm_i8x16_bitmask(wasm_v128_or(wasm_i8x16_eq(b, quote), wasm_i8x16_eq(b, backslash)));
        if (!hits) {
            i += 16;
            continue;
        }
        i += (u32)__builtin_ctz(hits);
        if (v[i] == '"') return i;
        i += 2;
    }
    return i;
}

/* structural is the place of the next quote, brace or bracket from i on. */
static inline u32 structural(const u8 *v, u32 n, u32 i) {
    const v128_t quote = wasm_i8x16_splat('"'), open = wasm_i8x16_splat('{'), close = wasm_i8x16_splat('}'), fold = wasm_i8x16_splat(0x20);
    for (; i < n; i += 16) {
        v128_t b = wasm_v128_load(v + i), folded = wasm_v128_or(b, fold);
        v128_t hit = wasm_v128_or(wasm_i8x16_eq(b, quote), wasm_v128_or(wasm_i8x16_eq(folded, open), wasm_i8x16_eq(folded, close)));
        u32 hits = wasm_i8x16_bitmask(hit);
        if (hits) return i + (u32)__builtin_ctz(hits);
    }
    return n;
}

static void order(const u8 *v, u32 n, order_t *o) {
    const u8 *key = v;
    u32 key_len = 0, depth = 0;
    *o = (order_t){0};
    for (u32 i = structural(v, n, 0); i < n; i = structural(v, n, i)) {
        u8 c = v[i++];
        if (c != '"') {
            if ((c | 0x20) == '{') depth++;
            else depth--, o->last = i - 1;
            continue;
        }
        u32 from = i, end = end_of_string(v, n, i);
        i = end + 1;
        if (depth != 1) continue;
        if (v[i] != ':') {
            if (SAME(key, key_len, "status")) o->cancelled = (u32)SAME(v + from, end - from, "cancelled");
            continue;
        }
        key = v + from, key_len = end - from;
        if ((u8)(v[++i] - '0') > 9) continue;
        from = i;
        while (i < n && (v[i] == '.' || (u8)(v[i] - '0') < 10)) i++;
        if (SAME(key, key_len, "amount_usd")) o->cents = cents_of(v + from, i - from);
    }
}
