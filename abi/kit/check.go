package kit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/abi/statemap"
)

// Host is what a kit case is tried on.
type Host interface {
	// Start checks c.Wasm, compiles it and runs its start-up with c.Config and c.Limits, passing on what it logs. A module
	// that is not taken is a *Refusal.
	Start(c *Case, log func(Log)) (Program, error)
}

// Program is a module that has started.
type Program interface {
	Manifest() *abi.Manifest
	// Lane makes a fresh instance for one lane of one batch.
	Lane(o LaneOptions) (Lane, error)
	Close() error
}

// LaneOptions are what an instance sees besides its frames.
type LaneOptions struct {
	Seed      [2]uint64
	BatchTime int64 // microseconds
	// State is nil in a stage without keys. Otherwise the instance is lane Index of Lanes, and State answers what its host
	// has checked.
	State        State
	Index, Lanes int
}

// State is the state of a lane behind a host: the kit's own, in memory.
type State interface {
	abi.StateReader
	// Write carries out an operation of state_write. entries is how many a delete-prefix removed.
	Write(op *abi.StateOp) (entries int, err error)
}

// Lane is one instance.
type Lane interface {
	// Call hands over one frame. emit takes each emitted record while its bytes are valid; its error, a *abi.Violation, stops
	// the guest. A trap or a status is a *Outcome; any other error is a failure of the call that is not the guest's code's.
	Call(h abi.FrameHeader, recs []abi.Record, nfields int, emit func(*abi.Record) error) error
	Close() error
}

// Refusal is why a host did not take a module: At and Word as in Refuse, Trap with the word "trap".
type Refusal struct {
	At, Word string
	Trap     abi.TrapName
	Message  string // what a user would read
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("refused at %s, %s %s: %s", r.At, r.Word, r.Trap, r.Message)
}

// Outcome is how a call failed by the guest's doing. At most one of Trap and Status is set.
type Outcome struct {
	Trap     abi.TrapName
	Status   int32
	Text     string
	Progress uint32 // abi.NoIndex when unset
}

func (o *Outcome) Error() string {
	return fmt.Sprintf("trap %q, status %d, text %q, progress %d", o.Trap, o.Status, o.Text, o.Progress)
}

