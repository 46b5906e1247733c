package hostile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/wasmill/wasmill/abi"
	"github.com/wasmill/wasmill/host/fault"
	"github.com/wasmill/wasmill/host/sandbox"
)

// attack is one case: some modules, what becomes of each, and what all of that may cost a process.
type attack struct {
	id, name string
	each     variants
	cpu      float64 // seconds
	slow     float64 // seconds on the interpreter, where that is more
	rss      int     // MiB, the most a process ever has
	onEach   bool    // on the interpreter as well, with the same outcome
	long     bool    // not with -short
}

// variant is one module and what becomes of it.
type variant struct {
	name    string
	wasm    []byte
	sidecar string
	limits  sandbox.Limits
	records []abi.Record         // nil: three small ones
	lanes   int                  // instances, one after the other; 0 is one
	calls   int                  // of each instance; 0 is one
	state   func() sandbox.State // of a lane, nil in a stage without keys
	apart   bool                 // compiled in a process of its own, with small limits
	own     func(ctx context.Context, e sandbox.Engine, v *variant) outcome
	want    want
}

// Steps at which an outcome can be reached.
const (
	atCompile = "compile"
	atStart   = "start"
	atCall    = "call"
	atEnd     = "end" // nothing went wrong
)

// want is a verdict. Zero fields are not looked at, but for trap and status.
type want struct {
	at     string // "": atEnd
	code   string // of a fault; several stand apart by "|"
	trap   abi.TrapName
	status int32
	says   []string
	stack  string // a function in the stack of a trap
}

// Verdicts that many cases share.
func refused(code string, says ...string) want { return want{at: atCompile, code: code, says: says} }

func notStarted(trap abi.TrapName, says ...string) want {
	return want{at: atStart, code: sandbox.CodeStart, trap: trap, says: says}
}

func trapped(trap abi.TrapName, says ...string) want { return want{at: atCall, trap: trap, says: says} }

func answered(status int32) want { return want{at: atCall, status: status} }

// outcome is what became of a variant, as far as engines must agree on it.
type outcome struct {
	Name    string
	At      string
	Code    string
	Trap    abi.TrapName
	Status  int32
	Error   string
	Stack   []string
	Emitted string // digest of all emitted records
	Logged  string // digest of all log lines
	Image   string
	Usage   sandbox.Usage
}

// variants makes the modules of an attack.
type variants func(yield func(variant) bool)

// one makes those of an attack that has one.
func one(make func() []byte, w want) variants {
	return func(yield func(variant) bool) { yield(variant{wasm: make(), want: w}) }
}

// fuelled gives each of them so much fuel for a call.
func (vs variants) fuelled(fuel uint64) variants {
	return func(yield func(variant) bool) {
		for v := range vs {
			v.limits.FuelCall = fuel
			if !yield(v) {
				return
			}
		}
	}
}

// some makes them out of a list.
func some(make func() []variant) variants {
	return func(yield func(variant) bool) {
		for _, v := range make() {
			if !yield(v) {
				return
			}
		}
	}
}

// threeRecords are what a call gets that asks for nothing else.
func threeRecords() []abi.Record {
	recs := make([]abi.Record, 3)
	for i := range recs {
		recs[i] = abi.Record{Value: fmt.Appendf(nil, "r%d", i), Index: uint32(i)}
	}
	return recs
}

// run takes a module as far as it gets.
func (v *variant) run(ctx context.Context, e sandbox.Engine) outcome {
	if v.own != nil {
		return v.own(ctx, e, v)
	}
	o := outcome{}
	var sidecar []byte
	if v.sidecar != "" {
		sidecar = []byte(v.sidecar)
	}
	m, err := e.Compile(ctx, sandbox.Binary{Name: "hostile.wasm", Wasm: v.wasm, Sidecar: sidecar})
	if err != nil {
		return o.failed(atCompile, err)
	}
	defer m.Close(ctx)
	heard := sha256.New()
	options := sandbox.Options{Transform: "hostile", Limits: v.limits, Log: func(level int, text string) { fmt.Fprintf(heard, "%d %s\n", level, text) }}
	p, err := m.Start(ctx, options)
	if err != nil {
		return o.failed(atStart, err)
	}
	defer p.Close(ctx)
	o.Image = p.Image()
	emitted := sha256.New()
	for range max(v.lanes, 1) {
		if err := v.lane(ctx, p, emitted, &o); err != nil {
			o = o.failed(atCall, err)
			break
		}
	}
	if o.At == "" {
		o.At = atEnd
	}
	o.Emitted, o.Logged = hex.EncodeToString(emitted.Sum(nil)), hex.EncodeToString(heard.Sum(nil))
	return o
}

// lane runs one instance.
func (v *variant) lane(ctx context.Context, p sandbox.Program, emitted io.Writer, o *outcome) error {
	l := sandbox.Lane{Seed: [2]uint64{1, 2}, Time: 1_700_000_000_000_000, Lanes: 1}
	if v.state != nil {
		l.State = v.state()
	}
	in, err := p.New(ctx, l)
	if err != nil {
		return err
	}
	records := v.records
	if records == nil {
		records = threeRecords()
	}
	for range max(v.calls, 1) {
		err = in.Call(ctx, sandbox.Call{Records: records}, func(r *abi.Record) error {
			fmt.Fprintf(emitted, "%d %d %d %d\n", r.Index, r.Kind, len(r.Key), len(r.Value))
			_, err := emitted.Write(r.Key)
			if err == nil {
				_, err = emitted.Write(r.Value)
			}
			return err
		})
		if err != nil {
			break
		}
	}
	o.Usage = in.Usage()
	return errors.Join(err, in.Close(ctx))
}

// failed fills in what an error says.
func (o outcome) failed(at string, err error) outcome {
	o.At, o.Error = at, err.Error()
	var f *fault.Error
	if errors.As(err, &f) {
		o.Code = f.ErrCode
	}
	var failed *sandbox.Failure
	if errors.As(err, &failed) {
		o.Trap, o.Status, o.Stack = failed.Trap, failed.Status, failed.Stack
	}
	return o
}

// check says where an outcome is not as it must be, "" if nowhere.
func (v *variant) check(o *outcome) string {
	w := v.want
	if w.at == "" {
		w.at = atEnd
	}
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if o.At != w.at {
		add("it got to %q, not to %q", o.At, w.at)
	}
	if w.code != "" && !slices.Contains(strings.Split(w.code, "|"), o.Code) {
		add("the code is %q, not %q", o.Code, w.code)
	}
	if o.Trap != w.trap || o.Status != w.status {
		add("it ended with trap %q and status %d, not with %q and %d", o.Trap, o.Status, w.trap, w.status)
	}
	for _, s := range w.says {
		if !strings.Contains(o.Error, s) {
			add("the message lacks %q", s)
		}
	}
	if w.stack != "" && !slices.Contains(o.Stack, w.stack) {
		add("the stack %.3q lacks %q", o.Stack, w.stack)
	}
	for _, c := range []byte(o.Error + strings.Join(o.Stack, "")) {
		if c < ' ' || c == 0x7f {
			add("the message or the stack holds the byte 0x%02x", c)
			break
		}
	}
	if len(o.Error) > maxMessage {
		add("the message has %d bytes", len(o.Error))
	}
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s (%.300s)", v.name, strings.Join(wrong, "; "), o.Error)
}

// maxMessage bounds what a module can make the host say, in bytes.
const maxMessage = 8 << 10
