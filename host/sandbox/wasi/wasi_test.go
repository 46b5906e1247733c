package wasi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"testing"
)

const wild = 0xffff_fff0

// world is a guest's memory of 4 KiB and a state.
type world struct {
	*State
	mem  []byte
	out  bytes.Buffer
	paid uint64
}

func newWorld() *world {
	w := &world{mem: make([]byte, 4096)}
	w.State = New(946_684_800_000_000, [2]uint64{}, func(fd uint32, p []byte) { fmt.Fprintf(&w.out, "%d:%s;", fd, p) }, func(n uint64) { w.paid += n })
	return w
}

// call runs a function. What an engine leaves in the upper half of an i32 must not count, so each is filled.
func (w *world) call(t *testing.T, name string, p ...uint64) uint32 {
	t.Helper()
	f, ok := Lookup(name)
	if !ok || len(f.Params) != len(p) {
		t.Fatalf("%s is there: %v, with %d parameters", name, ok, len(f.Params))
	}
	for i, kind := range f.Params {
		if kind == I32 {
			p[i] |= 0xdead_beef << 32
		}
	}
	return f.Call(w.State, w.mem, p)
}

func (w *world) u64(at int) uint64 { return binary.LittleEndian.Uint64(w.mem[at:]) }
func (w *world) u32(at int) uint32 { return binary.LittleEndian.Uint32(w.mem[at:]) }

// vector writes an iovec.
func (w *world) vector(at, ptr, n int) {
	binary.LittleEndian.PutUint32(w.mem[at:], uint32(ptr))
	binary.LittleEndian.PutUint32(w.mem[at+4:], uint32(n))
}

func TestErrnos(t *testing.T) {
	tests := []struct {
		name string
		p    []uint64
		want uint32
	}{
		{"args_get", []uint64{wild, wild}, OK},
		{"environ_get", []uint64{wild, wild}, OK},
		{"args_sizes_get", []uint64{0, 4}, OK},
		{"args_sizes_get", []uint64{wild, 4}, Fault},
		{"environ_sizes_get", []uint64{0, wild}, Fault},
		{"clock_res_get", []uint64{1, 8}, OK},
		{"clock_res_get", []uint64{4, 8}, Inval},
		{"clock_res_get", []uint64{1, wild}, Fault},
		{"clock_time_get", []uint64{0, 0, 4088}, OK},
		{"clock_time_get", []uint64{0, 0, 4089}, Fault},
		{"clock_time_get", []uint64{4, 0, 8}, Inval},
		{"fd_close", []uint64{1}, BadFD},
		{"fd_prestat_get", []uint64{3, 8}, BadFD},
		{"fd_prestat_dir_name", []uint64{3, 8, 8}, BadFD},
		{"fd_fdstat_get", []uint64{2, 8}, OK},
		{"fd_fdstat_get", []uint64{3, 8}, BadFD},
		{"fd_fdstat_get", []uint64{0, 4090}, Fault},
		{"fd_fdstat_set_flags", []uint64{0, 4}, OK},
		{"fd_fdstat_set_flags", []uint64{9, 4}, BadFD},
		{"fd_read", []uint64{0, 8, 0, 16}, OK},
		{"fd_read", []uint64{1, 8, 0, 16}, BadFD},
		{"fd_read", []uint64{0, 8, 1025, 16}, Inval},
		{"fd_read", []uint64{0, 8, 0, wild}, Fault},
		{"fd_seek", []uint64{1, 0, 0, 8}, Spipe},
		{"fd_seek", []uint64{3, 0, 0, 8}, BadFD},
		{"fd_write", []uint64{0, 8, 0, 16}, BadFD},
		{"fd_write", []uint64{3, 8, 0, 16}, BadFD},
		{"fd_write", []uint64{1, 8, 1025, 16}, Inval},
		{"fd_write", []uint64{1, wild, 1, 16}, Fault},
		{"fd_write", []uint64{1, 4092, 1, 16}, Fault},
		{"fd_write", []uint64{1, 8, 0, wild}, Fault},
		{"poll_oneoff", []uint64{0, 0, 0, 8}, Inval},
		{"poll_oneoff", []uint64{0, 0, 1025, 8}, Inval},
		{"poll_oneoff", []uint64{wild, 0, 1, 8}, Fault},
		{"poll_oneoff", []uint64{0, wild, 1, 8}, Fault},
		{"poll_oneoff", []uint64{0, 0, 1, wild}, Fault},
		{"random_get", []uint64{0, 4096}, OK},
		{"random_get", []uint64{1, 4096}, Fault},
		{"random_get", []uint64{wild, math.MaxUint32}, Fault},
		{"sched_yield", nil, OK},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.name, tt.p), func(t *testing.T) {
			w := newWorld()
			if got := w.call(t, tt.name, tt.p...); got != tt.want {
				t.Fatalf("errno %d, want %d", got, tt.want)
			}
			if tt.want != OK && !bytes.Equal(w.mem, make([]byte, len(w.mem))) {
				t.Error("it wrote to memory")
			}
			if tt.want != OK && w.out.Len() > 0 {
				t.Error("it wrote to the output")
			}
		})
	}
}

