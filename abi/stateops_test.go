package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// opStruct is a state operation as a guest would write it.
type opStruct struct {
	op, domain          uint8
	table               uint16
	limit               uint32
	keyPtr, keyLen      uint32
	subPtr, subLen      uint32
	valuePtr            uint32
	valueLen            int32
	at                  int64
	ansPtr, ansLen, num uint32
	flags               uint32
}

func (o opStruct) put(mem []byte, ptr uint32) {
	le := binary.LittleEndian
	b := mem[ptr:]
	b[0], b[1] = o.op, o.domain
	le.PutUint16(b[2:], o.table)
	le.PutUint64(b[32:], uint64(o.at))
	for at, word := range map[int]uint32{
		4: o.limit, 8: o.keyPtr, 12: o.keyLen, 16: o.subPtr, 20: o.subLen, 24: o.valuePtr, 28: uint32(o.valueLen),
		40: o.ansPtr, 44: o.ansLen, 48: o.num, 52: o.flags,
	} {
		le.PutUint32(b[at:], word)
	}
}

const (
	opsAt  = testBase + 1024
	bufAt  = testBase + 4096
	needAt = testBase + 2048
	memEnd = testBase + 8192
)

func stateMemory(ops ...opStruct) []byte {
	mem := make([]byte, memEnd)
	copy(mem[testBase:], "keysubvalue")
	for i, o := range ops {
		o.put(mem, opsAt+uint32(i)*StateOpSize)
	}
	return mem
}

func oneLane() *StateRules { return &StateRules{Keyed: true, Tables: 2, Lanes: 1} }

func writes(mem []byte, ptr, count uint32, rules *StateRules) ([]StateOp, error) {
	var ops []StateOp
	err := ReadStateWrites(mem, ptr, count, rules, func(op *StateOp) error {
		ops = append(ops, *op)
		return nil
	})
	return ops, err
}

// entry names key "key" and sub "sub".
var entry = opStruct{keyPtr: testBase, keyLen: 3, subPtr: testBase + 3, subLen: 3, valuePtr: testBase + 6, valueLen: 5}

func opWith(op OpCode, change func(*opStruct)) opStruct {
	o := entry
	o.op = uint8(op)
	if change != nil {
		change(&o)
	}
	return o
}

func TestReadStateWrites(t *testing.T) {
	key, sub, value := []byte("key"), []byte("sub"), []byte("value")
	got, err := writes(stateMemory(
		opWith(OpPut, func(o *opStruct) { o.table, o.at, o.flags, o.ansPtr, o.num = 1, 5_500, 1, 77, 88 }),
		opWith(OpDelete, func(o *opStruct) { o.valuePtr, o.valueLen, o.at = math.MaxUint32, -9, math.MaxInt64 }),
		opWith(OpDeletePrefix, func(o *opStruct) { o.valueLen = -1 }),
		opWith(OpTimerSet, func(o *opStruct) { o.domain, o.at = DomainProcessing, -1 }),
		opWith(OpTimerDelete, func(o *opStruct) { o.subPtr, o.subLen = math.MaxUint32, 0 }),
	), opsAt, 5, oneLane())
	want := []StateOp{
		{Op: OpPut, Table: 1, Key: key, Sub: sub, Value: value, At: 5000},
		{Op: OpDelete, Key: key, Sub: sub},
		{Op: OpDeletePrefix, Key: key, Sub: sub},
		{Op: OpTimerSet, Domain: DomainProcessing, Key: key, Sub: sub, At: -1000},
		{Op: OpTimerDelete, Key: key, Sub: []byte{}},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
	}
	if got, err := writes(nil, 3, 0, oneLane()); err != nil || got != nil {
		t.Fatalf("nothing: %v %v", got, err)
	}
	stop := errors.New("stop")
	if err := ReadStateWrites(stateMemory(opWith(OpPut, nil)), opsAt, 1, oneLane(), func(*StateOp) error { return stop }); !errors.Is(err, stop) {
		t.Fatal(err)
	}
}

