/* Emits what the host's WASI answers: names nobody implements, wild pointers, too many iovecs, things a transform lacks. */
#include "guest.h"

#define WASI(name) WM_IMPORT("wasi_snapshot_preview1", name)
WASI("fd_write") int32_t fd_write(int32_t fd, u32 v, u32 count, u32 written);
WASI("random_get") int32_t random_get(u32 p, u32 n);
WASI("clock_time_get") int32_t clock_time_get(int32_t id, int64_t precision, u32 t);
WASI("args_sizes_get") int32_t args_sizes_get(u32 n, u32 size);
WASI("path_open") int32_t path_open(int32_t, int32_t, u32, u32, int32_t, int64_t, int64_t, int32_t, u32);
WASI("sock_send") int32_t sock_send(int32_t, u32, u32, int32_t, u32);
WASI("no_such_call") int32_t no_such_call(int64_t, double);
WASI("fd_prestat_get") int32_t fd_prestat_get(int32_t fd, u32 p);
WASI("fd_close") int32_t fd_close(int32_t fd);
WASI("sched_yield") int32_t sched_yield(void);

static void answer(const char *what, int32_t rc) { put(what), put(" "), put_int(rc), put("; "); }

BATCH(f) {
    static u32 n[2], wild = 0xfffffff0;
    static u32 iovecs[2 * 1100];
    n[0] = n[1] = 77;
    answer("args", args_sizes_get(address(n), address(n + 1)) + (int32_t)n[0]);
    answer("path_open", path_open(3, 0, address("x"), 1, 0, 0, 0, 0, address(n)));
    answer("sock_send", sock_send(3, address(iovecs), 1, 0, address(n)));
    answer("no_such_call", no_such_call(1, 2));
    answer("prestat", fd_prestat_get(3, address(n)));
    answer("close", fd_close(3));
    answer("yield", sched_yield());
    answer("wild random", random_get(wild, 64));
    answer("wild clock", clock_time_get(0, 1, 0xfffffffc));
    answer("wild iovecs", fd_write(1, wild, 4, address(n)));
    answer("wild result", fd_write(1, address(iovecs), 1, 0xfffffffe));
    iovecs[0] = wild, iovecs[1] = 64;
    answer("wild bytes", fd_write(1, address(iovecs), 1, address(n)));
    iovecs[0] = iovecs[1] = 0;
    answer("1025 iovecs", fd_write(1, address(iovecs), 1025, address(n)));
    answer("1024 iovecs", fd_write(1, address(iovecs), 1024, address(n)));
    emit_text(WM_NO_INDEX);
    return 0;
}
