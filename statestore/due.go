package statestore

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
)

// never is the lower bound of timers that do not exist; unknownTime is that of timers nobody has looked for.
const (
	never       = math.MaxInt64
	unknownTime = math.MinInt64
)

// times is, for each key group and domain, a time below which there is no timer.
type times [Groups][domains]int64

func allTimes(at int64) *times {
	var t times
	for g := range t {
		t[g] = [domains]int64{at, at}
	}
	return &t
}

// timerBounds is what a batch knows of the timers of one stage. Lanes touch their own groups only.
type timerBounds struct {
	base  times // of the state before the batch
	after times // of the same without what the batch has fired
	set   times // of the timers that the batch sets
}

func newTimerBounds(base *times) *timerBounds {
	return &timerBounds{base: *base, after: *base, set: *allTimes(never)}
}

func (b *timerBounds) reset(from, to int) {
	for g := from; g < to; g++ {
		b.after[g], b.set[g] = b.base[g], [domains]int64{never, never}
	}
}

// next is what holds when the batch is sealed.
func (b *timerBounds) next() *times {
	n := b.after
	for g := range n {
		for d := range n[g] {
			n[g][d] = min(n[g][d], b.set[g][d])
		}
	}
	return &n
}

// timerKey checks a timer and writes its key into the lane's scratch.
func (l *Lane) timerKey(t *Timer) ([]byte, error) {
	if l.txn.closed.Load() {
		return nil, ErrClosed
	}
	if t.Domain >= domains {
		return nil, fmt.Errorf("timer of domain %d", t.Domain)
	}
	if err := l.check(t.Group, t.Key, t.Sub); err != nil {
		return nil, err
	}
	l.scratch = appendTimer(l.scratch[:0], l.txn.stages[l.stage].transform, t)
	return l.scratch, nil
}

// SetTimer sets a timer. It fires in a later batch: the first whose watermark (event) or time (processing) reaches AtMS.
func (l *Lane) SetTimer(t Timer) error {
	key, err := l.timerKey(&t)
	if err != nil {
		return err
	}
	l.put(key, nil, 0)
	b := &l.timers.set[t.Group][t.Domain]
	*b = min(*b, t.AtMS)
	return nil
}

// DeleteTimer removes a timer; one that is not set is none.
func (l *Lane) DeleteTimer(t Timer) error {
	key, err := l.timerKey(&t)
	if err != nil {
		return err
	}
	l.remove(l.touch(key))
	return nil
}

// limit is the time up to which timers of a domain are due; ok is false when none is. A watermark of 0 is none yet.
func limit(domain int, watermarkMS, timeMS int64) (at int64, ok bool) {
	if domain == DomainEvent {
		return watermarkMS, watermarkMS != 0
	}
	return timeMS, true
}

// dueTimer is a timer that was found: its time and its whole key.
type dueTimer struct {
	at     int64
	key    []byte
	parsed Timer
}

func compareDue(a, b dueTimer) int {
	return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.parsed.Key, b.parsed.Key), bytes.Compare(a.parsed.Sub, b.parsed.Sub))
}

// Due calls visit for the timers that are due in this batch: those that an earlier batch has set and this one has not
// deleted until now, in the order of domain, time, key and sub, at most so many. more says that others are left; they
// are due in the next batch. A timer has fired when visit is called; visit may write to the lane, which changes nothing
// about what is due. The timer is valid during the call.
func (l *Lane) Due(most int, visit func(t *Timer) error) (more bool, err error) {
	if l.txn.closed.Load() {
		return false, ErrClosed
	}
	var found [domains][]dueTimer
	for d := range domains {
		watermark := l.txn.info.WatermarkMS
		if l.held != nil {
			watermark = *l.held
		}
		at, ok := limit(d, watermark, l.txn.info.TimeMS)
		if !ok || !l.mayBeDue(d, at) {
			continue
		}
		f := finder{lane: l, domain: d, limit: at, most: most}
		list, rest, err := f.find()
		if err != nil {
			return false, err
		}
		found[d], more, most = list, more || rest, most-len(list)
	}
	for _, list := range found {
		for i := range list {
			l.remove(l.touch(list[i].key))
			if err := visit(&list[i].parsed); err != nil {
				return more, err
			}
		}
	}
	return more, nil
}

