/* Orders in JavaScript, on QuickJS: wasmill_init starts the engine and loads order.js, whose function gets each value as a
 * string and answers the new one, or null to drop it. */
#include <stdlib.h>
#include <string.h>

#include "quickjs.h"
#include "wasmill_abi.h"

#define ARENA (512 << 10)

static uint8_t frame_arena[ARENA + 16] __attribute__((aligned(16)));
static uint8_t output_arena[ARENA];
static wm_record pending[1024];
static const char script[] = {
#embed "order.js"
    , 0};

static JSContext *context;
static JSValue function;

WM_EXPORT("wasmill_alloc") void *guest_alloc(uint32_t n) { return n <= sizeof frame_arena ? frame_arena : 0; }

/* fail makes the pending exception the frame's error text. */
static int fail(wm_frame *frame) {
    size_t n = 0;
    const char *text = JS_ToCStringLen(context, &n, JS_GetException(context));
    if (frame)
        frame->error_text = (uint32_t)(uintptr_t)text, frame->error_len = (uint32_t)n;
    else
        wm_host_log(WM_ERROR, text, (uint32_t)n);
    return 1;
}

WM_EXPORT("wasmill_init") int guest_init(const char *config, uint32_t n, uint32_t max_frame) {
    (void)config, (void)n, (void)max_frame;
    JSRuntime *runtime = JS_NewRuntime();
    JS_SetMaxStackSize(runtime, 512 << 10);
    context = JS_NewContext(runtime);
    function = JS_Eval(context, script, sizeof script - 1, "order.js", JS_EVAL_TYPE_GLOBAL);
    return JS_IsException(function) ? fail(0) : 0;
}

WM_EXPORT("wasmill_batch") int guest_batch(wm_frame *frame, uint32_t n) {
    (void)n;
    uint8_t *to = output_arena;
    uint32_t at = frame->records, kept = 0;
    for (uint32_t i = 0; i < frame->count; i++, at += frame->stride) {
        const wm_record *r = (const wm_record *)(uintptr_t)at;
        frame->progress = r->index;
        JSValue text = JS_NewStringLen(context, (const char *)(uintptr_t)r->value, (size_t)r->value_len);
        JSValue answer = JS_Call(context, function, JS_UNDEFINED, 1, &text);
        JS_FreeValue(context, text);
        if (JS_IsException(answer)) return fail(frame);
        if (JS_IsNull(answer)) continue;
        size_t size = 0;
        const char *bytes = JS_ToCStringLen(context, &size, answer);
        JS_FreeValue(context, answer);
        if (!bytes) return fail(frame);
        if (size > (size_t)(output_arena + ARENA - to)) return 1;
        memcpy(to, bytes, size);
        JS_FreeCString(context, bytes);
        pending[kept] = *r;
        pending[kept].value = (uint32_t)(uintptr_t)to;
        pending[kept++].value_len = (int32_t)size;
        to += size;
    }
    wm_host_emit(pending, kept, sizeof pending[0]);
    return 0;
}
