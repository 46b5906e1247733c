/* wasmill_abi.h: the layouts of ABI 1, the host's functions and the manifest, and nothing that runs. wasmill.h includes it;
 * by itself it serves whoever builds something else upon the ABI. abi/README.md is the specification.
 */
#ifndef WASMILL_ABI_H
#define WASMILL_ABI_H

#include <stddef.h>
#include <stdint.h>

/* ---- layouts ------------------------------------------------------------------------------------------------------ */

enum {
    WM_FIRST = 1, /* frame flags: the lane's first frame */
    WM_LAST = 2,  /* the lane's end, a frame of its own without records */

    WM_RECORD = 0, /* kinds of records */
    WM_EVENT_TIMER = 1,
    WM_PROCESSING_TIMER = 2,
    WM_DEAD_LETTER = 16,
    WM_FAIL = 17,

    WM_HAS_EVENT_TIME = 1, /* record flags */
    WM_NOT_JSON = 2,       /* input only: the value is not one JSON text in UTF-8 */

    WM_DEBUG = 0, /* log levels */
    WM_INFO = 1,
    WM_WARN = 2,
    WM_ERROR = 3,
};

#define WM_NO_INDEX 0xffffffffu /* index of what stems from no input; progress that is not set */

/* Kinds of a JSON value. */
typedef enum {
    WM_ABSENT,
    WM_NULL,
    WM_FALSE,
    WM_TRUE,
    WM_NUMBER,  /* its exact text */
    WM_STRING,  /* without quotes, no escapes in it */
    WM_ESCAPED, /* without quotes, with escapes */
    WM_OBJECT,
    WM_ARRAY,
} wm_kind;

typedef struct {
    uint32_t magic; /* "WMF1" */
    uint16_t version;
    uint16_t flags;
    uint32_t header_len;
    uint32_t total;
    uint32_t count;
    uint32_t records; /* address */
    uint32_t stride;
    uint32_t nfields;
    uint64_t batch;
    int64_t batch_time; /* this and all times: microseconds since 1970 */
    int64_t late_watermark;
    int64_t watermark; /* 0: none yet */
    uint64_t seed[2];
    uint32_t lane;
    uint32_t chunk;
    uint64_t fuel;
    uint32_t progress;   /* written by the guest: index of the record it is at */
    uint32_t error_text; /* written by the guest: address and length */
    uint32_t error_len;
    uint32_t zero[5];
} wm_frame;

typedef struct {
    int64_t event_time;
    int64_t offset;
    uint32_t key; /* address */
    int32_t key_len; /* -1: null */
    uint32_t value;
    int32_t value_len; /* -1: null */
    uint32_t headers;
    uint16_t header_count;
    uint8_t kind;
    uint8_t flags;
    int32_t partition; /* of a dead letter and a fail: the code */
    uint16_t port;
    uint16_t input;
    uint32_t index;
    uint32_t zero;
} wm_record;

typedef struct {
    uint32_t ptr;
    uint32_t len_kind; /* length in the low 28 bits, wm_kind above */
} wm_field_entry;

typedef struct {
    uint32_t name;
    uint32_t name_len;
    uint32_t value;
    int32_t value_len; /* -1: null */
} wm_header;

/* State operations. */
enum {
    WM_GET = 1,
    WM_SCAN,
    WM_PUT,
    WM_DELETE,
    WM_DELETE_PREFIX,
    WM_TIMER_SET,
    WM_TIMER_DELETE,
    WM_MORE = 1,
    WM_DESCENDING = 2,

    WM_EVENT_TIME = 0, /* domains of timers: the watermark */
    WM_PROCESSING_TIME = 1, /* the batch time */
};

typedef struct {
    uint8_t op;
    uint8_t domain; /* 0 event time, 1 processing time */
    uint16_t table;
    uint32_t limit;
    uint32_t key;
    uint32_t key_len;
    uint32_t sub;
    uint32_t sub_len;
    uint32_t value;
    int32_t value_len;
    int64_t at;
    uint32_t answer;
    int32_t answer_len; /* -1: absent */
    uint32_t count;
    uint32_t flags;
} wm_state_op;

typedef struct {
    uint32_t sub;
    uint32_t sub_len;
    uint32_t value;
    int32_t value_len;
} wm_scan_entry;

#define WM__AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member)
WM__AT(wm_frame, flags, 6);
WM__AT(wm_frame, total, 12);
WM__AT(wm_frame, nfields, 28);
WM__AT(wm_frame, batch_time, 40);
WM__AT(wm_frame, watermark, 56);
WM__AT(wm_frame, seed, 64);
WM__AT(wm_frame, lane, 80);
WM__AT(wm_frame, fuel, 88);
WM__AT(wm_frame, progress, 96);
WM__AT(wm_frame, error_len, 104);
_Static_assert(sizeof(wm_frame) == 128, "frame header");
WM__AT(wm_record, key, 16);
WM__AT(wm_record, value_len, 28);
WM__AT(wm_record, header_count, 36);
WM__AT(wm_record, kind, 38);
WM__AT(wm_record, partition, 40);
WM__AT(wm_record, input, 46);
WM__AT(wm_record, index, 48);
_Static_assert(sizeof(wm_record) == 56, "record");
_Static_assert(sizeof(wm_field_entry) == 8, "field");
_Static_assert(sizeof(wm_header) == 16, "header entry");
WM__AT(wm_state_op, limit, 4);
WM__AT(wm_state_op, at, 32);
WM__AT(wm_state_op, answer, 40);
WM__AT(wm_state_op, flags, 52);
_Static_assert(sizeof(wm_state_op) == 56, "state operation");
_Static_assert(sizeof(wm_scan_entry) == 16, "scan entry");

/* ---- module surface ----------------------------------------------------------------------------------------------- */

#define WM_IMPORT(module, name) __attribute__((import_module(module), import_name(name)))
#define WM_EXPORT(name) __attribute__((export_name(name), used, visibility("default")))

WM_IMPORT("wasmill_1", "emit") void wm_host_emit(const void *records, uint32_t count, uint32_t stride);
WM_IMPORT("wasmill_1", "state_read")
int wm_host_state_read(void *ops, uint32_t count, void *buf, uint32_t cap, uint32_t *need);
WM_IMPORT("wasmill_1", "state_write") void wm_host_state_write(const void *ops, uint32_t count);
WM_IMPORT("wasmill_1", "log") void wm_host_log(uint32_t level, const void *text, uint32_t len);

/* WM_MANIFEST({"abi": 1, "name": "clean", ...}); writes the manifest into the module. Plain JSON, as it stands. */
#define WM_MANIFEST(...) WM__MANIFEST_(#__VA_ARGS__)
#define WM__MANIFEST_(text) __asm__(".section .custom_section.wasmill,\"\",@\n.ascii " WM__QUOTE(text) "\n.text\n")
#define WM__QUOTE(text) #text

#endif /* WASMILL_ABI_H */
