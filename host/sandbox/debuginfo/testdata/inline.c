/* A division that is inlined into parse_order, which is called by the export. Built as dwarf4.wasm and dwarf5.wasm with
 *   clang-19 --target=wasm32 -nostdlib -O2 -gdwarf-N -fdebug-compilation-dir=. -Wl,--no-entry -o dwarfN.wasm inline.c */
static inline __attribute__((always_inline)) int checked(int a, int b) {
    return a /
           b;
}

__attribute__((noinline)) int parse_order(int a, int b) {
    int r = 1;
    r += checked(a, b);
    return r;
}

volatile int zero;

__attribute__((export_name("run"))) int run(int n) {
    return parse_order(n, zero) + 1;
}

__attribute__((noinline)) int left_out(int a) { return checked(a, 7); }
