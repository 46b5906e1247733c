package statemap

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wasmill/wasmill/abi"
)

// naive is the same state, searched from end to end.
type naive []Entry

func (n naive) scan(op *abi.StateOp) (subs []string) {
	all := slices.Clone(n)
	slices.SortFunc(all, func(a, b Entry) int { return bytes.Compare(a.Sub, b.Sub) })
	if op.Descending {
		slices.Reverse(all)
	}
	for _, e := range all {
		here := e.Table == op.Table && bytes.Equal(e.Key, op.Key) && bytes.HasPrefix(e.Sub, op.Sub)
		order := bytes.Compare(e.Sub, op.Value)
		if here && (op.Value == nil || !op.Descending && order > 0 || op.Descending && order < 0) {
			subs = append(subs, string(e.Sub)+"="+string(e.Value))
		}
	}
	return subs
}

func (n *naive) write(op *abi.StateOp, now int64) int {
	before := len(*n)
	switch op.Op {
	case abi.OpPut, abi.OpDelete:
		*n = slices.DeleteFunc(*n, func(e Entry) bool {
			return e.Table == op.Table && bytes.Equal(e.Key, op.Key) && bytes.Equal(e.Sub, op.Sub)
		})
		if op.Op == abi.OpPut && (op.At == 0 || op.At > now) {
			*n = append(*n, Entry{op.Table, op.Key, op.Sub, op.Value, op.At})
		}
		return 0
	default:
		*n = slices.DeleteFunc(*n, func(e Entry) bool {
			return e.Table == op.Table && bytes.Equal(e.Key, op.Key) && bytes.HasPrefix(e.Sub, op.Sub) &&
				(op.Value == nil || bytes.Compare(e.Sub, op.Value) < 0)
		})
	}
	return before - len(*n)
}

// Random operations give what a search from end to end gives, blocks that are split and emptied included.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map
		var n naive
		sub := rapid.Custom(func(t *rapid.T) []byte { return rapid.SliceOfN(rapid.ByteRange('a', 'd'), 0, 4).Draw(t, "sub") })
		maybe := func(label string) []byte {
			if rapid.Bool().Draw(t, label) {
				return nil
			}
			return sub.Draw(t, label)
		}
		now := int64(0)
		for i := range rapid.IntRange(1, 800).Draw(t, "operations") {
			op := &abi.StateOp{Key: []byte("k"), Sub: sub.Draw(t, "sub")}
			switch rapid.IntRange(0, 19).Draw(t, "operation") {
			case 0:
				op.Op, op.Value, op.Descending = abi.OpScan, maybe("after"), rapid.Bool().Draw(t, "descending")
				var got []string
				if err := m.Scan(op, func(sub, value []byte) bool {
					got = append(got, string(sub)+"="+string(value))
					return true
				}); err != nil {
					t.Fatal(err)
				}
				if want := n.scan(op); !slices.Equal(got, want) {
					t.Fatalf("scan %q after %q: %v, want %v", op.Sub, op.Value, got, want)
				}
				continue
			case 1:
				op.Op, op.Value = abi.OpDeletePrefix, maybe("before")
			case 2:
				op.Op = abi.OpDelete
			case 3:
				now += 10
				m.Begin(now, 0)
				n = slices.DeleteFunc(n, func(e Entry) bool { return e.Expiry != 0 && e.Expiry <= now })
				continue
			default:
				op.Op, op.Value = abi.OpPut, fmt.Append(nil, i)
				if i%50 == 0 {
					op.At = now + int64(rapid.IntRange(0, 30).Draw(t, "expiry"))
				}
			}
			got, err := m.Write(op)
			if want := n.write(op, now); err != nil || got != want {
				t.Fatalf("%+v removed %d, want %d, %v", op, got, want, err)
			}
		}
		slices.SortFunc(n, func(a, b Entry) int { return bytes.Compare(a.Sub, b.Sub) })
		if got := m.Entries(); len(got) != len(n) || len(n) > 0 && !gocmp.Equal(got, []Entry(n)) {
			t.Fatal(gocmp.Diff([]Entry(n), got))
		}
	})
}