func TestStateTraps(t *testing.T) {
	put := opWith(OpPut, nil)
	group := KeyGroup([]byte("key"))
	for name, c := range map[string]struct {
		op         opStruct
		ptr, count uint32
		rules      StateRules
	}{
		"stateless":          {put, opsAt, 1, StateRules{Tables: 1, Lanes: 1}},
		"stateless, nothing": {put, opsAt, 0, StateRules{Tables: 1, Lanes: 1}},
		"misaligned":         {put, opsAt + 4, 1, *oneLane()},
		"past memory":        {put, memEnd - 48, 1, *oneLane()},
		"too many":           {put, opsAt, MaxStateOps + 1, *oneLane()},
		"count wraps":        {put, opsAt, math.MaxUint32, *oneLane()},
		"operation 0":        {opWith(0, nil), opsAt, 1, *oneLane()},
		"operation 8":        {opWith(8, nil), opsAt, 1, *oneLane()},
		"a read":             {opWith(OpGet, nil), opsAt, 1, *oneLane()},
		"flags":              {opWith(OpPut, func(o *opStruct) { o.flags = 4 }), opsAt, 1, *oneLane()},
		"table":              {opWith(OpPut, func(o *opStruct) { o.table = 2 }), opsAt, 1, *oneLane()},
		"timer's table":      {opWith(OpTimerSet, func(o *opStruct) { o.table = 1 }), opsAt, 1, *oneLane()},
		"timer's domain":     {opWith(OpTimerSet, func(o *opStruct) { o.domain = 2 }), opsAt, 1, *oneLane()},
		"timer's time":       {opWith(OpTimerSet, func(o *opStruct) { o.at = MinTime - 1 }), opsAt, 1, *oneLane()},
		"expiry":             {opWith(OpPut, func(o *opStruct) { o.at = MaxTime + 1000 }), opsAt, 1, *oneLane()},
		"wild key":           {opWith(OpPut, func(o *opStruct) { o.keyPtr = memEnd - 2 }), opsAt, 1, *oneLane()},
		"wild sub":           {opWith(OpPut, func(o *opStruct) { o.subPtr = math.MaxUint32 }), opsAt, 1, *oneLane()},
		"null key":           {opWith(OpPut, func(o *opStruct) { o.keyLen = math.MaxUint32 }), opsAt, 1, *oneLane()},
		"long key and sub":   {opWith(OpPut, func(o *opStruct) { o.keyLen, o.subLen = 4000, 97 }), opsAt, 1, *oneLane()},
		"wild value":         {opWith(OpPut, func(o *opStruct) { o.valuePtr = memEnd - 4 }), opsAt, 1, *oneLane()},
		"put without value":  {opWith(OpPut, func(o *opStruct) { o.valueLen = -1 }), opsAt, 1, *oneLane()},
		"value's length":     {opWith(OpDeletePrefix, func(o *opStruct) { o.valueLen = -2 }), opsAt, 1, *oneLane()},
		"another lane's key": {put, opsAt, 1, StateRules{Keyed: true, Tables: 1, Lanes: 2, Lane: 1 - LaneOfGroup(group, 2)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := writes(stateMemory(c.op), c.ptr, c.count, &c.rules)
			var v *Violation
			if !errors.As(err, &v) || v.Trap != TrapState || len(got) != 0 {
				t.Fatalf("%v, %v", got, err)
			}
		})
	}
	mem := make([]byte, 1<<20)
	opStruct{op: uint8(OpPut), valueLen: MaxStateValue + 1}.put(mem, 0)
	if _, err := writes(mem, 0, 1, oneLane()); err == nil {
		t.Fatal("a value over the limit was taken")
	}
}

// table is a StateReader over entries in the order of sub, all under one key.
type table []Header

func (tb table) Get(op *StateOp) ([]byte, bool, error) {
	for _, e := range tb {
		if bytes.Equal(e.Name, op.Sub) {
			return e.Value, true, nil
		}
	}
	return nil, false, nil
}

func (tb table) Scan(op *StateOp, visit func(sub, value []byte) bool) error {
	entries := slices.Clone(tb)
	if op.Descending {
		slices.Reverse(entries)
	}
	for _, e := range entries {
		order := bytes.Compare(e.Name, op.Value)
		started := op.Value == nil || order > 0 && !op.Descending || order < 0 && op.Descending
		if bytes.HasPrefix(e.Name, op.Sub) && started && !visit(e.Name, e.Value) {
			return nil
		}
	}
	return nil
}

// numbers is a table of n entries s00, s01, .. with values v0, v1, ..
func numbers(n int) table {
	var tb table
	for i := range n {
		tb = append(tb, Header{Name: fmt.Appendf(nil, "s%02d", i), Value: fmt.Appendf(nil, "v%d", i)})
	}
	return tb
}

