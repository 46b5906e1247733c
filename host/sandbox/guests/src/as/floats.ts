// A kernel of floats: two logistic maps in a row, eight operations a step; the bits of the result are the record.

// @ts-ignore: decorator
@external("wasmill_1", "emit")
declare function emit(records: usize, count: u32, stride: u32): void;

const ARENA: usize = 512 << 10;
const STEPS: i32 = 1000;
const frames = heap.alloc(ARENA + 32);
const frameArena: usize = (frames + 15) & ~15;
const pending: usize = heap.alloc(1024 * 56);
const texts: usize = heap.alloc(1024 * 16);

export function wasmill_alloc(n: u32): usize {
  return n <= <u32>(ARENA + 16) ? frameArena : 0;
}

export function wasmill_init(config: usize, n: u32, maxFrame: u32): i32 {
  return 0;
}

function iterate(x: f64): f64 {
  for (let i = 0; i < STEPS; i++) {
    const a = 3.99 * x * (1 - x);
    const b = 3.98 * a * (1 - a);
    x = b * 0.96 + 0.01;
  }
  return x;
}

export function wasmill_batch(frame: usize, n: u32): i32 {
  const count = load<u32>(frame, 16), stride = load<u32>(frame, 24);
  let at = <usize>load<u32>(frame, 20);
  for (let i: u32 = 0; i < count; i++, at += stride) {
    let bits = reinterpret<u64>(iterate(<f64>(load<u32>(at, 48) % 1000 + 1) / 1001));
    const text = texts + i * 16, record = pending + i * 56;
    for (let d = 16; d > 0; bits >>= 4) {
      const digit = <u8>(bits & 15);
      store<u8>(text + --d, digit < 10 ? 48 + digit : 87 + digit);
    }
    memory.copy(record, at, 56);
    store<u32>(record, <u32>text, 24);
    store<u32>(record, 16, 28);
  }
  emit(pending, count, 56);
  return 0;
}
