package binary

import (
	"strings"
	"testing"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

// BenchmarkModule reads a module of 100 functions of 10 KB each as it is read before it runs.
func BenchmarkModule(b *testing.B) {
	m := w.Transform(w.Const(0), w.Echo())
	body := strings.Repeat(w.Get(0)+w.Load(8)+w.Const(1000)+w.Add+w.Drop, 1000)
	for range 100 {
		m.Funcs = append(m.Funcs, w.Func{Params: "\x7f", Code: body})
	}
	module := m.Bytes()
	b.SetBytes(int64(len(module)))
	for b.Loop() {
		form, err := Parse(module)
		if err != nil {
			b.Fatal(err)
		}
		if !form.Capturable() {
			b.Fatal("not capturable")
		}
	}
}