// answer reads the answer of operation i back: the value of a get, or the entries of a scan as sub=value.
func answer(t *testing.T, mem []byte, i int) (text string, more bool) {
	t.Helper()
	le := binary.LittleEndian
	b := mem[opsAt+i*StateOpSize:]
	ptr, n, count, flags := le.Uint32(b[40:]), int32(le.Uint32(b[44:])), le.Uint32(b[48:]), le.Uint32(b[52:])
	if n > 0 && ptr%8 != 0 {
		t.Fatalf("answer %d at %d", i, ptr)
	}
	if OpCode(b[0]) == OpGet {
		if n < 0 {
			return "absent", false
		}
		return string(mem[ptr : ptr+uint32(n)]), false
	}
	var entries []string
	for e := range count {
		at := ptr + e*HeaderEntrySize
		sub := mem[le.Uint32(mem[at:]):][:le.Uint32(mem[at+4:])]
		value := mem[le.Uint32(mem[at+8:]):][:le.Uint32(mem[at+12:])]
		entries = append(entries, string(sub)+"="+string(value))
	}
	return strings.Join(entries, " "), flags&stateMore != 0
}

func TestAnswerState(t *testing.T) {
	get := opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 }) // s01
	absent := opWith(OpGet, nil)
	scan := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 })
	down := opWith(OpScan, func(o *opStruct) { o.subLen, o.valuePtr, o.valueLen, o.flags, o.limit = 0, testBase+64, 3, 2, 9 })
	limited := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen, o.limit = 0, -1, 2 })
	for name, c := range map[string]struct {
		ops  []opStruct
		cap  uint32
		want []string
		need uint32
	}{
		"get":                {[]opStruct{get}, 8, []string{"v1"}, 0},
		"absent needs none":  {[]opStruct{absent}, 0, []string{"absent"}, 0},
		"get too small":      {[]opStruct{get, absent, get}, 15, nil, 16},
		"scan":               {[]opStruct{scan}, 4096, []string{"s00=v0 s01=v1 s02=v2"}, 0},
		"scan, first only":   {[]opStruct{scan}, 24, []string{"s00=v0 +"}, 0},
		"scan, two":          {[]opStruct{scan}, 48, []string{"s00=v0 s01=v1 +"}, 0},
		"scan too small":     {[]opStruct{scan}, 23, nil, 24},
		"downwards":          {[]opStruct{down}, 4096, []string{"s00=v0"}, 0},
		"limit":              {[]opStruct{limited}, 4096, []string{"s00=v0 s01=v1"}, 0},
		"room is kept":       {[]opStruct{scan, get, scan}, 24 + 8 + 24 + 24, []string{"s00=v0 s01=v1 +", "v1", "s00=v0 +"}, 0},
		"rest for the later": {[]opStruct{limited, scan}, 48 + 72, []string{"s00=v0 s01=v1", "s00=v0 s01=v1 s02=v2"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			mem := stateMemory(c.ops...)
			copy(mem[testBase+64:], "s01")
			before := slices.Clone(mem)
			code, err := AnswerState(mem, opsAt, uint32(len(c.ops)), StateBuffer{bufAt, c.cap, needAt}, oneLane(), numbers(3))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == nil {
				binary.LittleEndian.PutUint32(before[needAt:], c.need)
				if code != StateTooSmall || !bytes.Equal(before, mem) {
					t.Fatalf("code %d, need %d", code, binary.LittleEndian.Uint32(mem[needAt:]))
				}
				return
			}
			for i, want := range c.want {
				got, more := answer(t, mem, i)
				if more {
					got += " +"
				}
				if got != want || code != StateOK {
					t.Errorf("%d: code %d, %q, want %q", i, code, got, want)
				}
			}
			if !bytes.Equal(mem[bufAt+c.cap:], before[bufAt+c.cap:]) {
				t.Error("written behind the buffer")
			}
		})
	}
}

// The start of the next scan lies in the answer of the last one.
func TestScanContinuesFromItsBuffer(t *testing.T) {
	scan := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 })
	mem := stateMemory(scan)
	var all []string
	for range 10 {
		if code, err := AnswerState(mem, opsAt, 1, StateBuffer{bufAt, 56, needAt}, oneLane(), numbers(5)); code != StateOK || err != nil {
			t.Fatal(code, err)
		}
		text, more := answer(t, mem, 0)
		all = append(all, text)
		if !more {
			break
		}
		le := binary.LittleEndian
		last := le.Uint32(mem[opsAt+40:]) + (le.Uint32(mem[opsAt+48:])-1)*HeaderEntrySize
		copy(mem[opsAt+24:], mem[last:last+8])
	}
	if got, want := strings.Join(all, " "), "s00=v0 s01=v1 s02=v2 s03=v3 s04=v4"; got != want {
		t.Fatalf("%q", got)
	}
}

