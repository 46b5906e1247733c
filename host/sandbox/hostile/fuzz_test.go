//go:build linux

package hostile

import (
	"reflect"
	"testing"

	"github.com/wasmill/wasmill/host/sandbox"
)

// largeSeed is from how many bytes on a module is no seed.
const largeSeed = 4 << 10

// FuzzEngines takes what becomes of the modules of all cases when their bytes change through both engines: they agree, in
// every outcome, fuel, output and image, and no module gets further than its fuel.
func FuzzEngines(f *testing.F) {
	for i := range attacks {
		if attacks[i].long {
			continue
		}
		n := 0
		for v := range attacks[i].each {
			if len(v.wasm) > 0 && len(v.wasm) < largeSeed && v.sidecar == "" {
				f.Add(v.wasm)
				n++
			}
			if n == 20 {
				break
			}
		}
	}
	f.Add(rich())
	f.Add(living(2, 3))
	var engines [2]sandbox.Engine
	for i := range engines {
		e, err := sandbox.New(sandbox.Config{Interpreter: i == 1})
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = e.Close(f.Context()) })
		engines[i] = e
	}
	limits := sandbox.Limits{Memory: 4 << 20, FuelCall: 100_000, FuelRecord: 1, Output: 1 << 20}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		if len(wasm) > 4*largeSeed {
			return
		}
		var outcomes [2]outcome
		for i, e := range engines {
			v := variant{wasm: wasm, limits: limits, lanes: 2}
			outcomes[i] = v.run(t.Context(), e)
		}
		a, b := outcomes[0], outcomes[1]
		if a.At == atCompile && b.At == atCompile && a.Code == b.Code {
			return // the words of the engines may differ
		}
		if !reflect.DeepEqual(a, b) {
			t.Errorf("the engines differ:\n%s\n%s", a.short(), b.short())
		}
		if a.At != atCompile && a.Trap == "" && a.Code == "" && a.At != atEnd && a.Status == 0 {
			t.Errorf("the host's trouble: %s", a.short())
		}
	})
}
