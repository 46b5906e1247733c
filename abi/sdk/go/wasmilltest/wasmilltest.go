// Package wasmilltest runs a transform natively, against a stand-in for the host: ordinary tests of a transform need no
// WebAssembly. It is for tests only. It checks what comes out as little as a friendly host would, and limits nothing; a module
// is proven by running it on Wasmill.
package wasmilltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	wasmill "github.com/wasmill/wasmill/abi/sdk/go"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/mem"
	"github.com/wasmill/wasmill/abi/sdk/go/internal/scan"
)

// Header is a header of a record; a nil value is null.
type Header struct {
	Name  string
	Value []byte
}

// Input is a record for the transform. A nil key or value is null. An event time of 0 is none.
type Input struct {
	Key, Value []byte
	Headers    []Header
	EventTime  int64 // microseconds since 1970
	Offset     int64
	Partition  int32

	kind uint8 // of a timer
}

// Values are inputs with these values and nothing else.
func Values(values ...string) []Input {
	in := make([]Input, len(values))
	for i, v := range values {
		in[i].Value = []byte(v)
	}
	return in
}

// Output is a record that came out.
type Output struct {
	Port      wasmill.Port
	Key       []byte
	Value     []byte
	Headers   []Header
	EventTime int64 // microseconds since 1970, 0 for none
	Index     int64 // of the input it stems from, -1 for none
	Reject    *wasmill.Reject
}

// Host is a stand-in for the host. The zero value of each field is the usual.
type Host struct {
	Manifest string        // text of manifest.json; empty for a module without one
	Config   string        // a JSON object
	Chunk    int           // most records of a frame, 1,024 when 0
	Batch    wasmill.Batch // what the frames say; First, Last and Chunk are set by Run
	MaxFrame uint32        // 262,288 when 0
	State    State         // before the batch, and after Run what it left: a Host that runs again goes on from there
	Log      []string      // what the transform wrote, filled by Run
}

// Run hands the inputs to the transform as one lane of one batch, with the lane's last frame, and returns what came out. The
// error is what the host would report: a refused module, or a failed frame.
func Run(t wasmill.Transform, manifest string, in []Input) ([]Output, error) {
	h := Host{Manifest: manifest}
	return h.Run(t, in)
}

// one guards the package variables of the SDK: a process has one module.
var one sync.Mutex

// Run is like the function Run, with all that h says.
func (h *Host) Run(t wasmill.Transform, in []Input) ([]Output, error) {
	one.Lock()
	defer one.Unlock()
	pointers, err := fields(h.Manifest)
	if err != nil {
		return nil, err
	}
	var out []Output
	h.Log = nil
	mem.Reset()
	mem.Host.Log = func(_ uint32, text string) { h.Log = append(h.Log, text) }
	mem.Host.Emit = func(records, count, stride uint64) {
		for i := range count {
			out = append(out, read(records+i*stride))
		}
	}
	if err := h.State.begin(h.Manifest, h.Batch.Time); err != nil {
		return nil, err
	}
	mem.Guest.Use(t)
	if err := h.start(); err != nil {
		return nil, err
	}
	err = h.frames(in, pointers)
	return out, err
}

func (h *Host) start() error {
	config := h.Config
	if config == "" {
		config = "{}"
	}
	if h.MaxFrame == 0 {
		h.MaxFrame = 262288
	}
	n := uint32(len(config))
	at := mem.Guest.Alloc(n + 16)
	copy(mem.Bytes(uint64(at), uint64(n)), config)
	if mem.Guest.Init(at, n, h.MaxFrame) != 0 {
		return fmt.Errorf("wasmill_init: %s", strings.Join(h.Log, "; "))
	}
	return nil
}

func (h *Host) frames(in []Input, pointers []string) error {
	chunk := h.Chunk
	if chunk == 0 {
		chunk = 1024
	}
	h.Batch.Chunk, h.Batch.First, h.Batch.Last = 0, true, false
	for from := 0; from < len(in); from += chunk {
		if err := h.call(in[from:min(from+chunk, len(in))], from, pointers); err != nil {
			return err
		}
		h.Batch.Chunk++
		h.Batch.First = false
	}
	if err := h.timers(chunk); err != nil {
		return err
	}
	h.Batch.Last = true
	return h.call(nil, 0, nil)
}

// timers runs the frames of the timers that are due, those of event time first.
func (h *Host) timers(chunk int) error {
	due := h.State.due(&h.Batch)
	for len(due) > 0 {
		n := 0
		for n < min(chunk, len(due)) && due[n].Domain == due[0].Domain {
			n++
		}
		in := make([]Input, n)
		for i, t := range due[:n] {
			in[i] = Input{Key: t.Key, Value: t.Sub, EventTime: t.Time, kind: 1 + uint8(t.Domain)}
		}
		if err := h.call(in, 0, nil); err != nil {
			return err
		}
		h.Batch.Chunk++
		h.Batch.First = false
		due = due[n:]
	}
	return nil
}