func TestAnswerStateTraps(t *testing.T) {
	for name, c := range map[string]struct {
		op  opStruct
		buf StateBuffer
	}{
		"a write":           {opWith(OpPut, nil), StateBuffer{bufAt, 8, needAt}},
		"need misaligned":   {opWith(OpGet, nil), StateBuffer{bufAt, 8, needAt + 2}},
		"need wild":         {opWith(OpGet, nil), StateBuffer{bufAt, 8, memEnd}},
		"need in ops":       {opWith(OpGet, nil), StateBuffer{bufAt, 8, opsAt + 52}},
		"need in buffer":    {opWith(OpGet, nil), StateBuffer{bufAt, 8, bufAt + 4}},
		"buffer misaligned": {opWith(OpGet, nil), StateBuffer{bufAt + 4, 8, needAt}},
		"buffer wild":       {opWith(OpGet, nil), StateBuffer{bufAt, math.MaxUint32, needAt}},
		"buffer over ops":   {opWith(OpGet, nil), StateBuffer{opsAt - 64, 72, needAt}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := AnswerState(stateMemory(c.op), opsAt, 1, c.buf, oneLane(), numbers(1))
			var v *Violation
			if !errors.As(err, &v) || v.Trap != TrapState {
				t.Fatal(err)
			}
		})
	}
}

// Whatever the room, all scans together give what one scan in a large buffer gives, and nothing lies outside the buffer.
func TestAnswerStateInAnyRoom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ops []opStruct
		for range rapid.IntRange(1, 4).Draw(t, "ops") {
			o := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 })
			if rapid.Bool().Draw(t, "get") {
				o = opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 })
			}
			ops = append(ops, o)
		}
		mem := stateMemory(ops...)
		copy(mem[testBase+64:], "s01")
		room := uint32(rapid.IntRange(0, 300).Draw(t, "room"))
		code, err := AnswerState(mem, opsAt, uint32(len(ops)), StateBuffer{bufAt, room, needAt}, oneLane(), numbers(4))
		if err != nil {
			t.Fatal(err)
		}
		le := binary.LittleEndian
		if code == StateTooSmall {
			need := le.Uint32(mem[needAt:])
			if need <= room {
				t.Fatalf("need %d, room %d", need, room)
			}
			if code, err = AnswerState(mem, opsAt, uint32(len(ops)), StateBuffer{bufAt, need, needAt}, oneLane(), numbers(4)); code != StateOK || err != nil {
				t.Fatalf("with what it needs: %d %v", code, err)
			}
			room = need
		}
		for i := range ops {
			b := mem[opsAt+i*StateOpSize:]
			ptr, n := le.Uint32(b[40:]), le.Uint32(b[44:])
			if n > 0 && (ptr < bufAt || ptr+n > bufAt+room || ptr%8 != 0) {
				t.Fatalf("answer %d: %d bytes at %d, room %d", i, n, ptr, room)
			}
		}
	})
}

func FuzzReadStateOps(f *testing.F) {
	mem := make([]byte, 512)
	opStruct{op: uint8(OpPut), keyPtr: 8, keyLen: 3, valueLen: 4}.put(mem, 64)
	opStruct{op: uint8(OpScan), keyPtr: 8, keyLen: 3, valueLen: -1}.put(mem, 64+StateOpSize)
	f.Add(mem, uint32(64), uint32(1), uint32(256), uint32(64), uint32(240))
	f.Add(mem, uint32(64+StateOpSize), uint32(1), uint32(256), uint32(64), uint32(240))
	f.Fuzz(func(t *testing.T, mem []byte, ptr, count, buf, capacity, need uint32) {
		rules := oneLane()
		_, err := writes(mem, ptr, count, rules)
		var v *Violation
		if err != nil && (!errors.As(err, &v) || v.Trap != TrapState) {
			t.Fatal(err)
		}
		code, err := AnswerState(mem, ptr, count, StateBuffer{buf, capacity, need}, rules, numbers(3))
		if err != nil && (!errors.As(err, &v) || v.Trap != TrapState) || code != StateOK && code != StateTooSmall {
			t.Fatal(code, err)
		}
	})
}
