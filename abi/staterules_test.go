package abi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// roundedSizes is what the first n entries of tb take in a buffer.
func roundedSizes(tb table, n int) uint32 {
	size := 0
	for _, e := range tb[:n] {
		size += HeaderEntrySize + len(e.Name) + len(e.Value)
	}
	return uint32(roundUp8(uint64(size)))
}

// The rule of abi/README.md, taken by its words: every get and every first entry has room, and the scans, in order, take
// what is left.
func TestRoomIsSharedAsTheSpecificationSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tb table
		for i := range rapid.IntRange(0, 6).Draw(t, "entries") {
			tb = append(tb, Header{Name: fmt.Appendf(nil, "s%02d", i), Value: bytes.Repeat([]byte{'v'}, rapid.IntRange(0, 40).Draw(t, "size"))})
		}
		var ops []opStruct
		var limits []int // -1: a get of s01
		need := uint32(0)
		for range rapid.IntRange(1, 5).Draw(t, "ops") {
			limit := rapid.IntRange(-1, 3).Draw(t, "limit")
			limits = append(limits, limit)
			switch {
			case limit >= 0:
				ops = append(ops, opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen, o.limit = 0, -1, uint32(limit) }))
				need += roundedSizes(tb, min(1, len(tb)))
			default:
				ops = append(ops, opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 }))
				if len(tb) > 1 {
					need += uint32(roundUp8(uint64(len(tb[1].Value))))
				}
			}
		}
		room := uint32(rapid.IntRange(0, 500).Draw(t, "room"))
		mem := stateMemory(ops...)
		copy(mem[testBase+64:], "s01")
		code, err := AnswerState(mem, opsAt, uint32(len(ops)), StateBuffer{bufAt, room, needAt}, oneLane(), tb)
		if err != nil {
			t.Fatal(err)
		}
		if code == StateTooSmall || need > room {
			if got := binary.LittleEndian.Uint32(mem[needAt:]); code != StateTooSmall || got != need {
				t.Fatalf("code %d, need %d, want %d for a room of %d", code, got, need, room)
			}
			return
		}
		slack := room - need
		for i, limit := range limits {
			if limit < 0 {
				continue
			}
			first := roundedSizes(tb, min(1, len(tb)))
			most := len(tb)
			if limit > 0 {
				most = min(most, limit)
			}
			n := 0
			for n < most && roundedSizes(tb, n+1) <= first+slack {
				n++
			}
			slack -= roundedSizes(tb, n) - first
			b := mem[opsAt+i*StateOpSize:]
			count, more := binary.LittleEndian.Uint32(b[48:]), binary.LittleEndian.Uint32(b[52:])&stateMore != 0
			if int(count) != n || more != (n < most) {
				t.Fatalf("scan %d gives %d entries, more %v; want %d of %d", i, count, more, n, most)
			}
		}
	})
}

// meter counts what is paid, up to most.
type meter struct{ paid, most uint64 }

var errEmpty = errors.New("no fuel")

func (m *meter) pay(n uint64) error {
	if m.paid += n; m.paid > m.most {
		return errEmpty
	}
	return nil
}

