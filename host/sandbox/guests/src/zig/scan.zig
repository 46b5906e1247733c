//! Orders, one byte at a time.

const Frame = extern struct {
    magic: u32,
    version: u16,
    flags: u16,
    header_len: u32,
    total: u32,
    count: u32,
    records: u32,
    stride: u32,
    nfields: u32,
    rest: [8]u64,
    progress: u32,
};

const Record = extern struct {
    event_time: i64,
    offset: i64,
    key: u32,
    key_len: i32,
    value: u32,
    value_len: i32,
    headers: u32,
    header_count: u16,
    kind: u8,
    flags: u8,
    partition: i32,
    port: u16,
    input: u16,
    index: u32,
    zero: u32,
};

extern "wasmill_1" fn emit(records: [*]const Record, count: u32, stride: u32) void;

/// Frames of 1,000 records, and their output.
const arena = 512 << 10;

var frame_arena: [arena + 16]u8 align(16) = undefined;
var output_arena: [arena + 16]u8 align(16) = undefined;
var pending: [1024]Record = undefined;

export fn wasmill_alloc(n: u32) ?*anyopaque {
    return if (n <= frame_arena.len) &frame_arena else null;
}

export fn wasmill_init(_: u32, _: u32, _: u32) i32 {
    return 0;
}

export fn wasmill_batch(frame: *Frame, _: u32) i32 {
    var kept: u32 = 0;
    var to: usize = 0;
    for (0..frame.count) |i| {
        const r: *const Record = @ptrFromInt(frame.records + i * frame.stride);
        const v = @as([*]const u8, @ptrFromInt(r.value))[0..@intCast(r.value_len)];
        frame.progress = r.index;
        const o = scan(v) orelse continue;
        if (o.last + 64 > arena - to) return 1;
        @memcpy(output_arena[to..][0..o.last], v[0..o.last]);
        const end = putEur(to + o.last, o.cents);
        pending[kept] = r.*;
        pending[kept].value = @intCast(@intFromPtr(&output_arena) + to);
        pending[kept].value_len = @intCast(end - to);
        kept += 1;
        to = end;
    }
    emit(&pending, kept, @sizeOf(Record));
    return 0;
}

/// What is found in an order that is kept.
const Order = struct { last: usize, cents: u64 };

fn same(a: []const u8, b: []const u8) bool {
    if (a.len != b.len) return false;
    for (a, b) |x, y| if (x != y) return false;
    return true;
}

fn scan(v: []const u8) ?Order {
    var o = Order{ .last = 0, .cents = 0 };
    var key: []const u8 = "";
    var depth: u32 = 0;
    var i: usize = 0;
    while (i < v.len) {
        switch (v[i]) {
            '"' => {
                i += 1;
                const from = i;
                while (i < v.len and v[i] != '"') i += if (v[i] == '\\') 2 else 1;
                const text = v[from..@min(i, v.len)];
                i += 1;
                if (depth != 1) continue;
                if (i < v.len and v[i] == ':') {
                    key = text;
                } else if (same(key, "status") and same(text, "cancelled")) {
                    return null;
                }
            },
            '{', '[' => {
                depth += 1;
                i += 1;
            },
            '}', ']' => {
                depth -%= 1;
                o.last = i;
                i += 1;
            },
            '0'...'9' => {
                const from = i;
                while (i < v.len and (v[i] == '.' or v[i] -% '0' < 10)) i += 1;
                if (depth == 1 and same(key, "amount_usd")) o.cents = centsOf(v[from..i]);
            },
            else => i += 1,
        }
    }
    return o;
}

/// A number with at most two decimals, in cents.
fn centsOf(text: []const u8) u64 {
    var whole: u64 = 0;
    var left: u32 = 2;
    var point = false;
    for (text) |c| {
        if (c == '.') {
            point = true;
            continue;
        }
        if (point and left == 0) break;
        if (point) left -= 1;
        whole = whole *% 10 +% (c - '0');
    }
    while (left > 0) : (left -= 1) whole *%= 10;
    return whole;
}

/// Writes the new member and the brace, and returns the end.
fn putEur(at: usize, cents: u64) usize {
    const eur = (cents *% 92 +% 50) / 100;
    const name = ",\"amount_eur\":";
    var digits: [20]u8 = undefined;
    var n: usize = 0;
    var whole = eur / 100;
    var to = at;
    @memcpy(output_arena[to..][0..name.len], name);
    to += name.len;
    while (true) {
        digits[n] = '0' + @as(u8, @intCast(whole % 10));
        n += 1;
        whole /= 10;
        if (whole == 0) break;
    }
    while (n > 0) : (to += 1) {
        n -= 1;
        output_arena[to] = digits[n];
    }
    output_arena[to] = '.';
    output_arena[to + 1] = '0' + @as(u8, @intCast(eur / 10 % 10));
    output_arena[to + 2] = '0' + @as(u8, @intCast(eur % 10));
    output_arena[to + 3] = '}';
    return to + 4;
}