func TestLookup(t *testing.T) {
	for _, name := range []string{"path_open", "sock_accept", "fd_datasync", "", "args_get "} {
		if _, ok := Lookup(name); ok {
			t.Errorf("%q is implemented", name)
		}
	}
	if f, ok := Lookup(Exit); !ok || f.Call != nil || !slices.Equal(f.Params, []Type{I32}) {
		t.Errorf("%s: %+v %v", Exit, f, ok)
	}
}

func TestClocks(t *testing.T) {
	w := newWorld()
	read := func(clock uint64) uint64 {
		t.Helper()
		if errno := w.call(t, "clock_time_get", clock, 1, 8); errno != OK {
			t.Fatal(errno)
		}
		return w.u64(8)
	}
	if got := read(0); got != 946_684_800_000_000_000+Tick {
		t.Errorf("the first read of the wall clock is %d", got)
	}
	if got := read(1); got != monotonicBase+2*Tick {
		t.Errorf("the second read, of the monotonic clock, is %d", got)
	}
	w.Enter(1_700_000_000_000_000, [2]uint64{})
	if got := read(0); got != 1_700_000_000_000_000_000+Tick {
		t.Errorf("the first read in a lane is %d", got)
	}
	if got := read(3); got != monotonicBase+4*Tick {
		t.Errorf("the monotonic clock did not go on: %d", got)
	}
	w.Enter(-5, [2]uint64{})
	if got := read(0); got != Tick {
		t.Errorf("before 1970: %d", got)
	}
	w.Enter(math.MaxInt64, [2]uint64{})
	if got := read(0); got > math.MaxInt64 || got < maxRealtime-1000 {
		t.Errorf("far in the future: %d", got)
	}
}

// zeroKeyStream is how ChaCha8Rand of the zero key begins.
const zeroKeyStream = "d9877ece6d368aac1a6f419ec627c76b"

func TestRandom(t *testing.T) {
	w := newWorld()
	w.call(t, "random_get", 0, 8)
	w.call(t, "random_get", 8, 3)
	w.call(t, "random_get", 11, 5)
	whole := newWorld()
	whole.call(t, "random_get", 0, 16)
	if !bytes.Equal(w.mem[:16], whole.mem[:16]) {
		t.Error("the stream depends on how it is read")
	}
	key := [2]uint64{binary.LittleEndian.Uint64([]byte("chacha8:")), binary.LittleEndian.Uint64([]byte(" 32-byte"))}
	a, b := newWorld(), newWorld()
	a.Enter(0, key)
	b.Enter(5, key)
	a.call(t, "random_get", 0, 100)
	b.call(t, "random_get", 0, 100)
	if !bytes.Equal(a.mem, b.mem) || bytes.Equal(a.mem[:16], whole.mem[:16]) {
		t.Error("the stream is not that of the key")
	}
	if got := hex.EncodeToString(whole.mem[:16]); got != zeroKeyStream {
		t.Errorf("the stream of the zero key begins with %s", got)
	}
}

func TestWrite(t *testing.T) {
	w := newWorld()
	copy(w.mem[100:], "hello world")
	w.vector(8, 100, 5)
	w.vector(16, 0, 0)
	w.vector(24, 105, 6)
	if errno := w.call(t, "fd_write", 2, 8, 3, 200); errno != OK || w.u32(200) != 11 {
		t.Errorf("errno %d, %d bytes", errno, w.u32(200))
	}
	if got := w.out.String(); got != "2:hello;2: world;" {
		t.Errorf("output %q", got)
	}
	w.vector(24, 4000, 97)
	w.out.Reset()
	if errno := w.call(t, "fd_write", 1, 8, 3, 200); errno != Fault || w.out.Len() > 0 {
		t.Errorf("a wild third iovec: errno %d, output %q", errno, w.out.String())
	}
}

func TestWriteOfMoreThan31Bits(t *testing.T) {
	w := newWorld()
	w.mem = make([]byte, 3<<20)
	for i := range MaxVectors {
		w.vector(8*i, 8192, 2<<20+1024)
	}
	if errno := w.call(t, "fd_write", 1, 0, MaxVectors, 8192); errno != Inval || w.out.Len() > 0 {
		t.Errorf("errno %d, %d bytes of output", errno, w.out.Len())
	}
}

// subscribe writes a subscription to a clock.
func (w *world) subscribe(at int, user uint64, clock uint32, timeout uint64, flags uint16) {
	b := w.mem[at : at+subscriptionSize]
	clear(b)
	binary.LittleEndian.PutUint64(b, user)
	binary.LittleEndian.PutUint32(b[16:], clock)
	binary.LittleEndian.PutUint64(b[24:], timeout)
	binary.LittleEndian.PutUint16(b[40:], flags)
}

