/* wasmill_state.h: keyed state and timers for transforms in C. Include it after wasmill.h, in a module whose manifest has
 * "tables"; a table is its position there. README.md has an example.
 *
 * Entries are addressed by table, key and sub-key; the key must be that of a record or timer of this lane. What was read or
 * written is kept in a cache and written in one call at the lane's end. Reads see the batch's own writes. Values given out
 * are valid until the handler returns; keys, sub-keys and values handed in are copied.
 */
#ifndef WASMILL_STATE_H
#define WASMILL_STATE_H

#include "wasmill.h"

#ifndef WM_STATE_CACHE
#define WM_STATE_CACHE (2u << 20) /* bytes in the cache from which it is written and emptied after a frame */
#endif

enum { WM__KNOWN = 1, WM__DIRTY = 2, WM__WANTED = 4, WM__ERASED = 8, WM__STATE_OPS = 1024, WM__TIMERS = 64 };

/* An entry of the cache. A timer has table WM__TIMERS and its domain; its sub begins with the time's eight bytes. */
typedef struct {
    const char *key, *sub;
    char *value;
    uint32_t key_len, sub_len;
    int32_t len; /* -1: there is none */
    uint32_t hash;
    int64_t at; /* expiry or a timer's time */
    uint16_t table, flags;
} wm__entry;

typedef struct wm__chunk {
    struct wm__chunk *next;
    char *end;
} wm__chunk;

static struct {
    wm__entry *entries;
    uint32_t *slots, *dirty; /* places in entries, plus 1 in slots; what is dirty, or wanted while wants is not 0 */
    uint32_t count, mask, dirty_count, wants, used;
    bool timed, deletes; /* the cache has timers; some were deleted */
    wm__chunk *first, *chunk;
    char *at;
    uint32_t need; /* where the host says how much room answers take */
} wm__state;
static wm_state_op wm__ops[WM__STATE_OPS];

/* ---- the cache ---------------------------------------------------------------------------------------------------- */

WM__SLOW void wm__state_stop(wm_slice why) {
    wm_log(WM_ERROR, why);
    __builtin_trap();
}

/* wm__state_room makes room for n bytes in one piece. */
WM__SLOW void wm__state_room(uint32_t n) {
    if (wm__state.chunk && n <= (uint32_t)(wm__state.chunk->end - wm__state.at)) return;
    wm__chunk **link = wm__state.chunk ? &wm__state.chunk->next : &wm__state.first;
    while (*link && (uint32_t)((*link)->end - (char *)(*link + 1)) < n) link = &(*link)->next;
    if (!*link) {
        uint32_t size = (n + sizeof(wm__chunk) + 262143) & ~262143u;
        *link = wm__grow(size);
        (*link)->next = NULL;
        (*link)->end = (char *)*link + size;
    }
    wm__state.chunk = *link;
    wm__state.at = (char *)(*link + 1);
}

WM__SLOW char *wm__state_take(uint32_t n) {
    n = (n + 7) & ~7u;
    wm__state_room(n);
    wm__state.used += n;
    wm__state.at += n;
    return wm__state.at - n;
}

WM__INLINE char *wm__state_copy(wm_slice s) {
    char *to = wm__state_take(s.n);
    wm__copy(to, s.p, s.n);
    return to;
}

WM__INLINE uint32_t wm__state_hash(uint64_t h, wm_slice s) {
    const char *p = s.p, *end = s.p + s.n;
    h = (h ^ s.n) * 0x9e3779b97f4a7c15;
    for (; end - p >= 8; p += 8) h = (h ^ h >> 32 ^ *(const wm__u64 *)p) * 0x9e3779b97f4a7c15;
    for (; p < end; p++) h = (h ^ h >> 32 ^ (uint8_t)*p) * 0x9e3779b97f4a7c15;
    return (uint32_t)(h >> 32);
}

WM__SLOW void wm__state_enlarge(void) {
    uint32_t n = wm__state.mask ? 2 * (wm__state.mask + 1) : 4096;
    wm__entry *entries = wm__grow(n / 2 * sizeof(wm__entry) + n / 2 * 4 + n * 4);
    __builtin_memcpy(entries, wm__state.entries, wm__state.count * sizeof(wm__entry));
    uint32_t *dirty = (uint32_t *)(entries + n / 2);
    __builtin_memcpy(dirty, wm__state.dirty, wm__state.dirty_count * 4);
    wm__state.entries = entries;
    wm__state.dirty = dirty;
    wm__state.slots = dirty + n / 2;
    wm__state.mask = n - 1;
    for (uint32_t i = 0; i < wm__state.count; i++) {
        uint32_t at = entries[i].hash & wm__state.mask;
        while (wm__state.slots[at]) at = (at + 1) & wm__state.mask;
        wm__state.slots[at] = i + 1;
    }
}

