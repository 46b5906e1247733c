// Orders, one byte at a time.

// @ts-ignore: decorator
@external("wasmill_1", "emit")
declare function emit(records: usize, count: u32, stride: u32): void;

// Frames of 1,000 records, and their output. Arenas are no managed objects: the collector must not know of them.
const ARENA: usize = 512 << 10;
const frames = heap.alloc(ARENA + 32);
const frameArena: usize = (frames + 15) & ~15;
const outputArena: usize = heap.alloc(ARENA + 16);
const pending: usize = heap.alloc(1024 * 56);

const STATUS: StaticArray<u8> = [115, 116, 97, 116, 117, 115];
const CANCELLED: StaticArray<u8> = [99, 97, 110, 99, 101, 108, 108, 101, 100];
const AMOUNT: StaticArray<u8> = [97, 109, 111, 117, 110, 116, 95, 117, 115, 100];
const MEMBER: StaticArray<u8> = [44, 34, 97, 109, 111, 117, 110, 116, 95, 101, 117, 114, 34, 58];

export function wasmill_alloc(n: u32): usize {
  return n <= <u32>(ARENA + 16) ? frameArena : 0;
}

export function wasmill_init(config: usize, n: u32, maxFrame: u32): i32 {
  return 0;
}

// @ts-ignore: decorator
@inline
function same(p: usize, n: u32, word: StaticArray<u8>): bool {
  if (n != <u32>word.length) return false;
  const w = changetype<usize>(word);
  for (let i: u32 = 0; i < n; i++) if (load<u8>(p + i) != load<u8>(w + i)) return false;
  return true;
}

// A number with at most two decimals, in cents.
function centsOf(p: usize, n: u32): u64 {
  let whole: u64 = 0, left: u32 = 2, i: u32 = 0;
  for (; i < n && load<u8>(p + i) != 46; i++) whole = whole * 10 + (load<u8>(p + i) - 48);
  for (i++; i < n && left > 0; i++, left--) whole = whole * 10 + (load<u8>(p + i) - 48);
  for (; left > 0; left--) whole *= 10;
  return whole;
}

// Writes the new member and the brace, and returns the end.
function putEur(to: usize, cents: u64): usize {
  const eur = (cents * 92 + 50) / 100;
  memory.copy(to, changetype<usize>(MEMBER), 14);
  to += 14;
  let whole = eur / 100, n: usize = 1;
  for (let x = whole; x >= 10; x /= 10) n++;
  for (let at = to + n; at > to; whole /= 10) store<u8>(--at, <u8>(48 + whole % 10));
  to += n;
  store<u8>(to, 46);
  store<u8>(to + 1, <u8>(48 + eur / 10 % 10));
  store<u8>(to + 2, <u8>(48 + eur % 10));
  store<u8>(to + 3, 125);
  return to + 4;
}

let cents: u64 = 0;
let last: u32 = 0;

// Looks at an order; false when it is to be dropped.
function scan(v: usize, n: u32): bool {
  let key = v, keyLen: u32 = 0, depth: u32 = 0, i: u32 = 0;
  cents = 0, last = 0;
  while (i < n) {
    const c = load<u8>(v + i);
    if (c == 34) {
      const from = ++i;
      while (i < n && load<u8>(v + i) != 34) i += load<u8>(v + i) == 92 ? 2 : 1;
      const length = i - from;
      i++;
      if (depth != 1) continue;
      if (i < n && load<u8>(v + i) == 58) {
        key = v + from;
        keyLen = length;
      } else if (same(key, keyLen, STATUS) && same(v + from, length, CANCELLED)) {
        return false;
      }
    } else if (c == 123 || c == 91) {
      depth++, i++;
    } else if (c == 125 || c == 93) {
      depth--, last = i++;
    } else if (depth == 1 && <u8>(c - 48) < 10) {
      const from = i;
      while (i < n && (load<u8>(v + i) == 46 || <u8>(load<u8>(v + i) - 48) < 10)) i++;
      if (same(key, keyLen, AMOUNT)) cents = centsOf(v + from, i - from);
    } else {
      i++;
    }
  }
  return true;
}

export function wasmill_batch(frame: usize, n: u32): i32 {
  const count = load<u32>(frame, 16), stride = load<u32>(frame, 24);
  let at = <usize>load<u32>(frame, 20), to = outputArena, kept: u32 = 0;
  for (let i: u32 = 0; i < count; i++, at += stride) {
    store<u32>(frame, load<u32>(at, 48), 96);
    const v = <usize>load<u32>(at, 24);
    if (!scan(v, load<u32>(at, 28))) continue;
    if (to + last + 64 > outputArena + ARENA) return 1;
    const record = pending + kept * 56;
    memory.copy(record, at, 56);
    memory.copy(to, v, last);
    store<u32>(record, <u32>to, 24);
    const end = putEur(to + last, cents);
    store<u32>(record, <u32>(end - to), 28);
    to = end;
    kept++;
  }
  emit(pending, kept, 56);
  return 0;
}
