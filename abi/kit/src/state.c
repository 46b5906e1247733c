/* Does what the value of each record says, a line for each operation, under the record's key, and emits what came of it.
 * Reads in succession are one call of state_read, writes in succession one of state_write. Words are separated by one
 * blank; ~ is the empty word and - stands for none. Timers are emitted as they are.
 *
 *   g TABLE SUB                        get                  p TABLE SUB VALUE EXPIRY    put
 *   s TABLE PREFIX AFTER LIMIT         scan                 d TABLE SUB                 delete
 *   S TABLE PREFIX AFTER LIMIT         scan downwards       x TABLE PREFIX BEFORE       delete-prefix
 *   b BYTES                            size of the buffer   t DOMAIN SUB AT             timer-set
 *                                                           u DOMAIN SUB AT             timer-delete
 */
#include "state.h"

static wm_state_op ops[64];
static u32 count;
static uint8_t buf[4096] __attribute__((aligned(8)));
static u32 cap, need;
static bool writes;

static const char *next, *end;

/* word cuts the next word off the line; its address is 0 for none. */
static u32 word(u32 *len) {
    const char *s = next;
    while (next < end && *next != ' ' && *next != '\n') next++;
    *len = (u32)(next - s);
    if (next < end && *next == ' ') next++;
    if (*len == 1 && *s == '~') *len = 0;
    return *len == 1 && *s == '-' ? 0 : address(s);
}

static int64_t number(void) {
    u32 len;
    const char *s = at(word(&len));
    int64_t v = 0;
    bool minus = len && *s == '-';
    for (u32 i = minus; i < len; i++) v = v * 10 + s[i] - '0';
    return minus ? -v : v;
}

static void show(const wm_state_op *op) {
    if (op->op == WM_GET) {
        put(op->answer_len < 0 ? "absent" : "="), put_bytes(op->answer, op->answer_len > 0 ? (u32)op->answer_len : 0);
    } else {
        const wm_scan_entry *e = at(op->answer);
        put("["), put_int(op->count);
        for (u32 i = 0; i < op->count; i++) {
            put(" "), put_bytes(e[i].sub, e[i].sub_len), put("="), put_bytes(e[i].value, (u32)e[i].value_len);
        }
        put("]"), put(op->flags & WM_MORE ? "+" : ""), put(op->flags & WM_DESCENDING ? " down" : "");
    }
    if (op->answer % 8 || (op->answer && (op->answer < address(buf) || op->answer - address(buf) >= cap))) put(" MISPLACED");
    put("; ");
}

/* flush calls the host with what has been collected. */
static void flush(void) {
    if (count && writes) host_write(ops, count);
    if (count && !writes) {
        u32 result = host_read(ops, count, cap ? buf : at(0xfffffff1u), cap, &need);
        if (result) put("result "), put_int(result), put(" need "), put_int(need), put("; ");
        for (u32 i = 0; i < count && !result; i++) show(&ops[i]);
    }
    count = 0;
}

/* line reads one line into an operation. */
static void line(const wm_record *r) {
    u32 len, code = *(const uint8_t *)next;
    next += 2;
    if (code == 'b') {
        flush(), cap = (u32)number();
        return;
    }
    bool write = code != 'g' && code != 's' && code != 'S';
    if (write != writes) flush(), writes = write;
    wm_state_op *op = &ops[count++];
    __builtin_memset(op, 0xee, sizeof *op); /* what an operation does not use is not looked at */
    op->flags = WM_MORE, op->table = 0;
    op->key = r->key, op->key_len = (u32)r->key_len;
    if (code == 't' || code == 'u') op->domain = (uint8_t)number();
    else op->table = (uint16_t)number();
    op->sub = word(&op->sub_len);
    switch (code) {
    case 'g': op->op = WM_GET; break;
    case 'S': op->flags |= WM_DESCENDING; /* fall through */
    case 's': op->op = WM_SCAN; break;
    case 'p': op->op = WM_PUT; break;
    case 'd': op->op = WM_DELETE; break;
    case 'x': op->op = WM_DELETE_PREFIX; break;
    case 't': op->op = WM_TIMER_SET; break;
    default: op->op = WM_TIMER_DELETE;
    }
    if (code == 's' || code == 'S' || code == 'p' || code == 'x') {
        op->value = word(&len), op->value_len = op->value ? (int32_t)len : -1;
        if (code == 's' || code == 'S') op->limit = (u32)number();
        if (code == 'p') op->at = number();
    } else if (code == 't' || code == 'u') {
        op->at = number();
    }
}

BATCH(f) {
    EACH(r, f) {
        if (r->kind != WM_RECORD) {
            put("chunk "), put_int(f->chunk), put(" of "), put_int(f->count), put(" kind "), put_int(r->kind), put(" at ");
            put_int(r->event_time), put(" flags "), put_int(r->flags), put(" "), put_bytes(r->key, (u32)r->key_len), put(" ");
            put_bytes(r->value, (u32)r->value_len), emit_text(r->index);
            continue;
        }
        cap = sizeof buf;
        next = at(r->value), end = next + r->value_len;
        while (next < end) {
            line(r);
            while (next < end && *next++ != '\n') {}
        }
        flush();
        emit_text(r->index);
    }
    return 0;
}