static void wm__state_begin(const wm_frame *f);
static void wm__state_end(bool last);

/* wm__state_entry finds an entry in the cache or makes it. Its address is good until the next one is made. */
WM__SLOW wm__entry *wm__state_entry(uint16_t table, wm_slice key, wm_slice sub) {
    if (!key.p) wm__state_stop(WM_S("state belongs to a key, and there is none"));
    if (key.n > 4096 || sub.n > 4104 || key.n + sub.n > (table < WM__TIMERS ? 4096u : 4104u))
        wm__state_stop(WM_S("a key and its sub-key together have at most 4 KiB"));
    if (wm__state.count >= wm__state.mask / 2) {
        wm__before = wm__state_begin;
        wm__after = wm__state_end;
        wm__state_enlarge();
    }
    uint32_t hash = wm__state_hash(wm__state_hash(table, key), sub), at = hash & wm__state.mask;
    for (; wm__state.slots[at]; at = (at + 1) & wm__state.mask) {
        wm__entry *e = &wm__state.entries[wm__state.slots[at] - 1];
        if (e->hash == hash && e->table == table && e->key_len == key.n && e->sub_len == sub.n && wm__same(e->key, key.p, key.n) &&
            wm__same(e->sub, sub.p, sub.n))
            return e;
    }
    wm__entry *e = &wm__state.entries[wm__state.count++];
    *e = (wm__entry){wm__state_copy(key), wm__state_copy(sub), NULL, key.n, sub.n, -1, hash, 0, table, 0};
    wm__state.used += sizeof *e;
    wm__state.slots[at] = wm__state.count;
    return e;
}

/* ---- calls of the host -------------------------------------------------------------------------------------------- */

WM__INLINE wm_state_op *wm__state_op(uint32_t i, uint8_t kind, const wm__entry *e) {
    wm_state_op *op = &wm__ops[i];
    uint32_t skip = e->table < WM__TIMERS ? 0 : 8;
    *op = (wm_state_op){.op = kind, .table = e->table, .key = wm__address(e->key), .key_len = e->key_len,
                        .sub = wm__address(e->sub) + skip, .sub_len = e->sub_len - skip, .value_len = -1};
    if (skip) {
        op->domain = (uint8_t)(e->table - WM__TIMERS);
        op->table = 0;
        op->at = e->at;
    }
    return op;
}

WM__SLOW void wm__state_send(uint32_t n) {
    if (n) wm_host_state_write(wm__ops, n);
}

/* wm__state_flush writes what is dirty: all of it, or timers alone. */
WM__SLOW void wm__state_flush(bool timers_alone) {
    uint32_t n = 0, left = 0;
    for (uint32_t i = 0; i < wm__state.dirty_count; i++) {
        wm__entry *e = &wm__state.entries[wm__state.dirty[i]];
        if (!(e->flags & WM__DIRTY)) continue;
        if (timers_alone && e->table < WM__TIMERS) {
            wm__state.dirty[left++] = wm__state.dirty[i];
            continue;
        }
        if (n >= WM__STATE_OPS - 1) {
            wm__state_send(n);
            n = 0;
        }
        bool timer = e->table >= WM__TIMERS;
        if (e->len < 0 || e->flags & WM__ERASED) wm__state_op(n++, timer ? WM_TIMER_DELETE : WM_DELETE, e);
        e->flags &= (uint16_t)~(WM__DIRTY | WM__ERASED);
        if (e->len < 0) continue;
        wm_state_op *op = wm__state_op(n++, timer ? WM_TIMER_SET : WM_PUT, e);
        op->value = wm__address(e->value);
        op->value_len = e->len;
        op->at = e->at;
    }
    wm__state_send(n);
    wm__state.dirty_count = left;
    wm__state.deletes = false;
}

WM__SLOW void wm__state_empty(void) {
    __builtin_memset(wm__state.slots, 0, (wm__state.mask + 1) * 4);
    wm__state.count = wm__state.used = 0;
    wm__state.timed = false;
    wm__state.chunk = wm__state.first;
    wm__state.at = (char *)(wm__state.first + 1);
}

