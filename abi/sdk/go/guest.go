package wasmill

import (
	"unsafe"

	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// guest is the module: its transform, and all that it works with.
type guest struct {
	transform Transform
	pointers  []string // of declared fields, for error texts
	input     mem.Arena
	text      mem.Arena
	rec       Record
	out       Out
}

// module is the one guest of this module.
var module guest

// name remembers what a field is called.
func (g *guest) name(f Field, pointer string) {
	for len(g.pointers) <= int(f) {
		g.pointers = append(g.pointers, "")
	}
	g.pointers[f] = pointer
}

func (g *guest) nameOf(f Field) string {
	if int(f) < len(g.pointers) {
		return g.pointers[f]
	}
	return "the value"
}

// alloc is wasmill_alloc: where the host may write n bytes, or 0.
func (g *guest) alloc(n uint32) uint32 {
	if !g.input.Hold(n) {
		return 0
	}
	return g.input.Base
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
		if err := g.transform.Init(Value{scan.Whole(config, n)}); err != nil {
			Log(Error, err.Error())
			return 1
		}
	}
	if !g.text.Hold(maxText) || !g.out.make(maxFrame) || !g.input.Hold(maxFrame+mem.Align) {
		Log(Error, "wasmill: not enough memory for the arenas")
		return 1
	}
	return 0
}

// batch is wasmill_batch: it runs one frame. Nonzero fails it; the reason is in the frame's error text.
func (g *guest) batch(frame uint32) (status int32) {
	defer func() {
		if r := recover(); r != nil {
			status = g.explain(frame, describe(r))
		}
	}()
	if mem.U32(frame) != frameMagic || mem.U16(frame+4) != frameVersion {
		return 1
	}
	g.out.batch = readBatch(frame)
	g.out.rec = &g.rec
	if err := g.records(frame); err != nil {
		return g.explain(frame, err.Error())
	}
	if g.out.batch.Last && g.transform.Finish != nil {
		g.rec = Record{}
		if err := g.transform.Finish(&g.out); err != nil {
			return g.explain(frame, err.Error())
		}
	}
	g.out.flush()
	return 0
}

// records hands the frame's records to the transform and refuses those that it refuses. The error is a timer's, which
// cannot be set aside.
func (g *guest) records(frame uint32) error {
	handle, rec, out := g.transform.Record, &g.rec, &g.out
	at, stride := mem.U32(frame+frameRecords), mem.U32(frame+frameStride)
	rec.fields = mem.U32(frame + frameFields)
	for range mem.U32(frame + frameCount) {
		mem.PutU32(frame+frameProgress, mem.U32(at+recordIndex))
		rec.at = at
		err := handle(rec, out)
		if err != nil || rec.err != nil {
			if err = out.refuse(rec, err); err != nil {
				return err
			}
		}
		at += stride
	}
	return nil
}

// explain leaves an error text in the frame and is the status to return.
func (g *guest) explain(frame uint32, text string) int32 {
	n := copy(mem.Bytes(g.text.Base, maxText), text)
	mem.PutU32(frame+frameError, g.text.Base)
	mem.PutU32(frame+frameError+4, uint32(n))
	return 1
}

func readBatch(frame uint32) Batch {
	flags := mem.U16(frame + 6)
	return Batch{
		ID:            mem.U64(frame + frameBatch),
		Time:          int64(mem.U64(frame + frameBatch + 8)),
		LateWatermark: int64(mem.U64(frame + frameBatch + 16)),
		Watermark:     int64(mem.U64(frame + frameBatch + 24)),
		Seed:          [2]uint64{mem.U64(frame + frameSeed), mem.U64(frame + frameSeed + 8)},
		Lane:          mem.U32(frame + frameLane),
		Chunk:         mem.U32(frame + frameLane + 4),
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