// Check runs the case on the host and reports all that differs from what the kit expects, nil when nothing does. A host
// that does not read a word or a message from its refusals may leave Word or Message empty: they are then not compared.
func (c *Case) Check(h Host) error {
	var logs []Log
	program, err := h.Start(c, func(l Log) { logs = append(logs, l) })
	if c.Refuse != nil {
		if err == nil {
			return errors.Join(errors.New("the module was taken"), program.Close())
		}
		return errors.Join(c.Refuse.check(err), sameLogs(logs, c.Logs))
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	errs := []error{sameLogs(logs, c.Logs)}
	var state *statemap.Map
	for i := range c.Runs {
		r := &c.Runs[i]
		logs = nil
		state = r.state(state)
		err := errors.Join(r.check(program, state), sameLogs(logs, r.Expect.Logs))
		if err != nil {
			errs = append(errs, fmt.Errorf("run %d %s: %w", i, r.Name, err))
		}
	}
	return errors.Join(append(errs, program.Close())...)
}

func (r *Refuse) check(err error) error {
	var got *Refusal
	if !errors.As(err, &got) {
		return fmt.Errorf("no refusal but: %w", err)
	}
	if r.At != "" && got.At != r.At || got.Word != "" && got.Word != r.Word || got.Trap != r.Trap {
		return fmt.Errorf("want a refusal at %s, %s %s; got: %w", r.At, r.Word, r.Trap, err)
	}
	for _, m := range r.Mentions {
		if got.Message != "" && !strings.Contains(got.Message, m) {
			return fmt.Errorf("the message does not name %q: %w", m, err)
		}
	}
	return nil
}

// lane is the state of one run: what was handed over, and what came back.
type lane struct {
	inputs map[uint32]*abi.Record
	judged map[uint32]bool
	out    []abi.Record
}

func (r *Run) check(p Program, state *statemap.Map) error {
	o := LaneOptions{Seed: r.Header.Seed, BatchTime: r.Header.BatchTime}
	if r.Keyed != nil {
		o.State, o.Index, o.Lanes = state, r.Keyed.Lane, r.Keyed.lanes()
	}
	in, err := p.Lane(o)
	if err != nil {
		return fmt.Errorf("make an instance: %w", err)
	}
	l := &lane{inputs: map[uint32]*abi.Record{}, judged: map[uint32]bool{}}
	err = l.run(r, state, in, p.Manifest())
	if err == nil && !r.Expect.Failing() {
		err = errors.Join(l.compare(r.Expect.Records), r.Expect.State.compare(state))
	}
	return errors.Join(err, in.Close())
}

func (l *lane) run(r *Run, state *statemap.Map, in Lane, m *abi.Manifest) error {
	h := r.Header
	next := uint32(0)
	frames := slices.Clone(r.Frames)
	for i := 0; i < len(frames); i++ {
		f := frames[i]
		if f.Due {
			frames = slices.Replace(frames, i, i+1, dueFrames(state)...)
			i--
			continue
		}
		recs, nfields, err := f.input(m, &next)
		if err != nil {
			return err
		}
		for j := range recs {
			if recs[j].Index != abi.NoIndex {
				l.inputs[recs[j].Index] = &recs[j]
			}
		}
		h.Chunk, h.Flags, h.Fuel = uint32(i), 0, abi.DefaultFuelCall+abi.DefaultFuelChunk*uint64(len(recs))
		if i == 0 {
			h.Flags |= abi.FlagFirst
		}
		if f.Last {
			h.Flags |= abi.FlagLast
			h.Fuel = abi.DefaultFuelCall + abi.DefaultFuelChunk*abi.MaxChunkRecords
		}
		err = in.Call(h, recs, nfields, l.emit)
		if r.Expect.Failing() && i == r.Expect.Frame {
			return r.Expect.failure(err)
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", i, err)
		}
	}
	return nil
}

// emit keeps the record and checks its index as the engine of a host must.
func (l *lane) emit(r *abi.Record) error {
	if r.Index != abi.NoIndex && l.inputs[r.Index] == nil {
		return abi.BadIndex(r.Index)
	}
	if r.Kind != abi.KindRecord {
		if l.judged[r.Index] {
			return abi.BadIndex(r.Index)
		}
		l.judged[r.Index] = true
	}
	c := *r
	c.Key, c.Value, c.Headers = bytes.Clone(r.Key), bytes.Clone(r.Value), slices.Clone(r.Headers)
	for i, h := range c.Headers {
		c.Headers[i] = abi.Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)}
	}
	l.out = append(l.out, c)
	return nil
}

// failure compares how a call failed.
func (e *Expect) failure(err error) error {
	if err == nil {
		return fmt.Errorf("the call did not fail; want trap %q, status %d", e.Trap, e.Status)
	}
	var got *Outcome
	if !errors.As(err, &got) {
		if e.Fails {
			return nil
		}
		return fmt.Errorf("want trap %q, status %d; got: %w", e.Trap, e.Status, err)
	}
	progress := uint32(abi.NoIndex)
	if e.Progress != nil {
		progress = *e.Progress
	}
	if e.Fails || got.Trap != e.Trap || got.Status != e.Status || got.Progress != progress {
		return fmt.Errorf("want trap %q, status %d, progress %d, no trap or status %v; got: %w",
			e.Trap, e.Status, progress, e.Fails, err)
	}
	if e.Status != 0 && got.Text != string(e.Text) {
		return fmt.Errorf("want the text %q; got: %w", e.Text, err)
	}
	return nil
}

