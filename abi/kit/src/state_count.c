/* Keeps a count for each key in state, as eight bytes, and writes it with the lane's last frame: reads in one call a frame,
 * writes in one call. Emits the counts, and sets a timer for each new key a second behind the watermark. */
#include "state.h"

static struct entry {
    char key[8];
    u32 len;
    uint64_t count;
    bool fresh;
} entries[64];
static u32 count;
static wm_state_op ops[128];
static uint64_t answers[64];

static struct entry *find(const wm_record *r) {
    const char *key = at(r->key);
    for (u32 i = 0; i < count; i++) {
        u32 n = 0;
        while (n < entries[i].len && n < (u32)r->key_len && entries[i].key[n] == key[n]) n++;
        if (n == entries[i].len && n == (u32)r->key_len) return &entries[i];
    }
    struct entry *e = &entries[count++];
    e->len = (u32)r->key_len;
    for (u32 i = 0; i < e->len; i++) e->key[i] = key[i];
    return e;
}

static wm_state_op named(uint8_t op, const struct entry *e) {
    return (wm_state_op){.op = op, .table = op < WM_TIMER_SET, .key = address(e->key), .key_len = e->len};
}

BATCH(f) {
    u32 known = count, need;
    EACH(r, f) {
        if (r->kind == WM_RECORD) find(r);
    }
    for (u32 i = known; i < count; i++) ops[i - known] = named(WM_GET, &entries[i]);
    if (host_read(ops, count - known, answers, sizeof answers, &need)) return 1;
    for (u32 i = known; i < count; i++) {
        const wm_state_op *op = &ops[i - known];
        entries[i].fresh = op->answer_len < 0;
        if (!entries[i].fresh) entries[i].count = *(uint64_t *)at(op->answer);
    }
    EACH(r, f) {
        if (r->kind == WM_RECORD) find(r)->count++;
        else put("timer "), put_bytes(r->key, (u32)r->key_len), emit_text(r->index);
    }
    if (!(f->flags & WM_LAST)) return 0;
    u32 n = 0;
    for (u32 i = 0; i < count; i++) {
        const struct entry *e = &entries[i];
        ops[n] = named(WM_PUT, e), ops[n].value = address(&e->count), ops[n++].value_len = 8;
        if (e->fresh) ops[n] = named(WM_TIMER_SET, e), ops[n++].at = f->watermark + 1000000;
        put_bytes(address(e->key), e->len), put("="), put_int((int64_t)e->count), put(" ");
    }
    host_write(ops, n);
    emit_text(WM_NO_INDEX);
    return 0;
}