/* wm__state_ask has n operations answered into the cache; false when that takes more than most bytes. */
WM__SLOW bool wm__state_ask(uint32_t n, uint32_t most) {
    wm__state_room(65536);
    while (wm_host_state_read(wm__ops, n, wm__state.at, (uint32_t)(wm__state.chunk->end - wm__state.at) & ~7u, &wm__state.need)) {
        if (wm__state.need > most) return false;
        wm__state_room((wm__state.need + 7) & ~7u);
    }
    uint32_t end = wm__address(wm__state.at);
    for (uint32_t i = 0; i < n; i++)
        if (wm__ops[i].answer_len > 0) end = (wm__ops[i].answer + (uint32_t)wm__ops[i].answer_len + 7) & ~7u;
    wm__state.used += end - wm__address(wm__state.at);
    wm__state.at += end - wm__address(wm__state.at);
    return true;
}

WM__INLINE void wm__state_answered(wm__entry *e, const wm_state_op *op) {
    e->value = op->answer ? (char *)wm__ptr(op->answer) : (char *)wm__ops; /* an empty one is not NULL */
    e->len = op->answer_len;
    e->at = 0;
    e->flags |= WM__KNOWN;
}

/* wm__state_known makes sure that an entry's value is known. */
WM__INLINE wm__entry *wm__state_known(uint16_t table, wm_slice key, wm_slice sub) {
    wm__entry *e = wm__state_entry(table, key, sub);
    if (!(e->flags & WM__KNOWN)) {
        wm__state_op(0, WM_GET, e);
        wm__state_ask(1, 0xffffffff);
        wm__state_answered(e, wm__ops);
    }
    return e;
}

/* wm__state_fetch reads what is wanted, in calls of 1,024 entries; what takes more than 8 MiB is read when it is used. The
 * wanted ones are the last of entries, from wants on: no one else makes entries meanwhile. */
static void wm__state_fetch(void) {
    uint32_t from = wm__state.wants - 1;
    while (wm__state.wants && from < wm__state.count) {
        uint32_t places[WM__STATE_OPS], n = 0;
        for (; from < wm__state.count && n < WM__STATE_OPS; from++) {
            wm__entry *e = &wm__state.entries[from];
            if (!(e->flags & WM__WANTED)) continue;
            e->flags &= (uint16_t)~WM__WANTED;
            places[n] = from;
            wm__state_op(n++, WM_GET, e);
        }
        while (n && !wm__state_ask(n, 8 << 20)) n /= 2;
        for (uint32_t i = 0; i < n; i++) wm__state_answered(&wm__state.entries[places[i]], &wm__ops[i]);
    }
    wm__state.wants = 0;
}

static wm__entry *wm__state_timer(uint8_t domain, int64_t at, wm_slice key, wm_slice sub);

/* A timer that fires is set no more, even if this batch has set it again before. */
static void wm__state_begin(const wm_frame *f) {
    const wm_record *r = wm__ptr(f->records);
    if (!wm__state.timed || !f->count || r->kind == WM_RECORD) return;
    for (uint32_t i = 0; i < f->count; i++, r = (const wm_record *)((const char *)r + f->stride)) {
        wm__entry *e = wm__state_timer(r->kind - WM_EVENT_TIMER, r->event_time, wm_key_of(r), wm_value_of(r));
        e->len = -1;
        e->flags = (uint16_t)((e->flags & ~WM__DIRTY) | WM__KNOWN);
    }
}

/* Which timers are due is settled after the last frame of records: deletions of timers do not wait for the lane's end. */
static void wm__state_end(bool last) {
    bool large = wm__state.used > WM_STATE_CACHE;
    if (last || large) wm__state_flush(false);
    else if (wm__state.deletes) wm__state_flush(true);
    if (large) wm__state_empty();
}

WM__INLINE void wm__state_touch(wm__entry *e) {
    if (wm__state.dirty_count == (wm__state.mask + 1) / 2) wm__state_flush(false); /* some are in it twice */
    if (!(e->flags & WM__DIRTY)) wm__state.dirty[wm__state.dirty_count++] = (uint32_t)(e - wm__state.entries);
    e->flags |= WM__DIRTY | WM__KNOWN;
}

/* ---- entries ------------------------------------------------------------------------------------------------------ */

