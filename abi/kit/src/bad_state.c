/* One breach of the rules of state each. AT_LIMIT is none. */
#define OWN_INIT
#include "state.h"

static wm_state_op ops[2];
static uint8_t value[524288 + 8], long_key[4104], buf[64] __attribute__((aligned(8)));
static u32 need[2];

static wm_state_op named(u32 op, const wm_record *r) {
    return (wm_state_op){.op = (uint8_t)op, .key = r ? r->key : 0, .key_len = r ? (u32)r->key_len : 0,
                         .sub = address("sub"), .sub_len = 3, .value = address("value"), .value_len = 5};
}

static void use(const wm_record *r) {
    wm_state_op *o = ops;
    u32 n = 1, cap = sizeof buf, *needed = need;
    uint8_t *b = buf;
#if defined READ
    ops[0] = named(READ, r);
#elif defined WRITE
    ops[0] = named(WRITE, r);
#endif
    ops[1] = ops[0];
#if defined OPS_MISALIGNED
    o = at(address(ops) + 4);
#elif defined OPS_WILD
    o = at((u32)__builtin_wasm_memory_size(0) * 65536 - 48);
#elif defined OPS_COUNT /* one too many, though all lie in memory */
    n = 65537, o = 0;
    __builtin_wasm_memory_grow(0, 64);
#elif defined OPS_OVERFLOW /* count * 56 = 2^32 + 8 */
    n = 76695845;
#elif defined OPS_NONE
    n = 0, o = at(0xfffffff1u), needed = at(0xfffffff1u);
#elif defined FLAGS
    o->flags = 4;
#elif defined TABLE
    o->table = 2;
#elif defined TIMER_TABLE
    o->table = 1;
#elif defined TIMER_DOMAIN
    o->domain = 2;
#elif defined TIME_EARLY
    o->at = -62135596800000001;
#elif defined TIME_LATE
    o->at = 253402300800000000;
#elif defined KEY_WILD
    o->key = 0xfffffff0u, o->key_len = 32;
#elif defined KEY_NULL
    o->key_len = 0xffffffffu;
#elif defined KEY_LONG /* key and sub together have one byte too many */
    o->sub = address(long_key), o->sub_len = 4097 - o->key_len;
#elif defined SUB_WILD
    o->sub = 0xfffffff0u;
#elif defined VALUE_NONE
    o->value_len = -1;
#elif defined VALUE_WILD
    o->value = 0xffffff00u, o->value_len = 4096;
#elif defined VALUE_LONG
    o->value = address(value), o->value_len = 524289;
#elif defined VALUE_MINUS_2
    o->value_len = -2;
#elif defined SECOND /* the second operation is wrong: nothing of the call counts */
    n = 2, ops[1].table = 9;
#elif defined BUF_MISALIGNED
    b = buf + 4, cap = 32;
#elif defined BUF_WILD
    b = at(0xfffffff8u);
#elif defined BUF_OVER_OPS
    b = (uint8_t *)(ops + 1), n = 2;
#elif defined NEED_MISALIGNED
    needed = at(address(need) + 2);
#elif defined NEED_WILD
    needed = at(0xfffffffcu);
#elif defined NEED_IN_OPS
    needed = &ops[0].count;
#elif defined NEED_IN_BUF
    needed = (u32 *)(buf + 8);
#endif
#if defined READ
    host_read(o, n, b, cap, needed);
#elif defined WRITE
    host_write(o, n);
#endif
}

#if defined AT_LIMIT
#undef BATCH
WM_EXPORT("wasmill_batch") int32_t batch(wm_frame *f, u32 len) {
    EACH(r, f) {
        wm_state_op put_op = named(WM_PUT, r);
        put_op.sub = address(long_key), put_op.sub_len = 4096 - r->key_len;
        put_op.value = address(value), put_op.value_len = 524288;
        ops[0] = put_op;
        host_write(ops, 1);
        ops[0].op = WM_GET;
        u32 result = host_read(ops, 1, buf, sizeof buf, need);
        put("result "), put_int(result), put(" need "), put_int(need[0]), emit_text(r->index);
    }
    return 0;
}
#else
BATCH(f) {
    EACH(r, f) use(r);
    return 0;
}
#endif

WM_EXPORT("wasmill_init") int32_t init(u32 config, u32 len, u32 max_frame) {
#if defined IN_INIT
    use(0);
#endif
    return 0;
}
