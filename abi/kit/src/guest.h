/* guest.h: what the C guests of the kit share. It uses only the layouts of the C SDK: the kit must not depend on how the
 * SDK works. OWN_ALLOC and OWN_INIT leave the export to the guest. */
#ifndef GUEST_H
#define GUEST_H

#include "../../sdk/c/wasmill_abi.h"

#include <stdbool.h>

typedef uint32_t u32;

#define BATCH(frame) WM_EXPORT("wasmill_batch") int32_t batch(wm_frame *frame, u32 len)
#define EACH(record, frame)                                                                                              \
    for (u32 i_ = 0; i_ < (frame)->count; i_++)                                                                          \
        for (wm_record *record = at((frame)->records + i_ * (frame)->stride); record; record = 0)

static inline void *at(u32 address) { return (void *)(uintptr_t)address; }
static inline u32 address(const void *p) { return (u32)(uintptr_t)p; }

#ifndef OWN_ALLOC
static uint8_t arena[262288 + 16] __attribute__((aligned(16)));

WM_EXPORT("wasmill_alloc") void *alloc(u32 len) {
    if (len <= sizeof arena) return arena;
    size_t page = __builtin_wasm_memory_grow(0, (len + 65535) / 65536);
    return page == (size_t)-1 ? 0 : at((u32)page * 65536);
}
#endif

#ifndef OWN_INIT
WM_EXPORT("wasmill_init") int32_t init(u32 config, u32 len, u32 max_frame) { return 0; }
#endif

/* A text under construction. */
static struct {
    u32 n;
    char b[65536];
} text;

static inline void put(const char *s) {
    while (*s) text.b[text.n++] = *s++;
}
static inline void put_bytes(u32 p, u32 n) {
    for (u32 i = 0; i < n; i++) text.b[text.n++] = ((const char *)at(p))[i];
}
static inline void put_hex(uint64_t v, int digits) {
    while (digits--) text.b[text.n++] = "0123456789abcdef"[v >> 4 * digits & 15];
}
static inline void put_int(int64_t v) {
    char d[20];
    int n = 0;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do d[n++] = (char)('0' + u % 10);
    while (u /= 10);
    if (v < 0) text.b[text.n++] = '-';
    while (n) text.b[text.n++] = d[--n];
}

/* blank returns a record that stems from no input, with null key and null value. */
static inline wm_record blank(void) {
    return (wm_record){.key_len = -1, .value_len = -1, .index = WM_NO_INDEX};
}

/* emit_text emits the text as the value of a record of its own and starts a new text. */
static inline void emit_text(u32 index) {
    wm_record r = blank();
    r.value = address(text.b), r.value_len = (int32_t)text.n, r.index = index;
    wm_host_emit(&r, 1, sizeof r);
    text.n = 0;
}

/* starts says whether the record's value starts with the literal. */
static inline bool starts(const wm_record *r, const char *literal) {
    const char *v = at(r->value);
    for (int32_t i = 0; literal[i]; i++)
        if (i >= r->value_len || v[i] != literal[i]) return false;
    return true;
}

#endif