func (l *Lane) mayBeDue(domain int, limit int64) bool {
	for g := l.from; g < l.to; g++ {
		if l.timers.base[g][domain] <= limit {
			return true
		}
	}
	return false
}

// finder looks for the first due timers of one domain in a lane.
type finder struct {
	lane   *Lane
	domain int
	limit  int64
	most   int
	found  []dueTimer
	keys   arena
	rest   bool
	left   times // of those that were found and stay
}

// find returns the first f.most due timers, and whether there are more. It sets the bounds for what stays.
func (f *finder) find() (list []dueTimer, rest bool, err error) {
	l := f.lane
	s, err := l.long(0)
	if err != nil {
		return nil, false, err
	}
	base := merged{layers: s.layers[1:]}
	f.left = *allTimes(never)
	for g := l.from; g < l.to; g++ {
		if l.timers.base[g][f.domain] > f.limit {
			continue
		}
		if err := f.group(&base, uint8(g)); err != nil {
			return nil, false, err
		}
	}
	f.cut()
	for g := l.from; g < l.to; g++ {
		after := &l.timers.after[g][f.domain]
		*after = min(*after, f.left[g][f.domain])
	}
	return f.found, f.rest, nil
}

// group collects the due timers of one group. It begins at the bound: what has fired before lies below it, and a backend may
// have to walk over what is left of that for long.
func (f *finder) group(m *merged, group uint8) error {
	after := &f.lane.timers.after[group][f.domain]
	tid := f.lane.txn.stages[f.lane.stage].transform
	prefix := append(appendHead(make([]byte, 0, headLen+2), tid, group, timerTable), timerKeyLen, byte(f.domain))
	start := appendInstant(nil, tid, group, uint8(f.domain), f.lane.timers.base[group][f.domain])
	for m.seek(start, prefix); m.key() != nil; m.next() {
		if !m.top.live() {
			continue
		}
		at, err := f.take(m.key())
		if err != nil {
			return err
		}
		if at > f.limit {
			*after = at
			return nil
		}
	}
	*after = never
	return m.err()
}

// take notes a timer if it is due and still set.
func (f *finder) take(key []byte) (at int64, err error) {
	parts, err := parseKey(key)
	if err != nil {
		return 0, fmt.Errorf("read timers: %w", err)
	}
	t, err := parseTimer(parts)
	if err != nil {
		return 0, fmt.Errorf("read timers: %w", err)
	}
	if t.AtMS > f.limit || f.lane.gone(key) {
		return t.AtMS, nil
	}
	if len(f.found) >= 2*f.most+64 && t.AtMS > f.found[len(f.found)-1].at {
		f.cut()
		if t.AtMS > f.limit {
			return t.AtMS, nil
		}
	}
	kept := f.keys.copy(key)
	shift := len(key) - len(t.Key) - len(t.Sub)
	t.Key, t.Sub = kept[shift:shift+len(t.Key):shift+len(t.Key)], kept[shift+len(t.Key):]
	f.found = append(f.found, dueTimer{t.AtMS, kept, t})
	return t.AtMS, nil
}

// gone reports whether this batch has deleted a timer, even if it has set it again.
func (l *Lane) gone(key []byte) bool {
	if l.over == nil || l.over.count == 0 {
		return false
	}
	r := l.over.find(hashKey(key), key)
	return r != nil && r.flags&(recDeleted|recRemade) != 0
}

// cut sorts what was found, leaves the first f.most of it, and looks no further than the last of them.
func (f *finder) cut() {
	slices.SortFunc(f.found, compareDue)
	if len(f.found) <= f.most {
		return
	}
	for i := range f.found[f.most:] {
		t := &f.found[f.most+i]
		left := &f.left[t.parsed.Group][f.domain]
		*left = min(*left, t.at)
	}
	f.rest = true
	f.limit = min(f.limit, f.found[max(f.most-1, 0)].at)
	f.found = f.found[:f.most]
}