// input makes the records of a frame as a host would, with the located fields that the manifest asks for. next is the
// lane's next index.
func (f *Frame) input(m *abi.Manifest, next *uint32) (recs []abi.Record, nfields int, err error) {
	var locator *abi.Locator
	timers := len(f.Records) > 0 && f.Records[0].Kind != abi.KindRecord
	if len(f.Records) > 0 && !timers && len(m.Inputs) > 0 {
		nfields = len(m.Inputs[0].Fields)
		if locator, err = abi.NewLocator(m.Inputs[0].Fields); err != nil {
			return nil, 0, err
		}
	}
	for _, r := range f.Records {
		rec := r.record()
		rec.Index = *next
		if r.Index != nil {
			rec.Index = *r.Index
		}
		if !timers {
			*next = rec.Index + 1
		}
		rec.Offset = int64(rec.Index)
		if r.Offset != nil {
			rec.Offset = *r.Offset
		}
		if nfields > 0 {
			rec.Fields = make([]abi.Field, nfields)
			if !locator.Locate(rec.Value, rec.Fields) {
				rec.Flags |= abi.FlagNotJSON
			}
		}
		recs = append(recs, rec)
	}
	return recs, nfields, nil
}

// record is r with what needs no context.
func (r *Record) record() abi.Record {
	rec := abi.Record{Partition: r.Partition, Port: r.Port, Input: r.Input, Kind: r.Kind, Index: abi.NoIndex}
	rec.Key, rec.Value = r.Key.null(), r.Value.null()
	if r.EventTime != nil {
		rec.EventTime, rec.Flags = *r.EventTime, abi.FlagEventTime
	}
	for _, h := range r.Headers {
		rec.Headers = append(rec.Headers, abi.Header{Name: h.Name, Value: h.Value.null()})
	}
	return rec
}

// null is nil for a null and never nil otherwise.
func (b *Bytes) null() []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, *b...)
}

// compare compares the records that came back with those of the kit.
func (l *lane) compare(want []Record) error {
	for i := range min(len(want), len(l.out)) {
		w, g := l.want(&want[i]), show(&l.out[i])
		if w != g {
			return fmt.Errorf("record %d:\n got %s\nwant %s", i, g, w)
		}
	}
	if len(want) != len(l.out) {
		return fmt.Errorf("%d records, want %d", len(l.out), len(want))
	}
	return nil
}

func (l *lane) want(r *Record) string {
	if r.SameAs == nil {
		rec := r.record()
		rec.Partition = r.Code
		if r.Index != nil {
			rec.Index = *r.Index
		}
		return show(&rec)
	}
	rec := *l.inputs[*r.SameAs]
	rec.Port, rec.Partition, rec.Flags = r.Port, 0, rec.Flags&abi.FlagEventTime
	return show(&rec)
}

// show is all of an output record that counts, as text.
func show(r *abi.Record) string {
	bytesOf := func(b []byte) string {
		if b == nil {
			return "null"
		}
		if len(b) > 400 {
			return fmt.Sprintf("%q... %d bytes, sha256 %x", b[:40], len(b), sha256.Sum256(b))
		}
		return fmt.Sprintf("%q", b)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "kind %d port %d code %d index %d key %s value %s", r.Kind, r.Port, r.Partition, int32(r.Index),
		bytesOf(r.Key), bytesOf(r.Value))
	if r.Flags&abi.FlagEventTime != 0 {
		fmt.Fprintf(&b, " event time %d", r.EventTime)
	}
	for _, h := range r.Headers {
		fmt.Fprintf(&b, " header %q %s", h.Name, bytesOf(h.Value))
	}
	return b.String()
}

func sameLogs(got, want []Log) error {
	if want == nil || slices.EqualFunc(got, want, func(a, b Log) bool {
		return a.Level == b.Level && bytes.Equal(a.Text, b.Text)
	}) {
		return nil
	}
	return fmt.Errorf("logged %s, want %s", got, want)
}