func TestStateIsPaidFor(t *testing.T) {
	key, sub := uint64(3), uint64(3)
	get := opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 })
	scan := opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 })
	from := opWith(OpScan, func(o *opStruct) { o.subLen, o.valuePtr, o.valueLen, o.limit = 0, testBase+64, 3, 1 })
	const entry = StateEntryFuel + 3 + 2 // s00 and v0
	for name, c := range map[string]struct {
		ops  []opStruct
		cap  uint32
		want uint64
	}{
		"a get":                            {[]opStruct{get}, 512, 56 + key + sub + 2},
		"what is absent":                   {[]opStruct{opWith(OpGet, nil)}, 512, 56 + key + sub},
		"a get without room":               {[]opStruct{get, get}, 8, 2 * (56 + key + sub + 2)},
		"a scan":                           {[]opStruct{scan}, 512, 56 + key + 3*entry},
		"a scan that starts and has limit": {[]opStruct{from}, 512, 56 + key + sub + entry},
		"the entry that has no room":       {[]opStruct{scan}, 24, 56 + key + 2*entry},
		"a scan done again":                {[]opStruct{scan, get, scan}, 80, 56*3 + 3*key + sub + 2 + 3*entry + entry + 2*entry},
		"a put":                            {[]opStruct{opWith(OpPut, nil)}, 0, 56 + key + sub + 5},
		"a delete":                         {[]opStruct{opWith(OpDelete, nil)}, 0, 56 + key + sub},
		"a timer":                          {[]opStruct{opWith(OpTimerSet, nil), opWith(OpTimerDelete, nil)}, 0, 2 * (56 + key + sub)},
		"a delete-prefix":                  {[]opStruct{opWith(OpDeletePrefix, nil)}, 0, 56 + key + sub + 5},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(most uint64) (uint64, []byte, []byte, error) {
				mem := stateMemory(c.ops...)
				copy(mem[testBase+64:], "s01")
				before := slices.Clone(mem)
				m := &meter{most: most}
				rules := oneLane()
				rules.Pay = m.pay
				var err error
				if OpCode(c.ops[0].op) >= OpPut {
					_, err = writes(mem, opsAt, uint32(len(c.ops)), rules)
				} else {
					_, err = AnswerState(mem, opsAt, uint32(len(c.ops)), StateBuffer{bufAt, c.cap, needAt}, rules, numbers(3))
				}
				return m.paid, before, mem, err
			}
			paid, _, _, err := run(1 << 30)
			if err != nil || paid != c.want {
				t.Fatalf("paid %d, want %d, %v", paid, c.want, err)
			}
			if _, before, after, err := run(paid - 1); err != errEmpty || !bytes.Equal(before, after) {
				t.Errorf("with one less: %v", err)
			}
		})
	}
}

// A value is not looked at before it is paid for, nor a key hashed.
func TestNothingIsDoneUnpaid(t *testing.T) {
	rules := oneLane()
	rules.Pay = func(uint64) error { return errEmpty }
	mem := stateMemory(opWith(OpPut, nil))
	if got, err := writes(mem, opsAt, 1, rules); err != errEmpty || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// failing is a StateReader that fails.
type failing struct{ err error }

func (f failing) Get(*StateOp) ([]byte, bool, error) { return nil, false, f.err }

func (f failing) Scan(_ *StateOp, visit func(sub, value []byte) bool) error {
	visit([]byte("s"), []byte("v"))
	return f.err
}

func TestReaderErrorsPass(t *testing.T) {
	broken := errors.New("disk")
	for _, op := range []OpCode{OpGet, OpScan} {
		mem := stateMemory(opWith(op, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 }))
		before := slices.Clone(mem)
		if _, err := AnswerState(mem, opsAt, 1, StateBuffer{bufAt, 64, needAt}, oneLane(), failing{broken}); err != broken || !bytes.Equal(mem, before) {
			t.Errorf("operation %d: %v", op, err)
		}
	}
}

// Answers need no memory that grows with the calls.
func TestAnswersDoNotAllocate(t *testing.T) {
	mem := stateMemory(opWith(OpGet, func(o *opStruct) { o.subPtr = testBase + 64 }), opWith(OpScan, func(o *opStruct) { o.subLen, o.valueLen = 0, -1 }))
	copy(mem[testBase+64:], "s01")
	rules := oneLane()
	m := &meter{most: 1 << 60}
	rules.Pay = m.pay
	var tb StateReader = fixed(numbers(3))
	if n := testing.AllocsPerRun(100, func() {
		if _, err := AnswerState(mem, opsAt, 2, StateBuffer{bufAt, 512, needAt}, rules, tb); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a call", n)
	}
	if text, _ := answer(t, mem, 1); !strings.HasPrefix(text, "s00=v0") {
		t.Error(text)
	}
}

// fixed is a table that scans without copying.
type fixed table

func (f fixed) Get(op *StateOp) ([]byte, bool, error) { return table(f).Get(op) }

func (f fixed) Scan(_ *StateOp, visit func(sub, value []byte) bool) error {
	for i := range f {
		if !visit(f[i].Name, f[i].Value) {
			break
		}
	}
	return nil
}
