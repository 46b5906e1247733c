package sandbox

import (
	"context"
	"testing"

	w "github.com/wasmill/wasmill/host/sandbox/wasmtest"
)

func TestInspect(t *testing.T) {
	m := w.Transform(w.Const(0), w.Const(8)+w.Const(8)+w.Load(0)+w.Const(1)+w.Add+w.Store(0)+w.Const(0))
	onEach(t, func(t *testing.T, e Engine) {
		p := started(t, e, m.Bytes(), Options{})
		a, b := lane(t, p), lane(t, p)
		if Inspect(a) != p.Image() || Inspect(b) != p.Image() {
			t.Error("a fresh instance is not its program's image")
		}
		if err := call(t, a, discard); err != nil {
			t.Fatal(err)
		}
		once := Inspect(a)
		if err := call(t, a, discard); err != nil {
			t.Fatal(err)
		}
		if once == p.Image() || Inspect(a) == once || len(once) != 64 {
			t.Errorf("image %s, after a call %s, after two %s", p.Image(), once, Inspect(a))
		}
		if err := b.Close(context.Background()); err != nil || Inspect(b) != "" {
			t.Errorf("a closed instance has %q, %v", Inspect(b), err)
		}
	})
}
