package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// guest is the module: its transform, and all that it works with.
type guest struct {
	rec       Record
	out       Out
	transform Transform
	pointers  []string // of declared fields, for error texts
	declared  []uint64 // how many fields each input has, of a module that knows its manifest
	mark      string   // keeps the mark in the module
	input     mem.Arena
	text      mem.Arena
	absent    mem.Arena // fields that are all absent, for records that have none
	state     stateHooks
}

// stateHooks are how the rest of the SDK reaches state. They are not set in a module that has none, so that its linker
// leaves all of it out.
type stateHooks struct {
	start  func() bool
	before func(frame uint64)
	after  func(last bool)
}

// module is the one guest of this module. Functions on the hot path use it instead of their receivers: at an address that
// is known, no access needs a nil check.
var module guest

// maxFields is how many fields an input may declare.
const maxFields = 64

// name remembers what a field is called.
func (g *guest) name(f Field, pointer string) {
	for len(g.pointers) <= int(f/fieldSize) {
		g.pointers = append(g.pointers, "")
	}
	g.pointers[f/fieldSize] = pointer
}

func (g *guest) nameOf(f Field) string {
	if int(f/fieldSize) < len(g.pointers) {
		return g.pointers[f/fieldSize]
	}
	return "the value"
}

// alloc is wasmill_alloc: where the host may write n bytes, or 0.
func (g *guest) alloc(n uint32) uint32 {
	if !g.input.Hold(uint64(n)) {
		return 0
	}
	return uint32(g.input.Base)
}

// init is wasmill_init: it prepares the transform and makes the arenas. Nonzero refuses the module; the reason is in the
// log.
func (g *guest) init(config, n, maxFrame uint32) (status int32) {
	defer func() {
		if r := recover(); r != nil {
			Log(Error, describe(r))
			status = 1
		}
	}()
	if g.transform.Record == nil {
		Log(Error, "wasmill: no transform is registered")
		return 1
	}
	if g.transform.Init != nil {
		if err := g.transform.Init(Value{scan.Whole(uint64(config), uint64(n))}); err != nil {
			Log(Error, err.Error())
			return 1
		}
	}
	if !g.text.Hold(maxText) || !g.absent.Hold(maxFields*fieldSize) || !g.out.make(uint64(maxFrame)) ||
		!g.input.Hold(uint64(maxFrame)+mem.Align) || g.state.start != nil && !g.state.start() {
		Log(Error, "wasmill: not enough memory for the arenas")
		return 1
	}
	return 0
}

// batch is wasmill_batch: it runs one frame. Nonzero fails it; the reason is in the frame's error text.
func (g *guest) batch(frame uint64) (status int32) {
	defer func() {
		if r := recover(); r != nil {
			status = g.explain(frame, describe(r))
		}
	}()
	if mem.U32(frame) != frameMagic || mem.U16(frame+4) != frameVersion {
		return g.explain(frame, "wasmill: not a frame of ABI 1")
	}
	if text := g.misfit(frame); text != "" {
		return g.explain(frame, text)
	}
	g.out.batch = readBatch(frame)
	if g.state.before != nil {
		g.state.before(frame)
	}
	if err := g.records(frame); err != nil {
		return g.explain(frame, err.Error())
	}
	if g.out.batch.Last && g.transform.Finish != nil {
		if err := g.transform.Finish(&g.out); err != nil {
			return g.explain(frame, err.Error())
		}
	}
	if g.state.after != nil {
		g.state.after(g.out.batch.Last)
	}
	g.out.flush()
	return 0
}

// misfit says that the host has located other fields than the manifest declares that the module was built with: it reads
// another manifest. It is empty when they are the same, and for timers, which have no fields.
func (g *guest) misfit(frame uint64) string {
	first, located := mem.U32(frame+frameRecords), mem.U32(frame+frameFields)
	if mem.U32(frame+frameCount) == 0 || mem.U8(first+recordHeaders+6) != 0 {
		return ""
	}
	input := mem.U16(first + recordPlace + 6)
	if len(g.declared) == 1 {
		input = 0 // an only input takes what comes by any way
	}
	if input >= uint64(len(g.declared)) || g.declared[input] == located {
		return ""
	}
	return "wasmill: the host locates " + digits(located) + " fields a record, the module was built with a manifest of " +
		digits(g.declared[input]) + ": put that manifest beside it, as <module>.wasm.json"
}

// digits is a number below a thousand in decimal.
func digits(n uint64) string {
	text := string([]byte{byte('0' + n/100%10), byte('0' + n/10%10), byte('0' + n%10)})
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	return text
}

// records hands the frame's records to the transform and refuses those that it refuses. The error is a timer's, which
// cannot be set aside.
func (g *guest) records(frame uint64) error {
	at, stride := mem.U32(frame+frameRecords), mem.U32(frame+frameStride)
	fields, step := g.fieldsOf(frame)
	count := mem.U32(frame + frameCount)
	handle := g.transform.Record
	if g.transform.Timer != nil && count > 0 && mem.U8(at+recordHeaders+6) != 0 {
		handle = g.transform.Timer
	}
	for range count {
		mem.PutU32(frame+frameProgress, mem.U32(at+recordIndex))
		module.rec.at, module.rec.fields = at, fields
		err := handle(&module.rec, &module.out)
		if err != nil || module.rec.bad != 0 {
			if err = g.refuse(err); err != nil {
				return err
			}
		}
		at, fields = at+stride, fields+step
	}
	return nil
}

// fieldsOf is where the fields of a frame's first record lie, and how far it is to those of the next. Whatever lies behind
// the declared fields is absent too: a record that has fewer is read as if it had none.
func (g *guest) fieldsOf(frame uint64) (first, step uint64) {
	if mem.U32(frame+frameFields) < uint64(len(g.pointers)) {
		return g.absent.Base, 0
	}
	return mem.U32(frame+frameRecords) + recordSize, mem.U32(frame + frameStride)
}

// refuse sets aside the record that the transform is done with, and forgets its error. A timer's comes back.
func (g *guest) refuse(err error) error {
	if bad := g.rec.Err(); bad != nil {
		err = bad
	}
	g.rec.bad = 0
	if g.rec.Index() < 0 {
		return err
	}
	g.out.Reject(&g.rec, err)
	return nil
}

// explain leaves an error text in the frame and is the status to return.
func (g *guest) explain(frame uint64, text string) int32 {
	n := copy(mem.Bytes(g.text.Base, maxText), text)
	mem.PutU32(frame+frameError, g.text.Base)
	mem.PutU32(frame+frameError+4, uint64(n))
	return 1
}

func readBatch(frame uint64) Batch {
	flags := mem.U16(frame + 6)
	return Batch{
		ID:            mem.U64(frame + frameBatch),
		Time:          int64(mem.U64(frame + frameBatch + 8)),
		LateWatermark: int64(mem.U64(frame + frameBatch + 16)),
		Watermark:     int64(mem.U64(frame + frameBatch + 24)),
		Seed:          [2]uint64{mem.U64(frame + frameSeed), mem.U64(frame + frameSeed + 8)},
		Lane:          uint32(mem.U32(frame + frameLane)),
		Chunk:         uint32(mem.U32(frame + frameLane + 4)),
		First:         flags&flagFirst != 0,
		Last:          flags&flagLast != 0,
	}
}

// describe is a panic in words.
func describe(r any) string {
	switch v := r.(type) {
	case error:
		return "panic: " + v.Error()
	case string:
		return "panic: " + v
	}
	return "panic"
}

// bytesOf is a string's bytes, not copied and not to be written.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
