/* One breach of the rules of emit each. */
#include "guest.h"

WM_MANIFEST({"abi": 1, "name": "bad-emit", "version": "1.0.0", "inputs": [{"name": "in"}],
             "outputs": [{"name": "out"}, {"name": "more"}]});

#define VALUE(o) ((o).value = address("v"), (o).value_len = 1)

BATCH(f) {
    static wm_record out[4];
    static wm_header headers[70];
    wm_record *o = out, *first = at(f->records);
    u32 n = 1, stride = sizeof *o;
    for (int i = 0; i < 4; i++) out[i] = blank();
    VALUE(*o);
#if defined WILD_RECORDS
    o = at(0xffff0000u);
#elif defined END_OF_MEMORY /* the last record ends one byte outside */
    o = at((u32)__builtin_wasm_memory_size(0) * 65536 - 48);
#elif defined COUNT_LIE
    n = 1000000;
#elif defined COUNT_OVERFLOW /* count * stride = 2^32 + 24 */
    n = 76695845;
#elif defined STRIDE_48
    stride = 48;
#elif defined STRIDE_60
    stride = 60;
#elif defined STRIDE_0
    n = 4, stride = 0;
#elif defined MISALIGNED
    o = at(address(out) + 4);
#elif defined WILD_VALUE
    o->value = 0xffffff00u;
#elif defined VALUE_OVERFLOW /* ptr + len = 2^32 + 16 */
    o->value = 0xfffffff0u, o->value_len = 32;
#elif defined VALUE_2G
    o->value_len = 0x7fffffff;
#elif defined VALUE_MINUS_2
    o->value_len = -2;
#elif defined KEY_MINUS_2
    o->key_len = -2;
#elif defined WILD_KEY
    o->key = 0xfffffff0u, o->key_len = 64;
#elif defined PORT
    o->port = 2;
#elif defined KIND
    o->kind = 5;
#elif defined KIND_TIMER
    o->kind = WM_EVENT_TIMER;
#elif defined FLAGS
    o->flags = 4;
#elif defined RESERVED
    o->zero = 1;
#elif defined HEADERS_65
    for (int i = 0; i < 65; i++) headers[i] = (wm_header){address("h"), 1, address("v"), 1};
    o->headers = address(headers), o->header_count = 65;
#elif defined HEADERS_WILD
    o->headers = 0xfffffff0u, o->header_count = 2;
#elif defined HEADERS_MISALIGNED
    o->headers = address(headers) + 2, o->header_count = 1;
#elif defined HEADER_WILD_NAME
    headers[0] = (wm_header){0xfffffff0u, 32, 0, -1};
    o->headers = address(headers), o->header_count = 1;
#elif defined HEADER_WILD_VALUE
    headers[0] = (wm_header){address("h"), 1, 0xfffffff0u, 32};
    o->headers = address(headers), o->header_count = 1;
#elif defined HEADER_MINUS_2
    headers[0] = (wm_header){address("h"), 1, address("v"), -2};
    o->headers = address(headers), o->header_count = 1;
#elif defined INDEX_FOREIGN
    o->index = 123456;
#elif defined INDEX_GAP /* an index between those of the frame, that no record of this lane run has */
    o->index = first->index + 1;
#elif defined TIME_EARLY
    o->flags = WM_HAS_EVENT_TIME, o->event_time = -62135596800000001;
#elif defined TIME_LATE
    o->flags = WM_HAS_EVENT_TIME, o->event_time = 253402300800000000;
#elif defined DEAD_FOREIGN
    o->kind = WM_DEAD_LETTER, o->index = 123456;
#elif defined DEAD_NOWHERE
    o->kind = WM_DEAD_LETTER;
#elif defined DEAD_TWICE
    o->kind = WM_DEAD_LETTER, o->index = first->index, out[1] = *o, n = 2;
#elif defined DEAD_AND_FAIL
    o->kind = WM_DEAD_LETTER, o->index = first->index, out[1] = *o, out[1].kind = WM_FAIL, n = 2;
#elif defined DEAD_CODE
    o->kind = WM_DEAD_LETTER, o->index = first->index, o->partition = -1;
#elif defined DEAD_PORT
    o->kind = WM_DEAD_LETTER, o->index = first->index, o->port = 1;
#elif defined DEAD_KEY
    o->kind = WM_DEAD_LETTER, o->index = first->index, o->key = o->value, o->key_len = 1;
#elif defined DEAD_HEADERS
    headers[0] = (wm_header){address("h"), 1, 0, -1};
    o->kind = WM_DEAD_LETTER, o->index = first->index, o->headers = address(headers), o->header_count = 1;
#elif defined FAIL_FOREIGN
    o->kind = WM_FAIL, o->index = 123456;
#else
#error which breach?
#endif
    wm_host_emit(o, n, stride);
    return 0;
}