// Blocks are split as they grow and go when they are empty.
func TestManyUnderOneKey(t *testing.T) {
	const many = 20 * maxBlock
	for name, at := range map[string]func(i int) int{"upwards": func(i int) int { return i }, "downwards": func(i int) int { return many - 1 - i }} {
		t.Run(name, func(t *testing.T) {
			var m Map
			for i := range many {
				put(&m, "k", fmt.Sprintf("%06d", at(i)), fmt.Sprint(at(i)))
			}
			if got := len(m.Entries()); got != many {
				t.Fatalf("%d entries", got)
			}
			n, err := m.Write(&abi.StateOp{Op: abi.OpDeletePrefix, Key: []byte("k"), Sub: []byte("00"), Value: []byte("005000")})
			if err != nil || n != 5000 || len(m.Entries()) != many-5000 {
				t.Fatalf("removed %d, %v, %d are left", n, err, len(m.Entries()))
			}
			if _, err = m.Write(&abi.StateOp{Op: abi.OpDeletePrefix, Key: []byte("k")}); err != nil || len(m.groups) != 0 {
				t.Fatalf("%v, %d keys are left", err, len(m.groups))
			}
		})
	}
}

func put(m *Map, key, sub, value string) {
	_, _ = m.Write(&abi.StateOp{Op: abi.OpPut, Key: []byte(key), Sub: []byte(sub), Value: []byte(value)}) // never fails
}

func TestTimersFireOnceInALaterBatch(t *testing.T) {
	var m Map
	timer := func(op abi.OpCode, domain uint8, at int64, key, sub string) {
		if _, err := m.Write(&abi.StateOp{Op: op, Domain: domain, At: at, Key: []byte(key), Sub: []byte(sub)}); err != nil {
			t.Fatal(err)
		}
	}
	m.Begin(1000, 500)
	timer(abi.OpTimerSet, abi.DomainProcessing, 10, "a", "p")
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "b", "")
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "a", "y")
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "a", "x")
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "a", "x")
	timer(abi.OpTimerSet, abi.DomainEvent, 600, "a", "later")
	timer(abi.OpTimerSet, abi.DomainEvent, 30, "a", "gone")
	timer(abi.OpTimerDelete, abi.DomainEvent, 30, "a", "gone")
	timer(abi.OpTimerDelete, abi.DomainProcessing, 20, "b", "") // of another domain: names none
	if due := m.Due(); len(due) != 0 {
		t.Fatalf("%v are due in the batch that set them", due)
	}
	m.Begin(1001, 500)
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "b", "") // again: it is still due
	timer(abi.OpTimerDelete, abi.DomainEvent, 20, "a", "y")
	timer(abi.OpTimerSet, abi.DomainEvent, 20, "a", "y") // anew: it is not
	var got []string
	for _, d := range m.Due() {
		r := d.Record()
		got = append(got, fmt.Sprint(r.Kind, " ", r.EventTime, " ", string(r.Key), " ", string(r.Value)))
	}
	if want := []string{"1 20 a x", "1 20 b ", "2 10 a p"}; !slices.Equal(got, want) {
		t.Errorf("due are %q, want %q", got, want)
	}
	if due := m.Due(); len(due) != 0 {
		t.Errorf("%v fire twice", due)
	}
	if left := m.Timers(); len(left) != 2 || string(left[0].Sub) != "y" || string(left[1].Sub) != "later" {
		t.Errorf("left are %v", left)
	}
}

func TestEntriesAreInOrder(t *testing.T) {
	var m Map
	for _, key := range []string{"b", "", "ab", "a"} {
		put(&m, key, "s", key)
	}
	got := m.Entries()
	if len(got) != 4 || !slices.IsSortedFunc(got, func(a, b Entry) int { return cmp.Compare(string(a.Key), string(b.Key)) }) {
		t.Errorf("%v", got)
	}
}