// call writes one frame and runs it.
func (h *Host) call(in []Input, from int, pointers []string) error {
	stride := 56 + 8*len(pointers)
	size := 128 + stride*len(in)
	for i := range in {
		size += len(in[i].Key) + len(in[i].Value) + 16*len(in[i].Headers)
		for _, e := range in[i].Headers {
			size += len(e.Name) + len(e.Value)
		}
	}
	frame := uint64(mem.Guest.Alloc(uint32(size + 16)))
	if frame == 0 {
		return errors.New("wasmill_alloc: not enough memory")
	}
	clear(mem.Bytes(frame, uint64(size+16)))
	h.header(frame, uint64(size), uint64(len(in)), uint64(stride), uint64(len(pointers)))
	w := writer{entries: frame + 128 + uint64(stride*len(in))}
	w.data = w.entries
	for i := range in {
		w.data += 16 * uint64(len(in[i].Headers))
	}
	for i := range in {
		w.record(frame+128+uint64(i*stride), &in[i], uint64(from+i), pointers)
	}
	if status := mem.Guest.Batch(uint32(frame), uint32(size)); status != 0 {
		return fmt.Errorf("wasmill_batch: status %d: %s", status, mem.String(mem.U32(frame+100), mem.U32(frame+104)))
	}
	return nil
}

func (h *Host) header(frame, size, count, stride, nfields uint64) {
	flags := uint64(0)
	if h.Batch.First {
		flags |= 1
	}
	if h.Batch.Last {
		flags |= 2
	}
	mem.PutU64(frame, 0x31464d57|1<<32|flags<<48)
	mem.PutU64(frame+8, 128|size<<32)
	mem.PutU64(frame+16, count|(frame+128)<<32)
	mem.PutU64(frame+24, stride|nfields<<32)
	for i, v := range []uint64{h.Batch.ID, uint64(h.Batch.Time), uint64(h.Batch.LateWatermark), uint64(h.Batch.Watermark), h.Batch.Seed[0], h.Batch.Seed[1]} {
		mem.PutU64(frame+32+8*uint64(i), v)
	}
	mem.PutU64(frame+80, uint64(h.Batch.Lane)|uint64(h.Batch.Chunk)<<32)
	mem.PutU32(frame+96, 0xffffffff)
}

// writer lays out records: header entries and bytes, each in its own place.
type writer struct {
	entries, data uint64
}

func (w *writer) record(at uint64, in *Input, index uint64, pointers []string) {
	flags := uint64(0)
	if in.EventTime != 0 || in.kind != 0 {
		flags |= 1
	}
	if in.kind != 0 {
		index = 0xffffffff
	} else if !json.Valid(in.Value) {
		flags |= 2
	}
	mem.PutU64(at, uint64(in.EventTime))
	mem.PutU64(at+8, uint64(in.Offset))
	mem.PutU64(at+16, w.bytes(in.Key))
	mem.PutU64(at+32, w.entries|uint64(len(in.Headers))<<32|uint64(in.kind)<<48|flags<<56)
	for _, e := range in.Headers {
		mem.PutU64(w.entries, w.bytes([]byte(e.Name)))
		mem.PutU64(w.entries+8, w.bytes(e.Value))
		w.entries += 16
	}
	value := w.bytes(in.Value)
	mem.PutU64(at+24, value)
	mem.PutU32(at+40, uint64(uint32(in.Partition)))
	mem.PutU64(at+48, index)
	if flags&2 != 0 || in.kind != 0 {
		return
	}
	for i, p := range pointers {
		mem.PutU64(at+56+8*uint64(i), uint64(locate(scan.Whole(value&0xffffffff, value>>32), p)))
	}
}

// bytes copies b into the frame and returns its address and length; null for nil.
func (w *writer) bytes(b []byte) uint64 {
	if b == nil {
		return 0xffffffff << 32
	}
	at := w.data
	w.data += uint64(copy(mem.Bytes(at, uint64(len(b))), b))
	return at | uint64(len(b))<<32
}

// locate finds what a JSON pointer (RFC 6901) leads to.
func locate(v scan.Span, pointer string) scan.Span {
	if pointer == "" {
		return v
	}
	for token := range strings.SplitSeq(pointer[1:], "/") {
		v = child(v, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
	}
	return v
}

func child(v scan.Span, token string) scan.Span {
	var found scan.Span
	w := scan.Begin(v, scan.Object)
	for name, value, ok := w.Member(); ok; name, value, ok = w.Member() {
		if scan.Is(name, token) {
			found = value
		}
	}
	w = scan.Begin(v, scan.Array)
	for i := 0; ; i++ {
		e, ok := w.Element()
		if !ok {
			return found
		}
		if strconv.Itoa(i) == token {
			return e
		}
	}
}

// fields are the pointers that the first input of a manifest declares.
func fields(manifest string) ([]string, error) {
	var m struct {
		Inputs []struct {
			Fields []string `json:"fields"`
		} `json:"inputs"`
	}
	if manifest == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(manifest), &m); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if len(m.Inputs) == 0 {
		return nil, nil
	}
	return m.Inputs[0].Fields, nil
}

// read copies an output record out of memory.
func read(at uint64) Output {
	heads, place, index := mem.U64(at+32), mem.U64(at+40), mem.U32(at+48)
	o := Output{Port: wasmill.Port(place >> 32), Key: take(at + 16), Value: take(at + 24), Index: int64(index)}
	if index == 0xffffffff {
		o.Index = -1
	}
	if heads>>56&1 != 0 {
		o.EventTime = int64(mem.U64(at))
	}
	if kind := heads >> 48 & 0xff; kind != 0 {
		o.Reject = &wasmill.Reject{Code: uint16(place), Reason: string(o.Value), Poison: kind == 17}
		o.Value = nil
		return o
	}
	for i := range heads >> 32 & 0xffff {
		e := heads&0xffffffff + 16*i
		o.Headers = append(o.Headers, Header{string(take(e)), take(e + 8)})
	}
	return o
}

func take(at uint64) []byte {
	n := int32(mem.U32(at + 4))
	if n < 0 {
		return nil
	}
	return append([]byte{}, mem.Bytes(mem.U32(at), uint64(n))...)
}
