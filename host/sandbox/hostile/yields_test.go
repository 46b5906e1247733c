package hostile

import (
	"context"
	"fmt"

	"github.com/wasmill/wasmill/host/sandbox"
	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// yieldAttacks want a yield to come where it hurts: what is alive across it must be there afterwards, at any depth.
var yieldAttacks = []attack{
	{id: "Y1", name: "values that live across yields", cpu: 3, slow: 12, rss: 90, onEach: true, long: true, each: func(yield func(variant) bool) {
		for _, locals := range []int{1, 3, 16, 17, 40} {
			v := variant{name: fmt.Sprint(locals, " of each sort"), own: func(ctx context.Context, e sandbox.Engine, _ *variant) outcome {
				return sameHoweverLong(ctx, e, locals)
			}}
			if !yield(v) {
				return
			}
		}
	}},
}

// sameHoweverLong runs a recursion whose levels spin for long or for short, and wants one answer of both.
func sameHoweverLong(ctx context.Context, e sandbox.Engine, locals int) outcome {
	var answers [2]outcome
	for i, turns := range []int32{3, 25_000} {
		v := variant{wasm: living(locals, turns), limits: sandbox.Limits{FuelCall: 1 << 40}}
		answers[i] = v.run(ctx, e)
	}
	a, b := answers[0], answers[1]
	if a.At != atCall || a.Status == 0 || a.Status != b.Status || a.Trap != b.Trap {
		return outcome{At: "answers", Error: fmt.Sprintf("short: %d %s; long: %d %s", a.Status, a.Error, b.Status, b.Error)}
	}
	return outcome{At: atEnd, Usage: b.Usage, Status: 0, Image: fmt.Sprint(b.Status)}
}

// living is a function that calls itself 40 deep. Each level has locals of every sort and values on the stack that it
// changes in a loop around an inner loop, calls itself, and mixes all of it into its answer.
func living(n int, turns int32) []byte {
	m := transform()
	at := func(sort, i int) uint32 { return uint32(4 + sort*n + i) }
	var fill, change, mix string
	for i := range n {
		k := int32(7*i + 3)
		fill += w.Get(0) + w.Const(k) + "\x6c" + set(at(0, i)) + w.Get(0) + "\xac" + i64const(k) + "\x7e" + set(at(1, i)) +
			w.Get(0) + "\xb2" + set(at(2, i)) + w.Get(0) + "\xb7" + set(at(3, i)) + w.Get(0) + "\xfd\x11" + set(at(4, i))
		change += w.Get(at(0, i)) + w.Const(k) + w.Add + set(at(0, i)) + w.Get(at(1, i)) + i64const(k) + "\x7c" + set(at(1, i)) +
			w.Get(at(2, i)) + "\x43\x00\x00\x80\x3f\x92" + set(at(2, i)) + w.Get(at(3, i)) + "\x44\x00\x00\x00\x00\x00\x00\xf0\x3f\xa0" + set(at(3, i)) +
			w.Get(at(4, i)) + minusThrees + "\xfd\xae\x01" + set(at(4, i))
		mix += w.Get(at(0, i)) + w.Add + w.Get(at(1, i)) + "\xa7" + "\x73" + w.Get(at(2, i)) + "\xa8" + w.Add +
			w.Get(at(3, i)) + "\xaa" + "\x73" + w.Get(at(4, i)) + "\xfd\x1b\x02" + w.Add + w.Const(5) + "\x77"
	}
	// Local 1 counts the outer loop, 2 the inner one, 3 has what the deeper levels came to.
	inner := times(2, turns, "")
	outer := times(1, 3, change+inner)
	deeper := w.Get(0) + ifThen + w.Get(0) + w.Const(1) + sub + w.Call(5) + set(3) + w.End
	m.def(i32, i32, groups(run(3, i32), run(uint32(n), i32), run(uint32(n), i64), run(uint32(n), f32), run(uint32(n), f64), run(uint32(n), v128)),
		fill+w.Const(11)+w.Const(22)+w.Get(0)+outer+deeper+outer+w.Get(3)+w.Add+"\x73"+w.Add+mix)
	m.batch.code = w.Const(40) + w.Call(5)
	return m.bytes()
}