/* wm_state_want is for the handler prefetch: all that its calls want is read in one call of the host. */
WM__SLOW void wm_state_want(uint16_t table, wm_slice key, wm_slice sub) {
    wm__fetch = wm__state_fetch;
    if (!wm__state.wants) wm__state.wants = wm__state.count + 1;
    wm__entry *e = wm__state_entry(table, key, sub);
    if (!(e->flags & WM__KNOWN)) e->flags |= WM__WANTED;
}

/* wm_state_get answers whether there is a value. */
WM__SLOW bool wm_state_get(uint16_t table, wm_slice key, wm_slice sub, wm_slice *value) {
    wm__entry *e = wm__state_known(table, key, sub);
    if (e->len < 0) return false;
    *value = (wm_slice){e->value, (uint32_t)e->len};
    return true;
}

WM__SLOW void wm_state_delete(uint16_t table, wm_slice key, wm_slice sub) {
    wm__entry *e = wm__state_entry(table, key, sub);
    e->len = -1;
    e->at = 0;
    wm__state_touch(e);
}

/* wm_floor is at rounded down to a multiple of size, also before 1970: where the window of that size begins. */
WM__INLINE int64_t wm_floor(int64_t at, int64_t size) {
    int64_t over = at % size;
    return at - over - (over < 0 ? size : 0);
}

WM__SLOW int64_t wm__state_time(int64_t at) {
    at = wm_floor(at, 1000);
    if (at < -62135596800000000 || at >= 253402300800000000) wm__state_stop(WM_S("a time is outside the years 1 to 9999"));
    return at;
}

/* wm_state_put_until stores a value that is gone when the batch time reaches expiry, in microseconds; 0 is never. */
WM__SLOW void wm_state_put_until(uint16_t table, wm_slice key, wm_slice sub, wm_slice value, int64_t expiry) {
    if (value.n > 524288) wm__state_stop(WM_S("a value of state has at most 512 KiB"));
    if (expiry && (expiry = wm__state_time(expiry)) <= wm_context()->batch_time) {
        wm_state_delete(table, key, sub);
        return;
    }
    char *to = wm__state_copy(value);
    wm__entry *e = wm__state_entry(table, key, sub);
    e->value = to;
    e->len = (int32_t)value.n;
    e->at = expiry;
    wm__state_touch(e);
}

WM__INLINE void wm_state_put(uint16_t table, wm_slice key, wm_slice sub, wm_slice value) {
    wm_state_put_until(table, key, sub, value, 0);
}

/* wm_state_add adds to a number, 0 at first, and answers the sum: for tables of the type i64. It wraps around. */
WM__SLOW int64_t wm_state_add(uint16_t table, wm_slice key, wm_slice sub, int64_t n) {
    wm__entry *e = wm__state_known(table, key, sub);
    if (e->len >= 0 && e->len != 8) wm__state_stop(WM_S("a value of state is no number: it has not 8 bytes"));
    uint64_t sum = (uint64_t)n + (e->len < 0 ? 0 : *(wm__u64 *)e->value);
    if (n == 0) return (int64_t)sum;
    if (e->len < 0) e->value = wm__state_take(8);
    *(wm__u64 *)e->value = sum;
    e->len = 8;
    e->at = 0;
    wm__state_touch(e);
    return (int64_t)sum;
}

/* wm_state_clear removes all entries of a key whose sub-key begins with prefix. */
WM__SLOW void wm_state_clear(uint16_t table, wm_slice key, wm_slice prefix) {
    wm__entry *e = wm__state_entry(table, key, prefix); /* makes the copies that the operation points to */
    wm__state_op(0, WM_DELETE_PREFIX, e);
    wm__state_send(1);
    for (uint32_t i = 0; i < wm__state.count; i++) {
        wm__entry *o = &wm__state.entries[i];
        if (o->table != table || o->key_len != key.n || o->sub_len < prefix.n || !wm__same(o->key, key.p, key.n) ||
            !wm__same(o->sub, prefix.p, prefix.n))
            continue;
        o->len = -1;
        o->at = 0;
        o->flags = (uint16_t)((o->flags & ~WM__DIRTY) | WM__KNOWN);
    }
}

/* wm_cursor goes through the entries of a key. */
typedef struct {
    wm_slice key, prefix; /* must stay as they are until the end */
    const wm_scan_entry *at, *end;
    uint16_t table;
    bool descending, more;
    wm_slice after; /* p is NULL at the beginning */
} wm_cursor;

