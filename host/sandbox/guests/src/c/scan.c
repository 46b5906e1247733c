/* Orders, one byte at a time. */
#include "orders.h"

static void order(const u8 *v, u32 n, order_t *o) {
    const u8 *key = v;
    u32 key_len = 0, depth = 0, i = 0;
    *o = (order_t){0};
    while (i < n) {
        u8 c = v[i];
        if (c == '"') {
            u32 from = ++i;
            while (i < n && v[i] != '"') i += v[i] == '\\' ? 2 : 1;
            u32 len = i - from;
            i++;
            if (depth != 1) continue;
            if (i < n && v[i] == ':') {
                key = v + from, key_len = len;
            } else if (SAME(key, key_len, "status")) {
                o->cancelled = (u32)SAME(v + from, len, "cancelled");
            }
        } else if (c == '{' || c == '[') {
            depth++, i++;
        } else if (c == '}' || c == ']') {
            depth--, o->last = i++;
        } else if (depth == 1 && (u8)(c - '0') < 10) {
            u32 from = i;
            while (i < n && (v[i] == '.' || (u8)(v[i] - '0') < 10)) i++;
            if (SAME(key, key_len, "amount_usd")) o->cents = cents_of(v + from, i - from);
        } else {
            i++;
        }
    }
}
