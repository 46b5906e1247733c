package engine

import (
	"fmt"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/sandbox"
)

// failRecord is a guest's word that it cannot process a record (kind 17). It travels through the sandbox as the error
// that stops the guest.
type failRecord struct {
	index  uint32
	code   int32
	reason string
}

func (f *failRecord) Error() string { return fmt.Sprintf("fail code %d: %s", f.code, f.reason) }

// emit takes one emitted record and sends it where its port leads.
func (a *attempt) emit(r *abi.Record) error {
	if a.l.emitting != a {
		a.l.emitting, a.l.output = a, 0
	}
	a.l.output += int64(r.Size(0))
	if r.Index != abi.NoIndex && !a.wasHanded(r.Index) {
		return trapEmit("record index %d was not handed to this lane", r.Index)
	}
	if t := a.l.r.trace; t != nil && a.upTo == noProbe {
		t.add(a.s.index, a.l.index, r)
	}
	switch r.Kind {
	case abi.KindRecord:
		return a.route(r)
	case abi.KindFail, abi.KindDeadLetter:
	default:
		return trapEmit("kind %d", r.Kind)
	}
	if r.Index == abi.NoIndex {
		return trapEmit("kind %d without a record index", r.Kind)
	}
	if a.disposed[r.Index] {
		return trapEmit("record index %d was disposed of before", r.Index)
	}
	if r.Kind == abi.KindFail {
		return &failRecord{index: r.Index, code: r.Partition, reason: string(r.Value)}
	}
	return a.guestLetter(r)
}

func trapEmit(format string, args ...any) error {
	return &sandbox.Failure{Trap: abi.TrapEmit, Text: fmt.Sprintf(format, args...), Progress: abi.NoIndex}
}

func (a *attempt) wasHanded(index uint32) bool {
	if index >= a.handed {
		return false
	}
	_, out := a.s.excluded[index]
	return !out
}

// route gives a record to everyone who reads its port. A probe's output goes nowhere.
func (a *attempt) route(r *abi.Record) error {
	if a.upTo != noProbe {
		return nil
	}
	a.emitted++
	p := &a.s.ports[r.Port]
	p.emitted++
	if p.keep {
		p.kept.add(r)
		if err := a.l.holds(r); err != nil {
			return err
		}
	}
	for _, x := range p.sends {
		ok, err := a.l.send(x, "", r)
		if err != nil {
			return err
		}
		if ok {
			continue
		}
		lt := x.keyless()
		lt.origin = origin{edge: x.edge, offset: x.count - 1, partition: int32(a.l.index)} // as the stage would have read it
		if err := a.letter(lt, r); err != nil {
			return err
		}
	}
	for _, s := range p.direct {
		misfit, err := a.l.append(s, r)
		if err != nil {
			return err
		}
		if misfit == nil {
			continue
		}
		if err := a.letter(misfitLetter(s, misfit, a.originOf(r.Index)), r); err != nil {
			return err
		}
	}
	return nil
}

// guestLetter sets an input record aside because the guest says so. Its record may have gone with an earlier chunk; it is
// then fetched by reading the lane once more at the end.
func (a *attempt) guestLetter(r *abi.Record) error {
	if a.disposed == nil {
		a.disposed = map[uint32]bool{}
	}
	a.disposed[r.Index] = true
	if a.upTo != noProbe {
		return nil
	}
	lt := letter{
		code: r.Partition, word: "guest", reason: string(r.Value), stage: a.s.node.Name, module: a.s.node.Module,
		origin: a.originOf(r.Index),
	}
	in, _ := a.s.chunk.find(r.Index)
	if in == nil {
		if a.missing == nil {
			a.missing = map[uint32]int{}
		}
		a.missing[r.Index] = len(a.s.letters.list)
		in = &abi.Record{}
	}
	return a.letter(lt, in)
}

// letter sets a record aside in the stage's own list.
func (a *attempt) letter(lt letter, r *abi.Record) error {
	if a.upTo != noProbe {
		return nil
	}
	return a.l.setAside(&a.s.letters, lt, r)
}

// fetchMissing reads the lane's input again for the dead letters whose records had gone.
func (a *attempt) fetchMissing() error {
	if a.l.r.policy.Policy != DeadLetter {
		return nil
	}
	var next uint32
	return a.l.feedStage(a.ctx, a.b, a.s, func(entry int, split string, r *abi.Record) error {
		index := next
		next++
		at, ok := a.missing[index]
		if !ok {
			return nil
		}
		a.s.letters.fill(at, a.origin(entry, split, r), r)
		return nil
	})
}

// origin says where a record of an entry was read.
func (a *attempt) origin(entry int, split string, r *abi.Record) origin {
	return origin{edge: a.s.node.Inputs[entry], split: split, offset: r.Offset, partition: r.Partition}
}

// originOf says where the input with that number was read, as far as it is still at hand. What a timer has put out comes of
// no input.
func (a *attempt) originOf(index uint32) origin {
	in, split := a.s.chunk.find(index)
	if in == nil || in.Kind != abi.KindRecord {
		return origin{edge: Edge{Source: -1, Stage: a.s.index}, offset: -1, partition: -1}
	}
	return a.origin(int(in.Input), split, in)
}