func TestPollMovesTheClock(t *testing.T) {
	w := newWorld()
	w.subscribe(0, 7, 1, 5_000_000_000, 0)
	w.subscribe(48, 8, 0, 60_000_000_000, 0)
	if errno := w.call(t, "poll_oneoff", 0, 1000, 2, 2000); errno != OK || w.u32(2000) != 1 || w.u64(1000) != 7 {
		t.Fatalf("errno %d, %d events, the first for %d", errno, w.u32(2000), w.u64(1000))
	}
	if w.elapsed != 5_000_000_000+Tick {
		t.Errorf("%d ns have passed", w.elapsed)
	}
	w.subscribe(0, 9, 0, 946_684_800_000_000_000+7_000_000_000, 1)
	if errno := w.call(t, "poll_oneoff", 0, 0, 1, 2000); errno != OK || w.u64(0) != 9 {
		t.Fatalf("an absolute time, the answer over the question: errno %d, event for %d", errno, w.u64(0))
	}
	if w.elapsed != 7_000_000_000 {
		t.Errorf("%d ns have passed", w.elapsed)
	}
	w.subscribe(0, 10, 1, 1, 1)
	w.call(t, "poll_oneoff", 0, 1000, 1, 2000)
	if w.elapsed != 7_000_000_000+Tick || w.u32(2000) != 1 {
		t.Errorf("a time in the past: %d ns have passed, %d events", w.elapsed, w.u32(2000))
	}
	w.subscribe(0, 11, 9, 1, 0)
	if errno := w.call(t, "poll_oneoff", 0, 1000, 1, 2000); errno != Inval {
		t.Errorf("a clock that is none: errno %d", errno)
	}
}

func TestPollForEverEnds(t *testing.T) {
	w := newWorld()
	for range 3 {
		w.subscribe(0, 1, 0, math.MaxUint64, 0)
		if errno := w.call(t, "poll_oneoff", 0, 1000, 1, 2000); errno != OK || w.u32(2000) != 1 {
			t.Fatalf("errno %d, %d events", errno, w.u32(2000))
		}
	}
	if w.elapsed != maxElapsed || w.now(0) > math.MaxInt64 {
		t.Errorf("%d ns have passed, the clock shows %d", w.elapsed, w.now(0))
	}
}

func TestPollOfDescriptors(t *testing.T) {
	w := newWorld()
	w.subscribe(0, 1, 0, 1<<40, 0)
	for i, fd := range []uint32{0, 1, 5} {
		at := 48 * (i + 1)
		w.subscribe(at, uint64(fd)+100, fd, 0, 0)
		w.mem[at+8] = []byte{tagRead, tagWrite, tagRead}[i]
	}
	if errno := w.call(t, "poll_oneoff", 0, 1000, 4, 2000); errno != OK || w.u32(2000) != 3 {
		t.Fatalf("errno %d, %d events", errno, w.u32(2000))
	}
	for i, want := range []struct {
		user  uint64
		errno uint16
	}{{100, 0}, {101, 0}, {105, uint16(BadFD)}} {
		at := 1000 + eventSize*i
		if w.u64(at) != want.user || binary.LittleEndian.Uint16(w.mem[at+8:]) != want.errno {
			t.Errorf("event %d: for %d, errno %d", i, w.u64(at), w.mem[at+8])
		}
	}
	if w.elapsed != Tick {
		t.Errorf("%d ns have passed", w.elapsed)
	}
	w.mem[8] = 9
	if errno := w.call(t, "poll_oneoff", 0, 1000, 1, 2000); errno != Inval {
		t.Errorf("a subscription of no kind: errno %d", errno)
	}
}

func TestPays(t *testing.T) {
	w := newWorld()
	w.call(t, "random_get", 100, 1000)
	if w.paid != 1000 {
		t.Errorf("1,000 random bytes were paid with %d", w.paid)
	}
	put32(w.mem, 200)
	put32(w.mem[4:], 33)
	w.call(t, "fd_write", 1, 0, 1, 16)
	if w.paid != 1033 {
		t.Errorf("33 bytes of output were paid with %d", w.paid-1000)
	}
	if errno := w.call(t, "random_get", 4000, 1000); errno != Fault || w.paid != 1033 {
		t.Errorf("a wild pointer: errno %d, paid %d", errno, w.paid-1033)
	}
}

// FuzzCall hands any numbers and any memory to each function: none may panic, and all answer one of the known errnos.
func FuzzCall(f *testing.F) {
	f.Add(uint8(0), []byte("abcdefgh"), uint64(0), uint64(4), uint64(1), uint64(2))
	names := []string{"args_get", "args_sizes_get", "clock_res_get", "clock_time_get", "fd_close", "fd_fdstat_get", "fd_fdstat_set_flags", "fd_read", "fd_seek", "fd_write", "poll_oneoff", "random_get"}
	f.Fuzz(func(t *testing.T, which uint8, mem []byte, a, b, c, d uint64) {
		s := New(1, [2]uint64{a, b}, func(uint32, []byte) {}, func(uint64) {})
		fn, _ := Lookup(names[int(which)%len(names)])
		errno := fn.Call(s, mem, []uint64{a, b, c, d})
		if !slices.Contains([]uint32{OK, BadFD, Fault, Inval, Spipe}, errno) {
			t.Fatalf("errno %d", errno)
		}
	})
}