/* wm_state_scan begins a walk over the entries of a key whose sub-key begins with prefix, in the order of their bytes;
 * descending from the last to the first. One walk at a time: they share a page. */
WM__SLOW wm_cursor wm_state_scan(uint16_t table, wm_slice key, wm_slice prefix, bool descending) {
    return (wm_cursor){.key = key, .prefix = prefix, .table = table, .descending = descending, .more = true};
}

/* wm_state_next answers false at the end. What it gives out is valid until it is called again. */
WM__SLOW bool wm_state_next(wm_cursor *c, wm_slice *sub, wm_slice *value) {
    static char first_page[65536] __attribute__((aligned(8)));
    static char *page = first_page;
    static uint32_t size = sizeof first_page;
    while (c->at == c->end) {
        if (!c->more) return false;
        wm__entry *e = wm__state_entry(c->table, c->key, c->prefix); /* makes the copies that the operation points to */
        wm__state_flush(false);
        wm_state_op *op = wm__state_op(0, WM_SCAN, e);
        op->flags = c->descending ? WM_DESCENDING : 0;
        op->value = wm__address(c->after.p);
        op->value_len = c->after.p ? (int32_t)c->after.n : -1;
        while (wm_host_state_read(op, 1, page, size, &wm__state.need)) {
            size = (wm__state.need + 65535) & ~65535u;
            page = wm__grow(size);
        }
        c->at = wm__ptr(op->answer);
        c->end = c->at + op->count;
        c->more = op->flags & WM_MORE;
    }
    *sub = (wm_slice){wm__ptr(c->at->sub), c->at->sub_len};
    *value = (wm_slice){wm__ptr(c->at->value), (uint32_t)c->at->value_len};
    if (!sub->n) sub->p = page; /* an empty one is not NULL */
    c->after = *sub;
    c->at++;
    return true;
}

/* ---- timers and sub-keys ------------------------------------------------------------------------------------------ */

/* wm_ordered writes n as eight bytes that are in the order of the numbers, for sub-keys; wm_ordered_of reads them. */
WM__INLINE wm_slice wm_ordered(char to[8], int64_t n) {
    *(wm__u64 *)to = __builtin_bswap64((uint64_t)n ^ 1ull << 63);
    return (wm_slice){to, 8};
}
WM__INLINE int64_t wm_ordered_of(wm_slice s) {
    if (s.n < 8) wm__state_stop(WM_S("a sub-key has fewer than 8 bytes"));
    return (int64_t)(__builtin_bswap64(*(const wm__u64 *)s.p) ^ 1ull << 63);
}

static wm__entry *wm__state_timer(uint8_t domain, int64_t at, wm_slice key, wm_slice sub) {
    static char text[8 + 4096];
    if (sub.n > 4096) wm__state_stop(WM_S("a key and its sub-key together have at most 4 KiB"));
    wm_ordered(text, at);
    wm__copy(text + 8, sub.p, sub.n);
    return wm__state_entry(WM__TIMERS + domain, key, (wm_slice){text, 8 + sub.n});
}

WM__SLOW void wm__state_set_timer(uint8_t domain, int64_t at, wm_slice key, wm_slice sub, bool set) {
    at = wm__state_time(at);
    wm__entry *e = wm__state_timer(domain, at, key, sub);
    if (e->flags & WM__KNOWN && (e->len == 0) == set) return;
    if (!set) e->flags |= WM__ERASED; /* it is a new one when it is set again */
    e->len = set ? 0 : -1;
    e->at = at;
    wm__state.timed = true;
    wm__state.deletes |= !set;
    wm__state_touch(e);
}

/* wm_timer_set sets a timer in WM_EVENT_TIME or WM_PROCESSING_TIME, at a time in microseconds of which whole milliseconds
 * count. It fires once, in a later batch whose watermark or time has reached it: the handler timer gets the key, the time
 * as event_time, and sub as the value. Setting it again changes nothing. wm_timer_delete takes it back, by all four. */
WM__INLINE void wm_timer_set(uint8_t domain, int64_t at, wm_slice key, wm_slice sub) {
    wm__state_set_timer(domain, at, key, sub, true);
}
WM__INLINE void wm_timer_delete(uint8_t domain, int64_t at, wm_slice key, wm_slice sub) {
    wm__state_set_timer(domain, at, key, sub, false);
}

#endif /* WASMILL_STATE_H */
