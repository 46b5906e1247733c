package engine

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// failure is one failed call of a guest: what it said, and the records of the frame.
type failure struct {
	guest   *sandbox.Failure // nil for kind 17
	named   int64            // the record that kind 17 named, or -1
	code    int32
	reason  string
	indexes []uint32 // of the frame, ascending
}

func (f *failure) text() string {
	if f.guest == nil {
		return fmt.Sprintf("fail: %s", f.reason)
	}
	return f.guest.Error()
}

// letter describes the failure as the dead letter of the record that caused it.
func (f *failure) letter(s *stageLane) letter {
	lt := letter{
		poison: true, code: f.code, word: "fail", reason: f.text(),
		stage: s.node.Name, module: s.node.Module,
	}
	if f.guest != nil {
		lt.where = f.guest.Where()
	}
	switch {
	case f.guest == nil:
	case f.guest.Trap == abi.TrapTooLarge:
		lt.code, lt.word = CodeTooLarge, string(f.guest.Trap)
	case f.guest.Trap != "":
		lt.code, lt.word = CodeTrap, string(f.guest.Trap)
	default:
		lt.code, lt.word = CodeBadStatus, "bad_status"
	}
	return lt
}

// findPoison names the record that a guest failed on: the one it named itself, the one its progress cell points at, or
// the last record of the smallest failing prefix of the frame, found by bisection with a fresh run of the lane a probe.
func (l *lane) findPoison(ctx context.Context, b *batchRun, s *stageLane, f *failure) (uint32, letter, error) {
	if len(f.indexes) == 0 && f.named < 0 {
		if b.spare && f.laneFull() {
			return 0, letter{}, errLaneFull
		}
		return 0, letter{}, guestFailed(s.node.Name, b.plan.Batch, l.index, f)
	}
	index, ok := f.pointed()
	if !ok {
		var err error
		if index, err = l.bisect(ctx, b, s, f); err != nil {
			return 0, letter{}, err
		}
	}
	if b.spare && f.laneFull() {
		if err := l.spare(ctx, b, s, index, f); err != nil {
			return 0, letter{}, err
		}
	}
	lt := f.letter(s)
	var err error
	lt.origin, err = l.whence(ctx, b, s, index)
	return index, lt, err
}

// errLaneFull says that a batch comes to more output in a lane than is allowed, and that no single record is to blame.
var errLaneFull = errors.New("the output of a lane is over its limit")

// laneFull reports whether the output of the lane was over its limit.
func (f *failure) laneFull() bool {
	return f.guest != nil && f.guest.Trap == abi.TrapQuota && strings.HasPrefix(f.guest.Text, abi.LaneFull)
}

// spare gives the batch up if the records before the one at which a lane's output was over its limit have filled half of it,
// which a run that ends before it shows. Else that record makes too much, whatever comes before it.
func (l *lane) spare(ctx context.Context, b *batchRun, s *stageLane, index uint32, f *failure) error {
	if index == 0 {
		return nil
	}
	var limit int64
	if _, err := fmt.Sscanf(f.guest.Text, abi.LaneFull+"%d", &limit); err != nil {
		return nil //nolint:nilerr // it does not say of how much
	}
	s.reset()
	l.output = 0
	failed, err := l.attempt(ctx, b, s, int64(index)-1)
	if err != nil {
		return fmt.Errorf("see what comes before a record: %w", err)
	}
	if failed != nil || 2*l.output >= limit {
		return errLaneFull
	}
	return nil
}

// whence says where the record with that number in the lane was read, by reading the lane again if need be.
func (l *lane) whence(ctx context.Context, b *batchRun, s *stageLane, index uint32) (origin, error) {
	if in, split := s.chunk.find(index); in != nil {
		return origin{edge: s.node.Inputs[in.Input], split: split, offset: in.Offset, partition: in.Partition}, nil
	}
	from := origin{edge: Edge{Source: -1, Stage: s.index}, offset: -1, partition: -1}
	var next uint32
	err := l.feedStage(ctx, b, s, func(entry int, split string, r *abi.Record) error {
		if next++; next <= index {
			return nil
		}
		from = origin{edge: s.node.Inputs[entry], split: split, offset: r.Offset, partition: r.Partition}
		return errProbeEnd
	})
	if errors.Is(err, errProbeEnd) {
		err = nil
	}
	return from, err
}

// pointed returns the record that the guest pointed at, if that is one of the frame.
func (f *failure) pointed() (uint32, bool) {
	if f.named >= 0 {
		return uint32(f.named), true
	}
	if len(f.indexes) == 1 {
		return f.indexes[0], true
	}
	p := f.guest.Progress
	i := sort.Search(len(f.indexes), func(i int) bool { return f.indexes[i] >= p })
	return p, i < len(f.indexes) && f.indexes[i] == p
}

func (l *lane) bisect(ctx context.Context, b *batchRun, s *stageLane, f *failure) (uint32, error) {
	lo, hi := 0, len(f.indexes)-1 // the prefix that ends at hi fails; every prefix that ends before lo passes
	for lo < hi {
		mid := (lo + hi) / 2
		s.reset()
		failed, err := l.attempt(ctx, b, s, int64(f.indexes[mid]))
		if err != nil {
			return 0, fmt.Errorf("bisect a failing chunk: %w", err)
		}
		if failed != nil {
			if len(failed.indexes) == 0 || failed.indexes[0] != f.indexes[0] {
				return 0, notRepeatable(s.node.Name, l.index, f.text())
			}
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	// The last probe fills the chunk again, so that the record is at hand, and proves that the failure repeats.
	s.reset()
	failed, err := l.attempt(ctx, b, s, int64(f.indexes[lo]))
	if err != nil {
		return 0, fmt.Errorf("bisect a failing chunk: %w", err)
	}
	if failed == nil {
		return 0, notRepeatable(s.node.Name, l.index, f.text())
	}
	return f.indexes[lo], nil
}
